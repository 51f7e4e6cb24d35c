//! The measured rows and their targets.

use super::carrier::Kind;
use super::permissions::Bound;
use crate::comparison::{self, Case, Limit, Shown, at_least, case};
use crate::report::metric::Metric;

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

impl comparison::Work for Work {
    fn shown(&self) -> Shown {
        match self {
            Work::Handshakes => Shown::rate("Handshakes", "handshakes/s"),
            Work::Throughput { subscribers, .. } if *subscribers > 1 => {
                Shown::rate("Throughput", "deliveries/s")
            }
            Work::Throughput { .. } => Shown::rate("Throughput", "messages/s"),
            Work::Permissions(_) => Shown::rate("Permissions", "messages/s"),
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

const fn allowed(subjects: usize, imports: bool) -> Work {
    Work::Permissions(Bound { subjects, imports })
}

/// The user with permissions must reach nine tenths of the rate of the unrestricted user.
const NEARLY_OPEN: &[Limit] = &[at_least(Metric::AgainstOpen, 0.9).alone()];

const TWICE: &[Limit] = &[at_least(Metric::Rate, 2.0)];
const MORE: &[Limit] = &[at_least(Metric::Rate, 2.5)];

/// Every row, in the order of the reports.
pub(crate) const ROWS: &[Case<Work>] = &[
    case(
        "tls-publish",
        "TLS publish only, 128 B",
        one_to(Kind::Tls, 0),
        TWICE,
    ),
    case("tls-1-1", "TLS 1 → 1, 128 B", one_to(Kind::Tls, 1), MORE),
    case("tls-1-4", "TLS 1 → 4, 128 B", one_to(Kind::Tls, 4), MORE),
    case(
        "ws-publish",
        "WebSocket publish only, 128 B",
        one_to(Kind::WebSocket, 0),
        TWICE,
    ),
    case(
        "ws-1-1",
        "WebSocket 1 → 1, 128 B",
        one_to(Kind::WebSocket, 1),
        MORE,
    ),
    case(
        "ws-1-4",
        "WebSocket 1 → 4, 128 B",
        one_to(Kind::WebSocket, 4),
        MORE,
    ),
    case(
        "handshakes",
        "TLS handshakes, one after the other",
        Work::Handshakes,
        &[at_least(Metric::Rate, 1.0)],
    ),
    case(
        "allowed-1",
        "publish to 1 of 50 allowed subjects",
        allowed(1, false),
        NEARLY_OPEN,
    ),
    case(
        "allowed-50",
        "publish to 50 allowed subjects in turn",
        allowed(50, false),
        NEARLY_OPEN,
    ),
    case(
        "allowed-imports",
        "the same in an account with imports",
        allowed(50, true),
        NEARLY_OPEN,
    ),
];
