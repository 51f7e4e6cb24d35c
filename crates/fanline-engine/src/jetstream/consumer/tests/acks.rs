//! Tests of acknowledgements, and of their absence.

use super::Simulation;
use crate::jetstream::Retention;

const FOUR: [&str; 4] = ["s.a=1", "s.a=2", "s.a=3", "s.a=4"];
const ALL: &str = r#"{"batch":9,"no_wait":true}"#;

fn delivered(records: &[&str], config: &str) -> Simulation {
    let mut simulation = Simulation::with(records, config);
    simulation.pull("i", ALL);
    simulation.port.messages.clear();
    simulation
}

#[test]
fn explicit_acknowledgements_raise_the_floor_in_order() {
    let mut simulation = delivered(&FOUR, "{}");
    for (sequence, payload, numbers) in [
        (2, "+ACK", "4/4 0/0 3 0 0 0"),
        (1, "", "4/4 2/2 2 0 0 0"),
        (1, "+OK", "4/4 2/2 2 0 0 0"),
        (4, "+OK", "4/4 2/2 1 0 0 0"),
        (3, "what?", "4/4 2/2 1 0 0 0"),
        (3, "+ACK", "4/4 4/4 0 0 0 0"),
    ] {
        simulation.ack(sequence, payload);
        assert_eq!(simulation.numbers("C"), numbers, "{sequence} {payload}");
    }
    simulation.ack_to("C", 3, "+ACK", "reply");
    simulation.expect_messages(&["reply"]);
}

#[test]
fn ack_policy_all_acknowledges_earlier_records() {
    let mut simulation = delivered(&FOUR, r#"{"ack_policy":"all"}"#);
    simulation.ack(3, "+ACK");
    assert_eq!(simulation.numbers("C"), "4/4 3/3 1 0 0 0");
    simulation.ack(1, "+ACK");
    assert_eq!(simulation.numbers("C"), "4/4 3/3 1 0 0 0");
    simulation.ack(4, "+TERM");
    assert_eq!(simulation.numbers("C"), "4/4 4/4 0 0 0 0");
}

#[test]
fn ack_policy_none_acknowledges_on_delivery() {
    let mut simulation = delivered(&FOUR, r#"{"ack_policy":"none"}"#);
    assert_eq!(simulation.numbers("C"), "4/4 4/4 0 0 0 0");
    for payload in ["+ACK", "-NAK", "+NXT", ""] {
        assert!(!simulation.takes_ack(2, payload), "{payload}");
    }
    simulation.expect_messages(&[]);
    assert_eq!(simulation.numbers("C"), "4/4 4/4 0 0 0 0");
}

#[test]
fn naks_redeliver_in_order_and_after_delay() {
    let mut simulation = delivered(&FOUR, "{}");
    simulation.append(&["s.a=5"]);
    simulation.ack(3, "-NAK");
    simulation.ack(1, "-NAK");
    simulation.ack(2, r#"-NAK {"delay":1000000000}"#);
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.MSG_NAKED.S.C consumer_seq=3 deliveries=1 stream_seq=3",
        "ADVISORY.CONSUMER.MSG_NAKED.S.C consumer_seq=1 deliveries=1 stream_seq=1",
        "ADVISORY.CONSUMER.MSG_NAKED.S.C consumer_seq=2 deliveries=1 stream_seq=2",
    ]);
    simulation.pull("i", "9");
    simulation.expect_messages(&["i s.a=3 x2 #5 +1", "i s.a=1 x2 #6 +1", "i s.a=5 x1 #7 +0"]);
    assert_eq!(simulation.numbers("C"), "7/5 0/0 5 2 1 0");
    simulation.pass_millis(1000);
    simulation.expect_messages(&["i s.a=2 x2 #8 +0"]);
}

#[test]
fn ack_wait_redelivers_up_to_max_deliver() {
    let mut simulation = delivered(&FOUR, r#"{"ack_wait":1000000000,"max_deliver":2}"#);
    simulation.pull("i", "9");
    simulation.pass_millis(500);
    simulation.ack(2, "+WPI");
    simulation.ack(3, "+ACK");
    simulation.pass_millis(500);
    simulation.expect_messages(&["i s.a=1 x2 #5 +0", "i s.a=4 x2 #6 +0"]);
    simulation.pass_millis(500);
    simulation.expect_messages(&["i s.a=2 x2 #7 +0"]);
    simulation.pass_millis(500);
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.MAX_DELIVERIES.S.C deliveries=2 stream_seq=1",
        "ADVISORY.CONSUMER.MAX_DELIVERIES.S.C deliveries=2 stream_seq=4",
    ]);
    simulation.ack(2, "-NAK");
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.MSG_NAKED.S.C consumer_seq=7 deliveries=2 stream_seq=2",
        "ADVISORY.CONSUMER.MAX_DELIVERIES.S.C deliveries=2 stream_seq=2",
    ]);
    assert_eq!(simulation.numbers("C"), "7/4 7/4 0 0 1 0");
}

#[test]
fn redelivery_follows_backoff() {
    let mut simulation = delivered(&["s.a=1"], r#"{"backoff":[100000000,300000000]}"#);
    simulation.pull("i", "9");
    for millis in [100, 300, 300] {
        simulation.pass_millis(millis - 1);
        simulation.expect_messages(&[]);
        simulation.pass_millis(1);
        assert_eq!(simulation.port.messages.len(), 1, "{millis}");
        simulation.port.messages.clear();
    }
}

#[test]
fn terminated_record_is_not_redelivered() {
    let mut simulation = delivered(&FOUR, "{}");
    simulation.ack(1, "+TERM bad stuff");
    simulation.ack(2, "+TERM");
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.MSG_TERMINATED.S.C consumer_seq=1 deliveries=1 reason=bad stuff stream_seq=1",
        "ADVISORY.CONSUMER.MSG_TERMINATED.S.C consumer_seq=2 deliveries=1 stream_seq=2",
    ]);
    assert_eq!(simulation.numbers("C"), "4/4 2/2 2 0 0 0");
}

#[test]
fn next_ack_pulls_more_records() {
    let mut simulation = Simulation::with(&FOUR, "{}");
    simulation.pull("i", "1");
    simulation.port.listening.insert("n".into());
    simulation.ack_to("C", 1, "+NXT", "n");
    simulation.ack_to("C", 2, r#"+NXT {"batch":5,"no_wait":true}"#, "n");
    simulation.expect_messages(&[
        "i s.a=1 x1 #1 +3",
        "n s.a=2 x1 #2 +2",
        "n s.a=3 x1 #3 +1",
        "n s.a=4 x1 #4 +0",
        "n 404 No Messages",
    ]);
}

#[test]
fn max_ack_pending_limits_records_in_flight() {
    let mut simulation = Simulation::with(&FOUR, r#"{"max_ack_pending":2}"#);
    simulation.pull("i", "9");
    simulation.expect_messages(&["i s.a=1 x1 #1 +3", "i s.a=2 x1 #2 +2"]);
    simulation.append(&["s.a=5"]);
    simulation.ack(2, "-NAK");
    simulation
        .port
        .messages
        .retain(|line| !line.starts_with("ADVISORY"));
    simulation.expect_messages(&["i s.a=2 x2 #3 +3"]);
    simulation.ack(1, "");
    simulation.expect_messages(&["i s.a=3 x1 #4 +2"]);
}

#[test]
fn sample_freq_publishes_ack_metrics() {
    let mut simulation = delivered(&FOUR, r#"{"sample_freq":"50%"}"#);
    simulation.pass_millis(7);
    for sequence in 1..=4 {
        simulation.ack(sequence, "");
    }
    simulation.expect_messages(&[
        "METRIC.CONSUMER.ACK.S.C ack_time=7000000 consumer_seq=2 deliveries=1 stream_seq=2",
        "METRIC.CONSUMER.ACK.S.C ack_time=7000000 consumer_seq=4 deliveries=1 stream_seq=4",
    ]);
}

#[test]
fn pending_limit_per_subject_orders_each_subject() {
    let records = ["s.a=1", "s.a=2", "s.b=3", "s.a=4", "s.b=5"];
    let mut simulation = Simulation::with(&records, r#"{"max_ack_pending_per_subject":1}"#);
    simulation.pull("i", "9");
    simulation.expect_messages(&["i s.a=1 x1 #1 +4", "i s.b=3 x1 #2 +3"]);
    assert_eq!(simulation.numbers("C"), "2/3 0/0 2 0 1 3");
    simulation.ack(3, "");
    simulation.expect_messages(&["i s.b=5 x1 #3 +2"]);
    simulation.append(&["s.c=6"]);
    simulation.expect_messages(&["i s.c=6 x1 #4 +2"]);
    simulation.ack(1, "");
    simulation.expect_messages(&["i s.a=2 x1 #5 +1"]);
    simulation.ack(6, "");
    simulation.ack(5, "");
    // One record of the subject is delivered and another waits in its lane. The floor must stay below the
    // waiting one.
    assert_eq!(simulation.numbers("C"), "5/6 4/1 1 0 1 1");
    simulation.ack(2, "");
    simulation.expect_messages(&["i s.a=4 x1 #6 +0"]);
    simulation.ack(4, "");
    assert_eq!(simulation.numbers("C"), "6/6 6/6 0 0 1 0");
}

#[test]
fn labels_set_fanline_options() {
    let config = r#"{"metadata":{"fanline.max_ack_pending_per_subject":"1","fanline.fair_subjects":"true"}}"#;
    let mut simulation = Simulation::with(&["s.a=1", "s.a=2", "s.b=3"], config);
    simulation.pull("i", "9");
    simulation.expect_messages(&["i s.a=1 x1 #1 +2", "i s.b=3 x1 #2 +1"]);
}

#[test]
fn fair_subjects_take_turns() {
    let records = ["s.a=1", "s.a=2", "s.a=3", "s.b=4", "s.c=5"];
    let mut simulation = Simulation::with(&records, r#"{"fair_subjects":true}"#);
    simulation.pull("i", "9");
    let order: Vec<u64> = simulation
        .port
        .deliveries
        .iter()
        .map(|(_, sequence)| *sequence)
        .collect();
    assert_eq!(order, [1, 4, 5, 2, 3]);
}

#[test]
fn work_queue_removes_acknowledged_records() {
    let mut simulation = Simulation::new(Retention::WorkQueue);
    simulation.append(&FOUR);
    simulation.create("C", r#"{"max_deliver":1,"ack_wait":1000000000}"#);
    simulation.pull("i", "3");
    simulation.ack(1, "");
    simulation.ack(2, "+TERM");
    assert_eq!(simulation.store.messages(), 2);
    simulation.pass_millis(1000);
    // The consumer no longer redelivers the record, but it is still in the stream and can be acknowledged.
    assert_eq!(simulation.store.messages(), 2);
    simulation.ack(3, "");
    assert_eq!(simulation.store.messages(), 1);
}

#[test]
fn interest_stream_removes_record_once_all_have_acknowledged() {
    let mut simulation = Simulation::new(Retention::Interest);
    simulation.create("A", r#"{"filter_subject":"s.a"}"#);
    simulation.create("B", r#"{"ack_policy":"none"}"#);
    simulation.append(&["s.a=1", "s.b=2"]);
    assert!(simulation.consumers.wants_subject(b"x"));
    simulation.pull_from("B", "b", "2");
    // Only consumer B has a filter that matches the second record.
    assert_eq!(simulation.store.messages(), 1);
    simulation.pull_from("A", "a", "1");
    simulation.ack_to("A", 1, "", "");
    assert_eq!(simulation.store.messages(), 0);
}
