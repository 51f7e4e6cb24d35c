//! Removes dead records from segments in which few are live.

use std::ops::Range;

use super::Store;
use super::files::{SEGMENT_HEAD_BYTES, SegmentFile, SegmentHead};
use super::record::{self, Head, Kind, Stamp};
use super::scan::{Scanned, Scanner};
use super::segment::{BloomFilter, Body, Segment, hash_name};
use super::slots::{Slot, Slots};
use super::types::{NewRecord, StoreError};

/// Maximum number of bytes to read for one compaction, in units of full segments. The store is blocked during
/// this time.
const SEGMENTS_READ_MAX: u64 = 4;
/// Maximum number of segments that one compaction merges.
const RUN_MAX: usize = 64;

/// Maximum distance between the sequences of a segment's records: see [`Slots`].
const SEQUENCES_MAX: u64 = u32::MAX as u64;

/// The result of compacting several segments.
struct Compacted {
    bytes: Vec<u8>,
    slots: Slots,
    segment: Segment,
    hashes: Vec<u64>,
    /// Lowest sequence that segments before the compacted ones may contain. Control records (logged removals)
    /// of lower sequences have no effect.
    oldest: u64,
    /// First sequence of the compacted segments. Logged removals of single records from this sequence on are
    /// not copied, because the removed records are not copied either.
    first: u64,
    salt: u32,
}

impl Store {
    /// Merges adjacent segments with few live records into one segment. The old files stay until a checkpoint
    /// no longer needs them, so a failure loses nothing.
    pub(super) fn compact(&mut self) {
        if let Some(run) = self.mostly_dead() {
            // If this fails, it is retried before the next checkpoint.
            let _ = self.compact_run(run);
        }
    }

    /// Returns adjacent segments whose bytes are more than half dead, and whose live bytes fill at most half
    /// a segment.
    fn mostly_dead(&self) -> Option<Range<usize>> {
        let sealed = self.segments.len() - 1;
        let segment_bytes = self.segment_bytes as u64;
        for from in 0..sealed {
            let (mut live, mut all, mut end) = (0, 0, from);
            let first = self.segments[from].first;
            while end < sealed && end - from < RUN_MAX {
                let segment = &self.segments[end];
                let Body::File(file) = &segment.body else {
                    return None;
                };
                let fits = live + segment.live_bytes <= segment_bytes / 2
                    && segment.last.saturating_sub(first) <= SEQUENCES_MAX
                    && all + file.bytes <= SEGMENTS_READ_MAX * segment_bytes;
                if !fits {
                    break;
                }
                live += segment.live_bytes;
                all += file.bytes;
                end += 1;
            }
            let dead = all - live;
            if dead > live && dead > segment_bytes / 4 {
                return Some(from..end);
            }
        }
        None
    }

    fn compact_run(&mut self, run: Range<usize>) -> Result<(), StoreError> {
        let (Some(first), Some(next)) = (self.file_at(run.start), self.file_at(run.end)) else {
            return Ok(());
        };
        let generations = run
            .clone()
            .filter_map(|at| self.file_at(at))
            .map(|f| f.generation);
        let head = SegmentHead {
            number: first.number,
            generation: generations.max().unwrap_or(0) + 1,
            through: next.number - 1,
            salt: self.files.as_ref().map_or(0, |files| files.salt),
            key_check: self.files.as_ref().map_or(0, |f| f.encoding.key_check()),
            first: self.segments[run.start].first,
            previous_bytes: 0,
            has_sync_points: true,
        };
        let mut file = SegmentFile {
            number: head.number,
            generation: head.generation,
            file: None,
            bytes: 0,
        };
        let mut out = Compacted {
            bytes: head.to_bytes().to_vec(),
            slots: Slots::with_base(head.first),
            segment: Segment::unloaded(head.first, head.first.saturating_sub(1), 0, file),
            hashes: Vec::new(),
            oldest: self.segments[0].first,
            first: head.first,
            salt: head.salt,
        };
        let limited_by = run.clone().map(|at| self.segments[at].limited_by);
        out.segment.limited_by = limited_by.max().unwrap_or(0);
        for at in run.clone() {
            if !self.copy_living(at, &mut out)? {
                return Ok(());
            }
        }
        file.bytes = out.bytes.len() as u64;
        // Writes the file even without records, because a gap in the numbers would mean that a file is
        // missing.
        if let Some(files) = &mut self.files {
            file.file = Some(files.write_sealed(&file.name(), &out.bytes)?);
        }
        for _ in run.clone() {
            if let Some(Segment {
                body: Body::File(old),
                ..
            }) = self.segments.remove(run.start)
            {
                self.upkeep.retire(old, u64::MAX);
            }
        }
        let mut segment = out.segment;
        segment.body = Body::File(file);
        segment.slots = Some(out.slots);
        segment.note_marks(self.segment_bytes);
        out.hashes.sort_unstable();
        out.hashes.dedup();
        let mut bloom = BloomFilter::new(out.hashes.len());
        for hash in out.hashes {
            bloom.insert(hash);
        }
        segment.bloom = Some(bloom);
        self.segments.insert(run.start, segment);
        self.retire_dead(run.start);
        self.evict(usize::MAX);
        Ok(())
    }

    fn file_at(&self, at: usize) -> Option<SegmentFile> {
        match self.segments.get(at)?.body {
            Body::File(file) => Some(file),
            Body::Memory(_) => None,
        }
    }

    /// Copies the live records of a segment, without changing bytes or checksums, and the control records
    /// that act on earlier segments. Returns `false` if the segment is damaged. Such a segment is not
    /// compacted, so that readers report the damage.
    fn copy_living(&mut self, at: usize, out: &mut Compacted) -> Result<bool, StoreError> {
        self.load(at)?;
        let mut bytes = Vec::new();
        let segment = &mut self.segments[at];
        let (Body::File(file), Some(files)) = (&mut segment.body, &mut self.files) else {
            return Ok(false);
        };
        files.read_all(file, &mut bytes)?;
        bytes.truncate(usize::try_from(file.bytes).unwrap_or(usize::MAX));
        let Some(slots) = &segment.slots else {
            return Ok(false);
        };
        let mut number = 0;
        let mut scanner = Scanner::new(&bytes, SEGMENT_HEAD_BYTES, out.salt, false);
        while let Some((offset, found)) = scanner.next() {
            let Scanned::Intact(head) = found else {
                return Ok(false);
            };
            let record = &bytes[offset..offset + head.len()];
            if !head.kind.is_message() {
                if out.needs(&head) {
                    out.bytes.extend_from_slice(record);
                }
                continue;
            }
            let slot = slots.entries.get(number);
            let Some(slot) = slot.filter(|slot| slot.offset as usize == offset) else {
                return Ok(false);
            };
            if segment.is_dead(number) {
                if head.has_replaced()
                    && let Some(plain) = files.plain(record)
                {
                    out.keep_control_of(plain);
                }
            } else {
                out.hashes.push(hash_name(self.subjects.name(slot.subject)));
                out.push(&head, record, *slot);
            }
            number += 1;
        }
        Ok(number == slots.len() && scanner.end() == bytes.len())
    }
}

impl Compacted {
    fn push(&mut self, head: &Head, record: &[u8], slot: Slot) {
        let offset = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        if self.segment.records == 0 {
            self.slots.reset(head.sequence);
        }
        self.slots.push(
            head.sequence,
            Slot::new(offset, head, slot.subject),
            head.bytes,
        );
        self.segment
            .note_added(head.sequence, head.bytes, head.unix_nanos);
        self.bytes.extend_from_slice(record);
    }

    /// Returns whether a control record may act on records before the compacted segments.
    fn needs(&self, head: &Head) -> bool {
        let has_earlier = self.oldest < self.first;
        match head.kind {
            Kind::Remove => has_earlier && (self.oldest..self.first).contains(&head.sequence),
            Kind::Floor => has_earlier && head.sequence > self.oldest,
            Kind::Purge => has_earlier,
            Kind::Skip | Kind::SyncPoint | Kind::Message => false,
        }
    }

    /// If the dropped `record` had replaced an earlier record, appends a control record, so that the earlier
    /// record stays removed.
    fn keep_control_of(&mut self, record: &[u8]) {
        let replaced = record::decode(record).and_then(|parts| parts.replaced);
        let Some(replaced) = replaced.filter(|s| (self.oldest..self.first).contains(s)) else {
            return;
        };
        let control = NewRecord::default();
        let stamp = Stamp {
            kind: Kind::Remove,
            sequence: replaced,
            replaced: None,
            salt: Some(self.salt),
        };
        if let Some(bytes) = record::encoded_bytes(&control, false) {
            record::encode(&mut self.bytes, &stamp, &control, bytes);
        }
    }
}
