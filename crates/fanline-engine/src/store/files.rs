//! The files of a store: writes bytes and tracks which of them are on disk.

use std::ops::Range;
use std::time::Duration;

use super::commit::{InFlight, SyncId, SyncMode, SyncRequest, UNAWAITED_MAX};
use super::disk::{Disk, DiskError, FileId};
use super::encoding::BodyEncoding;
use super::log::SEQUENCE_MAX;
use super::record::{self, Head, Stamp};
use super::types::{NewRecord, StoreError};
use super::unsynced::UnsyncedRemovals;

/// Length in bytes of both copies of a segment's head together.
pub(super) const SEGMENT_HEAD_BYTES: usize = 2 * HEAD_COPY_BYTES;
const HEAD_COPY_BYTES: usize = 48;
const MAGIC: &[u8; 4] = b"FLog";
const VERSION: u16 = 2;
/// The first version, which had no sync points.
const VERSION_MIN: u16 = 1;
/// Number of pending bytes at which the store writes without waiting for `poll_sync`.
const UNWRITTEN_BYTES_MAX: usize = 1 << 20;
/// Number of the newest bytes of the active file that stay in memory for readers after the sync.
const TAIL_BYTES_MIN: usize = 1 << 18;
/// Number of bytes to read when a read continues where the last one ended.
const READ_AHEAD_BYTES: usize = 1 << 17;
/// Maximum number of unsynced bytes, which stay in memory. Above this limit, appends are refused.
const UNSYNCED_BYTES_MAX: u64 = 256 << 20;
/// Number of zeros that are written after the last record of small batches, up to the end of a page. A sync
/// of later records then overwrites existing bytes. Such a sync need not write a new file length, which would
/// take half of the sync's time.
pub(super) const AHEAD_BYTES: usize = 256 << 10;
const PAGE_BYTES: u64 = 4096;
/// A batch is small if its length is at most that of the zeros divided by this number. A file that is shorter
/// than this length gets no zeros, so that nearly empty streams take no extra space.
const AHEAD_PER_BATCH: usize = 4;
/// Number of cached ranges of recently read files.
const WINDOWS: usize = 4;

/// The file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentFile {
    pub(super) number: u32,
    pub(super) generation: u32,
    /// Id of the file if it is open, because it was read or written recently.
    pub(super) file: Option<FileId>,
    /// Length, including bytes that are not written yet.
    pub(super) bytes: u64,
}

impl SegmentFile {
    pub(super) fn name(&self) -> String {
        format!("{:010}-{:05}.log", self.number, self.generation)
    }

    /// Parses number and generation from a file name.
    pub(super) fn parse_name(name: &str) -> Option<(u32, u32)> {
        let (number, generation) = name.strip_suffix(".log")?.split_once('-')?;
        let (number, generation) = (number.parse().ok()?, generation.parse().ok()?);
        // Both numbers must have a successor.
        (number < u32::MAX && generation < u32::MAX).then_some((number, generation))
    }
}

/// The head of a segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub(super) number: u32,
    pub(super) generation: u32,
    /// Highest number of the segments that were compacted into this one.
    pub(super) through: u32,
    pub(super) salt: u32,
    pub(super) first: u64,
    /// Check value of the key that encrypts its records; 0 if they are not encrypted.
    pub(super) key_check: u64,
    /// Length of the previous segment's file when this segment began; 0 if unknown.
    pub(super) previous_bytes: u32,
    /// Whether this file contains sync points, which record how much of the log is on disk.
    pub(super) has_sync_points: bool,
}

impl SegmentHead {
    pub(super) fn to_bytes(self) -> [u8; SEGMENT_HEAD_BYTES] {
        let mut bytes = [0; SEGMENT_HEAD_BYTES];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.through.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.salt.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.key_check.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.previous_bytes.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..HEAD_COPY_BYTES - 4]);
        bytes[HEAD_COPY_BYTES - 4..HEAD_COPY_BYTES].copy_from_slice(&sum.to_le_bytes());
        bytes.copy_within(..HEAD_COPY_BYTES, HEAD_COPY_BYTES);
        bytes
    }

    /// Parses the first copy with a valid checksum.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let version = |copy: &[u8]| u16::from_le_bytes([copy[4], copy[5]]);
        let mut copies = bytes.get(..SEGMENT_HEAD_BYTES)?.chunks(HEAD_COPY_BYTES);
        let intact = copies.find(|copy| {
            let (head, sum) = copy.split_at(HEAD_COPY_BYTES - 4);
            crc32fast::hash(head).to_le_bytes() == *sum
                && copy.starts_with(MAGIC)
                && (VERSION_MIN..=VERSION).contains(&version(copy))
        })?;
        let number = |at: usize| Some(u32::from_le_bytes(intact[at..at + 4].try_into().ok()?));
        let head = SegmentHead {
            number: number(8)?,
            generation: number(12)?,
            through: number(16)?,
            salt: number(20)?,
            first: u64::from_le_bytes(intact[24..32].try_into().ok()?),
            key_check: u64::from_le_bytes(intact[32..40].try_into().ok()?),
            previous_bytes: number(40)?,
            has_sync_points: version(intact) > VERSION_MIN,
        };
        (head.first <= SEQUENCE_MAX + 1).then_some(head)
    }
}

/// A full file whose last bytes may not be synced yet.
pub(super) struct Sealed {
    pub(super) file: FileId,
    pub(super) from: u64,
    pub(super) bytes: Vec<u8>,
}

/// A cached range of a file.
#[derive(Default)]
struct Window {
    file: Option<FileId>,
    from: u64,
    bytes: Vec<u8>,
    used: u64,
}

/// Location of a record's bytes in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located {
    source: Source,
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Tail,
    Window(usize),
    /// The buffer of a decoded record.
    Decoded,
}

impl Located {
    fn clamped(source: Source, from: usize, bytes: usize, end: usize) -> Self {
        let to = from.saturating_add(bytes).min(end);
        Located {
            source,
            from: from.min(to),
            to,
        }
    }

    /// Returns whether the bytes were read from the disk, so that their checksums must be verified.
    pub(super) fn is_from_disk(&self) -> bool {
        matches!(self.source, Source::Window(_))
    }
}

/// The files of one store.
pub(super) struct Files {
    pub(super) disk: Box<dyn Disk>,
    pub(super) salt: u32,
    pub(super) mode: SyncMode,
    pub(super) encoding: BodyEncoding,
    /// Buffer for a record before encoding or after decoding.
    plain: Vec<u8>,
    pub(super) active: FileId,
    /// Bytes of the active file from `tail_from` on: all unsynced bytes, and the newest synced ones.
    tail: Vec<u8>,
    tail_from: u64,
    pub(super) written_to: u64,
    pub(super) synced_to: u64,
    /// End of the last record that needs a sync. Only a sync point may follow.
    pub(super) dirty_to: u64,
    /// Synced length of the active file, as the last sync point in the log states it.
    sync_point: u64,
    /// Time since which a sync point is due. It waits to be written with records.
    pub(super) sync_point_since: Option<Duration>,
    /// End of the zeros in the active file, if it is beyond the last record.
    ahead_to: u64,
    ahead_bytes: usize,
    pub(super) sealed: Vec<Sealed>,
    pub(super) spare: Vec<u8>,
    /// Highest sequence that was appended. The next two fields are the highest sequences that were written
    /// and synced.
    appended: u64,
    pub(super) written: u64,
    pub(super) synced: u64,
    /// First live sequence, if it has changed and is not logged yet.
    floor: Option<u64>,
    /// Whether the folder has unsynced changes.
    pub(super) is_folder_dirty: bool,
    pub(super) in_flight: Option<InFlight>,
    pub(super) unsynced_removals: UnsyncedRemovals,
    pub(super) next_id: u64,
    pub(super) last_sync: Duration,
    /// Whether a client waits for a sync of all changes so far.
    pub(super) is_awaited: bool,
    /// Time since which there are unsynced changes that no client waits for.
    pub(super) unawaited_since: Option<Duration>,
    pub(super) failure: Option<DiskError>,
    pub(super) must_rewrite: bool,
    windows: [Window; WINDOWS],
    reads: u64,
}

impl Files {
    /// Creates the files of a store without an active file, which [`begin`](Self::begin) sets.
    pub(super) fn new(
        disk: Box<dyn Disk>,
        mode: SyncMode,
        encoding: BodyEncoding,
        ahead_bytes: usize,
    ) -> Self {
        Files {
            disk,
            salt: 0,
            mode,
            encoding,
            plain: Vec::new(),
            active: FileId(u32::MAX),
            tail: Vec::new(),
            tail_from: 0,
            written_to: 0,
            synced_to: 0,
            dirty_to: 0,
            sync_point: 0,
            sync_point_since: None,
            ahead_to: 0,
            ahead_bytes,
            sealed: Vec::new(),
            spare: Vec::new(),
            appended: 0,
            written: 0,
            synced: 0,
            floor: None,
            is_folder_dirty: false,
            in_flight: None,
            unsynced_removals: UnsyncedRemovals::default(),
            next_id: 1,
            last_sync: Duration::ZERO,
            is_awaited: false,
            unawaited_since: None,
            failure: None,
            must_rewrite: false,
            windows: Default::default(),
            reads: 0,
        }
    }

    /// Continues to append at the end of a synced file.
    pub(super) fn begin(&mut self, active: FileId, bytes: u64, last: u64) {
        self.active = active;
        self.tail_from = bytes;
        self.written_to = bytes;
        self.synced_to = bytes;
        self.dirty_to = bytes;
        self.sync_point = bytes;
        self.ahead_to = bytes;
        self.appended = last;
        self.written = last;
        self.synced = last;
    }

    /// Requests a sync point, because the log has none for the bytes that recovery has read and synced.
    pub(super) fn require_sync_point(&mut self) {
        self.sync_point = 0;
    }

    /// Checks whether records can be appended now.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self.failure {
            Some(failure) => Err(failure.into()),
            None if self.unsynced_bytes() > UNSYNCED_BYTES_MAX => Err(StoreError::Busy),
            None => Ok(()),
        }
    }

    /// Returns the number of bytes that must stay in memory, because a failed sync requires writing them
    /// again.
    pub(super) fn unsynced_bytes(&self) -> u64 {
        let sealed: u64 = self.sealed.iter().map(|s| s.bytes.len() as u64).sum();
        sealed + self.end() - self.needed_from().max(self.tail_from)
    }

    /// Appends a record to the pending bytes.
    pub(super) fn push(&mut self, stamp: &Stamp, record: &NewRecord<'_>, bytes: u32) -> Head {
        let head = if self.encoding.is_off() {
            let stamp = Stamp {
                salt: Some(self.salt),
                ..*stamp
            };
            record::encode(&mut self.tail, &stamp, record, bytes)
        } else {
            self.plain.clear();
            let head = record::encode(&mut self.plain, stamp, record, bytes);
            self.encoding
                .encode(&self.plain, &head, self.salt, &mut self.tail)
        };
        self.dirty_to = self.end();
        head
    }

    /// Appends a sync point if the synced length has grown since the last one. The sync point waits until
    /// records are pending, so that both are written together, but not longer than `UNAWAITED_MAX`. `number`
    /// is the number of the active file. Returns whether a sync point was appended.
    pub(super) fn push_sync_point(&mut self, number: u32, now: Duration) -> bool {
        if self.synced_to <= self.sync_point || !self.sealed.is_empty() {
            self.sync_point_since = None;
            return false;
        }
        let since = *self.sync_point_since.get_or_insert(now);
        if self.end() == self.written_to && now < since + UNAWAITED_MAX {
            return false;
        }
        self.sync_point_since = None;
        self.sync_point = self.synced_to;
        record::encode_sync_point(&mut self.tail, (number, self.synced_to), self.salt);
        true
    }

    /// Returns a record with its body decoded; `None` if decoding fails.
    pub(super) fn plain<'a>(&'a mut self, record: &'a [u8]) -> Option<&'a [u8]> {
        if !Head::peek(record)?.has_encoded_body() {
            return Some(record);
        }
        self.encoding.decode(record, &mut self.plain)?;
        Some(&self.plain)
    }

    /// Decodes the body of a located record.
    pub(super) fn decode(&mut self, located: &Located) -> Option<Located> {
        let head = Head::peek(self.bytes(located));
        if head.is_none_or(|head| !head.has_encoded_body()) {
            return Some(*located);
        }
        let mut plain = std::mem::take(&mut self.plain);
        let mut encoding = std::mem::take(&mut self.encoding);
        let done = encoding.decode(self.bytes(located), &mut plain);
        self.encoding = encoding;
        let bytes = plain.len();
        self.plain = plain;
        done.map(|()| Located::clamped(Source::Decoded, 0, bytes, bytes))
    }

    /// Returns the offset of the next record.
    pub(super) fn end(&self) -> u64 {
        self.tail_from + self.tail.len() as u64
    }

    pub(super) fn appended(&self) -> u64 {
        self.appended
    }

    pub(super) fn note_appended(&mut self, sequence: u64) {
        self.appended = self.appended.max(sequence);
        if self.end() - self.written_to >= UNWRITTEN_BYTES_MAX as u64 {
            // The failure is stored, so that the next append is refused.
            let _ = self.write();
        }
    }

    /// Writes pending bytes.
    pub(super) fn write(&mut self) -> Result<(), DiskError> {
        let result = self.write_again().and_then(|()| {
            let from = usize::try_from(self.written_to - self.tail_from).unwrap_or(usize::MAX);
            match self.tail.get(from..) {
                Some([]) | None => Ok(()),
                Some(bytes) => self.disk.write_at(self.active, self.written_to, bytes),
            }
        });
        self.failure = result.err();
        result?;
        let batch_bytes = self.end() - self.written_to;
        self.written_to = self.end();
        self.written = self.appended;
        self.write_ahead(batch_bytes);
        self.trim();
        Ok(())
    }

    /// Writes zeros after the end of the last record if batches are small and the earlier zeros are used up.
    fn write_ahead(&mut self, batch_bytes: u64) {
        let small = (self.ahead_bytes / AHEAD_PER_BATCH) as u64;
        let is_used_up = self.written_to > self.ahead_to && self.written_to >= small;
        let is_small = batch_bytes > 0 && batch_bytes <= small;
        if self.mode != SyncMode::Commit || !is_used_up || !is_small {
            return;
        }
        let to = self.written_to + self.ahead_bytes as u64;
        self.ahead_to = to.next_multiple_of(PAGE_BYTES);
        let zeros = usize::try_from(self.ahead_to - self.written_to).unwrap_or(0);
        // If the zeros cannot be written, syncs only take longer.
        let _ = self
            .disk
            .write_at(self.active, self.written_to, &vec![0; zeros]);
    }

    /// Truncates the file to the end of the last record.
    pub(super) fn cut_ahead(&mut self) -> Result<(), DiskError> {
        if self.ahead_to > self.written_to {
            self.disk.truncate(self.active, self.written_to)?;
        }
        self.ahead_to = 0;
        Ok(())
    }

    /// After a failed sync, writes everything again since the last successful sync.
    fn write_again(&mut self) -> Result<(), DiskError> {
        if !self.must_rewrite {
            return Ok(());
        }
        for sealed in &self.sealed {
            self.disk
                .write_at(sealed.file, sealed.from, &sealed.bytes)?;
        }
        let kept_from = self.synced_to.max(self.tail_from);
        let from = usize::try_from(kept_from - self.tail_from).unwrap_or(usize::MAX);
        let to = usize::try_from(self.written_to - self.tail_from).unwrap_or(usize::MAX);
        if let Some(bytes) = self.tail.get(from..to) {
            self.disk.write_at(self.active, kept_from, bytes)?;
        }
        self.must_rewrite = false;
        Ok(())
    }

    /// Drops synced bytes from memory, except the newest.
    pub(super) fn trim(&mut self) {
        let needed_from = self
            .needed_from()
            .min(self.end().saturating_sub(TAIL_BYTES_MIN as u64));
        let gone = usize::try_from(needed_from.saturating_sub(self.tail_from)).unwrap_or(0);
        if gone >= TAIL_BYTES_MIN {
            self.tail.drain(..gone);
            self.tail_from += gone as u64;
        }
    }

    fn needed_from(&self) -> u64 {
        match self.mode {
            SyncMode::None => self.written_to,
            _ => self.synced_to.min(self.written_to),
        }
    }

    /// Writes pending bytes, and continues in a new file.
    pub(super) fn roll(&mut self, head: &SegmentHead) -> Result<SegmentFile, StoreError> {
        self.write()?;
        // If this fails, the zeros stay, but recovery can distinguish them from records.
        let _ = self.cut_ahead();
        let mut next = SegmentFile {
            number: head.number,
            generation: head.generation,
            file: None,
            bytes: SEGMENT_HEAD_BYTES as u64,
        };
        let made = self.disk.open(&next.name(), true).and_then(|file| {
            self.disk.truncate(file, 0)?;
            self.disk.write_at(file, 0, &head.to_bytes())?;
            Ok(file)
        });
        self.failure = made.err();
        let file = made?;
        next.file = Some(file);
        self.is_folder_dirty = true;
        let kept_from = self.synced_to.max(self.tail_from);
        let from = usize::try_from(kept_from - self.tail_from).unwrap_or(usize::MAX);
        let mut bytes = std::mem::replace(&mut self.tail, std::mem::take(&mut self.spare));
        bytes.drain(..from.min(bytes.len()));
        self.sealed.push(Sealed {
            file: self.active,
            from: kept_from,
            bytes,
        });
        self.active = file;
        self.tail.extend_from_slice(&head.to_bytes());
        self.tail_from = 0;
        self.written_to = SEGMENT_HEAD_BYTES as u64;
        self.dirty_to = self.written_to;
        self.synced_to = 0;
        self.sync_point = 0;
        Ok(next)
    }

    /// Creates a complete file, to which nothing is appended. The next sync includes it.
    pub(super) fn write_sealed(&mut self, name: &str, bytes: &[u8]) -> Result<FileId, DiskError> {
        let file = self.disk.open(name, true)?;
        let written = self
            .disk
            .truncate(file, 0)
            .and_then(|()| self.disk.write_at(file, 0, bytes));
        if let Err(error) = written {
            self.disk.close(file);
            self.disk.remove(name)?;
            return Err(error);
        }
        self.is_folder_dirty = true;
        self.sealed.push(Sealed {
            file,
            from: 0,
            bytes: bytes.to_vec(),
        });
        Ok(file)
    }

    /// Finds the bytes of a record in memory, or reads them from the disk.
    pub(super) fn locate(
        &mut self,
        segment: &mut SegmentFile,
        offset: u64,
        bytes: usize,
    ) -> Result<Located, DiskError> {
        if segment.file == Some(self.active) && offset >= self.tail_from {
            let from = usize::try_from(offset - self.tail_from).unwrap_or(usize::MAX);
            return Ok(Located::clamped(Source::Tail, from, bytes, self.tail.len()));
        }
        let file = self.open(segment)?;
        self.reads += 1;
        let to = offset + bytes as u64;
        let hit = self.windows.iter().position(|w| {
            w.file == Some(file) && w.from <= offset && to <= w.from + w.bytes.len() as u64
        });
        let at = match hit {
            Some(at) => at,
            None => self.fetch(segment, file, offset, bytes)?,
        };
        let window = &mut self.windows[at];
        window.used = self.reads;
        let from = usize::try_from(offset - window.from).unwrap_or(usize::MAX);
        let source = Source::Window(at);
        Ok(Located::clamped(source, from, bytes, window.bytes.len()))
    }

    /// Returns located bytes. They are valid until the next record is located.
    pub(super) fn bytes(&self, located: &Located) -> &[u8] {
        let all = match located.source {
            Source::Tail => &self.tail,
            Source::Window(at) => &self.windows[at].bytes,
            Source::Decoded => &self.plain,
        };
        &all[located.from..located.to]
    }

    /// Returns the error of a failed sync whose bytes were not written again yet. Until then, the operating
    /// system may return other bytes than those written.
    pub(super) fn distrust(&self) -> Option<DiskError> {
        self.failure.filter(|_| self.must_rewrite)
    }

    /// Performs a sync request on this thread.
    pub(super) fn perform(&mut self, request: &SyncRequest) -> Result<(), DiskError> {
        for file in &request.files {
            self.disk.sync_file(*file)?;
        }
        match request.folder {
            true => self.disk.sync_folder(),
            false => Ok(()),
        }
    }

    /// Syncs all files, and blocks until this is done.
    pub(super) fn sync_all(&mut self) -> Result<(), DiskError> {
        for sealed in &self.sealed {
            self.disk.sync_file(sealed.file)?;
        }
        self.disk.sync_file(self.active)?;
        self.sealed.clear();
        self.synced_to = self.written_to;
        self.synced = self.written;
        Ok(())
    }

    fn fetch(
        &mut self,
        segment: &SegmentFile,
        file: FileId,
        offset: u64,
        bytes: usize,
    ) -> Result<usize, DiskError> {
        // If a read continues an earlier one, reads more than requested.
        let follows = self.windows.iter().position(|w| {
            let end = w.from + w.bytes.len() as u64;
            w.file == Some(file) && (w.from..=end).contains(&offset)
        });
        let wanted = if follows.is_some() {
            bytes.max(READ_AHEAD_BYTES)
        } else {
            bytes
        };
        let readable = if file == self.active {
            self.written_to
        } else {
            segment.bytes
        };
        let left = usize::try_from(readable.saturating_sub(offset)).unwrap_or(usize::MAX);
        let oldest = || {
            let windows = self.windows.iter().enumerate();
            windows.min_by_key(|(_, w)| w.used).map_or(0, |(at, _)| at)
        };
        let at = follows.unwrap_or_else(oldest);
        let window = &mut self.windows[at];
        window.file = None;
        window.bytes.resize(wanted.min(left), 0);
        let read = self.disk.read_at(file, offset, &mut window.bytes)?;
        window.bytes.truncate(read);
        window.file = Some(file);
        window.from = offset;
        Ok(at)
    }

    /// Reads a whole file into `out`, replacing its content.
    pub(super) fn read_all(
        &mut self,
        segment: &mut SegmentFile,
        out: &mut Vec<u8>,
    ) -> Result<(), DiskError> {
        let file = self.open(segment)?;
        read_whole(&mut *self.disk, file, out)
    }

    /// Overwrites the bytes of a record in place.
    pub(super) fn overwrite(
        &mut self,
        segment: &mut SegmentFile,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DiskError> {
        if segment.file == Some(self.active) && offset >= self.tail_from {
            let from = usize::try_from(offset - self.tail_from).unwrap_or(usize::MAX);
            if let Some(kept) = self
                .tail
                .get_mut(from..)
                .and_then(|r| r.get_mut(..bytes.len()))
            {
                kept.copy_from_slice(bytes);
            }
        }
        for sealed in &mut self.sealed {
            if segment.file == Some(sealed.file) && offset >= sealed.from {
                let from = usize::try_from(offset - sealed.from).unwrap_or(usize::MAX);
                let kept = sealed
                    .bytes
                    .get_mut(from..)
                    .and_then(|r| r.get_mut(..bytes.len()));
                if let Some(kept) = kept {
                    kept.copy_from_slice(bytes);
                }
            }
        }
        let file = self.open(segment)?;
        self.drop_windows(file);
        if file != self.active || offset < self.written_to {
            self.disk.write_at(file, offset, bytes)?;
        }
        Ok(())
    }

    pub(super) fn open(&mut self, segment: &mut SegmentFile) -> Result<FileId, DiskError> {
        if let Some(file) = segment.file {
            return Ok(file);
        }
        let file = self.disk.open(&segment.name(), false)?;
        segment.file = Some(file);
        Ok(file)
    }

    /// Closes the file of a segment, unless the file waits for a sync. Returns whether it is closed.
    pub(super) fn close(&mut self, segment: &mut SegmentFile) -> bool {
        let Some(file) = segment.file else {
            return true;
        };
        if file == self.active || self.sealed.iter().any(|s| s.file == file) {
            return false;
        }
        self.drop_windows(file);
        self.disk.close(file);
        segment.file = None;
        true
    }

    fn drop_windows(&mut self, file: FileId) {
        for window in &mut self.windows {
            window.file = window.file.filter(|known| *known != file);
        }
    }

    pub(super) fn note_removed(&mut self, sequence: u64) {
        self.unsynced_removals.note(sequence);
    }

    pub(super) fn note_all_removed(&mut self) {
        self.unsynced_removals.note_all(SyncId(self.next_id));
    }

    /// Returns whether one of these sequences has a removed record that a power cut may restore.
    pub(super) fn has_unsynced_removal(&mut self, sequences: Range<u64>) -> bool {
        let is_dirty = self.in_flight.is_some() || self.synced_to < self.dirty_to;
        self.unsynced_removals
            .track(is_dirty.then_some(SyncId(self.next_id)));
        self.unsynced_removals.has_any(sequences)
    }

    pub(super) fn note_floor(&mut self, floor: u64) {
        self.floor = Some(floor);
    }

    pub(super) fn take_floor(&mut self) -> Option<u64> {
        self.floor.take()
    }
}

/// Reads a whole file into `out`, replacing its content.
pub(super) fn read_whole(
    disk: &mut dyn Disk,
    file: FileId,
    out: &mut Vec<u8>,
) -> Result<(), DiskError> {
    let bytes = usize::try_from(disk.len(file)?).unwrap_or(usize::MAX);
    out.clear();
    out.resize(bytes, 0);
    let mut read = 0;
    while read < bytes {
        match disk.read_at(file, read as u64, &mut out[read..])? {
            0 => break,
            more => read += more,
        }
    }
    out.truncate(read);
    Ok(())
}
