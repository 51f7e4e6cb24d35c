//! `fanline sub`: prints messages until interrupted.

use std::task::{Context, Poll};
use std::time::Duration;

use clap::Args;
use fanline_client::{Client, Message, Subscription};
use futures_core::Stream;

use crate::commands::publish::refused;
use crate::connection::{ConnectionArgs, interrupted};
use crate::failure::Failure;
use crate::output::{OutputArgs, Printer};
use crate::values;

/// Largest number of messages that are printed before the output is flushed and other tasks run.
const BATCH_MESSAGES_MAX: usize = 256;

/// Subscribe and print messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline sub 'orders.*'            every order, one token below `orders`
  fanline sub 'orders.>' 'logs.>'   everything below `orders` and `logs`
  fanline sub jobs --queue workers  share the work with others in the group
  fanline sub prices --raw --count 1

Ctrl-C drains and exits. After a lost connection, reconnects and continues; messages about that go to stderr.")]
pub(crate) struct SubArgs {
    /// Subjects to subscribe to; `*` matches one token, `>` all following ones
    #[arg(required = true, value_name = "SUBJECT")]
    subjects: Vec<String>,
    /// Join a queue group: each message goes to one of its members
    #[arg(short, long, value_name = "GROUP")]
    queue: Option<String>,
    /// Exit after this many messages
    #[arg(short, long, value_name = "N", value_parser = values::count)]
    count: Option<u64>,
    /// Exit with code 3 if no message arrives for this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Why the messages of one connection ended.
enum End {
    /// Enough messages were printed, or the command was interrupted.
    Done,
    Disconnected,
    TimedOut,
}

impl SubArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.count == Some(0) {
            return Ok(());
        }
        let mut printer = Printer::new(self.output.clone());
        let mut client = self.connection.connect().await?;
        let mut interrupted = std::pin::pin!(interrupted());
        loop {
            let mut merged = self.subscribe(&client, &printer).await?;
            let end = tokio::select! {
                end = self.print_all(&mut merged, &mut printer) => end?,
                () = &mut interrupted => {
                    // After the drain, print messages that were in flight.
                    if client.drain().await.is_ok() {
                        self.print_all(&mut merged, &mut printer).await?;
                    }
                    End::Done
                }
            };
            printer.flush()?;
            match end {
                End::Done => return Ok(()),
                End::TimedOut => {
                    return Err(Failure::NoAnswer(
                        "no message arrived within the --timeout time".into(),
                    ));
                }
                End::Disconnected => {
                    let reason = client.closed().await.to_string();
                    client = tokio::select! {
                        client = self.connection.reconnect(&reason) => client?,
                        () = &mut interrupted => return Ok(()),
                    };
                }
            }
        }
    }

    async fn subscribe(&self, client: &Client, printer: &Printer) -> Result<Merged, Failure> {
        let mut events = client.events();
        let mut subscriptions = Vec::new();
        for subject in &self.subjects {
            let mut subscription = match &self.queue {
                Some(queue) => client.queue_subscribe(subject, queue).await?,
                None => client.subscribe(subject).await?,
            };
            if let Some(count) = self.count {
                // The server ends the subscription after this number of messages. Otherwise it could send
                // this client further messages of the queue group, which would be lost.
                subscription
                    .unsubscribe_after(count - printer.printed())
                    .await?;
            }
            subscriptions.push(subscription);
        }
        // If the connection is lost here, the caller notices and reconnects.
        if client.flush().await.is_ok() {
            refused(&mut events)?;
            let quoted: Vec<_> = self
                .subjects
                .iter()
                .map(|text| format!("\"{text}\""))
                .collect();
            eprintln!("Subscribed to {}", quoted.join(", "));
        }
        Ok(Merged {
            subscriptions,
            next: 0,
            dropped_reported: 0,
        })
    }

    async fn print_all(&self, merged: &mut Merged, printer: &mut Printer) -> Result<End, Failure> {
        let mut batch = Vec::with_capacity(BATCH_MESSAGES_MAX);
        loop {
            let more = std::future::poll_fn(|context| merged.poll_batch(context, &mut batch));
            let more = match self.timeout {
                None => more.await,
                Some(limit) => match tokio::time::timeout(limit, more).await {
                    Ok(more) => more,
                    Err(_) => return Ok(End::TimedOut),
                },
            };
            if !more {
                return Ok(End::Disconnected);
            }
            for message in batch.drain(..) {
                printer.print(&message)?;
                if Some(printer.printed()) == self.count {
                    return Ok(End::Done);
                }
            }
            printer.flush()?;
            merged.report_dropped();
        }
    }
}

/// Several subscriptions, read in turn.
struct Merged {
    subscriptions: Vec<Subscription>,
    next: usize,
    dropped_reported: u64,
}

impl Merged {
    /// Appends available messages to `batch`. Ready with `false` if all subscriptions have ended.
    fn poll_batch(&mut self, context: &mut Context<'_>, batch: &mut Vec<Message>) -> Poll<bool> {
        let mut is_alive = false;
        self.next = self.next.wrapping_add(1);
        let count = self.subscriptions.len();
        for at in 0..count {
            let subscription = &mut self.subscriptions[(self.next.wrapping_add(at)) % count];
            loop {
                if batch.len() >= BATCH_MESSAGES_MAX {
                    return Poll::Ready(true);
                }
                match std::pin::Pin::new(&mut *subscription).poll_next(context) {
                    Poll::Ready(Some(message)) => batch.push(message),
                    Poll::Ready(None) => break,
                    Poll::Pending => {
                        is_alive = true;
                        break;
                    }
                }
            }
        }
        match (batch.is_empty(), is_alive) {
            (false, _) => Poll::Ready(true),
            (true, true) => Poll::Pending,
            (true, false) => Poll::Ready(false),
        }
    }

    /// Reports messages that were dropped because printing was too slow.
    fn report_dropped(&mut self) {
        let dropped = self.subscriptions.iter().map(Subscription::dropped).sum();
        if dropped > self.dropped_reported {
            let newly = dropped - self.dropped_reported;
            eprintln!("Dropped {newly} messages: they arrive faster than they can be printed");
            self.dropped_reported = dropped;
        }
    }
}
