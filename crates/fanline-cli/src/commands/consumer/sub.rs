//! `fanline consumer sub`: receives from a push consumer.

use clap::Args;
use fanline_client::Message;
use fanline_client::jetstream::{AckPolicy, Delivery};

use super::receive::ReceiveArgs;
use crate::connection::interrupted;
use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;
use crate::values;

/// Receive and acknowledge the messages of a push consumer, until interrupted.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline consumer sub ORDERS audit
  fanline consumer sub ORDERS audit --count 10 --raw")]
pub(crate) struct SubArgs {
    /// Name of the stream
    stream: String,
    /// Name of the consumer
    consumer: String,
    /// Exit after this many messages
    #[arg(short, long, value_name = "N", value_parser = values::count)]
    count: Option<u64>,
    #[command(flatten)]
    receive: ReceiveArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl SubArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream
            .consumer_info(&self.stream, &self.consumer)
            .await?;
        let config = &info.config;
        if !config.is_push() {
            return Err(Failure::Error(format!(
                "{0} is a pull consumer: use `fanline consumer next {1} {0}`",
                self.consumer, self.stream
            )));
        }
        let expects_ack = config.ack_policy != AckPolicy::None;
        let client = jetstream.client();
        let (subject, group) = (&config.deliver_subject, &config.deliver_group);
        let mut subscription = match group.is_empty() {
            true => client.subscribe(subject).await?,
            false => client.queue_subscribe(subject, group).await?,
        };
        eprintln!("Subscribed to \"{subject}\"");
        let mut interrupted = std::pin::pin!(interrupted());
        let mut taken = 0;
        while self.count.is_none_or(|count| taken < count) {
            let message = tokio::select! {
                message = subscription.next() => message,
                () = &mut interrupted => return Ok(()),
            };
            let Some(message) = message else {
                return Err(Failure::Error(client.closed().await.to_string()));
            };
            if let Some(reply) = flow_control(&message) {
                client.publish(reply, "").await?;
            } else if let Some(delivery) = Delivery::of(message) {
                self.receive.print(&delivery)?;
                if expects_ack {
                    self.receive
                        .acknowledge(&jetstream, &delivery, &self.jetstream)
                        .await?;
                }
                taken += 1;
            }
        }
        Ok(())
    }
}

/// Returns the subject of a flow control request, if the message is one.
fn flow_control(message: &Message) -> Option<&str> {
    let is_request = message.status() == Some(100);
    message.reply().filter(|_| is_request)
}
