//! permessage-deflate (RFC 7692) without context takeover: each message is compressed by itself, so
//! that nothing has to be kept between two.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::Wrong;

/// What a sender takes off a message's end, and a receiver puts back (RFC 7692, section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Compresses messages. One serves any number of connections.
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
    /// Appends one message, which `parts` make together, compressed.
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
        /// Room for what is at least put out at once.
        const ROOM_BYTES: usize = 1024;
        loop {
            out.reserve(ROOM_BYTES + input.len() / 2);
            let before = (self.compress.total_in(), out.len());
            // Compressing into memory cannot fail.
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

/// What came of handing compressed bytes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflated {
    /// Input that is done with.
    pub taken: usize,
    /// Output that was written.
    pub written: usize,
}

/// Takes the compression off one message after the other, a piece at a time: never more than the
/// caller has room for.
pub struct Inflater {
    decompress: Decompress,
    message_bytes: usize,
    message_bytes_max: usize,
    /// How much of the tail was put back.
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
    /// For messages of at most this many bytes, when the compression is off.
    pub fn new(message_bytes_max: usize) -> Self {
        Inflater {
            decompress: Decompress::new(false),
            message_bytes: 0,
            message_bytes_max,
            tail: 0,
        }
    }

    /// Takes a piece of a message.
    ///
    /// # Errors
    /// When it is not deflate, or the message gets too large.
    pub fn feed(&mut self, input: &[u8], out: &mut [u8]) -> Result<Inflated, Wrong> {
        let before = (self.decompress.total_in(), self.decompress.total_out());
        let status = self
            .decompress
            .decompress(input, out, FlushDecompress::Sync)
            .map_err(|_| Wrong {
                code: 1007,
                text: "what is compressed is broken".into(),
            })?;
        let since = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
        let inflated = Inflated {
            taken: since(self.decompress.total_in(), before.0),
            written: since(self.decompress.total_out(), before.1),
        };
        // A sender may end its last block (RFC 7692, section 7.2.3.4); the next begins anew.
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

    /// Takes the end of a message, once all of it was fed. `None` when it is over and the next may
    /// begin; else how much was written, with more to come.
    ///
    /// # Errors
    /// As for [`feed`](Inflater::feed).
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
        fn what_goes_in_comes_out(
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
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), step in 1usize..50) {
            let _ = inflate(&mut Inflater::new(1000), &bytes, step);
        }
    }

    #[test]
    fn the_examples_of_the_rfc() {
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
    fn a_bomb_goes_off_in_a_small_room() {
        let mut bomb = Vec::new();
        Deflater::default().message([&vec![0; 10_000_000][..]].into_iter(), &mut bomb);
        assert!(bomb.len() < 60_000, "{}", bomb.len());
        let error = inflate(&mut Inflater::new(1_000_000), &bomb, 4096);
        assert_eq!(error.map_err(|wrong| wrong.code), Err(1009));
    }
}
