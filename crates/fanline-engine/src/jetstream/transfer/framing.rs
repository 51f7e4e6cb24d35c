//! Snappy's stream format, in which archives are sent.
//!
//! Backups of nats-server are in a compatible format, S2, and tools decompress a backup while they receive
//! it, to show progress. An archive in uncompressed frames can be read by these tools.

use super::archive::ArchiveError;
use crate::codec::s2::{Level, Packer, S2Error, SNAPPY_HEAD, Unpacker};

/// Number of bytes to decompress in one step.
const ROOM_BYTES: usize = 16 * 1024;

/// Appends the head of a stream.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend(SNAPPY_HEAD);
}

/// Appends bytes of the archive, in frames.
pub(super) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    Packer::default().pack(Level::Uncompressed, bytes, out);
}

/// Extracts the archive from its frames, which arrive in chunks.
#[derive(Default)]
pub(super) struct Unframer(Unpacker);

impl Unframer {
    /// Adds the next chunk. Call it when the earlier ones were [read](Self::read) completely.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.0.push(chunk);
    }

    /// Appends bytes of the archive, and returns their number; 0 if another chunk is needed.
    pub(super) fn read(&mut self, archive: &mut Vec<u8>) -> Result<usize, ArchiveError> {
        let mut room = [0; ROOM_BYTES];
        let read = self.0.read(&mut room).map_err(|error| match error {
            S2Error::Unknown | S2Error::TooLarge => ArchiveError::Unknown,
            S2Error::Damaged => ArchiveError::Damaged,
        })?;
        archive.extend_from_slice(&room[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_in_chunks_of_any_size() {
        let archive: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut framed = Vec::new();
        begin(&mut framed);
        for part in archive.chunks(77_777) {
            write(&mut framed, part);
        }
        for size in [1, 7, 1_000, 100_000, 10_000_000] {
            let mut unframer = Unframer::default();
            let mut found = Vec::new();
            for chunk in framed.chunks(size) {
                unframer.push(chunk);
                while unframer.read(&mut found).unwrap() > 0 {}
            }
            assert!(found == archive, "pieces of {size}");
        }
    }

    #[test]
    fn unframed_bytes_are_refused() {
        let read = |framed: &[u8]| {
            let mut unframer = Unframer::default();
            unframer.push(framed);
            unframer.read(&mut Vec::new())
        };
        let other = read(b"NATSARC1 and then some");
        assert_eq!(other, Err(ArchiveError::Unknown));
        let mut framed = Vec::new();
        begin(&mut framed);
        write(&mut framed, b"by the lake");
        if let Some(last) = framed.last_mut() {
            *last ^= 1;
        }
        assert_eq!(read(&framed), Err(ArchiveError::Damaged));
    }
}
