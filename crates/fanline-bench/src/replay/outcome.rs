//! All results of one invocation.

use super::churn::Churn;
use super::grid::{Calls, Flavor, System};
use crate::turns::Measurements;

/// The results.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) cells: Vec<Cell>,
    pub(super) churn: Vec<Churn>,
}

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) flavor: Flavor,
    pub(super) calls: Calls,
    pub(super) messages: u32,
    pub(super) subscribers: usize,
}

/// One load, with the results of all systems.
pub(super) struct Cell {
    pub(super) load: Load,
    pub(super) results: Vec<(System, Measurements)>,
}

impl Cell {
    pub(super) fn results(&self, system: System) -> Option<&Measurements> {
        let found = self.results.iter().find(|entry| entry.0 == system);
        found.map(|entry| &entry.1)
    }

    /// Returns the ratio between the speeds of two systems.
    pub(super) fn ratio(&self, system: System, other: System) -> Option<f64> {
        let nanos = |system| Some(self.results(system)?.nanos.median);
        Some(nanos(other)? / nanos(system)?)
    }
}

impl Outcome {
    pub(super) fn cell(&self, load: Load) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.load == load)
    }

    /// Returns the measured flavors, in order.
    pub(super) fn flavors(&self) -> Vec<Flavor> {
        let mut flavors: Vec<Flavor> = self.cells.iter().map(|cell| cell.load.flavor).collect();
        flavors.dedup();
        flavors
    }

    /// Returns the measured numbers of messages, ascending.
    pub(super) fn messages(&self) -> Vec<u32> {
        self.distinct(|load| load.messages)
    }

    /// Returns the measured numbers of subscribers, ascending.
    pub(super) fn subscribers(&self) -> Vec<usize> {
        self.distinct(|load| load.subscribers)
    }

    fn distinct<T: Ord>(&self, of: impl Fn(&Load) -> T) -> Vec<T> {
        let mut all: Vec<T> = self.cells.iter().map(|cell| of(&cell.load)).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns the allocations and bytes for each additional message, as the maximum over all numbers of
    /// subscribers. They are the difference between the two longest runs, so a subject's one-time allocations
    /// do not count.
    pub(super) fn per_message(&self, flavor: Flavor, system: System) -> Option<(f64, f64)> {
        let messages = self.messages();
        let [.., fewer, more] = messages[..] else {
            return None;
        };
        let growth = |subscribers| {
            let results = |messages| {
                let load = Load {
                    flavor,
                    calls: Calls::Next,
                    messages,
                    subscribers,
                };
                self.cell(load)?.results(system)
            };
            let (short, long): (&Measurements, &Measurements) = (results(fewer)?, results(more)?);
            let further = f64::from(more - fewer);
            let allocations = (long.allocations? - short.allocations?) / further;
            Some((allocations, (long.bytes - short.bytes) / further))
        };
        let all = self.subscribers().into_iter().filter_map(growth);
        all.max_by(|one, other| one.0.total_cmp(&other.0))
    }
    /// Returns the allocations per message, as the maximum over all numbers of subscribers.
    pub(super) fn worst(&self, flavor: Flavor, messages: u32, system: System) -> Option<f64> {
        let of_subscribers = self.subscribers().into_iter().filter_map(|subscribers| {
            let cell = self.cell(Load {
                flavor,
                calls: Calls::Next,
                messages,
                subscribers,
            });
            cell?.results(system)?.allocations
        });
        of_subscribers
            .max_by(f64::total_cmp)
            .map(|most| most / f64::from(messages))
    }
}
