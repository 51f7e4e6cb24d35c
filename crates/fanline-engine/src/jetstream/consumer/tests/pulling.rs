//! Tests of pull requests. Expected messages were recorded from nats-server 2.15.2.

use std::time::Duration;

use super::Simulation;

const THREE: [&str; 3] = ["s.a=one", "s.b=two", "s.a=three"];
const SECOND: &str = r#"{"batch":5,"expires":1000000000}"#;

#[test]
fn batches_follow_each_other() {
    let mut simulation = Simulation::with(&THREE, "{}");
    simulation.pull("i", "2");
    simulation.expect_messages(&["i s.a=one x1 #1 +2", "i s.b=two x1 #2 +1"]);
    simulation.pull("i", "");
    simulation.expect_messages(&["i s.a=three x1 #3 +0"]);
    assert_eq!(simulation.numbers("C"), "3/3 0/0 3 0 0 0");
}

#[test]
fn request_waits_until_it_expires() {
    let mut simulation = Simulation::with(&THREE, "{}");
    simulation.pull("i", SECOND);
    simulation.expect_messages(&[
        "i s.a=one x1 #1 +2",
        "i s.b=two x1 #2 +1",
        "i s.a=three x1 #3 +0",
    ]);
    simulation.pass_millis(500);
    simulation.append(&["s.c=four"]);
    simulation.expect_messages(&["i s.c=four x1 #4 +0"]);
    simulation.pass_millis(499);
    simulation.expect_messages(&[]);
    simulation.pass_millis(1);
    simulation.expect_messages(&["i 408 Request Timeout Pending-Messages=1 Pending-Bytes=0"]);
    simulation.pull("i", r#"{"expires":-5}"#);
    simulation.pass_millis(0);
    simulation.expect_messages(&["i 408 Request Timeout Pending-Messages=0 Pending-Bytes=0"]);
}

#[test]
fn waiting_request_gets_heartbeats() {
    let mut simulation = Simulation::with(&["s.a=one"], "{}");
    simulation.pull(
        "i",
        r#"{"batch":2,"expires":1000000000,"idle_heartbeat":400000000}"#,
    );
    simulation.expect_messages(&["i s.a=one x1 #1 +0"]);
    let beat = "i 100 Idle Heartbeat Last-Consumer=1 Last-Stream=1";
    simulation.pass_millis(800);
    simulation.expect_messages(&[beat, beat]);
    simulation.pass_millis(200);
    simulation.expect_messages(&["i 408 Request Timeout Pending-Messages=1 Pending-Bytes=0"]);
}

/// Heartbeats contain the last examined sequence, not the last delivered one.
#[test]
fn heartbeat_contains_last_examined_sequence() {
    let mut simulation = Simulation::with(
        &["s.a=one", "s.b=two", "s.b=three"],
        r#"{"filter_subject":"s.a"}"#,
    );
    simulation.pull(
        "i",
        r#"{"batch":2,"expires":1000000000,"idle_heartbeat":400000000}"#,
    );
    simulation.expect_messages(&["i s.a=one x1 #1 +0"]);
    simulation.pass_millis(400);
    simulation.expect_messages(&["i 100 Idle Heartbeat Last-Consumer=1 Last-Stream=3"]);
}

#[test]
fn no_wait_request_returns_available_records() {
    let mut simulation = Simulation::with(&THREE, "{}");
    simulation.pull("i", r#"{"batch":5,"no_wait":true}"#);
    simulation.expect_messages(&[
        "i s.a=one x1 #1 +2",
        "i s.b=two x1 #2 +1",
        "i s.a=three x1 #3 +0",
        "i 404 No Messages",
    ]);
    simulation.pull("i", r#"{"batch":5,"no_wait":true}"#);
    simulation.expect_messages(&["i 404 No Messages"]);
    // A request with an expiry waits for the first record, but not for more.
    simulation.pull("i", r#"{"batch":5,"no_wait":true,"expires":1000000000}"#);
    simulation.pass_millis(500);
    simulation.expect_messages(&[]);
    simulation.append(&["s.c=four"]);
    simulation.expect_messages(&["i s.c=four x1 #4 +0", "i 404 No Messages"]);
    simulation.pull("i", r#"{"batch":5,"no_wait":true,"expires":1000000000}"#);
    simulation.pass_millis(1000);
    simulation.expect_messages(&["i 408 Request Timeout Pending-Messages=5 Pending-Bytes=0"]);
}

/// Regression: a Python client's request expired, and the client then published. The record was sent to the
/// expired request, because the request's timer was a millisecond late.
#[test]
fn expired_request_is_not_served_before_its_timer() {
    let mut simulation = Simulation::with(&[], "{}");
    simulation.pull("i", SECOND);
    simulation.now.since_start += Duration::from_secs(1);
    simulation.append(&["s.a=one"]);
    simulation.expect_messages(&["i 408 Request Timeout Pending-Messages=5 Pending-Bytes=0"]);
    simulation.pull("j", "1");
    simulation.expect_messages(&["j s.a=one x1 #1 +0"]);
}

/// A request that does not wait ends although the consumer waits for acknowledgements.
#[test]
fn no_wait_request_ends_with_its_timer() {
    let mut simulation = Simulation::with(&THREE, r#"{"max_ack_pending":2}"#);
    simulation.pull(
        "i",
        r#"{"batch":9,"no_wait":true,"expires":1000000000,"idle_heartbeat":100000000}"#,
    );
    simulation.expect_messages(&["i s.a=one x1 #1 +2", "i s.b=two x1 #2 +1"]);
    simulation.pass_millis(100);
    simulation.expect_messages(&["i 404 No Messages"]);
    simulation.ack(1, "+ACK");
    simulation.expect_messages(&[]);
}

#[test]
fn no_wait_request_gets_nothing_while_paused() {
    let mut simulation = Simulation::with(&THREE, "{}");
    simulation.port.listening.clear();
    let id = simulation.id("C");
    let later = simulation.now.unix_nanos + 3_600_000_000_000;
    simulation.call(|consumers, context| consumers.pause(id, Some(later), context));
    simulation.pull("i", r#"{"batch":5,"no_wait":true}"#);
    simulation.expect_messages(&["i 404 No Messages"]);
    simulation.pull("i", r#"{"batch":5,"no_wait":true,"expires":1000000000}"#);
    simulation.expect_messages(&[]);
    simulation.pass_millis(1000);
    simulation.expect_messages(&["i 408 Request Timeout Pending-Messages=5 Pending-Bytes=0"]);
    simulation.pull("i", "2");
    simulation.call(|consumers, context| consumers.pause(id, None, context));
    simulation.expect_messages(&["i s.a=one x1 #1 +2", "i s.b=two x1 #2 +1"]);
}

#[test]
fn records_of_earlier_requests_are_not_promised_again() {
    let mut simulation = Simulation::with(&THREE, r#"{"max_ack_pending":1}"#);
    simulation.pull("i", SECOND);
    simulation.expect_messages(&["i s.a=one x1 #1 +2"]);
    simulation.pull("j", r#"{"no_wait":true}"#);
    simulation.expect_messages(&["j 408 Requests Pending"]);
}

#[test]
fn max_bytes_limits_request() {
    let mut simulation = Simulation::with(&THREE, "{}");
    simulation.pull("i", r#"{"batch":5,"max_bytes":1}"#);
    simulation.expect_messages(&[
        "i 409 Message Size Exceeds MaxBytes Pending-Messages=5 Pending-Bytes=1",
    ]);
    // A record of 3 + 39 + 3 bytes: subject, acknowledgement subject, and payload.
    simulation.pull("i", r#"{"batch":5,"max_bytes":47}"#);
    simulation.expect_messages(&[
        "i s.a=one x1 #1 +2",
        "i 409 Message Size Exceeds MaxBytes Pending-Messages=4 Pending-Bytes=2",
    ]);
    simulation.pull("i", r#"{"batch":5,"max_bytes":45}"#);
    simulation.expect_messages(&["i s.b=two x1 #2 +1"]);
    assert!(simulation.numbers("C").ends_with(" 0 1"));
}

#[test]
fn requests_take_turns() {
    let mut simulation = Simulation::with(&[], "{}");
    for inbox in ["i", "j", "k"] {
        simulation.pull(inbox, "2");
    }
    simulation.append(&["s.a=1", "s.a=2", "s.a=3", "s.a=4", "s.a=5", "s.a=6"]);
    let turns: Vec<String> = simulation
        .port
        .messages
        .iter()
        .map(|line| line[..1].to_owned())
        .collect();
    assert_eq!(turns, ["i", "j", "k", "i", "j", "k"]);
    assert_eq!(simulation.numbers("C"), "6/6 0/0 6 0 0 0");
}

#[test]
fn invalid_and_excess_requests_are_refused() {
    let mut simulation = Simulation::with(&[], r#"{"max_waiting":1,"max_batch":9}"#);
    simulation.pull("i", "10");
    simulation.expect_messages(&["i 409 Exceeded MaxRequestBatch of 9"]);
    simulation.pull("i", r#"{"batch":"#);
    simulation.expect_messages(&["i 400 Bad Request - unexpected end of JSON input"]);
    simulation.pull("i", "1");
    simulation.pull("j", "1");
    simulation.expect_messages(&["j 409 Exceeded MaxWaiting"]);
    // The first client has disconnected, so there is room for another request.
    simulation.listen("i", false);
    simulation.pull("j", "1");
    simulation.expect_messages(&[]);
    assert_eq!(simulation.numbers("C"), "0/0 0/0 0 0 1 0");
    let id = simulation.id("C");
    let headers = b"NATS/1.0\r\nNats-Required-Api-Level: 9\r\n\r\n";
    let request = crate::jetstream::Message {
        reply: b"j",
        headers,
        ..Default::default()
    };
    simulation.call(|consumers, context| consumers.handle_pull(id, &request, context));
    simulation.expect_messages(&["j 412 Required Api Level"]);
    simulation.call(|consumers, context| consumers.delete(id, context).is_some());
    simulation.expect_messages(&["j 409 Consumer Deleted"]);
}

#[test]
fn disconnected_requester_is_skipped() {
    let mut simulation = Simulation::with(&[], "{}");
    simulation.pull("i", "2");
    simulation.pull("j", "2");
    simulation.listen("i", false);
    simulation.append(&["s.a=1", "s.a=2"]);
    simulation.expect_messages(&["j s.a=1 x1 #1 +0", "j s.a=2 x1 #2 +0"]);
    assert_eq!(simulation.numbers("C"), "2/2 0/0 2 0 0 0");
}

#[test]
fn headers_only_omits_payload() {
    let mut simulation = Simulation::with(&["s.a=hello"], r#"{"headers_only":true}"#);
    simulation.pull("i", "1");
    simulation.expect_messages(&["i s.a= x1 #1 +0 Msg-Size=5"]);
}

#[test]
fn overflow_request_waits_for_backlog() {
    let config = r#"{"priority_groups":["A"],"priority_policy":"overflow"}"#;
    let mut simulation = Simulation::with(&THREE, config);
    simulation.pull("i", r#"{"group":"A","min_pending":4}"#);
    simulation.expect_messages(&[]);
    simulation.append(&["s.a=four"]);
    simulation.expect_messages(&["i s.a=one x1 #1 +3"]);
    simulation.pull("j", r#"{"group":"A","min_ack_pending":2}"#);
    simulation.expect_messages(&[]);
    simulation.pull("i", r#"{"group":"A"}"#);
    simulation.expect_messages(&["i s.b=two x1 #2 +2", "j s.a=three x1 #3 +1"]);
    simulation.pull("i", "1");
    simulation.expect_messages(&["i 400 Bad Request - Priority Group missing"]);
}

#[test]
fn lowest_priority_number_is_served_first() {
    let config = r#"{"priority_groups":["A"],"priority_policy":"prioritized"}"#;
    let mut simulation = Simulation::with(&[], config);
    for (inbox, priority) in [("five", 5), ("zero", 0), ("nil", 0), ("nine", 9)] {
        simulation.pull(
            inbox,
            &format!(r#"{{"batch":2,"group":"A","priority":{priority}}}"#),
        );
    }
    for record in 1..=8 {
        simulation.append(&[&format!("s.a={record}")]);
    }
    let order: Vec<&str> = simulation
        .port
        .messages
        .iter()
        .map(|l| l.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        order,
        ["zero", "nil", "zero", "nil", "five", "five", "nine", "nine"]
    );
}

#[test]
fn pinned_client_is_served_until_it_times_out() {
    let config = r#"{"priority_groups":["A"],"priority_policy":"pinned_client","priority_timeout":2000000000}"#;
    let mut simulation = Simulation::with(&["s.a=1", "s.a=2", "s.a=3", "s.a=4"], config);
    simulation.pull("i", r#"{"group":"A"}"#);
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.PINNED.S.C group=A",
        "i s.a=1 x1 #1 +3 pinned",
    ]);
    let pin = simulation.port.pin.clone().unwrap();
    simulation.pull("j", r#"{"group":"A","id":"other"}"#);
    simulation.expect_messages(&["j 423 Nats-Pin-Id mismatch"]);
    simulation.pull("j", r#"{"group":"A"}"#);
    simulation.expect_messages(&[]);
    simulation.pull("i", &format!(r#"{{"group":"A","id":"{pin}"}}"#));
    simulation.expect_messages(&["i s.a=2 x1 #2 +2 pinned"]);
    simulation.pass_millis(1999);
    simulation.expect_messages(&[]);
    simulation.pass_millis(1);
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.UNPINNED.S.C group=A reason=timeout",
        "ADVISORY.CONSUMER.PINNED.S.C group=A",
        "j s.a=3 x1 #3 +1 pinned",
    ]);
    simulation.pull("i", &format!(r#"{{"group":"A","id":"{pin}"}}"#));
    simulation.expect_messages(&["i 423 Nats-Pin-Id mismatch"]);
    simulation.pull("i", r#"{"group":"A"}"#);
    let id = simulation.id("C");
    simulation.call(|consumers, context| consumers.unpin(id, context));
    simulation.expect_messages(&[
        "ADVISORY.CONSUMER.UNPINNED.S.C group=A reason=admin",
        "ADVISORY.CONSUMER.PINNED.S.C group=A",
        "i s.a=4 x1 #4 +0 pinned",
    ]);
}
