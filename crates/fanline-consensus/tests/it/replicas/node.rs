//! A node: its log, its files, and the store if it leads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fanline_consensus::folders::{Applier, Folders, Journal};
use fanline_consensus::node::{Event, LaneStart, Node as ConsensusNode, Times};
use fanline_consensus::port::NodeId;
use fanline_consensus::wal::{Floor, Identity, Options, Wal};
use fanline_engine::store::simulated_disk::{Dice, Reach, SimulatedDisk};
use fanline_engine::store::{Disk, DiskError, SyncRequest};

use super::Bug;
use super::app::{App, LaneFolders};

pub(super) const LANE: u16 = 3;
pub(super) const FOLDER: &str = "ORDERS";

/// Names and bytes of files.
pub(super) type Content = BTreeMap<String, Vec<u8>>;

/// The folders of a node: one. It is missing while it has no files.
#[derive(Clone, Default)]
pub(super) struct Files(Arc<Mutex<SimulatedDisk>>);

impl Files {
    pub(super) fn disk(&self) -> SimulatedDisk {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn replace(&self, disk: SimulatedDisk) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = disk;
    }
}

impl Folders for Files {
    fn open(&mut self, _: &str, create: bool) -> Result<Option<Box<dyn Disk>>, DiskError> {
        let is_there = create || !self.disk().names().is_empty();
        Ok(is_there.then(|| Box::new(self.disk()) as Box<dyn Disk>))
    }

    fn remove(&mut self, _: &str) -> Result<(), DiskError> {
        let mut disk = self.disk();
        let names = disk.names();
        names.iter().try_for_each(|name| disk.remove(name))
    }
}

/// The program of a leader.
struct Leading<A: App> {
    app: A,
    journal: Journal,
    /// Entries that are not proposed yet.
    recorded: VecDeque<(u64, Vec<u8>)>,
    /// Indices of proposed entries, and their numbers in the journal.
    proposed: VecDeque<(u64, u64)>,
    /// Syncs of the program, and the entries that they wait for.
    syncs: VecDeque<(u64, A::Sync)>,
    /// Replies, and the entries with what they show.
    replies: VecDeque<(u64, A::Reply)>,
    /// The last entry of the journal, and the last one that was executed.
    last: u64,
    applied: u64,
}

struct Process<A: App> {
    node: ConsensusNode<SimulatedDisk>,
    applier: Applier<Files>,
    /// Index of the last executed entry.
    applied: u64,
    leading: Option<Leading<A>>,
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

pub(super) struct Node<A: App> {
    pub(super) id: NodeId,
    log: SimulatedDisk,
    pub(super) files: Files,
    process: Option<Process<A>>,
    pub(super) copy: Option<Copy>,
    /// Index of the last entry that was executed before the last crash.
    executed: u64,
    pub(super) copies: u64,
    pub(super) leaders: u64,
    bug: Option<Bug>,
}

impl<A: App> Node<A> {
    pub(super) fn new(id: NodeId, bug: Option<Bug>) -> Self {
        Node {
            id,
            log: SimulatedDisk::new(),
            files: Files::default(),
            process: None,
            copy: None,
            executed: 0,
            copies: 0,
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
        self.files.disk().crash(dice);
    }

    /// Passes a request to the program, if it runs here.
    pub(super) fn handle_request(&mut self, request: &A::Request, now: u64) {
        if let Some(leading) = self.process.as_mut().and_then(|it| it.leading.as_mut()) {
            leading.app.handle(request, now);
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
        self.files.replace(disk);
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
        if bug != Some(Bug::CompactBeforeSync) {
            let mut disk = self.files.disk();
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

    /// Lets time pass. Returns messages, replies, and a copy that is complete.
    pub(super) fn step(&mut self, now: u64, dice: &mut Dice) -> Result<Step<A>, String> {
        let mut step = Step {
            messages: Vec::new(),
            replies: Vec::new(),
            copy: None,
        };
        let Some(process) = &mut self.process else {
            return Ok(step);
        };
        process.node.tick(Duration::from_millis(now));
        process.end_sync(&mut self.log, now, dice)?;
        self.run_app(now, &mut step)?;
        while let Some(process) = &mut self.process {
            process.begin_sync(&self.log, now, dice);
            let Some(event) = process.node.poll_event() else {
                break;
            };
            match event {
                Event::Send { to, bytes, .. } => step.messages.push((to, bytes)),
                event => self.handle_event(event, now)?,
            }
        }
        self.run_app(now, &mut step)?;
        self.continue_copy(dice, &mut step);
        Ok(step)
    }

    fn handle_event(&mut self, event: Event, now: u64) -> Result<(), String> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        match event {
            Event::Commit { index, entry, .. } => self.execute(index, &entry, now)?,
            Event::Lead { .. } => {
                self.leaders += 1;
                self.lead(now)?;
            }
            Event::Depose { .. } => {
                if let Some(leading) = process.leading.take() {
                    leading.journal.end();
                }
            }
            Event::NeedSnapshot { peer, .. } if self.copy.is_none() => {
                // Its floor is that of the last compaction.
                let floor = process.node.wal().floor(LANE);
                let names = self.files.disk().names();
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

    /// Executes a committed entry.
    fn execute(&mut self, index: u64, entry: &[u8], now: u64) -> Result<(), String> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        process.applied = index;
        let batch = process.leading.as_mut().and_then(|leading| {
            let own = leading.proposed.pop_front_if(|(at, _)| *at == index);
            own.map(|(_, batch)| batch)
        });
        let is_skipped = match self.bug {
            Some(Bug::ApplyBeforeCommit) => batch.is_some(),
            Some(Bug::SkipRepetition) => index <= self.executed,
            _ => false,
        };
        if !is_skipped {
            let applied = process.applier.apply(entry);
            applied.map_err(|error| format!("entry {index}: {error}"))?;
        }
        if let (Some(batch), Some(leading)) = (batch, &mut process.leading) {
            leading.journal.set_applied(batch);
            leading.finish(batch, now);
        }
        Ok(())
    }

    /// Opens the program.
    fn lead(&mut self, now: u64) -> Result<(), String> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let journal = Journal::new();
        let names = process.applier.names(FOLDER);
        let names = names.map_err(|error| error.to_string())?;
        let folders = LaneFolders {
            journal: journal.clone(),
            files: self.files.clone(),
            names: BTreeMap::from([(FOLDER.to_owned(), names)]),
        };
        process.leading = Some(Leading {
            app: A::open(folders, now, now)?,
            journal,
            recorded: VecDeque::new(),
            proposed: VecDeque::new(),
            syncs: VecDeque::new(),
            replies: VecDeque::new(),
            last: 0,
            applied: 0,
        });
        Ok(())
    }

    /// Proposes what the program has written, and releases its replies.
    fn run_app(&mut self, now: u64, step: &mut Step<A>) -> Result<(), String> {
        let bug = self.bug;
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let Some(leading) = &mut process.leading else {
            return Ok(());
        };
        let syncs = leading.app.poll(now);
        let recorded = std::iter::from_fn(|| leading.journal.take());
        leading.recorded.extend(recorded);
        leading.last = leading
            .recorded
            .back()
            .map_or(leading.last, |(batch, _)| *batch);
        let last = leading.last;
        leading
            .syncs
            .extend(syncs.into_iter().map(|sync| (last, sync)));
        let replies = leading.app.replies().into_iter();
        leading.replies.extend(replies.map(|reply| (last, reply)));
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
            leading.recorded.pop_front();
        }
        if bug == Some(Bug::AcknowledgeBeforeCommit) {
            leading.finish(u64::MAX, now);
        } else {
            // Without an entry, its syncs are done at once.
            leading.finish(leading.applied, now);
        }
        let released = match bug {
            Some(Bug::AcknowledgeBeforeCommit | Bug::ReplyBeforeCommit) => u64::MAX,
            _ => leading.applied,
        };
        while let Some((_, reply)) = leading.replies.pop_front_if(|(at, _)| *at <= released) {
            step.replies.push(reply);
        }
        Ok(())
    }

    /// Copies a file of the folder, which changes meanwhile.
    fn continue_copy(&mut self, dice: &mut Dice, step: &mut Step<A>) {
        let (Some(copy), Some(process)) = (&mut self.copy, &mut self.process) else {
            return;
        };
        if dice.one_in(3) {
            return;
        }
        if let Some(name) = copy.names.pop() {
            let mut disk = self.files.disk();
            if let Ok(file) = disk.open(&name, false) {
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

    /// Returns the program that runs here.
    pub(super) fn take_app(&mut self) -> Option<A> {
        let leading = self.process.as_mut()?.leading.take()?;
        Some(leading.app)
    }

    /// Returns names and contents of the files.
    pub(super) fn content(&mut self) -> Content {
        let Some(process) = &mut self.process else {
            return Content::new();
        };
        let names = process.applier.names(FOLDER).expect("it is readable");
        let mut disk = self.files.disk();
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
pub(super) struct Step<A: App> {
    pub(super) messages: Vec<(NodeId, Vec<u8>)>,
    pub(super) replies: Vec<A::Reply>,
    pub(super) copy: Option<Copy>,
}

impl<A: App> Process<A> {
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

impl<A: App> Leading<A> {
    /// Ends the syncs that wait for entries up to a batch, which was executed.
    fn finish(&mut self, batch: u64, now: u64) {
        self.applied = self.applied.max(batch.min(self.last));
        while let Some((_, sync)) = self.syncs.pop_front_if(|(at, _)| *at <= batch) {
            self.app.handle_synced(sync, now);
        }
    }
}
