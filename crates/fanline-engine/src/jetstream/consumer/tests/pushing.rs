//! Tests of push consumers.

use super::Simulation;

const THREE: [&str; 3] = ["s.a=one", "s.b=two", "s.a=three"];

#[test]
fn push_needs_a_subscriber_of_its_subject() {
    let mut simulation = Simulation::with(&THREE, r#"{"deliver_subject":"d","ack_policy":"none"}"#);
    simulation.expect_messages(&[]);
    simulation.listen("d", true);
    simulation.expect_messages(&[
        "d s.a=one x1 #1 +2",
        "d s.b=two x1 #2 +1",
        "d s.a=three x1 #3 +0",
    ]);
    simulation.listen("d", false);
    simulation.append(&["s.a=four"]);
    simulation.expect_messages(&[]);
    // A wildcard subscription does not receive records: it usually serves monitoring.
    simulation.listen("*", true);
    simulation.expect_messages(&[]);
    simulation.listen("d", true);
    simulation.expect_messages(&["d s.a=four x1 #4 +0"]);
    simulation.append(&["s.a=five"]);
    simulation.expect_messages(&["d s.a=five x1 #5 +0"]);
    let id = simulation.id("C");
    assert!(
        simulation
            .call(|consumers, context| consumers.info(id, context))
            .unwrap()
            .push_bound
    );
    let request = crate::jetstream::Message {
        reply: b"i",
        ..Default::default()
    };
    simulation.call(|consumers, context| consumers.handle_pull(id, &request, context));
    simulation.expect_messages(&["i 409 Consumer is push based"]);
}

#[test]
fn push_needs_a_member_of_its_queue_group() {
    let config = r#"{"deliver_subject":"d","deliver_group":"g","ack_policy":"none"}"#;
    let mut simulation = Simulation::with(&["s.a=one"], config);
    for stranger in ["d", "d h", "*"] {
        simulation.listen(stranger, true);
        simulation.expect_messages(&[]);
    }
    simulation.listen("d g", true);
    simulation.expect_messages(&["d s.a=one x1 #1 +0"]);
    simulation.listen("d g", false);
    simulation.append(&["s.a=two"]);
    simulation.expect_messages(&[]);
}

/// If many subscribers receive large records, a call of `settle` delivers a bounded number of bytes. The next
/// call begins with subscribers that have received nothing.
#[test]
fn round_delivers_bounded_bytes() {
    let mut simulation = Simulation::with(&[], "{}");
    let large = format!("s.a={}", "x".repeat(1 << 20));
    simulation.append(&[&large, &large, &large]);
    for name in ["P", "Q", "R"] {
        let config = format!(r#"{{"deliver_subject":"d.{name}","ack_policy":"none"}}"#);
        simulation.create(name, &config);
    }
    let delivered = |name: &str| (1..=3).map(|n| (name.to_owned(), n)).collect::<Vec<_>>();
    let first = simulation.listen_for_one_round(&["d.P", "d.Q", "d.R"]);
    assert_eq!(
        first,
        [delivered("P"), delivered("Q")[..1].to_vec()].concat()
    );
    simulation.settle();
    let rest = std::mem::take(&mut simulation.port.deliveries);
    assert_eq!(
        rest,
        [delivered("R"), delivered("Q")[1..].to_vec()].concat()
    );
}

#[test]
fn idle_push_consumer_sends_heartbeats() {
    let config = r#"{"deliver_subject":"d","ack_policy":"none","idle_heartbeat":1000000000}"#;
    let mut simulation = Simulation::with(&["s.a=one"], config);
    simulation.pass_millis(3000);
    simulation.expect_messages(&[]);
    simulation.listen("d", true);
    simulation.expect_messages(&["d s.a=one x1 #1 +0"]);
    simulation.pass_millis(500);
    simulation.append(&["s.a=two"]);
    simulation.expect_messages(&["d s.a=two x1 #2 +0"]);
    simulation.pass_millis(2000);
    let beat = "d 100 Idle Heartbeat Last-Consumer=2 Last-Stream=2";
    simulation.expect_messages(&[beat, beat]);
}

#[test]
fn flow_control_stalls_until_answered() {
    let config = r#"{"deliver_subject":"d","ack_policy":"none","idle_heartbeat":1000000000,"flow_control":true}"#;
    let mut simulation = Simulation::with(&[], config);
    let big = format!("s.big={}", "x".repeat(100_000));
    for _ in 0..60 {
        simulation.append(&[&big]);
    }
    simulation.listen("d", true);
    // As in nats-server, a flow control request follows the eleventh record, and delivery stops after the
    // twenty-first.
    assert_eq!(simulation.port.messages[11], "d 100 FlowControl Request");
    assert_eq!(simulation.port.messages.len(), 22);
    simulation.port.messages.clear();
    simulation.pass_millis(1000);
    simulation.expect_messages(&["d 100 Idle Heartbeat Last-Consumer=21 Last-Stream=21 stalled"]);
    let flow = simulation.port.flow.take().unwrap();
    for (subject, is_known) in [
        ("$JS.FC.S.C.other", true),
        ("$JS.FC.S.C", false),
        ("$JS.FC.S.C.a.b", false),
        ("$JS.FC.S.D.other", false),
    ] {
        let taken = simulation
            .call(|consumers, context| consumers.handle_flow_control(subject.as_bytes(), context));
        assert_eq!(taken, is_known, "{subject}");
    }
    simulation.expect_messages(&[]);
    simulation.call(|consumers, context| consumers.handle_flow_control(flow.as_bytes(), context));
    // The maximum of unconfirmed bytes has doubled.
    assert_eq!(simulation.port.messages[11], "d 100 FlowControl Request");
    let delivered = simulation.port.deliveries.len();
    assert_eq!(delivered, 53);
}

#[test]
fn flow_control_answers_acknowledge() {
    let config = r#"{"deliver_subject":"d","ack_policy":"flow_control","idle_heartbeat":1000000000,
        "flow_control":true,"max_ack_pending":100}"#;
    let mut simulation = Simulation::with(&THREE, config);
    simulation.listen("d", true);
    assert_eq!(simulation.numbers("C"), "3/3 0/0 3 0 0 0");
    assert!(!simulation.takes_ack(3, "+ACK"));
    assert_eq!(simulation.numbers("C"), "3/3 0/0 3 0 0 0");
    simulation.pass_millis(1000);
    let flow = simulation.port.flow.take().unwrap();
    simulation.append(&["s.a=four"]);
    simulation.call(|consumers, context| consumers.handle_flow_control(flow.as_bytes(), context));
    assert_eq!(simulation.numbers("C"), "4/4 3/3 1 0 0 0");
    // A new subscriber receives the unacknowledged records.
    simulation.listen("d", false);
    simulation.port.messages.clear();
    simulation.listen("d", true);
    simulation.expect_messages(&["d s.a=four x2 #5 +0"]);
}

#[test]
fn rate_limit_delays_deliveries() {
    // A record has 45 bytes: subject, acknowledgement subject, and payload. The rate limit thus allows one
    // every 360 ms.
    let config = r#"{"deliver_subject":"d","ack_policy":"none","rate_limit_bps":1000}"#;
    let mut simulation = Simulation::with(&["s.a=one", "s.b=two"], config);
    simulation.listen("d", true);
    simulation.expect_messages(&["d s.a=one x1 #1 +1"]);
    simulation.pass_millis(300);
    simulation.expect_messages(&[]);
    simulation.pass_millis(100);
    simulation.expect_messages(&["d s.b=two x1 #2 +0"]);
}

#[test]
fn original_replay_preserves_intervals() {
    let config = r#"{"deliver_subject":"d","ack_policy":"none","replay_policy":"original"}"#;
    let mut simulation = Simulation::with(&THREE, config);
    simulation.listen("d", true);
    simulation.expect_messages(&["d s.a=one x1 #1 +2"]);
    simulation.pass_millis(999);
    simulation.expect_messages(&[]);
    simulation.pass_millis(1001);
    simulation.expect_messages(&["d s.b=two x1 #2 +1", "d s.a=three x1 #3 +0"]);
    // When all stored records are delivered, new ones are delivered at once.
    simulation.append(&["s.a=four", "s.a=five"]);
    simulation.expect_messages(&["d s.a=four x1 #4 +0", "d s.a=five x1 #5 +0"]);
}

#[test]
fn ordered_consumer_is_unused_without_subscriber() {
    let config = r#"{"durable_name":"","deliver_subject":"d","ack_policy":"none","flow_control":true,
        "idle_heartbeat":5000000000,"mem_storage":true,"deliver_policy":"by_start_sequence","opt_start_seq":2}"#;
    let mut simulation = Simulation::with(&THREE, config);
    simulation.listen("d", true);
    simulation.expect_messages(&["d s.b=two x1 #1 +1", "d s.a=three x1 #2 +0"]);
    simulation.pass_millis(20_000);
    assert_eq!(simulation.unused, []);
    simulation.listen("d", false);
    simulation.pass_millis(4999);
    assert_eq!(simulation.unused, []);
    simulation.pass_millis(1);
    assert_eq!(simulation.unused, [simulation.id("C")]);
}
