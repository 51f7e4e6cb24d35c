//! `fanline-bench transports`: the cost of TLS, WebSocket, and permissions, Fanline compared with
//! nats-server.

mod carrier;
mod measure;
mod permissions;

use anyhow::Result;

use crate::comparison::site::Site;
use crate::comparison::{self, Case, Comparison, Shown, at_least, case};
use crate::report::metric::Metric;
use crate::report::target::Limit;
use carrier::Kind;
use permissions::Bound;

const TITLE: &str = "Transports: Fanline beside nats-server";

const NOTES: [&str; 3] = [
    "Certificates are ECDSA P-256; TLS 1.3 with AES-128-GCM on both; no WebSocket compression.",
    "A handshake ends with the PONG to the client's first PING; sessions are not resumed.",
    "Permissions: two users of one server alternate, one unrestricted and one with a list of 50 allowed \
     subjects; plain TCP.",
];

pub(crate) fn run(comparison: &Comparison) -> Result<()> {
    comparison.run(TITLE, ROWS, &NOTES, Vec::new(), |run, row| {
        let site = Site::new(&std::env::temp_dir())?;
        let place = measure::Place::new(&site)?;
        run.measure(row, |program, duration| {
            measure::measure(&place, program, row.work, duration)
        });
        Ok(())
    })
}

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
const NEARLY_OPEN: &[Limit] = &[Limit::at_least(Metric::AgainstOpen, 0.9)];

const TWICE: &[Limit] = &[at_least(Metric::Rate, 2.0)];
const MORE: &[Limit] = &[at_least(Metric::Rate, 2.5)];

use Kind::{Tls, WebSocket};

/// Every row, in the order of the reports.
#[rustfmt::skip]
pub(crate) const ROWS: &[Case<Work>] = &[
    case("tls-publish", "TLS publish only, 128 B", one_to(Tls, 0), TWICE),
    case("tls-1-1", "TLS 1 → 1, 128 B", one_to(Tls, 1), MORE),
    case("tls-1-4", "TLS 1 → 4, 128 B", one_to(Tls, 4), MORE),
    case("ws-publish", "WebSocket publish only, 128 B", one_to(WebSocket, 0), TWICE),
    case("ws-1-1", "WebSocket 1 → 1, 128 B", one_to(WebSocket, 1), MORE),
    case("ws-1-4", "WebSocket 1 → 4, 128 B", one_to(WebSocket, 4), MORE),
    case("handshakes", "TLS handshakes, one after the other", Work::Handshakes, &[at_least(Metric::Rate, 1.0)]),
    case("allowed-1", "publish to 1 of 50 allowed subjects", allowed(1, false), NEARLY_OPEN),
    case("allowed-50", "publish to 50 allowed subjects in turn", allowed(50, false), NEARLY_OPEN),
    case("allowed-imports", "the same in an account with imports", allowed(50, true), NEARLY_OPEN),
];
