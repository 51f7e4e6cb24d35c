//! Whether one server knows what is wanted at another.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::connection::{Connection, STALL_LIMIT};
use super::frames;

/// Between two probes.
const AGAIN: Duration = Duration::from_millis(1);

/// What probes are sent to begins so.
const PROBE: &str = "probe";

/// A link may take that long to come up, and to tell everything.
const LINK_LIMIT: Duration = Duration::from_secs(60);

/// Gives each probe a subject of its own.
static PROBES: AtomicU32 = AtomicU32::new(0);

/// A subject that nobody has subscribed to before.
pub(crate) fn new_subject() -> String {
    // Relaxed: nothing else depends on the number.
    format!("{PROBE}.{}", PROBES.fetch_add(1, Ordering::Relaxed))
}

/// Returns once the server at `publishers_at` knows everything that was subscribed to at `subscribers_at`
/// before: interest is told in order, and a subject is asked for here last.
pub(crate) fn settle(publishers_at: SocketAddr, subscribers_at: SocketAddr) -> Result<()> {
    let subject = new_subject();
    let subscriber = Connection::open(subscribers_at)?;
    subscriber.subscribe(&subject, None, 1)?;
    wait_until_known(&Connection::open(publishers_at)?, &subscriber, &subject)
}

/// Publishes to `subject` until `subscriber` gets something, and leaves what it gets unread but for the
/// first bytes. The last subscription of `subscriber` must be for this.
pub(crate) fn wait_until_known(
    publisher: &Connection,
    subscriber: &Connection,
    subject: &str,
) -> Result<()> {
    let probe = frames::publish(subject, b"");
    let (mut sending, mut receiving) = (publisher.stream(), subscriber.stream());
    receiving.set_read_timeout(Some(AGAIN))?;
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
            "what is wanted at one server is not known at the other"
        );
    }
    receiving.set_read_timeout(Some(STALL_LIMIT))?;
    Ok(())
}
