//! The measured rows and their targets. Runs and reports use the same list.

use crate::comparison::{self, Case, Shown, at_least, at_most, case};
use crate::report::metric::Metric;
use crate::report::target::Limit;
use crate::servers::Streams;

#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Direction of the messages, or of the requests or the interest. Mirrors have the direction down.
    pub(crate) direction: Direction,
    /// Compression of the leaf connection, in the form that configurations use.
    pub(crate) compression: &'static str,
    pub(crate) work: Work,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the leaf node to the hub.
    Up,
    /// From the hub to the leaf node.
    Down,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Throughput {
        payload_bytes: usize,
    },
    /// A client and a service, with one request at a time. Replies go in the other direction.
    Requests {
        payload_bytes: usize,
    },
    /// A client subscribes to many subjects. The server at the other end must learn this interest.
    Interest {
        subjects: usize,
    },
    /// A stream of the leaf node mirrors a stream of the hub.
    Mirror {
        messages: u64,
        /// Number of messages with `--quick`.
        messages_quick: u64,
    },
}

impl comparison::Work for Load {
    fn shown(&self) -> Shown {
        match self.work {
            Work::Throughput { .. } => Shown::rate("Throughput", "messages/s"),
            Work::Mirror { .. } => Shown::rate("Mirror", "messages/s"),
            Work::Requests { .. } => {
                Shown::rate("Request and reply", "requests/s").headline(Metric::P50)
            }
            Work::Interest { .. } => Shown::rate("Interest", "subjects/s").headline(Metric::Ready),
        }
    }
}

impl Load {
    /// Returns the size of messages, if the row measures throughput without compression.
    pub(crate) fn plain_throughput(&self) -> Option<usize> {
        match self.work {
            Work::Throughput { payload_bytes } if self.compression == PLAIN => Some(payload_bytes),
            _ => None,
        }
    }

    pub(crate) fn streams(&self) -> Streams {
        match self.work {
            Work::Mirror { .. } => Streams::Configured,
            _ => Streams::None,
        }
    }

    const fn compressed(self) -> Self {
        Self {
            compression: "s2_fast",
            ..self
        }
    }
}

const LARGE_BYTES: usize = 16 * 1024;
const PLAIN: &str = "off";
const RATE_TARGET: &[Limit] = &[at_least(Metric::Rate, 1.5)];
const INTEREST_TARGET: &[Limit] = &[at_most(Metric::Ready, 1.0)];

const fn load(direction: Direction, work: Work) -> Load {
    Load {
        direction,
        compression: PLAIN,
        work,
    }
}

const fn one_way(direction: Direction, payload_bytes: usize) -> Load {
    load(direction, Work::Throughput { payload_bytes })
}

const fn requests(direction: Direction, payload_bytes: usize) -> Load {
    load(direction, Work::Requests { payload_bytes })
}

const INTEREST: Work = Work::Interest { subjects: 100_000 };

const MIRROR: Work = Work::Mirror {
    messages: 1_000_000,
    messages_quick: 200_000,
};

use Direction::{Down, Up};

/// Every row, in the order of the reports.
#[rustfmt::skip]
pub(crate) const ROWS: &[Case<Load>] = &[
    case("up-128", "leaf → hub, 128 B", one_way(Up, 128), RATE_TARGET),
    case("down-128", "hub → leaf, 128 B", one_way(Down, 128), RATE_TARGET),
    case("up-16k", "leaf → hub, 16 KiB", one_way(Up, LARGE_BYTES), &[]),
    case("down-16k", "hub → leaf, 16 KiB", one_way(Down, LARGE_BYTES), &[]),
    case("up-128-s2", "leaf → hub, 128 B, compressed", one_way(Up, 128).compressed(), &[]),
    case("down-128-s2", "hub → leaf, 128 B, compressed", one_way(Down, 128).compressed(), &[]),
    case("up-16k-s2", "leaf → hub, 16 KiB, compressed", one_way(Up, LARGE_BYTES).compressed(), &[]),
    case("down-16k-s2", "hub → leaf, 16 KiB, compressed", one_way(Down, LARGE_BYTES).compressed(), &[]),
    case("request-up-128", "asked at the leaf, answered at the hub, 128 B", requests(Up, 128), &[]),
    case("request-down-128", "asked at the hub, answered at the leaf, 128 B", requests(Down, 128), &[]),
    case("request-up-16k", "asked at the leaf, answered at the hub, 16 KiB", requests(Up, LARGE_BYTES), &[]),
    case("request-down-16k", "asked at the hub, answered at the leaf, 16 KiB", requests(Down, LARGE_BYTES), &[]),
    case("request-up-128-s2", "asked at the leaf, 128 B, compressed", requests(Up, 128).compressed(), &[]),
    case("request-down-128-s2", "asked at the hub, 128 B, compressed", requests(Down, 128).compressed(), &[]),
    case("request-up-16k-s2", "asked at the leaf, 16 KiB, compressed", requests(Up, LARGE_BYTES).compressed(), &[]),
    case("request-down-16k-s2", "asked at the hub, 16 KiB, compressed", requests(Down, LARGE_BYTES).compressed(), &[]),
    case("interest-up", "100,000 subjects of the leaf, known at the hub", load(Up, INTEREST), INTEREST_TARGET),
    case("interest-down", "100,000 subjects of the hub, known at the leaf", load(Down, INTEREST), INTEREST_TARGET),
    case("mirror", "mirror of 1 M × 128 B (quick: 200,000), synced", load(Down, MIRROR), &[at_least(Metric::Rate, 1.0)]),
];
