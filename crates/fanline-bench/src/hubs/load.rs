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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) part: Part,
    /// Number of threads; 0 if the part does not vary it.
    pub(super) threads: usize,
    /// Size of the buffer; 0 if the part does not vary it.
    pub(super) buffer: usize,
    /// Number of consumers, or of producers of a merge. These are the other consumers while one joins and leaves,
    /// and the fast consumers beside a slow one.
    pub(super) peers: usize,
}

impl Load {
    pub(super) const fn broadcast(part: Part, threads: usize, buffer: usize, peers: usize) -> Self {
        Self {
            part,
            threads,
            buffer,
            peers,
        }
    }

    pub(super) const fn new(part: Part, threads: usize, peers: usize) -> Self {
        Self::broadcast(part, threads, 0, peers)
    }

    fn is_broadcast(self) -> bool {
        matches!(self.part, Part::Lockstep | Part::Law)
    }

    /// Returns the minimum number of elements of a run, or `None` for loads that do not have a number of
    /// elements.
    pub(super) fn elements_min(self) -> Option<u64> {
        match self.part {
            // Creating a task takes a microsecond. With this many elements, deliveries take most of the time.
            Part::Lockstep | Part::Law if self.peers > 10_000 => Some(16 * self.buffer as u64),
            Part::Lockstep | Part::Law => Some(2 * self.buffer as u64),
            Part::Slow | Part::Merge | Part::Partition => Some(512),
            Part::JoinLeave | Part::Memory | Part::Allocations | Part::Latency => None,
        }
    }

    /// Returns the minimum duration of a run. Creating and ending a task takes one or two microseconds. In a
    /// longer run that time does not dominate the measured cost of a delivery.
    pub(super) fn run_min(self) -> Duration {
        match self.part {
            Part::Law => TASK_RUN * u32::try_from(self.peers).unwrap_or(u32::MAX),
            _ => Duration::ZERO,
        }
    }

    /// Returns the number of elements of a run, as a multiple of the number for a broadcast. In loads of the
    /// merge and the partition hub, an element has only one delivery, so they need more elements.
    pub(super) fn elements_factor(self) -> u64 {
        match self.part {
            Part::Merge | Part::Partition => 10,
            _ => 1,
        }
    }

    pub(super) fn name(self) -> String {
        let part = self.part.to_possible_value();
        let part = part.as_ref().map_or("", |part| part.get_name());
        let (threads, buffer, peers) = (self.threads, self.buffer, self.peers);
        match buffer {
            0 => format!("{part}-{threads}-{peers}"),
            _ => format!("{part}-{threads}-{buffer}-{peers}"),
        }
    }

    /// Returns the metric in which systems are compared.
    pub(super) fn metric(self) -> Metric {
        match self.part {
            Part::JoinLeave => Metric::Pair,
            Part::Memory => Metric::Bytes,
            Part::Allocations => Metric::Allocations,
            Part::Latency => Metric::P50,
            _ => Metric::Rate,
        }
    }

    /// Returns the number of deliveries of an element for loads whose rate counts deliveries, otherwise 1.
    pub(super) fn deliveries(self) -> usize {
        if self.is_broadcast() { self.peers } else { 1 }
    }

    pub(super) fn row(self) -> Row {
        let (threads, buffer) = (self.threads, self.buffer);
        let rate = match self.is_broadcast() {
            true => "deliveries/s",
            false => "elements/s",
        };
        Row {
            title: match self.part {
                Part::Lockstep => String::new(),
                Part::Law if threads == 1 => {
                    let most = three_digits(law(buffer));
                    format!("buffer {buffer}, at most {most} ns")
                }
                Part::Law => format!("buffer {buffer}"),
                _ if threads == 0 => String::new(),
                _ => format!("{threads} thread(s)"),
            },
            column: count(self.peers),
            rate: rate.to_owned(),
            headline: match self.part {
                Part::Law => Metric::Delivery,
                _ => self.metric(),
            },
            is_plotted: self.part == Part::Lockstep && buffer == PLOTTED_BUFFER,
            ..Row::new(self.name(), self.group())
        }
    }

    fn group(self) -> String {
        let (threads, buffer) = (self.threads, self.buffer);
        let group = match self.part {
            Part::Lockstep => {
                return format!("Broadcast, {threads} thread(s), buffer {buffer}, by consumers");
            }
            Part::Law => {
                return format!("What a delivery costs on {threads} thread(s), by consumers");
            }
            Part::Slow => {
                let micros = SLOW_WORK.as_micros();
                return format!(
                    "One consumer that works {micros} µs on each element, by fast ones beside it"
                );
            }
            Part::JoinLeave => "A consumer comes and goes, by consumers present",
            Part::Memory => "Memory for each consumer, its handle included, by consumers",
            Part::Allocations => "Allocations for each element, by consumers",
            Part::Latency => "From before a send to the last receive, by consumers",
            Part::Merge => "Merge hub, by producers",
            Part::Partition => "Partition hub, in turn, by consumers",
        };
        group.to_owned()
    }

    /// Returns the measured systems. Other systems than Fanline are omitted above `rivals_most` consumers; 0
    /// omits all of them.
    pub(super) fn systems(self, rivals_most: usize) -> Vec<System> {
        use System::{Fanline, Floor, Pekko, Relay, Send, Stream, TokioMpsc};
        let is_parallel = self.threads > 1;
        let own: &[System] = match self.part {
            // On one thread, a relay only adds a step.
            Part::Lockstep if is_parallel => &[System::WAYS, &[Relay]].concat(),
            Part::Lockstep => System::WAYS,
            // The reference loop is written for one thread.
            Part::Law if is_parallel => &[Stream],
            Part::Law => &[Stream, Floor],
            Part::Slow => &[Stream],
            Part::Allocations => &[Stream, Send],
            Part::Latency => &[Send],
            Part::JoinLeave | Part::Memory | Part::Merge | Part::Partition => &[Fanline],
        };
        let rivals: &[System] = match self.part {
            _ if rivals_most == 0 => &[],
            Part::Law => &[],
            Part::Lockstep if self.peers > rivals_most => &[],
            Part::Lockstep if self.peers <= PEKKO_CONSUMERS_MAX => {
                &[System::CRATES, &[Pekko]].concat()
            }
            Part::Merge | Part::Partition => &[TokioMpsc],
            _ => System::CRATES,
        };
        [own, rivals].concat()
    }
}

/// Buffer of the broadcasts in the plot.
const PLOTTED_BUFFER: usize = 256;

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
    /// Fanline's ways to send and to receive.
    const WAYS: &[Self] = &[
        Self::Stream,
        Self::Ref,
        Self::Each,
        Self::Slice,
        Self::OwnedArc,
        Self::Send,
    ];
    const CRATES: &[Self] = &[Self::TokioBroadcast, Self::AsyncBroadcast, Self::Asyncband];

    /// Returns all systems, in the order of reports.
    pub(super) fn all() -> Vec<Self> {
        let own = [Self::Relay, Self::Fanline, Self::Floor];
        [
            Self::WAYS,
            &own,
            Self::CRATES,
            &[Self::Pekko, Self::TokioMpsc],
        ]
        .concat()
    }

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

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Floor => Kind::Reference,
            _ if self >= Self::TokioBroadcast => Kind::Rival,
            _ => Kind::Own,
        }
    }
}
