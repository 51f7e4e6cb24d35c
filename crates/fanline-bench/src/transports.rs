//! `fanline-bench transports`: the cost of TLS, WebSocket, and permissions, Fanline compared with
//! nats-server.

mod carrier;
mod measure;
mod permissions;
pub(crate) mod rows;

use anyhow::Result;

use crate::comparison::{Comparison, no_others};
use rows::ROWS;

const TITLE: &str = "Transports: Fanline beside nats-server";

const NOTES: [&str; 3] = [
    "Certificates are ECDSA P-256; TLS 1.3 with AES-128-GCM on both; no WebSocket compression.",
    "A handshake ends with the PONG to the client's first PING; sessions are not resumed.",
    "Permissions: two users of one server alternate, one unrestricted and one with a list of 50 allowed \
     subjects; plain TCP.",
];

/// Runs the subcommand.
pub(crate) fn run(comparison: &Comparison) -> Result<()> {
    comparison.run(TITLE, ROWS, &NOTES, no_others, |run, row| {
        let site = measure::Site::new()?;
        run.measure(row, |program, duration| {
            measure::measure(&site, program, row.work, duration)
        });
        Ok(())
    })
}
