//! `fanline rtt`: measures the round trip time to a server.

use std::io::Write;
use std::time::Duration;

use clap::Args;

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::values;

/// Measure the round trip time to the server.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  fanline rtt -s nats://demo.example.com:4222 --count 10")]
pub(crate) struct RttArgs {
    /// Number of round trips
    #[arg(short, long, value_name = "N", default_value = "5", value_parser = values::count)]
    count: u64,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl RttArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let client = self.connection.connect().await?;
        let info = client.server_info();
        let mut out = std::io::stdout();
        writeln!(
            out,
            "Server: {} (version {})",
            info.server_name, info.version
        )?;
        let mut all = Vec::new();
        for _ in 0..self.count {
            let rtt = client.rtt().await?;
            writeln!(out, "RTT: {rtt:.3?}")?;
            all.push(rtt);
        }
        if let (Some(min), Ok(count)) = (all.iter().min(), u32::try_from(all.len())) {
            let average = all.iter().sum::<Duration>() / count;
            writeln!(out, "Average: {average:.3?}, minimum: {min:.3?}")?;
        }
        Ok(())
    }
}
