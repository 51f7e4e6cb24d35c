//! The format of a checkpoint, which contains the state of the store without the newest records.

use super::files::SegmentFile;
use super::marks::Mark;
use super::segment::{BloomFilter, Body, Dead, Segment};

pub(super) const NAME: &str = "index";
pub(super) const NEW_NAME: &str = "index.new";
const MAGIC: &[u8; 4] = b"FIdx";
const VERSION: u16 = 2;
/// The first version, which had no marks.
const VERSION_MIN: u16 = 1;
const NO_TIME: i64 = i64::MIN;
const IN_ORDER_OF_TIME: u32 = 1;
/// Length of a subject's entry in bytes, without the name.
const SUBJECT_BYTES: usize = 2 + 3 * 8;

/// The fixed-size fields of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Number of the last segment. `offset` is the end of the part that the checkpoint covers.
    pub(super) number: u32,
    pub(super) offset: u64,
    pub(super) salt: u32,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) last_unix_nanos: Option<i64>,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// A subject's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexedSubject<'a> {
    pub(super) name: &'a [u8],
    pub(super) messages: u64,
    pub(super) last: u64,
    pub(super) first_at_least: u64,
}

/// Writes a checkpoint part by part, in the order of these methods.
pub(super) struct Writer {
    out: Vec<u8>,
    /// Checksum of all bytes that [`clear`](Self::clear) removed from `out`.
    sum: crc32fast::Hasher,
}

impl Writer {
    pub(super) fn new(totals: &Totals, segments: usize, subjects: usize, expiries: usize) -> Self {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&totals.number.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&totals.offset.to_le_bytes());
        out.extend_from_slice(&totals.salt.to_le_bytes());
        out.extend_from_slice(&u32::try_from(segments).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&totals.first.to_le_bytes());
        out.extend_from_slice(&totals.last.to_le_bytes());
        let time = totals.last_unix_nanos.unwrap_or(NO_TIME);
        out.extend_from_slice(&time.to_le_bytes());
        out.extend_from_slice(&(subjects as u64).to_le_bytes());
        out.extend_from_slice(&(expiries as u64).to_le_bytes());
        out.extend_from_slice(&totals.messages.to_le_bytes());
        out.extend_from_slice(&totals.bytes.to_le_bytes());
        Writer {
            out,
            sum: crc32fast::Hasher::new(),
        }
    }

    pub(super) fn segment(&mut self, segment: &Segment) {
        let Body::File(file) = &segment.body else {
            return;
        };
        let flags = if segment.is_in_order_of_time {
            IN_ORDER_OF_TIME
        } else {
            0
        };
        let dead = segment.dead();
        let bloom: &[u64] = segment.bloom.as_ref().map_or(&[], |h| &h.words);
        self.numbers32(&[file.number, file.generation]);
        self.numbers64(&[segment.first, segment.last]);
        self.numbers32(&[segment.records, flags]);
        self.numbers64(&[file.bytes, segment.live_bytes]);
        self.out.extend_from_slice(&segment.earliest.to_le_bytes());
        self.out.extend_from_slice(&segment.latest.to_le_bytes());
        let words = |words: &[u64]| u32::try_from(words.len()).unwrap_or(u32::MAX);
        let marks = u32::try_from(segment.marks.len()).unwrap_or(u32::MAX);
        self.numbers32(&[words(&dead.words), words(bloom), marks]);
        self.numbers64(&dead.words);
        self.numbers64(bloom);
        for mark in &segment.marks {
            self.numbers32(&[mark.slot, mark.offset]);
            self.numbers64(&[mark.sequence]);
        }
    }

    pub(super) fn subject(&mut self, subject: &IndexedSubject<'_>) {
        let bytes = u16::try_from(subject.name.len()).unwrap_or(u16::MAX);
        self.out.extend_from_slice(&bytes.to_le_bytes());
        self.out.extend_from_slice(subject.name);
        self.numbers64(&[subject.messages, subject.last, subject.first_at_least]);
    }

    pub(super) fn expiry(&mut self, expires_at: i64, sequence: u64) {
        self.out.extend_from_slice(&expires_at.to_le_bytes());
        self.numbers64(&[sequence]);
    }

    /// Appends the checksum of all bytes.
    pub(super) fn finish(&mut self) {
        let mut sum = self.sum.clone();
        sum.update(&self.out);
        self.out.extend_from_slice(&sum.finalize().to_le_bytes());
    }

    /// Returns the bytes written since the last [`clear`](Self::clear).
    pub(super) fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Empties the buffer, after adding its bytes to the checksum.
    pub(super) fn clear(&mut self) {
        self.sum.update(&self.out);
        self.out.clear();
    }

    fn numbers32(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.out.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn numbers64(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Reads a checkpoint with a valid checksum.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    version: u16,
    pub(super) totals: Totals,
    pub(super) segments: u32,
    pub(super) subjects: u64,
    pub(super) expiries: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let (content, sum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut rest = content;
        let is_ours = take(&mut rest, 4)? == MAGIC;
        let version = u16::from_le_bytes(take(&mut rest, 2)?.try_into().ok()?);
        if !is_ours || !(VERSION_MIN..=VERSION).contains(&version) {
            return None;
        }
        take(&mut rest, 2)?;
        let number = u32_of(&mut rest)?;
        take(&mut rest, 4)?;
        let mut totals = Totals {
            number,
            offset: u64_of(&mut rest)?,
            salt: u32_of(&mut rest)?,
            ..Totals::default()
        };
        let segments = u32_of(&mut rest)?;
        totals.first = u64_of(&mut rest)?;
        totals.last = u64_of(&mut rest)?;
        totals.last_unix_nanos = Some(i64_of(&mut rest)?).filter(|at| *at != NO_TIME);
        let subjects = u64_of(&mut rest)?;
        let expiries = u64_of(&mut rest)?;
        totals.messages = u64_of(&mut rest)?;
        totals.bytes = u64_of(&mut rest)?;
        Some(Reader {
            rest,
            version,
            totals,
            segments,
            subjects,
            expiries,
        })
    }

    /// Reads the next segment. The caller opens its file.
    pub(super) fn segment(&mut self) -> Option<(Segment, SegmentFile)> {
        let rest = &mut self.rest;
        let (number, generation) = (u32_of(rest)?, u32_of(rest)?);
        let (first, last) = (u64_of(rest)?, u64_of(rest)?);
        let (records, flags) = (u32_of(rest)?, u32_of(rest)?);
        let file = SegmentFile {
            number,
            generation,
            file: None,
            bytes: u64_of(rest)?,
        };
        let mut segment = Segment::unloaded(first, last, records, file);
        segment.live_bytes = u64_of(rest)?;
        segment.earliest = i64_of(rest)?;
        segment.latest = i64_of(rest)?;
        segment.is_in_order_of_time = flags & IN_ORDER_OF_TIME != 0;
        let (dead, bloom) = (u32_of(rest)?, u32_of(rest)?);
        let marks = match self.version {
            VERSION_MIN => 0,
            _ => u32_of(rest)?,
        };
        segment.set_dead(Dead::from_words(words(rest, dead)?));
        let bloom = words(rest, bloom)?;
        segment.bloom = (!bloom.is_empty()).then(|| BloomFilter::from_words(bloom));
        // The result grows only as bytes are read, even if `marks` is far too high.
        segment.marks = (0..marks).map(|_| mark(rest)).collect::<Option<_>>()?;
        segment.is_plausible().then_some((segment, file))
    }

    /// Returns the number of subjects, but at most as many as the remaining bytes can contain.
    pub(super) fn subjects_at_most(&self) -> usize {
        let most = self.rest.len() / SUBJECT_BYTES;
        usize::try_from(self.subjects).map_or(most, |subjects| subjects.min(most))
    }

    pub(super) fn subject(&mut self) -> Option<IndexedSubject<'a>> {
        let rest = &mut self.rest;
        let bytes = u16::from_le_bytes(take(rest, 2)?.try_into().ok()?);
        Some(IndexedSubject {
            name: take(rest, usize::from(bytes))?,
            messages: u64_of(rest)?,
            last: u64_of(rest)?,
            first_at_least: u64_of(rest)?,
        })
    }

    pub(super) fn expiry(&mut self) -> Option<(i64, u64)> {
        Some((i64_of(&mut self.rest)?, u64_of(&mut self.rest)?))
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (part, after) = rest.split_at_checked(bytes)?;
    *rest = after;
    Some(part)
}

fn u32_of(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}

fn u64_of(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?))
}

fn i64_of(rest: &mut &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(take(rest, 8)?.try_into().ok()?))
}

fn mark(rest: &mut &[u8]) -> Option<Mark> {
    Some(Mark {
        slot: u32_of(rest)?,
        offset: u32_of(rest)?,
        sequence: u64_of(rest)?,
    })
}

fn words(rest: &mut &[u8], count: u32) -> Option<Vec<u64>> {
    let bytes = take(rest, usize::try_from(count).ok()?.checked_mul(8)?)?;
    let words = bytes.chunks_exact(8);
    words
        .map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: an index with correct checksums counted more records than a segment can hold, and the
    /// store allocated memory for all of them.
    #[test]
    fn impossible_segment_counts_are_rejected() {
        for (first, last, records, bytes, is_plausible) in [
            (1, 0, 0, 80, true),
            (1, 3, 3, 3 * 32, true),
            (1, 9, 3, 3 * 32, true),
            (1, 3, 3, 3 * 32 - 1, false),
            (1, 2, 3, 3 * 32, false),
            (5, 3, 0, 80, false),
            (1, 1 << 40, u32::MAX, 1 << 40, false),
            (1, 1 << 40, u32::MAX, 1 << 30, false),
            (u64::MAX, u64::MAX, 1, 80, false),
        ] {
            let file = SegmentFile {
                number: 1,
                generation: 0,
                file: None,
                bytes,
            };
            let mut writer = Writer::new(&Totals::default(), 1, 0, 0);
            writer.segment(&Segment::unloaded(first, last, records, file));
            writer.finish();
            let mut reader = Reader::new(writer.bytes()).unwrap();
            let segment = reader.segment();
            assert_eq!(
                segment.is_some(),
                is_plausible,
                "{first} {last} {records} {bytes}"
            );
        }
    }
}
