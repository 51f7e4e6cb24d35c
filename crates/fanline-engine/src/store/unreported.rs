//! Records that the store removed without a request and has not reported yet.

use super::types::{Cause, Removed};

/// A list of removed records, whose buffers are reused.
#[derive(Default)]
pub(super) struct UnreportedRemovals {
    entries: Vec<Entry>,
    subjects: Vec<u8>,
}

struct Entry {
    sequence: u64,
    subject_bytes: usize,
    was_last_of_subject: bool,
    cause: Cause,
}

impl UnreportedRemovals {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn push(&mut self, removed: &Removed<'_>) {
        self.subjects.extend_from_slice(removed.subject);
        self.entries.push(Entry {
            sequence: removed.sequence,
            subject_bytes: removed.subject.len(),
            was_last_of_subject: removed.was_last_of_subject,
            cause: removed.cause,
        });
    }

    pub(super) fn drain(&mut self, each: &mut dyn FnMut(&Removed<'_>)) {
        let mut subjects = &self.subjects[..];
        for entry in self.entries.drain(..) {
            let (subject, rest) = subjects.split_at(entry.subject_bytes);
            subjects = rest;
            each(&Removed {
                sequence: entry.sequence,
                subject,
                was_last_of_subject: entry.was_last_of_subject,
                cause: entry.cause,
            });
        }
        self.subjects.clear();
    }
}
