//! Pending output of one connection: bytes in order. Small messages are copied; large bodies are references
//! to the chunks that they were read into.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A block of input bytes, shared by all outboxes that still have to write a part of it.
///
/// The inner box lets the allocator provide a large chunk as zero pages, which use no memory until they are
/// written. A large message of which no bytes arrive then costs no memory.
pub type Chunk = Arc<Box<[u8]>>;

/// Size in bytes from which a body is referenced instead of copied. Below it, a copy is cheaper than a
/// reference and one more part of a vectored write.
pub const SHARED_BYTES_MIN: usize = 4 * 1024;

/// Largest ratio of a chunk's size to the size of a pending part that references the chunk. A reference keeps
/// the whole chunk alive, so parts that are smaller in proportion are copied.
const PINNED_RATIO_MAX: usize = 8;

/// Bytes to be written to one connection.
#[derive(Default)]
pub struct Outbox {
    copied: Vec<u8>,
    /// Bytes of `copied` that are already written.
    start: usize,
    /// References in order, each with the offset in `copied` that it precedes.
    shared: VecDeque<Shared>,
    shared_bytes: usize,
    /// Number of bytes written since the connection opened.
    queued_total: u64,
    blocked: Option<Blocked>,
}

struct Shared {
    at: usize,
    chunk: Chunk,
    range: Range<usize>,
}

/// Returns whether a part is too small to keep its whole chunk alive.
fn pins_too_much(chunk: &Chunk, part: &Range<usize>) -> bool {
    part.len().saturating_mul(PINNED_RATIO_MAX) < chunk.len()
}

#[derive(Clone, Copy)]
struct Blocked {
    since: Duration,
    until_written: u64,
}

impl Outbox {
    /// Returns the number of pending bytes.
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.copied.len() - self.start + self.shared_bytes
    }

    /// Returns whether no bytes are pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending_bytes() == 0
    }

    /// Queues a copy.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        self.copied.extend_from_slice(bytes);
    }

    /// Queues copies of three parts, with a single capacity check.
    #[inline]
    pub(crate) fn append3(&mut self, a: &[u8], b: &[u8], c: &[u8]) {
        self.copied.reserve(a.len() + b.len() + c.len());
        self.copied.extend_from_slice(a);
        self.copied.extend_from_slice(b);
        self.copied.extend_from_slice(c);
    }

    /// Queues a part of a chunk without copying it. If the outbox is blocked and the part is small compared
    /// with the chunk, queues a copy.
    pub(crate) fn refer(&mut self, chunk: &Chunk, range: Range<usize>) {
        if self.blocked.is_some() && pins_too_much(chunk, &range) {
            return self.append(&chunk[range]);
        }
        self.shared_bytes += range.len();
        let at = self.copied.len();
        self.shared.push_back(Shared {
            at,
            chunk: Chunk::clone(chunk),
            range,
        });
    }

    /// Fills `parts` with the next parts to write, in order. Returns how many were set.
    pub fn parts<'a>(&'a self, parts: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut from = self.start;
        for shared in &self.shared {
            if count + 2 > parts.len() {
                return count;
            }
            if shared.at > from {
                parts[count] = IoSlice::new(&self.copied[from..shared.at]);
                count += 1;
                from = shared.at;
            }
            parts[count] = IoSlice::new(&shared.chunk[shared.range.clone()]);
            count += 1;
        }
        if from < self.copied.len() && count < parts.len() {
            parts[count] = IoSlice::new(&self.copied[from..]);
            count += 1;
        }
        count
    }

    /// Returns all pending bytes in order, segment by segment.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = self.start;
        let pieces = self.shared.iter().flat_map(move |shared| {
            let copied = &self.copied[from..shared.at];
            from = shared.at;
            [copied, &shared.chunk[shared.range.clone()]]
        });
        let last = self.shared.back().map_or(self.start, |shared| shared.at);
        pieces
            .chain([&self.copied[last..]])
            .filter(|piece| !piece.is_empty())
    }

    /// Returns the first pending bytes in order, at most `bytes_max`, segment by segment.
    pub fn slices(&self, bytes_max: usize) -> impl Iterator<Item = &[u8]> {
        let mut left = bytes_max;
        let slices = self.segments().map(move |piece| {
            let taken = &piece[..piece.len().min(left)];
            left -= taken.len();
            taken
        });
        slices.filter(|slice| !slice.is_empty())
    }

    /// Returns the pending bytes if they are contiguous, which is the common case. Returns `None` if a chunk
    /// is referenced.
    pub fn plain(&self) -> Option<&[u8]> {
        self.shared.is_empty().then(|| &self.copied[self.start..])
    }

    /// Removes written bytes from the front.
    pub fn advance(&mut self, written_bytes: usize) {
        let mut left = written_bytes;
        self.queued_total += written_bytes as u64;
        while let Some(front) = self.shared.front_mut() {
            let before = (front.at - self.start).min(left);
            self.start += before;
            left -= before;
            if left == 0 {
                break;
            }
            let taken = front.range.len().min(left);
            front.range.start += taken;
            self.shared_bytes -= taken;
            left -= taken;
            if !front.range.is_empty() {
                break;
            }
            self.shared.pop_front();
        }
        self.start += left;
        if self.is_empty() {
            self.copied.clear();
            self.start = 0;
            self.blocked = None;
        }
    }

    /// Reduces memory before the remaining bytes wait for the peer. Releases chunks of which only a small
    /// part is pending, and the capacity of written bytes. A slow peer then costs little more than its
    /// pending bytes.
    pub fn settle(&mut self) {
        let is_wasteful = |s: &Shared| pins_too_much(&s.chunk, &s.range);
        // While the outbox is blocked, `refer` queues no part that is wasteful (small compared with its
        // chunk). A part that is being written may become wasteful, but it keeps only one chunk alive, and
        // copying it would cost more.
        if self.blocked.is_none() && self.shared.iter().any(is_wasteful) {
            self.copy_out_wasteful();
        } else if self.start > self.copied.len() / 2 {
            self.copied.drain(..self.start);
            for shared in &mut self.shared {
                shared.at -= self.start;
            }
            self.start = 0;
        }
    }

    /// Copies the parts that are small compared with their chunk. The other parts remain references, because
    /// many subscribers share their chunks.
    fn copy_out_wasteful(&mut self) {
        let mut copied = Vec::with_capacity(self.copied.len() - self.start);
        let mut from = self.start;
        let shared_bytes = &mut self.shared_bytes;
        self.shared.retain_mut(|shared| {
            copied.extend_from_slice(&self.copied[from..shared.at]);
            from = shared.at;
            shared.at = copied.len();
            let is_kept = !pins_too_much(&shared.chunk, &shared.range);
            if !is_kept {
                copied.extend_from_slice(&shared.chunk[shared.range.clone()]);
                *shared_bytes -= shared.range.len();
            }
            is_kept
        });
        copied.extend_from_slice(&self.copied[from..]);
        self.copied = copied;
        self.start = 0;
    }

    /// Marks the outbox as blocked, because the peer accepts no more bytes for now. All bytes that are
    /// pending at this moment must be written within the write deadline. With `restarts_per_byte`, each
    /// written byte restarts the deadline. Returns the time at which the running deadline began.
    pub(crate) fn block(&mut self, now: Duration, restarts_per_byte: bool) -> Duration {
        let pending = match restarts_per_byte {
            true => 1,
            false => self.pending_bytes() as u64,
        };
        match self.blocked {
            Some(blocked) if self.queued_total < blocked.until_written => blocked.since,
            _ => {
                let until_written = self.queued_total + pending;
                self.blocked = Some(Blocked {
                    since: now,
                    until_written,
                });
                now
            }
        }
    }

    /// Returns the time at which the outbox became blocked, if it is blocked.
    pub(crate) fn blocked_since(&self) -> Option<Duration> {
        self.blocked.map(|b| b.since)
    }

    /// Takes the buffer of an empty outbox, so that an idle connection holds no buffer.
    pub(crate) fn take_buffer(&mut self) -> Option<Vec<u8>> {
        (self.is_empty() && self.copied.capacity() > 0).then(|| std::mem::take(&mut self.copied))
    }

    /// Lends a buffer to an outbox without one.
    pub(crate) fn lend_buffer(&mut self, buffer: Vec<u8>) {
        debug_assert!(self.copied.is_empty() && buffer.is_empty());
        self.copied = buffer;
    }

    pub(crate) fn has_buffer(&self) -> bool {
        self.copied.capacity() > 0
    }

    /// Drops all pending bytes.
    pub(crate) fn discard(&mut self) {
        *self = Outbox {
            queued_total: self.queued_total,
            ..Outbox::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize),
        Refer(usize),
        Write(usize),
        Settle,
        Block,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0usize..40).prop_map(Step::Append),
            // Parts below 32 bytes are too small to keep the chunk alive.
            (1usize..64).prop_map(Step::Refer),
            (0usize..60).prop_map(Step::Write),
            Just(Step::Settle),
            Just(Step::Block),
        ]
    }

    fn contents(outbox: &Outbox) -> Vec<u8> {
        let mut parts = [IoSlice::new(&[]); 64];
        let count = outbox.parts(&mut parts);
        let parts: Vec<u8> = parts[..count].iter().flat_map(|p| p.to_vec()).collect();
        assert_eq!(outbox.segments().collect::<Vec<_>>().concat(), parts);
        parts
    }

    proptest! {
        #[test]
        fn outbox_matches_a_plain_byte_queue(steps in prop::collection::vec(step(), 0..25)) {
            let chunk = Chunk::new((0..=255u8).collect());
            let mut outbox = Outbox::default();
            let mut model: VecDeque<u8> = VecDeque::new();
            let mut next = 0u8;
            for step in steps {
                match step {
                    Step::Append(n) => {
                        let bytes: Vec<u8> = (0..n).map(|_| { next = next.wrapping_add(7); next }).collect();
                        outbox.append(&bytes);
                        model.extend(&bytes);
                    }
                    Step::Refer(n) => {
                        outbox.refer(&chunk, n..2 * n);
                        model.extend(&chunk[n..2 * n]);
                    }
                    Step::Write(n) => {
                        let n = n.min(model.len());
                        model.drain(..n);
                        outbox.advance(n);
                    }
                    Step::Settle => outbox.settle(),
                    // Only a non-empty outbox can be blocked.
                    Step::Block => {
                        if !outbox.is_empty() {
                            outbox.block(Duration::ZERO, false);
                        }
                    }
                }
                prop_assert_eq!(outbox.pending_bytes(), model.len());
                prop_assert_eq!(contents(&outbox), model.iter().copied().collect::<Vec<_>>());
                let half: Vec<u8> = outbox.slices(model.len() / 2).flatten().copied().collect();
                prop_assert_eq!(half, model.iter().copied().take(model.len() / 2).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn write_deadline_runs_per_batch_not_per_byte() {
        let at = Duration::from_secs;
        let mut outbox = Outbox::default();
        outbox.append(&[0; 100]);
        assert_eq!(outbox.block(at(1), false), at(1));
        outbox.append(&[0; 100]);
        outbox.advance(99);
        assert_eq!(
            outbox.block(at(5), false),
            at(1),
            "the first 100 bytes are not all written"
        );
        outbox.advance(1);
        assert_eq!(
            outbox.block(at(6), false),
            at(6),
            "the second 100 bytes have a deadline of their own"
        );
        outbox.advance(100);
        assert_eq!(outbox.blocked_since(), None);
    }

    #[test]
    fn per_byte_deadline_restarts_with_each_written_byte() {
        let at = Duration::from_secs;
        let mut outbox = Outbox::default();
        outbox.append(&[0; 100]);
        assert_eq!(outbox.block(at(1), true), at(1));
        assert_eq!(outbox.block(at(5), true), at(1), "nothing was written");
        outbox.advance(1);
        assert_eq!(outbox.block(at(6), true), at(6));
        outbox.advance(99);
        assert_eq!(outbox.blocked_since(), None);
    }
}
