//! `fanline check stream`: size, age, and sources of a stream.

use std::time::Duration;

use clap::Args;

use super::report::{Bounds, Level, Report};
use super::{Checked, float};
use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;
use crate::values;

/// Check the size, the age, and the sources of a stream.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  fanline check stream ORDERS --msgs-critical 100000 --seen-critical 5m"
)]
pub(super) struct StreamCheck {
    /// Name of the stream
    #[arg(value_name = "STREAM", required_unless_present = "named")]
    stream: Option<String>,
    /// Name of the stream, as an option of the `nats` CLI
    #[arg(
        long = "stream",
        id = "named",
        value_name = "STREAM",
        conflicts_with = "stream"
    )]
    named: Option<String>,
    /// Warning threshold for the number of messages
    #[arg(long, value_name = "N")]
    msgs_warn: Option<u64>,
    /// Critical threshold for the number of messages
    #[arg(long, value_name = "N")]
    msgs_critical: Option<u64>,
    /// Warning threshold for stored bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    bytes_warn: Option<usize>,
    /// Critical threshold for stored bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    bytes_critical: Option<usize>,
    /// Warning threshold for the number of subjects
    #[arg(long, value_name = "N")]
    subjects_warn: Option<u64>,
    /// Critical threshold for the number of subjects
    #[arg(long, value_name = "N")]
    subjects_critical: Option<u64>,
    /// Critical number of messages that a mirror or a source lags behind
    #[arg(long, value_name = "N")]
    lag_critical: Option<u64>,
    /// Critical time since a mirror or a source was last active
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    active_critical: Option<Duration>,
    /// Critical age of the last message
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    seen_critical: Option<Duration>,
    /// Smallest number of sources
    #[arg(long, value_name = "N")]
    min_sources: Option<usize>,
    /// Largest number of sources
    #[arg(long, value_name = "N")]
    max_sources: Option<usize>,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl StreamCheck {
    pub(super) async fn run(self) -> Checked {
        let name = self
            .stream
            .as_ref()
            .or(self.named.as_ref())
            .cloned()
            .unwrap_or_default();
        let mut report = Report::new("stream", &name);
        let outcome = self.check(&name, &mut report).await;
        (report, outcome)
    }

    async fn check(&self, name: &str, report: &mut Report) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.stream_info(name).await?;
        let state = &info.state;
        let counts = |warning: Option<u64>, critical: Option<u64>| {
            Bounds::new(warning.map(float), critical.map(float))
        };
        let bytes = |bound: Option<usize>| bound.map(|bytes| float(bytes as u64));
        report.found(Level::Ok, "the stream exists");
        report.measure(
            ("messages", "", "Stored messages"),
            float(state.messages),
            counts(self.msgs_warn, self.msgs_critical),
        );
        report.measure(
            ("bytes", "B", "Stored bytes"),
            float(state.bytes),
            Bounds::new(bytes(self.bytes_warn), bytes(self.bytes_critical)),
        );
        report.measure(
            ("subjects", "", "Stored subjects"),
            float(state.num_subjects),
            counts(self.subjects_warn, self.subjects_critical),
        );
        let consumers = ("consumers", "", "Consumers");
        report.measure(consumers, float(state.consumer_count), Bounds::default());
        if let Some(most) = self.seen_critical {
            match super::consumer::age(Some(state.last_ts)) {
                Some(age) => report.measure(
                    ("last_message_age", "s", "Age of the last message"),
                    age,
                    Bounds::new(None, Some(most.as_secs_f64())),
                ),
                None => report.found(Level::Critical, "the stream is empty"),
            }
        }
        if let Some(lost) = state.lost.as_ref().filter(|lost| lost.messages > 0) {
            let text = format!("{} messages were lost on disk", lost.messages);
            report.found(Level::Critical, text);
        }
        self.origins(&info, report);
        Ok(())
    }

    /// Checks the stream's mirror and sources.
    fn origins(&self, info: &fanline_client::jetstream::StreamInfo, report: &mut Report) {
        let sources = info.sources.len();
        if self.min_sources.is_some_and(|fewest| sources < fewest) {
            report.found(Level::Critical, format!("only {sources} sources"));
        }
        if self.max_sources.is_some_and(|most| sources > most) {
            report.found(Level::Critical, format!("{sources} sources"));
        }
        for origin in info.mirror.iter().chain(&info.sources) {
            let name = &origin.name;
            if self.lag_critical.is_some_and(|most| origin.lag >= most) {
                let text = format!("{} messages behind {name}", origin.lag);
                report.found(Level::Critical, text);
            }
            let silent = u64::try_from(origin.active).ok().map(Duration::from_nanos);
            let is_lost = |most: Duration| silent.is_none_or(|silent| silent >= most);
            if self.active_critical.is_some_and(is_lost) {
                report.found(Level::Critical, format!("{name} is not active"));
            }
        }
    }
}
