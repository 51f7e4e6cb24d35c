use super::{Bench, parsed};
use crate::jetstream::stream::{Stream, StreamContext};
use crate::store::{Store, StoreLimits};

fn origin() -> Bench {
    let mut origin = Bench::new(r#""subjects":["o.>"]"#);
    origin.stream.config.name = "O".to_owned();
    for n in 0..3 {
        origin.publish(&format!("o.a.{n} |A: b|Nats-Expected-Stream: O| x"));
    }
    origin.publish("o.b y");
    origin
}

fn pull(copy: &mut Bench, origin: &mut Bench) -> Vec<String> {
    while copy
        .stream
        .pull(&mut origin.stream, copy.now, &mut copy.port)
    {}
    copy.records()
}

#[test]
fn mirrors_copy_their_origin() {
    let mut origin = origin();
    for (config, expected) in [
        (
            r#""mirror":{"name":"O"}"#,
            &[
                "1 o.a.0 |A: b| x",
                "2 o.a.1 |A: b| x",
                "3 o.a.2 |A: b| x",
                "4 o.b y",
            ][..],
        ),
        (
            r#""mirror":{"name":"O","filter_subject":"o.b"}"#,
            &["4 o.b y"],
        ),
        (
            r#""mirror":{"name":"O","opt_start_seq":2,"subject_transforms":[{"src":"o.a.*","dest":"m.{{wildcard(1)}}"}]}"#,
            &["2 m.1 |A: b| x", "3 m.2 |A: b| x"],
        ),
    ] {
        let mut copy = Bench::new(config);
        assert_eq!(pull(&mut copy, &mut origin), expected, "{config}");
        assert_eq!(pull(&mut copy, &mut origin).len(), expected.len());
        assert_eq!(copy.stream.source_status(copy.now)[0].lag, 0);
    }
}

#[test]
fn sources_resume_after_restart() {
    let mut origin = origin();
    let config = r#""sources":[{"name":"O","filter_subject":"o.a.*"},{"name":"O","subject_transforms":[{"src":"o.b","dest":"z"}]}]"#;
    let mut copy = Bench::new(config);
    let all = pull(&mut copy, &mut origin);
    assert_eq!(
        all[0],
        "1 o.a.0 |A: b|Nats-Stream-Source: O 1 o.a.* > o.a.0 UzMeAU4O| x"
    );
    assert_eq!(all[3], "4 z |Nats-Stream-Source: O 4 o.b z o.b UzMeAU4O| y");
    let status = copy.stream.source_status(copy.now);
    assert_eq!((status[0].seq, status[1].seq), (Some(3), Some(4)));
    let store = std::mem::replace(copy.stream.store(), Store::memory(&StoreLimits::default()));
    let again = Stream::new(
        parsed(config),
        store,
        0,
        &StreamContext::default(),
        copy.now,
    );
    copy.stream = again.unwrap();
    origin.publish("o.a.9 new");
    let all = pull(&mut copy, &mut origin);
    assert_eq!(all.len(), 5);
    assert!(all[4].contains("O 5 o.a.* > o.a.9 "), "{}", all[4]);
}

#[test]
fn counters_add_up_over_sources() {
    let mut first = Bench::new(r#""subjects":["c"],"allow_msg_counter":true"#);
    first.stream.config.name = "A".to_owned();
    let mut second = Bench::new(r#""subjects":["c"],"allow_msg_counter":true"#);
    second.stream.config.name = "B".to_owned();
    let mut sum = Bench::new(r#""sources":[{"name":"A"},{"name":"B"}],"allow_msg_counter":true"#);
    for (a, b, expected) in [("2", "3", "5"), ("10", "-1", "14")] {
        first.publish(&format!("c |Nats-Incr: {a}|"));
        second.publish(&format!("c |Nats-Incr: {b}|"));
        pull(&mut sum, &mut first);
        let all = pull(&mut sum, &mut second);
        let last = all.last().unwrap();
        assert!(
            last.ends_with(&format!(r#"{{"val":"{expected}"}}"#)),
            "{last}"
        );
    }
}

#[test]
fn work_queue_removes_copied_records() {
    let mut origin = Bench::new(r#""subjects":["o"],"retention":"workqueue""#);
    origin.stream.config.name = "O".to_owned();
    origin.publish("o x");
    let mut copy = Bench::new(r#""mirror":{"name":"O"}"#);
    pull(&mut copy, &mut origin);
    assert_eq!(origin.records(), Vec::<String>::new());
    assert_eq!(copy.records(), ["1 o x"]);
}
