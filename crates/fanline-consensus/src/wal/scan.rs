//! Reading a segment's frames, and finding the next one after damage.

use super::frame::{ALIGN, HEAD_BYTES, Head, Kind, checksum, u64_at, wrong_bit};
use super::segment::AREA_BYTES;

/// A frame of a segment.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub head: Head,
    pub offset: usize,
    pub payload: Payload,
    /// The note of a compaction.
    pub note: Vec<u8>,
    /// Right bytes that should be written at an offset of the file.
    pub correction: Option<(usize, Vec<u8>)>,
}

impl Found {
    /// Returns the offset behind the frame.
    pub(super) fn end(&self) -> usize {
        self.offset + self.head.frame_bytes()
    }
}

/// The state of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Intact,
    /// One bit is wrong, so the payload was written.
    OneBit,
    /// More is wrong, or a part was never written.
    Unreadable,
}

/// Finds the frames of a segment.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    salt: u32,
    offset: usize,
    /// Position of the next frame, and the chain value before it; `None` if that frame is lost.
    next: u64,
    before: Option<u32>,
}

impl<'a> Scanner<'a> {
    /// Begins behind the area of the segment's head. `next` is the position of the first frame, `before` the
    /// chain value before it, if known.
    pub(super) fn new(bytes: &'a [u8], salt: u32, next: u64, before: Option<u32>) -> Self {
        Scanner {
            bytes,
            salt,
            offset: AREA_BYTES,
            next,
            before,
        }
    }

    /// Returns the position and the chain value that the next segment continues.
    pub(super) fn state(&self) -> (u64, Option<u32>) {
        (self.next, self.before)
    }

    /// Returns whether the head continues the frames before it.
    fn continues(&self, head: &Head) -> bool {
        match self.before {
            Some(before) => head.position == self.next && head.chain_after(before) == head.chain,
            None => head.position >= self.next,
        }
    }

    fn head_at(&self, offset: usize) -> Option<&'a [u8; HEAD_BYTES]> {
        self.bytes.get(offset..)?.first_chunk()
    }

    fn next_head(&mut self) -> Option<(Head, Option<[u8; HEAD_BYTES]>)> {
        let bytes = self.head_at(self.offset)?;
        if let Some(head) = Head::read(bytes, self.salt)
            && self.continues(&head)
        {
            return Some((head, None));
        }
        if let Some((head, corrected)) = Head::read_corrected(bytes, self.salt)
            && self.before.is_some()
            && self.continues(&head)
        {
            return Some((head, Some(corrected)));
        }
        self.search().map(|head| (head, None))
    }

    /// Finds the next intact head. A payload cannot contain one, because the salt is secret.
    fn search(&mut self) -> Option<Head> {
        let room = (self.bytes.len() - self.offset) / HEAD_BYTES;
        let positions = self.next..=self.next.saturating_add(room as u64);
        for offset in (self.offset + ALIGN..self.bytes.len()).step_by(ALIGN) {
            let bytes = self.head_at(offset)?;
            // The comparison of positions is cheaper than the checksum.
            if positions.contains(&u64_at(bytes, 8))
                && let Some(head) = Head::read(bytes, self.salt)
            {
                self.offset = offset;
                return Some(head);
            }
        }
        None
    }

    fn check_payload(&self, head: &Head) -> (Payload, Option<usize>) {
        let from = self.offset + HEAD_BYTES;
        let Some(payload) = self.bytes.get(from..self.offset + head.frame_bytes()) else {
            return (Payload::Unreadable, None);
        };
        let sum = checksum(self.salt, payload);
        if sum == head.payload_checksum {
            return (Payload::Intact, None);
        }
        match wrong_bit(sum, head.payload_checksum, payload, from) {
            Some(bit) => (Payload::OneBit, Some(bit)),
            None => (Payload::Unreadable, None),
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let (head, corrected) = self.next_head()?;
        let (mut payload, bit) = self.check_payload(&head);
        let mut correction = corrected.map(|bytes| (self.offset, bytes.to_vec()));
        let mut note = Vec::new();
        if head.kind == Kind::Compact && payload != Payload::Unreadable {
            let from = self.offset + HEAD_BYTES;
            let mut bytes = self.bytes[from..self.offset + head.frame_bytes()].to_vec();
            if let Some(bit) = bit {
                bytes[bit / 8] ^= 1 << (bit % 8);
                correction = Some((from, bytes.clone()));
                payload = Payload::Intact;
            }
            bytes.truncate(head.payload_bytes);
            note = bytes;
        }
        let found = Found {
            head,
            offset: self.offset,
            payload,
            note,
            correction,
        };
        self.offset = found.end().min(self.bytes.len());
        self.next = head.position + 1;
        self.before = Some(head.chain);
        Some(found)
    }
}
