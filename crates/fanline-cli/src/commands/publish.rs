//! `fanline pub`: publishes an argument, a file, or stdin.

use std::io::{Write, stdout};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use fanline_client::jetstream::{JetStream, PublishAck};
use fanline_client::{Client, Event, OutgoingMessage};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::sync::broadcast;

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::payload::PayloadArgs;
use crate::values;

/// Publish messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline pub orders.new 'one coffee'
  fanline pub orders.new --count 1000 --sleep 10ms 'one coffee'
  fanline pub orders.new -H 'Priority: high' --file order.json
  fanline pub orders.new --jetstream 'one coffee'
  tail -f app.log | fanline pub logs.app --lines")]
pub(crate) struct PubArgs {
    /// Subject to publish to
    subject: String,
    #[command(flatten)]
    payload: PayloadArgs,
    /// Publish each line of stdin, or of --file, as a separate message
    #[arg(long)]
    lines: bool,
    /// Number of messages to publish
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = values::count,
        conflicts_with = "lines")]
    count: u64,
    /// Pause between two messages
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    sleep: Option<Duration>,
    /// Wait until a stream has stored each message, and print its sequence
    #[arg(short = 'J', long, conflicts_with = "reply")]
    jetstream: bool,
    /// Reply subject for responses
    #[arg(long, value_name = "SUBJECT")]
    reply: Option<String>,
    /// Do not print a summary
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Totals so far.
#[derive(Default)]
struct Published {
    messages: u64,
    bytes: u64,
}

impl PubArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.lines && self.payload.is_argument() {
            return Err(Failure::Usage(
                "--lines reads from stdin or --file; remove the payload argument".into(),
            ));
        }
        let headers = self.payload.headers()?;
        let mut message = OutgoingMessage {
            subject: self.subject.clone(),
            reply: self.reply.clone(),
            headers,
            payload: Bytes::new(),
        };
        if !self.lines {
            message.payload = self.payload.read()?;
        }
        let client = self.connection.connect().await?;
        let mut events = client.events();
        let mut published = Published::default();
        if self.lines {
            self.publish_lines(&client, &mut message, &mut published)
                .await?;
        } else {
            for _ in 0..self.count {
                self.publish(&client, &message, &mut published).await?;
            }
        }
        client.flush().await?;
        refused(&mut events)?;
        if !self.quiet {
            let Published { messages, bytes } = published;
            let plural = if messages == 1 { "message" } else { "messages" };
            eprintln!(
                "Published {messages} {plural}, {bytes} bytes, to \"{}\"",
                self.subject
            );
        }
        Ok(())
    }

    async fn publish(
        &self,
        client: &Client,
        message: &OutgoingMessage,
        published: &mut Published,
    ) -> Result<(), Failure> {
        if let Some(pause) = self.sleep.filter(|_| published.messages > 0) {
            // Flushes, so that buffered messages are sent before the pause.
            client.flush().await?;
            tokio::time::sleep(pause).await;
        }
        if self.jetstream {
            let ack = JetStream::new(client).publish_message(message).await?;
            writeln!(stdout(), "{}", stored(&ack))?;
        } else {
            client.publish_message(message).await?;
        }
        published.messages += 1;
        published.bytes += message.payload.len() as u64;
        Ok(())
    }

    async fn publish_lines(
        &self,
        client: &Client,
        message: &mut OutgoingMessage,
        published: &mut Published,
    ) -> Result<(), Failure> {
        let mut input = open_lines(self.payload.file.as_deref()).await?;
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).await? > 0 {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            message.payload = Bytes::copy_from_slice(&line);
            self.publish(client, message, published).await?;
            line.clear();
        }
        Ok(())
    }
}

fn stored(ack: &PublishAck) -> String {
    let known = if ack.duplicate { " (duplicate)" } else { "" };
    format!("Stored in stream {} as {}{known}", ack.stream, ack.seq)
}

async fn open_lines(file: Option<&Path>) -> Result<Box<dyn AsyncBufRead + Unpin>, Failure> {
    let Some(path) = file else {
        return Ok(Box::new(BufReader::new(tokio::io::stdin())));
    };
    let file = tokio::fs::File::open(path)
        .await
        .map_err(|error| Failure::Error(format!("cannot read {}: {error}", path.display())))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Returns the first error that the server reported, for example a missing permission. After a flush, the
/// errors of all earlier operations have arrived.
pub(crate) fn refused(events: &mut broadcast::Receiver<Event>) -> Result<(), Failure> {
    while let Ok(event) = events.try_recv() {
        if let Event::ServerError(text) = event {
            return Err(Failure::Error(format!(
                "the server refused the operation: {text}"
            )));
        }
    }
    Ok(())
}
