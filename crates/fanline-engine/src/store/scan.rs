//! Reading a segment record by record, around what is damaged.

use super::record::{self, HEAD_BYTES, Head};

/// What lies at a place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A record with the right checksums, or one whose body is not asked for.
    Sound(Head),
    /// A record whose body is damaged.
    Damaged(Head),
    /// Bytes that are no record, with records after them.
    Hole {
        /// How many.
        bytes: usize,
    },
}

/// Goes over the bytes of a segment.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    salt: u32,
    /// The highest sequence seen of a message: what a later one must exceed.
    last: u64,
    checks_bodies: bool,
}

impl<'a> Scanner<'a> {
    /// From an offset on. Without `checks_bodies` a damaged body is found only when it is read.
    pub(super) fn new(bytes: &'a [u8], from: usize, salt: u32, checks_bodies: bool) -> Self {
        Scanner {
            bytes,
            at: from,
            salt,
            last: 0,
            checks_bodies,
        }
    }

    /// Where the records end that were found.
    pub(super) fn end(&self) -> usize {
        self.at
    }

    /// The next record or hole, and where it begins.
    pub(super) fn next(&mut self) -> Option<(usize, Found)> {
        let at = self.at;
        let rest = self.bytes.get(at..)?;
        if let Some(head) = self.head_at(at) {
            self.at += head.len();
            if head.kind.is_message() {
                self.last = head.sequence;
            }
            let is_sound = !self.checks_bodies || record::is_body_sound(&head, rest, self.salt);
            let found = if is_sound {
                Found::Sound(head)
            } else {
                Found::Damaged(head)
            };
            return Some((at, found));
        }
        let end = self.bytes.len().saturating_sub(HEAD_BYTES - 1);
        let next = (at + 1..end).find(|place| {
            let head = self.head_at(*place);
            head.is_some_and(|head| !head.kind.is_message() || head.sequence > self.last)
        })?;
        self.at = next;
        Some((at, Found::Hole { bytes: next - at }))
    }

    /// A whole record with a sound head.
    fn head_at(&self, at: usize) -> Option<Head> {
        let rest = self.bytes.get(at..)?;
        Head::parse(rest, self.salt).filter(|head| head.len() <= rest.len())
    }
}
