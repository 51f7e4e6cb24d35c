//! `fanline-bench transports`: the cost of TLS, WebSocket, and permissions, Fanline compared with
//! nats-server.

mod carrier;
mod measure;
mod permissions;
mod rows;

use anyhow::Result;
use clap::Args;

use crate::comparison::{Comparison, choose};
use crate::report;
use rows::{ROWS, Row};

const TITLE: &str = "Transports: Fanline beside nats-server";

/// Rows to measure and comparison options.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this row; repeatable
    #[arg(long = "shape", value_name = "NAME")]
    rows: Vec<String>,
    /// List the rows and their targets, without measuring
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    comparison: Comparison,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        print!("{}", report::list(ROWS.iter().map(Row::case)));
        return Ok(());
    }
    let rows = choose(ROWS, &arguments.rows, |row| row.name)?;
    let site = measure::Site::new()?;
    let mut run = arguments.comparison.begin(TITLE, rows.len())?;
    run.remark(
        "Certificates are ECDSA P-256; TLS 1.3 with AES-128-GCM on both; no WebSocket compression.",
    );
    run.remark(
        "A handshake ends with the PONG to the client's first PING; sessions are not resumed.",
    );
    run.remark(
        "Permissions: two users of one server alternate, one unrestricted and one with a list of 50 allowed \
         subjects; plain TCP.",
    );
    for row in rows {
        run.measure(row.case(), |program, duration| {
            measure::measure(&site, program, row.work, duration)
        });
    }
    run.finish()
}
