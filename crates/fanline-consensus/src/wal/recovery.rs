//! Opening a log: its surviving frames, its damage, and its end.

use std::collections::{BTreeSet, VecDeque};

use fanline_engine::store::{Disk, DiskError, FileId};

use super::frame::Kind;
use super::lanes::{Lanes, Place};
use super::scan::{Found, Payload, Scanner};
use super::segment::{AREA_BYTES, HeadError, Origin, SegmentHead, file_name, number_of};
use super::{OpenError, Options, Position, Segment, Wal, to_usize};

/// Suffix of the first segment's file until its head is synced.
const NEW: &str = ".new";

/// The findings of [`Wal::open`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether there was no log. The node then has no votes or entries that it could have forgotten, or it is
    /// another member than before: see [`Wal::incarnation`].
    pub is_created: bool,
    /// Bytes after the end of the log that were removed. They were never synced.
    pub torn_bytes: u64,
    /// Number of frames and segment heads with a wrong bit that were corrected.
    pub corrected: usize,
    /// Damage to synced bytes that could not be corrected.
    pub damage: Vec<Damage>,
}

/// Damage to bytes that were synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The payload of an entry. Another member may have it: [`Wal::repair`].
    Entry {
        /// The lane.
        lane: u16,
        /// Index of the entry.
        index: u64,
    },
    /// All frames from one position to another, of unknown lanes.
    Frames {
        /// Position of the first lost frame.
        first: Position,
        /// Position of the last one.
        last: Position,
    },
}

/// A segment as found on the disk.
struct Scanned {
    number: u32,
    file: FileId,
    file_bytes: u64,
    head: Option<SegmentHead>,
    is_head_damaged: bool,
    frames: Vec<Found>,
}

/// The end of the log, behind a seal.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Index of the segment among those found.
    segment: usize,
    offset: usize,
    position: Position,
    chain: u32,
}

/// The log from its oldest needed segment to its end.
struct Walk {
    from: usize,
    end: End,
    /// Ranges of lost positions before the end.
    lost: Vec<(Position, Position)>,
    /// The highest number among the segments that a seal named as the oldest needed one.
    oldest: u32,
    /// The highest mark before the end, and the last damaged position.
    marked: Position,
    damaged: Position,
}

impl<D: Disk> Wal<D> {
    /// Opens the log in a folder that holds nothing else, or creates it. Repairs what can be repaired, removes
    /// what was never synced, and syncs the rest. It does not remove or change anything that was synced.
    /// The folder must be locked against other processes.
    ///
    /// # Errors
    /// [`OpenError`]. The log of another node is not changed.
    pub fn open(mut disk: D, options: &Options) -> Result<(Self, Recovery), OpenError> {
        let names = disk.list()?;
        let mut numbers: Vec<_> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        if numbers.is_empty() {
            return Self::create(disk, options);
        }
        let origin = read_origin(&mut disk, &numbers, options)?;
        for name in names.iter().filter(|name| name.ends_with(NEW)) {
            disk.remove(name)?;
        }
        let segments = scan_all(&mut disk, &numbers, &origin)?;
        let walk = find_end(&segments);
        let mut recovery = Recovery::default();
        let lanes = replay(&segments, &walk, &mut recovery);
        let mut wal = Self::recovered(disk, options, origin, &segments, &walk, lanes);
        // A log needs an intact head. The only one may be behind the end.
        let kept = &segments[walk.from..=walk.end.segment];
        let has_head = kept.iter().any(|segment| segment.head.is_some());
        if walk.damaged > walk.marked || !has_head {
            let last = segments.last().map_or(0, |segment| segment.number);
            wal.mark_before_cutting(last + 1)?;
        }
        apply_repairs(&mut wal.disk, &segments, &walk, &mut recovery)?;
        Ok((wal, recovery))
    }

    /// Writes a mark to a segment of its own. The mark that distinguishes the damage from a torn tail, or the only
    /// intact head, is behind the end of the log, where it will be removed.
    fn mark_before_cutting(&mut self, number: u32) -> Result<(), DiskError> {
        self.roll(number);
        self.seal();
        self.write_batch()?;
        if let Some(file) = self.last_segment().file {
            self.disk.sync_file(file)?;
        }
        self.disk.sync_folder()?;
        self.durable = self.next - 1;
        self.unsynced.clear();
        self.is_folder_unsynced = false;
        Ok(())
    }

    fn create(mut disk: D, options: &Options) -> Result<(Self, Recovery), OpenError> {
        let head = SegmentHead {
            origin: Origin {
                identity: options.identity,
                incarnation: options.incarnation,
                salt: options.salt,
            },
            number: 1,
            first: 1,
            chain: options.salt,
        };
        // A log with a torn head would be unreadable, so the file has its name only when the head is synced.
        let name = file_name(head.number);
        let new = format!("{name}{NEW}");
        disk.remove(&new)?;
        let file = disk.open(&new, true)?;
        disk.write_at(file, 0, &head.area())?;
        disk.sync_file(file)?;
        disk.rename(&new, &name)?;
        disk.sync_folder()?;
        let segment = Segment {
            head,
            file: Some(file),
            bytes: AREA_BYTES as u64,
            end: 1,
        };
        let recovery = Recovery {
            is_created: true,
            ..Recovery::default()
        };
        let wal = Self::with(
            disk,
            options,
            head.origin,
            VecDeque::from([segment]),
            head.chain,
        );
        Ok((wal, recovery))
    }

    fn with(
        disk: D,
        options: &Options,
        origin: Origin,
        segments: VecDeque<Segment>,
        chain: u32,
    ) -> Self {
        let next = segments.back().map_or(1, |segment| segment.end);
        Wal {
            disk,
            origin,
            segment_bytes: options.segment_bytes,
            segments_wanted: options.segments_wanted,
            scrubbed: segments.front().map_or(0, |segment| segment.head.number),
            segments,
            lanes: Lanes::default(),
            batch: Vec::new(),
            sealed: None,
            next,
            chain,
            durable: next - 1,
            marked: 0,
            unsynced: BTreeSet::new(),
            is_folder_unsynced: false,
            in_flight: None,
            syncs: 0,
            condemned: 0,
            losses_accepted: 0,
            failed: None,
        }
    }

    fn recovered(
        disk: D,
        options: &Options,
        origin: Origin,
        found: &[Scanned],
        walk: &Walk,
        lanes: Lanes,
    ) -> Self {
        let kept = &found[walk.from..=walk.end.segment];
        let segments = kept.iter().enumerate().map(|(i, segment)| {
            let is_last = walk.from + i == walk.end.segment;
            let last = segment.frames.last();
            let end = match is_last {
                true => (walk.end.position + 1, walk.end.offset),
                false => last.map_or((0, AREA_BYTES), |frame| {
                    (frame.head.position + 1, frame.end())
                }),
            };
            // The head of a segment with two damaged copies is not used, because the segment is condemned.
            let head = segment.head.unwrap_or(SegmentHead {
                origin,
                number: segment.number,
                first: end.0,
                chain: 0,
            });
            Segment {
                head,
                file: Some(segment.file),
                bytes: end.1 as u64,
                end: end.0,
            }
        });
        let segments = segments.collect();
        let is_damaged = |segment: &&Scanned| {
            let is_bad = |frame: &Found| frame.payload != Payload::Intact;
            segment.head.is_none() || segment.frames.iter().any(is_bad) || has_loss(segment, walk)
        };
        let condemned = kept
            .iter()
            .rev()
            .find(is_damaged)
            .map_or(0, |segment| segment.number);
        let wal = Self::with(disk, options, origin, segments, walk.end.chain);
        Wal {
            lanes,
            condemned,
            ..wal
        }
    }
}

fn has_loss(segment: &Scanned, walk: &Walk) -> bool {
    let last = segment.frames.last().map_or(0, |frame| frame.head.position);
    let first = segment.head.map_or(last, |head| head.first);
    walk.lost
        .iter()
        .any(|(from, to)| *from <= last && *to >= first)
}

/// Reads the heads of all segments, and returns what they have in common.
fn read_origin<D: Disk>(
    disk: &mut D,
    numbers: &[u32],
    options: &Options,
) -> Result<Origin, OpenError> {
    let mut origin = None;
    for &segment in numbers {
        let file = disk.open(&file_name(segment), false)?;
        let mut area = [0; AREA_BYTES];
        disk.read_at(file, 0, &mut area)?;
        disk.close(file);
        let head = match SegmentHead::read(&area) {
            Ok(head) => head,
            Err(HeadError::Version(version)) => {
                return Err(OpenError::Version { segment, version });
            }
            Err(HeadError::Damaged) => continue,
        };
        if head.origin.identity != options.identity {
            return Err(OpenError::Identity {
                found: head.origin.identity,
                wanted: options.identity,
            });
        }
        if head.number != segment || *origin.get_or_insert(head.origin) != head.origin {
            return Err(OpenError::Mixed { segment });
        }
    }
    origin.ok_or(OpenError::Unreadable)
}

fn scan_all<D: Disk>(
    disk: &mut D,
    numbers: &[u32],
    origin: &Origin,
) -> Result<Vec<Scanned>, DiskError> {
    let mut segments: Vec<Scanned> = Vec::new();
    let mut state = (1, None);
    for &number in numbers {
        let file = disk.open(&file_name(number), false)?;
        let bytes = read_file(disk, file)?;
        let head = SegmentHead::read(&bytes).ok();
        if let Some(head) = head {
            state = (head.first, Some(head.chain));
        }
        let mut scanner = Scanner::new(&bytes, origin.salt, state.0, state.1);
        let frames = scanner.by_ref().collect();
        state = scanner.state();
        segments.push(Scanned {
            number,
            file,
            file_bytes: bytes.len() as u64,
            head,
            is_head_damaged: head.is_none_or(|head| !bytes.starts_with(&head.area())),
            frames,
        });
    }
    Ok(segments)
}

pub(super) fn read_file<D: Disk>(disk: &mut D, file: FileId) -> Result<Vec<u8>, DiskError> {
    let mut bytes = vec![0; to_usize(disk.len(file)?)];
    let count = disk.read_at(file, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Finds the oldest needed segment and the end of the log.
fn find_end(segments: &[Scanned]) -> Walk {
    let frames = segments.iter().flat_map(|segment| &segment.frames);
    let seals = frames.filter(|frame| frame.head.kind == Kind::Seal);
    let mut synced = 0;
    let mut oldest = BTreeSet::new();
    for seal in seals {
        synced = synced.max(seal.head.index);
        oldest.insert(seal.head.term);
    }
    // Older segments may be left over from a removal. A seal is believed only if it is before the end.
    for &number in oldest.iter().rev() {
        let walk = follow(segments, number, synced);
        if u64::from(walk.oldest) == number {
            return walk;
        }
    }
    follow(segments, u64::from(segments[0].number), synced)
}

/// Follows the log from a segment to the first damage that was not synced.
fn follow(segments: &[Scanned], number: u64, synced: Position) -> Walk {
    let from = segments.partition_point(|segment| u64::from(segment.number) < number);
    let from = from.min(segments.len() - 1);
    let head = segments[from].head;
    let first = segments[from..]
        .iter()
        .find_map(|segment| segment.frames.first());
    let mut expected = match (head, first) {
        (Some(head), _) => head.first,
        (None, Some(frame)) if frame.offset == AREA_BYTES => frame.head.position,
        // Something before the frame is lost.
        (None, first) => first.map_or(1, |frame| (frame.head.position - 1).max(1)),
    };
    let mut walk = Walk {
        from,
        end: End {
            segment: from,
            offset: AREA_BYTES,
            position: expected - 1,
            chain: head.map_or(0, |head| head.chain),
        },
        lost: Vec::new(),
        oldest: 0,
        marked: 0,
        damaged: 0,
    };
    if u64::from(segments[from].number) != number {
        walk.lost
            .push((expected.saturating_sub(1), expected.saturating_sub(1)));
    }
    let mut damaged = 0;
    let frames = segments.iter().enumerate().skip(from);
    let frames = frames.flat_map(|(i, segment)| segment.frames.iter().map(move |frame| (i, frame)));
    for (segment, frame) in frames {
        let head = &frame.head;
        // The tail of an older history.
        if head.position < expected {
            continue;
        }
        if head.position > expected {
            if expected > synced {
                break;
            }
            walk.lost.push((expected, head.position - 1));
            damaged = head.position - 1;
        }
        if frame.payload == Payload::Unreadable {
            if head.position > synced {
                break;
            }
            damaged = head.position;
        }
        expected = head.position + 1;
        if head.kind == Kind::Seal {
            walk.oldest = walk.oldest.max(u32::try_from(head.term).unwrap_or(0));
            walk.marked = walk.marked.max(head.index);
            walk.damaged = damaged;
            walk.end = End {
                segment,
                offset: frame.end(),
                position: head.position,
                chain: head.chain,
            };
        }
    }
    let end = walk.end.position;
    walk.lost.retain(|(first, _)| *first <= end);
    walk
}

/// Applies all frames up to the end.
fn replay(segments: &[Scanned], walk: &Walk, recovery: &mut Recovery) -> Lanes {
    let mut lanes = Lanes::default();
    let mut next = 0;
    for segment in &segments[walk.from..=walk.end.segment] {
        for frame in &segment.frames {
            let head = &frame.head;
            if head.position < next || head.position > walk.end.position {
                continue;
            }
            next = head.position + 1;
            let is_damaged = frame.payload != Payload::Intact;
            let place = Place {
                segment: segment.number,
                offset: frame.offset as u64,
            };
            lanes.apply(head, &frame.note, place, is_damaged);
        }
    }
    for &(first, last) in &walk.lost {
        lanes.lost_at = lanes.lost_at.max(last);
        recovery.damage.push(Damage::Frames { first, last });
    }
    for (number, lane) in lanes.iter() {
        let damaged = lane.entries.iter().filter(|(_, slot)| slot.is_damaged);
        let damaged = damaged.map(|(index, _)| Damage::Entry {
            lane: number,
            index: *index,
        });
        recovery.damage.extend(damaged);
    }
    lanes
}

/// Corrects wrong bits, removes what is behind the end, and syncs everything.
fn apply_repairs<D: Disk>(
    disk: &mut D,
    segments: &[Scanned],
    walk: &Walk,
    recovery: &mut Recovery,
) -> Result<(), DiskError> {
    for (i, segment) in segments.iter().enumerate() {
        if i < walk.from || i > walk.end.segment {
            if i > walk.end.segment {
                recovery.torn_bytes += segment.file_bytes;
            }
            disk.close(segment.file);
            disk.remove(&file_name(segment.number))?;
            continue;
        }
        if let Some(head) = segment.head.filter(|_| segment.is_head_damaged) {
            disk.write_at(segment.file, 0, &head.area())?;
            recovery.corrected += 1;
        }
        let frames = segment
            .frames
            .iter()
            .filter(|frame| frame.head.position <= walk.end.position);
        for (offset, bytes) in frames.filter_map(|frame| frame.correction.as_ref()) {
            disk.write_at(segment.file, *offset as u64, bytes)?;
            recovery.corrected += 1;
        }
        let end = walk.end.offset as u64;
        if i == walk.end.segment && end < segment.file_bytes {
            recovery.torn_bytes += segment.file_bytes - end;
            disk.truncate(segment.file, end)?;
        }
        disk.sync_file(segment.file)?;
    }
    disk.sync_folder()
}
