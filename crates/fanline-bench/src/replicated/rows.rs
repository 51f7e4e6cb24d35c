//! The measured rows and their targets. Runs and reports use the same list.

use crate::comparison::{self, Case, Shown, at_most, case};
use crate::report::metric::Metric;
use crate::report::target::Limit;
use crate::servers::System;

/// The generator's work for a row.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Each publisher has a stream and a connection of its own.
    Publish {
        payload_bytes: usize,
        publishers: usize,
        /// Number of messages in flight of each publisher.
        in_flight: usize,
    },
    /// Publishes at fixed times, with 30 % of the rate that is possible with 256 in flight.
    Paced,
    /// A durable consumer fetches 1,000 messages at a time.
    Fetch { acks: bool },
    /// Workers share a durable consumer, and wait for the confirmation of each acknowledgement.
    Confirm { workers: usize },
    /// The stream's leader is killed while a client publishes.
    Failover,
    /// The servers have many items, and nothing to do.
    Idle(Items),
}

#[derive(Clone, Copy)]
pub(crate) enum Items {
    /// Streams, each with one durable consumer.
    Streams,
    /// Durable consumers of one stream.
    Consumers,
}

impl Work {
    /// Returns the number of measurements of this row for each round of the others.
    pub(super) fn rounds(self, quick: bool) -> u32 {
        match self {
            Self::Failover if quick => 2,
            Self::Failover => 10,
            _ => 1,
        }
    }
}

impl comparison::Work for Work {
    fn shown(&self) -> Shown {
        let rate = |rate| Shown::rate(self.group(), rate);
        match self {
            Self::Publish { in_flight: 1, .. } | Self::Paced => {
                rate("acked/s").headline(Metric::P50)
            }
            Self::Publish { .. } => rate("acked/s"),
            Self::Fetch { .. } => rate("messages/s"),
            Self::Confirm { .. } => rate("confirmed/s"),
            Self::Failover => rate("failovers/s").headline(Metric::Outage),
            Self::Idle(_) => rate("created/s").headline(Metric::IdleCpu),
        }
    }
}

impl Work {
    fn group(self) -> &'static str {
        match self {
            Self::Publish { .. } | Self::Paced => "Publish",
            Self::Fetch { .. } => "Consume",
            Self::Confirm { .. } => "Confirmed acknowledgements",
            Self::Failover => "Failover",
            Self::Idle(_) => "Many streams and consumers",
        }
    }
}

const SYNCED: &str = System::NatsSynced.label();

const PUBLISH: &[Limit] = &[
    Limit::at_least(Metric::Rate, 10.0).to(SYNCED),
    Limit::at_most(Metric::ServerCpu, 1.0 / 3.0).to(SYNCED),
    at_most(Metric::ServerCpu, 1.0),
];
const PACED: &[Limit] = &[Limit::at_most(Metric::AgainstSyncs, 1.0)];
const FAILOVER: &[Limit] = &[
    Limit::at_most(Metric::Outage, 1e9),
    Limit::at_most(Metric::Outage, 2e9).worst(),
];
/// "Equal" leaves room for the differences between two measurements of the same servers.
const STREAMS: &[Limit] = &[
    Limit::at_most(Metric::IdleCpuAgainstNone, 1.25),
    Limit::at_most(Metric::IdleTrafficAgainstNone, 1.25),
];
const CONSUMERS: &[Limit] = &[
    Limit::at_most(Metric::ItemMemory, 2048.0),
    Limit::at_most(Metric::IdleCpuAgainstNone, 1.25),
    Limit::at_most(Metric::IdleTrafficAgainstNone, 1.25),
];

const fn publish(payload_bytes: usize, publishers: usize, in_flight: usize) -> Work {
    Work::Publish {
        payload_bytes,
        publishers,
        in_flight,
    }
}

/// Every row, in the order of the reports.
#[rustfmt::skip]
pub(crate) const ROWS: &[Case<Work>] = &[
    case("publish-128", "128 B, 256 in flight", publish(128, 1, 256), PUBLISH),
    case("publish-many", "128 B, 8 publishers to 8 streams, 32 in flight each", publish(128, 8, 32), &[]),
    case("publish-16k", "16 KiB, 256 in flight", publish(16 * 1024, 1, 256), &[]),
    case("publish-one", "128 B, one in flight", publish(128, 1, 1), &[]),
    case("paced", "128 B, at 30 % of the rate with 256 in flight", Work::Paced, PACED),
    case("fetch", "durable fetch of 1,000, no acks, 128 B", Work::Fetch { acks: false }, &[]),
    case("fetch-acks", "durable fetch of 1,000, acks, 128 B", Work::Fetch { acks: true }, &[]),
    case("confirm-one", "1 worker, confirmed acks, 128 B", Work::Confirm { workers: 1 }, &[]),
    case("confirm-many", "16 workers, confirmed acks, 128 B", Work::Confirm { workers: 16 }, &[]),
    case("failover", "kill -9 of the leader", Work::Failover, FAILOVER),
    case("idle-streams", "10,000 streams (quick: 200), a consumer each", Work::Idle(Items::Streams), STREAMS),
    case("idle-consumers", "10,000 consumers (quick: 200) of one stream", Work::Idle(Items::Consumers), CONSUMERS),
];
