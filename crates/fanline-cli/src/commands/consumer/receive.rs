//! Output and acknowledgement of delivered messages.

use std::io::{Write, stdout};

use clap::Args;
use fanline_client::jetstream::{Acknowledgement, Delivery, JetStream, StoredMessage};

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};
use crate::record;

/// How messages are printed and acknowledged.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ReceiveArgs {
    /// Do not acknowledge
    #[arg(long, conflicts_with_all = ["nak", "term"])]
    no_ack: bool,
    /// Acknowledge, which is the default
    #[arg(long, hide = true, conflicts_with_all = ["nak", "term", "no_ack"])]
    ack: bool,
    /// Reject messages, so that they are redelivered
    #[arg(long)]
    nak: bool,
    /// Terminate messages, so that they are never redelivered
    #[arg(long, conflicts_with = "nak")]
    term: bool,
    /// Print payloads only
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArgs,
}

impl ReceiveArgs {
    /// Acknowledges a message as configured.
    pub(crate) async fn acknowledge(
        self,
        jetstream: &JetStream,
        delivery: &Delivery,
        args: &JetStreamArgs,
    ) -> Result<(), Failure> {
        let how = match (self.no_ack, self.nak, self.term) {
            (true, _, _) => return Ok(()),
            (_, true, _) => Acknowledgement::Nak,
            (_, _, true) => Acknowledgement::Term,
            _ => Acknowledgement::Ack,
        };
        delivery
            .acknowledge(jetstream.client(), how, args.timeout)
            .await?;
        Ok(())
    }

    pub(crate) fn print(self, delivery: &Delivery) -> Result<(), Failure> {
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
