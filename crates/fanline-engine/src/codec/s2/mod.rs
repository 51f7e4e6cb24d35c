//! S2 compression of leaf connections and backups: Snappy's stream format with larger blocks, and with copies
//! that repeat the last distance.
//!
//! A stream is a sequence of chunks. Blocks are compressed independently, so no state is needed between
//! blocks. An [`Unpacker`] decompresses a stream one block at a time. A [`Packer`] creates blocks.

mod decode;
mod encode;
mod unpack;

use encode::Encoder;
pub use encode::Level;
pub use unpack::{S2Error, Unpacker};

/// First bytes of a stream. They may occur again later.
pub const STREAM_HEAD: &[u8; 10] = b"\xff\x06\x00\x00S2sTwO";
/// First bytes of a Snappy stream, which is accepted as well.
pub(crate) const SNAPPY_HEAD: &[u8; 10] = b"\xff\x06\x00\x00sNaPpY";

/// Largest number of bytes compressed into one block. It is Snappy's maximum, so distances fit into two
/// bytes.
pub const PACKED_BYTES_MAX: usize = 64 * 1024;
/// Largest accepted size of a block after decompression, in bytes. A stream with a larger block is refused.
pub const BLOCK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Length of a chunk's kind and size, in bytes.
const HEAD_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;

const COMPRESSED: u8 = 0x00;
const UNCOMPRESSED: u8 = 0x01;
/// Lowest of the chunk kinds that a reader may skip.
const SKIPPABLE: u8 = 0x80;
const STREAM: u8 = 0xff;

/// A stream compressor, for any number of streams.
#[derive(Debug, Default)]
pub struct Packer {
    encoder: Encoder,
    block: Vec<u8>,
}

impl Packer {
    /// Appends the chunks that contain these bytes.
    pub fn pack(&mut self, level: Level, bytes: &[u8], out: &mut Vec<u8>) {
        for part in bytes.chunks(PACKED_BYTES_MAX) {
            match self.gets_shorter(level, part) {
                true => write_chunk(COMPRESSED, part, &self.block, out),
                false => write_chunk(UNCOMPRESSED, part, part, out),
            }
        }
    }

    /// Compresses a block. Returns false if that saves less than an eighth. Then the saving is not worth the
    /// time to decompress the block.
    fn gets_shorter(&mut self, level: Level, part: &[u8]) -> bool {
        self.block.clear();
        if level != Level::Uncompressed {
            self.encoder.encode(level, part, &mut self.block);
        }
        !self.block.is_empty() && self.block.len() < part.len() - part.len() / 8
    }
}

/// Appends a chunk. `bytes` are its uncompressed contents, and `body` is their stored form.
fn write_chunk(kind: u8, bytes: &[u8], body: &[u8], out: &mut Vec<u8>) {
    // The body is bounded by the size of a block, so the fourth byte of the length is always 0.
    let length = u32::try_from(body.len() + CHECKSUM_BYTES).unwrap_or(0);
    let [a, b, c, _] = length.to_le_bytes();
    out.reserve(HEAD_BYTES + CHECKSUM_BYTES + body.len());
    out.extend_from_slice(&[kind, a, b, c]);
    out.extend_from_slice(&masked_checksum(bytes).to_le_bytes());
    out.extend_from_slice(body);
}

/// Returns the checksum of a chunk's contents: CRC-32C, masked as the format defines it.
fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decompresses a stream that arrives in pieces of `step` bytes.
    fn unpack(stream: &[u8], step: usize) -> Result<Vec<u8>, S2Error> {
        let (mut unpacker, mut found) = (Unpacker::default(), Vec::new());
        let mut room = vec![0; step];
        for piece in stream.chunks(step) {
            unpacker.push(piece);
            loop {
                match unpacker.read(&mut room)? {
                    0 => break,
                    read => found.extend_from_slice(&room[..read]),
                }
            }
        }
        Ok(found)
    }

    const LEVELS: [Level; 4] = [Level::Uncompressed, Level::Fast, Level::Better, Level::Best];

    /// Bytes with repetitions, similar to messages.
    fn traffic() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            (any::<u8>(), 0usize..3000).prop_map(|(byte, count)| vec![byte; count]),
            (0usize..40).prop_map(|count| b"PUB orders.new 12\r\n".repeat(count)),
        ];
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn streams_round_trip(parts in prop::collection::vec(traffic(), 1..4), step in 1usize..5000) {
            for level in LEVELS {
                let (mut packer, mut stream) = (Packer::default(), STREAM_HEAD.to_vec());
                for part in &parts {
                    packer.pack(level, part, &mut stream);
                    // Some senders repeat the head with each write.
                    stream.extend_from_slice(STREAM_HEAD);
                }
                prop_assert_eq!(unpack(&stream, step), Ok(parts.concat()), "{:?}", level);
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), step in 1usize..50) {
            let _ = unpack(&[&STREAM_HEAD[..], &bytes].concat(), step);
            let block = [&[0, 0, 0, 0][..], &bytes].concat();
            let mut stream = STREAM_HEAD.to_vec();
            write_chunk(COMPRESSED, &[], &block, &mut stream);
            let _ = unpack(&stream, step);
        }
    }

    #[test]
    fn checksum_matches_the_format() {
        // CRC-32C of "123456789" is e3069283, with the polynomial of RFC 3720.
        assert_eq!(
            masked_checksum(b"123456789"),
            0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8)
        );
        // A chunk with PONG from nats-server.
        assert_eq!(
            masked_checksum(b"PONG\r\n").to_le_bytes(),
            [0xf5, 0x6f, 0x1b, 0xe4]
        );
    }

    #[test]
    fn higher_levels_compress_better() {
        let lines =
            (0..4000).map(|n| format!("device.{}.state {{\"on\": {}}}\r\n", n % 77, n % 3 == 0));
        let text: String = lines.collect();
        let sizes = LEVELS.map(|level| {
            let mut out = Vec::new();
            Packer::default().pack(level, text.as_bytes(), &mut out);
            out.len()
        });
        let [plain, fast, better, best] = sizes;
        assert!(plain > text.len() && fast < text.len() / 2, "{sizes:?}");
        assert!(better <= fast && best <= better, "{sizes:?}");
    }

    #[test]
    fn repeated_byte_compresses_to_almost_nothing() {
        let mut out = Vec::new();
        Packer::default().pack(Level::Fast, &vec![b'a'; 1_000_000], &mut out);
        assert!(out.len() < 1000, "{}", out.len());
        let stream = [&STREAM_HEAD[..], &out].concat();
        assert_eq!(
            unpack(&stream, 4096).map(|bytes| bytes.len()),
            Ok(1_000_000)
        );
    }
}
