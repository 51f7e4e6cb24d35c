//! permessage-deflate (RFC 7692) without context takeover: each message is compressed independently, so no
//! state is needed between messages.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::Wrong;

/// Bytes that the sender removes from the end of a message, and that the receiver appends again (RFC 7692,
/// section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// A message compressor, for any number of connections.
pub struct Deflater {
    compress: Compress,
}

impl Default for Deflater {
    fn default() -> Self {
        Deflater {
            compress: Compress::new(Compression::fast(), false),
        }
    }
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflater")
    }
}

impl Deflater {
    /// Appends one compressed message, whose payload is the concatenation of `parts`.
    pub fn message<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
        self.compress.reset();
        for part in parts {
            self.feed(part, FlushCompress::None, out);
        }
        self.feed(&[], FlushCompress::Sync, out);
        if out.ends_with(&TAIL) {
            out.truncate(out.len() - TAIL.len());
        }
    }

    fn feed(&mut self, mut input: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        /// Free capacity that is sufficient for each step to make progress.
        const ROOM_BYTES: usize = 1024;
        loop {
            out.reserve(ROOM_BYTES + input.len() / 2);
            let before = (self.compress.total_in(), out.len());
            // Compression into memory cannot fail.
            let status = self.compress.compress_vec(input, out, flush);
            let taken = usize::try_from(self.compress.total_in() - before.0).unwrap_or(0);
            input = &input[taken.min(input.len())..];
            let has_room = out.len() < out.capacity();
            if status.is_err() || (input.is_empty() && has_room) {
                return;
            }
        }
    }
}

/// The result of one decompression step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflated {
    /// Number of consumed input bytes.
    pub taken: usize,
    /// Number of written output bytes.
    pub written: usize,
}

/// A message decompressor that works in steps. A step writes no more than the caller's buffer holds.
pub struct Inflater {
    decompress: Decompress,
    message_bytes: usize,
    message_bytes_max: usize,
    /// Number of bytes of the removed tail that the decompressor has already consumed.
    tail: usize,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflater")
            .field("message_bytes", &self.message_bytes)
            .finish_non_exhaustive()
    }
}

impl Inflater {
    /// Creates a decompressor. `message_bytes_max` limits each message after decompression.
    pub fn new(message_bytes_max: usize) -> Self {
        Inflater {
            decompress: Decompress::new(false),
            message_bytes: 0,
            message_bytes_max,
            tail: 0,
        }
    }

    /// Decompresses a piece of a message.
    ///
    /// # Errors
    ///
    /// If the data is not valid deflate data, or the message is too large.
    pub fn feed(&mut self, input: &[u8], out: &mut [u8]) -> Result<Inflated, Wrong> {
        let before = (self.decompress.total_in(), self.decompress.total_out());
        let status = self
            .decompress
            .decompress(input, out, FlushDecompress::Sync)
            .map_err(|_| Wrong {
                code: 1007,
                text: "invalid compressed data".into(),
            })?;
        let since = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
        let inflated = Inflated {
            taken: since(self.decompress.total_in(), before.0),
            written: since(self.decompress.total_out(), before.1),
        };
        // A sender may end its last deflate block (RFC 7692, section 7.2.3.4). The next data then begins a
        // new stream.
        if status == Status::StreamEnd {
            self.decompress.reset(false);
        }
        self.message_bytes = self.message_bytes.saturating_add(inflated.written);
        if self.message_bytes > self.message_bytes_max {
            return Err(Wrong {
                code: 1009,
                text: "the message is too large".into(),
            });
        }
        Ok(inflated)
    }

    /// Ends a message after all of it was fed. Returns `None` when the message is complete and the next one
    /// may begin. Otherwise returns the number of bytes written, and the caller calls again.
    ///
    /// # Errors
    ///
    /// See [`feed`](Inflater::feed).
    pub fn finish(&mut self, out: &mut [u8]) -> Result<Option<usize>, Wrong> {
        let inflated = self.feed(&TAIL[self.tail..], out)?;
        self.tail += inflated.taken;
        let is_over = inflated.written < out.len();
        if is_over && inflated.written == 0 {
            self.decompress.reset(false);
            self.message_bytes = 0;
            self.tail = 0;
            return Ok(None);
        }
        Ok(Some(inflated.written))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn inflate(inflater: &mut Inflater, input: &[u8], step: usize) -> Result<Vec<u8>, Wrong> {
        let mut out = Vec::new();
        let mut room = vec![0; step];
        let mut at = 0;
        while at < input.len() {
            let inflated = inflater.feed(&input[at..input.len().min(at + step)], &mut room)?;
            out.extend_from_slice(&room[..inflated.written]);
            at += inflated.taken;
            assert!(inflated.taken + inflated.written > 0);
        }
        while let Some(written) = inflater.finish(&mut room)? {
            out.extend_from_slice(&room[..written]);
        }
        Ok(out)
    }

    proptest! {
        #[test]
        fn messages_round_trip(
            messages in prop::collection::vec(prop::collection::vec(0u8..4, 0..3000), 1..4),
            step in 1usize..500,
        ) {
            let (mut deflater, mut inflater) = (Deflater::default(), Inflater::new(10_000));
            for message in messages {
                let mut compressed = Vec::new();
                deflater.message(message.chunks(100), &mut compressed);
                prop_assert_eq!(inflate(&mut inflater, &compressed, step), Ok(message));
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), step in 1usize..50) {
            let _ = inflate(&mut Inflater::new(1000), &bytes, step);
        }
    }

    #[test]
    fn examples_of_the_rfc_are_decompressed() {
        // RFC 7692, sections 7.2.3.1 to 7.2.3.5.
        for bytes in [
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
            &[
                0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00,
            ],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            &[
                0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00,
            ],
        ] {
            let out = inflate(&mut Inflater::new(100), bytes, 100);
            assert_eq!(out.as_deref(), Ok(&b"Hello"[..]), "{bytes:x?}");
        }
    }

    #[test]
    fn decompression_bomb_is_bounded() {
        let mut bomb = Vec::new();
        Deflater::default().message([&vec![0; 10_000_000][..]].into_iter(), &mut bomb);
        assert!(bomb.len() < 60_000, "{}", bomb.len());
        let error = inflate(&mut Inflater::new(1_000_000), &bomb, 4096);
        assert_eq!(error.map_err(|wrong| wrong.code), Err(1009));
    }
}
