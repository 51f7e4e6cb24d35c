//! `fanline check consumer`: whether a consumer makes progress.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::Timestamp;

use super::report::{Bounds, Level, Report};
use super::{Checked, float};
use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;
use crate::values;

/// Check the progress of a consumer.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  fanline check consumer ORDERS billing --unprocessed-critical 5000"
)]
pub(super) struct ConsumerCheck {
    /// Name of the stream
    #[arg(value_name = "STREAM", required_unless_present = "named_stream")]
    stream: Option<String>,
    /// Name of the consumer
    #[arg(value_name = "CONSUMER", required_unless_present = "named")]
    consumer: Option<String>,
    /// Name of the stream, as an option of the `nats` CLI
    #[arg(
        long = "stream",
        id = "named_stream",
        value_name = "STREAM",
        conflicts_with = "stream"
    )]
    named_stream: Option<String>,
    /// Name of the consumer, as an option of the `nats` CLI
    #[arg(
        long = "consumer",
        id = "named",
        value_name = "CONSUMER",
        conflicts_with = "consumer"
    )]
    named: Option<String>,
    /// Critical number of unacknowledged messages
    #[arg(long, value_name = "N")]
    outstanding_ack_critical: Option<u64>,
    /// Critical number of waiting pull requests
    #[arg(long, value_name = "N")]
    waiting_critical: Option<u64>,
    /// Critical number of undelivered messages
    #[arg(long, value_name = "N")]
    unprocessed_critical: Option<u64>,
    /// Critical number of redelivered messages
    #[arg(long, value_name = "N")]
    redelivery_critical: Option<u64>,
    /// Critical time since the last delivery
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    last_delivery_critical: Option<Duration>,
    /// Critical time since the last acknowledgement
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    last_ack_critical: Option<Duration>,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl ConsumerCheck {
    pub(super) async fn run(self) -> Checked {
        let name = |first: &Option<String>, second: &Option<String>| {
            first
                .as_ref()
                .or(second.as_ref())
                .cloned()
                .unwrap_or_default()
        };
        let stream = name(&self.stream, &self.named_stream);
        let consumer = name(&self.consumer, &self.named);
        let mut report = Report::new("consumer", &format!("{stream} > {consumer}"));
        let outcome = self.check(&stream, &consumer, &mut report).await;
        (report, outcome)
    }

    async fn check(
        &self,
        stream: &str,
        consumer: &str,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.consumer_info(stream, consumer).await?;
        report.found(Level::Ok, "the consumer exists");
        for (name, help, value, critical) in [
            (
                "outstanding_acks",
                "Unacknowledged messages",
                info.num_ack_pending,
                self.outstanding_ack_critical,
            ),
            (
                "waiting_pulls",
                "Waiting pull requests",
                info.num_waiting,
                self.waiting_critical,
            ),
            (
                "unprocessed",
                "Undelivered messages",
                info.num_pending,
                self.unprocessed_critical,
            ),
            (
                "redelivered",
                "Redelivered messages",
                info.num_redelivered,
                self.redelivery_critical,
            ),
        ] {
            let bounds = Bounds::new(None, critical.map(float));
            report.measure((name, "", help), float(value), bounds);
        }
        for (name, help, at, most) in [
            (
                "last_delivery_age",
                "Time since the last delivery",
                info.delivered.last_active,
                self.last_delivery_critical,
            ),
            (
                "last_ack_age",
                "Time since the last acknowledgement",
                info.ack_floor.last_active,
                self.last_ack_critical,
            ),
        ] {
            let Some(most) = most else { continue };
            match age(at) {
                Some(age) => {
                    let bounds = Bounds::new(None, Some(most.as_secs_f64()));
                    report.measure((name, "s", help), age, bounds);
                }
                None => report.found(Level::Critical, format!("{name}: never")),
            }
        }
        Ok(())
    }
}

/// Returns the seconds since a timestamp; `None` if it is not set.
pub(super) fn age(at: Option<Timestamp>) -> Option<f64> {
    let at = at.filter(|at| !at.is_zero())?;
    let now = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
    let nanos = now.saturating_sub(at.unix_nanos());
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)).as_secs_f64())
}
