//! Runs of seeds.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::server::Sabotage;
use crate::trace::Trace;
use crate::violation::{Invariant, Violation};
use crate::world::World;

/// Steps of a run, unless specified.
pub const STEPS: u64 = 600;

/// Lines of the trace that a failure shows.
const LINES_SHOWN: usize = 50;

/// How a seed failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The step in which it failed.
    pub step: u64,
    /// The violated invariant, and how.
    pub violation: Violation,
    /// The last steps.
    pub trace: Vec<String>,
}

impl Failure {
    /// Returns the seed, the step, and the violation, in one line.
    pub fn summary(&self) -> String {
        let Failure {
            seed,
            step,
            violation,
            ..
        } = self;
        format!("seed {seed}, step {step}: {violation}")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.trace.len().saturating_sub(LINES_SHOWN);
        for line in &self.trace[from..] {
            writeln!(f, "{line}")?;
        }
        f.write_str(&self.summary())
    }
}

/// What a run has covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Messages whose receivers were checked.
    pub messages: u64,
    /// Records whose publishers have an acknowledgement.
    pub records: u64,
    /// Newest records of subjects that were read.
    pub reads: u64,
    /// Deliveries of consumers.
    pub deliveries: u64,
    /// MQTT messages above QoS 0 that their publishers know to be received.
    pub mqtt: u64,
    /// Starts of the server after an accident.
    pub restarts: u64,
}

impl Covered {
    /// Adds what another run has covered.
    pub fn add(&mut self, other: &Covered) {
        self.messages += other.messages;
        self.records += other.records;
        self.reads += other.reads;
        self.deliveries += other.deliveries;
        self.mqtt += other.mqtt;
        self.restarts += other.restarts;
    }
}

/// Runs a seed.
///
/// # Errors
/// The first violated invariant, with the last steps.
pub fn run_seed(seed: u64, sabotage: Sabotage) -> Result<Covered, Box<Failure>> {
    let found = match run(seed, sabotage, false) {
        Ok(covered) => return Ok(covered),
        Err(found) => found,
    };
    // Again with a trace, which costs time.
    Err(match run(seed, sabotage, true) {
        Err(again) if again.violation == found.violation => again,
        _ => {
            let mut found = found;
            found.violation.text += " (a second run of this seed differs)";
            found
        }
    })
}

/// Runs a seed, and returns its trace: all steps, unless the trace has dropped the oldest ones.
pub fn trace_seed(seed: u64, sabotage: Sabotage) -> (Vec<String>, Result<Covered, Box<Failure>>) {
    let mut world = World::new(seed, sabotage, Trace::new(true));
    let outcome = drive(&mut world, seed);
    match outcome {
        Ok(covered) => (world.story().1, Ok(covered)),
        Err(failure) => (failure.trace.clone(), Err(failure)),
    }
}

fn run(seed: u64, sabotage: Sabotage, is_traced: bool) -> Result<Covered, Box<Failure>> {
    let mut world = World::new(seed, sabotage, Trace::new(is_traced));
    drive(&mut world, seed)
}

fn drive(world: &mut World, seed: u64) -> Result<Covered, Box<Failure>> {
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run(STEPS)));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation {
            invariant: Invariant::Correctness,
            text: format!("panic: {}", text.unwrap_or_default()),
        })
    });
    match outcome {
        Ok(()) => Ok(world.covered()),
        Err(violation) => {
            let (step, trace) = world.story();
            Err(Box::new(Failure {
                seed,
                step,
                violation,
                trace,
            }))
        }
    }
}
