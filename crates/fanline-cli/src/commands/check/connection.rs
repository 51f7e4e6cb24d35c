//! `fanline check connection`: whether a server is reachable, and its latency.

use std::time::{Duration, Instant};

use clap::Args;
use fanline_client::Client;

use super::Checked;
use super::report::{Bounds, Level, Report};
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::values;

/// Check that a server is reachable, responds, and delivers messages.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  fanline check connection --rtt-critical 500ms")]
pub(super) struct ConnectionCheck {
    /// Warning threshold for the time to connect
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = values::duration)]
    connect_warn: Duration,
    /// Critical threshold for the time to connect
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    connect_critical: Duration,
    /// Warning threshold for the round trip time
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = values::duration)]
    rtt_warn: Duration,
    /// Critical threshold for the round trip time
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    rtt_critical: Duration,
    /// Warning threshold for the time of a message through the server
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = values::duration)]
    req_warn: Duration,
    /// Critical threshold for the time of a message through the server
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    req_critical: Duration,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl ConnectionCheck {
    pub(super) async fn run(self) -> Checked {
        let mut report = Report::new("connection", "");
        let outcome = self.check(&mut report).await;
        (report, outcome)
    }

    async fn check(&self, report: &mut Report) -> Result<(), Failure> {
        let bounds = |warning: Duration, critical: Duration| {
            Bounds::rising(warning.as_secs_f64(), critical.as_secs_f64())
        };
        let start = Instant::now();
        let client = self.connection.connect().await?;
        let info = client.server_info();
        report.found(Level::Ok, format!("connected to {}", info.server_name));
        report.measure(
            ("connect_time", "s", "Time to connect"),
            start.elapsed().as_secs_f64(),
            bounds(self.connect_warn, self.connect_critical),
        );
        report.measure(
            ("rtt", "s", "Round trip to the server"),
            client.rtt().await?.as_secs_f64(),
            bounds(self.rtt_warn, self.rtt_critical),
        );
        report.measure(
            ("request_time", "s", "Time of a message through the server"),
            through(&client).await?.as_secs_f64(),
            bounds(self.req_warn, self.req_critical),
        );
        Ok(())
    }
}

/// Returns how long a message needs from this client through the server and back to it.
async fn through(client: &Client) -> Result<Duration, Failure> {
    /// Longest wait for the message.
    const DELIVERY_LIMIT: Duration = Duration::from_secs(5);
    let inbox = client.new_inbox();
    let mut subscription = client.subscribe(&inbox).await?;
    client.flush().await?;
    let start = Instant::now();
    client.publish(&inbox, "check").await?;
    match tokio::time::timeout(DELIVERY_LIMIT, subscription.next()).await {
        Ok(Some(_)) => Ok(start.elapsed()),
        Ok(None) => Err(Failure::Error("the connection was closed".into())),
        Err(_) => Err(Failure::NoAnswer(
            "a message was not delivered within 5 s".into(),
        )),
    }
}
