//! Tests of saving and restoring state.

use super::Simulation;
use crate::jetstream::Retention;
use crate::jetstream::consumer::{Consumers, RestoreError};

impl Simulation {
    /// Saves changed states, and restores all consumers into a new set.
    pub(super) fn restart(&mut self) {
        self.save(true);
        let created = self.now.unix_nanos;
        self.consumers = Consumers::new("S", "$G", self.retention, 8.into());
        for (config, state) in self.saved.clone().into_values() {
            self.call(|consumers, context| {
                consumers.restore(config, created, &state, context).unwrap()
            });
        }
    }
}

const FIVE: [&str; 5] = ["s.a=1", "s.b=2", "s.a=3", "s.b=4", "s.a=5"];

#[test]
fn restored_consumer_continues() {
    let mut simulation = Simulation::with(&FIVE, r#"{"ack_wait":1000000000}"#);
    simulation.pull("i", "4");
    simulation.ack(1, "");
    simulation.ack(3, "");
    simulation.port.messages.clear();
    let before = simulation.numbers("C");
    simulation.pass_millis(400);
    simulation.restart();
    assert_eq!(simulation.numbers("C"), before);
    simulation.pull("i", "9");
    simulation.expect_messages(&["i s.a=5 x1 #5 +0"]);
    // The time that passed before the restart counts toward `ack_wait`.
    simulation.pass_millis(601);
    simulation.expect_messages(&["i s.b=2 x2 #6 +0", "i s.b=4 x2 #7 +0"]);
}

#[test]
fn held_back_records_are_restored() {
    let mut simulation = Simulation::with(&FIVE, r#"{"max_ack_pending_per_subject":1}"#);
    simulation.pull("i", "9");
    simulation.expect_messages(&["i s.a=1 x1 #1 +4", "i s.b=2 x1 #2 +3"]);
    simulation.restart();
    assert_eq!(simulation.numbers("C"), "2/2 0/0 2 0 0 3");
    simulation.pull("i", "9");
    simulation.expect_messages(&[]);
    simulation.ack(2, "");
    simulation.expect_messages(&["i s.b=4 x1 #3 +2"]);
    simulation.ack(1, "");
    simulation.expect_messages(&["i s.a=3 x1 #4 +1"]);
}

#[test]
fn restored_list_continues() {
    let mut simulation = Simulation::with(&FIVE, r#"{"deliver_policy":"last_per_subject"}"#);
    simulation.pull("i", "1");
    simulation.restart();
    simulation.append(&["s.c=6"]);
    simulation.pull("i", "9");
    simulation.expect_messages(&["i s.b=4 x1 #1 +1", "i s.a=5 x1 #2 +1", "i s.c=6 x1 #3 +0"]);
}

#[test]
fn state_ahead_of_the_log_is_clamped() {
    let mut simulation = Simulation::with(&FIVE, "{}");
    simulation.pull("i", "5");
    simulation.port.messages.clear();
    let mut shorter = Simulation::new(Retention::Limits);
    shorter.append(&FIVE[..3]);
    std::mem::swap(&mut simulation.store, &mut shorter.store);
    simulation.restart();
    assert_eq!(simulation.numbers("C"), "5/3 0/0 3 0 0 0");
    simulation.pull("i", "9");
    simulation.append(&["s.a=new"]);
    simulation.expect_messages(&["i s.a=new x1 #6 +0"]);
}

#[test]
fn restored_future_start_waits() {
    let config = r#"{"deliver_policy":"by_start_sequence","opt_start_seq":7}"#;
    let mut simulation = Simulation::with(&FIVE, config);
    simulation.restart();
    simulation.pull("i", "9");
    simulation.append(&["s.a=6", "s.a=7"]);
    simulation.expect_messages(&["i s.a=7 x1 #1 +0"]);
}

#[test]
fn only_changed_states_are_saved() {
    let mut simulation = Simulation::with(&FIVE, "{}");
    let count = |simulation: &mut Simulation, all| {
        let mut saved = 0;
        simulation
            .consumers
            .save(simulation.now, all, &mut |_, _| saved += 1);
        saved
    };
    assert_eq!(count(&mut simulation, false), 0);
    assert_eq!(count(&mut simulation, true), 1);
    assert_eq!(count(&mut simulation, true), 0);
    simulation.pull("i", "2");
    assert_eq!(count(&mut simulation, false), 0);
    simulation.now.since_start += std::time::Duration::from_millis(250);
    assert_eq!(count(&mut simulation, false), 1);
}

#[test]
fn invalid_state_is_refused() {
    let mut simulation = Simulation::with(&FIVE, "{}");
    let config = simulation
        .consumers
        .get(simulation.id("C"))
        .unwrap()
        .config()
        .clone();
    for state in [&b""[..], &[9, 9], &[1, 0xff]] {
        let config = crate::jetstream::ConsumerConfig {
            name: "D".into(),
            ..config.clone()
        };
        let found =
            simulation.call(|consumers, context| consumers.restore(config, 0, state, context));
        assert!(matches!(found, Err(RestoreError::State(_))));
    }
    assert_eq!(simulation.consumers.len(), 1);
}
