//! The list of the hubs' targets, and their verdicts.

use super::load::{Load, Part, System};
use crate::report::metric::Metric;
use crate::report::target::{Bound, Target, Unit};
use crate::report::{Report, count};

pub(super) const CONSUMERS: [usize; 4] = [64, 256, 1000, 2000];

/// Numbers of consumers for which the limit on the cost of a delivery ([`law`]) must hold.
const LAW_CONSUMERS: [usize; 5] = [64, 256, 1000, 2000, 10_000];

/// Buffer sizes for which that limit must hold.
pub(super) const LAW_BUFFERS: [usize; 6] = [1, 2, 16, 64, 256, 1024];

/// Returns the upper limit for the cost of a delivery, in nanoseconds.
pub(super) fn law(buffer: usize) -> f64 {
    2.5 + 120.0 / buffer as f64
}

/// A minimum ratio between the speeds of two systems in the same cell.
struct Ratio {
    system: System,
    against: System,
    threads: usize,
    buffers: &'static [usize],
    consumers: &'static [usize],
    least: f64,
}

const BOTH: &[usize] = &[64, 256];
const LARGE: &[usize] = &[256];

const fn one_thread(
    system: System,
    against: System,
    buffers: &'static [usize],
    least: f64,
) -> Ratio {
    Ratio {
        system,
        against,
        threads: 1,
        buffers,
        consumers: &CONSUMERS,
        least,
    }
}

const fn two_threads(system: System, consumers: &'static [usize], least: f64) -> Ratio {
    Ratio {
        system,
        against: System::Pekko,
        threads: 2,
        buffers: LARGE,
        consumers,
        least,
    }
}

/// Every target that is a ratio within a cell.
const RATIOS: &[Ratio] = &[
    one_thread(System::Stream, System::AsyncBroadcast, BOTH, 4.8),
    one_thread(System::Stream, System::TokioBroadcast, BOTH, 6.0),
    one_thread(System::Stream, System::Pekko, BOTH, 9.0),
    one_thread(System::Ref, System::Pekko, LARGE, 8.0),
    one_thread(System::Each, System::Pekko, LARGE, 20.0),
    one_thread(System::Slice, System::Pekko, LARGE, 20.0),
    two_threads(System::Stream, CONSUMERS.split_at(1).1, 10.0),
    one_thread(System::OwnedArc, System::Pekko, LARGE, 1.5),
    two_threads(System::OwnedArc, &CONSUMERS, 1.5),
    two_threads(System::Send, &CONSUMERS, 4.0),
];

/// Minimum ratio of the rate on two threads to that on one thread, if elements are sent one by one.
const SEND_LEAST: f64 = 0.5;

/// Two numbers of consumers, and the largest factor by which the cost of a delivery may grow from the first
/// to the second.
const GROWTH: (usize, usize, f64) = (1000, 100_000, 2.0);
const GROWTH_BUFFER: usize = 256;
pub(super) const GROWTH_THREADS: [usize; 2] = [1, 2];

/// Number of other consumers while one joins and leaves.
pub(super) const JOIN_PRESENT: usize = 10_000;
const JOIN_NANOS: f64 = 1000.0;

/// Number of consumers while allocations are counted. The target is zero allocations.
pub(super) const ALLOCATIONS_CONSUMERS: usize = 16;

/// Returns every target, whether or not it was measured.
pub(super) fn all(report: &Report) -> Vec<Target> {
    let mut lines = Vec::new();
    for ratio in RATIOS {
        let buffers = ratio.buffers.iter();
        lines.extend(buffers.map(|buffer| ratio.line(report, *buffer)));
    }
    lines.extend(BOTH.iter().map(|buffer| sending(report, *buffer)));
    lines.extend(LAW_BUFFERS.map(|buffer| cost(report, buffer)));
    lines.extend(GROWTH_THREADS.map(|threads| growth(report, threads)));
    let join_leave = Load::new(Part::JoinLeave, 0, JOIN_PRESENT);
    lines.push(Target::new(
        format!("join + leave, {} present", count(JOIN_PRESENT)),
        vec![value(report, join_leave, System::Fanline)],
        Bound::AtMost(JOIN_NANOS),
        Unit::Of(Metric::Pair),
    ));
    lines.push(allocations(report));
    lines
}

fn lockstep(threads: usize, buffer: usize, consumers: usize) -> Load {
    Load::broadcast(Part::Lockstep, threads, buffer, consumers)
}

impl Ratio {
    fn line(&self, report: &Report, buffer: usize) -> Target {
        let (system, against) = (self.system.name(), self.against.name());
        let results = self.consumers.iter().map(|consumers| {
            let row = report.row(&lockstep(self.threads, buffer, *consumers).name())?;
            row.ratio(system, against, Metric::Rate)
        });
        let threads = threads(self.threads);
        let what = format!("{system}, {threads}, buffer {buffer}, to {against}");
        let bound = Bound::AtLeast(self.least);
        Target::new(what, results.collect(), bound, Unit::Times)
            .of_cells(of_consumers(self.consumers))
    }
}

fn sending(report: &Report, buffer: usize) -> Target {
    let rate = |threads, consumers| {
        let load = lockstep(threads, buffer, consumers);
        value(report, load, System::Send)
    };
    let results = CONSUMERS.map(|consumers| Some(rate(2, consumers)? / rate(1, consumers)?));
    let name = System::Send.name();
    let what = format!("{name}, two threads to one, buffer {buffer}");
    let bound = Bound::AtLeast(SEND_LEAST);
    Target::new(what, results.to_vec(), bound, Unit::Times).of_cells(of_consumers(&CONSUMERS))
}

fn cost(report: &Report, buffer: usize) -> Target {
    let found = LAW_CONSUMERS.into_iter().filter_map(|consumers| {
        let load = Load::broadcast(Part::Law, 1, buffer, consumers);
        Some((consumers, Some(delivery(report, load)?)))
    });
    let (consumers, mut results): (Vec<usize>, Vec<Option<f64>>) = found.unzip();
    if results.is_empty() {
        results.push(None);
    }
    let name = System::Stream.name();
    let what = format!("{name}, one thread, buffer {buffer}, a delivery");
    let bound = Bound::AtMost(law(buffer));
    Target::new(what, results, bound, Unit::Of(Metric::Delivery)).of_cells(of_consumers(&consumers))
}

fn delivery(report: &Report, load: Load) -> Option<f64> {
    let in_grid = lockstep(load.threads, load.buffer, load.peers);
    // Prefer the first load, because it was measured together with the reference loop.
    let rate = |load| value(report, load, System::Stream);
    Some(1e9 / rate(load).or_else(|| rate(in_grid))?)
}

/// Returns the two loads between which growth is measured, for a number of threads.
pub(super) fn growth_loads(threads: usize) -> [Load; 2] {
    let (few, many, _) = GROWTH;
    [few, many].map(|consumers| Load::broadcast(Part::Law, threads, GROWTH_BUFFER, consumers))
}

fn growth(report: &Report, count_of_threads: usize) -> Target {
    let (few, many, most) = GROWTH;
    let [of_few, of_many] = growth_loads(count_of_threads).map(|load| delivery(report, load));
    let what = format!(
        "{}, {}, buffer {GROWTH_BUFFER}, a delivery to {} to one to {}",
        System::Stream.name(),
        threads(count_of_threads),
        count(many),
        count(few)
    );
    let growth = of_many.zip(of_few).map(|(many, few)| many / few);
    Target::new(what, vec![growth], Bound::AtMost(most), Unit::Times)
}

fn allocations(report: &Report) -> Target {
    let load = Load::new(Part::Allocations, 0, ALLOCATIONS_CONSUMERS);
    let systems = [System::Stream, System::Send];
    let results = systems.map(|system| value(report, load, system));
    let unit = Unit::Of(Metric::Allocations);
    let what = "allocations for each element";
    Target::new(what, results.to_vec(), Bound::AtMost(0.0), unit)
        .of_cells(systems.map(System::name).join(" / "))
}

fn value(report: &Report, load: Load, system: System) -> Option<f64> {
    let row = report.row(&load.name())?;
    row.value(system.name(), load.metric())
}

fn threads(count: usize) -> &'static str {
    if count == 1 {
        "one thread"
    } else {
        "two threads"
    }
}

fn of_consumers(consumers: &[usize]) -> String {
    let words = consumers.iter().map(|consumers| count(*consumers));
    words.collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_law_decreases_with_buffer() {
        assert!((law(1) - 122.5).abs() < 1e-9);
        assert!(
            LAW_BUFFERS
                .windows(2)
                .all(|pair| law(pair[0]) > law(pair[1]))
        );
    }
}
