//! `fanline stream get`: read one record.

use clap::Args;
use fanline_client::jetstream::Wanted;

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::record;

/// Read one record.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream get ORDERS 1017
  fanline stream get ORDERS --last-for orders.new
  fanline stream get ORDERS --first-for 'orders.*'")]
pub(crate) struct GetArgs {
    /// The stream
    stream: String,
    /// Its sequence
    #[arg(required_unless_present_any = ["last_for", "first_for"])]
    id: Option<u64>,
    /// The last of a subject
    #[arg(short = 'S', long, value_name = "SUBJECT", conflicts_with = "id")]
    last_for: Option<String>,
    /// The first of the subjects that match
    #[arg(long, value_name = "SUBJECT", conflicts_with_all = ["id", "last_for"])]
    first_for: Option<String>,
    /// Print the payload alone
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
