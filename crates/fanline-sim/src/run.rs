//! Runs of seeds.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cluster::Cluster;
use crate::server::Sabotage;
use crate::trace::Trace;
use crate::violation::{Invariant, Outcome, Violation};
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
    /// Starts of a server after an accident.
    pub restarts: u64,
    /// Routes that were cut.
    pub cuts: u64,
    /// Messages that crossed a route.
    pub crossings: u64,
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
        self.cuts += other.cuts;
        self.crossings += other.crossings;
    }
}

/// What a seed runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One server with JetStream and MQTT.
    #[default]
    Server,
    /// Servers that routes join.
    Cluster,
}

/// A simulated world.
enum Simulated {
    Server(Box<World>),
    Cluster(Box<Cluster>),
}

impl Simulated {
    fn new(mode: Mode, seed: u64, sabotage: Sabotage, trace: Trace) -> Self {
        match mode {
            Mode::Server => Simulated::Server(World::new(seed, sabotage, trace).into()),
            Mode::Cluster => Simulated::Cluster(Cluster::new(seed, sabotage, trace).into()),
        }
    }

    fn run(&mut self) -> Outcome {
        match self {
            Simulated::Server(world) => world.run(STEPS),
            Simulated::Cluster(cluster) => cluster.run(STEPS),
        }
    }

    fn covered(&self) -> Covered {
        match self {
            Simulated::Server(world) => world.covered(),
            Simulated::Cluster(cluster) => cluster.covered(),
        }
    }

    fn story(&mut self) -> (u64, Vec<String>) {
        match self {
            Simulated::Server(world) => world.story(),
            Simulated::Cluster(cluster) => cluster.story(),
        }
    }
}

/// Runs a seed.
///
/// # Errors
/// The first violated invariant, with the last steps.
pub fn run_seed(mode: Mode, seed: u64, sabotage: Sabotage) -> Result<Covered, Box<Failure>> {
    let run = |is_traced| {
        let mut world = Simulated::new(mode, seed, sabotage, Trace::new(is_traced));
        drive(&mut world, seed)
    };
    let found = match run(false) {
        Ok(covered) => return Ok(covered),
        Err(found) => found,
    };
    // Again with a trace, which costs time.
    Err(match run(true) {
        Err(again) if again.violation == found.violation => again,
        _ => {
            let mut found = found;
            found.violation.text += " (a second run of this seed differs)";
            found
        }
    })
}

/// Runs a seed, and returns its trace: all steps, unless the trace has dropped the oldest ones.
pub fn trace_seed(
    mode: Mode,
    seed: u64,
    sabotage: Sabotage,
) -> (Vec<String>, Result<Covered, Box<Failure>>) {
    let mut world = Simulated::new(mode, seed, sabotage, Trace::new(true));
    let outcome = drive(&mut world, seed);
    match outcome {
        Ok(covered) => (world.story().1, Ok(covered)),
        Err(failure) => (failure.trace.clone(), Err(failure)),
    }
}

fn drive(world: &mut Simulated, seed: u64) -> Result<Covered, Box<Failure>> {
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
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
