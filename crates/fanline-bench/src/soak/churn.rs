//! Short-lived connections with subscriptions. Half of them unsubscribe and shut down the connection. The
//! others only close the socket.

use std::time::Duration;

use anyhow::Result;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::crowd;
use super::stage::{Load, Stage, add};

/// Number of connections that are opened together.
const BATCH: u64 = 8;
/// Pause between two batches. It limits the load to 80 connections per second, because the system reserves
/// the address of each connection for a minute.
const PAUSE: Duration = Duration::from_millis(100);
/// Number of subscriptions per connection.
const SUBSCRIPTIONS: u64 = 10;

#[derive(Default)]
pub(super) struct Churn {
    number: u64,
}

impl Load for Churn {
    const NAME: &'static str = "connections that come and go";

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        while !stage.is_ending() {
            for _ in 0..BATCH {
                self.number += 1;
                let number = self.number;
                let lines: String = (1..=SUBSCRIPTIONS)
                    .map(|sid| format!("SUB soak.churn.{number}.{sid}.* {sid}\r\n"))
                    .collect();
                let mut stream = crowd::open(stage.nats, &lines).await?;
                let own = format!("PUB soak.churn.{number}.1.a 2\r\nhi\r\n");
                stream.write_all(own.as_bytes()).await?;
                if number.is_multiple_of(2) {
                    stream.write_all(b"UNSUB 1\r\n").await?;
                    stream.shutdown().await?;
                }
            }
            add(&stage.counts.came_and_went, BATCH);
            sleep(PAUSE).await;
        }
        Ok(())
    }
}
