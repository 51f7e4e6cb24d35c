//! Tests of start positions, counts, and administration of consumers.

use super::Simulation;
use crate::jetstream::Retention;

const SIX: [&str; 6] = ["s.a=1", "s.b=2", "s.a=3", "s.b=4", "s.a=5", "s.b=6"];

/// Checks the numbers of a new consumer, and its deliveries.
#[track_caller]
fn check(config: &str, numbers: &str, expected: &[u64]) {
    let mut simulation = Simulation::with(&SIX, config);
    assert_eq!(simulation.numbers("C"), numbers, "{config}");
    simulation.pull("i", "99");
    let found: Vec<u64> = simulation
        .port
        .deliveries
        .iter()
        .map(|(_, sequence)| *sequence)
        .collect();
    assert_eq!(found, expected, "{config}");
    assert!(simulation.numbers("C").ends_with(" 0"), "{config}");
    simulation.append(&["s.a=7", "s.c=8"]);
    let wants_c = !config.contains("filter");
    assert!(
        simulation
            .port
            .deliveries
            .iter()
            .any(|(_, sequence)| *sequence == 7),
        "{config}"
    );
    assert_eq!(
        simulation.port.deliveries.iter().any(|(_, s)| *s == 8),
        wants_c,
        "{config}"
    );
}

#[test]
fn deliver_policies_determine_the_start() {
    check("{}", "0/0 0/0 0 0 0 6", &[1, 2, 3, 4, 5, 6]);
    check(r#"{"deliver_policy":"new"}"#, "0/6 0/6 0 0 0 0", &[]);
    check(r#"{"deliver_policy":"last"}"#, "0/5 0/5 0 0 0 1", &[6]);
    check(
        r#"{"deliver_policy":"last","filter_subject":"s.a"}"#,
        "0/4 0/4 0 0 0 1",
        &[5],
    );
    let from = r#"{"deliver_policy":"by_start_sequence","opt_start_seq":4}"#;
    check(from, "0/3 0/3 0 0 0 3", &[4, 5, 6]);
    let time = r#"{"deliver_policy":"by_start_time","opt_start_time":"2026-11-21T22:26:42Z"}"#;
    check(time, "0/2 0/2 0 0 0 4", &[3, 4, 5, 6]);
    let each = r#"{"deliver_policy":"last_per_subject","filter_subject":"s.*"}"#;
    let mut simulation = Simulation::with(&SIX, each);
    assert_eq!(simulation.numbers("C"), "0/4 0/4 0 0 0 2");
    simulation.append(&["s.a=7"]);
    simulation.pull("i", "99");
    simulation.expect_messages(&["i s.a=5 x1 #1 +2", "i s.b=6 x1 #2 +1", "i s.a=7 x1 #3 +0"]);
    let filters = r#"{"filter_subjects":["s.a","x.>"]}"#;
    check(filters, "0/0 0/0 0 0 0 3", &[1, 3, 5]);
}

#[test]
fn future_start_sequence_waits() {
    let mut simulation = Simulation::with(
        &SIX,
        r#"{"deliver_policy":"by_start_sequence","opt_start_seq":8}"#,
    );
    assert_eq!(simulation.numbers("C"), "0/7 0/7 0 0 0 0");
    simulation.pull("i", "9");
    simulation.append(&["s.a=7", "s.a=8"]);
    simulation.expect_messages(&["i s.a=8 x1 #1 +0"]);
}

#[test]
fn removed_records_are_not_counted() {
    let mut simulation = Simulation::with(&SIX, r#"{"filter_subject":"s.a"}"#);
    simulation.remove(3);
    simulation.remove(4);
    assert_eq!(simulation.numbers("C"), "0/0 0/0 0 0 0 2");
    simulation.pull("i", "1");
    assert_eq!(simulation.numbers("C"), "1/1 0/0 1 0 0 1");
    // The first record was delivered, but after its removal it is not redelivered.
    simulation.remove(1);
    assert_eq!(simulation.numbers("C"), "1/1 1/1 0 0 0 1");
    // Removes more records than a group stores, so that the consumer must recount.
    for _ in 0..50 {
        simulation.append(&["s.a=x"]);
    }
    for sequence in 10..=50 {
        simulation.remove(sequence);
    }
    assert_eq!(simulation.numbers("C"), "1/1 1/1 0 0 0 10");
}

#[test]
fn purge_drops_pending_and_backlog() {
    let mut simulation = Simulation::with(&SIX, "{}");
    simulation.pull("i", "2");
    simulation.store.purge(b"", None, 0).unwrap();
    simulation.call(|consumers, context| consumers.handle_purged(context).unwrap());
    assert_eq!(simulation.numbers("C"), "2/6 2/6 0 0 0 0");
    simulation.append(&["s.a=7"]);
    simulation.port.messages.clear();
    simulation.pull("i", "1");
    simulation.expect_messages(&["i s.a=7 x1 #3 +0"]);
}

#[test]
fn paused_consumer_resumes_at_its_time() {
    let mut simulation = Simulation::with(&SIX, "{}");
    let id = simulation.id("C");
    let until = simulation.now.unix_nanos + 1_000_000_000;
    simulation.call(|consumers, context| consumers.pause(id, Some(until), context));
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.PAUSE.S.C pause_until=2026-11-21T22:26:41Z paused=true",
    ]);
    simulation.pull("i", r#"{"expires":600000000,"idle_heartbeat":300000000}"#);
    simulation.pass_millis(600);
    simulation.expect_messages(&[
        "i 100 Idle Heartbeat Last-Consumer=0 Last-Stream=0",
        "i 408 Request Timeout Pending-Messages=0 Pending-Bytes=0",
    ]);
    simulation.pull("i", "1");
    simulation.pass_millis(400);
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.PAUSE.S.C pause_until=2026-11-21T22:26:41Z paused=false",
        "i s.a=1 x1 #1 +5",
    ]);
    // The description contains the end of the last pause.
    let shown = |simulation: &mut Simulation| {
        let info = simulation.call(|consumers, context| consumers.info(id, context).unwrap());
        let until = info.config.unwrap().pause_until;
        (until.map(|until| until.to_string()), info.paused)
    };
    let last = Some("2026-11-21T22:26:41Z".to_owned());
    assert_eq!(shown(&mut simulation), (last.clone(), false));
    simulation.call(|consumers, context| consumers.pause(id, None, context));
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.PAUSE.S.C pause_until=0001-01-01T00:00:00Z paused=false",
    ]);
    assert_eq!(shown(&mut simulation), (None, false));
    let over = simulation.now.unix_nanos;
    simulation.call(|consumers, context| consumers.pause(id, Some(over), context));
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.PAUSE.S.C pause_until=2026-11-21T22:26:41Z paused=false",
    ]);
    assert_eq!(shown(&mut simulation), (last, false));
}

#[test]
fn reset_moves_to_sequence() {
    let mut simulation = Simulation::with(&SIX, "{}");
    let id = simulation.id("C");
    simulation.pull("i", "3");
    simulation.ack(1, "");
    let at = simulation.call(|consumers, context| consumers.reset(id, 0, context));
    assert_eq!(at, Ok(2));
    assert_eq!(simulation.numbers("C"), "0/1 0/1 0 0 0 5");
    let at = simulation.call(|consumers, context| consumers.reset(id, 5, context));
    assert_eq!(
        (at, simulation.numbers("C").as_str()),
        (Ok(5), "0/4 0/4 0 0 0 2")
    );
    let at = simulation.call(|consumers, context| consumers.reset(id, 30, context));
    assert_eq!(
        (at, simulation.numbers("C").as_str()),
        (Ok(30), "0/29 0/29 0 0 0 0")
    );
    let late = simulation.create(
        "L",
        r#"{"deliver_policy":"by_start_sequence","opt_start_seq":4}"#,
    );
    let refused = simulation.call(|consumers, context| consumers.reset(late, 3, context));
    assert_eq!(refused.unwrap_err().err_code, 10204);
}

#[test]
fn update_applies_other_filters() {
    let mut simulation = Simulation::with(&SIX, r#"{"filter_subject":"s.a"}"#);
    let id = simulation.id("C");
    simulation.pull("i", "1");
    let mut config = simulation.consumers.get(id).unwrap().config().clone();
    config.filter_subject = "s.b".into();
    simulation.call(|consumers, context| consumers.update(id, config, context).unwrap());
    assert_eq!(simulation.numbers("C"), "1/1 0/0 1 0 0 3");
    simulation.port.messages.clear();
    simulation.pull("i", "3");
    simulation.expect_messages(&["i s.b=2 x1 #2 +2", "i s.b=4 x1 #3 +1", "i s.b=6 x1 #4 +0"]);
}

#[test]
fn unused_consumer_is_reported() {
    let mut simulation = Simulation::new(Retention::Limits);
    let ephemeral = simulation.create("E", r#"{"durable_name":""}"#);
    simulation.create("C", "{}");
    let short = simulation.create("D", r#"{"inactive_threshold":1000000000}"#);
    simulation.pass_millis(900);
    simulation.pull_from("D", "i", r#"{"expires":3000000000}"#);
    simulation.pass_millis(3900);
    assert_eq!(simulation.unused, []);
    simulation.pass_millis(200);
    assert!(simulation.unused.contains(&ephemeral) && simulation.unused.contains(&short));
    assert!(!simulation.unused.contains(&simulation.id("C")));
}

#[test]
fn idle_consumers_are_not_examined() {
    let mut simulation = Simulation::new(Retention::Limits);
    for n in 0..2000 {
        simulation.create(
            &format!("N{n}"),
            &format!(r#"{{"filter_subject":"other.{n}"}}"#),
        );
        simulation.create(&format!("A{n}"), "{}");
    }
    simulation.create("C", r#"{"filter_subject":"s.>"}"#);
    simulation.pull("i", "9");
    // Consumers of other subjects and idle consumers do no work for this record.
    simulation.consumers.handle_append(1, b"s.a");
    let due = simulation.consumers.next_timeout();
    assert_eq!(due, Some(std::time::Duration::ZERO));
    assert_eq!(simulation.consumers.ready_len(), 1);
}
