//! The measured rows and their targets.

use super::carrier::Kind;
use super::permissions::Bound;
use crate::report::metric::Metric;
use crate::report::{Case, Target, alone_at_least, at_least};

/// One kind of load.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    title: &'static str,
    pub(crate) work: Work,
    targets: &'static [Target],
}

/// The generator's work for a row.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// One publisher at full speed, with a number of subscribers.
    Throughput {
        kind: Kind,
        subscribers: usize,
        payload_bytes: usize,
    },
    /// Connect over TLS, send a PING, disconnect, and repeat.
    Handshakes,
    /// Publish with and without permissions, in turn.
    Permissions(Bound),
}

impl Row {
    /// Returns the row as a case of a report.
    pub(crate) fn case(&self) -> Case {
        let rate = match self.work {
            Work::Handshakes => "handshakes/s",
            Work::Throughput { subscribers, .. } if subscribers > 1 => "deliveries/s",
            Work::Throughput { .. } | Work::Permissions(_) => "messages/s",
        };
        Case {
            name: self.name,
            title: self.title,
            rate,
            headline: Metric::Rate,
            targets: self.targets,
        }
    }
}

const fn one_to(kind: Kind, subscribers: usize) -> Work {
    Work::Throughput {
        kind,
        subscribers,
        payload_bytes: 128,
    }
}

/// The user with permissions must reach nine tenths of the rate of the unrestricted user.
const NEARLY_OPEN: &[Target] = &[alone_at_least(Metric::AgainstOpen, 0.9)];

/// Every row, in the order of the reports.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "tls-publish",
        title: "TLS publish only, 128 B",
        work: one_to(Kind::Tls, 0),
        targets: &[at_least(Metric::Rate, 2.0)],
    },
    Row {
        name: "tls-1-1",
        title: "TLS 1 → 1, 128 B",
        work: one_to(Kind::Tls, 1),
        targets: &[at_least(Metric::Rate, 2.5)],
    },
    Row {
        name: "tls-1-4",
        title: "TLS 1 → 4, 128 B",
        work: one_to(Kind::Tls, 4),
        targets: &[at_least(Metric::Rate, 2.5)],
    },
    Row {
        name: "ws-publish",
        title: "WebSocket publish only, 128 B",
        work: one_to(Kind::WebSocket, 0),
        targets: &[at_least(Metric::Rate, 2.0)],
    },
    Row {
        name: "ws-1-1",
        title: "WebSocket 1 → 1, 128 B",
        work: one_to(Kind::WebSocket, 1),
        targets: &[at_least(Metric::Rate, 2.5)],
    },
    Row {
        name: "ws-1-4",
        title: "WebSocket 1 → 4, 128 B",
        work: one_to(Kind::WebSocket, 4),
        targets: &[at_least(Metric::Rate, 2.5)],
    },
    Row {
        name: "handshakes",
        title: "TLS handshakes, one after the other",
        work: Work::Handshakes,
        targets: &[at_least(Metric::Rate, 1.0)],
    },
    Row {
        name: "allowed-1",
        title: "publish to 1 of 50 allowed subjects",
        work: Work::Permissions(Bound {
            subjects: 1,
            imports: false,
        }),
        targets: NEARLY_OPEN,
    },
    Row {
        name: "allowed-50",
        title: "publish to 50 allowed subjects in turn",
        work: Work::Permissions(Bound {
            subjects: 50,
            imports: false,
        }),
        targets: NEARLY_OPEN,
    },
    Row {
        name: "allowed-imports",
        title: "the same in an account with imports",
        work: Work::Permissions(Bound {
            subjects: 50,
            imports: true,
        }),
        targets: NEARLY_OPEN,
    },
];
