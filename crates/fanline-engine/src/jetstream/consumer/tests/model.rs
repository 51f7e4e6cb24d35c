//! Random sequences of actions, whose results are checked against simple rules.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::Simulation;
use crate::jetstream::Retention;

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Pull(u8),
    Ack(usize),
    Nak(usize),
    Term(usize),
    Remove(u64),
    Pass(u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_usize).prop_map(Step::Append),
        4 => (1..6_u8).prop_map(Step::Pull),
        6 => (0..9_usize).prop_map(Step::Ack),
        2 => (0..9_usize).prop_map(Step::Nak),
        1 => (0..9_usize).prop_map(Step::Term),
        1 => (1..40_u64).prop_map(Step::Remove),
        3 => (0..WAIT_MILLIS).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

/// Maximum time of a step. It is shorter than `ack_wait`, so that nothing is redelivered twice in a step.
const WAIT_MILLIS: u64 = 1000;

const SUBJECTS: [&str; 3] = ["s.a", "s.b", "other"];

/// The state from which the allowed deliveries of a consumer follow.
#[derive(Default)]
struct Model {
    /// Subjects of existing records, by sequence.
    subjects: BTreeMap<u64, usize>,
    /// Delivered records that are neither acknowledged nor dropped. The value tells whether the record may be
    /// redelivered.
    out: BTreeMap<u64, bool>,
    /// Records that must not be delivered again.
    over: BTreeSet<u64>,
    /// Records that were delivered at least once.
    seen: BTreeSet<u64>,
}

impl Model {
    /// Checks a delivery against the rules, and records it.
    fn deliver(&mut self, sequence: u64, rules: &Rules) {
        assert!(
            self.subjects.contains_key(&sequence),
            "{sequence} was removed"
        );
        assert!(
            rules.wants(self.subjects[&sequence]),
            "{sequence} does not match the filter"
        );
        assert!(!self.over.contains(&sequence), "{sequence} is done");
        if self.seen.insert(sequence) {
            let subject = self.subjects[&sequence];
            let is_new_in_order =
                |other: &&u64| !rules.per_subject || self.subjects.get(other) == Some(&subject);
            let highest = self.seen.iter().rfind(is_new_in_order);
            assert_eq!(highest, Some(&sequence), "out of order");
            self.out.insert(sequence, false);
            assert!(self.out.len() <= rules.pending_max);
        } else {
            assert_eq!(
                self.out.insert(sequence, false),
                Some(true),
                "{sequence} redelivered without cause"
            );
        }
        if rules.per_subject {
            let same = |other: &&u64| self.subjects.get(other) == self.subjects.get(&sequence);
            assert_eq!(
                self.out.keys().filter(same).count(),
                1,
                "more than one record of a subject in flight"
            );
        }
    }
}

struct Rules {
    filtered: bool,
    pending_max: usize,
    per_subject: bool,
}

impl Rules {
    fn wants(&self, subject: usize) -> bool {
        !self.filtered || SUBJECTS[subject].starts_with("s.")
    }

    fn config(&self) -> String {
        let filter = if self.filtered {
            r#","filter_subject":"s.*""#
        } else {
            ""
        };
        let per_subject = if self.per_subject {
            r#","max_ack_pending_per_subject":1"#
        } else {
            ""
        };
        let max = self.pending_max;
        format!(r#"{{"ack_wait":1000000000,"max_ack_pending":{max}{filter}{per_subject}}}"#)
    }
}

fn run(steps: &[Step], rules: &Rules, retention: Retention) {
    let mut simulation = Simulation::new(retention);
    simulation.create("C", &rules.config());
    let mut model = Model::default();
    for step in steps {
        apply(step, &mut simulation, &mut model, retention);
        check(&mut simulation, &mut model, rules);
    }
    // Every record is delivered at least once: a client that requests and acknowledges all records receives
    // all of them.
    for _ in 0..100 {
        simulation.pull("i", "50");
        check(&mut simulation, &mut model, rules);
        let out: Vec<u64> = model.out.keys().copied().collect();
        for sequence in out {
            finish(sequence, "", &mut simulation, &mut model, retention);
            check(&mut simulation, &mut model, rules);
        }
        model.out.values_mut().for_each(|again| *again = true);
        simulation.pass_millis(WAIT_MILLIS - 1);
        check(&mut simulation, &mut model, rules);
    }
    let wanted = model
        .subjects
        .iter()
        .filter(|(_, subject)| rules.wants(**subject));
    for (sequence, _) in wanted {
        assert!(
            model.seen.contains(sequence),
            "{sequence} was never delivered"
        );
    }
}

fn apply(step: &Step, simulation: &mut Simulation, model: &mut Model, retention: Retention) {
    let nth_out = |n: &usize| model.out.keys().nth(*n).copied();
    match step {
        Step::Append(subject) => {
            let sequence = simulation.store.last_sequence() + 1;
            model.subjects.insert(sequence, *subject);
            simulation.append(&[&format!("{}={sequence}", SUBJECTS[*subject])]);
        }
        Step::Pull(batch) => simulation.pull("i", &batch.to_string()),
        Step::Ack(n) => {
            if let Some(sequence) = nth_out(n) {
                finish(sequence, "", simulation, model, retention);
            }
        }
        Step::Term(n) => {
            if let Some(sequence) = nth_out(n) {
                finish(sequence, "+TERM", simulation, model, retention);
            }
        }
        Step::Nak(n) => {
            if let Some(sequence) = nth_out(n) {
                model.out.insert(sequence, true);
                simulation.ack(sequence, "-NAK");
            }
        }
        Step::Remove(sequence) => {
            if model.subjects.remove(sequence).is_some() {
                model.out.remove(sequence);
                simulation.remove(*sequence);
            }
        }
        Step::Pass(millis) => {
            // All unacknowledged records may be redelivered. Tests of `ack_wait` check the time of
            // redelivery.
            model.out.values_mut().for_each(|again| *again = true);
            simulation.pass_millis(*millis);
        }
        Step::Restart => {
            model.out.values_mut().for_each(|again| *again = true);
            simulation.restart();
        }
    }
}

fn finish(
    sequence: u64,
    payload: &str,
    simulation: &mut Simulation,
    model: &mut Model,
    retention: Retention,
) {
    if model.out.remove(&sequence).is_none() {
        return;
    }
    model.over.insert(sequence);
    simulation.ack(sequence, payload);
    if retention == Retention::WorkQueue {
        assert_eq!(
            simulation.store.read(sequence),
            Ok(None),
            "{sequence} was acknowledged but not removed"
        );
        model.subjects.remove(&sequence);
    }
}

fn check(simulation: &mut Simulation, model: &mut Model, rules: &Rules) {
    for (_, sequence) in std::mem::take(&mut simulation.port.deliveries) {
        model.deliver(sequence, rules);
    }
    simulation.port.messages.clear();
    let waiting = model.subjects.iter();
    let waiting = waiting
        .filter(|(sequence, subject)| rules.wants(**subject) && !model.seen.contains(sequence));
    let expected = (model.out.len(), waiting.count() as u64);
    let id = simulation.id("C");
    let info = simulation
        .call(|consumers, context| consumers.info(id, context))
        .unwrap();
    let found = (
        usize::try_from(info.num_ack_pending).unwrap(),
        info.num_pending,
    );
    assert_eq!(
        simulation.port.deliveries,
        [],
        "the query of the description delivered a record"
    );
    assert_eq!(found, expected, "ack pending, pending");
    let lowest = model.out.keys().next().copied().unwrap_or(u64::MAX);
    assert!(info.ack_floor.stream_seq < lowest);
}

proptest! {
    #[test]
    fn deliveries_are_at_least_once_in_order_and_limited(
        steps in prop::collection::vec(step(), 0..60),
        filtered in any::<bool>(),
        per_subject in any::<bool>(),
        pending_max in 1..6_usize,
    ) {
        run(&steps, &Rules { filtered, pending_max, per_subject }, Retention::Limits);
    }

    #[test]
    fn work_queue_records_are_removed_once_acknowledged(
        steps in prop::collection::vec(step(), 0..60),
        per_subject in any::<bool>(),
        pending_max in 1..6_usize,
    ) {
        run(&steps, &Rules { filtered: false, pending_max, per_subject }, Retention::WorkQueue);
    }
}
