//! A node: its log, its files, and the store if it leads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fanline_consensus::folders::{Applier, Folders, Journal};
use fanline_consensus::node::{Event, LaneStart, Node as ConsensusNode, Times};
use fanline_consensus::port::NodeId;
use fanline_consensus::wal::{Floor, Identity, Options, Wal};
use fanline_engine::store::simulated_disk::{Dice, Reach, SimulatedDisk};
use fanline_engine::store::{
    Disk, DiskError, FileOptions, NewRecord, Store, StoreLimits, SyncId, SyncRequest,
};

use super::Bug;

pub(super) const LANE: u16 = 3;
pub(super) const FOLDER: &str = "shop/orders";

/// Names and bytes of files.
pub(super) type Content = BTreeMap<String, Vec<u8>>;

/// The folders of a node: one, which may be missing.
#[derive(Clone, Default)]
pub(super) struct Files(Arc<Mutex<Option<SimulatedDisk>>>);

impl Files {
    pub(super) fn disk(&self) -> Option<SimulatedDisk> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, disk: Option<SimulatedDisk>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = disk;
    }
}

impl Folders for Files {
    fn open(&mut self, _: &str, create: bool) -> Result<Option<Box<dyn Disk>>, DiskError> {
        if create && self.disk().is_none() {
            self.set(Some(SimulatedDisk::new()));
        }
        Ok(self.disk().map(|disk| Box::new(disk) as Box<dyn Disk>))
    }

    fn remove(&mut self, _: &str) -> Result<(), DiskError> {
        self.set(None);
        Ok(())
    }
}

/// The store of a leader.
struct Leading {
    store: Store,
    journal: Journal,
    /// Entries that are not proposed yet.
    recorded: VecDeque<(u64, Vec<u8>)>,
    /// Entries that are proposed, in order, by their indices.
    proposed: VecDeque<(u64, u64)>,
    /// Syncs of the store, and the entries that they wait for.
    syncs: VecDeque<(SyncId, u64)>,
    /// Last entry that was proposed.
    taken: u64,
    /// Records that are not acknowledged, by sequence.
    waiting: VecDeque<(u64, u64)>,
}

struct Process {
    node: ConsensusNode<SimulatedDisk>,
    applier: Applier<Files>,
    /// Index of the last executed entry.
    applied: u64,
    leading: Option<Leading>,
    sync: Option<(SyncRequest, Reach, u64)>,
}

/// A copy of the folder for another node, while it is made.
pub(super) struct Copy {
    pub(super) to: NodeId,
    pub(super) floor: Floor,
    /// Files that are not copied yet.
    names: Vec<String>,
    pub(super) copied: Content,
}

pub(super) struct Node {
    pub(super) id: NodeId,
    log: SimulatedDisk,
    pub(super) files: Files,
    process: Option<Process>,
    pub(super) copy: Option<Copy>,
    /// Index of the last entry that was executed before the last crash.
    executed: u64,
    pub(super) copies: u64,
    pub(super) acknowledged: Vec<(u64, u64)>,
    pub(super) leaders: u64,
    bug: Option<Bug>,
}

impl Node {
    pub(super) fn new(id: NodeId, bug: Option<Bug>) -> Self {
        Node {
            id,
            log: SimulatedDisk::new(),
            files: Files::default(),
            process: None,
            copy: None,
            executed: 0,
            copies: 0,
            acknowledged: Vec::new(),
            leaders: 0,
            bug,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn is_leading(&self) -> bool {
        let process = self.process.as_ref();
        process.is_some_and(|process| process.leading.is_some())
    }

    pub(super) fn start(&mut self, now: u64, founders: &[NodeId]) {
        let identity = Identity {
            cluster: 1,
            node: self.id,
        };
        let options = Options {
            segment_bytes: 8000,
            segments_wanted: 2,
            ..Options::new(identity, self.id, 7)
        };
        let (wal, _) = Wal::open(self.log.clone(), &options).expect("a crash cannot prevent it");
        let times = Times {
            heartbeat: Duration::from_millis(50),
            election: Duration::from_millis(200),
        };
        let mut node = ConsensusNode::new(wal, times, now * 8 + self.id);
        let start = LaneStart {
            lane: LANE,
            founders: founders.to_vec(),
        };
        node.start(start, Duration::from_millis(now))
            .expect("a crash damages nothing");
        self.process = Some(Process {
            applied: node.committed(LANE),
            node,
            applier: Applier::new(self.files.clone()),
            leading: None,
            sync: None,
        });
    }

    /// Cuts the power.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        self.executed = self.applied();
        self.process = None;
        self.copy = None;
        self.log.crash(dice);
        if let Some(disk) = self.files.disk() {
            disk.crash(dice);
        }
    }

    /// Appends records to the store, if it leads.
    pub(super) fn publish(&mut self, numbers: std::ops::Range<u64>, dice: &mut Dice) {
        let Some(leading) = self.process.as_mut().and_then(|it| it.leading.as_mut()) else {
            return;
        };
        for number in numbers {
            let payload = [&number.to_le_bytes()[..], &[7; 40][..dice.below(40)]].concat();
            let record = NewRecord {
                subject: b"orders",
                payload: &payload,
                ..NewRecord::default()
            };
            if let Ok(sequence) = leading.store.append(&record) {
                leading.waiting.push_back((sequence, number));
            }
        }
    }

    pub(super) fn deliver(&mut self, from: NodeId, bytes: &[u8]) {
        if let Some(process) = &mut self.process {
            let result = process.node.deliver(LANE, from, bytes);
            result.expect("peers are correct");
        }
    }

    /// Replaces the folder by a copy of another node's.
    pub(super) fn install(&mut self, copy: Copy) {
        let Some(process) = &mut self.process else {
            return;
        };
        if process.applied >= copy.floor.index {
            return;
        }
        let mut disk = SimulatedDisk::new();
        for (name, bytes) in copy.copied {
            let file = disk.open(&name, true).expect("it has room");
            disk.write_at(file, 0, &bytes).expect("it has room");
            disk.sync_file(file).expect("syncs succeed");
        }
        disk.sync_folder().expect("syncs succeed");
        self.files.set(Some(disk));
        process.applier = Applier::new(self.files.clone());
        if process.node.install(LANE, &copy.floor) {
            process.applied = copy.floor.index;
            self.copies += 1;
        }
    }

    /// Syncs the files, and compacts the log.
    pub(super) fn compact(&mut self) {
        let bug = self.bug;
        let Some(process) = self.process.as_mut().filter(|_| self.copy.is_none()) else {
            return;
        };
        let until = process.applied;
        let unsynced = process.applier.unsynced().expect("it has room");
        if let Some(mut disk) = self
            .files
            .disk()
            .filter(|_| bug != Some(Bug::CompactBeforeSync))
        {
            for unsynced in unsynced {
                for file in unsynced.files {
                    disk.sync_file(file).expect("syncs succeed");
                }
                if unsynced.is_folder_dirty {
                    disk.sync_folder().expect("syncs succeed");
                }
            }
        }
        process.applier.close_synced();
        process.node.compact(LANE, until);
    }

    /// Lets time pass. Returns messages, and a copy that is complete.
    pub(super) fn step(&mut self, now: u64, dice: &mut Dice) -> Result<Step, String> {
        let mut step = Step::default();
        let Some(process) = &mut self.process else {
            return Ok(step);
        };
        process.node.tick(Duration::from_millis(now));
        process.end_sync(&mut self.log, now, dice)?;
        self.run_store()?;
        while let Some(process) = &mut self.process {
            process.begin_sync(&self.log, now, dice);
            let Some(event) = process.node.poll_event() else {
                break;
            };
            match event {
                Event::Send { to, bytes, .. } => step.messages.push((to, bytes)),
                event => self.handle(event)?,
            }
        }
        self.continue_copy(dice, &mut step);
        Ok(step)
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        let bug = self.bug;
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        match event {
            Event::Commit { index, entry, .. } => {
                process.applied = index;
                let batch = process.leading.as_mut().and_then(|leading| {
                    let next = leading.proposed.pop_front_if(|(at, _)| *at == index);
                    next.map(|(_, batch)| batch)
                });
                let is_skipped = match bug {
                    Some(Bug::ApplyBeforeCommit) => batch.is_some(),
                    Some(Bug::SkipRepetition) => index <= self.executed,
                    _ => false,
                };
                if !is_skipped {
                    let applied = process.applier.apply(&entry);
                    applied.map_err(|error| format!("entry {index}: {error}"))?;
                }
                if let (Some(batch), Some(leading)) = (batch, &mut process.leading) {
                    leading.journal.set_applied(batch);
                    leading.finish(batch);
                    self.acknowledged.extend(leading.acknowledge());
                }
            }
            Event::Lead { .. } => {
                self.leaders += 1;
                self.lead()?;
            }
            Event::Depose { .. } => {
                if let Some(leading) = process.leading.take() {
                    leading.journal.end();
                }
            }
            Event::NeedSnapshot { peer, .. } if self.copy.is_none() => {
                // Its floor is that of the last compaction.
                let floor = process.node.wal().floor(LANE);
                let names = self.files.disk().map_or_else(Vec::new, |disk| disk.names());
                self.copy = Some(Copy {
                    to: peer,
                    floor,
                    names,
                    copied: Content::new(),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens the store.
    fn lead(&mut self) -> Result<(), String> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let mut files = self.files.clone();
        let journal = Journal::new();
        let names = process.applier.names(FOLDER);
        let names = names.map_err(|error| error.to_string())?;
        let disk = files
            .open(FOLDER, true)
            .map_err(|error| error.to_string())?;
        let disk = journal.disk(FOLDER, names, disk.ok_or("no folder")?);
        let options = FileOptions {
            segment_bytes: 1000,
            seed: process.applied,
            ..FileOptions::default()
        };
        let (mut store, recovery) = Store::file(Box::new(disk), &options, &StoreLimits::default())
            .map_err(|error| format!("the store does not open: {error}"))?;
        if !recovery.damages.is_empty() || recovery.torn_bytes > 0 {
            return Err(format!("the store is damaged: {recovery:?}"));
        }
        check_acknowledged(&mut store, &self.acknowledged)?;
        process.leading = Some(Leading {
            store,
            journal,
            recorded: VecDeque::new(),
            proposed: VecDeque::new(),
            syncs: VecDeque::new(),
            taken: 0,
            waiting: VecDeque::new(),
        });
        Ok(())
    }

    /// Proposes what the store has written.
    fn run_store(&mut self) -> Result<(), String> {
        let bug = self.bug;
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let Some(leading) = &mut process.leading else {
            return Ok(());
        };
        let request = leading.store.poll_sync(Duration::ZERO);
        let recorded = std::iter::from_fn(|| leading.journal.take());
        leading.recorded.extend(recorded);
        if let Some(request) = request {
            let last = leading
                .recorded
                .back()
                .map_or(leading.taken, |(batch, _)| *batch);
            leading.syncs.push_back((request.id, last));
        }
        while let Some((batch, entry)) = leading.recorded.front() {
            // It is refused while the node is out of contact. A later entry must not overtake it.
            let Ok(index) = process.node.propose(LANE, entry) else {
                break;
            };
            if bug == Some(Bug::ApplyBeforeCommit) {
                let applied = process.applier.apply(entry);
                applied.map_err(|error| error.to_string())?;
            }
            leading.proposed.push_back((index, *batch));
            leading.taken = *batch;
            leading.recorded.pop_front();
        }
        if bug == Some(Bug::AcknowledgeBeforeCommit) {
            leading.finish(u64::MAX);
            self.acknowledged.extend(leading.acknowledge());
        }
        Ok(())
    }

    /// Copies a file of the folder, which changes meanwhile.
    fn continue_copy(&mut self, dice: &mut Dice, step: &mut Step) {
        let (Some(copy), Some(process)) = (&mut self.copy, &mut self.process) else {
            return;
        };
        if dice.one_in(3) {
            return;
        }
        if let Some(name) = copy.names.pop() {
            if let Some(mut disk) = self.files.disk()
                && let Ok(file) = disk.open(&name, false)
            {
                let length = disk.len(file).expect("it is open");
                let mut bytes = vec![0; usize::try_from(length).expect("it is small")];
                disk.read_at(file, 0, &mut bytes).expect("it is open");
                copy.copied.insert(name, bytes);
            }
            return;
        }
        let mut copy = self.copy.take();
        if self.bug == Some(Bug::CopyFromItsEnd)
            && let Some(copy) = &mut copy
        {
            copy.floor.index = process.applied;
            copy.floor.term = process.node.wal().term(LANE, process.applied).unwrap_or(0);
        }
        step.copy = copy;
    }

    /// Returns the records of the store, as the next leader would find them.
    pub(super) fn records(&mut self) -> Result<Vec<u64>, String> {
        let leading = self.process.as_mut().and_then(|it| it.leading.as_mut());
        let store = &mut leading.ok_or("no leader")?.store;
        (1..=store.last_sequence())
            .map(|sequence| number_of(store, sequence))
            .collect()
    }

    /// Returns names and contents of the files.
    pub(super) fn content(&mut self) -> Content {
        let Some(process) = &mut self.process else {
            return Content::new();
        };
        let names = process.applier.names(FOLDER).expect("it is readable");
        let Some(mut disk) = self.files.disk() else {
            return Content::new();
        };
        let read = |(name, number): (&str, u64)| {
            let file = disk
                .open(&format!("{number:020}"), false)
                .expect("it exists");
            let length = disk.len(file).expect("it is open");
            let mut bytes = vec![0; usize::try_from(length).expect("it is small")];
            disk.read_at(file, 0, &mut bytes).expect("it is open");
            (name.to_owned(), bytes)
        };
        names.iter().map(read).collect()
    }

    pub(super) fn applied(&self) -> u64 {
        self.process.as_ref().map_or(0, |process| process.applied)
    }
}

/// The results of a step.
#[derive(Default)]
pub(super) struct Step {
    pub(super) messages: Vec<(NodeId, Vec<u8>)>,
    pub(super) copy: Option<Copy>,
}

impl Process {
    fn begin_sync(&mut self, log: &SimulatedDisk, now: u64, dice: &mut Dice) {
        if let Some(request) = self.node.poll_sync() {
            let reach = log.reach(&request);
            let delay = if dice.one_in(50) {
                dice.below(300)
            } else {
                dice.below(8)
            };
            self.sync = Some((request, reach, now + delay as u64));
        }
    }

    fn end_sync(
        &mut self,
        log: &mut SimulatedDisk,
        now: u64,
        dice: &mut Dice,
    ) -> Result<(), String> {
        if let Some((request, reach, _)) = self.sync.take_if(|(.., due)| *due <= now) {
            let result = log.perform_until(&request, &reach, dice);
            result.map_err(|error| error.to_string())?;
            self.node.handle_synced(request.id, Ok(()));
        }
        Ok(())
    }
}

impl Leading {
    /// Ends the syncs that wait for entries up to a batch.
    fn finish(&mut self, batch: u64) {
        while let Some((id, _)) = self.syncs.pop_front_if(|(_, at)| *at <= batch) {
            self.store.handle_synced(id, Ok(()));
        }
    }

    /// Returns the records that are durable now.
    fn acknowledge(&mut self) -> Vec<(u64, u64)> {
        let durable = self.store.durable();
        let mut records = Vec::new();
        while let Some(record) = self.waiting.pop_front_if(|(at, _)| *at <= durable) {
            records.push(record);
        }
        records
    }
}

fn number_of(store: &mut Store, sequence: u64) -> Result<u64, String> {
    let record = store.read(sequence).map_err(|error| error.to_string())?;
    let record = record.ok_or_else(|| format!("no record {sequence}"))?;
    let number = record.payload.first_chunk().ok_or("a short record")?;
    Ok(u64::from_le_bytes(*number))
}

/// Checks that a store has the acknowledged records.
pub(super) fn check_acknowledged(store: &mut Store, records: &[(u64, u64)]) -> Result<(), String> {
    for (sequence, number) in records {
        let found = number_of(store, *sequence)?;
        if found != *number {
            return Err(format!("record {sequence} is {found}, not {number}"));
        }
    }
    Ok(())
}
