//! Decides when a large, nearly empty collection releases its unused capacity.

/// Capacity in items up to which a collection is never shrunk.
const CAPACITY_MIN: usize = 4096;

/// Decides after which removals a collection is shrunk. The first shrink is due when only an eighth of the
/// capacity is still in use. This shrink may release little memory, because an item may occupy the last slot.
/// Therefore a further shrink is due whenever half of the remaining items are gone. A million removals shrink
/// the collection about a dozen times. If one item is added and removed repeatedly, its removals do not
/// shrink the collection each time.
#[derive(Debug, Default)]
pub(crate) struct Slack {
    /// Number of remaining items at which the collection is shrunk next.
    next: usize,
    /// Whether an item was removed since the last shrink.
    has_removed: bool,
}

impl Slack {
    /// Records a removal that left `len` items. Returns whether to shrink the collection now.
    #[inline]
    pub(crate) fn is_due(&mut self, len: usize, capacity: usize) -> bool {
        if capacity <= CAPACITY_MIN {
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

    /// Returns whether to shrink a collection some time after its last removal. By then, the item that
    /// occupied the last slot may be gone.
    pub(crate) fn is_due_now(&mut self, len: usize, capacity: usize) -> bool {
        capacity > CAPACITY_MIN && len <= capacity / 8 && std::mem::take(&mut self.has_removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_empty_collection_shrinks_rarely() {
        let mut slack = Slack::default();
        let due: Vec<usize> = (0..100_000)
            .rev()
            .filter(|left| slack.is_due(*left, 100_000))
            .collect();
        assert_eq!(due[..3], [12_500, 6250, 3125]);
        assert_eq!(due.last(), Some(&0));
        assert!(!slack.is_due_now(0, 100_000));
        // An item that is added and removed at the same length does not count.
        assert!(!(0..1000).any(|_| slack.is_due(10, 100_000)));
        assert!(slack.is_due_now(10, 100_000));
        assert!(!slack.is_due(50_000, 100_000));
        assert!(!slack.is_due_now(50_000, 100_000));
        assert!(slack.is_due(12_500, 100_000));
    }

    #[test]
    fn small_collection_is_never_shrunk() {
        let mut slack = Slack::default();
        assert!(
            !(0..CAPACITY_MIN)
                .rev()
                .any(|left| slack.is_due(left, CAPACITY_MIN))
        );
    }
}
