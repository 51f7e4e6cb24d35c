//! Batches of publishes. Atomic batches are stored completely or not at all; fast batches are acknowledged in
//! groups.

mod atomic;
mod fast;

use std::time::Duration;

use super::Stream;
use crate::jetstream::BatchLimits;

pub(super) use atomic::AtomicBatches;
pub(super) use fast::{FastBatches, FastReply};

/// Default maximum number of open atomic batches of all streams.
const ATOMIC_MAX: usize = 1_000;
/// Default maximum number of open fast batches of all streams.
const FAST_MAX: usize = 50_000;

/// Number of open batches, of one stream or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenBatches {
    /// Atomic batches.
    atomic: usize,
    /// Fast batches.
    fast: usize,
}

impl OpenBatches {
    /// Returns the sums with `others`, separately for atomic and fast batches.
    pub fn and(self, others: OpenBatches) -> Self {
        OpenBatches {
            atomic: self.atomic + others.atomic,
            fast: self.fast + others.fast,
        }
    }

    /// Returns the numbers of batches without `others`, separately for atomic and fast batches.
    pub fn without(self, others: OpenBatches) -> Self {
        OpenBatches {
            atomic: self.atomic.saturating_sub(others.atomic),
            fast: self.fast.saturating_sub(others.fast),
        }
    }
}

impl Stream {
    /// Returns the number of open batches.
    pub fn open_batches(&self) -> OpenBatches {
        OpenBatches {
            atomic: self.atomic.len(),
            fast: self.fast.len(),
        }
    }

    /// Sets the number of open batches of the account's other streams.
    pub fn set_batches_elsewhere(&mut self, others: OpenBatches) {
        self.batches_elsewhere = others;
    }

    /// Sets the limits of batches. Unset limits have defaults.
    pub fn set_batch_limits(&mut self, limits: BatchLimits) {
        self.batch_limits = limits;
    }

    fn has_room_for_atomic(&self) -> bool {
        let max = self.batch_limits.open_max.unwrap_or(ATOMIC_MAX);
        self.batches_elsewhere.and(self.open_batches()).atomic < max
    }

    fn has_room_for_fast(&self) -> bool {
        let max = self.batch_limits.open_max.unwrap_or(FAST_MAX);
        self.batches_elsewhere.and(self.open_batches()).fast < max
    }

    /// Returns the time at which a batch that receives a message now is abandoned if no other message
    /// follows.
    fn batch_abandoned_at(&self) -> Duration {
        let idle_max = self.batch_limits.idle_max.unwrap_or(IDLE_MAX);
        self.clock.since_start.saturating_add(idle_max)
    }
}

/// Maximum length of a batch id.
const ID_BYTES_MAX: usize = 64;

/// Default time without a message after which a batch is abandoned.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Returns the additional fields in the acknowledgement of a batch.
fn batch_members(id: &[u8], count: u64) -> Vec<u8> {
    let id = serde_json::Value::from(String::from_utf8_lossy(id));
    format!(r#","batch":{id},"count":{count}"#).into_bytes()
}
