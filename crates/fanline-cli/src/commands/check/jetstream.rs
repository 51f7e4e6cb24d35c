//! `fanline check jetstream`: how much of what it may use an account does use.

use clap::Args;

use super::report::{Bounds, Level, Report};
use super::{Checked, float};
use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;

/// Check that streams can be kept, and how much of its limits the account uses.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  fanline check jetstream --store-warn 75 --store-critical 90")]
pub(super) struct JetStreamCheck {
    /// Percent of the memory that are worth a warning
    #[arg(long, value_name = "PERCENT", default_value = "75")]
    mem_warn: f64,
    /// Percent of the memory that are critical
    #[arg(long, value_name = "PERCENT", default_value = "90")]
    mem_critical: f64,
    /// Percent of the disk that are worth a warning
    #[arg(long, value_name = "PERCENT", default_value = "75")]
    store_warn: f64,
    /// Percent of the disk that are critical
    #[arg(long, value_name = "PERCENT", default_value = "90")]
    store_critical: f64,
    /// Percent of the streams that are worth a warning
    #[arg(long, value_name = "PERCENT")]
    streams_warn: Option<f64>,
    /// Percent of the streams that are critical
    #[arg(long, value_name = "PERCENT")]
    streams_critical: Option<f64>,
    /// Percent of the consumers that are worth a warning
    #[arg(long, value_name = "PERCENT")]
    consumers_warn: Option<f64>,
    /// Percent of the consumers that are critical
    #[arg(long, value_name = "PERCENT")]
    consumers_critical: Option<f64>,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl JetStreamCheck {
    pub(super) async fn run(self) -> Checked {
        let mut report = Report::new("jetstream", "");
        let outcome = self.check(&mut report).await;
        (report, outcome)
    }

    async fn check(&self, report: &mut Report) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let account = jetstream.account().await?;
        report.found(Level::Ok, "JetStream answers");
        let limits = &account.limits;
        let storage = Bounds::rising(self.store_warn, self.store_critical);
        let memory = Bounds::rising(self.mem_warn, self.mem_critical);
        let streams = Bounds::new(self.streams_warn, self.streams_critical);
        let consumers = Bounds::new(self.consumers_warn, self.consumers_critical);
        for (name, percent, used, limit, bounds) in [
            (
                ("memory", "B", "Bytes in memory"),
                ("memory_used", "%", "Part of the memory in use"),
                account.memory,
                limits.max_memory,
                memory,
            ),
            (
                ("storage", "B", "Bytes on disk"),
                ("storage_used", "%", "Part of the disk in use"),
                account.storage,
                limits.max_storage,
                storage,
            ),
            (
                ("streams", "", "Streams"),
                ("streams_used", "%", "Part of the streams in use"),
                account.streams,
                limits.max_streams,
                streams,
            ),
            (
                ("consumers", "", "Consumers"),
                ("consumers_used", "%", "Part of the consumers in use"),
                account.consumers,
                limits.max_consumers,
                consumers,
            ),
        ] {
            report.measure(name, float(used), Bounds::default());
            // Without a limit there is no part of it.
            if let Some(limit) = u64::try_from(limit).ok().filter(|limit| *limit > 0) {
                report.measure(percent, 100.0 * float(used) / float(limit), bounds);
            }
        }
        Ok(())
    }
}
