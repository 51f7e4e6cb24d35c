//! The schedule of the server's counters, which are published to all servers.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Interval of the counters.
const INTERVAL: Duration = Duration::from_secs(10);
/// First interval in a cluster. It doubles, so that new servers learn of each other soon.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);
/// Shortest time between two publications, unless another server requests one.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Requests to publish the counters before their time.
#[derive(Default)]
pub(super) struct Broadcast {
    wanted: Notify,
    is_urgent: Cell<bool>,
}

impl Broadcast {
    /// Requests a publication. An urgent one is not delayed.
    pub(super) fn request(&self, is_urgent: bool) {
        self.is_urgent.set(self.is_urgent.get() || is_urgent);
        self.wanted.notify_one();
    }

    /// Waits for a request. Returns whether it is urgent.
    pub(super) async fn requested(&self) -> bool {
        self.wanted.notified().await;
        self.is_urgent.take()
    }
}

/// The time of the next publication.
pub(super) struct Schedule {
    interval: Duration,
    pub(super) next_at: Instant,
    last_at: Option<Instant>,
}

impl Schedule {
    /// Begins a schedule.
    pub(super) fn new(is_clustered: bool, now: Instant) -> Self {
        match is_clustered {
            true => Schedule {
                interval: FIRST_INTERVAL,
                next_at: now + FIRST_INTERVAL,
                last_at: None,
            },
            false => Schedule {
                interval: INTERVAL,
                next_at: now,
                last_at: None,
            },
        }
    }

    /// Records that the counters are published because it is time.
    pub(super) fn beat(&mut self, now: Instant) {
        if self.last_at.is_some() {
            self.interval = INTERVAL.min(self.interval * 2);
        }
        self.last_at = Some(now);
        self.next_at = now + self.interval;
    }

    /// Returns whether to publish the counters at a request. If they were published just now, they are published
    /// again after a pause.
    pub(super) fn allows(&mut self, is_urgent: bool, now: Instant) -> bool {
        let pause = PAUSE_MIN.min(self.interval);
        match self.last_at.map(|last| last + pause) {
            Some(earliest) if earliest > now && !is_urgent => {
                self.next_at = self.next_at.min(earliest);
                false
            }
            _ => {
                self.last_at = Some(now);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_in_a_cluster() {
        let start = Instant::now();
        let mut schedule = Schedule::new(true, start);
        let mut times = Vec::new();
        for _ in 0..8 {
            let at = schedule.next_at;
            times.push((at - start).as_millis());
            schedule.beat(at);
        }
        assert_eq!(times, [250, 500, 1000, 2000, 4000, 8000, 16_000, 26_000]);
        let alone = Schedule::new(false, start);
        assert_eq!(alone.next_at, start);
    }

    #[test]
    fn requests_are_delayed_unless_urgent() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut schedule = Schedule::new(false, start);
        schedule.beat(start);
        assert!(!schedule.allows(false, after(100)));
        assert_eq!(schedule.next_at, after(1000));
        assert!(schedule.allows(true, after(200)));
        assert!(!schedule.allows(false, after(1100)));
        assert!(schedule.allows(false, after(1200)));
    }
}
