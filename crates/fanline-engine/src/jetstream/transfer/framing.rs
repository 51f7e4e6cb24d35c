//! The frames of Snappy's stream format, around an archive.
//!
//! Backups of nats-server are S2 streams, and tools unpack them as they pass to show how far they are. An
//! archive in frames that are not compressed is such a stream.

use super::archive::ArchiveError;

/// What every stream begins with.
const STREAM_HEAD: &[u8; 10] = b"\xff\x06\x00\x00sNaPpY";
/// Kind and length.
const HEAD_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;
/// As many bytes as a frame may hold.
const FRAME_BYTES_MAX: usize = 65_536;

const STREAM: u8 = 0xff;
const UNCOMPRESSED: u8 = 0x01;
/// From here on, kinds that may be passed over.
const SKIPPABLE: u8 = 0x80;

/// Begins a stream.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend(STREAM_HEAD);
}

/// Appends bytes of the archive.
pub(super) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    for part in bytes.chunks(FRAME_BYTES_MAX) {
        // At most a frame's bytes: the fourth byte of the length is always 0.
        let length = u32::try_from(part.len() + CHECKSUM_BYTES).unwrap_or(0);
        let [a, b, c, _] = length.to_le_bytes();
        out.extend([UNCOMPRESSED, a, b, c]);
        out.extend(masked_checksum(part).to_le_bytes());
        out.extend(part);
    }
}

/// Takes the archive out of its frames, which come in pieces.
#[derive(Default)]
pub(super) struct Unframer {
    bytes: Vec<u8>,
    has_begun: bool,
}

impl Unframer {
    /// Takes the next piece, and appends what is whole of the archive.
    pub(super) fn push(&mut self, piece: &[u8], archive: &mut Vec<u8>) -> Result<(), ArchiveError> {
        self.bytes.extend(piece);
        let mut at = 0;
        while let Some((kind, body)) = frame(&self.bytes[at..])? {
            match kind {
                STREAM if body == &STREAM_HEAD[HEAD_BYTES..] => self.has_begun = true,
                _ if !self.has_begun => return Err(ArchiveError::Unknown),
                UNCOMPRESSED => archive.extend(checked(body)?),
                SKIPPABLE.. => {}
                _ => return Err(ArchiveError::Unknown),
            }
            at += HEAD_BYTES + body.len();
        }
        self.bytes.drain(..at);
        Ok(())
    }
}

/// The first frame, if it is there as a whole.
fn frame(bytes: &[u8]) -> Result<Option<(u8, &[u8])>, ArchiveError> {
    let Some((&[kind, a, b, c], rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_le_bytes([a, b, c, 0])).unwrap_or(usize::MAX);
    // No frame of ours is longer, and nobody else's is waited for.
    if length > CHECKSUM_BYTES + FRAME_BYTES_MAX {
        return Err(ArchiveError::Unknown);
    }
    Ok(rest.get(..length).map(|body| (kind, body)))
}

fn checked(body: &[u8]) -> Result<&[u8], ArchiveError> {
    let (checksum, part) = body.split_first_chunk().ok_or(ArchiveError::Damaged)?;
    match masked_checksum(part) == u32::from_le_bytes(*checksum) {
        true => Ok(part),
        false => Err(ArchiveError::Damaged),
    }
}

/// CRC-32C, turned and shifted as the format wants it.
fn masked_checksum(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        TABLE[usize::from(low ^ byte)] ^ (crc >> 8)
    });
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

const fn table() -> [u32; 256] {
    // Castagnoli's polynomial, bits reversed.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut crc_of = 0;
    let mut at = 0;
    while at < table.len() {
        let mut crc: u32 = crc_of;
        let mut bit = 0;
        while bit < 8 {
            crc = match crc & 1 {
                1 => (crc >> 1) ^ POLYNOMIAL,
                _ => crc >> 1,
            };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
        crc_of += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_the_format() {
        // CRC-32C of "123456789" is e3069283, by RFC 3720's polynomial.
        let crc = 0xe306_9283_u32;
        let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(masked_checksum(b"123456789"), masked);
    }

    #[test]
    fn what_is_framed_comes_out_in_pieces_of_any_size() {
        let archive: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut framed = Vec::new();
        begin(&mut framed);
        for part in archive.chunks(77_777) {
            write(&mut framed, part);
        }
        for size in [1, 7, 1_000, 100_000, 10_000_000] {
            let mut unframer = Unframer::default();
            let mut found = Vec::new();
            for piece in framed.chunks(size) {
                unframer.push(piece, &mut found).unwrap();
            }
            assert!(found == archive, "pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let mut other = Unframer::default();
        assert!(
            other
                .push(b"NATSARC1 and then some", &mut Vec::new())
                .is_err()
        );
        let mut framed = Vec::new();
        begin(&mut framed);
        write(&mut framed, b"by the lake");
        if let Some(last) = framed.last_mut() {
            *last ^= 1;
        }
        let flipped = Unframer::default().push(&framed, &mut Vec::new());
        assert_eq!(flipped, Err(ArchiveError::Damaged));
    }
}
