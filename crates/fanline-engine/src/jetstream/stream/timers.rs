//! Timers of a stream.

use std::time::Duration;

use super::Stream;
use crate::jetstream::{Now, Port};

/// Delay before another attempt to read the log, after a failure.
const RETRY: Duration = Duration::from_secs(1);

impl Stream {
    /// Returns the time at which to call [`handle_timeout`](Stream::handle_timeout), counted from the
    /// server's start.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        let expiry = match self.store.next_expiry() {
            Ok(expiry) => expiry.map(|at| self.since_start(at)),
            Err(_) => Some(self.clock.since_start + RETRY),
        };
        let window = self.config.duplicate_window.0;
        let oldest = self.dedupe.as_ref().and_then(|dedupe| dedupe.oldest());
        [
            expiry,
            oldest.map(|oldest| self.since_start(oldest.saturating_add(window))),
            self.schedules.next().map(|due| self.since_start(due)),
            self.atomic.next_timeout(),
            self.fast.next_timeout(),
            self.consumers.next_timeout(),
            self.next_source_timeout(),
            self.next_progress_save(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs due timers: expiry, schedules, abandoned batches, and consumers. Call [`settle`](Stream::settle)
    /// afterward.
    pub fn handle_timeout(&mut self, now: Now, port: &mut dyn Port) {
        self.clock = now;
        // Records that cannot be read now expire in a later call.
        let _ = self.store.expire(now.unix_nanos);
        self.settle_removed(port);
        let oldest = self.oldest_id();
        if let Some(dedupe) = &mut self.dedupe {
            dedupe.expire(oldest);
        }
        self.fire_schedules(port);
        self.expire_batches(port);
        self.fast.expire(now.since_start);
        self.with_consumers(now, port, |consumers, context| {
            consumers.handle_timeout(context)
        });
    }

    /// Converts a time since 1970 UTC to the time since the server's start that timers use.
    fn since_start(&self, unix_nanos: i64) -> Duration {
        let ahead = unix_nanos.saturating_sub(self.clock.unix_nanos);
        self.clock.since_start + Duration::from_nanos(u64::try_from(ahead).unwrap_or(0))
    }
}
