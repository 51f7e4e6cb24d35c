//! All that one invocation has measured.

use serde::Serialize;

use super::churn::Churn;
use super::grid::{Calls, Flavour, System};
use crate::report::machine::Machine;
use crate::turns::{Figures, Plan};

/// The figures, and what they were taken on.
pub(super) struct Report {
    pub(super) machine: Machine,
    /// How this was asked for.
    pub(super) command: String,
    pub(super) plan: Plan,
    /// The rivals that took part, with their versions.
    pub(super) rivals: Vec<String>,
    pub(super) cells: Vec<Cell>,
    pub(super) churn: Vec<Churn>,
}

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Load {
    pub(super) flavour: Flavour,
    pub(super) calls: Calls,
    pub(super) messages: u32,
    pub(super) subscribers: usize,
}

/// One load, and all systems under it.
pub(super) struct Cell {
    pub(super) load: Load,
    pub(super) figures: Vec<(System, Figures)>,
}

impl Cell {
    pub(super) fn figures(&self, system: System) -> Option<&Figures> {
        let found = self.figures.iter().find(|entry| entry.0 == system);
        found.map(|entry| &entry.1)
    }

    /// Messages in a second.
    pub(super) fn rate(&self, system: System) -> Option<f64> {
        Some(self.figures(system)?.rate(self.load.messages))
    }

    /// How many times as fast one is as another.
    pub(super) fn ratio(&self, system: System, other: System) -> Option<f64> {
        Some(self.rate(system)? / self.rate(other)?)
    }
}

impl Report {
    pub(super) fn cell(&self, load: Load) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.load == load)
    }

    /// The flavours that were measured, in order.
    pub(super) fn flavours(&self) -> Vec<Flavour> {
        let mut flavours: Vec<Flavour> = self.cells.iter().map(|cell| cell.load.flavour).collect();
        flavours.dedup();
        flavours
    }

    /// The numbers of messages that were measured, ascending.
    pub(super) fn messages(&self) -> Vec<u32> {
        self.distinct(|load| load.messages)
    }

    /// The numbers of subscribers that were measured, ascending.
    pub(super) fn subscribers(&self) -> Vec<usize> {
        self.distinct(|load| load.subscribers)
    }

    fn distinct<T: Ord>(&self, of: impl Fn(&Load) -> T) -> Vec<T> {
        let mut all: Vec<T> = self.cells.iter().map(|cell| of(&cell.load)).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Allocations and bytes that each further message costs, in the worst of all numbers of
    /// subscribers: from the two longest runs, so that what a subject allocates once is left out.
    pub(super) fn per_message(&self, flavour: Flavour, system: System) -> Option<(f64, f64)> {
        let messages = self.messages();
        let [.., fewer, more] = messages[..] else {
            return None;
        };
        let growth = |subscribers| {
            let figures = |messages| {
                let load = Load {
                    flavour,
                    calls: Calls::Next,
                    messages,
                    subscribers,
                };
                self.cell(load)?.figures(system)
            };
            let (short, long): (&Figures, &Figures) = (figures(fewer)?, figures(more)?);
            let further = f64::from(more - fewer);
            let allocations = (long.allocations? - short.allocations?) / further;
            Some((allocations, (long.bytes - short.bytes) / further))
        };
        let all = self.subscribers().into_iter().filter_map(growth);
        all.max_by(|one, other| one.0.total_cmp(&other.0))
    }
}
