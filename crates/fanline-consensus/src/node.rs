//! A node of a cluster: its write-ahead log, and its member of each lane's group.
//!
//! The node does no I/O of its own and never waits. Call [`Node::tick`], [`Node::deliver`], [`Node::propose`],
//! [`Node::read`], and [`Node::handle_synced`] for what happens. Then perform what [`Node::poll_sync`] returns, and
//! take [`Event`]s from [`Node::poll_event`] until there are none.
//!
//! ```
//! use std::time::Duration;
//! use fanline_consensus::node::{Event, LaneStart, Node, Times};
//! use fanline_consensus::wal::{Identity, Options, Wal};
//! use fanline_engine::store::{Disk as _, simulated_disk::SimulatedDisk};
//!
//! let mut disk = SimulatedDisk::new();
//! let options = Options::new(Identity { cluster: 1, node: 2 }, 77, 99);
//! let (wal, _) = Wal::open(disk.clone(), &options).unwrap();
//! let mut node = Node::new(wal, Times::default(), 1);
//! let lane = LaneStart { lane: 0, founders: vec![77] };
//! node.start(lane, Duration::ZERO).unwrap();
//!
//! let mut committed = Vec::new();
//! for millis in 0..3000 {
//!     node.tick(Duration::from_millis(millis));
//!     while let Some(request) = node.poll_sync() {
//!         for file in request.files {
//!             disk.sync_file(file).unwrap();
//!         }
//!         node.handle_synced(request.id, Ok(()));
//!     }
//!     while let Some(event) = node.poll_event() {
//!         match event {
//!             Event::Lead { lane, .. } => drop(node.propose(lane, b"3 apples").unwrap()),
//!             Event::Commit { entry, .. } => committed.push(entry),
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(committed, [b"3 apples"]);
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fanline_engine::store::{Disk, DiskError, SyncId, SyncRequest};

use crate::noraft_group::NoraftGroup;
use crate::port::{
    Entry, Group, Members, MessageError, NodeId, Output, PEER_BYTES_MAX, Refused, Settings, Stored,
    Token, UNCOMMITTED_BYTES_MAX,
};
use crate::wal::{Condition, Floor, Position, Vote, Wal, WalError};

/// Time after which a mark is written, if no batch follows a sync.
const MARK_DELAY: Duration = Duration::from_millis(250);

/// Times of the groups.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Interval between messages of an idle leader.
    pub heartbeat: Duration,
    /// Time without a leader after which a voter may start an election; it draws up to twice this time.
    pub election: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            heartbeat: Duration::from_millis(100),
            election: Duration::from_millis(400),
        }
    }
}

/// A lane to start.
#[derive(Clone, Debug)]
pub struct LaneStart {
    /// Number of the lane.
    pub lane: u16,
    /// The voters with which its group began.
    pub founders: Vec<NodeId>,
}

/// What a node has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Send a message to the same lane of another node. It may get lost or overtaken.
    Send {
        /// The lane.
        lane: u16,
        /// The receiver.
        to: NodeId,
        /// The message, for [`Node::deliver`].
        bytes: Vec<u8>,
    },
    /// An entry is on the disks of a majority. Execute it.
    Commit {
        /// The lane.
        lane: u16,
        /// Index of the entry.
        index: u64,
        /// The bytes that were proposed.
        entry: Vec<u8>,
    },
    /// This node leads the lane from now on. All entries of earlier terms are committed and were in earlier events.
    Lead {
        /// The lane.
        lane: u16,
        /// Its term.
        term: u64,
    },
    /// This node does not lead the lane any more. Its entries that are not committed may be committed later, or not.
    Depose {
        /// The lane.
        lane: u16,
    },
    /// A read may be answered from the state after all earlier events.
    Read {
        /// The lane.
        lane: u16,
        /// The number that [`Node::read`] returned.
        id: u64,
    },
    /// Send a copy of the state to a node, because the entries that it needs were compacted.
    NeedSnapshot {
        /// The lane.
        lane: u16,
        /// The node.
        peer: NodeId,
    },
}

/// Reason for which a lane cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Entries of the lane are damaged. [Repair](Wal::repair) them first.
    #[error("{} entries of lane {lane} are damaged", missing.len())]
    Damaged {
        /// The lane.
        lane: u16,
        /// Indices of the entries.
        missing: Vec<u64>,
    },
    /// A vote or an entry may be lost. The node must leave the group: [`Wal::reset`].
    #[error("a vote or an entry of lane {lane} may be lost")]
    Suspect {
        /// The lane.
        lane: u16,
    },
    /// The entries are not those of a group.
    #[error("lane {lane} has invalid entries")]
    Invalid {
        /// The lane.
        lane: u16,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] WalError),
}

/// A node with its lanes.
#[derive(Debug)]
pub struct Node<D> {
    wal: Wal<D>,
    lanes: BTreeMap<u16, Lane>,
    events: VecDeque<Event>,
    times: Times,
    seed: u64,
    now: Duration,
    /// When to write a mark, if no batch follows.
    mark_at: Option<Duration>,
}

#[derive(Debug)]
struct Lane {
    group: NoraftGroup,
    /// Tokens that are not synced, and the positions of the log that must be durable for them.
    tokens: VecDeque<(Token, Position)>,
    /// Outputs that the log refused, and all later ones.
    refused: VecDeque<Output>,
    /// Index of the last entry that was committed or compacted.
    committed: u64,
    leadership: Leadership,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leadership {
    None,
    /// It is elected. It leads when this entry is committed.
    Elected {
        first: u64,
        term: u64,
    },
    Leads,
}

impl<D: Disk> Node<D> {
    /// Creates a node without lanes. `seed` is a random number.
    pub fn new(wal: Wal<D>, times: Times, seed: u64) -> Self {
        Node {
            wal,
            lanes: BTreeMap::new(),
            events: VecDeque::new(),
            times,
            seed,
            now: Duration::ZERO,
            mark_at: None,
        }
    }

    /// Starts a lane with what the log has of it.
    ///
    /// # Errors
    /// [`StartError`]; the lane is not started.
    pub fn start(&mut self, start: LaneStart, now: Duration) -> Result<(), StartError> {
        let lane = start.lane;
        match self.wal.condition(lane) {
            Condition::Intact => {}
            Condition::Missing(missing) => return Err(StartError::Damaged { lane, missing }),
            Condition::Suspect => return Err(StartError::Suspect { lane }),
        }
        let floor = self.wal.floor(lane);
        let indices = floor.index + 1..=self.wal.last(lane).0;
        let entries = indices.map(|index| self.wal.read(lane, index));
        let entries = entries.collect::<Result<_, _>>()?;
        let stored = Stored {
            entries,
            vote: self.wal.vote(lane),
            floor: (floor.index, floor.term),
            note: floor.note,
        };
        let settings = Settings {
            node: self.wal.member(lane),
            heartbeat: self.times.heartbeat,
            election: self.times.election,
            seed: self.seed.wrapping_add(u64::from(lane) << 32),
            peer_bytes_max: PEER_BYTES_MAX,
            uncommitted_bytes_max: UNCOMMITTED_BYTES_MAX,
        };
        let group = NoraftGroup::start(settings, &start.founders, stored, now);
        let group = group.ok_or(StartError::Invalid { lane })?;
        let started = Lane {
            group,
            tokens: VecDeque::new(),
            refused: VecDeque::new(),
            committed: floor.index,
            leadership: Leadership::None,
        };
        self.lanes.insert(lane, started);
        self.run(lane);
        Ok(())
    }

    /// Returns the log.
    pub fn wal(&mut self) -> &mut Wal<D> {
        &mut self.wal
    }

    /// Returns the id of this node in a lane.
    pub fn member(&self, lane: u16) -> NodeId {
        self.wal.member(lane)
    }

    /// Returns the members of a lane that was started.
    pub fn members(&self, lane: u16) -> Option<Members> {
        Some(self.lanes.get(&lane)?.group.members())
    }

    /// Returns the index of the last entry that another member has confirmed to this node as the leader; 0 if none.
    pub fn confirmed(&self, lane: u16, peer: NodeId) -> u64 {
        let lane = self.lanes.get(&lane);
        lane.map_or(0, |lane| lane.group.confirmed(peer))
    }

    /// Returns the index of the last entry that was committed.
    pub fn committed(&self, lane: u16) -> u64 {
        self.lanes.get(&lane).map_or(0, |lane| lane.committed)
    }

    /// Proposes an entry, and returns its index. If this node is deposed before [`Event::Commit`] has this index,
    /// another entry may have it.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn propose(&mut self, lane: u16, entry: &[u8]) -> Result<u64, Refused> {
        let leading = self.lanes.get_mut(&lane);
        let leading = leading.filter(|lane| lane.leadership == Leadership::Leads);
        let index = leading.ok_or(Refused::NotLeader)?.group.propose(entry)?;
        self.run(lane);
        Ok(index)
    }

    /// Begins a read. Returns the number of its [`Event::Read`]. If this node is deposed, there is none.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn read(&mut self, lane: u16) -> Result<u64, Refused> {
        self.with_group(lane, NoraftGroup::read)
    }

    /// Handles a message of another node. A message for a lane that was not started has no effect.
    ///
    /// # Errors
    /// [`MessageError`]. After [`MessageError::Contradiction`] the lane has stopped.
    pub fn deliver(&mut self, lane: u16, from: NodeId, bytes: &[u8]) -> Result<(), MessageError> {
        let Some(receiver) = self.lanes.get_mut(&lane) else {
            return Ok(());
        };
        let result = receiver.group.deliver(from, bytes);
        if result == Err(MessageError::Contradiction) {
            self.depose(lane);
            self.lanes.remove(&lane);
        }
        self.run(lane);
        result
    }

    /// Reports the time. Call it every few milliseconds.
    pub fn tick(&mut self, now: Duration) {
        self.now = now;
        self.with_all(|lane| lane.group.tick(now));
        if self.mark_at.take_if(|at| *at <= now).is_some() {
            // Without a mark, a recovery from damage may take it for a torn tail.
            let _ = self.wal.write_mark();
        }
    }

    /// Returns the next sync of the log to perform. Call it after all other methods.
    pub fn poll_sync(&mut self) -> Option<SyncRequest> {
        let result = self.wal.poll_sync();
        let is_writable = result.is_ok();
        self.with_all(|lane| lane.group.set_writable(is_writable));
        result.ok().flatten()
    }

    /// Takes the result of a sync. If it failed, the node takes part in nothing until it is started again.
    pub fn handle_synced(&mut self, id: SyncId, result: Result<(), DiskError>) {
        let Ok(durable) = self.wal.handle_synced(id, result) else {
            return;
        };
        self.mark_at = Some(self.now + MARK_DELAY);
        self.with_all(|lane| {
            while let Some((token, _)) = lane.tokens.pop_front_if(|(_, at)| *at <= durable) {
                lane.group.synced(token);
            }
        });
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Removes the entries up to a committed index, because their effects are on the disk. Returns whether there
    /// were any.
    pub fn compact(&mut self, lane: u16, index: u64) -> bool {
        let compacted = self.lanes.get_mut(&lane);
        let compacted = compacted.is_some_and(|lane| lane.group.compact(index));
        self.run(lane);
        compacted
    }

    /// Replaces the entries up to an index by a copy of another node's state, which is on the disk. Index, term, and
    /// note are those of that node's [floor](Wal::floor) when the copy began, and that node does not compact the lane
    /// meanwhile. The copy must not replace the state here unless [`committed`](Self::committed) is below this index.
    /// Returns false if this node has these entries already, or cannot write its log.
    pub fn install(&mut self, lane: u16, floor: &Floor) -> bool {
        let Some(installing) = self.lanes.get_mut(&lane) else {
            return false;
        };
        let group = &mut installing.group;
        let is_installed = group.install(floor.index, floor.term, &floor.note);
        if is_installed {
            installing.committed = installing.committed.max(floor.index);
            // The copy has the effects of earlier entries.
            let is_earlier = |event: &Event| matches!(event, Event::Commit { lane: of, index, .. } if *of == lane && *index <= floor.index);
            self.events.retain(|event| !is_earlier(event));
        }
        self.run(lane);
        is_installed
    }

    /// Changes the members of a lane.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn change_members(&mut self, lane: u16, members: &Members) -> Result<(), Refused> {
        self.with_group(lane, |group| group.change_members(members))
    }

    /// Lets another voter take over a lane.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn transfer(&mut self, lane: u16, to: NodeId) -> Result<(), Refused> {
        self.with_group(lane, |group| group.transfer(to))
    }

    /// Calls the group of a lane, and executes its outputs.
    fn with_group<R>(
        &mut self,
        lane: u16,
        act: impl FnOnce(&mut NoraftGroup) -> Result<R, Refused>,
    ) -> Result<R, Refused> {
        let result = act(&mut self.lanes.get_mut(&lane).ok_or(Refused::NotLeader)?.group)?;
        self.run(lane);
        Ok(result)
    }

    /// Calls all lanes, and executes their outputs.
    fn with_all(&mut self, mut act: impl FnMut(&mut Lane)) {
        let lanes: Vec<u16> = self.lanes.keys().copied().collect();
        for number in lanes {
            if let Some(lane) = self.lanes.get_mut(&number) {
                act(lane);
            }
            self.run(number);
        }
    }

    /// Executes the outputs of a lane, until the log refuses one.
    fn run(&mut self, number: u16) {
        while let Some(lane) = self.lanes.get_mut(&number) {
            let output = lane.refused.pop_front();
            let Some(output) = output.or_else(|| lane.group.poll_output()) else {
                return;
            };
            match output {
                Output::Send { to, bytes } => self.events.push_back(Event::Send {
                    lane: number,
                    to,
                    bytes,
                }),
                Output::NeedSnapshot { peer } => {
                    let event = Event::NeedSnapshot { lane: number, peer };
                    self.events.push_back(event);
                }
                Output::Read { id, .. } => {
                    let event = Event::Read { lane: number, id };
                    self.events.push_back(event);
                }
                Output::Commit { index } => self.commit(number, index),
                Output::Leader { node, term } => self.change_leader(number, node, term),
                output => match write(&mut self.wal, number, &output) {
                    Ok(synced) => lane.tokens.push_back(synced),
                    // A full disk, or a log that failed. The group steps back meanwhile.
                    Err(_) => {
                        lane.refused.push_front(output);
                        return;
                    }
                },
            }
        }
    }

    fn commit(&mut self, number: u16, index: u64) {
        let Some(lane) = self.lanes.get_mut(&number) else {
            return;
        };
        for index in lane.committed + 1..=index {
            if let Some(Entry::Command(entry)) = lane.group.entry(index) {
                self.events.push_back(Event::Commit {
                    lane: number,
                    index,
                    entry: entry.to_vec(),
                });
            }
        }
        lane.committed = lane.committed.max(index);
        self.lead_if_committed(number);
    }

    fn lead_if_committed(&mut self, number: u16) {
        if let Some(lane) = self.lanes.get_mut(&number)
            && let Leadership::Elected { first, term } = lane.leadership
            && first <= lane.committed
        {
            lane.leadership = Leadership::Leads;
            self.events.push_back(Event::Lead { lane: number, term });
        }
    }

    fn change_leader(&mut self, number: u16, leader: Option<NodeId>, term: u64) {
        self.depose(number);
        let member = self.wal.member(number);
        if let Some(lane) = self.lanes.get_mut(&number)
            && leader == Some(member)
        {
            // The last entry is the one with which the leader began its term, or a later one if it was out of contact.
            let first = lane.group.last().0;
            lane.leadership = Leadership::Elected { first, term };
            self.lead_if_committed(number);
        }
    }

    fn depose(&mut self, number: u16) {
        if let Some(lane) = self.lanes.get_mut(&number)
            && std::mem::replace(&mut lane.leadership, Leadership::None) == Leadership::Leads
        {
            self.events.push_back(Event::Depose { lane: number });
        }
    }
}

/// Writes an output to the log. Returns its token, and the position that must be durable for it.
fn write<D: Disk>(
    wal: &mut Wal<D>,
    lane: u16,
    output: &Output,
) -> Result<(Token, Position), WalError> {
    match output {
        Output::Vote {
            term,
            voted_for,
            token,
        } => {
            let (term, voted_for) = (*term, *voted_for);
            let position = wal.set_vote(lane, Vote { term, voted_for })?;
            Ok((*token, position))
        }
        Output::Append {
            index,
            term,
            bytes,
            token,
        } => Ok((*token, wal.append(lane, *index, *term, bytes)?)),
        Output::Compact {
            index,
            term,
            note,
            token,
        } => Ok((*token, wal.compact(lane, *index, *term, note)?)),
        // The caller handles the others.
        _ => Err(WalError::Lane { lane }),
    }
}
