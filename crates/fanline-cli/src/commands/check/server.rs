//! `fanline check server`: health of a server, over its monitoring port or its system account.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use super::report::{Bounds, Level, Report};
use super::{Checked, float};
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::monitor::MonitorArgs;
use crate::values;

/// Check a server over HTTP with --monitor, otherwise over the system account.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  fanline check server --monitor http://127.0.0.1:8222 --mem-critical 2GB --slow-critical 1")]
pub(super) struct ServerCheck {
    #[command(flatten)]
    monitor: MonitorArgs,
    /// Expected name of the server
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Warning threshold for CPU use, in percent of one core
    #[arg(long, value_name = "PERCENT")]
    cpu_warn: Option<f64>,
    /// Critical threshold for CPU use, in percent of one core
    #[arg(long, value_name = "PERCENT")]
    cpu_critical: Option<f64>,
    /// Warning threshold for memory
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    mem_warn: Option<usize>,
    /// Critical threshold for memory
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    mem_critical: Option<usize>,
    /// Warning threshold for the number of connections
    #[arg(long, value_name = "N")]
    conn_warn: Option<u64>,
    /// Critical threshold for the number of connections
    #[arg(long, value_name = "N")]
    conn_critical: Option<u64>,
    /// Warning threshold for the number of subscriptions
    #[arg(long, value_name = "N")]
    subs_warn: Option<u64>,
    /// Critical threshold for the number of subscriptions
    #[arg(long, value_name = "N")]
    subs_critical: Option<u64>,
    /// Warning threshold for the number of disconnected slow consumers
    #[arg(long, value_name = "N")]
    slow_warn: Option<u64>,
    /// Critical threshold for the number of disconnected slow consumers
    #[arg(long, value_name = "N")]
    slow_critical: Option<u64>,
    /// Warn if the server has run no longer than this
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    uptime_warn: Option<Duration>,
    /// Critical if the server has run no longer than this
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    uptime_critical: Option<Duration>,
    /// Require that clients authenticate
    #[arg(long)]
    auth_required: bool,
    /// Require that clients use TLS
    #[arg(long)]
    tls_required: bool,
    /// Require that JetStream is enabled
    #[arg(long)]
    js_required: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The checked fields of `/varz`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Varz {
    server_name: String,
    version: String,
    start: String,
    now: String,
    cpu: f64,
    mem: u64,
    connections: u64,
    subscriptions: u64,
    slow_consumers: u64,
    auth_required: bool,
    tls_required: bool,
    jetstream: serde_json::Value,
}

impl Varz {
    fn uptime_seconds(&self) -> Option<f64> {
        let start: jiff::Timestamp = self.start.parse().ok()?;
        let now: jiff::Timestamp = self.now.parse().ok()?;
        Some(now.duration_since(start).as_secs_f64())
    }
}

impl ServerCheck {
    pub(super) async fn run(self) -> Checked {
        let mut report = Report::new("server", self.name.as_deref().unwrap_or_default());
        let outcome = self.check(&mut report).await;
        (report, outcome)
    }

    async fn check(&self, report: &mut Report) -> Result<(), Failure> {
        let varz = self.ask().await?;
        let is_named = self
            .name
            .as_ref()
            .is_none_or(|name| *name == varz.server_name);
        let text = format!("{} runs version {}", varz.server_name, varz.version);
        report.found(if is_named { Level::Ok } else { Level::Critical }, text);
        self.measure(&varz, report);
        let has_jetstream = varz.jetstream.get("config").is_some();
        for (wanted, is_so, what) in [
            (self.auth_required, varz.auth_required, "authentication"),
            (self.tls_required, varz.tls_required, "TLS"),
            (self.js_required, has_jetstream, "JetStream"),
        ] {
            match (wanted, is_so) {
                (true, false) => report.found(Level::Critical, format!("{what} is disabled")),
                (true, true) => report.found(Level::Ok, format!("{what} is enabled")),
                (false, _) => {}
            }
        }
        Ok(())
    }

    fn measure(&self, varz: &Varz, report: &mut Report) {
        let counts = |warning: Option<u64>, critical: Option<u64>| {
            Bounds::new(warning.map(float), critical.map(float))
        };
        let bytes = |bound: Option<usize>| bound.map(|bytes| float(bytes as u64));
        let cpu = ("cpu", "%", "Percent of one core");
        report.measure(cpu, varz.cpu, Bounds::new(self.cpu_warn, self.cpu_critical));
        report.measure(
            ("memory", "B", "Memory of the process"),
            float(varz.mem),
            Bounds::new(bytes(self.mem_warn), bytes(self.mem_critical)),
        );
        report.measure(
            ("connections", "", "Connections"),
            float(varz.connections),
            counts(self.conn_warn, self.conn_critical),
        );
        report.measure(
            ("subscriptions", "", "Subscriptions"),
            float(varz.subscriptions),
            counts(self.subs_warn, self.subs_critical),
        );
        report.measure(
            ("slow_consumers", "", "Disconnected slow consumers"),
            float(varz.slow_consumers),
            counts(self.slow_warn, self.slow_critical),
        );
        if let Some(uptime) = varz.uptime_seconds() {
            let name = ("uptime", "s", "Time since the start");
            report.measure(name, uptime, Bounds::default());
            // A server that has run only for a short time has most likely crashed and restarted, so a low
            // number is worse.
            let is_below = |most: Option<Duration>| most.is_some_and(|m| uptime <= m.as_secs_f64());
            let text = format!("it has run for only {uptime:.0} s");
            match (is_below(self.uptime_critical), is_below(self.uptime_warn)) {
                (true, _) => report.found(Level::Critical, text),
                (false, true) => report.found(Level::Warning, text),
                (false, false) => {}
            }
        }
    }

    async fn ask(&self) -> Result<Varz, Failure> {
        /// Longest wait for a response.
        const RESPONSE_LIMIT: Duration = Duration::from_secs(5);
        if self.monitor.monitor.is_some() {
            return self.monitor.monitor(RESPONSE_LIMIT)?.get("/varz").await;
        }
        #[derive(Deserialize)]
        struct Answer {
            data: Varz,
        }
        let client = self.connection.connect().await?;
        let body = match &self.name {
            Some(name) => serde_json::json!({"server_name": name, "exact_match": true}).to_string(),
            None => String::new(),
        };
        let response = client
            .request("$SYS.REQ.SERVER.PING.VARZ", body, RESPONSE_LIMIT)
            .await;
        let answer = response.map_err(|error| {
            Failure::NoAnswer(format!(
                "the system account does not respond ({error}): connect as one of its users, or \
                 give the URL of the server's monitoring port with --monitor"
            ))
        })?;
        serde_json::from_slice::<Answer>(answer.payload())
            .map(|answer| answer.data)
            .map_err(|error| Failure::Error(format!("invalid response: {error}")))
    }
}
