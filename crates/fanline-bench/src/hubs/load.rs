//! The loads and the systems that are measured.

use std::time::Duration;

use clap::ValueEnum;

use super::others::SLOW_WORK;
use super::targets::law;
use crate::report::metric::{Metric, three_digits};
use crate::report::{Kind, Row, count};

/// A part of the measurement with its own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Part {
    /// The main grid: one producer, and consumers that all receive everything
    Lockstep,
    /// Cost of a delivery by buffer size
    Law,
    /// A consumer joins and leaves
    JoinLeave,
    /// Bytes per consumer
    Memory,
    /// Allocations per element
    Allocations,
    /// One slow consumer among fast ones
    Slow,
    /// Time from the send to the last receive
    Latency,
    /// Many producers, one consumer
    Merge,
    /// One producer, each element to one of many consumers
    Partition,
}

/// One kind of load. Each variant documents the unit of its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Elements per second.
    Lockstep(Cell),
    /// Elements per second, of the hub's stream and of the reference loop.
    Law(Cell),
    /// Nanoseconds per pair of joining and leaving.
    JoinLeave { present: usize },
    /// Bytes per consumer.
    Memory { consumers: usize },
    /// Allocations per element.
    Allocations { consumers: usize },
    /// Elements per second.
    Slow { threads: usize, fast: usize },
    /// Microseconds.
    Latency { threads: usize, consumers: usize },
    /// Elements per second.
    Merge { threads: usize, producers: usize },
    /// Elements per second.
    Partition { threads: usize, consumers: usize },
}

/// A broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) threads: usize,
    pub(super) buffer: usize,
    pub(super) consumers: usize,
}

impl Load {
    pub(super) fn part(self) -> Part {
        match self {
            Self::Lockstep(_) => Part::Lockstep,
            Self::Law(_) => Part::Law,
            Self::JoinLeave { .. } => Part::JoinLeave,
            Self::Memory { .. } => Part::Memory,
            Self::Allocations { .. } => Part::Allocations,
            Self::Slow { .. } => Part::Slow,
            Self::Latency { .. } => Part::Latency,
            Self::Merge { .. } => Part::Merge,
            Self::Partition { .. } => Part::Partition,
        }
    }

    /// Returns the minimum number of elements of a run, or `None` for loads that do not have a number of
    /// elements.
    pub(super) fn elements_min(self) -> Option<u64> {
        match self {
            // Creating a task takes a microsecond. With this many elements, deliveries take most of the time.
            Self::Lockstep(cell) | Self::Law(cell) if cell.consumers > 10_000 => {
                Some(16 * cell.buffer as u64)
            }
            Self::Lockstep(cell) | Self::Law(cell) => Some(2 * cell.buffer as u64),
            Self::Slow { .. } | Self::Merge { .. } | Self::Partition { .. } => Some(512),
            Self::JoinLeave { .. }
            | Self::Memory { .. }
            | Self::Allocations { .. }
            | Self::Latency { .. } => None,
        }
    }

    /// Returns the minimum duration of a run. Creating and ending a task takes one or two microseconds. In a
    /// longer run that time does not dominate the measured cost of a delivery.
    pub(super) fn run_min(self) -> Duration {
        match self {
            Self::Law(cell) => TASK_RUN * u32::try_from(cell.consumers).unwrap_or(u32::MAX),
            _ => Duration::ZERO,
        }
    }

    /// Returns the number of elements of a run, as a multiple of the number for a broadcast. In loads of the
    /// merge and the partition hub, an element has only one delivery, so they need more elements.
    pub(super) fn elements_factor(self) -> u64 {
        match self {
            Self::Merge { .. } | Self::Partition { .. } => 10,
            _ => 1,
        }
    }

    /// Returns the number of threads (0 if the load does not vary it) and the number of peers.
    fn place(self) -> (usize, usize) {
        match self {
            Self::Lockstep(cell) | Self::Law(cell) => (cell.threads, cell.consumers),
            Self::JoinLeave { present } => (0, present),
            Self::Memory { consumers } | Self::Allocations { consumers } => (0, consumers),
            Self::Slow { threads, fast } => (threads, fast),
            Self::Merge { threads, producers } => (threads, producers),
            Self::Latency { threads, consumers } | Self::Partition { threads, consumers } => {
                (threads, consumers)
            }
        }
    }

    /// Returns the name of the load's row.
    pub(super) fn name(self) -> String {
        let (threads, peers) = self.place();
        let part = self.part().to_possible_value();
        let part = part.as_ref().map_or("", |part| part.get_name());
        match self {
            Self::Lockstep(cell) | Self::Law(cell) => {
                format!("{part}-{threads}-{}-{peers}", cell.buffer)
            }
            _ => format!("{part}-{threads}-{peers}"),
        }
    }

    /// Returns the metric in which systems are compared.
    pub(super) fn metric(self) -> Metric {
        match self {
            Self::JoinLeave { .. } => Metric::Pair,
            Self::Memory { .. } => Metric::Bytes,
            Self::Allocations { .. } => Metric::Allocations,
            Self::Latency { .. } => Metric::P50,
            _ => Metric::Rate,
        }
    }

    /// Returns the number of deliveries of an element for loads whose rate counts deliveries, otherwise 1.
    pub(super) fn deliveries(self) -> usize {
        match self {
            Self::Lockstep(cell) | Self::Law(cell) => cell.consumers,
            _ => 1,
        }
    }

    /// Returns a row without results.
    pub(super) fn row(self) -> Row {
        let (threads, peers) = self.place();
        let is_broadcast = matches!(self, Self::Lockstep(_) | Self::Law(_));
        Row {
            title: match self {
                Self::Lockstep(_) => String::new(),
                Self::Law(cell) if threads == 1 => {
                    let most = three_digits(law(cell.buffer));
                    format!("buffer {}, at most {most} ns", cell.buffer)
                }
                Self::Law(cell) => format!("buffer {}", cell.buffer),
                _ if threads == 0 => String::new(),
                _ => format!("{threads} thread(s)"),
            },
            column: count(peers),
            rate: if is_broadcast {
                "deliveries/s"
            } else {
                "elements/s"
            }
            .to_owned(),
            headline: match self {
                Self::Law(_) => Metric::Delivery,
                _ => self.metric(),
            },
            is_plotted: matches!(self, Self::Lockstep(_)),
            ..Row::new(self.name(), self.group())
        }
    }

    /// Returns the heading of the load's table.
    fn group(self) -> String {
        let group = match self {
            Self::Lockstep(cell) => {
                let Cell {
                    threads, buffer, ..
                } = cell;
                return format!("Broadcast, {threads} thread(s), buffer {buffer}, by consumers");
            }
            Self::Law(cell) => {
                let threads = cell.threads;
                return format!("What a delivery costs on {threads} thread(s), by consumers");
            }
            Self::Slow { .. } => {
                let micros = SLOW_WORK.as_micros();
                return format!(
                    "One consumer that works {micros} µs on each element, by fast ones beside it"
                );
            }
            Self::JoinLeave { .. } => "A consumer comes and goes, by consumers present",
            Self::Memory { .. } => "Memory for each consumer, its handle included, by consumers",
            Self::Allocations { .. } => "Allocations for each element, by consumers",
            Self::Latency { .. } => "From before a send to the last receive, by consumers",
            Self::Merge { .. } => "Merge hub, by producers",
            Self::Partition { .. } => "Partition hub, in turn, by consumers",
        };
        group.to_owned()
    }

    /// Returns the measured systems. Other systems than Fanline are omitted above `rivals_most` consumers; 0
    /// omits all of them.
    pub(super) fn systems(self, rivals_most: usize) -> Vec<System> {
        let own: &[System] = match self {
            // On one thread, a relay only adds a step.
            Self::Lockstep(cell) if cell.threads > 1 => &System::WAYS_WITH_RELAY,
            Self::Lockstep(_) => &System::WAYS,
            // The reference loop is written for one thread.
            Self::Law(cell) if cell.threads > 1 => &[System::Stream],
            Self::Law(_) => &[System::Stream, System::Floor],
            Self::Slow { .. } => &[System::Stream],
            Self::Allocations { .. } => &[System::Stream, System::Send],
            Self::Latency { .. } => &[System::Send],
            Self::JoinLeave { .. } | Self::Memory { .. } => &[System::Fanline],
            Self::Merge { .. } | Self::Partition { .. } => &[System::Fanline],
        };
        let rivals: &[System] = match self {
            _ if rivals_most == 0 => &[],
            Self::Law(_) => &[],
            Self::Lockstep(cell) if cell.consumers > rivals_most => &[],
            Self::Lockstep(cell) if cell.consumers > PEKKO_CONSUMERS_MAX => &System::CRATES,
            Self::Lockstep(_) => &System::ALL_RIVALS,
            Self::Merge { .. } | Self::Partition { .. } => &[System::TokioMpsc],
            _ => &System::CRATES,
        };
        [own, rivals].concat()
    }
}

/// Time that each consumer adds to a run that measures the cost of a delivery by buffer size.
const TASK_RUN: Duration = Duration::from_micros(30);

/// Largest number of consumers for Pekko. With more, a run takes minutes, because Pekko walks through a
/// bucket of its consumer wheel each time a consumer leaves that bucket.
const PEKKO_CONSUMERS_MAX: usize = 2000;

/// A measured system and the API that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum System {
    /// `feed` and `next`.
    Stream,
    /// `feed` and `next_ref`.
    Ref,
    /// `feed` and `for_each_ref`.
    Each,
    /// `feed` and `next_slice`.
    Slice,
    /// `feed` and `next`, with elements in an `Arc`.
    OwnedArc,
    /// `send` and `next`.
    Send,
    /// `feed` and `next`, with a relay for each thread. Each relay has a second buffer.
    Relay,
    /// Fanline, for loads that use only one API.
    Fanline,
    Floor,
    TokioBroadcast,
    AsyncBroadcast,
    Asyncband,
    Pekko,
    TokioMpsc,
}

impl System {
    const WAYS: [Self; 6] = [
        Self::Stream,
        Self::Ref,
        Self::Each,
        Self::Slice,
        Self::OwnedArc,
        Self::Send,
    ];
    const WAYS_WITH_RELAY: [Self; 7] = [
        Self::Stream,
        Self::Ref,
        Self::Each,
        Self::Slice,
        Self::OwnedArc,
        Self::Send,
        Self::Relay,
    ];
    const CRATES: [Self; 3] = [Self::TokioBroadcast, Self::AsyncBroadcast, Self::Asyncband];
    const ALL_RIVALS: [Self; 4] = [
        Self::TokioBroadcast,
        Self::AsyncBroadcast,
        Self::Asyncband,
        Self::Pekko,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stream => "next (feed)",
            Self::Ref => "next_ref (feed)",
            Self::Each => "for_each_ref (feed)",
            Self::Slice => "next_slice (feed)",
            Self::OwnedArc => "next of Arc (feed)",
            Self::Send => "next (send each)",
            Self::Relay => "next (feed, relay)",
            Self::Fanline => "Fanline",
            Self::Floor => "floor",
            Self::TokioBroadcast => "tokio broadcast, barrier",
            Self::AsyncBroadcast => "async-broadcast",
            Self::Asyncband => "asyncband",
            Self::Pekko => "Pekko BroadcastHub",
            Self::TokioMpsc => "tokio mpsc",
        }
    }

    /// Returns all systems, in the order of reports.
    pub(super) fn all() -> Vec<Self> {
        let single = [Self::Fanline, Self::Floor];
        [
            &Self::WAYS_WITH_RELAY[..],
            &single,
            &Self::ALL_RIVALS,
            &[Self::TokioMpsc],
        ]
        .concat()
    }

    /// Returns the role of the system in reports.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Floor => Kind::Reference,
            _ if self >= Self::TokioBroadcast => Kind::Rival,
            _ => Kind::Own,
        }
    }
}
