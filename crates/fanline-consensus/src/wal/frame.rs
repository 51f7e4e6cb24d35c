//! The bytes of a frame: a head of 48 bytes, and a payload with zeros up to a multiple of 8.

use super::limits::{ENTRY_BYTES_MAX, INDEX_MAX, LANES_MAX, NOTE_BYTES_MAX};

pub(super) const HEAD_BYTES: usize = 48;
/// Frames begin at multiples of this.
pub(super) const ALIGN: usize = 8;
/// Unit in which a disk loses writes.
const SECTOR_BYTES: usize = 512;

/// The meaning of a frame, and of `index` and `term` in its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The entry `index` of `term`. Entries of the lane from `index` on are replaced.
    Entry = 1,
    /// A copy of a live entry, which is in an older segment or damaged there.
    Carried = 2,
    /// The lane's current term, and in `index` the node that it voted for in this term, or 0.
    Vote = 3,
    /// Removes entries above `index`.
    Truncate = 4,
    /// Removes entries up to `index`, which is of `term`. The payload is the caller's note.
    Compact = 5,
    /// The end of a batch. Everything up to position `index` was synced before the batch was written.
    /// Segments below number `term` are not needed.
    Seal = 6,
    /// The lane starts again as if it had never existed, for the member `index` of its group.
    Reset = 7,
    /// The lane belongs to the member `index` of its group.
    Member = 8,
}

impl Kind {
    fn read(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Kind::Entry,
            2 => Kind::Carried,
            3 => Kind::Vote,
            4 => Kind::Truncate,
            5 => Kind::Compact,
            6 => Kind::Seal,
            7 => Kind::Reset,
            8 => Kind::Member,
            _ => return None,
        })
    }

    fn payload_bytes_max(self) -> usize {
        match self {
            Kind::Entry | Kind::Carried => ENTRY_BYTES_MAX,
            Kind::Compact => NOTE_BYTES_MAX,
            Kind::Vote | Kind::Truncate | Kind::Seal | Kind::Reset | Kind::Member => 0,
        }
    }
}

/// The head of a frame, without its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Number of the frame, counted over all lanes since the log was created, from 1.
    pub position: u64,
    pub lane: u16,
    pub kind: Kind,
    pub payload_bytes: usize,
    pub index: u64,
    pub term: u64,
    pub payload_checksum: u32,
    /// Checksum over this and all earlier heads of the log.
    pub chain: u32,
}

impl Head {
    /// Returns the length of the frame, padding included.
    pub(super) fn frame_bytes(&self) -> usize {
        HEAD_BYTES + padded(self.payload_bytes)
    }

    /// Parses a head. Returns `None` if a checksum or a field is wrong.
    pub(super) fn read(bytes: &[u8; HEAD_BYTES], salt: u32) -> Option<Self> {
        if checksum(salt, &bytes[4..]) != u32_at(bytes, 0) {
            return None;
        }
        Self::read_fields(bytes)
    }

    fn read_fields(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let kind = Kind::read(bytes[18])?;
        let head = Head {
            position: u64_at(bytes, 8),
            lane: u16::from_le_bytes([bytes[16], bytes[17]]),
            kind,
            payload_bytes: usize::try_from(u32_at(bytes, 20)).ok()?,
            index: u64_at(bytes, 24),
            term: u64_at(bytes, 32),
            payload_checksum: u32_at(bytes, 40),
            chain: u32_at(bytes, 4),
        };
        let is_valid = bytes[19] == 0
            && u32_at(bytes, 44) == 0
            && head.lane < LANES_MAX
            && (1..=INDEX_MAX).contains(&head.position)
            && head.index <= INDEX_MAX
            && head.payload_bytes <= kind.payload_bytes_max();
        is_valid.then_some(head)
    }

    /// Parses a head of which one bit is wrong. Returns the head and its right bytes.
    pub(super) fn read_corrected(
        bytes: &[u8; HEAD_BYTES],
        salt: u32,
    ) -> Option<(Self, [u8; HEAD_BYTES])> {
        (0..HEAD_BYTES * 8).find_map(|bit| {
            let mut corrected = *bytes;
            corrected[bit / 8] ^= 1 << (bit % 8);
            Some((Head::read(&corrected, salt)?, corrected))
        })
    }

    /// Returns the chain value of this head behind a frame with the value `before`.
    pub(super) fn chain_after(&self, before: u32) -> u32 {
        checksum(before, &self.fields()[8..])
    }

    fn fields(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let payload_bytes = u32::try_from(self.payload_bytes).expect("payloads have a limit");
        bytes[4..8].copy_from_slice(&self.chain.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.position.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.lane.to_le_bytes());
        bytes[18] = self.kind as u8;
        bytes[20..24].copy_from_slice(&payload_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.index.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.term.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.payload_checksum.to_le_bytes());
        bytes
    }

    /// Appends the frame. Sets the two checksums of the head that depend on other bytes.
    pub(super) fn write(&mut self, payload: &[u8], salt: u32, before: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + HEAD_BYTES, 0);
        out.extend_from_slice(payload);
        out.resize(start + HEAD_BYTES + padded(payload.len()), 0);
        self.payload_bytes = payload.len();
        self.payload_checksum = checksum(salt, &out[start + HEAD_BYTES..]);
        self.chain = self.chain_after(before);
        let mut bytes = self.fields();
        let sum = checksum(salt, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        out[start..start + HEAD_BYTES].copy_from_slice(&bytes);
    }
}

/// Returns the length of a payload with its padding.
pub(super) fn padded(payload_bytes: usize) -> usize {
    payload_bytes.next_multiple_of(ALIGN)
}

/// Returns the CRC-32 of `bytes`, seeded with `seed`.
pub(super) fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

/// Returns the one wrong bit in a payload, padding included, that explains why its checksum is `actual` instead
/// of `wanted`. A sector that was not written is no such bit: returns `None` if all bytes of the bit's sector
/// are zero. `offset` is the offset of the payload in its file.
pub(super) fn wrong_bit(actual: u32, wanted: u32, bytes: &[u8], offset: usize) -> Option<usize> {
    let difference = actual ^ wanted;
    // The difference that a wrong bit makes depends only on its distance from the end. The last byte's highest
    // bit makes the difference of the polynomial; each bit before it is one step of the register further.
    let mut one = 0xEDB8_8320_u32;
    let bit = (0..bytes.len() * 8).rev().find(|_| {
        let is_found = one == difference;
        one = (one >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(one & 1));
        is_found
    });
    let bit = bit?;
    let sector = (offset + bit / 8) / SECTOR_BYTES * SECTOR_BYTES;
    let Some(from) = sector.checked_sub(offset) else {
        // The end of the intact head is in this sector, too.
        return Some(bit);
    };
    let to = (from + SECTOR_BYTES).min(bytes.len());
    bytes[from..to].iter().any(|byte| *byte != 0).then_some(bit)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let part = bytes[at..at + 4].try_into();
    u32::from_le_bytes(part.expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes[at..at + 8].try_into();
    u64::from_le_bytes(part.expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u32 = 0x5EED;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut head = Head {
            position: 7,
            lane: 3,
            kind: Kind::Entry,
            payload_bytes: 0,
            index: 11,
            term: 2,
            payload_checksum: 0,
            chain: 0,
        };
        let mut bytes = Vec::new();
        head.write(payload, SALT, 99, &mut bytes);
        bytes
    }

    fn head_of(bytes: &[u8]) -> &[u8; HEAD_BYTES] {
        bytes.first_chunk().expect("a frame has a head")
    }

    #[test]
    fn frame_is_read_as_written() {
        let bytes = frame(b"three apples");
        let head = Head::read(head_of(&bytes), SALT).expect("valid");
        assert_eq!(
            (head.position, head.lane, head.index, head.term),
            (7, 3, 11, 2)
        );
        assert_eq!((head.payload_bytes, head.frame_bytes()), (12, bytes.len()));
        assert_eq!(head.chain, head.chain_after(99));
        assert_eq!(head.payload_checksum, checksum(SALT, &bytes[HEAD_BYTES..]));
        assert_eq!(
            Head::read(head_of(&bytes), SALT + 1),
            None,
            "another log's frame"
        );
    }

    #[test]
    fn any_flipped_bit_of_a_head_is_corrected() {
        let bytes = frame(b"x");
        let head = Head::read(head_of(&bytes), SALT);
        for bit in 0..HEAD_BYTES * 8 {
            let mut flipped = *head_of(&bytes);
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::read(&flipped, SALT), None, "bit {bit}");
            let corrected = Head::read_corrected(&flipped, SALT);
            assert_eq!(corrected, head.map(|head| (head, *head_of(&bytes))));
        }
    }

    #[test]
    fn flipped_bit_is_told_from_an_unwritten_sector() {
        let payload: Vec<u8> = (0..1500_u32).map(|i| i.to_le_bytes()[0] | 1).collect();
        let wanted = checksum(SALT, &payload);
        let check = |bytes: &[u8]| wrong_bit(checksum(SALT, bytes), wanted, bytes, 48);
        for bit in (0..payload.len() * 8).step_by(97) {
            let mut flipped = payload.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(check(&flipped), Some(bit));
            flipped[bit / 16] ^= 6;
            assert_eq!(check(&flipped), None, "bit {bit} and more");
        }
        let mut torn = payload;
        torn[464..976].fill(0);
        assert_eq!(check(&torn), None);

        // The first 464 bytes are in the sector of the head.
        for (at, is_bit) in [(500, false), (463, true)] {
            let mut sparse = vec![0; 1500];
            sparse[at] = 4;
            let unwritten = vec![0; 1500];
            let wanted = checksum(SALT, &sparse);
            let actual = checksum(SALT, &unwritten);
            assert_eq!(
                wrong_bit(actual, wanted, &unwritten, 48).is_some(),
                is_bit,
                "byte {at}"
            );
        }
    }
}
