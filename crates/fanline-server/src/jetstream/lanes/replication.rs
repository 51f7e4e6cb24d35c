//! The node of this server: its log, its lanes, and the messages to the other nodes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fanline_consensus::node::{Event, LaneStart, Node, Times};
use fanline_consensus::port::NodeId;
use fanline_consensus::wal::{Identity, Options, Wal};
use fanline_engine::auth::AccountId;
use fanline_engine::jetstream::{Follower, Message, Port, Ports};
use fanline_engine::store::DiskError;
use tracing::{error, info, warn};

use super::super::disk::{FolderDisk, OpenFiles};
use super::super::syncer::{Job, SyncOf, SyncOfReplicas};
use super::founding::{Founding, Record};
use super::member::LaneMember;
use crate::{identity, private_files};

/// Start of the subjects of messages between nodes, in the system account. The receiving member follows, the lane, and
/// the sending member.
pub(super) const PREFIX: &[u8] = b"$SYS.REPLICATION.";
/// Subject with which servers agree on the members.
const HELLO: &str = "$SYS.REPLICATION.HELLO";

/// Ends of the subjects of messages that copy files, and of the answers.
const COPY: &str = "COPY";
const COPIED: &str = "COPIED";

/// Folder in that of the store, and the folder of the log in it.
const FOLDER: &str = "replicated";
const LOG: &str = "log";

/// Interval at which the groups learn the time.
const TICK: Duration = Duration::from_millis(20);
/// Interval at which the members of lanes are compared with the servers that are there.
const TEND_INTERVAL: Duration = Duration::from_secs(1);

/// What the services of lanes have to do.
pub(super) enum Change {
    Lead(u16),
    Depose(u16),
    /// The state of the groups that this node leads is to be reported.
    Report,
    /// An entry of this leader is executed.
    Executed(u16),
}

/// The part of this server in the lanes.
pub(in crate::jetstream) struct Replication {
    folder: PathBuf,
    files: OpenFiles,
    founding: Founding,
    running: Option<Running>,
}

struct Running {
    node: Node<FolderDisk>,
    record: Record,
    lanes: BTreeMap<u16, LaneMember>,
    next_tick: Duration,
    next_tend: Duration,
    has_started: bool,
}

impl Replication {
    /// Opens what the store has of the lanes. `name` is that of this server, and `routes` the number of routes in the
    /// configuration.
    pub(in crate::jetstream) fn open(
        store: &Path,
        files: &OpenFiles,
        name: &str,
        routes: usize,
    ) -> io::Result<Self> {
        let folder = store.join(FOLDER);
        private_files::create_folders(&folder)?;
        let founding = Founding::open(&folder, name, routes)?;
        let mut replication = Replication {
            folder,
            files: files.clone(),
            founding,
            running: None,
        };
        match replication.founding.record().cloned() {
            Some(record) => replication.open_log(record)?,
            // Nothing was ever promised with a log that has no record.
            None => match std::fs::remove_dir_all(replication.folder.join(LOG)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        Ok(replication)
    }

    fn open_log(&mut self, record: Record) -> io::Result<()> {
        let folder = self.folder.join(LOG);
        private_files::create_folders(&folder)?;
        std::fs::File::open(&self.folder)?.sync_all()?;
        let id = self.founding.id();
        let identity = Identity {
            cluster: record.cluster,
            node: id,
        };
        let is_new = self.founding.record().is_none();
        let salt = u32::try_from(identity::random_u64() >> 32).unwrap_or(1);
        let disk = FolderDisk::new(folder, self.files.clone());
        let (wal, recovery) =
            Wal::open(disk, &Options::new(identity, id, salt)).map_err(io::Error::other)?;
        if recovery.is_created && !is_new {
            let text = "the log of replicated streams is missing, and with it what this server has confirmed";
            return Err(io::Error::other(text));
        }
        for damage in &recovery.damage {
            warn!("The log of replicated streams is damaged: {damage:?}");
        }
        self.running = Some(Running {
            node: Node::new(wal, Times::default(), identity::random_u64()),
            record,
            lanes: BTreeMap::new(),
            next_tick: Duration::ZERO,
            next_tend: Duration::ZERO,
            has_started: false,
        });
        Ok(())
    }

    /// Subscribes to the messages of other nodes.
    pub(super) fn subscribe(&self, port: &mut dyn Port) {
        port.subscribe(HELLO.as_bytes());
        let own = format!("$SYS.REPLICATION.{}.>", self.founding.id());
        port.subscribe(own.as_bytes());
    }

    /// Handles a message of another node. `path` is its subject after [`PREFIX`].
    pub(super) fn receive(
        &mut self,
        path: &[u8],
        payload: &[u8],
        now: Duration,
        ports: &mut dyn Ports,
    ) {
        match path {
            b"HELLO" => self.founding.receive(payload, now),
            _ => drop(self.receive_of_lane(path, payload, now, ports)),
        }
    }

    /// Handles a message to a member of a lane. Ignores it if there is no such member here.
    fn receive_of_lane(
        &mut self,
        path: &[u8],
        payload: &[u8],
        now: Duration,
        ports: &mut dyn Ports,
    ) -> Option<()> {
        let path = std::str::from_utf8(path).unwrap_or_default();
        let mut parts = path.split('.');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (Some(to), Some(lane), Some(from)) = (number(), number(), number()) else {
            return None;
        };
        let lane = u16::try_from(lane).ok()?;
        let running = self.running.as_mut()?;
        // A message to the member that this node was must not reach it.
        if running.node.member(lane) != to {
            return None;
        }
        let member = running.lanes.get_mut(&lane)?;
        member.hear(from, now);
        match parts.next() {
            None => {
                if let Err(error) = running.node.deliver(lane, from, payload) {
                    error!("lane {lane} of replicated streams: {error}");
                }
            }
            Some(COPY) => {
                let answer = member.receive_copy(from, payload, now)?;
                publish(ports, &subject_of(from, lane, to, Some(COPIED)), &answer);
            }
            Some(COPIED) => member.receive_copied(from, payload, now),
            Some(_) => {}
        }
        None
    }

    /// Returns the time at which to call [`poll`](Self::poll) next.
    pub(super) fn next_timeout(&self) -> Duration {
        let running = self.running.as_ref().filter(|running| running.has_started);
        let next = running.map_or(Duration::MAX, |running| running.next_tick);
        next.min(self.founding.next_timeout())
    }

    /// Lets the time pass, sends messages, and returns the next change.
    pub(super) fn poll(&mut self, now: Duration, ports: &mut dyn Ports) -> Option<Change> {
        self.agree(now, ports);
        let running = self
            .running
            .as_mut()
            .filter(|running| running.has_started)?;
        if now >= running.next_tick {
            running.next_tick = now + TICK;
            running.node.tick(now);
        }
        if self.founding.take_change() || now >= running.next_tend {
            running.next_tend = now + TEND_INTERVAL;
            running.tend(&self.founding);
            return Some(Change::Report);
        }
        loop {
            let executed = running
                .lanes
                .values_mut()
                .find_map(|member| member.execute(now));
            if executed.is_some() {
                return executed;
            }
            let Some(event) = running.node.poll_event() else {
                running.send_copies(now, ports);
                return None;
            };
            let change = running.handle_event(event, now, ports);
            if change.is_some() {
                return change;
            }
        }
    }

    /// Agrees with other servers on the members, and starts the lanes.
    fn agree(&mut self, now: Duration, ports: &mut dyn Ports) {
        let Some(hello) = self.founding.poll(now) else {
            return;
        };
        publish(ports, HELLO, &hello);
        if let Some(record) = self.founding.proposal(now) {
            let stored = self
                .open_log(record.clone())
                .and_then(|()| self.founding.store(record));
            if let Err(error) = stored {
                error!("cannot store the members of replicated streams: {error}");
                self.running = None;
            }
        }
        let Some(running) = self.running.as_mut().filter(|running| !running.has_started) else {
            return;
        };
        let has_begun = running.node.wal().lanes().next().is_some();
        if self.founding.is_confirmed(has_begun) {
            running.start(self.founding.name(), &self.folder, &self.files, now);
        }
    }

    /// Returns the next sync to perform.
    pub(super) fn poll_job(&mut self) -> Option<Job> {
        let running = self
            .running
            .as_mut()
            .filter(|running| running.has_started)?;
        if let Some(request) = running.node.poll_sync() {
            let files = request.files.iter();
            let folder = request.folder.then(|| self.folder.join(LOG));
            return Some(Job {
                of: SyncOf::Replicas(SyncOfReplicas::Log(request.id)),
                files: files.filter_map(|id| self.files.get(*id)).collect(),
                folders: folder.into_iter().collect(),
            });
        }
        let mut members = running.lanes.values_mut();
        members.find_map(|member| member.poll_job(&self.files))
    }

    /// Takes the result of a sync.
    pub(super) fn handle_synced(&mut self, of: SyncOfReplicas, result: Result<(), DiskError>) {
        let Some(running) = &mut self.running else {
            return;
        };
        if let Err(error) = result {
            error!("a sync of replicated streams failed: {error}");
        }
        match of {
            SyncOfReplicas::Log(id) => running.node.handle_synced(id, result),
            SyncOfReplicas::Lane { lane, index } => {
                if let Some(member) = running.lanes.get_mut(&lane) {
                    member.handle_synced(index, result, &mut running.node);
                }
            }
        }
    }

    /// Returns the id that a lane's service has for other services.
    pub(super) fn id_of(&self, lane: u16) -> String {
        let cluster = self
            .running
            .as_ref()
            .map_or(0, |running| running.record.cluster);
        format!("LANE{cluster:x}N{lane}")
    }

    /// Returns this node's member of a lane, and the node.
    pub(super) fn member(&mut self, lane: u16) -> Option<(&mut LaneMember, &mut Node<FolderDisk>)> {
        let running = self.running.as_mut()?;
        Some((running.lanes.get_mut(&lane)?, &mut running.node))
    }

    /// Returns whether so many entries of a lane wait for others that it takes no more messages.
    pub(super) fn is_full(&self, lane: u16) -> bool {
        let member = self
            .running
            .as_ref()
            .and_then(|running| running.lanes.get(&lane));
        member.is_some_and(LaneMember::is_full)
    }

    /// Describes the other members of a lane that this node leads.
    pub(super) fn followers(&mut self, lane: u16, now: Duration) -> Vec<Follower> {
        let others = self.founding.others(lane).into_iter();
        let others = others.map(|(name, id)| (name, id, self.founding.is_there(id)));
        let others = others.collect();
        let member = self.member(lane);
        member.map_or_else(Vec::new, |(member, node)| {
            member.followers(others, node, now)
        })
    }

    /// Lets another member take over a lane that this node leads, if possible the one on the server that is preferred.
    /// Returns whether it can.
    pub(super) fn transfer(&mut self, lane: u16, preferred: Option<&str>) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let mut others = self.founding.others(lane);
        others.retain(|(_, id)| self.founding.is_there(*id));
        others.sort_by_key(|(name, _)| Some(&**name) != preferred);
        // Those that lack entries are refused.
        let mut others = others.into_iter();
        others.any(|(_, to)| running.node.transfer(lane, to).is_ok())
    }

    /// Returns the names of a lane's streams, with their accounts.
    pub(super) fn streams(&self, lane: u16) -> Vec<(String, String)> {
        let member = self
            .running
            .as_ref()
            .and_then(|running| running.lanes.get(&lane));
        member.map_or_else(Vec::new, LaneMember::streams)
    }

    /// Returns the lanes of this node.
    pub(super) fn lanes(&self) -> Vec<u16> {
        let running = self.running.as_ref();
        running.map_or_else(Vec::new, |running| running.lanes.keys().copied().collect())
    }
}

impl Running {
    /// Starts the lanes of this node.
    fn start(&mut self, name: &str, folder: &Path, files: &OpenFiles, now: Duration) {
        self.has_started = true;
        let lanes: Vec<(u16, Vec<NodeId>)> = self.record.lanes_of(name).collect();
        for (lane, founders) in lanes {
            if let Err(error) = self.start_lane(lane, founders, folder, files, now) {
                error!("lane {lane} of replicated streams does not start: {error}");
            }
        }
        let names = self.record.members.iter().map(|member| &*member.name);
        let names: Vec<&str> = names.collect();
        info!(
            "Replicated streams have {} lanes, on {}",
            self.lanes.len(),
            names.join(", ")
        );
    }

    fn start_lane(
        &mut self,
        lane: u16,
        founders: Vec<NodeId>,
        folder: &Path,
        files: &OpenFiles,
        now: Duration,
    ) -> io::Result<()> {
        let executed = self.node.wal().floor(lane).index;
        let member = LaneMember::open(lane, folder, files, executed);
        let member = member.map_err(|error| io::Error::other(error.to_string()))?;
        let started = self.node.start(LaneStart { lane, founders }, now);
        started.map_err(io::Error::other)?;
        self.lanes.insert(lane, member);
        Ok(())
    }

    /// Executes an event of the node. Returns what a lane's service has to do.
    fn handle_event(
        &mut self,
        event: Event,
        now: Duration,
        ports: &mut dyn Ports,
    ) -> Option<Change> {
        match event {
            Event::Send { lane, to, bytes } => {
                let from = self.node.member(lane);
                publish(ports, &subject_of(to, lane, from, None), &bytes);
            }
            Event::Commit { lane, index, entry } => self.lanes.get_mut(&lane)?.commit(index, entry),
            Event::Lead { lane, .. } => self.lanes.get_mut(&lane)?.elect(),
            Event::Depose { lane } => {
                let was_leading = self.lanes.get_mut(&lane)?.depose();
                return was_leading.then_some(Change::Depose(lane));
            }
            Event::NeedSnapshot { lane, peer } => {
                self.lanes
                    .get_mut(&lane)?
                    .begin_copy(peer, &mut self.node, now);
            }
            _ => {}
        }
        None
    }

    fn send_copies(&mut self, now: Duration, ports: &mut dyn Ports) {
        for (lane, member) in &mut self.lanes {
            while let Some((to, bytes)) = member.poll_copy(now) {
                let from = self.node.member(*lane);
                publish(ports, &subject_of(to, *lane, from, Some(COPY)), &bytes);
            }
        }
    }

    /// Lets a server that has lost its disk take the place of the member that it was, in the lanes that this node leads.
    fn tend(&mut self, founding: &Founding) {
        for (lane, member) in &self.lanes {
            if let Some(members) = self.node.members(*lane).filter(|_| member.is_leading())
                && let Some(members) =
                    founding.with_replacement(*lane, self.node.member(*lane), &members)
            {
                // It is refused while an earlier change is under way, or the new member lacks entries.
                let _ = self.node.change_members(*lane, &members);
            }
        }
    }
}

/// Returns the subject of a message to a member of a lane.
fn subject_of(to: NodeId, lane: u16, from: NodeId, kind: Option<&str>) -> String {
    let dot = kind.map_or("", |_| ".");
    format!(
        "$SYS.REPLICATION.{to}.{lane}.{from}{dot}{}",
        kind.unwrap_or_default()
    )
}

fn publish(ports: &mut dyn Ports, subject: &str, payload: &[u8]) {
    ports.of(AccountId::SYSTEM).publish(&Message {
        subject: subject.as_bytes(),
        payload,
        ..Message::default()
    });
}
