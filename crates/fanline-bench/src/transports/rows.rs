//! What is measured, and what Fanline should reach there.

use super::carrier::Kind;
use crate::report::metric::Metric;
use crate::report::{Case, Target, at_least};

/// One kind of load.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    title: &'static str,
    pub(crate) work: Work,
    targets: &'static [Target],
}

/// What is done for a row.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// One publisher at full speed, and so many subscribers.
    Throughput {
        kind: Kind,
        subscribers: usize,
        payload_bytes: usize,
    },
    /// Connect over TLS, PING, leave, and again.
    Handshakes,
}

impl Row {
    /// As reports show it.
    pub(crate) fn case(&self) -> Case {
        let rate = match self.work {
            Work::Handshakes => "handshakes/s",
            Work::Throughput { subscribers, .. } if subscribers > 1 => "deliveries/s",
            Work::Throughput { .. } => "messages/s",
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
];
