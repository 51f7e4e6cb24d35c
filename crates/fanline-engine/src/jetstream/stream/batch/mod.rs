//! Publishes that belong together: stored all or none, or acknowledged many at a time.

mod atomic;
mod fast;

use std::time::Duration;

use super::Stream;
use crate::jetstream::BatchLimits;

pub(super) use atomic::AtomicBatches;
pub(super) use fast::{FastBatches, FastReply};

/// Most batches of all streams at a time that are stored all or none, if the server does not say.
const ATOMIC_MAX: usize = 1_000;
/// Most batches of all streams at a time that are acknowledged many at a time, if the server does not say.
const FAST_MAX: usize = 50_000;

/// How many batches are open, of one stream or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenBatches {
    /// Those that are stored all or none.
    atomic: usize,
    /// Those that are acknowledged many at a time.
    fast: usize,
}

impl OpenBatches {
    /// Those of both.
    pub fn and(self, others: OpenBatches) -> Self {
        OpenBatches {
            atomic: self.atomic + others.atomic,
            fast: self.fast + others.fast,
        }
    }

    /// Those that are not of the others.
    pub fn without(self, others: OpenBatches) -> Self {
        OpenBatches {
            atomic: self.atomic.saturating_sub(others.atomic),
            fast: self.fast.saturating_sub(others.fast),
        }
    }
}

impl Stream {
    /// How many batches have begun and not ended.
    pub fn open_batches(&self) -> OpenBatches {
        OpenBatches {
            atomic: self.atomic.len(),
            fast: self.fast.len(),
        }
    }

    /// Says how many there are of other streams.
    pub fn set_batches_elsewhere(&mut self, others: OpenBatches) {
        self.batches_elsewhere = others;
    }

    /// Says what the server grants; what it does not say is as it was made.
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

    /// When a batch is given up that has just got a message.
    fn batch_given_up_at(&self) -> Duration {
        let idle_max = self.batch_limits.idle_max.unwrap_or(IDLE_MAX);
        self.clock.since_start.saturating_add(idle_max)
    }
}

/// How long the name of a batch may be.
const ID_BYTES_MAX: usize = 64;

/// After which time without a message a batch is given up, if the server does not say.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// What an acknowledgement of a batch says besides its sequence.
fn batch_members(id: &[u8], count: u64) -> Vec<u8> {
    let id = serde_json::Value::from(String::from_utf8_lossy(id));
    format!(r#","batch":{id},"count":{count}"#).into_bytes()
}
