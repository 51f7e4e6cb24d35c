//! The decision what a consumer or producer does when it cannot proceed: yield to the executor first, or wait
//! at once.
//!
//! Consumers that have run out of elements:
//!
//! While a producer on another thread sends one element after another, consumers that wait at once are woken
//! for each element. The wake-ups then take most of the time, and no consumer finds a batch. The producer
//! cannot leave consumers asleep: they would depend on the poll of another consumer, and no consumer has to
//! poll. But a consumer can yield to its executor. When it runs again, all other tasks have run, elements
//! have accumulated, and no wake-up was needed.
//!
//! If elements are rare, the yield is wasted. So a consumer yields only if another thread wakes consumers and
//! its recent yields were useful. Otherwise it tries a yield now and then.
//!
//! Producers that have run out of room:
//!
//! With several threads, the slowest consumer is a different one at each check. If the producer waits for
//! each of them in turn, it pays a heavy fence and a wake-up for a few free slots. After a yield, all
//! consumers that ran in the meantime have moved on. If the slowest consumer runs on another thread, the
//! yield returns at once. A few more yields then cost no more than a wake-up from that thread, so the caller
//! passes the number of yields that are worthwhile.

/// Number of wasted yields in a row before the caller backs off.
const FAILURES_MAX: u8 = 3;
/// Number of waits without a yield before the next attempt.
const WAITS_WITHOUT_YIELD: u8 = 16;

pub(super) struct YieldBackoff {
    /// Number of wasted yields that are still allowed before backing off.
    failures_left: u8,
    /// Number of waits without a yield that remain before the next attempt.
    waits_left: u8,
    /// Number of yields in a row so far.
    yields: u8,
}

impl YieldBackoff {
    pub(super) fn new() -> Self {
        Self {
            failures_left: 1,
            waits_left: WAITS_WITHOUT_YIELD,
            yields: 0,
        }
    }

    /// Records that the caller can proceed.
    pub(super) fn found(&mut self) {
        if self.yields > 0 {
            self.yields = 0;
            self.failures_left = FAILURES_MAX;
        }
    }

    /// Returns whether the caller, which cannot proceed, should yield. `limit` is the number of yields in a
    /// row that are worthwhile; 0 if a yield is unlikely to help.
    pub(super) fn should_yield(&mut self, limit: u8) -> bool {
        if self.yields > 0 {
            if self.yields < limit {
                self.yields += 1;
                return true;
            }
            self.yields = 0;
            self.failures_left -= 1;
            if self.failures_left == 0 {
                self.failures_left = 1;
                self.waits_left = WAITS_WITHOUT_YIELD;
            }
            return false;
        }
        if limit == 0 {
            return false;
        }
        if self.waits_left > 0 {
            self.waits_left -= 1;
            return false;
        }
        self.yields = 1;
        true
    }
}

#[cfg(test)]
#[cfg(not(fanline_loom))]
mod tests {
    use super::*;

    /// Simulates a caller that is unable to proceed at `times` attempts. Returns for each attempt whether the
    /// caller yielded once without success.
    fn wasted_yields(backoff: &mut YieldBackoff, times: usize) -> Vec<bool> {
        (0..times)
            .map(|_| backoff.should_yield(1) && !backoff.should_yield(1))
            .collect()
    }

    #[test]
    fn failed_yields_back_off_and_success_allows_three_more() {
        let mut backoff = YieldBackoff::new();
        let mut expected = vec![false; 16];
        expected.push(true);
        assert_eq!(wasted_yields(&mut backoff, 17), expected);
        assert_eq!(wasted_yields(&mut backoff, 17), expected);
        assert_eq!(wasted_yields(&mut backoff, 16), [false; 16]);
        for _ in 0..100 {
            assert!(backoff.should_yield(1));
            backoff.found();
        }
        expected.splice(0..0, [true; 3]);
        assert_eq!(wasted_yields(&mut backoff, 20), expected);
    }

    #[test]
    fn yields_up_to_given_number_in_a_row() {
        let mut backoff = YieldBackoff::new();
        assert!((0..16).all(|_| !backoff.should_yield(3)));
        let yields: Vec<_> = (0..4).map(|_| backoff.should_yield(3)).collect();
        assert_eq!(yields, [true, true, true, false]);
        // This time the limit drops to 1 after two yields.
        assert!((0..16).all(|_| !backoff.should_yield(3)));
        assert_eq!(
            [3, 3, 1].map(|limit| backoff.should_yield(limit)),
            [true, true, false]
        );
    }

    #[test]
    fn never_yields_with_limit_zero() {
        let mut backoff = YieldBackoff::new();
        assert!((0..100).all(|_| !backoff.should_yield(0)));
    }
}
