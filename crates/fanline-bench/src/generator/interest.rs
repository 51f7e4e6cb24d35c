//! Waits until one server knows the interest of another.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::connection::{Connection, STALL_LIMIT};
use super::frames;

const RETRY_INTERVAL: Duration = Duration::from_millis(1);

const PROBE: &str = "probe";

/// Time limit for two servers to connect and to exchange all interest.
const LINK_LIMIT: Duration = Duration::from_secs(60);

/// The number of the next probe. With it, each probe has a subject of its own.
static PROBES: AtomicU32 = AtomicU32::new(0);

pub(crate) fn new_subject() -> String {
    // Relaxed: the number is independent of other data.
    format!("{PROBE}.{}", PROBES.fetch_add(1, Ordering::Relaxed))
}

/// Waits until the server at `publishers_at` knows all subscriptions that exist at `subscribers_at`. This
/// function subscribes to one more subject, and probes it until a message arrives. Servers send interest in
/// order, so all earlier interest is known then.
pub(crate) fn settle(publishers_at: SocketAddr, subscribers_at: SocketAddr) -> Result<()> {
    let subject = new_subject();
    let subscriber = Connection::open(subscribers_at)?;
    subscriber.subscribe(&subject, None, 1)?;
    wait_until_known(&Connection::open(publishers_at)?, &subscriber, &subject)
}

/// Publishes to `subject` until `subscriber` receives data. Reads only the first bytes and leaves the rest
/// unread. The subscription to `subject` must be the last one of `subscriber`.
pub(crate) fn wait_until_known(
    publisher: &Connection,
    subscriber: &Connection,
    subject: &str,
) -> Result<()> {
    let probe = frames::publish(subject, b"");
    let (mut sending, mut receiving) = (publisher.stream(), subscriber.stream());
    receiving.set_read_timeout(Some(RETRY_INTERVAL))?;
    let start = Instant::now();
    let mut buffer = [0; 256];
    loop {
        sending.write_all(&probe)?;
        publisher.flush()?;
        match receiving.read(&mut buffer) {
            Ok(0) => anyhow::bail!("the server closed the connection"),
            Ok(count) if buffer[..count].starts_with(b"MSG ") => break,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
        ensure!(
            start.elapsed() < LINK_LIMIT,
            "interest at one server is not known at the other"
        );
    }
    receiving.set_read_timeout(Some(STALL_LIMIT))?;
    Ok(())
}
