//! `fanline stream view`: prints the messages of a stream.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::{
    Delivery, Ordered, OrderedOptions, Start, StoredMessage, Timestamp,
};

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs};
use crate::{record, values};

/// Print the messages of a stream, in order.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream view ORDERS
  fanline stream view ORDERS 100 --id 5000     100 messages from sequence 5000
  fanline stream view ORDERS --since 1h --raw
  fanline stream view ORDERS --subject orders.new --json | jq .data

On a terminal, stops after each page; in a pipe, prints all messages.")]
pub(crate) struct ViewArgs {
    /// Name of the stream
    stream: String,
    /// Messages per page
    #[arg(default_value = "25", value_parser = values::count)]
    size: u64,
    /// Start at this sequence
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "since")]
    id: Option<u64>,
    /// Start with messages stored this time ago
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    since: Option<Duration>,
    /// Print messages of matching subjects only
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Print payloads only
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl ViewArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let options = OrderedOptions {
            filters: self.subject.clone().into_iter().collect(),
            start: self.start(),
            headers_only: false,
        };
        let mut ordered = jetstream.ordered(&self.stream, options).await?;
        let outcome = self.print_all(&mut ordered).await;
        ordered.close().await?;
        outcome
    }

    fn start(&self) -> Start {
        match (self.id, self.since) {
            (Some(id), _) => Start::Sequence(id),
            (None, Some(since)) => {
                let now = jiff::Timestamp::now().as_nanosecond();
                let since = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
                let nanos = i64::try_from(now.saturating_sub(since)).unwrap_or(0);
                Start::Time(Timestamp::from_unix_nanos(nanos))
            }
            (None, None) => Start::All,
        }
    }

    async fn print_all(&self, ordered: &mut Ordered) -> Result<(), Failure> {
        if ordered.pending() == 0 {
            eprintln!("No messages");
            return Ok(());
        }
        let paged = stdin().is_terminal() && stdout().is_terminal();
        let mut printed = 0;
        loop {
            let delivery = ordered.next().await?;
            let is_last = delivery.pending == 0;
            self.print(delivery)?;
            printed += 1;
            let page_is_full = paged && printed % self.size.max(1) == 0;
            if is_last || (page_is_full && !asks_for_more()?) {
                return Ok(());
            }
        }
    }

    fn print(&self, delivery: Delivery) -> Result<(), Failure> {
        let message = StoredMessage::from(&delivery);
        match self.json.json {
            true => {
                writeln!(stdout(), "{}", record::to_json(&message))?;
                Ok(())
            }
            false => record::print(&message, self.raw),
        }
    }
}

/// Waits for Enter. Returns false for `q`.
fn asks_for_more() -> Result<bool, Failure> {
    eprint!("Enter for more, q to end: ");
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer)?;
    Ok(read > 0 && !answer.trim().starts_with('q'))
}
