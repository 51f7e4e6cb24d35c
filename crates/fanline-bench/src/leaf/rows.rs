//! The measured rows and their targets. Runs and reports use the same list.

use crate::report::metric::Metric;
use crate::report::{Case, Target, at_least, at_most};

/// One kind of load.
pub(crate) struct Row {
    /// Name for `--row`.
    pub(crate) name: &'static str,
    /// Title in reports.
    pub(crate) title: &'static str,
    /// Compression of the leaf connection, in the form that configurations use.
    pub(crate) compression: &'static str,
    pub(crate) work: Work,
    pub(crate) targets: &'static [Target],
}

/// The direction of messages on the leaf connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the leaf node to the hub.
    Up,
    /// From the hub to the leaf node.
    Down,
}

/// The generator's work for a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// One publisher and one subscriber, at full speed.
    Throughput {
        direction: Direction,
        payload_bytes: usize,
    },
    /// A client and a service, with one request at a time. Requests go in `direction`, and replies in the
    /// other.
    Requests {
        direction: Direction,
        payload_bytes: usize,
    },
    /// A client subscribes to many subjects. The server at the other end must learn this interest.
    Interest {
        direction: Direction,
        subjects: usize,
    },
    /// A stream of the leaf node mirrors a stream of the hub.
    Mirror {
        messages: u64,
        /// Number of messages with `--quick`.
        messages_quick: u64,
    },
}

impl Row {
    /// Returns the row as a case of a report.
    pub(crate) fn case(&self) -> Case {
        let (rate, headline) = match self.work {
            Work::Throughput { .. } | Work::Mirror { .. } => ("messages/s", Metric::Rate),
            Work::Requests { .. } => ("requests/s", Metric::P50),
            Work::Interest { .. } => ("subjects/s", Metric::Ready),
        };
        Case {
            name: self.name,
            title: self.title,
            rate,
            headline,
            targets: self.targets,
        }
    }

    /// Returns the direction and size of messages, if the row measures throughput without compression.
    pub(crate) fn plain_throughput(&self) -> Option<(Direction, usize)> {
        match self.work {
            Work::Throughput {
                direction,
                payload_bytes,
            } if self.compression == PLAIN => Some((direction, payload_bytes)),
            _ => None,
        }
    }

    /// Returns whether the row uses streams.
    pub(crate) fn has_streams(&self) -> bool {
        matches!(self.work, Work::Mirror { .. })
    }
}

const LARGE_BYTES: usize = 16 * 1024;
const PLAIN: &str = "off";
const COMPRESSED: &str = "s2_fast";
const RATE_TARGET: &[Target] = &[at_least(Metric::Rate, 1.5)];
const INTEREST_TARGET: &[Target] = &[at_most(Metric::Ready, 1.0)];

const fn one_way(
    name: &'static str,
    title: &'static str,
    compression: &'static str,
    direction: Direction,
    payload_bytes: usize,
    targets: &'static [Target],
) -> Row {
    let work = Work::Throughput {
        direction,
        payload_bytes,
    };
    Row {
        name,
        title,
        compression,
        work,
        targets,
    }
}

const fn requests(
    name: &'static str,
    title: &'static str,
    compression: &'static str,
    direction: Direction,
    payload_bytes: usize,
) -> Row {
    let work = Work::Requests {
        direction,
        payload_bytes,
    };
    Row {
        name,
        title,
        compression,
        work,
        targets: &[],
    }
}

const fn interest(name: &'static str, title: &'static str, direction: Direction) -> Row {
    Row {
        name,
        title,
        compression: PLAIN,
        work: Work::Interest {
            direction,
            subjects: 100_000,
        },
        targets: INTEREST_TARGET,
    }
}

use Direction::{Down, Up};

/// Every row, in the order of the reports.
#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    one_way("up-128", "leaf → hub, 128 B", PLAIN, Up, 128, RATE_TARGET),
    one_way("down-128", "hub → leaf, 128 B", PLAIN, Down, 128, RATE_TARGET),
    one_way("up-16k", "leaf → hub, 16 KiB", PLAIN, Up, LARGE_BYTES, &[]),
    one_way("down-16k", "hub → leaf, 16 KiB", PLAIN, Down, LARGE_BYTES, &[]),
    one_way("up-128-s2", "leaf → hub, 128 B, compressed", COMPRESSED, Up, 128, &[]),
    one_way("down-128-s2", "hub → leaf, 128 B, compressed", COMPRESSED, Down, 128, &[]),
    one_way("up-16k-s2", "leaf → hub, 16 KiB, compressed", COMPRESSED, Up, LARGE_BYTES, &[]),
    one_way("down-16k-s2", "hub → leaf, 16 KiB, compressed", COMPRESSED, Down, LARGE_BYTES, &[]),
    requests("request-up-128", "asked at the leaf, answered at the hub, 128 B", PLAIN, Up, 128),
    requests("request-down-128", "asked at the hub, answered at the leaf, 128 B", PLAIN, Down, 128),
    requests("request-up-16k", "asked at the leaf, answered at the hub, 16 KiB", PLAIN, Up, LARGE_BYTES),
    requests("request-down-16k", "asked at the hub, answered at the leaf, 16 KiB", PLAIN, Down, LARGE_BYTES),
    requests("request-up-128-s2", "asked at the leaf, 128 B, compressed", COMPRESSED, Up, 128),
    requests("request-down-128-s2", "asked at the hub, 128 B, compressed", COMPRESSED, Down, 128),
    requests("request-up-16k-s2", "asked at the leaf, 16 KiB, compressed", COMPRESSED, Up, LARGE_BYTES),
    requests("request-down-16k-s2", "asked at the hub, 16 KiB, compressed", COMPRESSED, Down, LARGE_BYTES),
    interest("interest-up", "100,000 subjects of the leaf, known at the hub", Up),
    interest("interest-down", "100,000 subjects of the hub, known at the leaf", Down),
    Row {
        name: "mirror",
        title: "mirror of 1 M × 128 B (quick: 200,000), synced",
        compression: PLAIN,
        work: Work::Mirror { messages: 1_000_000, messages_quick: 200_000 },
        targets: &[at_least(Metric::Rate, 1.0)],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_names_are_unique() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|other| other.name != row.name));
        }
    }
}
