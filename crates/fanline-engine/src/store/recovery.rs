//! Opens a store from a folder.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::cipher::{self, Cipher, DecryptError, Key, Purpose};
use super::commit::SyncMode;
use super::disk::Disk;
use super::encoding::{BodyEncoding, Compression};
use super::files::{AHEAD_BYTES, Files, SEGMENT_HEAD_BYTES, SegmentFile, SegmentHead, read_whole};
use super::index::{self, Reader, Totals};
use super::log::SEQUENCE_MAX;
use super::record::{self, Head, Kind, Parts, Position};
use super::scan::{Scanned, Scanner};
use super::segment::{Body, Segment, hash_name};
use super::slots::{Slot, Slots};
use super::subjects::UNKNOWN;
use super::tail::Survey;
use super::types::{Lost, StoreError, StoreLimits};
use super::{Filters, Store};

/// Maximum number of entries in [`Recovery::damages`].
const DAMAGES_MAX: usize = 64;
const FILE_SEGMENT_BYTES: usize = 16 << 20;
/// The zeros after the last record have at most the length of a segment divided by this number.
const AHEAD_PARTS: usize = 8;
/// Maximum size of a segment in bytes. It is limited so that offsets have at most 32 bits.
const SEGMENT_BYTES_MAX: usize = 1 << 30;

/// Options of a store on disk.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Condition under which an acknowledgement may be sent.
    pub mode: SyncMode,
    /// Random number that must be different at each start. It is the salt of a new store, and the epoch of
    /// encryption.
    pub seed: u64,
    /// Compression of new records.
    pub compression: Compression,
    /// Key that encrypts new data. Existing encrypted data must have been encrypted with the same key.
    pub key: Option<Key>,
    /// Size of a segment in bytes at which a new one begins, at most 1 GiB. A larger record gets a segment of
    /// its own.
    pub segment_bytes: usize,
}

impl Default for FileOptions {
    fn default() -> Self {
        FileOptions {
            mode: SyncMode::Commit,
            seed: 0,
            compression: Compression::None,
            key: None,
            segment_bytes: FILE_SEGMENT_BYTES,
        }
    }
}

/// The findings of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the index existed but was unusable, so that all segments were read.
    pub index_was_bad: bool,
    /// Number of records read.
    pub replayed: u64,
    /// Number of bytes cut off at the end of the log because they are not a whole record. A crash left them,
    /// or the newest record is damaged.
    pub torn_bytes: u64,
    /// Records that could not be read.
    pub lost: Lost,
    /// Damages, limited to the first ones.
    pub damages: Vec<Damage>,
    /// Sequence of the first record that may not have been synced. Later records of the log may be missing.
    pub unsynced_from: Option<u64>,
}

/// Damaged bytes in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file.
    pub file: String,
    /// Offset in the file.
    pub offset: u64,
    /// Number of damaged bytes.
    pub bytes: u64,
    /// Sequence of the damaged record, if known.
    pub sequence: Option<u64>,
}

impl Store {
    /// Opens the store in a folder. The opened store contains everything that was synced, and possibly more.
    ///
    /// # Errors
    /// The disk fails, or the key is wrong. Damage is not an error; [`Recovery`] reports it.
    pub fn file(
        disk: Box<dyn Disk>,
        options: &FileOptions,
        limits: &StoreLimits,
    ) -> Result<(Self, Recovery), StoreError> {
        let mut findings = Findings::default();
        let cipher = options.key.as_ref();
        let cipher = cipher.map(|key| Cipher::new(key, Purpose::Log, options.seed));
        let encoding = BodyEncoding::new(options.compression, cipher);
        let ahead_bytes = AHEAD_BYTES.min(options.segment_bytes / AHEAD_PARTS);
        let mut files = Files::new(disk, options.mode, encoding, ahead_bytes);
        let names = files.disk.list()?;
        let folder = Folder::new(&names);
        let has_index = names.iter().any(|name| name == index::NAME);
        let mut store = Store::of_files(options);
        let covered = match has_index {
            true => restore(&mut store, &mut files, &folder)?,
            false => None,
        };
        findings.recovery.index_was_bad = has_index && covered.is_none();
        let plan = match &covered {
            Some(covered) => folder.after(covered),
            None => {
                store = Store::of_files(options);
                folder.everything(&mut *files.disk)?
            }
        };
        for name in &plan.superfluous {
            files.disk.remove(name)?;
        }
        files.disk.remove(index::NEW_NAME)?;
        let salt = covered.as_ref().map(|covered| covered.salt).or(plan.salt);
        files.salt = salt.unwrap_or_else(|| spread(options.seed));
        store.files = Some(Box::new(files));
        let newest = store.replay(covered, plan.segments, &mut findings)?;
        let recovery = findings.into_recovery();
        store.resume(newest)?;
        // If an erased record had an encoded body, replay could not attribute its removal to a subject.
        store.recount()?;
        store.lost = recovery.lost;
        store.set_limits(limits)?;
        Ok((store, recovery))
    }

    fn of_files(options: &FileOptions) -> Self {
        let mut store = Store::empty();
        store.segment_bytes = options.segment_bytes.min(SEGMENT_BYTES_MAX);
        store
    }

    /// Applies the records that the index does not cover. Returns the head of the newest segment.
    fn replay(
        &mut self,
        covered: Option<Covered>,
        segments: Vec<SegmentFile>,
        findings: &mut Findings,
    ) -> Result<Option<SegmentHead>, StoreError> {
        let mut parts = Vec::with_capacity(segments.len() + 1);
        let mut synced = (0, 0);
        let has_covered = covered.is_some();
        if let Some(covered) = covered {
            let at = self.segments.len() - 1;
            self.load(at)?;
            // The subject of an erased record with an encoded body is unreadable, so some subject's count may
            // be wrong.
            self.recount()?;
            self.active_hashes = self.subject_hashes(at);
            let Body::File(file) = self.segments[at].body else {
                return Ok(None);
            };
            let from = covered.offset;
            synced = (covered.number, from);
            parts.push(ReplayRange { file, from });
        }
        let from = SEGMENT_HEAD_BYTES as u64;
        parts.extend(segments.into_iter().map(|file| ReplayRange { file, from }));
        let mut bytes = Vec::new();
        let (end, synced) = self.survey(&mut parts, synced, &mut bytes)?;
        findings.synced = synced;
        // Segments after the end of the log are removed.
        let is_kept = |part: &&ReplayRange| end.is_none_or(|end| (part.file.number, 0) < end);
        let kept = parts.iter().filter(is_kept).count();
        let mut newest = None;
        for (number, ReplayRange { mut file, from }) in parts.into_iter().enumerate() {
            self.read_file(&mut file, &mut bytes)?;
            if end.is_some_and(|end| end <= (file.number, 0)) {
                findings.recovery.torn_bytes += without_zeros(&bytes) as u64;
                self.remove_file(&mut file)?;
                continue;
            }
            let head = self.head_of(&bytes)?;
            newest = head.or(newest);
            if number == 0 && has_covered {
                // The file is open and active now, so that `resume` syncs it.
                self.set_active_file(file);
            } else {
                let Some(head) = head else {
                    findings.note(&file, 0, bytes.len(), None);
                    self.remove_file(&mut file)?;
                    continue;
                };
                file.bytes = bytes.len() as u64;
                self.add_segment(&head, file);
            }
            let end = match end {
                Some((last, offset)) if last == file.number => Some(offset),
                _ => None,
            };
            let is_newest = number + 1 == kept;
            self.replay_records(&bytes, from, end, is_newest, findings)?;
        }
        Ok(newest)
    }

    /// Returns the end of the log, if it is before the end of the files, and the position before which
    /// everything was synced.
    fn survey(
        &mut self,
        parts: &mut [ReplayRange],
        synced: Position,
        bytes: &mut Vec<u8>,
    ) -> Result<(Option<Position>, Position), StoreError> {
        let salt = self.files.as_ref().map_or(0, |files| files.salt);
        let mut survey = Survey::new(salt, synced);
        for part in parts {
            self.read_file(&mut part.file, bytes)?;
            let head = self.head_of(bytes)?;
            survey.add(&part.file, head.as_ref(), bytes, part.from);
        }
        Ok((survey.end(), survey.synced()))
    }

    fn set_active_file(&mut self, file: SegmentFile) {
        if let Some(segment) = self.segments.back_mut() {
            segment.body = Body::File(file);
        }
    }

    fn add_segment(&mut self, head: &SegmentHead, file: SegmentFile) {
        self.seal();
        // The head of a compacted segment may contain a lower sequence than earlier segments have.
        let first = head.first.max(self.last + 1);
        self.last = first - 1;
        let slots = Slots::with_base(first);
        self.segments
            .push_back(Segment::new(first, slots, Body::File(file)));
    }

    /// Parses the head of a segment. Returns an error if its records are encrypted with another key.
    fn head_of(&self, bytes: &[u8]) -> Result<Option<SegmentHead>, StoreError> {
        let head = SegmentHead::parse(bytes);
        let key_check = head.map_or(0, |head| head.key_check);
        match &self.files {
            Some(files) if !files.encoding.can_decrypt(key_check) => Err(StoreError::WrongKey),
            _ => Ok(head),
        }
    }

    fn remove_file(&mut self, file: &mut SegmentFile) -> Result<(), StoreError> {
        if let Some(files) = &mut self.files {
            files.close(file);
            files.disk.remove(&file.name())?;
        }
        Ok(())
    }

    fn read_file(&mut self, file: &mut SegmentFile, out: &mut Vec<u8>) -> Result<(), StoreError> {
        match &mut self.files {
            Some(files) => Ok(files.read_all(file, out)?),
            None => Ok(()),
        }
    }

    /// Applies the records of the last segment from an offset on, up to `end`, if the log ends in this
    /// segment.
    fn replay_records(
        &mut self,
        bytes: &[u8],
        from: u64,
        end: Option<u64>,
        is_newest: bool,
        findings: &mut Findings,
    ) -> Result<(), StoreError> {
        let salt = self.files.as_ref().map_or(0, |files| files.salt);
        let Some(Segment {
            body: Body::File(file),
            ..
        }) = self.segments.back()
        else {
            return Ok(());
        };
        let mut file = *file;
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        // Every start reads these bytes until the next checkpoint, so they count as written since the last
        // checkpoint.
        self.upkeep.written += bytes.len().saturating_sub(from) as u64;
        let mut plain = Vec::new();
        let end = end.and_then(|end| usize::try_from(end).ok());
        let readable = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
        let mut scanner = Scanner::new(readable, from, salt, true);
        while let Some((offset, found)) = scanner.next() {
            if let Scanned::Intact(head) = found
                && head.kind == Kind::SyncPoint
            {
                continue;
            }
            findings.recovery.replayed += 1;
            match found {
                Scanned::Intact(head) => {
                    let record = &bytes[offset..offset + head.len()];
                    let plain = self.plain(&head, record, &mut plain);
                    if let Some(parts) = plain.and_then(record::decode) {
                        let parts = Parts { head, ..parts };
                        if parts.head.kind == Kind::Remove {
                            findings.discount(head.sequence);
                        }
                        if head.kind.is_message() && (file.number, offset as u64) >= findings.synced
                        {
                            let unsynced_from = &mut findings.recovery.unsynced_from;
                            unsynced_from.get_or_insert(head.sequence);
                        }
                        self.replay_record(&parts, offset)?;
                    } else {
                        findings.note(&file, offset, head.len(), Some(head.sequence));
                    }
                }
                Scanned::Damaged(head) => {
                    let sequence = head.kind.is_message().then_some(head.sequence);
                    findings.note(&file, offset, head.len(), sequence);
                    self.note_dead(&head, offset);
                }
                Scanned::Hole { bytes: hole } => {
                    if !is_sync_point(&bytes[offset..offset + hole], salt) {
                        findings.note(&file, offset, hole, None);
                    }
                }
            }
        }
        let rest = &bytes[scanner.end().min(bytes.len())..];
        let torn = without_zeros(rest);
        file.bytes = bytes.len() as u64;
        if !rest.is_empty() && (is_newest || end.is_some() || torn == 0) {
            findings.recovery.torn_bytes += torn as u64;
            file.bytes = scanner.end() as u64;
            if let Some(files) = &mut self.files {
                let id = files.open(&mut file)?;
                files.disk.truncate(id, file.bytes)?;
            }
        } else if torn > 0 && !is_sync_point(rest, salt) {
            findings.note(&file, scanner.end(), rest.len(), None);
        }
        self.set_active_file(file);
        Ok(())
    }

    /// Returns a record with its body decoded.
    fn plain<'a>(
        &mut self,
        head: &Head,
        record: &'a [u8],
        plain: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if !head.has_encoded_body() {
            return Some(record);
        }
        let files = self.files.as_mut()?;
        files.encoding.decode(record, plain)?;
        Some(plain)
    }

    fn replay_record(&mut self, parts: &Parts<'_>, offset: usize) -> Result<(), StoreError> {
        let sequence = parts.head.sequence;
        match parts.head.kind {
            Kind::Message if sequence > self.last && self.can_note(sequence) => {
                self.note_record(&parts.head, offset, parts.record.subject);
                self.last = sequence;
                self.last_unix_nanos = Some(parts.head.unix_nanos);
                if let Some(expires_at) = parts.record.expires_at {
                    self.expiry.insert(expires_at, sequence);
                }
                if let Some(replaced) = parts.replaced {
                    self.drop_sequence(replaced, None)?;
                }
            }
            Kind::Message => {}
            Kind::Remove => {
                self.drop_sequence(sequence, None)?;
            }
            Kind::Floor => self.drop_below(sequence)?,
            Kind::Purge => {
                if let Ok(mut filters) = Filters::new([parts.record.subject]) {
                    self.drop_matching(&mut filters, sequence, u64::MAX)?;
                }
            }
            Kind::Skip => {
                self.last = self.last.max(sequence.saturating_sub(1));
            }
            Kind::SyncPoint => {}
        }
        Ok(())
    }

    /// Returns whether the last segment can contain a record of this sequence. Only damaged or forged files
    /// violate this.
    fn can_note(&self, sequence: u64) -> bool {
        let newest = self.segments.back();
        newest.is_some_and(|newest| {
            let slots = newest.slots.as_ref();
            newest.records == 0 || slots.is_some_and(|slots| slots.can_hold(sequence))
        })
    }

    /// Adds a record that occupies a slot but is not live.
    fn note_dead(&mut self, head: &Head, offset: usize) {
        let is_new = head.sequence > self.last && self.can_note(head.sequence);
        if !head.kind.is_message() || !is_new {
            return;
        }
        self.last = head.sequence;
        self.last_unix_nanos = Some(head.unix_nanos);
        let Some(active) = self.segments.back_mut() else {
            return;
        };
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        if let Some(slots) = &mut active.slots {
            if active.records == 0 {
                slots.reset(head.sequence);
            }
            slots.push(head.sequence, Slot::new(offset, head, UNKNOWN), head.bytes);
        }
        active.note_added(head.sequence, head.bytes, head.unix_nanos);
        active.kill(active.records as usize - 1, head.bytes);
    }

    pub(super) fn drop_below(&mut self, sequence: u64) -> Result<(), StoreError> {
        while self.messages > 0 && self.first < sequence && self.drop_first(None)? {}
        self.last = self.last.max(sequence.saturating_sub(1));
        Ok(())
    }

    /// Prepares the store for appends after the recovered records.
    fn resume(&mut self, newest: Option<SegmentHead>) -> Result<(), StoreError> {
        let last = self.last;
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        let is_new = self.segments.is_empty();
        let key_check = files.encoding.key_check();
        let is_usable = |head: SegmentHead| head.key_check == key_check && head.has_sync_points;
        let must_roll = !is_new && !newest.is_some_and(is_usable);
        if is_new {
            let head = SegmentHead {
                number: 1,
                generation: 0,
                through: 1,
                salt: files.salt,
                first: last + 1,
                key_check: files.encoding.key_check(),
                previous_bytes: 0,
                has_sync_points: true,
            };
            let mut file = file_of(1, 0);
            let id = files.disk.open(&file.name(), true)?;
            files.disk.truncate(id, 0)?;
            files.disk.write_at(id, 0, &head.to_bytes())?;
            file.file = Some(id);
            file.bytes = SEGMENT_HEAD_BYTES as u64;
            let slots = Slots::with_base(head.first);
            self.segments
                .push_back(Segment::new(head.first, slots, Body::File(file)));
        }
        if self.messages == 0 {
            self.first = last + 1;
        }
        // If only the process died, the bytes that were read may not be on disk yet.
        for segment in &self.segments {
            if let Body::File(SegmentFile { file: Some(id), .. }) = segment.body {
                files.disk.sync_file(id)?;
            }
        }
        files.disk.sync_folder()?;
        if let Some(Segment {
            body: Body::File(active),
            ..
        }) = self.segments.back_mut()
        {
            let id = files.open(active)?;
            files.begin(id, active.bytes, last);
            if self.upkeep.written > 0 {
                files.require_sync_point();
            }
        }
        files.take_floor();
        if must_roll {
            // A new segment begins if the newest one has another key in its head, or the first format
            // version, which has no sync points.
            self.roll(last + 1)?;
        }
        self.evict(usize::MAX);
        Ok(())
    }

    /// Returns the hashes of the subjects in a segment whose slots are in memory.
    fn subject_hashes(&self, at: usize) -> Vec<u64> {
        let slots = self.segments[at]
            .slots
            .iter()
            .flat_map(|slots| &slots.entries);
        let known = slots.filter_map(|slot| self.subjects.get(slot.subject));
        let mut active_hashes: Vec<u64> = known.map(|subject| hash_name(subject.name())).collect();
        active_hashes.sort_unstable();
        active_hashes.dedup();
        active_hashes
    }
}

/// A segment, and the offset from which it is replayed.
struct ReplayRange {
    file: SegmentFile,
    from: u64,
}

/// Returns whether these bytes are a sync point with one flipped bit. Its damage loses nothing.
fn is_sync_point(bytes: &[u8], salt: u32) -> bool {
    record::repaired_head(bytes, salt).is_some_and(|head| head.kind == Kind::SyncPoint)
}

/// Returns the length without the zeros at the end, which the store writes in advance for later records.
fn without_zeros(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| *byte != 0);
    last.map_or(0, |last| last + 1)
}

/// The findings of a replay.
#[derive(Default)]
struct Findings {
    recovery: Recovery,
    /// Position before which everything was synced.
    synced: Position,
    damages: Vec<Option<Damage>>,
    /// Index in `damages` of each damaged record, by sequence. A map is needed because a stream may have many
    /// erased records, each with a removal.
    by_sequence: HashMap<u64, usize>,
}

impl Findings {
    fn note(&mut self, file: &SegmentFile, offset: usize, bytes: usize, sequence: Option<u64>) {
        self.recovery.lost.messages += 1;
        self.recovery.lost.bytes += bytes as u64;
        if let Some(sequence) = sequence {
            let place = self.by_sequence.entry(sequence);
            place.or_insert(self.damages.len());
        }
        self.damages.push(Some(Damage {
            file: file.name(),
            offset: offset as u64,
            bytes: bytes as u64,
            sequence,
        }));
    }

    /// Removes a damaged record from the findings, because it was erased on request.
    fn discount(&mut self, sequence: u64) {
        let at = self.by_sequence.remove(&sequence);
        if let Some(damage) = at.and_then(|at| self.damages[at].take()) {
            self.recovery.lost.messages -= 1;
            self.recovery.lost.bytes -= damage.bytes;
        }
    }

    fn into_recovery(mut self) -> Recovery {
        let damages = self.damages.into_iter().flatten();
        self.recovery.damages = damages.take(DAMAGES_MAX).collect();
        self.recovery
    }
}

/// The part of the log that the index covers.
struct Covered {
    number: u32,
    offset: u64,
    salt: u32,
    files: Vec<(u32, u32)>,
}

/// Restores an empty store from the index; `None` if the index is unusable.
fn restore(
    store: &mut Store,
    files: &mut Files,
    folder: &Folder,
) -> Result<Option<Covered>, StoreError> {
    let disk = &mut *files.disk;
    let mut bytes = Vec::new();
    let file = disk.open(index::NAME, false)?;
    let read = read_whole(disk, file, &mut bytes);
    disk.close(file);
    read?;
    let mut decrypted = Vec::new();
    let content = match cipher::decrypt_file(files.encoding.cipher.as_mut(), &bytes, &mut decrypted)
    {
        Ok(content) => content,
        Err(DecryptError::Damaged) => return Ok(None),
        Err(DecryptError::WrongKey) => return Err(StoreError::WrongKey),
    };
    let Some(covered) = restore_from(store, content) else {
        return Ok(None);
    };
    let are_there = covered
        .files
        .iter()
        .all(|key| folder.segments.contains_key(key));
    // The newest segment must contain the whole part that the index covers.
    let newest = store
        .segments
        .back()
        .and_then(|segment| match &segment.body {
            Body::File(file) => Some(file.name()),
            Body::Memory(_) => None,
        });
    let (true, Some(newest)) = (are_there, newest) else {
        return Ok(None);
    };
    let file = disk.open(&newest, false)?;
    let len = disk.len(file);
    disk.close(file);
    Ok((len? >= covered.offset).then_some(covered))
}

fn restore_from(store: &mut Store, bytes: &[u8]) -> Option<Covered> {
    let mut reader = Reader::new(bytes)?;
    let mut files = Vec::new();
    for _ in 0..reader.segments {
        let (segment, file) = reader.segment()?;
        files.push((file.number, file.generation));
        store.segments.push_back(segment);
    }
    store.subjects.reserve(reader.subjects_at_most());
    for _ in 0..reader.subjects {
        let subject = reader.subject()?;
        if subject.messages > reader.totals.messages {
            return None;
        }
        let id = store.subjects.add_in_order(subject.name)?;
        let known = store.subjects.get_mut(id);
        known.messages = subject.messages;
        known.last = subject.last;
        known.first_at_least = subject.first_at_least;
    }
    for _ in 0..reader.expiries {
        let (expires_at, sequence) = reader.expiry()?;
        store.expiry.insert(expires_at, sequence);
    }
    let totals = &reader.totals;
    if !is_plausible(totals, &store.segments) {
        return None;
    }
    store.first = totals.first;
    store.last = totals.last;
    store.last_unix_nanos = totals.last_unix_nanos;
    store.messages = totals.messages;
    store.bytes = totals.bytes;
    Some(Covered {
        number: totals.number,
        offset: totals.offset,
        salt: totals.salt,
        files,
    })
}

/// Returns whether the totals of an index are consistent with its segments, because queries rely on both.
fn is_plausible(totals: &Totals, segments: &VecDeque<Segment>) -> bool {
    let number = |segment: &Segment| match segment.body {
        Body::File(file) => file.number,
        Body::Memory(_) => 0,
    };
    let pairs = segments.iter().zip(segments.iter().skip(1));
    let are_in_order = pairs.fold(true, |so_far, (a, b)| {
        so_far && number(a) < number(b) && a.last < b.first
    });
    let live: u64 = segments
        .iter()
        .map(|segment| u64::from(segment.live()))
        .sum();
    let Some(newest) = segments.back() else {
        return false;
    };
    let span = totals.last.saturating_add(1).checked_sub(totals.first);
    are_in_order
        && number(newest) == totals.number
        && newest.last <= totals.last
        && totals.last <= SEQUENCE_MAX
        && live == totals.messages
        && span.is_some_and(|span| live <= span)
        && totals.bytes <= SEQUENCE_MAX
}

/// The segment files of a folder, by number and generation.
struct Folder {
    segments: BTreeMap<(u32, u32), String>,
}

/// The files to read and the files to remove at a start.
#[derive(Default)]
struct Plan {
    segments: Vec<SegmentFile>,
    superfluous: Vec<String>,
    salt: Option<u32>,
}

impl Folder {
    fn new(names: &[String]) -> Self {
        let parsed = names
            .iter()
            .filter_map(|name| Some((SegmentFile::parse_name(name)?, name)));
        Folder {
            segments: parsed.map(|(key, name)| (key, name.clone())).collect(),
        }
    }

    /// Returns the segments after the covered part as files to read. Other segments that the index does not
    /// contain were about to be removed.
    fn after(&self, covered: &Covered) -> Plan {
        let mut plan = Plan::default();
        for ((number, generation), name) in &self.segments {
            if *number > covered.number && *generation == 0 {
                plan.segments.push(file_of(*number, *generation));
            } else if !covered.files.contains(&(*number, *generation)) {
                plan.superfluous.push(name.clone());
            }
        }
        plan
    }

    /// Returns the segments to read without an index. If all originals of a compacted segment still exist,
    /// the originals are read instead of the compacted segment.
    fn everything(&self, disk: &mut dyn Disk) -> Result<Plan, StoreError> {
        let mut plan = Plan::default();
        let mut heads = Vec::new();
        for ((number, generation), name) in &self.segments {
            let mut bytes = [0; SEGMENT_HEAD_BYTES];
            let file = disk.open(name, false)?;
            let read = disk.read_at(file, 0, &mut bytes);
            disk.close(file);
            // If the number in the head differs from that in the file's name, the head does not belong to
            // this log.
            let head = SegmentHead::parse(&bytes[..read?])
                .filter(|head| (head.number, head.generation) == (*number, *generation));
            plan.salt = plan.salt.or_else(|| head.map(|head| head.salt));
            // Without a valid head, the number is that in the file's name.
            heads.push(head.unwrap_or(SegmentHead {
                number: *number,
                generation: *generation,
                through: *number,
                salt: 0,
                first: 0,
                key_check: 0,
                previous_bytes: 0,
                has_sync_points: true,
            }));
        }
        let is_whole = |compacted: &SegmentHead| {
            let mut next = compacted.number;
            for head in &heads {
                let is_older = head.generation < compacted.generation;
                if is_older && head.number == next && head.through <= compacted.through {
                    next = head.through.saturating_add(1);
                }
            }
            next > compacted.through
        };
        let is_wanted = |h: &&SegmentHead| h.generation == 0 || !is_whole(h);
        let wanted: Vec<_> = heads.iter().filter(is_wanted).collect();
        for head in &heads {
            let is_covered = wanted.iter().any(|other| {
                let covers = other.number..=other.through;
                other.generation > head.generation && covers.contains(&head.number)
            });
            let file = file_of(head.number, head.generation);
            if wanted.contains(&head) && !is_covered {
                plan.segments.push(file);
            } else {
                plan.superfluous.push(file.name());
            }
        }
        Ok(plan)
    }
}

fn file_of(number: u32, generation: u32) -> SegmentFile {
    SegmentFile {
        number,
        generation,
        file: None,
        bytes: 0,
    }
}

/// Mixes a seed into a number from which the result for the next seed cannot be guessed (splitmix64).
fn spread(seed: u64) -> u32 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    u32::try_from(mixed >> 32).unwrap_or_default()
}
