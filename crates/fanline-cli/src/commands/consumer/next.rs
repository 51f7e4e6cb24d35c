//! `fanline consumer next`: pulls messages.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::{AckPolicy, Nanos, PullRequest};

use super::receive::ReceiveArgs;
use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;
use crate::values;

/// Pull messages from a consumer, and acknowledge them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline consumer next ORDERS billing
  fanline consumer next ORDERS billing --count 10 --no-ack
  fanline consumer next ORDERS billing --wait 1m --raw

Exit code 3 means that no message arrived in time.")]
pub(crate) struct NextArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    consumer: String,
    /// Number of messages
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = values::count)]
    count: u64,
    /// How long to wait for them
    #[arg(short, long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    wait: Duration,
    /// Priority group of the pull request
    #[arg(
        long,
        value_name = "GROUP",
        default_value = "",
        hide_default_value = true
    )]
    group: String,
    #[command(flatten)]
    receive: ReceiveArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl NextArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        // Check first that the consumer exists, because a pull request to a missing consumer would only time
        // out.
        let info = jetstream
            .consumer_info(&self.stream, &self.consumer)
            .await?;
        if info.config.is_push() {
            return Err(Failure::Error(format!(
                "{0} is a push consumer with target {1}: use `fanline consumer sub {2} {0}`",
                self.consumer, info.config.deliver_subject, self.stream
            )));
        }
        let expects_ack = info.config.ack_policy != AckPolicy::None;
        let request = PullRequest {
            batch: self.count,
            expires: Nanos(i64::try_from(self.wait.as_nanos()).unwrap_or(i64::MAX)),
            group: self.group.clone(),
            ..Default::default()
        };
        let mut pull = jetstream
            .pull(&self.stream, &self.consumer, &request)
            .await?;
        let mut printed = 0;
        while let Some(delivery) = pull.next().await? {
            self.receive.print(&delivery)?;
            if expects_ack {
                self.receive
                    .acknowledge(&jetstream, &delivery, &self.jetstream)
                    .await?;
            }
            printed += 1;
        }
        match printed {
            0 => Err(Failure::NoAnswer(
                "no message arrived within the --wait time".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}
