//! `fanline stream get`: prints one message.

use clap::Args;
use fanline_client::jetstream::Wanted;

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::record;

/// Print one message of a stream.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream get ORDERS 1017
  fanline stream get ORDERS --last-for orders.new
  fanline stream get ORDERS --first-for 'orders.*'")]
pub(crate) struct GetArgs {
    /// Name of the stream
    stream: String,
    /// Sequence of the message
    #[arg(required_unless_present_any = ["last_for", "first_for"])]
    id: Option<u64>,
    /// Print the last message of this subject
    #[arg(short = 'S', long, value_name = "SUBJECT", conflicts_with = "id")]
    last_for: Option<String>,
    /// Print the first message whose subject matches
    #[arg(long, value_name = "SUBJECT", conflicts_with_all = ["id", "last_for"])]
    first_for: Option<String>,
    /// Print the payload only
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl GetArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let wanted = match (self.id, &self.last_for, &self.first_for) {
            (_, Some(subject), _) => Wanted::Last(subject.clone()),
            (_, _, Some(subject)) => Wanted::First(subject.clone()),
            (id, None, None) => Wanted::Sequence(id.unwrap_or_default()),
        };
        let message = jetstream.message(&self.stream, &wanted).await?;
        if self.json.json {
            return print_json(&record::to_json(&message));
        }
        record::print(&message, self.raw)
    }
}
