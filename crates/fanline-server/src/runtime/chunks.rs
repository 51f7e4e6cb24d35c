//! The buffers that connections are read into. A connection holds one only while it has to.

use std::collections::VecDeque;

use fanline_engine::Chunk;

/// How much is read at once.
pub(super) const CHUNK_BYTES: usize = 128 * 1024;
/// How many are kept for the next read.
const SPARE_MAX: usize = 4;
/// How many of those that an outbox still refers to are remembered, to be used again.
const LENT_MAX: usize = 64;

/// Buffers that are free, and those that will be.
#[derive(Default)]
pub(super) struct ChunkPool {
    spare: Vec<Chunk>,
    lent: VecDeque<Chunk>,
}

impl ChunkPool {
    /// A chunk that nobody else refers to.
    pub(super) fn take(&mut self) -> Chunk {
        if let Some(chunk) = self.spare.pop() {
            return chunk;
        }
        // The oldest was most likely written by now.
        if self
            .lent
            .front()
            .is_some_and(|chunk| Chunk::strong_count(chunk) == 1)
            && let Some(chunk) = self.lent.pop_front()
        {
            return chunk;
        }
        new_chunk(CHUNK_BYTES)
    }

    /// Takes a chunk back. An outbox may still refer to it.
    pub(super) fn give_back(&mut self, chunk: Chunk) {
        if chunk.len() != CHUNK_BYTES {
            return;
        }
        if Chunk::strong_count(&chunk) > 1 {
            if self.lent.len() < LENT_MAX {
                self.lent.push_back(chunk);
            }
        } else if self.spare.len() < SPARE_MAX {
            self.spare.push(chunk);
        }
    }
}

/// A zeroed chunk. The allocator is asked for zeros, which it gets from the system untouched.
pub(super) fn new_chunk(bytes: usize) -> Chunk {
    Chunk::new(vec![0; bytes].into_boxed_slice())
}
