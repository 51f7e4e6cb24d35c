//! Tests of saving and restoring state.

use super::World;
use crate::jetstream::Retention;
use crate::jetstream::consumer::{Consumers, RestoreError};

impl World {
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
    let mut world = World::with(&FIVE, r#"{"ack_wait":1000000000}"#);
    world.pull("i", "4");
    world.ack(1, "");
    world.ack(3, "");
    world.port.heard.clear();
    let before = world.numbers("C");
    world.pass_millis(400);
    world.restart();
    assert_eq!(world.numbers("C"), before);
    world.pull("i", "9");
    world.hears(&["i s.a=5 x1 #5 +0"]);
    // The time that passed before the restart counts toward `ack_wait`.
    world.pass_millis(601);
    world.hears(&["i s.b=2 x2 #6 +0", "i s.b=4 x2 #7 +0"]);
}

#[test]
fn held_back_records_are_restored() {
    let mut world = World::with(&FIVE, r#"{"max_ack_pending_per_subject":1}"#);
    world.pull("i", "9");
    world.hears(&["i s.a=1 x1 #1 +4", "i s.b=2 x1 #2 +3"]);
    world.restart();
    assert_eq!(world.numbers("C"), "2/2 0/0 2 0 0 3");
    world.pull("i", "9");
    world.hears(&[]);
    world.ack(2, "");
    world.hears(&["i s.b=4 x1 #3 +2"]);
    world.ack(1, "");
    world.hears(&["i s.a=3 x1 #4 +1"]);
}

#[test]
fn restored_list_continues() {
    let mut world = World::with(&FIVE, r#"{"deliver_policy":"last_per_subject"}"#);
    world.pull("i", "1");
    world.restart();
    world.append(&["s.c=6"]);
    world.pull("i", "9");
    world.hears(&["i s.b=4 x1 #1 +1", "i s.a=5 x1 #2 +1", "i s.c=6 x1 #3 +0"]);
}

#[test]
fn state_ahead_of_the_log_is_clamped() {
    let mut world = World::with(&FIVE, "{}");
    world.pull("i", "5");
    world.port.heard.clear();
    let mut shorter = World::new(Retention::Limits);
    shorter.append(&FIVE[..3]);
    std::mem::swap(&mut world.store, &mut shorter.store);
    world.restart();
    assert_eq!(world.numbers("C"), "5/3 0/0 3 0 0 0");
    world.pull("i", "9");
    world.append(&["s.a=new"]);
    world.hears(&["i s.a=new x1 #6 +0"]);
}

#[test]
fn restored_future_start_waits() {
    let config = r#"{"deliver_policy":"by_start_sequence","opt_start_seq":7}"#;
    let mut world = World::with(&FIVE, config);
    world.restart();
    world.pull("i", "9");
    world.append(&["s.a=6", "s.a=7"]);
    world.hears(&["i s.a=7 x1 #1 +0"]);
}

#[test]
fn only_changed_states_are_saved() {
    let mut world = World::with(&FIVE, "{}");
    let count = |world: &mut World, all| {
        let mut saved = 0;
        world.consumers.save(world.now, all, &mut |_, _| saved += 1);
        saved
    };
    assert_eq!(count(&mut world, false), 0);
    assert_eq!(count(&mut world, true), 1);
    assert_eq!(count(&mut world, true), 0);
    world.pull("i", "2");
    assert_eq!(count(&mut world, false), 0);
    world.now.since_start += std::time::Duration::from_millis(250);
    assert_eq!(count(&mut world, false), 1);
}

#[test]
fn invalid_state_is_refused() {
    let mut world = World::with(&FIVE, "{}");
    let config = world.consumers.get(world.id("C")).unwrap().config().clone();
    for state in [&b""[..], &[9, 9], &[1, 0xff]] {
        let config = crate::jetstream::ConsumerConfig {
            name: "D".into(),
            ..config.clone()
        };
        let found = world.call(|consumers, context| consumers.restore(config, 0, state, context));
        assert!(matches!(found, Err(RestoreError::State(_))));
    }
    assert_eq!(world.consumers.len(), 1);
}
