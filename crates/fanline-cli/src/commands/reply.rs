//! `fanline reply`: answers requests with a fixed text, an echo, or a command's output.

use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use fanline_client::{Client, Headers, Message, OutgoingMessage, Subscription};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::commands::publish::refused;
use crate::connection::{ConnectionArgs, interrupted};
use crate::failure::Failure;
use crate::values;

/// Largest number of commands that run at the same time. Further requests wait.
const COMMANDS_MAX: u32 = 64;
/// Header with the exit code of a failed command, or with `signal` if a signal killed the command.
const EXIT_HEADER: &str = "Fanline-Exit-Code";

/// Answer requests.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline reply menu 'coffee, tea'
  fanline reply echo --echo
  fanline reply time --command date
  fanline reply upper --queue workers --command 'tr a-z A-Z'

The command runs in `sh -c` with the payload on stdin and FANLINE_SUBJECT set; its output is
the response. If it fails, the response has the header Fanline-Exit-Code.")]
pub(crate) struct ReplyArgs {
    /// Subject to answer on; may contain wildcards
    subject: String,
    /// Response to all requests
    #[arg(required_unless_present_any = ["echo", "command"])]
    body: Option<String>,
    /// Respond with the request's own payload and headers
    #[arg(long, conflicts_with_all = ["body", "command"])]
    echo: bool,
    /// Run a command per request, and respond with its output
    #[arg(long, value_name = "COMMAND", conflicts_with = "body")]
    command: Option<String>,
    /// Queue group, to share the work with other responders
    #[arg(short, long, value_name = "GROUP")]
    queue: Option<String>,
    /// Exit after this many requests
    #[arg(short, long, value_name = "N", value_parser = values::count)]
    count: Option<u64>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// How requests are answered.
enum Answer {
    Fixed(Bytes),
    Echo,
    Command {
        line: String,
        running: Arc<Semaphore>,
    },
}

impl ReplyArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let answer = match (&self.command, self.echo) {
            (Some(line), _) => {
                let running = Arc::new(Semaphore::new(COMMANDS_MAX as usize));
                Answer::Command {
                    line: line.clone(),
                    running,
                }
            }
            (None, true) => Answer::Echo,
            (None, false) => Answer::Fixed(self.body.clone().unwrap_or_default().into()),
        };
        let mut left = self.count.unwrap_or(u64::MAX);
        let mut client = self.connection.connect().await?;
        let mut interrupted = std::pin::pin!(interrupted());
        while left > 0 {
            let mut requests = self.subscribe(&client, left).await?;
            let is_interrupted = tokio::select! {
                () = answer.serve(&client, &mut requests, &mut left) => false,
                () = &mut interrupted => true,
            };
            if is_interrupted {
                if requests.drain().await.is_ok() {
                    answer.serve(&client, &mut requests, &mut left).await;
                }
                break;
            }
            if left > 0 {
                let reason = client.closed().await.to_string();
                client = tokio::select! {
                    client = self.connection.reconnect(&reason) => client?,
                    () = &mut interrupted => return Ok(()),
                };
            }
        }
        answer.finish().await;
        // Sends buffered responses. This fails if the server is gone.
        let _ = client.drain().await;
        Ok(())
    }

    async fn subscribe(&self, client: &Client, left: u64) -> Result<Subscription, Failure> {
        let mut events = client.events();
        let mut requests = match &self.queue {
            Some(queue) => client.queue_subscribe(&self.subject, queue).await?,
            None => client.subscribe(&self.subject).await?,
        };
        if self.count.is_some() {
            requests.unsubscribe_after(left).await?;
        }
        if client.flush().await.is_ok() {
            refused(&mut events)?;
            eprintln!("Answering requests on \"{}\"", self.subject);
        }
        Ok(requests)
    }
}

impl Answer {
    /// Answers until the subscription ends or the number of requests is reached.
    async fn serve(&self, client: &Client, requests: &mut Subscription, left: &mut u64) {
        while *left > 0 {
            let Some(request) = requests.next().await else {
                return;
            };
            *left -= 1;
            if let Some(reply) = request.reply() {
                let subject = reply.to_owned();
                self.answer(client, request, subject).await;
            } else {
                eprintln!(
                    "Ignored a message on \"{}\" without a reply subject",
                    request.subject()
                );
            }
        }
    }

    async fn answer(&self, client: &Client, request: Message, subject: String) {
        let mut answer = OutgoingMessage {
            subject,
            ..Default::default()
        };
        match self {
            Answer::Fixed(body) => answer.payload = body.clone(),
            Answer::Echo => {
                answer.payload = request.payload_bytes();
                answer.headers = request.headers().cloned().unwrap_or_default();
            }
            Answer::Command { line, running } => {
                let Ok(permit) = Arc::clone(running).acquire_owned().await else {
                    return;
                };
                let (client, line) = (client.clone(), line.clone());
                tokio::spawn(async move {
                    match run_command(&line, &request).await {
                        Ok((payload, headers)) => {
                            (answer.payload, answer.headers) = (payload, headers);
                            send(&client, &answer).await;
                        }
                        Err(error) => eprintln!("Cannot run {line:?}: {error}"),
                    }
                    drop(permit);
                });
                return;
            }
        }
        send(client, &answer).await;
    }

    /// Waits for running commands.
    async fn finish(&self) {
        if let Answer::Command { running, .. } = self {
            // With all permits returned, no command is running.
            let _ = running.acquire_many(COMMANDS_MAX).await;
        }
    }
}

async fn send(client: &Client, answer: &OutgoingMessage) {
    if let Err(error) = client.publish_message(answer).await {
        eprintln!("Cannot send the response: {error}");
    }
}

async fn run_command(line: &str, request: &Message) -> std::io::Result<(Bytes, Headers)> {
    let mut child = Command::new("sh")
        .args(["-c", line])
        .env("FANLINE_SUBJECT", request.subject())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take();
    let feed = async {
        if let Some(mut stdin) = stdin {
            // This fails if the command ignores its input.
            let _ = stdin.write_all(request.payload()).await;
        }
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), feed);
    let output = output?;
    let mut headers = Headers::new();
    if !output.status.success() {
        let code = output
            .status
            .code()
            .map_or_else(|| "signal".to_owned(), |code| code.to_string());
        eprintln!("{line:?} failed: exit code {code}");
        // Never fails, because digits and `signal` are valid header values.
        let _ = headers.append(EXIT_HEADER, &code);
    }
    Ok((output.stdout.into(), headers))
}
