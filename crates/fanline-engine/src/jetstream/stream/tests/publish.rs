use super::{Bench, check};

const LAST_0: &str = "!10071 wrong last sequence: 0";

/// Publishes and their expected answers.
const CONDITIONS: &[(&str, &str)] = &[
    ("s.a x", "=1"),
    ("s.a |Nats-Msg-Id: 1| x", "=2"),
    ("s.a |Nats-Msg-Id: 1| x", r#"=2,"duplicate": true"#),
    (
        "s.b |Nats-Expected-Stream: Z| x",
        "!10060 expected stream does not match",
    ),
    (
        "s.b |Nats-Expected-Last-Sequence: 9| x",
        "!10071 wrong last sequence: 2",
    ),
    (
        "s.b |Nats-Expected-Last-Sequence: x| x",
        "!10071 wrong last sequence: 2",
    ),
    ("s.b |Nats-Expected-Last-Subject-Sequence: 7| x", LAST_0),
    ("s.b |Nats-Expected-Last-Subject-Sequence: x| x", LAST_0),
    (
        "s.b |Nats-Expected-Last-Subject-Sequence: 0|Nats-Expected-Last-Subject-Sequence-Subject: s.z| x",
        "=3",
    ),
    (
        "s.b |Nats-Expected-Last-Subject-Sequence: 0|Nats-Expected-Last-Subject-Sequence-Subject: s.*| x",
        "!10071 wrong last sequence: 3",
    ),
    (
        "s.b |Nats-Expected-Last-Subject-Sequence-Subject: s.x| x",
        "!10193 missing sequence for expected last sequence per subject",
    ),
    (
        "s.b |Nats-Expected-Last-Msg-Id: zz| x",
        "!10070 wrong last msg ID: ",
    ),
    ("s.b |Nats-Msg-Id: 2| x", "=4"),
    (
        "s.b |Nats-Expected-Last-Msg-Id: zz| x",
        "!10070 wrong last msg ID: 2",
    ),
    ("s.b |Nats-Expected-Last-Msg-Id: 2| x", "=5"),
    (
        "s.b |Nats-Rollup: foo| x",
        r#"!10111 rollup value invalid: "foo""#,
    ),
    ("s.b |Nats-TTL: 5| x", "!10166 per-message TTL is disabled"),
    ("s.b |Nats-TTL: x| x", "!10165 invalid per-message TTL"),
    (
        "s.b |Nats-Incr: 1| x",
        "!10168 message counters is disabled",
    ),
    (
        "s.b |Nats-Incr: x|Nats-Expected-Stream: q| x",
        "!10171 message counter increment is invalid",
    ),
    (
        "s.b |Nats-Batch-Id: 1| x",
        "!10174 atomic publish is disabled",
    ),
    (
        "s.b |Nats-Schedule: @at x| x",
        "!10188 message schedules is disabled",
    ),
    (
        "s.b |Nats-Schedule: x|Nats-Expected-Last-Sequence: 99| x",
        "!10071 wrong last sequence: 5",
    ),
    (
        "s.b |Nats-Schedule: x|Nats-Msg-Id: 2| x",
        "!10188 message schedules is disabled",
    ),
    (
        "s.b |Nats-TTL: x|Nats-Msg-Id: 2| x",
        r#"=4,"duplicate": true"#,
    ),
    (
        "s.b |Nats-Msg-Id: 2|Nats-Expected-Last-Sequence: 99| x",
        "!10071 wrong last sequence: 5",
    ),
    (
        "s.b |Nats-Stream-Source: S 1| x",
        "!10227 message stream source header is not allowed",
    ),
    (
        "s.b |Nats-Schedule-Next: purge| x",
        "!10212 message schedules invalid scheduler",
    ),
    ("s.b |nats-msg-id: 2| x", "=6"),
    ("s.b |Nats-Msg-Id:| x", "=7"),
    ("s.b |Nats-Expected-Last-Sequence:| x", "=8"),
];

#[test]
fn publish_conditions_match_nats_server() {
    check(
        r#""subjects":["s.>"],"duplicate_window":1000000000,"allow_rollup_hdrs":true"#,
        CONDITIONS,
    );
    check(
        r#""subjects":["s"]"#,
        &[("s |Nats-Rollup: sub| x", "!10111 rollup not permitted")],
    );
    check(
        r#""subjects":["s"],"no_ack":true"#,
        &[("s x", ""), ("s |Nats-TTL: x| x", "")],
    );
    check(
        r#""subjects":["s"],"sealed":true"#,
        &[("s x", "!10109 invalid operation on sealed stream")],
    );
}

#[test]
fn oversized_messages_are_refused() {
    let large = format!("s |A: {}| x", "b".repeat(66_000));
    check(
        r#""subjects":["s"],"max_msg_size":4"#,
        &[
            ("s xxxx", "=1"),
            ("s xxxxx", "!10054 message size exceeds maximum allowed"),
        ],
    );
    check(
        r#""subjects":["s"]"#,
        &[(&large, "!10097 header size exceeds maximum allowed of 64k")],
    );
}

#[test]
fn rollups_remove_earlier_records() {
    let mut bench = Bench::new(r#""subjects":["s.*"],"allow_rollup_hdrs":true"#);
    for text in ["s.a 1", "s.b 2", "s.a 3", "s.a |Nats-Rollup: SUB| 4"] {
        bench.publish(text);
    }
    assert_eq!(bench.records(), ["2 s.b 2", "4 s.a |Nats-Rollup: SUB| 4"]);
    bench.publish("s.b |Nats-Rollup: all| 5");
    assert_eq!(bench.records(), ["5 s.b |Nats-Rollup: all| 5"]);
    bench.publish("s.b |Nats-Rollup: sub| 6");
    assert_eq!(bench.records(), ["6 s.b |Nats-Rollup: sub| 6"]);
}

#[test]
fn message_ids_expire_after_duplicate_window() {
    let mut bench = Bench::new(r#""subjects":["s"],"duplicate_window":1000000000"#);
    assert_eq!(bench.publish("s |Nats-Msg-Id: a| x"), "=1");
    bench.wait(999);
    assert_eq!(
        bench.publish("s |Nats-Msg-Id: a| x"),
        r#"=1,"duplicate": true"#
    );
    bench.wait(1);
    assert_eq!(bench.publish("s |Nats-Msg-Id: a| x"), "=2");
    assert!(bench.stream.next_timeout().is_some());
    bench.wait(2_000);
    assert_eq!(bench.stream.next_timeout(), None);
}

#[test]
fn counters_add_up_increments() {
    check(
        r#""subjects":["c"],"allow_msg_counter":true"#,
        &[
            ("c |Nats-Incr: 1|", r#"=1,"val":"1""#),
            ("c |Nats-Incr: +5|", r#"=2,"val":"6""#),
            ("c |Nats-Incr: -9|", r#"=3,"val":"-3""#),
            (
                "c |Nats-Incr: x|",
                "!10171 message counter increment is invalid",
            ),
            ("c |Nats-Incr: 1| x", "!10170 message counter has payload"),
            ("c", "!10169 message counter increment is missing"),
            (
                "c |Nats-Incr: 1|Nats-Rollup: sub|",
                "!10171 message counter increment is invalid",
            ),
        ],
    );
}

#[test]
fn subjects_are_transformed_and_republished() {
    let mut bench = Bench::new(
        r#""subjects":["r.>"],"subject_transform":{"src":"r.in.*","dest":"r.out.$1"},
           "republish":{"src":"r.*","dest":"again.{{wildcard(1)}}"}"#,
    );
    let again = |headers: &str, sequence: u64, last: u64, payload: &str| {
        format!(
            "again.a NATS/1.0|{headers}Nats-Stream: S|Nats-Subject: r.a|Nats-Sequence: {sequence}|\
             Nats-Time-Stamp: 2026-11-21T22:33:09.64Z|Nats-Last-Sequence: {last}|| {payload}"
        )
    };
    assert_eq!(
        bench.publish("r.a xxx"),
        format!("{} / =1", again("", 1, 0, "xxx"))
    );
    assert_eq!(
        bench.publish("r.a |H: v| y"),
        format!("{} / =2", again("H: v|", 2, 1, "y"))
    );
    assert_eq!(bench.publish("r.in.5 x"), "=3");
    assert_eq!(bench.records()[2], "3 r.out.5 x");
}

#[test]
fn ttl_expires_records_and_stores_markers() {
    let marker = "|Nats-Marker-Reason: MaxAge|Nats-TTL: 5s|Nats-Rollup: sub|";
    let mut bench = Bench::new(
        r#""subjects":["t.>"],"max_age":2000000000,"allow_msg_ttl":true,"allow_rollup_hdrs":true,
           "subject_delete_marker_ttl":5000000000"#,
    );
    bench.publish("t.x d");
    bench.publish("t.y |Nats-TTL: never| d");
    bench.publish("t.z |Nats-TTL: 1| d");
    assert_eq!(bench.records()[2], "3 t.z |Nats-TTL: 5| d");
    bench.wait(2_000);
    assert_eq!(
        bench.records(),
        [
            "2 t.y |Nats-TTL: never| d".to_owned(),
            format!("4 t.x {marker}"),
            format!("5 t.z {marker}"),
        ]
    );
    // When a marker expires, no other marker is stored.
    bench.wait(10_000);
    assert_eq!(bench.records(), ["2 t.y |Nats-TTL: never| d"]);
    assert_eq!(bench.stream.next_timeout(), None);
}

#[test]
fn expired_purge_record_stores_no_marker() {
    let mut bench = Bench::new(
        r#""subjects":["t.>"],"allow_msg_ttl":true,"allow_rollup_hdrs":true,
           "subject_delete_marker_ttl":1000000000"#,
    );
    for (name, header) in [
        ("purge", "KV-Operation: PURGE"),
        ("reason", "Nats-Marker-Reason: mine"),
        ("delete", "KV-Operation: DEL"),
        ("case", "kv-operation: PURGE"),
        ("empty", "Nats-Marker-Reason:"),
    ] {
        bench.publish(&format!("t.{name} |Nats-TTL: 2|{header}| x"));
    }
    bench.wait(2_000);
    let subjects: Vec<_> = bench.records();
    let marked = ["delete", "case", "empty"].map(|name| format!("t.{name} "));
    assert_eq!(subjects.len(), marked.len(), "{subjects:?}");
    for (record, subject) in subjects.iter().zip(marked) {
        assert!(record.contains(&subject), "{record}");
    }
}

/// A record must not expire before its marker would. With one record per subject this does not apply.
#[test]
fn ttl_may_be_shorter_than_marker_ttl_with_one_record_per_subject() {
    let mut bench = Bench::new(
        r#""subjects":["t.>"],"allow_msg_ttl":true,"allow_rollup_hdrs":true,
           "max_msgs_per_subject":1,"subject_delete_marker_ttl":5000000000"#,
    );
    bench.publish("t.x |Nats-TTL: 1| d");
    assert_eq!(bench.records(), ["1 t.x |Nats-TTL: 1| d"]);
    bench.wait(1_000);
    assert!(bench.records()[0].starts_with("2 t.x |Nats-Marker-Reason"));
}

/// A message from another account has a header with information on its publisher, which is not stored.
#[test]
fn publisher_of_another_account_is_not_stored() {
    let mut bench = Bench::new(r#""subjects":["t.>"],"duplicate_window":120000000000"#);
    bench.publish(r#"t.x |Nats-Request-Info: {"acc":"B"}| d"#);
    bench.publish(r#"t.x |A: b|Nats-Request-Info: {"acc":"B"}|Nats-Msg-Id: 1| d"#);
    assert_eq!(
        bench.publish(r#"t.x |Nats-Msg-Id: 1|Nats-Request-Info: {"acc":"B"}| d"#),
        r#"=2,"duplicate": true"#
    );
    assert_eq!(
        bench.records(),
        ["1 t.x d", "2 t.x |A: b|Nats-Msg-Id: 1| d"]
    );
}

/// A client's `kv.purge("a.*")` publishes to a subject with a wildcard.
#[test]
fn rollup_of_wildcard_subject_removes_matching_records() {
    let mut bench = Bench::new(r#""subjects":["t.>"],"allow_rollup_hdrs":true"#);
    for subject in ["t.a", "t.a.x", "t.a.y", "t.b.x", "t.a.x"] {
        bench.publish(subject);
    }
    assert_eq!(bench.publish("t.a.* |Nats-Rollup: sub|"), "=6");
    assert_eq!(
        bench.records(),
        ["1 t.a", "4 t.b.x", "6 t.a.* |Nats-Rollup: sub|"]
    );
    assert_eq!(bench.publish("t.> |Nats-Rollup: sub|"), "=7");
    assert_eq!(bench.records(), ["7 t.> |Nats-Rollup: sub|"]);
}

#[test]
fn interest_stream_without_consumers_stores_nothing() {
    check(
        r#""subjects":["s"],"retention":"interest""#,
        &[("s x", "=1"), ("s x", "=2")],
    );
}
