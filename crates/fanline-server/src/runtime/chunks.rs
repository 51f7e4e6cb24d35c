//! Buffers for reads. A connection has a buffer only while it has unparsed input.

use std::collections::VecDeque;

use fanline_engine::Chunk;

/// Size of a buffer in bytes, and the largest size of one read.
pub(super) const CHUNK_BYTES: usize = 128 * 1024;
/// Largest number of free buffers in the pool.
const SPARE_MAX: usize = 4;
/// Largest number of lent buffers that the pool stores. It reuses a lent buffer when no outbox refers to it
/// any more.
const LENT_MAX: usize = 64;

/// A pool of buffers.
#[derive(Default)]
pub(super) struct ChunkPool {
    spare: Vec<Chunk>,
    lent: VecDeque<Chunk>,
}

impl ChunkPool {
    /// Returns a chunk that nothing else refers to.
    pub(super) fn take(&mut self) -> Chunk {
        if let Some(chunk) = self.spare.pop() {
            return chunk;
        }
        // The contents of the oldest lent chunk have most likely been written by now.
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

    /// Returns a chunk to the pool. An outbox may still refer to it.
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

/// Allocates a zeroed chunk. The system provides zeroed pages, so the memory is not touched.
pub(super) fn new_chunk(bytes: usize) -> Chunk {
    Chunk::new(vec![0; bytes].into_boxed_slice())
}
