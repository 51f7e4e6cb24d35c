//! When what has grown large and is nearly empty gives its room back.

/// A place with room for so many or fewer keeps it.
const KEPT: usize = 4096;

/// Says after which removals a place is to be shrunk: when an eighth is left of what it has room for, and, as
/// somebody may sit at its very end, again whenever half of that has gone. So a million removals shrink it a
/// dozen times, and one that comes and goes does not do it again and again.
#[derive(Debug, Default)]
pub(crate) struct Slack {
    /// With so many left it is time.
    next: usize,
    /// Whether anything has gone since it was shrunk.
    has_removed: bool,
}

impl Slack {
    /// Takes note of a removal that has left so many in a place with room for `capacity`.
    #[inline]
    pub(crate) fn is_due(&mut self, len: usize, capacity: usize) -> bool {
        if capacity <= KEPT {
            return false;
        }
        self.has_removed = true;
        if len > capacity / 4 {
            self.next = capacity / 8;
            return false;
        }
        let is_due = len <= self.next;
        if is_due {
            self.next = len / 2;
            self.has_removed = false;
        }
        is_due
    }

    /// Whether to shrink a place that was looked at last a while ago: who sat at its end may have gone.
    pub(crate) fn is_due_now(&mut self, len: usize, capacity: usize) -> bool {
        capacity > KEPT && len <= capacity / 8 && std::mem::take(&mut self.has_removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shrunk_when_it_is_nearly_empty_and_seldom() {
        let mut slack = Slack::default();
        let due: Vec<usize> = (0..100_000)
            .rev()
            .filter(|left| slack.is_due(*left, 100_000))
            .collect();
        assert_eq!(due[..3], [12_500, 6250, 3125]);
        assert_eq!(due.last(), Some(&0));
        assert!(!slack.is_due_now(0, 100_000));
        // Those that come and go at the same number do not count.
        assert!(!(0..1000).any(|_| slack.is_due(10, 100_000)));
        assert!(slack.is_due_now(10, 100_000));
        assert!(!slack.is_due(50_000, 100_000));
        assert!(!slack.is_due_now(50_000, 100_000));
        assert!(slack.is_due(12_500, 100_000));
    }

    #[test]
    fn a_small_place_stays() {
        let mut slack = Slack::default();
        assert!(!(0..KEPT).rev().any(|left| slack.is_due(left, KEPT)));
    }
}
