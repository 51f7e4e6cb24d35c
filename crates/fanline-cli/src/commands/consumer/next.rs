//! `fanline consumer next`: ask a consumer for records.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::{AckPolicy, Nanos, PullRequest};

use super::receive::ReceiveArgs;
use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;
use crate::values;

/// Ask a pull consumer for records, and acknowledge them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline consumer next ORDERS billing
  fanline consumer next ORDERS billing --count 10 --no-ack
  fanline consumer next ORDERS billing --wait 1m --raw

Exit code 3 says that there was none in time.")]
pub(crate) struct NextArgs {
    /// The stream
    stream: String,
    /// The consumer
    consumer: String,
    /// How many
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = values::count)]
    count: u64,
    /// How long to wait for them
    #[arg(short, long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    wait: Duration,
    /// Priority group to ask in
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
        // Says so when there is no such consumer: a request to nobody would only time out.
        let info = jetstream
            .consumer_info(&self.stream, &self.consumer)
            .await?;
        if info.config.is_push() {
            return Err(Failure::Error(format!(
                "consumer {0} pushes to {1}: `fanline consumer sub {2} {0}`",
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
            0 => Err(Failure::NoAnswer("no message within the time".to_owned())),
            _ => Ok(()),
        }
    }
}
