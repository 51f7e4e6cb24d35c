//! A node: a disk, a log, groups, and a clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fanline_consensus::port::{Group, NodeId, Output, Settings, Stored, Token};
use fanline_consensus::wal::{
    Condition, Identity, OpenError, Options, Position, Vote, Wal, WalError,
};
use fanline_engine::store::simulated_disk::{Dice, Reach, SimulatedDisk};
use fanline_engine::store::{Disk as _, SyncRequest};

use super::network::Envelope;
use super::record::{Record, Violation};
use super::{Bug, ID_STEP, LANES, PEER_BYTES_MAX, UNCOMMITTED_BYTES_MAX};

const RUNNING: &str = "the node is running";

/// Entries of a lane that are synced, as the node's own bookkeeping.
pub(crate) type Shadow = BTreeMap<u64, Vec<u8>>;

/// A process of a node. A crash ends it.
struct Process<G> {
    wal: Wal<SimulatedDisk>,
    groups: Vec<G>,
    /// Tokens of each lane, and the positions that must be durable for them.
    tokens: Vec<VecDeque<(Token, Position)>>,
    /// Entries that are not synced, and compactions, which have no bytes.
    appends: VecDeque<(Position, u16, u64, Option<Vec<u8>>)>,
    sync: Option<(SyncRequest, Reach, u64)>,
    /// Outputs of each lane that the log refused, and all later ones.
    held: Vec<VecDeque<Output>>,
    /// When it ends, after its log failed.
    ends_at: Option<u64>,
    applied: [u64; LANES as usize],
}

pub(crate) struct Node<G> {
    pub place: usize,
    /// Its id in each group.
    pub ids: [NodeId; LANES as usize],
    /// Synced floor and entries of each lane under former ids: they may have been confirmed before the loss.
    former: BTreeMap<(u16, NodeId), (u64, Shadow)>,
    /// Number of times that it lost its disk, or maybe a vote.
    losses: u64,
    /// Whether more than a bit of its disk was ever damaged.
    is_damaged: bool,
    /// Whether its disk may be full.
    pub has_limit: bool,
    pub disk: SimulatedDisk,
    process: Option<Process<G>>,
    /// Its clock: an offset and a rate in percent of the world's.
    clock: (u64, u64),
    /// The latest time that it showed.
    latest: Duration,
    /// Until when it does not run.
    pub asleep_until: u64,
    pub shadows: Vec<Shadow>,
    /// The synced floor of each lane.
    pub floors: [u64; LANES as usize],
    /// Pending reads of this process: lane and number to the index that they must see.
    reads: BTreeMap<(u16, u64), u64>,
    /// Proposals of this process: lane and index to term.
    proposals: BTreeMap<(u16, u64), u64>,
    bug: Option<Bug>,
}

/// The results of a step of a node.
#[derive(Default)]
pub(crate) struct Step {
    pub messages: Vec<Envelope>,
    pub acknowledged: Vec<(u16, u64, Vec<u8>)>,
}

impl<G: Group> Node<G> {
    pub(crate) fn new(place: usize, bug: Option<Bug>, dice: &mut Dice) -> Self {
        Node {
            place,
            ids: [place as u64 + 1; LANES as usize],
            former: BTreeMap::new(),
            losses: 0,
            is_damaged: false,
            has_limit: false,
            disk: SimulatedDisk::new(),
            process: None,
            clock: (dice.below(10_000) as u64, 90 + dice.below(20) as u64),
            latest: Duration::ZERO,
            asleep_until: 0,
            shadows: vec![Shadow::new(); usize::from(LANES)],
            floors: [0; LANES as usize],
            reads: BTreeMap::new(),
            proposals: BTreeMap::new(),
            bug,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn group(&self, lane: u16) -> Option<&G> {
        self.process
            .as_ref()
            .map(|process| &process.groups[usize::from(lane)])
    }

    pub(crate) fn group_mut(&mut self, lane: u16) -> Option<&mut G> {
        self.process
            .as_mut()
            .map(|process| &mut process.groups[usize::from(lane)])
    }

    pub(crate) fn applied(&self) -> [u64; LANES as usize] {
        self.process
            .as_ref()
            .map_or([0; LANES as usize], |process| process.applied)
    }

    pub(crate) fn propose(&mut self, lane: u16, command: &[u8]) {
        let Some(group) = self.group_mut(lane) else {
            return;
        };
        if let Ok(index) = group.propose(command) {
            let term = group.term();
            self.proposals.insert((lane, index), term);
        }
    }

    /// Begins a read, which must see everything up to an index.
    pub(crate) fn read(&mut self, lane: u16, index: u64) -> Result<(), Violation> {
        let applied = self.applied()[usize::from(lane)];
        let is_wrong = self.bug == Some(Bug::ReadWithoutRound);
        let Some(group) = self.group_mut(lane) else {
            return Ok(());
        };
        let Ok(id) = group.read() else {
            return Ok(());
        };
        self.reads.insert((lane, id), index);
        if is_wrong {
            check_read(lane, applied, index)?;
        }
        Ok(())
    }

    /// Compacts a lane up to the entry that was applied last.
    pub(crate) fn compact(&mut self, lane: u16) {
        let index = self.applied()[usize::from(lane)];
        if let Some(group) = self.group_mut(lane) {
            group.compact(index);
        }
    }

    fn now(&self, now: u64) -> Duration {
        Duration::from_millis(self.clock.0 + now * self.clock.1 / 100)
    }

    /// Ends the process. `dice` also cut the power.
    pub(crate) fn crash(&mut self, dice: Option<&mut Dice>) {
        self.process = None;
        self.proposals.clear();
        self.reads.clear();
        match dice {
            Some(dice) => self.disk.crash(dice),
            None => self.disk.kill(),
        }
    }

    /// Sets the clock to any time.
    pub(crate) fn jump(&mut self, dice: &mut Dice) {
        self.clock.0 = dice.below(60_000) as u64;
    }

    /// Ends the process, and replaces its disk by an empty one.
    pub(crate) fn lose_disk(&mut self) {
        self.crash(None);
        self.disk = SimulatedDisk::new();
        self.has_limit = false;
        self.is_damaged = false;
        self.begin_again();
        self.ids = [self.new_id(); LANES as usize];
    }

    /// Whether it has an entry, or had it under a former id.
    pub(crate) fn has(&self, lane: u16, id: NodeId, index: u64, bytes: &[u8]) -> bool {
        let at = usize::from(lane);
        let (floor, shadow) = match self.former.get(&(lane, id)) {
            Some((floor, shadow)) => (*floor, shadow),
            None if self.ids[at] == id => (self.floors[at], &self.shadows[at]),
            None => return false,
        };
        floor >= index || shadow.get(&index).is_some_and(|entry| entry == bytes)
    }

    /// Whether it lost its disk, or maybe a vote.
    pub(crate) fn has_loss(&self) -> bool {
        self.losses > 0
    }

    /// Forgets its lanes. It gets other ids.
    fn begin_again(&mut self) {
        self.losses += 1;
        for lane in 0..LANES {
            let at = usize::from(lane);
            let shadow = std::mem::take(&mut self.shadows[at]);
            let floor = std::mem::take(&mut self.floors[at]);
            if self.bug != Some(Bug::KeepIdAfterLoss) {
                self.former.insert((lane, self.ids[at]), (floor, shadow));
            }
        }
    }

    fn new_id(&self) -> NodeId {
        let losses = match self.bug {
            Some(Bug::KeepIdAfterLoss) => 0,
            _ => self.losses,
        };
        losses * ID_STEP + self.place as u64 + 1
    }

    /// Overwrites a sector of a segment that is not the last one, and ends the process. Later segments prove that
    /// it was synced.
    pub(crate) fn damage_sector(&mut self, dice: &mut Dice) {
        let names = self.disk.names();
        if names.len() < 2 || self.has_limit || !self.is_running() {
            return;
        }
        let name = &names[dice.below(names.len() - 1)];
        let file = self.disk.open(name, false).expect("it exists");
        let sectors = self.disk.len(file).expect("it is open") / 512;
        let sector = dice.below(usize::try_from(sectors).expect("small")) as u64;
        let written = self.disk.write_at(file, sector * 512, &[0xA5; 512]);
        written.expect("it has room");
        self.disk
            .sync_file(file)
            .expect("syncs of this kind succeed");
        self.is_damaged = true;
        self.crash(None);
    }

    /// Starts the process. `copy_of` returns an entry of a lane, index, and term at another node. Returns false
    /// if the log is damaged, and no other node has what is missing, or if the disk is full.
    pub(crate) fn start(
        &mut self,
        now: u64,
        founders: &[NodeId],
        copy_of: impl Fn(u16, u64, u64) -> Option<Vec<u8>>,
    ) -> Result<bool, Violation> {
        self.disk.set_failing_syncs(0);
        let identity = Identity {
            cluster: 1,
            node: self.place as u64 + 1,
        };
        let options = Options {
            segment_bytes: 8000,
            segments_wanted: 2,
            ..Options::new(identity, self.new_id(), 7)
        };
        let mut wal = match Wal::open(self.disk.clone(), &options) {
            Ok((wal, _)) => wal,
            // The disk is full.
            Err(OpenError::Disk(_)) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        if !self.repair(&mut wal, copy_of)? {
            return Ok(false);
        }
        let mut groups = Vec::new();
        let is_limited = self.bug != Some(Bug::UnlimitedFlight);
        let limit = |bytes| if is_limited { bytes } else { usize::MAX };
        for lane in 0..LANES {
            let settings = Settings {
                peer_bytes_max: limit(PEER_BYTES_MAX),
                uncommitted_bytes_max: limit(UNCOMMITTED_BYTES_MAX),
                node: self.ids[usize::from(lane)],
                heartbeat: Duration::from_millis(50),
                election: Duration::from_millis(200),
                seed: now * 64 + (self.place as u64 + 1) * 8 + u64::from(lane) + 1,
            };
            let stored = stored(&mut wal, lane)?;
            let first = stored.floor.0 + 1;
            self.floors[usize::from(lane)] = stored.floor.0;
            self.shadows[usize::from(lane)] =
                (first..).zip(stored.entries.iter().cloned()).collect();
            groups.push(
                G::start(settings, founders, stored, self.now(now)).ok_or("invalid entries")?,
            );
        }
        self.process = Some(Process {
            wal,
            groups,
            tokens: vec![VecDeque::new(); usize::from(LANES)],
            appends: VecDeque::new(),
            sync: None,
            held: vec![VecDeque::new(); usize::from(LANES)],
            ends_at: None,
            applied: self.floors,
        });
        Ok(true)
    }

    /// Repairs the log, or leaves the groups if that is not possible. Returns false if no other node has what is
    /// missing.
    fn repair(
        &mut self,
        wal: &mut Wal<SimulatedDisk>,
        copy_of: impl Fn(u16, u64, u64) -> Option<Vec<u8>>,
    ) -> Result<bool, Violation> {
        if (0..LANES).any(|lane| wal.condition(lane) == Condition::Suspect) {
            if !self.is_damaged {
                return Err("one wrong bit lost a frame".to_owned());
            }
            self.begin_again();
            for lane in 0..LANES {
                let id = self.losses * ID_STEP + self.place as u64 + 1;
                wal.reset(lane, id).map_err(|error| error.to_string())?;
            }
            wal.accept_losses();
        }
        for lane in 0..LANES {
            if self.bug != Some(Bug::KeepIdAfterLoss) {
                self.ids[usize::from(lane)] = wal.member(lane);
            }
            match wal.condition(lane) {
                Condition::Intact => {}
                Condition::Missing(missing) if self.bug == Some(Bug::TruncateAtDamage) => {
                    wal.truncate(lane, missing[0] - 1)
                        .map_err(|error| error.to_string())?;
                }
                Condition::Missing(missing) => {
                    for index in missing {
                        let term = wal.term(lane, index).expect("the head is intact");
                        let Some(bytes) = copy_of(lane, index, term) else {
                            return Ok(false);
                        };
                        wal.repair(lane, index, term, &bytes)
                            .map_err(|error| error.to_string())?;
                    }
                }
                Condition::Suspect => return Err("a lane that was reset is intact".to_owned()),
            }
        }
        Ok(true)
    }

    pub(crate) fn deliver(&mut self, from: NodeId, envelope: &Envelope) -> Result<(), Violation> {
        if envelope.ids.1 != self.ids[usize::from(envelope.lane)] {
            return Ok(());
        }
        let Some(group) = self.group_mut(envelope.lane) else {
            return Ok(());
        };
        if let Some((index, term, note)) = &envelope.snapshot {
            group.install(*index, *term, note);
            return Ok(());
        }
        group
            .deliver(from, &envelope.bytes)
            .map_err(|error| error.to_string())
    }

    /// Lets time pass, and executes the actions of the groups.
    pub(crate) fn step(
        &mut self,
        now: u64,
        record: &mut Record,
        dice: &mut Dice,
    ) -> Result<Step, Violation> {
        let mut step = Step::default();
        let mut at = self.now(now);
        self.latest = self.latest.max(at);
        if self.bug == Some(Bug::WaitForClock) {
            at = self.latest;
        }
        self.end_sync(now, dice)?;
        let ends_at = self.process.as_ref().and_then(|process| process.ends_at);
        if ends_at.is_some_and(|at| at <= now) {
            self.crash(None);
        }
        if self.process.is_none() {
            return Ok(step);
        }
        for lane in 0..LANES {
            self.group_mut(lane).expect(RUNNING).tick(at);
            // A bug may release further outputs.
            while let Some(output) = self.next_output(lane) {
                if let Some(refused) = self.handle(lane, output, record, &mut step)? {
                    let process = self.process.as_mut().expect(RUNNING);
                    process.held[usize::from(lane)].push_front(refused);
                    break;
                }
            }
        }
        self.start_sync(now, dice);
        Ok(step)
    }

    fn next_output(&mut self, lane: u16) -> Option<Output> {
        let process = self.process.as_mut().expect(RUNNING);
        let held = process.held[usize::from(lane)].pop_front();
        held.or_else(|| process.groups[usize::from(lane)].poll_output())
    }

    /// Executes an output. Returns it if the log does not accept it now.
    fn handle(
        &mut self,
        lane: u16,
        output: Output,
        record: &mut Record,
        step: &mut Step,
    ) -> Result<Option<Output>, Violation> {
        let (place, id) = (self.place, self.ids[usize::from(lane)]);
        let process = self.process.as_mut().expect(RUNNING);
        let envelope = |to, bytes, snapshot| Envelope {
            from: place,
            to: place_of((to - 1) % ID_STEP + 1),
            ids: (id, to),
            lane,
            bytes,
            snapshot,
        };
        match output {
            Output::Send { to, bytes } => step.messages.push(envelope(to, bytes, None)),
            Output::NeedSnapshot { peer } => {
                let floor = process.wal.floor(lane);
                let snapshot = (floor.index, floor.term, floor.note);
                let message = envelope(peer, Vec::new(), Some(snapshot));
                step.messages.push(message);
            }
            Output::Read { id, .. } => {
                let applied = process.applied[usize::from(lane)];
                record.reads += 1;
                check_read(lane, applied, self.reads[&(lane, id)])?;
            }
            Output::Commit { index } => self.apply(lane, index, record, step)?,
            Output::Leader { node, term } if node == Some(id) && process.ends_at.is_none() => {
                record.lead(lane, term, id)?;
                let stored = stored(&mut process.wal, lane)?;
                let entry = |index: u64| {
                    let at = place_of(index - stored.floor.0);
                    stored.entries.get(at).cloned()
                };
                record.check_leader(lane, term, stored.floor.0, entry)?;
            }
            // Also of a process whose log failed: it cannot read its last entries.
            Output::Leader { .. } => {}
            other => match self.write(lane, other.clone()) {
                Ok(()) => {}
                Err(WalError::Busy | WalError::Failed(_))
                    if self.bug == Some(Bug::IgnoreFullDisk) =>
                {
                    let group = self.group_mut(lane).expect(RUNNING);
                    group.synced(token_of(&other));
                }
                Err(WalError::Busy | WalError::Failed(_)) => return Ok(Some(other)),
                Err(error) => return Err(format!("{other:?}: {error}")),
            },
        }
        Ok(None)
    }

    /// Writes an output to the log.
    fn write(&mut self, lane: u16, output: Output) -> Result<(), WalError> {
        let process = self.process.as_mut().expect(RUNNING);
        let (wal, appends) = (&mut process.wal, &mut process.appends);
        let (token, position, unsafe_with) = match output {
            Output::Vote {
                term,
                voted_for,
                token,
            } => {
                let position = wal.set_vote(lane, Vote { term, voted_for })?;
                (token, position, Some(Bug::SkipSyncOfVote))
            }
            Output::Append {
                index,
                term,
                bytes,
                token,
            } => {
                let position = wal.append(lane, index, term, &bytes)?;
                appends.push_back((position, lane, index, Some(bytes)));
                (token, position, Some(Bug::AcknowledgeBeforeSync))
            }
            Output::Compact {
                index,
                term,
                note,
                token,
            } => {
                let position = wal.compact(lane, index, term, &note)?;
                appends.push_back((position, lane, index, None));
                let applied = &mut process.applied[usize::from(lane)];
                *applied = index.max(*applied);
                (token, position, None)
            }
            _ => return Ok(()),
        };
        process.tokens[usize::from(lane)].push_back((token, position));
        if self.bug.is_some() && self.bug == unsafe_with {
            process.groups[usize::from(lane)].synced(token);
        }
        Ok(())
    }

    fn apply(
        &mut self,
        lane: u16,
        index: u64,
        record: &mut Record,
        step: &mut Step,
    ) -> Result<(), Violation> {
        let process = self.process.as_mut().expect(RUNNING);
        let term = process.groups[usize::from(lane)].term();
        for index in process.applied[usize::from(lane)] + 1..=index {
            let bytes = process
                .wal
                .read(lane, index)
                .map_err(|error| format!("apply {index}: {error}"))?;
            record.commit(lane, index, term, &bytes)?;
            if self.proposals.remove(&(lane, index)) == Some(term) {
                record.acknowledged += 1;
                step.acknowledged.push((lane, index, bytes));
            }
        }
        process.applied[usize::from(lane)] = index;
        Ok(())
    }

    fn start_sync(&mut self, now: u64, dice: &mut Dice) {
        let process = self.process.as_mut().expect(RUNNING);
        let result = process.wal.poll_sync();
        if self.bug != Some(Bug::IgnoreFullDisk) {
            let is_writable = result.is_ok();
            for group in &mut process.groups {
                group.set_writable(is_writable);
            }
        }
        if let Ok(Some(request)) = result {
            let reach = self.disk.reach(&request);
            let delay = if dice.one_in(50) {
                dice.below(300)
            } else {
                dice.below(8)
            };
            process.sync = Some((request, reach, now + delay as u64));
        }
    }

    fn end_sync(&mut self, now: u64, dice: &mut Dice) -> Result<(), Violation> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let Some((request, reach, _)) = process.sync.take_if(|(.., due)| *due <= now) else {
            return Ok(());
        };
        let mut result = self.disk.perform_until(&request, &reach, dice);
        let is_lost = result.is_err();
        if self.bug == Some(Bug::RetryFailedSync) {
            // The system reports an error once.
            result = Ok(());
        }
        let Ok(durable) = process.wal.handle_synced(request.id, result) else {
            // The node is out until it is restarted, which may take a while.
            process.ends_at = Some(now + dice.below(500) as u64);
            return Ok(());
        };
        if is_lost {
            process.appends.retain(|(at, ..)| *at > durable);
        }
        while let Some((_, lane, index, bytes)) =
            process.appends.pop_front_if(|(at, ..)| *at <= durable)
        {
            let shadow = &mut self.shadows[usize::from(lane)];
            let Some(bytes) = bytes else {
                self.floors[usize::from(lane)] = index;
                continue;
            };
            shadow.split_off(&index);
            shadow.insert(index, bytes);
        }
        for (group, tokens) in process.groups.iter_mut().zip(&mut process.tokens) {
            while let Some((token, _)) = tokens.pop_front_if(|(_, at)| *at <= durable) {
                group.synced(token);
            }
        }
        Ok(())
    }
}

fn check_read(lane: u16, applied: u64, wanted: u64) -> Result<(), Violation> {
    match applied >= wanted {
        true => Ok(()),
        false => Err(format!(
            "a read of lane {lane} saw {applied}, after {wanted} was committed"
        )),
    }
}

fn token_of(output: &Output) -> Token {
    match output {
        Output::Vote { token, .. }
        | Output::Append { token, .. }
        | Output::Compact { token, .. } => *token,
        _ => Token(0),
    }
}

/// Returns the offset in a list of something that is counted from 1.
fn place_of(number: u64) -> usize {
    usize::try_from(number).expect("simulations are small") - 1
}

fn stored(wal: &mut Wal<SimulatedDisk>, lane: u16) -> Result<Stored, Violation> {
    let floor = wal.floor(lane);
    let indices = floor.index + 1..=wal.last(lane).0;
    let entries = indices.map(|index| {
        wal.read(lane, index)
            .map_err(|error| format!("entry {index}: {error}"))
    });
    Ok(Stored {
        entries: entries.collect::<Result<_, _>>()?,
        vote: wal.vote(lane),
        floor: (floor.index, floor.term),
        note: floor.note,
    })
}
