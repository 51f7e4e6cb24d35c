//! Subscribers that do not read: the server must drop them, and nobody else may notice.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use super::crowd;
use super::stage::{Load, PATIENCE, Stage, add};

const SUBJECT: &str = "soak.slow";
const PAYLOAD_BYTES: usize = 64 * 1024;
/// What is published to each: far more than the server lets wait, and than the kernel's buffers hold.
const MESSAGES: usize = 400;
/// Between two of them.
const PAUSE: Duration = Duration::from_secs(2);
/// What the server may let wait for one connection.
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
                let read = timeout(PATIENCE, slow.read(&mut room)).await;
                match read.context("a slow subscriber is neither served nor dropped")? {
                    // Reset, with what was on its way, is as good as closed.
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
