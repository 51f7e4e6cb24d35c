//! The measured rows and their targets. Runs and reports use the same list.

use crate::comparison::{self, Case, Shown, at_least, at_most, case};
use crate::report::metric::Metric;
use crate::report::target::Limit;

/// One kind of load.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Whether the second and the third server are nats-servers in any case.
    pub(crate) is_mixed: bool,
    pub(crate) work: Work,
}

/// The generator's work for a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// One publisher at the first server at full speed. One subscriber is at the second server; several are at all
    /// servers in turn.
    Throughput {
        subscribers: usize,
        payload_bytes: usize,
    },
    /// A client at the first server and a service at the second one, with one request at a time.
    Requests { payload_bytes: usize },
    /// The same with 10,000 requests each second at fixed times, beside 200,000 messages each second from the first
    /// server to the second one.
    PacedRequests { payload_bytes: usize },
    /// Three servers start and connect.
    Mesh,
    /// The third server joins, and learns the subjects of a client of the first one.
    Interest { subjects: usize },
    /// A client of the first server subscribes and unsubscribes, and the others learn of it.
    Churn,
}

impl comparison::Work for Load {
    fn shown(&self) -> Shown {
        match self.work {
            Work::Throughput { .. } => Shown::rate("Throughput", "messages/s"),
            Work::Requests { .. } | Work::PacedRequests { .. } => {
                Shown::rate("Request and reply", "requests/s").headline(Metric::P50)
            }
            Work::Mesh => Shown::rate("Mesh", "meshes/s").headline(Metric::Ready),
            Work::Churn => Shown::rate("Interest churn", "changes/s"),
            Work::Interest { .. } => Shown::rate("Interest", "subjects/s").headline(Metric::Ready),
        }
    }
}

const LARGE_BYTES: usize = 16 * 1024;
const MANY: usize = 64;
const THOUSAND: usize = 1000;

const ONE_TARGET: &[Limit] = &[
    at_least(Metric::Rate, 3.0),
    at_most(Metric::ServerCpu, 0.35),
];
const MANY_TARGET: &[Limit] = &[at_least(Metric::Rate, 3.5)];
const REQUEST_TARGET: &[Limit] = &[at_most(Metric::P50, 0.8)];
const PACED_TARGET: &[Limit] = &[at_most(Metric::P50, 0.8), at_most(Metric::P99, 0.5)];
const INTEREST_TARGET: &[Limit] = &[at_most(Metric::Ready, 0.5)];

const fn alike(work: Work) -> Load {
    Load {
        is_mixed: false,
        work,
    }
}

const fn mixed(work: Work) -> Load {
    Load {
        is_mixed: true,
        work,
    }
}

const fn to(subscribers: usize, payload_bytes: usize) -> Work {
    Work::Throughput {
        subscribers,
        payload_bytes,
    }
}

const fn requests(payload_bytes: usize) -> Work {
    Work::Requests { payload_bytes }
}

const fn paced(payload_bytes: usize) -> Work {
    Work::PacedRequests { payload_bytes }
}

const INTEREST: Work = Work::Interest { subjects: 100_000 };

/// Every row, in the order of the reports.
#[rustfmt::skip]
pub(crate) const ROWS: &[Case<Load>] = &[
    case("one-16", "1 → 1, 16 B", alike(to(1, 16)), &[]),
    case("one-128", "1 → 1, 128 B", alike(to(1, 128)), ONE_TARGET),
    case("one-16k", "1 → 1, 16 KiB", alike(to(1, LARGE_BYTES)), &[]),
    case("many-16", "1 → 64, 16 B", alike(to(MANY, 16)), MANY_TARGET),
    case("many-128", "1 → 64, 128 B", alike(to(MANY, 128)), MANY_TARGET),
    case("many-16k", "1 → 64, 16 KiB", alike(to(MANY, LARGE_BYTES)), &[]),
    case("thousand-16", "1 → 1,000, 16 B", alike(to(THOUSAND, 16)), &[]),
    case("thousand-128", "1 → 1,000, 128 B", alike(to(THOUSAND, 128)), &[]),
    case("thousand-16k", "1 → 1,000, 16 KiB", alike(to(THOUSAND, LARGE_BYTES)), &[]),
    case("request-128", "request and reply, 128 B", alike(requests(128)), REQUEST_TARGET),
    case("paced-128", "10,000 requests/s, 128 B, beside 200,000 messages/s", alike(paced(128)), PACED_TARGET),
    case("mesh", "time to full mesh", alike(Work::Mesh), &[]),
    case("interest", "100,000 subjects to a server that joins", alike(INTEREST), INTEREST_TARGET),
    case("churn", "subjects come and go", alike(Work::Churn), &[]),
    case("mixed-one-128", "1 → 1, 128 B, to a nats-server", mixed(to(1, 128)), &[]),
    case("mixed-many-128", "1 → 64, 128 B, to a nats-server", mixed(to(MANY, 128)), &[]),
    case("mixed-request-128", "request and reply with a nats-server, 128 B", mixed(requests(128)), &[]),
    case("mixed-interest", "100,000 subjects to a nats-server that joins", mixed(INTEREST), &[]),
];
