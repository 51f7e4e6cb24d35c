//! Publishes that belong together: stored all or none, or acknowledged many at a time.

mod atomic;
mod fast;

pub(super) use atomic::AtomicBatches;
pub(super) use fast::{FastBatches, FastReply};

/// How long the name of a batch may be.
const ID_BYTES_MAX: usize = 64;

/// After which time without a message a batch is given up, in nanoseconds since the server started.
const IDLE_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// What an acknowledgement of a batch says besides its sequence.
fn batch_members(id: &[u8], count: u64) -> Vec<u8> {
    let id = serde_json::Value::from(String::from_utf8_lossy(id));
    format!(r#","batch":{id},"count":{count}"#).into_bytes()
}
