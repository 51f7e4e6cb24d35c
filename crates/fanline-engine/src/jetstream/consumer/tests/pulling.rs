//! Tests of pull requests. Expected messages were recorded from nats-server 2.15.2.

use std::time::Duration;

use super::World;

const THREE: [&str; 3] = ["s.a=one", "s.b=two", "s.a=three"];
const SECOND: &str = r#"{"batch":5,"expires":1000000000}"#;

#[test]
fn batches_follow_each_other() {
    let mut world = World::with(&THREE, "{}");
    world.pull("i", "2");
    world.hears(&["i s.a=one x1 #1 +2", "i s.b=two x1 #2 +1"]);
    world.pull("i", "");
    world.hears(&["i s.a=three x1 #3 +0"]);
    assert_eq!(world.numbers("C"), "3/3 0/0 3 0 0 0");
}

#[test]
fn request_waits_until_it_expires() {
    let mut world = World::with(&THREE, "{}");
    world.pull("i", SECOND);
    world.hears(&[
        "i s.a=one x1 #1 +2",
        "i s.b=two x1 #2 +1",
        "i s.a=three x1 #3 +0",
    ]);
    world.pass_millis(500);
    world.append(&["s.c=four"]);
    world.hears(&["i s.c=four x1 #4 +0"]);
    world.pass_millis(499);
    world.hears(&[]);
    world.pass_millis(1);
    world.hears(&["i 408 Request Timeout Pending-Messages=1 Pending-Bytes=0"]);
    world.pull("i", r#"{"expires":-5}"#);
    world.pass_millis(0);
    world.hears(&["i 408 Request Timeout Pending-Messages=0 Pending-Bytes=0"]);
}

#[test]
fn waiting_request_gets_heartbeats() {
    let mut world = World::with(&["s.a=one"], "{}");
    world.pull(
        "i",
        r#"{"batch":2,"expires":1000000000,"idle_heartbeat":400000000}"#,
    );
    world.hears(&["i s.a=one x1 #1 +0"]);
    let beat = "i 100 Idle Heartbeat Last-Consumer=1 Last-Stream=1";
    world.pass_millis(800);
    world.hears(&[beat, beat]);
    world.pass_millis(200);
    world.hears(&["i 408 Request Timeout Pending-Messages=1 Pending-Bytes=0"]);
}

/// Heartbeats contain the last examined sequence, not the last delivered one.
#[test]
fn heartbeat_contains_last_examined_sequence() {
    let mut world = World::with(
        &["s.a=one", "s.b=two", "s.b=three"],
        r#"{"filter_subject":"s.a"}"#,
    );
    world.pull(
        "i",
        r#"{"batch":2,"expires":1000000000,"idle_heartbeat":400000000}"#,
    );
    world.hears(&["i s.a=one x1 #1 +0"]);
    world.pass_millis(400);
    world.hears(&["i 100 Idle Heartbeat Last-Consumer=1 Last-Stream=3"]);
}

#[test]
fn no_wait_request_returns_available_records() {
    let mut world = World::with(&THREE, "{}");
    world.pull("i", r#"{"batch":5,"no_wait":true}"#);
    world.hears(&[
        "i s.a=one x1 #1 +2",
        "i s.b=two x1 #2 +1",
        "i s.a=three x1 #3 +0",
        "i 404 No Messages",
    ]);
    world.pull("i", r#"{"batch":5,"no_wait":true}"#);
    world.hears(&["i 404 No Messages"]);
    // A request with an expiry waits for the first record, but not for more.
    world.pull("i", r#"{"batch":5,"no_wait":true,"expires":1000000000}"#);
    world.pass_millis(500);
    world.hears(&[]);
    world.append(&["s.c=four"]);
    world.hears(&["i s.c=four x1 #4 +0", "i 404 No Messages"]);
    world.pull("i", r#"{"batch":5,"no_wait":true,"expires":1000000000}"#);
    world.pass_millis(1000);
    world.hears(&["i 408 Request Timeout Pending-Messages=5 Pending-Bytes=0"]);
}

/// Story: a Python client's request expired, and the client then published. The record was sent to the
/// expired request, because the request's timer was a millisecond late.
#[test]
fn expired_request_is_not_served_before_its_timer() {
    let mut world = World::with(&[], "{}");
    world.pull("i", SECOND);
    world.now.since_start += Duration::from_secs(1);
    world.append(&["s.a=one"]);
    world.hears(&["i 408 Request Timeout Pending-Messages=5 Pending-Bytes=0"]);
    world.pull("j", "1");
    world.hears(&["j s.a=one x1 #1 +0"]);
}

/// A request that does not wait ends although the consumer waits for acknowledgements.
#[test]
fn no_wait_request_ends_with_its_timer() {
    let mut world = World::with(&THREE, r#"{"max_ack_pending":2}"#);
    world.pull(
        "i",
        r#"{"batch":9,"no_wait":true,"expires":1000000000,"idle_heartbeat":100000000}"#,
    );
    world.hears(&["i s.a=one x1 #1 +2", "i s.b=two x1 #2 +1"]);
    world.pass_millis(100);
    world.hears(&["i 404 No Messages"]);
    world.ack(1, "+ACK");
    world.hears(&[]);
}

#[test]
fn no_wait_request_gets_nothing_while_paused() {
    let mut world = World::with(&THREE, "{}");
    world.port.listening.clear();
    let id = world.id("C");
    let later = world.now.unix_nanos + 3_600_000_000_000;
    world.call(|consumers, context| consumers.pause(id, Some(later), context));
    world.pull("i", r#"{"batch":5,"no_wait":true}"#);
    world.hears(&["i 404 No Messages"]);
    world.pull("i", r#"{"batch":5,"no_wait":true,"expires":1000000000}"#);
    world.hears(&[]);
    world.pass_millis(1000);
    world.hears(&["i 408 Request Timeout Pending-Messages=5 Pending-Bytes=0"]);
    world.pull("i", "2");
    world.call(|consumers, context| consumers.pause(id, None, context));
    world.hears(&["i s.a=one x1 #1 +2", "i s.b=two x1 #2 +1"]);
}

#[test]
fn records_of_earlier_requests_are_not_promised_again() {
    let mut world = World::with(&THREE, r#"{"max_ack_pending":1}"#);
    world.pull("i", SECOND);
    world.hears(&["i s.a=one x1 #1 +2"]);
    world.pull("j", r#"{"no_wait":true}"#);
    world.hears(&["j 408 Requests Pending"]);
}

#[test]
fn max_bytes_limits_request() {
    let mut world = World::with(&THREE, "{}");
    world.pull("i", r#"{"batch":5,"max_bytes":1}"#);
    world.hears(&["i 409 Message Size Exceeds MaxBytes Pending-Messages=5 Pending-Bytes=1"]);
    // A record of 3 + 39 + 3 bytes: subject, acknowledgement subject, and payload.
    world.pull("i", r#"{"batch":5,"max_bytes":47}"#);
    world.hears(&[
        "i s.a=one x1 #1 +2",
        "i 409 Message Size Exceeds MaxBytes Pending-Messages=4 Pending-Bytes=2",
    ]);
    world.pull("i", r#"{"batch":5,"max_bytes":45}"#);
    world.hears(&["i s.b=two x1 #2 +1"]);
    assert!(world.numbers("C").ends_with(" 0 1"));
}

#[test]
fn requests_take_turns() {
    let mut world = World::with(&[], "{}");
    for inbox in ["i", "j", "k"] {
        world.pull(inbox, "2");
    }
    world.append(&["s.a=1", "s.a=2", "s.a=3", "s.a=4", "s.a=5", "s.a=6"]);
    let turns: Vec<String> = world
        .port
        .heard
        .iter()
        .map(|line| line[..1].to_owned())
        .collect();
    assert_eq!(turns, ["i", "j", "k", "i", "j", "k"]);
    assert_eq!(world.numbers("C"), "6/6 0/0 6 0 0 0");
}

#[test]
fn invalid_and_excess_requests_are_refused() {
    let mut world = World::with(&[], r#"{"max_waiting":1,"max_batch":9}"#);
    world.pull("i", "10");
    world.hears(&["i 409 Exceeded MaxRequestBatch of 9"]);
    world.pull("i", r#"{"batch":"#);
    world.hears(&["i 400 Bad Request - unexpected end of JSON input"]);
    world.pull("i", "1");
    world.pull("j", "1");
    world.hears(&["j 409 Exceeded MaxWaiting"]);
    // The first client has disconnected, so there is room for another request.
    world.listen("i", false);
    world.pull("j", "1");
    world.hears(&[]);
    assert_eq!(world.numbers("C"), "0/0 0/0 0 0 1 0");
    let id = world.id("C");
    let headers = b"NATS/1.0\r\nNats-Required-Api-Level: 9\r\n\r\n";
    let request = crate::jetstream::Message {
        reply: b"j",
        headers,
        ..Default::default()
    };
    world.call(|consumers, context| consumers.handle_pull(id, &request, context));
    world.hears(&["j 412 Required Api Level"]);
    world.call(|consumers, context| consumers.delete(id, context).is_some());
    world.hears(&["j 409 Consumer Deleted"]);
}

#[test]
fn disconnected_requester_is_skipped() {
    let mut world = World::with(&[], "{}");
    world.pull("i", "2");
    world.pull("j", "2");
    world.listen("i", false);
    world.append(&["s.a=1", "s.a=2"]);
    world.hears(&["j s.a=1 x1 #1 +0", "j s.a=2 x1 #2 +0"]);
    assert_eq!(world.numbers("C"), "2/2 0/0 2 0 0 0");
}

#[test]
fn headers_only_omits_payload() {
    let mut world = World::with(&["s.a=hello"], r#"{"headers_only":true}"#);
    world.pull("i", "1");
    world.hears(&["i s.a= x1 #1 +0 Msg-Size=5"]);
}

#[test]
fn overflow_request_waits_for_backlog() {
    let config = r#"{"priority_groups":["A"],"priority_policy":"overflow"}"#;
    let mut world = World::with(&THREE, config);
    world.pull("i", r#"{"group":"A","min_pending":4}"#);
    world.hears(&[]);
    world.append(&["s.a=four"]);
    world.hears(&["i s.a=one x1 #1 +3"]);
    world.pull("j", r#"{"group":"A","min_ack_pending":2}"#);
    world.hears(&[]);
    world.pull("i", r#"{"group":"A"}"#);
    world.hears(&["i s.b=two x1 #2 +2", "j s.a=three x1 #3 +1"]);
    world.pull("i", "1");
    world.hears(&["i 400 Bad Request - Priority Group missing"]);
}

#[test]
fn lowest_priority_number_is_served_first() {
    let config = r#"{"priority_groups":["A"],"priority_policy":"prioritized"}"#;
    let mut world = World::with(&[], config);
    for (inbox, priority) in [("five", 5), ("zero", 0), ("nil", 0), ("nine", 9)] {
        world.pull(
            inbox,
            &format!(r#"{{"batch":2,"group":"A","priority":{priority}}}"#),
        );
    }
    for record in 1..=8 {
        world.append(&[&format!("s.a={record}")]);
    }
    let order: Vec<&str> = world
        .port
        .heard
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
    let mut world = World::with(&["s.a=1", "s.a=2", "s.a=3", "s.a=4"], config);
    world.pull("i", r#"{"group":"A"}"#);
    world.hears(&[
        "ADVISORY.CONSUMER.PINNED.S.C group=A",
        "i s.a=1 x1 #1 +3 pinned",
    ]);
    let pin = world.port.pin.clone().unwrap();
    world.pull("j", r#"{"group":"A","id":"other"}"#);
    world.hears(&["j 423 Nats-Pin-Id mismatch"]);
    world.pull("j", r#"{"group":"A"}"#);
    world.hears(&[]);
    world.pull("i", &format!(r#"{{"group":"A","id":"{pin}"}}"#));
    world.hears(&["i s.a=2 x1 #2 +2 pinned"]);
    world.pass_millis(1999);
    world.hears(&[]);
    world.pass_millis(1);
    world.hears(&[
        "ADVISORY.CONSUMER.UNPINNED.S.C group=A reason=timeout",
        "ADVISORY.CONSUMER.PINNED.S.C group=A",
        "j s.a=3 x1 #3 +1 pinned",
    ]);
    world.pull("i", &format!(r#"{{"group":"A","id":"{pin}"}}"#));
    world.hears(&["i 423 Nats-Pin-Id mismatch"]);
    world.pull("i", r#"{"group":"A"}"#);
    let id = world.id("C");
    world.call(|consumers, context| consumers.unpin(id, context));
    world.hears(&[
        "ADVISORY.CONSUMER.UNPINNED.S.C group=A reason=admin",
        "ADVISORY.CONSUMER.PINNED.S.C group=A",
        "i s.a=4 x1 #4 +0 pinned",
    ]);
}
