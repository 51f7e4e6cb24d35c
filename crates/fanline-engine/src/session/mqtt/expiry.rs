//! Message expiry (3.3.2.3.3).

use super::shared_subscriptions::is_shared;
use super::state::{QueuedMessage, RETAINED_TOKEN};
use crate::codec::mqtt::ttl_of;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The remaining lifetime of a message.
pub(super) enum Lifetime {
    Endless,
    Seconds(u32),
}

impl Lifetime {
    /// Returns a message's remaining lifetime (MQTT-3.3.2-6), or `None` if the message has expired
    /// (MQTT-3.3.2-5).
    pub(super) fn left(headers: &[u8], stored_at: i64, now: i64) -> Option<Self> {
        let Some(ttl) = ttl_of(headers) else {
            return Some(Lifetime::Endless);
        };
        let age = now.saturating_sub(stored_at).max(0) / NANOS_PER_SECOND;
        let left = ttl.checked_sub(u32::try_from(age).unwrap_or(u32::MAX))?;
        (left > 0).then_some(Lifetime::Seconds(left))
    }

    pub(super) fn seconds(&self) -> Option<u32> {
        match self {
            Lifetime::Endless => None,
            Lifetime::Seconds(seconds) => Some(*seconds),
        }
    }

    /// Returns the time at which the lifetime ends, in nanoseconds since 1970 UTC.
    pub(super) fn expires_at(&self, now: i64) -> Option<i64> {
        let nanos = i64::from(self.seconds()?) * NANOS_PER_SECOND;
        Some(now.saturating_add(nanos))
    }
}

impl QueuedMessage {
    /// Returns whether the message may be missing in the log when its client resumes the session.
    pub(super) fn may_be_unlogged(&self) -> bool {
        let is_retained = self.token & RETAINED_TOKEN != 0;
        is_retained || self.expires_at.is_some() && !is_shared(self.token)
    }

    /// Updates the expiry interval of a queued message (MQTT-3.3.2-6). Returns false if the message has
    /// expired (MQTT-3.3.2-5). A message that was sent before is sent again, even if it has expired
    /// (MQTT-4.3.3-7).
    pub(super) fn age(&mut self, now: i64) -> bool {
        /// Identifier of the Message Expiry Interval, which is always written first.
        const EXPIRY: u8 = 2;
        let was_sent = self.dup && !is_shared(self.token);
        let Some(expires_at) = self.expires_at.filter(|_| !was_sent) else {
            return true;
        };
        let left = expires_at.saturating_sub(now);
        let seconds = left.saturating_add(NANOS_PER_SECOND - 1) / NANOS_PER_SECOND;
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        if let [EXPIRY, interval @ ..] = &mut *self.properties
            && let Some(interval) = interval.get_mut(..4)
        {
            interval.copy_from_slice(&seconds.to_be_bytes());
        }
        left > 0
    }
}
