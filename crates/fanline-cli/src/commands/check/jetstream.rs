//! `fanline check jetstream`: an account's use of its JetStream limits.

use clap::Args;

use super::report::{Bounds, Level, Report};
use super::{Checked, float};
use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;

/// Check that JetStream responds, and how much of its limits the account uses.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  fanline check jetstream --store-warn 75 --store-critical 90")]
pub(super) struct JetStreamCheck {
    /// Warning threshold for memory use, in percent of the limit
    #[arg(long, value_name = "PERCENT", default_value = "75")]
    mem_warn: f64,
    /// Critical threshold for memory use, in percent of the limit
    #[arg(long, value_name = "PERCENT", default_value = "90")]
    mem_critical: f64,
    /// Warning threshold for disk use, in percent of the limit
    #[arg(long, value_name = "PERCENT", default_value = "75")]
    store_warn: f64,
    /// Critical threshold for disk use, in percent of the limit
    #[arg(long, value_name = "PERCENT", default_value = "90")]
    store_critical: f64,
    /// Warning threshold for streams, in percent of the limit
    #[arg(long, value_name = "PERCENT")]
    streams_warn: Option<f64>,
    /// Critical threshold for streams, in percent of the limit
    #[arg(long, value_name = "PERCENT")]
    streams_critical: Option<f64>,
    /// Warning threshold for consumers, in percent of the limit
    #[arg(long, value_name = "PERCENT")]
    consumers_warn: Option<f64>,
    /// Critical threshold for consumers, in percent of the limit
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
        report.found(Level::Ok, "JetStream responds");
        let limits = &account.limits;
        let storage = Bounds::rising(self.store_warn, self.store_critical);
        let memory = Bounds::rising(self.mem_warn, self.mem_critical);
        let streams = Bounds::new(self.streams_warn, self.streams_critical);
        let consumers = Bounds::new(self.consumers_warn, self.consumers_critical);
        for (name, percent, used, limit, bounds) in [
            (
                ("memory", "B", "Bytes in memory"),
                ("memory_used", "%", "Used part of the memory limit"),
                account.memory,
                limits.max_memory,
                memory,
            ),
            (
                ("storage", "B", "Bytes on disk"),
                ("storage_used", "%", "Used part of the disk limit"),
                account.storage,
                limits.max_storage,
                storage,
            ),
            (
                ("streams", "", "Streams"),
                ("streams_used", "%", "Used part of the stream limit"),
                account.streams,
                limits.max_streams,
                streams,
            ),
            (
                ("consumers", "", "Consumers"),
                ("consumers_used", "%", "Used part of the consumer limit"),
                account.consumers,
                limits.max_consumers,
                consumers,
            ),
        ] {
            report.measure(name, float(used), Bounds::default());
            // Without a limit there is no percentage.
            if let Some(limit) = u64::try_from(limit).ok().filter(|limit| *limit > 0) {
                report.measure(percent, 100.0 * float(used) / float(limit), bounds);
            }
        }
        Ok(())
    }
}
