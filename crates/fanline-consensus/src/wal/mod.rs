//! The write-ahead log of a node: terms, votes, and entries of its consensus groups.
//!
//! A *lane* is one group's part of the log: the term and vote, and the entries above its *floor*, below which a
//! snapshot contains their effects. All lanes share one log, so one sync serves all of them. Frames have
//! *positions*, counted over all lanes. When [`Wal::durable`] has reached the position that a method returned,
//! its effect is on the disk, and answers that depend on it may leave.
//!
//! The log does no I/O of its own and never waits: [`Wal::poll_sync`] writes a batch of frames to a [`Disk`] and
//! returns the sync to perform; [`Wal::handle_synced`] takes its result. Only [`Wal::open`] syncs by itself.
//!
//! `docs/formats/wal.md` describes the bytes on disk, and how recovery tells a torn tail from damage.
//!
//! ```
//! use fanline_consensus::wal::{Identity, Options, Vote, Wal};
//! use fanline_engine::store::{Disk as _, simulated_disk::SimulatedDisk};
//!
//! let mut disk = SimulatedDisk::new();
//! let options = Options::new(Identity { cluster: 1, node: 2 }, 77, 99);
//! let (mut wal, _) = Wal::open(disk.clone(), &options).unwrap();
//! wal.set_vote(5, Vote { term: 1, voted_for: Some(2) }).unwrap();
//! let position = wal.append(5, 1, 1, b"3 apples").unwrap();
//!
//! let request = wal.poll_sync().unwrap().unwrap();
//! for file in request.files {
//!     disk.sync_file(file).unwrap();
//! }
//! disk.sync_folder().unwrap();
//! wal.handle_synced(request.id, Ok(())).unwrap();
//! assert!(wal.durable() >= position);
//! assert_eq!(wal.read(5, 1).unwrap(), b"3 apples");
//! ```

mod carry;
mod error;
mod frame;
mod lanes;
pub mod limits;
#[cfg(test)]
mod model_tests;
mod recovery;
mod scan;
mod scrub;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use fanline_engine::store::{Disk, DiskError, FileId, SyncId, SyncRequest};

pub use error::{OpenError, WalError};
pub use lanes::{Condition, Floor, Vote};
pub use recovery::{Damage, Recovery};
pub use segment::Identity;

use frame::{HEAD_BYTES, Head, Kind, checksum, padded};
use lanes::{Lanes, Place};
use limits::{
    ENTRY_BYTES_MAX, INDEX_MAX, LANES_MAX, NOTE_BYTES_MAX, PENDING_BYTES_MAX, SEGMENT_BYTES,
    SEGMENTS_WANTED,
};
use segment::{AREA_BYTES, Origin, SegmentHead};

/// Number of a frame, counted over all lanes.
pub type Position = u64;

/// How to open a log.
#[derive(Clone, Debug)]
pub struct Options {
    /// The node whose log it is. The log of another node is refused.
    pub identity: Identity,
    /// Random number for [`Wal::incarnation`], used if the log is created; not 0, and at most [`INDEX_MAX`].
    pub incarnation: u64,
    /// Secret random number, used if the log is created. It seeds the checksums, so that no payload can be
    /// taken for a frame.
    pub salt: u32,
    /// Length at which a segment is full.
    pub segment_bytes: u64,
    /// Number of segments from which on the oldest one is emptied.
    pub segments_wanted: usize,
}

impl Options {
    /// Returns options with the usual limits.
    pub fn new(identity: Identity, incarnation: u64, salt: u32) -> Self {
        Options {
            identity,
            incarnation,
            salt,
            segment_bytes: SEGMENT_BYTES,
            segments_wanted: SEGMENTS_WANTED,
        }
    }
}

/// A file of the log.
#[derive(Debug)]
struct Segment {
    head: SegmentHead,
    /// `None` until its first batch is written.
    file: Option<FileId>,
    /// Length of the written frames and the area before them.
    bytes: u64,
    /// Position behind its last written frame.
    end: Position,
}

/// The sync under way.
#[derive(Debug)]
struct InFlight {
    id: SyncId,
    until: Position,
    oldest: u32,
}

/// The write-ahead log of a node. See the [module](self).
#[derive(Debug)]
pub struct Wal<D> {
    disk: D,
    origin: Origin,
    segment_bytes: u64,
    segments_wanted: usize,
    /// Never empty; frames are appended to the last segment.
    segments: VecDeque<Segment>,
    lanes: Lanes,
    /// Frames that are not written yet.
    batch: Vec<u8>,
    /// For a batch that was closed and not written yet, the oldest segment that it names as needed.
    sealed: Option<u32>,
    /// Position of the next frame, and the chain value before it.
    next: Position,
    chain: u32,
    durable: Position,
    /// The position that the last seal named as synced.
    marked: Position,
    /// Segments with unsynced bytes, and whether the folder has unsynced names.
    unsynced: BTreeSet<u32>,
    is_folder_unsynced: bool,
    in_flight: Option<InFlight>,
    syncs: u64,
    /// Segments up to this one have damage: they are emptied as soon as possible.
    condemned: u32,
    /// The position up to which lost frames were accepted.
    losses_accepted: Position,
    /// The next segment to scrub.
    scrubbed: u32,
    /// The error after which nothing is accepted.
    failed: Option<DiskError>,
}

impl<D: Disk> Wal<D> {
    /// Returns the number that identifies this log among those that were created for the same node. A node
    /// with another incarnation than before is another member: it has forgotten its votes.
    pub fn incarnation(&self) -> u64 {
        self.origin.incarnation
    }

    /// Returns the position up to which everything is on the disk.
    pub fn durable(&self) -> Position {
        self.durable
    }

    /// Returns the lanes that have frames.
    pub fn lanes(&self) -> impl Iterator<Item = u16> {
        self.lanes.iter().map(|(lane, _)| lane)
    }

    /// Returns whether a lane's state is complete. A node must not vote in a lane that is not
    /// [`Condition::Intact`].
    pub fn condition(&self, lane: u16) -> Condition {
        self.lanes.condition(lane)
    }

    /// Returns the number under which this node is a member of a lane's group: the incarnation of the log, or the
    /// number of the lane's last [`reset`](Self::reset).
    pub fn member(&self, lane: u16) -> u64 {
        let member = self.lanes.get(lane).and_then(|lane| lane.member);
        member.unwrap_or(self.origin.incarnation)
    }

    /// Returns the term and vote of a lane.
    pub fn vote(&self, lane: u16) -> Vote {
        self.lanes
            .get(lane)
            .map(|lane| lane.vote)
            .unwrap_or_default()
    }

    /// Returns the floor of a lane.
    pub fn floor(&self, lane: u16) -> Floor {
        let floor = self.lanes.get(lane).map(|lane| lane.floor.clone());
        floor.unwrap_or_default()
    }

    /// Returns index and term of the last entry of a lane, or of its floor.
    pub fn last(&self, lane: u16) -> (u64, u64) {
        self.lanes
            .get(lane)
            .map(lanes::Lane::last)
            .unwrap_or_default()
    }

    /// Returns the term of an entry of a lane, or of its floor.
    pub fn term(&self, lane: u16, index: u64) -> Option<u64> {
        self.lanes.get(lane)?.term_of(index)
    }

    /// Reads the payload of an entry.
    ///
    /// # Errors
    /// [`WalError::NoEntry`]; [`WalError::Damaged`] if the bytes on the disk are not those that were appended;
    /// or an error of the disk.
    pub fn read(&mut self, lane: u16, index: u64) -> Result<Vec<u8>, WalError> {
        let slot = self
            .lanes
            .get(lane)
            .and_then(|lane| lane.entries.get(&index));
        let slot = *slot.ok_or(WalError::NoEntry { lane, index })?;
        let frame = self.read_frame(slot.place, slot.payload_bytes)?;
        let head = frame
            .first_chunk()
            .and_then(|head| Head::read(head, self.origin.salt));
        let is_intact = !slot.is_damaged
            && head.is_some_and(|head| {
                (head.lane, head.index, head.term) == (lane, index, slot.term)
                    && head.payload_checksum == checksum(self.origin.salt, &frame[HEAD_BYTES..])
            });
        match is_intact {
            true => Ok(frame[HEAD_BYTES..HEAD_BYTES + slot.payload_bytes].to_vec()),
            false => Err(WalError::Damaged { lane, index }),
        }
    }

    fn read_frame(&mut self, place: Place, payload_bytes: usize) -> Result<Vec<u8>, WalError> {
        let mut frame = vec![0; HEAD_BYTES + padded(payload_bytes)];
        let segment = self.segment(place.segment);
        let (file, written) = (segment.file, segment.bytes);
        match file {
            Some(file) if place.offset < written => {
                self.disk
                    .read_at(file, place.offset, &mut frame)
                    .map_err(WalError::Disk)?;
            }
            _ => {
                let from = to_usize(place.offset - written);
                let to = from + frame.len();
                frame.copy_from_slice(&self.batch[from..to]);
            }
        }
        Ok(frame)
    }

    /// Records the term that a node is in, and its vote. Messages that depend on them may leave when the
    /// returned position is durable.
    ///
    /// # Errors
    /// [`WalError::Order`] if the term is lower than before, or the vote of the term another one;
    /// [`WalError::Busy`], [`WalError::Failed`], [`WalError::Lane`].
    pub fn set_vote(&mut self, lane: u16, vote: Vote) -> Result<Position, WalError> {
        let old = self.vote(lane);
        let is_changed =
            old.term == vote.term && old.voted_for.is_some() && old.voted_for != vote.voted_for;
        if vote.term < old.term || is_changed || vote.voted_for == Some(0) {
            return Err(WalError::Order { lane });
        }
        self.push(
            lane,
            Kind::Vote,
            vote.voted_for.unwrap_or(0),
            vote.term,
            &[],
        )
    }

    /// Appends an entry. Entries of the lane from this index on are replaced.
    ///
    /// # Errors
    /// [`WalError::Order`] if the index is not above the floor and at most one above the last, or if the term
    /// is lower than that of the entry before; [`WalError::TooLong`], [`WalError::Busy`],
    /// [`WalError::Failed`], [`WalError::Lane`].
    pub fn append(
        &mut self,
        lane: u16,
        index: u64,
        term: u64,
        payload: &[u8],
    ) -> Result<Position, WalError> {
        let before = index
            .checked_sub(1)
            .and_then(|before| match self.lanes.get(lane) {
                Some(lane) => lane.term_of(before),
                None => (before == 0).then_some(0),
            });
        if before.is_none_or(|before| term < before) {
            return Err(WalError::Order { lane });
        }
        self.push(lane, Kind::Entry, index, term, payload)
    }

    /// Removes all entries above an index.
    ///
    /// # Errors
    /// [`WalError::Order`] if the index is below the floor; [`WalError::Busy`], [`WalError::Failed`],
    /// [`WalError::Lane`].
    pub fn truncate(&mut self, lane: u16, last: u64) -> Result<Position, WalError> {
        if last < self.floor(lane).index {
            return Err(WalError::Order { lane });
        }
        self.push(lane, Kind::Truncate, last, 0, &[])
    }

    /// Removes the entries up to an index, because a snapshot that is on the disk contains their effects. If
    /// the lane has no entry of this index and term, removes all entries. Stores a note with the floor, such
    /// as the members at that index.
    ///
    /// # Errors
    /// [`WalError::Order`] if the index is below the floor; [`WalError::TooLong`] for the note;
    /// [`WalError::Busy`], [`WalError::Failed`], [`WalError::Lane`].
    pub fn compact(
        &mut self,
        lane: u16,
        index: u64,
        term: u64,
        note: &[u8],
    ) -> Result<Position, WalError> {
        let floor = self.floor(lane).index;
        if index < floor {
            return Err(WalError::Order { lane });
        }
        if self.term(lane, index) != Some(term) && self.last(lane).0 > floor {
            self.push(lane, Kind::Truncate, floor, 0, &[])?;
        }
        self.push(lane, Kind::Compact, index, term, note)
    }

    /// Replaces the damaged payload of an entry with the payload of the same entry at another member.
    ///
    /// # Errors
    /// [`WalError::NoEntry`] if the lane has no entry of this index and term, [`WalError::Order`] if its length
    /// is another; [`WalError::Busy`], [`WalError::Failed`], [`WalError::Lane`].
    pub fn repair(
        &mut self,
        lane: u16,
        index: u64,
        term: u64,
        payload: &[u8],
    ) -> Result<Position, WalError> {
        let slot = self
            .lanes
            .get(lane)
            .and_then(|lane| lane.entries.get(&index));
        let slot = slot.filter(|slot| slot.term == term);
        let slot = slot.ok_or(WalError::NoEntry { lane, index })?;
        if slot.payload_bytes != payload.len() {
            return Err(WalError::Order { lane });
        }
        self.push(lane, Kind::Carried, index, term, payload)
    }

    /// Starts a lane again as if it had never existed. The node then is another member of the lane's group, because
    /// it has forgotten its votes; `member` is a random number that was never used before.
    /// When all lanes of the node were reset after a loss, call [`accept_losses`](Self::accept_losses).
    ///
    /// # Errors
    /// [`WalError::Order`] if the number is 0, above [`INDEX_MAX`], or that of the member before;
    /// [`WalError::Busy`], [`WalError::Failed`], [`WalError::Lane`].
    pub fn reset(&mut self, lane: u16, member: u64) -> Result<Position, WalError> {
        if member == 0 || member == self.member(lane) {
            return Err(WalError::Order { lane });
        }
        self.push(lane, Kind::Reset, member, 0, &[])
    }

    /// Permits the log to remove segments with lost frames. Until then a restart finds the loss again, and
    /// reports all lanes that were not reset as [`Condition::Suspect`].
    pub fn accept_losses(&mut self) {
        self.losses_accepted = self.lanes.lost_at;
    }

    /// Writes the pending frames as one batch and returns the sync to perform; `None` if there is nothing to
    /// sync, or while a sync is under way. Call it after appends, and after
    /// [`handle_synced`](Self::handle_synced).
    ///
    /// # Errors
    /// [`WalError::Full`]: the batch stays in memory, and the next call writes it again. Any other error of
    /// the disk ends the log: [`WalError::Failed`].
    pub fn poll_sync(&mut self) -> Result<Option<SyncRequest>, WalError> {
        self.check()?;
        if self.in_flight.is_some() {
            return Ok(None);
        }
        if self.sealed.is_none() {
            self.carry_forward()?;
        }
        if self.batch.is_empty() {
            return Ok(None);
        }
        let oldest = self.seal();
        self.write()?;
        self.syncs += 1;
        let id = SyncId(self.syncs);
        let until = self.next - 1;
        self.in_flight = Some(InFlight { id, until, oldest });
        let unsynced = std::mem::take(&mut self.unsynced);
        let files = unsynced
            .into_iter()
            .filter_map(|number| self.segment(number).file);
        Ok(Some(SyncRequest {
            id,
            files: files.collect(),
            folder: std::mem::take(&mut self.is_folder_unsynced),
        }))
    }

    /// Takes the result of a sync, and returns the position that is durable now.
    ///
    /// # Errors
    /// The error of the sync. It ends the log, because the operating system may have dropped what was written:
    /// a second sync would succeed without those bytes. The node must restart and recover.
    pub fn handle_synced(
        &mut self,
        id: SyncId,
        result: Result<(), DiskError>,
    ) -> Result<Position, WalError> {
        self.check()?;
        let Some(sync) = self.in_flight.take_if(|sync| sync.id == id) else {
            return Ok(self.durable);
        };
        if let Err(error) = result {
            return Err(self.fail(error));
        }
        self.durable = sync.until;
        self.remove_segments(sync.oldest)?;
        Ok(self.durable)
    }

    /// Writes a mark that everything up to [`durable`](Self::durable) was synced, unless a batch did so. Call
    /// it when no batch came for a while. The mark needs no sync: it matters only for the recovery from damage.
    ///
    /// # Errors
    /// As [`poll_sync`](Self::poll_sync).
    pub fn write_mark(&mut self) -> Result<(), WalError> {
        self.check()?;
        if self.in_flight.is_none() && self.batch.is_empty() && self.marked < self.durable {
            self.seal();
            self.write()?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), WalError> {
        self.failed
            .map_or(Ok(()), |error| Err(WalError::Failed(error)))
    }

    fn fail(&mut self, error: DiskError) -> WalError {
        self.failed = Some(error);
        WalError::Failed(error)
    }

    fn segment(&self, number: u32) -> &Segment {
        // After the loss of a segment, the numbers have a gap.
        let at = self
            .segments
            .partition_point(|segment| segment.head.number < number);
        &self.segments[at]
    }

    fn last_segment(&mut self) -> &mut Segment {
        self.segments.back_mut().expect("there is a segment")
    }

    fn push(
        &mut self,
        lane: u16,
        kind: Kind,
        index: u64,
        term: u64,
        payload: &[u8],
    ) -> Result<Position, WalError> {
        self.check()?;
        let bytes_max = if kind == Kind::Compact {
            NOTE_BYTES_MAX
        } else {
            ENTRY_BYTES_MAX
        };
        if lane >= LANES_MAX {
            return Err(WalError::Lane { lane });
        }
        if index > INDEX_MAX {
            return Err(WalError::Order { lane });
        }
        if payload.len() > bytes_max {
            return Err(WalError::TooLong {
                bytes: payload.len(),
                bytes_max,
            });
        }
        if self.sealed.is_some() || self.batch.len() > PENDING_BYTES_MAX {
            return Err(WalError::Busy);
        }
        let last = self.last_segment();
        let (number, bytes) = (last.head.number, last.bytes);
        if self.batch.is_empty() && (bytes >= self.segment_bytes || number <= self.condemned) {
            self.roll(number + 1);
        }
        Ok(self.put(lane, kind, index, term, payload))
    }

    /// Begins a segment, which states member, term, vote, and floor of each lane again.
    fn roll(&mut self, number: u32) {
        self.segments.push_back(Segment {
            head: SegmentHead {
                origin: self.origin,
                number,
                first: self.next,
                chain: self.chain,
            },
            file: None,
            bytes: AREA_BYTES as u64,
            end: self.next,
        });
        let stated: Vec<_> = self
            .lanes
            .iter()
            .map(|(lane, state)| (lane, state.member, state.vote, state.floor.clone()))
            .collect();
        for (lane, member, vote, floor) in stated {
            if let Some(member) = member {
                self.put(lane, Kind::Member, member, 0, &[]);
            }
            if vote != Vote::default() {
                self.put(
                    lane,
                    Kind::Vote,
                    vote.voted_for.unwrap_or(0),
                    vote.term,
                    &[],
                );
            }
            if floor.index > 0 {
                self.put(lane, Kind::Compact, floor.index, floor.term, &floor.note);
            }
        }
    }

    /// Appends a frame to the batch and applies it.
    fn put(&mut self, lane: u16, kind: Kind, index: u64, term: u64, payload: &[u8]) -> Position {
        let segment = self.last_segment();
        let place = Place {
            segment: segment.head.number,
            offset: segment.bytes + self.batch.len() as u64,
        };
        let mut head = Head {
            position: self.next,
            lane,
            kind,
            payload_bytes: 0,
            index,
            term,
            payload_checksum: 0,
            chain: 0,
        };
        head.write(payload, self.origin.salt, self.chain, &mut self.batch);
        self.lanes.apply(&head, payload, place, false);
        self.chain = head.chain;
        self.next += 1;
        head.position
    }

    /// Closes the batch. Returns the number of the oldest segment that is needed when it is durable.
    fn seal(&mut self) -> u32 {
        if let Some(oldest) = self.sealed {
            return oldest;
        }
        let oldest = self.oldest_needed();
        self.put(0, Kind::Seal, self.durable, u64::from(oldest), &[]);
        self.marked = self.durable;
        self.sealed = Some(oldest);
        oldest
    }

    /// Writes the sealed batch.
    fn write(&mut self) -> Result<(), WalError> {
        match self.write_batch() {
            Ok(()) => Ok(()),
            Err(DiskError::Full) => Err(WalError::Full),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn write_batch(&mut self) -> Result<(), DiskError> {
        let segment = self.segments.back_mut().expect("there is a segment");
        let number = segment.head.number;
        let file = match segment.file {
            Some(file) => file,
            None => {
                let file = self.disk.open(&segment::file_name(number), true)?;
                self.is_folder_unsynced = true;
                self.unsynced.insert(number);
                self.disk.write_at(file, 0, &segment.head.area())?;
                segment.file = Some(file);
                file
            }
        };
        self.unsynced.insert(number);
        self.disk.write_at(file, segment.bytes, &self.batch)?;
        segment.bytes += self.batch.len() as u64;
        segment.end = self.next;
        self.batch.clear();
        self.sealed = None;
        Ok(())
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).expect("batches and segments fit into memory")
}
