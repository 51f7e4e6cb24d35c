//! `fanline request`: sends a request and prints the responses.

use std::time::Duration;

use clap::Args;
use fanline_client::{Client, ClientError, OutgoingMessage};
use tokio::time::{Instant, timeout_at};

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::output::{OutputArgs, Printer};
use crate::payload::PayloadArgs;
use crate::values;

/// Send a request and print the responses.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline request menu ''
  fanline request time '' --raw --timeout 500ms
  fanline request ping '' --replies 0    all responses, until the timeout

Exit code 3 means that no response arrived in time, or that there is no responder.")]
pub(crate) struct RequestArgs {
    /// Subject to send to
    subject: String,
    #[command(flatten)]
    payload: PayloadArgs,
    /// How long to wait for all responses
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = values::duration)]
    timeout: Duration,
    /// Number of responses to wait for; 0 prints all that arrive in time
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count)]
    replies: u64,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl RequestArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let message = OutgoingMessage {
            subject: self.subject.clone(),
            reply: None,
            headers: self.payload.headers()?,
            payload: self.payload.read()?,
        };
        let client = self.connection.connect().await?;
        let mut printer = Printer::new(self.output.clone());
        if self.replies == 1 {
            printer.print(&client.request_message(&message, self.timeout).await?)?;
        } else {
            self.request_many(&client, message, &mut printer).await?;
        }
        printer.flush()?;
        Ok(())
    }

    async fn request_many(
        &self,
        client: &Client,
        mut message: OutgoingMessage,
        printer: &mut Printer,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + self.timeout;
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(&inbox).await?;
        message.reply = Some(inbox);
        client.publish_message(&message).await?;
        while self.replies == 0 || printer.printed() < self.replies {
            match timeout_at(deadline, answers.next()).await {
                Ok(Some(answer)) if answer.status() == Some(503) && answer.payload().is_empty() => {
                    return Err(ClientError::NoResponders.into());
                }
                Ok(Some(answer)) => {
                    printer.print(&answer)?;
                    printer.flush()?;
                }
                Ok(None) => return Err(Failure::Error(client.closed().await.to_string())),
                Err(_) if self.replies == 0 && printer.printed() > 0 => break,
                Err(_) => {
                    let printed = printer.printed();
                    return Err(Failure::NoAnswer(format!(
                        "{printed} answers within the timeout"
                    )));
                }
            }
        }
        Ok(())
    }
}
