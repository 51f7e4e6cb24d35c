use std::time::Duration;

use super::Bench;
use crate::jetstream::BatchLimits;

fn batch(bench: &mut Bench, text: &str) -> String {
    // Format: `id sequence extra-headers subject payload`.
    let words: Vec<_> = text.splitn(4, ' ').collect();
    let more = if words[2] == "-" {
        String::new()
    } else {
        format!("|{}", words[2].replace('=', ": "))
    };
    let (subject, payload) = words[3].split_once(' ').unwrap_or((words[3], "x"));
    bench.publish(&format!(
        "{subject} |Nats-Batch-Id: {}|Nats-Batch-Sequence: {}{more}| {payload}",
        words[0], words[1]
    ))
}

fn check_atomic(steps: &[(&str, &str)]) {
    let mut bench = Bench::new(
        r#""subjects":["a.>"],"allow_atomic":true,"allow_rollup_hdrs":true,"allow_msg_ttl":true,
           "duplicate_window":1000000000"#,
    );
    for (nth, (text, expected)) in steps.iter().enumerate() {
        // An empty acknowledgement appears as its subject.
        assert_eq!(batch(&mut bench, text), *expected, "{nth}: {text}");
    }
}

const INCOMPLETE: &str = "!10176 atomic publish batch is incomplete";

/// Steps as `id sequence header subject`, each with the answer.
const ATOMIC: &[(&str, &str)] = &[
    ("b 1 - a.1", "r"),
    ("b 2 - a.1", "r"),
    ("b 3 Nats-Batch-Commit=1 a.1", r#"=3,"batch":"b","count":3"#),
    ("l 1 - a.1", "r"),
    (
        "l 2 Nats-Required-Api-Level=99 a.1",
        "!10185 JetStream minimum api level required",
    ),
    ("l 2 Nats-Batch-Commit=1 a.1", INCOMPLETE),
    ("c 1 - a.1", "r"),
    ("c 3 - a.1", INCOMPLETE),
    ("c 2 - a.1", INCOMPLETE),
    ("d 2 - a.1", INCOMPLETE),
    ("d x - a.1", "!10175 atomic publish sequence is missing"),
    ("e 1 Nats-Batch-Commit=1 a.1", r#"=4,"batch":"e","count":1"#),
    ("e 1 Nats-Batch-Commit=eob a.1", INCOMPLETE),
    ("f 1 - a.1", "r"),
    (
        "f 2 Nats-Batch-Commit=eob a.1",
        r#"=5,"batch":"f","count":1"#,
    ),
    ("f 1 - a.1", "r"),
    (
        "f 2 Nats-Batch-Commit=zz a.1",
        "!10200 atomic publish batch commit is invalid",
    ),
    ("f 3 Nats-Batch-Commit=1 a.1", INCOMPLETE),
    ("g 1 Nats-Msg-Id=1 a.1", "r"),
    ("g 2 Nats-Msg-Id=1 a.1", "r"),
    (
        "g 3 Nats-Batch-Commit=1 a.1",
        "!10201 atomic publish batch contains duplicate message id",
    ),
    ("j 1 Nats-Expected-Last-Sequence=1 a.1", "r"),
    (
        "j 2 Nats-Batch-Commit=1 a.1",
        "!10071 wrong last sequence: 5",
    ),
    ("k 1 - a.1", "r"),
    ("k 2 Nats-Expected-Last-Sequence=1 a.1", "r"),
    ("k 3 Nats-Batch-Commit=1 a.1", "!10164 wrong last sequence"),
    ("b0 0 - a.1", INCOMPLETE),
    ("b1 1 - a.1", "r"),
    ("b1 1 - a.1", INCOMPLETE),
    ("b1 2 Nats-Batch-Commit=1 a.1", INCOMPLETE),
    (
        "b2 1 Nats-Batch-Commit= a.1",
        "!10200 atomic publish batch commit is invalid",
    ),
    ("l 1 Nats-Expected-Last-Msg-Id=1 a.1", "r"),
    (
        "l 2 Nats-Batch-Commit=1 a.1",
        "!10177 atomic publish unsupported header used: Nats-Expected-Last-Msg-Id",
    ),
    ("n 1 Nats-Expected-Last-Subject-Sequence=0 a.2", "r"),
    ("n 2 Nats-Expected-Last-Subject-Sequence=0 a.2", "r"),
    ("n 3 Nats-Batch-Commit=1 a.1", "!10164 wrong last sequence"),
    ("o 1 Nats-Rollup=sub a.2", "r"),
    ("o 2 Nats-Rollup=all a.2", "r"),
    (
        "o 3 Nats-Batch-Commit=1 a.1",
        "!10111 batch rollup all invalid",
    ),
    ("p 1 - a.2", "r"),
    ("p 2 Nats-Rollup=sub a.2", "r"),
    (
        "p 3 Nats-Batch-Commit=1 a.1",
        "!10111 batch rollup sub invalid",
    ),
    ("q 1 Nats-TTL=0 a.2", "r"),
    (
        "q 2 Nats-Batch-Commit=1 a.1",
        "!10165 invalid per-message TTL",
    ),
    ("s 1 Nats-Rollup=all a.1", "r"),
    ("s 2 Nats-Batch-Commit=1 a.1", r#"=7,"batch":"s","count":2"#),
];

#[test]
fn atomic_batches_are_stored_completely_or_refused() {
    let long = format!("{} 1 - a.1", "d".repeat(65));
    check_atomic(&[(&long, "!10179 atomic publish batch ID is invalid")]);
    check_atomic(ATOMIC);
}

#[test]
fn batch_limits_are_enforced() {
    let mut bench = Bench::new(r#""subjects":["a.>"],"allow_atomic":true"#);
    for n in 0..50 {
        assert_eq!(batch(&mut bench, &format!("z{n} 1 - a.1")), "r");
    }
    assert_eq!(
        batch(&mut bench, "y 1 - a.1"),
        "!10210 atomic publish too many inflight"
    );
    bench.wait(10_000);
    assert_eq!(
        batch(&mut bench, "z1 2 - a.1"),
        "!10176 atomic publish batch is incomplete"
    );
    for n in 1..=1_000 {
        assert_eq!(batch(&mut bench, &format!("y {n} - a.1")), "r");
    }
    let refused = batch(&mut bench, "y 1001 Nats-Batch-Commit=1 a.1");
    assert_eq!(refused, "!10199 atomic publish batch is too large: 1000");
    assert_eq!(bench.records(), Vec::<String>::new());
}

#[test]
fn server_limits_of_batches_apply() {
    let mut bench = Bench::new(r#""subjects":["a.>"],"allow_atomic":true,"allow_batched":true"#);
    bench.stream.set_batch_limits(BatchLimits {
        open_per_stream_max: Some(1),
        open_max: None,
        messages_max: Some(3),
        idle_max: Some(Duration::from_secs(2)),
    });
    for (text, expected) in [
        ("b 1 - a.1", "r"),
        ("c 1 - a.1", "!10210 atomic publish too many inflight"),
        ("b 2 - a.1", "r"),
        ("b 3 - a.1", "r"),
        ("b 4 - a.1", "!10199 atomic publish batch is too large: 3"),
        ("d 1 - a.1", "r"),
    ] {
        assert_eq!(batch(&mut bench, text), expected, "{text}");
    }
    let fast = |bench: &mut Bench, reply: &str| {
        let reply = format!("i.{reply}.$FI");
        let answers = bench.publish_to(&reply, "a.1");
        super::shortened(&answers.replace(&format!("{reply} "), ""))
    };
    assert_eq!(fast(&mut bench, "f.3.ok.1.0"), flow(0, 3));
    let too_many = "!10211 batch publish too many inflight";
    assert_eq!(fast(&mut bench, "g.3.ok.1.0"), too_many);
    bench.wait(2_000);
    assert_eq!(batch(&mut bench, "d 2 - a.1"), INCOMPLETE);
    let unknown = "!10208 batch publish ID unknown";
    assert_eq!(fast(&mut bench, "f.3.ok.2.1"), unknown);
}

#[test]
fn refused_batch_stores_nothing() {
    let config = r#""subjects":["a.>"],"allow_atomic":true,"discard":"new","max_msgs":3"#;
    let mut bench = Bench::new(config);
    bench.publish("a.1 x");
    for n in 1..=2 {
        batch(&mut bench, &format!("b {n} - a.1"));
    }
    let refused = batch(&mut bench, "b 3 Nats-Batch-Commit=1 a.1");
    assert_eq!(refused, "!10077 maximum messages exceeded");
    assert_eq!(bench.publish("a.1 y"), "=2");
}

/// Regression: a batch was refused at the limit of a subject after it was partly stored, and left a gap in
/// the sequences.
#[test]
fn refused_batch_at_subject_limit_leaves_no_gap() {
    let mut bench = Bench::new(
        r#""subjects":["a.>"],"allow_atomic":true,"discard":"new","max_msgs_per_subject":1,"discard_new_per_subject":true"#,
    );
    batch(&mut bench, "b 1 - a.1");
    let refused = batch(&mut bench, "b 2 Nats-Batch-Commit=1 a.1");
    assert_eq!(refused, "!10077 maximum messages per subject exceeded");
    batch(&mut bench, "c 1 - a.1");
    let stored = batch(&mut bench, "c 2 Nats-Batch-Commit=1 a.2");
    assert_eq!(stored, r#"=2,"batch":"c","count":2"#);
}

fn check_fast(config: &str, steps: &[(&str, &str)]) {
    let mut bench = Bench::new(config);
    for (nth, (text, expected)) in steps.iter().enumerate() {
        // Format: `id.flow.mode.seq.op headers`.
        let (reply, rest) = text.split_once(' ').unwrap_or((text, "x"));
        let reply = format!("i.{reply}.$FI");
        let answers = bench.publish_to(&reply, &format!("f.a {rest}"));
        let answers = answers.replace(&format!("{reply} "), "");
        let answers: Vec<_> = answers.split(" / ").map(super::shortened).collect();
        assert_eq!(answers.join(" / "), *expected, "{nth}: {text}");
    }
}

const FAST: &str =
    r#""subjects":["f.>"],"allow_batched":true,"max_msg_size":200,"duplicate_window":1000000000"#;

fn flow(sequence: u64, messages: u64) -> String {
    format!(r#"{{"type":"ack","seq":{sequence},"msgs":{messages}}}"#)
}

fn gap(awaited: u64, sequence: u64) -> String {
    format!(r#"{{"type":"gap","last_seq":{awaited},"seq":{sequence}}}"#)
}

#[test]
fn fast_batches_are_acknowledged_in_groups() {
    let unknown = "!10208 batch publish ID unknown";
    let invalid = "!10206 batch publish pattern is invalid";
    let stored = |sequence: u64, id: &str, count: u64| {
        format!(r#"={sequence},"batch":"{id}","count":{count}"#)
    };
    let wrong = |n: u64, last: u64| {
        format!(
            r#"{{"type":"err","seq":{n},"error":{{"code":400,"err_code":10071,"description":"wrong last sequence: {last}"}}}}"#
        )
    };
    let after_gap = format!("{} / {}", gap(4, 9), flow(9, 3));
    let gap_and_end = format!("{} / {}", gap(3, 5), stored(7, "b", 2));
    let ping_gap = format!("{} / {}", gap(3, 5), flow(4, 2));
    let error_and_end = format!("{} / {}", wrong(2, 9), stored(9, "d", 1));
    let early = format!("{} / {}", gap(2, 1), stored(11, "t", 1));
    check_fast(
        FAST,
        &[
            ("a.3.ok.1.0", &flow(0, 3)),
            ("a.3.ok.2.1", ""),
            ("a.3.ok.3.1", &flow(3, 3)),
            ("a.3.ok.9.1", &after_gap),
            ("a.3.ok.10.2", &stored(5, "a", 10)),
            ("b.2.fail.1.0", &flow(0, 2)),
            ("b.2.fail.2.1", &flow(2, 2)),
            ("b.2.fail.5.1", &gap_and_end),
            ("b.2.fail.6.1", unknown),
            ("c.2.ok.1.0", &flow(0, 2)),
            (
                "c.2.ok.2.1 |Nats-Expected-Last-Sequence: 1| x",
                &wrong(2, 8),
            ),
            (
                &format!("c.2.ok.3.1 {}", "x".repeat(300)),
                "!10054 message size exceeds maximum allowed",
            ),
            ("c.2.ok.4.4", &ping_gap),
            ("c.2.ok.5.3", &stored(8, "c", 4)),
            ("d.2.fail.1.0", &flow(0, 2)),
            (
                "d.2.fail.2.1 |Nats-Expected-Last-Sequence: 1| x",
                &error_and_end,
            ),
            ("e.2.ok.2.1", unknown),
            ("f.2.ok.1.2", &stored(10, "f", 1)),
            ("h.2.zz.1.0", invalid),
            ("i.2.ok.0.0", invalid),
            ("j.2.ok.2.0", invalid),
            ("k.2.ok.1.9", invalid),
            ("s.2.ok.1.3", invalid),
            ("t.2.ok.1.0", &flow(0, 2)),
            ("t.2.ok.1.0", &early),
        ],
    );
    check_fast(
        r#""subjects":["f.>"]"#,
        &[("a.2.ok.1.0", "!10205 batch publish is disabled")],
    );
}

#[test]
fn duplicate_counts_in_fast_batch() {
    check_fast(
        FAST,
        &[
            ("o.2.ok.1.0 |Nats-Msg-Id: 1| x", &flow(0, 2)),
            ("o.2.ok.2.1 |Nats-Msg-Id: 1| x", &flow(2, 2)),
            (
                "o.2.ok.3.2 |Nats-Msg-Id: 2| x",
                r#"=2,"batch":"o","count":3"#,
            ),
        ],
    );
}
