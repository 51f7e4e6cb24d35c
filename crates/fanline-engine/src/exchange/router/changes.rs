//! Changes of interest that were not announced yet.

/// Capacity in bytes, and in number of changes, up to which an empty list keeps its memory.
const KEPT_BYTES: usize = 16 * 1024;
const KEPT_CHANGES: usize = 512;

/// Filters with a queue group whose interest has changed. One buffer holds all bytes, so that most changes need no
/// allocation.
#[derive(Default)]
pub(crate) struct Changes {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Offsets of the end of a filter, and of the queue group that follows it.
#[derive(Clone, Copy)]
struct Place {
    begin: usize,
    filter_end: usize,
    end: usize,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a change. The queue group is empty for interest without one.
    pub(super) fn push(&mut self, filter: &[u8], queue: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(filter);
        let filter_end = self.bytes.len();
        self.bytes.extend_from_slice(queue);
        let end = self.bytes.len();
        self.places.push(Place {
            begin,
            filter_end,
            end,
        });
    }

    /// Sorts the changes. Returns each filter with each of its changed queue groups once.
    pub(crate) fn sorted(&mut self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let Changes { bytes, places } = self;
        let parts = |place: &Place| {
            let Place {
                begin,
                filter_end,
                end,
            } = *place;
            (&bytes[begin..filter_end], &bytes[filter_end..end])
        };
        places.sort_unstable_by(|one, other| parts(one).cmp(&parts(other)));
        places.dedup_by(|one, other| parts(one) == parts(other));
        places.iter().map(parts)
    }

    /// Removes all changes. Keeps some memory for further ones.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.places.clear();
        self.places.shrink_to(KEPT_CHANGES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_sorted_and_occur_once() {
        let mut changes = Changes::default();
        assert!(changes.is_empty());
        let all: [(&[u8], &[u8]); 5] = [
            (b"b", b""),
            (b"a", b"q"),
            (b"aq", b""),
            (b"a", b""),
            (b"b", b""),
        ];
        for (filter, queue) in all {
            changes.push(filter, queue);
        }
        let expected: [(&[u8], &[u8]); 4] = [(b"a", b""), (b"a", b"q"), (b"aq", b""), (b"b", b"")];
        assert_eq!(changes.sorted().collect::<Vec<_>>(), expected);
        changes.clear();
        assert!(changes.is_empty());
        assert_eq!(changes.sorted().count(), 0);
    }
}
