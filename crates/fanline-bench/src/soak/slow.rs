//! Subscribers that do not read. The server must disconnect them without an effect on others.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use super::crowd;
use super::stage::{Load, Stage, TIMEOUT, add};

const SUBJECT: &str = "soak.slow";
const PAYLOAD_BYTES: usize = 64 * 1024;
/// Number of messages that are published to each subscriber. They are far more than the server queues and the
/// kernel buffers.
const MESSAGES: usize = 400;
/// Pause between two subscribers.
const PAUSE: Duration = Duration::from_secs(2);
/// The server's limit on pending bytes per connection.
pub(super) const PENDING_MAX: &str = "4MB";

pub(super) struct Slow;

impl Load for Slow {
    const NAME: &'static str = "slow subscribers";

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        let publisher = stage.connect("soak to the slow").await?;
        let payload = bytes::Bytes::from(vec![b'x'; PAYLOAD_BYTES]);
        while !stage.is_ending() {
            let mut slow = crowd::open(stage.nats, &format!("SUB {SUBJECT} 1\r\n")).await?;
            for _ in 0..MESSAGES {
                publisher.publish(SUBJECT, payload.clone()).await?;
            }
            publisher.flush().await?;
            let mut room = vec![0; PAYLOAD_BYTES];
            let mut got = 0;
            loop {
                let read = timeout(TIMEOUT, slow.read(&mut room)).await;
                match read.context("a slow subscriber is neither served nor dropped")? {
                    // The kernel may report a reset instead of a close while data is in transit.
                    Ok(0) | Err(_) => break,
                    Ok(count) => got += count,
                }
                let all = MESSAGES * PAYLOAD_BYTES;
                ensure!(got < all, "a subscriber that did not read got everything");
            }
            add(&stage.counts.dropped_as_slow, 1);
            sleep(PAUSE).await;
        }
        Ok(())
    }
}
