//! The encoding of a record; `docs/formats/log.md` describes the layout.

use super::cipher::ENCRYPTION_BYTES;
use super::log::SEQUENCE_MAX;
use super::types::{NewRecord, Record};

/// Length in bytes of the head that every record has.
pub(super) const HEAD_BYTES: usize = 32;
/// Length in bytes of the head of a record with an encoded body. The additional bytes contain the length
/// before encoding.
pub(super) const ENCODED_HEAD_BYTES: usize = HEAD_BYTES + 4;
/// Length in bytes of a sync point, which has no body.
pub(super) const SYNC_POINT_BYTES: u32 = 32;
/// Highest possible offset of the subject.
pub(super) const SUBJECT_FROM_MAX: usize = HEAD_BYTES + 4 + 8 + 8;
/// Maximum length of a record in bytes, with its head.
pub(super) const RECORD_BYTES_MAX: usize = (1 << 29) - 1;
/// Maximum length of a record in bytes before encoding. Encryption makes the record longer.
const PLAIN_BYTES_MAX: usize = RECORD_BYTES_MAX - 4 - ENCRYPTION_BYTES;

/// Kind of a record: a message, or a control record, which logs a removal, a skipped sequence, or a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message.
    Message,
    /// Removes the record of this sequence.
    Remove,
    /// Removes all records below this sequence.
    Floor,
    /// Removes all records below this sequence whose subject matches the filter in its subject field.
    Purge,
    /// Sets the minimum sequence of the next record.
    Skip,
    /// Records that everything before a position of the log is on disk; see [`Head::sync_point`].
    SyncPoint,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Kind::Message,
            2 => Kind::Remove,
            3 => Kind::Floor,
            4 => Kind::Purge,
            5 => Kind::Skip,
            6 => Kind::SyncPoint,
            _ => return None,
        })
    }

    /// Returns whether the record is a message rather than a control record.
    pub(super) fn is_message(self) -> bool {
        self == Kind::Message
    }

    fn to_byte(self) -> u8 {
        match self {
            Kind::Message => 1,
            Kind::Remove => 2,
            Kind::Floor => 3,
            Kind::Purge => 4,
            Kind::Skip => 5,
            Kind::SyncPoint => 6,
        }
    }
}

const HAS_HEADERS: u8 = 1;
const HAS_EXPIRY: u8 = 2;
const HAS_REPLACED: u8 = 4;
const IS_COMPRESSED: u8 = 8;
const IS_ENCRYPTED: u8 = 16;
const ENCODED: u8 = IS_COMPRESSED | IS_ENCRYPTED;
const MORE_IN_BATCH: u8 = 32;
const FLAGS: u8 = HAS_HEADERS | HAS_EXPIRY | HAS_REPLACED | ENCODED | MORE_IN_BATCH;

/// A position in the log: number of a segment, and offset in its file.
pub(super) type Position = (u32, u64);

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) bytes: u32,
    /// Length of the record before its body was encoded.
    pub(super) plain_bytes: u32,
    pub(super) body_sum: u32,
    pub(super) subject_bytes: u16,
    pub(super) kind: Kind,
    flags: u8,
    pub(super) sequence: u64,
    pub(super) unix_nanos: i64,
}

impl Head {
    /// Parses a head, checking its checksum and plausibility.
    pub(super) fn parse(bytes: &[u8], salt: u32) -> Option<Self> {
        let head = Head::peek(bytes)?;
        let summed = bytes.get(4..head.head_len())?;
        (read_u32(bytes, 0)? == sum(salt, summed)).then_some(head)
    }

    /// Parses a head without checking its checksum.
    pub(super) fn peek(bytes: &[u8]) -> Option<Self> {
        let flags = *bytes.get(15)?;
        let length = read_u32(bytes, 8)?;
        let head = Head {
            body_sum: read_u32(bytes, 4)?,
            bytes: length,
            plain_bytes: match flags & ENCODED {
                0 => length,
                _ => read_u32(bytes, HEAD_BYTES)?,
            },
            subject_bytes: u16::from_le_bytes(bytes.get(12..14)?.try_into().ok()?),
            kind: Kind::from_byte(*bytes.get(14)?)?,
            flags,
            sequence: read_u64(bytes, 16)?,
            unix_nanos: i64::from_le_bytes(bytes.get(24..32)?.try_into().ok()?),
        };
        let plain_least = HEAD_BYTES + extra_bytes(flags) + usize::from(head.subject_bytes);
        let least = match flags & ENCODED {
            0 => plain_least,
            IS_COMPRESSED => ENCODED_HEAD_BYTES,
            _ => ENCODED_HEAD_BYTES + ENCRYPTION_BYTES,
        };
        let plain_bytes = usize::try_from(head.plain_bytes).ok()?;
        if !(plain_least..=RECORD_BYTES_MAX).contains(&plain_bytes) {
            return None;
        }
        let bytes = usize::try_from(head.bytes).ok()?;
        // A purge may be limited by any sequence, including one that does not exist yet.
        if head.kind != Kind::Purge && head.sequence > SEQUENCE_MAX + 1 {
            return None;
        }
        (flags & !FLAGS == 0 && (least..=RECORD_BYTES_MAX).contains(&bytes)).then_some(head)
    }

    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.subject_bytes.to_le_bytes());
        bytes[14] = self.kind.to_byte();
        bytes[15] = self.flags;
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.unix_nanos.to_le_bytes());
        bytes
    }

    /// Appends the head without checksums.
    pub(super) fn write_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
        if self.has_encoded_body() {
            out.extend_from_slice(&self.plain_bytes.to_le_bytes());
        }
    }

    /// Returns the head of the same record with an encoded body; `None` if the body is neither compressed nor
    /// encrypted.
    pub(super) fn with_body(
        self,
        content_bytes: usize,
        is_compressed: bool,
        is_encrypted: bool,
    ) -> Option<Self> {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let encoded = flag(is_compressed, IS_COMPRESSED) | flag(is_encrypted, IS_ENCRYPTED);
        let encryption_bytes = if is_encrypted { ENCRYPTION_BYTES } else { 0 };
        let bytes = u32::try_from(ENCODED_HEAD_BYTES + content_bytes + encryption_bytes).ok()?;
        (encoded != 0).then_some(Head {
            bytes,
            flags: self.flags | encoded,
            ..self
        })
    }

    /// Returns the head of the same record before its body was encoded.
    pub(super) fn with_plain_body(self) -> Self {
        Head {
            bytes: self.plain_bytes,
            flags: self.flags & !ENCODED,
            ..self
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes as usize
    }

    /// Returns the length of the part that the first checksum covers.
    fn head_len(&self) -> usize {
        match self.has_encoded_body() {
            true => ENCODED_HEAD_BYTES,
            false => HEAD_BYTES,
        }
    }

    pub(super) fn has_encoded_body(&self) -> bool {
        self.flags & ENCODED != 0
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.flags & IS_COMPRESSED != 0
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.flags & IS_ENCRYPTED != 0
    }

    pub(super) fn has_headers(&self) -> bool {
        self.flags & HAS_HEADERS != 0
    }

    pub(super) fn has_expiry(&self) -> bool {
        self.flags & HAS_EXPIRY != 0
    }

    pub(super) fn has_replaced(&self) -> bool {
        self.flags & HAS_REPLACED != 0
    }

    /// Returns whether the next record belongs to the same atomic batch.
    pub(super) fn has_more_in_batch(&self) -> bool {
        self.flags & MORE_IN_BATCH != 0
    }

    /// Returns the position before which everything is on disk, if this is a sync point.
    pub(super) fn sync_point(&self) -> Option<Position> {
        let number = u32::try_from(self.unix_nanos).ok()?;
        (self.kind == Kind::SyncPoint).then_some((number, self.sequence))
    }
}

/// A decoded record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) head: Head,
    pub(super) record: Record<'a>,
    /// Sequence of the record that was removed to make room for this one.
    pub(super) replaced: Option<u64>,
}

/// Returns the subject of a record whose body is not encoded. The record may extend past `bytes`.
pub(super) fn subject(bytes: &[u8]) -> Option<&[u8]> {
    let head = Head::peek(bytes).filter(|head| !head.has_encoded_body())?;
    let from = HEAD_BYTES + extra_bytes(head.flags);
    bytes.get(from..from + usize::from(head.subject_bytes))
}

/// Fields of the encoding that a [`NewRecord`] does not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) kind: Kind,
    pub(super) sequence: u64,
    pub(super) replaced: Option<u64>,
    /// Salt of the checksums; `None` in memory, where records have no checksums.
    pub(super) salt: Option<u32>,
}

fn extra_bytes(flags: u8) -> usize {
    usize::from(flags & HAS_HEADERS != 0) * 4
        + usize::from(flags & HAS_EXPIRY != 0) * 8
        + usize::from(flags & HAS_REPLACED != 0) * 8
}

/// Returns the encoded length; `None` if the record is too long.
pub(super) fn encoded_bytes(record: &NewRecord<'_>, has_replaced: bool) -> Option<u32> {
    u16::try_from(record.subject.len()).ok()?;
    let bytes = HEAD_BYTES
        + extra_bytes(flags(record, has_replaced))
        + record.subject.len()
        + record.headers.len()
        + record.payload.len();
    if bytes > PLAIN_BYTES_MAX {
        return None;
    }
    u32::try_from(bytes).ok()
}

fn flags(record: &NewRecord<'_>, has_replaced: bool) -> u8 {
    let mut flags = 0;
    if !record.headers.is_empty() {
        flags |= HAS_HEADERS;
    }
    if record.expires_at.is_some() {
        flags |= HAS_EXPIRY;
    }
    if has_replaced {
        flags |= HAS_REPLACED;
    }
    if record.more_in_batch {
        flags |= MORE_IN_BATCH;
    }
    flags
}

/// Appends a record of `bytes` bytes, as computed by [`encoded_bytes`]. The checksum in the returned head is
/// not set.
pub(super) fn encode(out: &mut Vec<u8>, stamp: &Stamp, record: &NewRecord<'_>, bytes: u32) -> Head {
    let from = out.len();
    let head = Head {
        bytes,
        plain_bytes: bytes,
        body_sum: 0,
        subject_bytes: u16::try_from(record.subject.len()).unwrap_or(u16::MAX),
        kind: stamp.kind,
        flags: flags(record, stamp.replaced.is_some()),
        sequence: stamp.sequence,
        unix_nanos: record.unix_nanos,
    };
    out.extend_from_slice(&head.to_bytes());
    if !record.headers.is_empty() {
        let headers_bytes = u32::try_from(record.headers.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&headers_bytes.to_le_bytes());
    }
    if let Some(expires_at) = record.expires_at {
        out.extend_from_slice(&expires_at.to_le_bytes());
    }
    if let Some(replaced) = stamp.replaced {
        out.extend_from_slice(&replaced.to_le_bytes());
    }
    out.extend_from_slice(record.subject);
    out.extend_from_slice(record.headers);
    out.extend_from_slice(record.payload);
    if let Some(salt) = stamp.salt {
        write_checksums(&mut out[from..], salt);
    }
    head
}

/// Appends a sync point, which records that everything before a position is on disk.
pub(super) fn encode_sync_point(out: &mut Vec<u8>, (number, offset): Position, salt: u32) {
    let stamp = Stamp {
        kind: Kind::SyncPoint,
        sequence: offset,
        replaced: None,
        salt: Some(salt),
    };
    let record = NewRecord {
        unix_nanos: i64::from(number),
        ..NewRecord::default()
    };
    encode(out, &stamp, &record, SYNC_POINT_BYTES);
}

/// Writes the checksums of a record.
pub(super) fn write_checksums(bytes: &mut [u8], salt: u32) {
    let head_len = match bytes[15] & ENCODED {
        0 => HEAD_BYTES,
        _ => ENCODED_HEAD_BYTES,
    };
    let body_sum = sum(salt, &bytes[head_len..]);
    bytes[4..8].copy_from_slice(&body_sum.to_le_bytes());
    let head_sum = sum(salt, &bytes[4..head_len]);
    bytes[..4].copy_from_slice(&head_sum.to_le_bytes());
}

/// Returns the head that results from flipping one bit of a damaged head, if any has a valid checksum.
pub(super) fn repaired_head(bytes: &[u8], salt: u32) -> Option<Head> {
    repaired_head_at(bytes, salt).map(|(head, _)| head)
}

/// Returns the same as [`repaired_head`], and the index of the byte with the flipped bit.
fn repaired_head_at(bytes: &[u8], salt: u32) -> Option<(Head, usize)> {
    let mut head = bytes[..bytes.len().min(ENCODED_HEAD_BYTES)].to_vec();
    (0..head.len() * 8).find_map(|bit| {
        head[bit / 8] ^= 1 << (bit % 8);
        let repaired = Head::parse(&head, salt);
        head[bit / 8] ^= 1 << (bit % 8);
        repaired.map(|repaired| (repaired, bit / 8))
    })
}

/// A record that is damaged by one flipped bit.
pub(super) struct FlippedBit {
    /// The repaired head.
    pub(super) head: Head,
    /// Index of the byte with the flipped bit.
    pub(super) at: usize,
}

/// Returns the record at the beginning of these bytes, if flipping one bit makes its checksums valid.
pub(super) fn find_flipped_bit(bytes: &[u8], salt: u32) -> Option<FlippedBit> {
    let is_whole = |head: &Head| bytes.len() >= head.len();
    let (head, at) = match Head::parse(bytes, salt).filter(is_whole) {
        Some(head) => {
            let body = &bytes[head.head_len()..head.len()];
            let at = differ_by_one_bit(sum(salt, body), head.body_sum, body.len())?;
            (head, head.head_len() + at)
        }
        None => {
            let repaired = repaired_head_at(bytes, salt).filter(|(head, _)| is_whole(head));
            repaired.filter(|(head, _)| has_valid_body(head, bytes, salt))?
        }
    };
    Some(FlippedBit { head, at })
}

/// Given two checksums of `bytes` bytes, returns the index of the byte in which one flipped bit explains
/// their difference. The difference depends only on the position of the bit.
fn differ_by_one_bit(one: u32, other: u32, bytes: usize) -> Option<usize> {
    /// The polynomial of CRC-32, bits reversed.
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let mut difference = 1_u32;
    let from_end = (0..bytes * 8).position(|_| {
        let carry = difference & 1;
        difference = (difference >> 1) ^ (POLYNOMIAL * carry);
        difference == one ^ other
    });
    from_end.map(|bit| bytes - 1 - bit / 8)
}

/// Overwrites headers and payload with zeros. The head stays unchanged, so that a crash during the write
/// cannot damage it. The body's checksum is wrong afterwards.
pub(super) fn erase(bytes: &mut [u8]) {
    let Some(head) = Head::peek(bytes) else {
        return;
    };
    let from = match head.has_encoded_body() {
        true => ENCODED_HEAD_BYTES,
        false => HEAD_BYTES + extra_bytes(head.flags) + usize::from(head.subject_bytes),
    };
    if let Some(content) = bytes.get_mut(from..) {
        content.fill(0);
    }
}

/// Returns whether both checksums are valid.
pub(super) fn has_valid_checksums(bytes: &[u8], salt: u32) -> bool {
    Head::parse(bytes, salt)
        .is_some_and(|head| bytes.len() >= head.len() && has_valid_body(&head, bytes, salt))
}

/// Returns whether the body's checksum is valid. The head's checksum was already verified.
pub(super) fn has_valid_body(head: &Head, bytes: &[u8], salt: u32) -> bool {
    bytes
        .get(head.head_len()..head.len())
        .is_some_and(|body| sum(salt, body) == head.body_sum)
}

/// Returns the part of the head that encryption authenticates: everything but the checksums.
pub(super) fn authenticated_part(bytes: &[u8]) -> [u8; ENCODED_HEAD_BYTES - 8] {
    let mut covered = [0; ENCODED_HEAD_BYTES - 8];
    if let Some(head) = bytes.get(8..ENCODED_HEAD_BYTES) {
        covered.copy_from_slice(head);
    }
    covered
}

/// Decodes a record whose body is not encoded; `None` if its lengths are inconsistent.
pub(super) fn decode(bytes: &[u8]) -> Option<Parts<'_>> {
    let head = Head::peek(bytes).filter(|head| !head.has_encoded_body())?;
    let bytes = bytes.get(..head.len())?;
    let mut at = HEAD_BYTES;
    let mut take = |count: usize| {
        let part = bytes.get(at..at.checked_add(count)?)?;
        at += count;
        Some(part)
    };
    let headers_bytes = match head.has_headers() {
        true => usize::try_from(read_u32(take(4)?, 0)?).ok()?,
        false => 0,
    };
    let expires_at = match head.has_expiry() {
        true => Some(i64::from_le_bytes(take(8)?.try_into().ok()?)),
        false => None,
    };
    let replaced = match head.has_replaced() {
        true => Some(read_u64(take(8)?, 0)?),
        false => None,
    };
    let subject = take(usize::from(head.subject_bytes))?;
    let headers = take(headers_bytes)?;
    let record = Record {
        sequence: head.sequence,
        unix_nanos: head.unix_nanos,
        subject,
        headers,
        payload: &bytes[at..],
        expires_at,
    };
    Some(Parts {
        head,
        record,
        replaced,
    })
}

fn sum(salt: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(bytes);
    hasher.finalize()
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
