//! `fanline consumer next`: ask a consumer for records.

use std::io::{Write, stdout};
use std::time::Duration;

use clap::Args;
use fanline_server::client::jetstream::{
    AckPolicy, Acknowledgement, Delivery, JetStream, Nanos, PullRequest, StoredMessage,
};

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};
use crate::{record, values};

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
    /// Do not acknowledge
    #[arg(long, conflicts_with_all = ["nak", "term"])]
    no_ack: bool,
    /// Acknowledge, which is the default
    #[arg(long, hide = true, conflicts_with_all = ["nak", "term", "no_ack"])]
    ack: bool,
    /// Ask for another delivery
    #[arg(long)]
    nak: bool,
    /// Ask for no other delivery, without having dealt with it
    #[arg(long, conflicts_with = "nak")]
    term: bool,
    /// Priority group to ask in
    #[arg(
        long,
        value_name = "GROUP",
        default_value = "",
        hide_default_value = true
    )]
    group: String,
    /// Print payloads alone
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArgs,
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
                "consumer {} pushes to {}: subscribe there",
                self.consumer, info.config.deliver_subject
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
            self.print(&delivery)?;
            if expects_ack {
                self.acknowledge(&jetstream, &delivery).await?;
            }
            printed += 1;
        }
        match printed {
            0 => Err(Failure::NoAnswer("no message within the time".to_owned())),
            _ => Ok(()),
        }
    }

    async fn acknowledge(&self, jetstream: &JetStream, delivery: &Delivery) -> Result<(), Failure> {
        let how = match (self.no_ack, self.nak, self.term) {
            (true, _, _) => return Ok(()),
            (_, true, _) => Acknowledgement::Nak,
            (_, _, true) => Acknowledgement::Term,
            _ => Acknowledgement::Ack,
        };
        delivery
            .acknowledge(jetstream.client(), how, self.jetstream.timeout)
            .await?;
        Ok(())
    }

    fn print(&self, delivery: &Delivery) -> Result<(), Failure> {
        let message = StoredMessage::from(delivery);
        if self.json.json {
            let mut value = record::to_json(&message);
            value["delivered"] = delivery.delivered.into();
            value["consumer_seq"] = delivery.consumer_sequence.into();
            value["pending"] = delivery.pending.into();
            writeln!(stdout(), "{value}")?;
            return Ok(());
        }
        record::print(&message, self.raw)?;
        if !self.raw && delivery.delivered > 1 {
            eprintln!("Delivered {} times", delivery.delivered);
        }
        Ok(())
    }
}
