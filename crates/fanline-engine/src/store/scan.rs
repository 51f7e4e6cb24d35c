//! Reads a segment record by record, skipping damaged bytes.

use super::record::{self, HEAD_BYTES, Head};

/// The content at an offset of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// A record with correct checksums; the body's checksum may be unverified.
    Intact(Head),
    /// A record whose body is damaged.
    Damaged(Head),
    /// Bytes that are not a record, with records after them.
    Hole {
        /// Number of bytes.
        bytes: usize,
    },
}

/// Iterates over the records of a segment.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    salt: u32,
    /// Highest sequence of a message so far. Later messages must exceed it.
    last: u64,
    checks_bodies: bool,
}

impl<'a> Scanner<'a> {
    /// Starts at an offset. Without `checks_bodies`, checksums of bodies are not verified.
    pub(super) fn new(bytes: &'a [u8], from: usize, salt: u32, checks_bodies: bool) -> Self {
        Scanner {
            bytes,
            at: from,
            salt,
            last: 0,
            checks_bodies,
        }
    }

    /// Returns the end of the last record found.
    pub(super) fn end(&self) -> usize {
        self.at
    }

    /// Returns the next record or hole, and its offset.
    pub(super) fn next(&mut self) -> Option<(usize, Scanned)> {
        let at = self.at;
        let rest = self.bytes.get(at..)?;
        if let Some(head) = self.head_at(at) {
            self.at += head.len();
            if head.kind.is_message() {
                self.last = head.sequence;
            }
            let is_intact = !self.checks_bodies || record::has_valid_body(&head, rest, self.salt);
            let found = if is_intact {
                Scanned::Intact(head)
            } else {
                Scanned::Damaged(head)
            };
            return Some((at, found));
        }
        let end = self.bytes.len().saturating_sub(HEAD_BYTES - 1);
        let next = (at + 1..end).find(|place| {
            let head = self.head_at(*place);
            head.is_some_and(|head| !head.kind.is_message() || head.sequence > self.last)
        })?;
        self.at = next;
        Some((at, Scanned::Hole { bytes: next - at }))
    }

    /// Returns the head at an offset, if its checksum is valid and the bytes contain the whole record.
    fn head_at(&self, at: usize) -> Option<Head> {
        let rest = self.bytes.get(at..)?;
        Head::parse(rest, self.salt).filter(|head| head.len() <= rest.len())
    }
}
