//! What is measured, and who takes part in it.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A part of the measurement, with a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Part {
    /// One producer, all consumers get everything: the main grid
    Lockstep,
    /// The cost of a delivery by the size of the buffer
    Law,
    /// A consumer comes and goes
    JoinLeave,
    /// Bytes for each consumer
    Memory,
    /// Allocations for each element
    Allocations,
    /// One slow consumer among fast ones
    Slow,
    /// From the send to the last receive
    Latency,
    /// Many producers, one consumer
    Merge,
    /// One producer, each element to one of many consumers
    Partition,
}

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Load {
    /// Elements per second.
    Lockstep(Cell),
    /// The same, of the hub's stream and of what no broadcast to tasks can be without.
    Law(Cell),
    /// Nanoseconds for each pair.
    JoinLeave { present: usize },
    /// Bytes.
    Memory { consumers: usize },
    /// Allocations.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Elements that a run has at least, of loads that are given a number of elements and give a rate.
    pub(super) fn elements_min(self) -> Option<u64> {
        match self {
            // Making the tasks takes a microsecond each: so many rounds that deliveries are what is measured.
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

    /// How long a run may take at least, however short runs are to be. Making and ending a task takes a
    /// microsecond or two, of which a law of deliveries should not consist.
    pub(super) fn run_min(self) -> Duration {
        match self {
            Self::Law(cell) => TASK_RUN * u32::try_from(cell.consumers).unwrap_or(u32::MAX),
            _ => Duration::ZERO,
        }
    }

    /// How many times as many elements as a broadcast may have a run has, each of which is one delivery.
    pub(super) fn elements_factor(self) -> u64 {
        match self {
            Self::Merge { .. } | Self::Partition { .. } => 10,
            _ => 1,
        }
    }

    pub(super) fn describe(self) -> String {
        match self {
            Self::Lockstep(cell) | Self::Law(cell) => {
                let Cell {
                    threads,
                    buffer,
                    consumers,
                } = cell;
                format!("{consumers} consumers, buffer {buffer}, {threads} thread(s)")
            }
            other => format!("{other:?}"),
        }
    }

    /// Who takes part. Rivals do not where there are more consumers than `rivals_most`: 0 is no rivals.
    pub(super) fn systems(self, rivals_most: usize) -> Vec<System> {
        let own: &[System] = match self {
            Self::Lockstep(_) => &System::WAYS,
            // The floor is made for one.
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

/// What each consumer adds to a run of the cost law.
const TASK_RUN: Duration = Duration::from_micros(30);

/// Beyond, a run of Pekko takes minutes: leaving a bucket of its wheel costs a walk along it.
const PEKKO_CONSUMERS_MAX: usize = 2000;

/// Who is measured, and by which of its ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum System {
    /// `feed` and `next`.
    Stream,
    /// `feed` and `next_ref`.
    Ref,
    /// `feed` and `for_each_ref`.
    Each,
    /// `feed` and `next_slice`.
    Slice,
    /// `feed` and `next`, of elements behind an `Arc`.
    OwnedArc,
    /// `send` and `next`.
    Send,
    /// Where there is one way only.
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
            Self::Fanline => "Fanline",
            Self::Floor => "floor",
            Self::TokioBroadcast => "tokio broadcast, barrier",
            Self::AsyncBroadcast => "async-broadcast",
            Self::Asyncband => "asyncband",
            Self::Pekko => "Pekko BroadcastHub",
            Self::TokioMpsc => "tokio mpsc",
        }
    }

    pub(super) fn is_rival(self) -> bool {
        self >= Self::TokioBroadcast
    }
}
