//! S2, by which leaf links and backups are compressed: Snappy's stream format with blocks that may be larger
//! and copies that may repeat the last distance.
//!
//! A stream is a sequence of chunks. Each block is compressed by itself, so that nothing of one has to be kept
//! for the next. What comes in is taken apart by an [`Unpacker`], one block at a time; a [`Packer`] makes blocks
//! of what goes out.

mod decode;
mod encode;
mod unpack;

use encode::Encoder;
pub use encode::Level;
pub use unpack::{S2Error, Unpacker};

/// What every stream begins with; it may be said again.
pub const STREAM_HEAD: &[u8; 10] = b"\xff\x06\x00\x00S2sTwO";
/// The same of Snappy's, which is as good.
pub(crate) const SNAPPY_HEAD: &[u8; 10] = b"\xff\x06\x00\x00sNaPpY";

/// The most that is put into one block. Snappy's largest, so that distances fit into two bytes.
pub const PACKED_BYTES_MAX: usize = 64 * 1024;
/// The largest block that is taken, unpacked. More: the stream is refused.
pub const BLOCK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Kind and length of a chunk.
const HEAD_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;

const COMPRESSED: u8 = 0x00;
const UNCOMPRESSED: u8 = 0x01;
/// From here on, kinds that may be passed over.
const SKIPPABLE: u8 = 0x80;
const STREAM: u8 = 0xff;

/// Makes chunks of bytes. One serves any number of streams.
#[derive(Debug, Default)]
pub struct Packer {
    encoder: Encoder,
    block: Vec<u8>,
}

impl Packer {
    /// Appends the chunks of these bytes.
    pub fn pack(&mut self, level: Level, bytes: &[u8], out: &mut Vec<u8>) {
        for part in bytes.chunks(PACKED_BYTES_MAX) {
            match self.gets_shorter(level, part) {
                true => write_chunk(COMPRESSED, part, &self.block, out),
                false => write_chunk(UNCOMPRESSED, part, part, out),
            }
        }
    }

    /// Compresses a block. What gets hardly any shorter is not worth the other side's time.
    fn gets_shorter(&mut self, level: Level, part: &[u8]) -> bool {
        self.block.clear();
        if level != Level::Uncompressed {
            self.encoder.encode(level, part, &mut self.block);
        }
        !self.block.is_empty() && self.block.len() < part.len() - part.len() / 8
    }
}

/// Appends a chunk that stands for `bytes`.
fn write_chunk(kind: u8, bytes: &[u8], body: &[u8], out: &mut Vec<u8>) {
    // At most a block's bytes: the fourth byte of the length is always 0.
    let length = u32::try_from(body.len() + CHECKSUM_BYTES).unwrap_or(0);
    let [a, b, c, _] = length.to_le_bytes();
    out.reserve(HEAD_BYTES + CHECKSUM_BYTES + body.len());
    out.extend_from_slice(&[kind, a, b, c]);
    out.extend_from_slice(&masked_checksum(bytes).to_le_bytes());
    out.extend_from_slice(body);
}

/// The checksum of a chunk that stands for these bytes: CRC-32C, rotated and shifted as the format wants it.
fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes a stream apart that comes in pieces of this size.
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

    /// Bytes that repeat themselves here and there, as messages do.
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
        fn what_goes_in_comes_out(parts in prop::collection::vec(traffic(), 1..4), step in 1usize..5000) {
            for level in LEVELS {
                let (mut packer, mut stream) = (Packer::default(), STREAM_HEAD.to_vec());
                for part in &parts {
                    packer.pack(level, part, &mut stream);
                    // Some begin anew with each write.
                    stream.extend_from_slice(STREAM_HEAD);
                }
                prop_assert_eq!(unpack(&stream, step), Ok(parts.concat()), "{:?}", level);
            }
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), step in 1usize..50) {
            let _ = unpack(&[&STREAM_HEAD[..], &bytes].concat(), step);
            let block = [&[0, 0, 0, 0][..], &bytes].concat();
            let mut stream = STREAM_HEAD.to_vec();
            write_chunk(COMPRESSED, &[], &block, &mut stream);
            let _ = unpack(&stream, step);
        }
    }

    #[test]
    fn the_checksum_is_the_one_of_the_format() {
        // CRC-32C of "123456789" is e3069283, by RFC 3720's polynomial.
        assert_eq!(
            masked_checksum(b"123456789"),
            0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8)
        );
        // The chunk in which nats-server says PONG.
        assert_eq!(
            masked_checksum(b"PONG\r\n").to_le_bytes(),
            [0xf5, 0x6f, 0x1b, 0xe4]
        );
    }

    #[test]
    fn more_effort_makes_less_of_it() {
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
    fn a_large_payload_of_one_byte_is_nearly_nothing() {
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
