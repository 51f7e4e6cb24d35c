//! Tests of start positions, counts, and administration of consumers.

use super::World;
use crate::jetstream::Retention;

const SIX: [&str; 6] = ["s.a=1", "s.b=2", "s.a=3", "s.b=4", "s.a=5", "s.b=6"];

/// Checks the numbers of a new consumer, and its deliveries.
#[track_caller]
fn check(config: &str, numbers: &str, expected: &[u64]) {
    let mut world = World::with(&SIX, config);
    assert_eq!(world.numbers("C"), numbers, "{config}");
    world.pull("i", "99");
    let found: Vec<u64> = world
        .port
        .deliveries
        .iter()
        .map(|(_, sequence)| *sequence)
        .collect();
    assert_eq!(found, expected, "{config}");
    assert!(world.numbers("C").ends_with(" 0"), "{config}");
    world.append(&["s.a=7", "s.c=8"]);
    let wants_c = !config.contains("filter");
    assert!(
        world
            .port
            .deliveries
            .iter()
            .any(|(_, sequence)| *sequence == 7),
        "{config}"
    );
    assert_eq!(
        world.port.deliveries.iter().any(|(_, s)| *s == 8),
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
    let mut world = World::with(&SIX, each);
    assert_eq!(world.numbers("C"), "0/4 0/4 0 0 0 2");
    world.append(&["s.a=7"]);
    world.pull("i", "99");
    world.hears(&["i s.a=5 x1 #1 +2", "i s.b=6 x1 #2 +1", "i s.a=7 x1 #3 +0"]);
    let filters = r#"{"filter_subjects":["s.a","x.>"]}"#;
    check(filters, "0/0 0/0 0 0 0 3", &[1, 3, 5]);
}

#[test]
fn future_start_sequence_waits() {
    let mut world = World::with(
        &SIX,
        r#"{"deliver_policy":"by_start_sequence","opt_start_seq":8}"#,
    );
    assert_eq!(world.numbers("C"), "0/7 0/7 0 0 0 0");
    world.pull("i", "9");
    world.append(&["s.a=7", "s.a=8"]);
    world.hears(&["i s.a=8 x1 #1 +0"]);
}

#[test]
fn removed_records_are_not_counted() {
    let mut world = World::with(&SIX, r#"{"filter_subject":"s.a"}"#);
    world.remove(3);
    world.remove(4);
    assert_eq!(world.numbers("C"), "0/0 0/0 0 0 0 2");
    world.pull("i", "1");
    assert_eq!(world.numbers("C"), "1/1 0/0 1 0 0 1");
    // The first record was delivered, but after its removal it is not redelivered.
    world.remove(1);
    assert_eq!(world.numbers("C"), "1/1 1/1 0 0 0 1");
    // Removes more records than a group stores, so that the consumer must recount.
    for _ in 0..50 {
        world.append(&["s.a=x"]);
    }
    for sequence in 10..=50 {
        world.remove(sequence);
    }
    assert_eq!(world.numbers("C"), "1/1 1/1 0 0 0 10");
}

#[test]
fn purge_drops_pending_and_backlog() {
    let mut world = World::with(&SIX, "{}");
    world.pull("i", "2");
    world.store.purge(b"", None, 0).unwrap();
    world.call(|consumers, context| consumers.handle_purged(context).unwrap());
    assert_eq!(world.numbers("C"), "2/6 2/6 0 0 0 0");
    world.append(&["s.a=7"]);
    world.port.heard.clear();
    world.pull("i", "1");
    world.hears(&["i s.a=7 x1 #3 +0"]);
}

#[test]
fn paused_consumer_resumes_at_its_time() {
    let mut world = World::with(&SIX, "{}");
    let id = world.id("C");
    let until = world.now.unix_nanos + 1_000_000_000;
    world.call(|consumers, context| consumers.pause(id, Some(until), context));
    world.hears(&["ADVISORY.CONSUMER.PAUSE.S.C pause_until=2026-11-21T22:26:41Z paused=true"]);
    world.pull("i", r#"{"expires":600000000,"idle_heartbeat":300000000}"#);
    world.pass_millis(600);
    world.hears(&[
        "i 100 Idle Heartbeat Last-Consumer=0 Last-Stream=0",
        "i 408 Request Timeout Pending-Messages=0 Pending-Bytes=0",
    ]);
    world.pull("i", "1");
    world.pass_millis(400);
    world.hears(&[
        "ADVISORY.CONSUMER.PAUSE.S.C pause_until=2026-11-21T22:26:41Z paused=false",
        "i s.a=1 x1 #1 +5",
    ]);
    // The description contains the end of the last pause.
    let shown = |world: &mut World| {
        let info = world.call(|consumers, context| consumers.info(id, context).unwrap());
        let until = info.config.unwrap().pause_until;
        (until.map(|until| until.to_string()), info.paused)
    };
    let last = Some("2026-11-21T22:26:41Z".to_owned());
    assert_eq!(shown(&mut world), (last.clone(), false));
    world.call(|consumers, context| consumers.pause(id, None, context));
    world.hears(&["ADVISORY.CONSUMER.PAUSE.S.C pause_until=0001-01-01T00:00:00Z paused=false"]);
    assert_eq!(shown(&mut world), (None, false));
    let over = world.now.unix_nanos;
    world.call(|consumers, context| consumers.pause(id, Some(over), context));
    world.hears(&["ADVISORY.CONSUMER.PAUSE.S.C pause_until=2026-11-21T22:26:41Z paused=false"]);
    assert_eq!(shown(&mut world), (last, false));
}

#[test]
fn reset_moves_to_sequence() {
    let mut world = World::with(&SIX, "{}");
    let id = world.id("C");
    world.pull("i", "3");
    world.ack(1, "");
    let at = world.call(|consumers, context| consumers.reset(id, 0, context));
    assert_eq!(at, Ok(2));
    assert_eq!(world.numbers("C"), "0/1 0/1 0 0 0 5");
    let at = world.call(|consumers, context| consumers.reset(id, 5, context));
    assert_eq!(
        (at, world.numbers("C").as_str()),
        (Ok(5), "0/4 0/4 0 0 0 2")
    );
    let at = world.call(|consumers, context| consumers.reset(id, 30, context));
    assert_eq!(
        (at, world.numbers("C").as_str()),
        (Ok(30), "0/29 0/29 0 0 0 0")
    );
    let late = world.create(
        "L",
        r#"{"deliver_policy":"by_start_sequence","opt_start_seq":4}"#,
    );
    let refused = world.call(|consumers, context| consumers.reset(late, 3, context));
    assert_eq!(refused.unwrap_err().err_code, 10204);
}

#[test]
fn update_applies_other_filters() {
    let mut world = World::with(&SIX, r#"{"filter_subject":"s.a"}"#);
    let id = world.id("C");
    world.pull("i", "1");
    let mut config = world.consumers.get(id).unwrap().config().clone();
    config.filter_subject = "s.b".into();
    world.call(|consumers, context| consumers.update(id, config, context).unwrap());
    assert_eq!(world.numbers("C"), "1/1 0/0 1 0 0 3");
    world.port.heard.clear();
    world.pull("i", "3");
    world.hears(&["i s.b=2 x1 #2 +2", "i s.b=4 x1 #3 +1", "i s.b=6 x1 #4 +0"]);
}

#[test]
fn unused_consumer_is_reported() {
    let mut world = World::new(Retention::Limits);
    let ephemeral = world.create("E", r#"{"durable_name":""}"#);
    world.create("C", "{}");
    let short = world.create("D", r#"{"inactive_threshold":1000000000}"#);
    world.pass_millis(900);
    world.pull_from("D", "i", r#"{"expires":3000000000}"#);
    world.pass_millis(3900);
    assert_eq!(world.unused, []);
    world.pass_millis(200);
    assert!(world.unused.contains(&ephemeral) && world.unused.contains(&short));
    assert!(!world.unused.contains(&world.id("C")));
}

#[test]
fn idle_consumers_are_not_examined() {
    let mut world = World::new(Retention::Limits);
    for n in 0..2000 {
        world.create(
            &format!("N{n}"),
            &format!(r#"{{"filter_subject":"other.{n}"}}"#),
        );
        world.create(&format!("A{n}"), "{}");
    }
    world.create("C", r#"{"filter_subject":"s.>"}"#);
    world.pull("i", "9");
    // Consumers of other subjects and idle consumers do no work for this record.
    world.consumers.handle_append(1, b"s.a");
    let due = world.consumers.next_timeout();
    assert_eq!(due, Some(std::time::Duration::ZERO));
    assert_eq!(world.consumers.ready_len(), 1);
}
