//! Which servers are members of the lanes.
//!
//! A server without a record waits until all servers that it knows know each other, and have none either. The one with
//! the first name proposes a record with all of them, and each stores it. A server stores one record only, and the lanes
//! start when all members have stored the same. So no two parts of a cluster found lanes of their own.
//! `docs/formats/members.md` describes the file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fanline_consensus::port::{Members, NodeId};
use fanline_consensus::wal::limits::{INDEX_MAX, LANES_MAX};
use serde::{Deserialize, Serialize};

use crate::{identity, private_files};

/// Number of replicas of a stream in a lane.
pub(super) const REPLICAS: usize = 3;
/// Number of lanes that begin with the same member.
const LANES_PER_MEMBER: usize = 2;
/// Most members of a cluster.
const MEMBERS_MAX: usize = LANES_MAX as usize / LANES_PER_MEMBER;

const FILE: &str = "members.json";
const NEW_FILE: &str = "members.json.new";

/// Interval between hellos.
const HELLO_INTERVAL: Duration = Duration::from_millis(500);
/// Time after which a server that says nothing is not known any more.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Time for which all servers must know the same servers: if these are as many as the configuration has routes, and
/// if they are fewer.
const STABLE_WAIT: Duration = Duration::from_secs(1);
const INCOMPLETE_WAIT: Duration = Duration::from_secs(15);

/// A member of lanes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Member {
    /// Name of the server.
    pub(super) name: String,
    /// Number of its log.
    pub(super) id: NodeId,
}

/// What a server stores.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Stored {
    record: Record,
    /// Number of this server's log.
    id: NodeId,
}

/// The members, as they were founded. A server that has lost its disk has another number since.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Record {
    /// A random number that identifies the lanes.
    pub(super) cluster: u64,
    /// In the order of their names.
    pub(super) members: Vec<Member>,
}

impl Record {
    /// Returns the number of lanes.
    fn lanes(&self) -> u16 {
        u16::try_from(self.members.len() * LANES_PER_MEMBER).unwrap_or(LANES_MAX)
    }

    /// Returns the lanes of a server, and the founders of each.
    pub(super) fn lanes_of(&self, name: &str) -> impl Iterator<Item = (u16, Vec<NodeId>)> {
        (0..self.lanes()).filter_map(move |lane| {
            let members = self.members_of(lane);
            let has_it = members.clone().any(|member| member.name == name);
            has_it.then(|| (lane, members.map(|member| member.id).collect()))
        })
    }

    /// Returns the members of a lane.
    fn members_of(&self, lane: u16) -> impl Iterator<Item = &Member> + Clone {
        let first = usize::from(lane) / LANES_PER_MEMBER;
        self.members.iter().cycle().skip(first).take(REPLICAS)
    }

    /// Returns the number with which a server was founded.
    fn id_of(&self, name: &str) -> Option<NodeId> {
        let found = self.members.iter().find(|member| member.name == name);
        found.map(|member| member.id)
    }
}

/// What a server tells the others.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Hello {
    name: String,
    id: NodeId,
    /// Names of the servers that it knows, with its own.
    knows: Vec<String>,
    record: Option<Record>,
}

/// The agreement on the members.
pub(super) struct Founding {
    folder: PathBuf,
    name: String,
    /// Number of this server's log.
    id: NodeId,
    record: Option<Record>,
    /// Whether all members have stored the record.
    is_confirmed: bool,
    /// Number of routes in the configuration.
    routes: usize,
    heard: BTreeMap<String, (Duration, Hello)>,
    /// Whether a server or a number has appeared since the last call of [`take_change`](Founding::take_change).
    has_changed: bool,
    /// The servers that it knows, and since when it has known the same ones.
    knows: (Vec<String>, Duration),
    next_hello: Duration,
}

impl Founding {
    /// Reads the record, if there is one.
    pub(super) fn open(folder: &Path, name: &str, routes: usize) -> io::Result<Self> {
        let stored: Option<Stored> = match fs::read(folder.join(FILE)) {
            Ok(bytes) => Some(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_other = |stored: &Stored| stored.record.id_of(name).is_none();
        if stored.as_ref().is_some_and(is_other) {
            let text = format!("the store belongs to a server with another name than {name}");
            return Err(io::Error::other(text));
        }
        let id = stored.as_ref().map_or_else(new_id, |stored| stored.id);
        let record = stored.map(|stored| stored.record);
        Ok(Founding {
            folder: folder.to_owned(),
            name: name.to_owned(),
            id,
            record,
            is_confirmed: false,
            routes,
            heard: BTreeMap::new(),
            has_changed: false,
            knows: (Vec::new(), Duration::ZERO),
            next_hello: Duration::ZERO,
        })
    }

    /// Returns the name of this server.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of this server's log.
    pub(super) fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the stored record.
    pub(super) fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Returns the time at which to call [`poll`](Self::poll) next.
    pub(super) fn next_timeout(&self) -> Duration {
        self.next_hello
    }

    /// Handles a hello.
    pub(super) fn receive(&mut self, bytes: &[u8], now: Duration) {
        let Ok(hello) = serde_json::from_slice::<Hello>(bytes) else {
            return;
        };
        if hello.name == self.name {
            return;
        }
        // A record is answered at once.
        if hello.record.is_some() && !self.is_confirmed {
            self.next_hello = now;
        }
        let (name, id) = (hello.name.clone(), hello.id);
        let before = self.heard.insert(name, (now, hello));
        self.has_changed |= before.is_none_or(|(_, before)| before.id != id);
    }

    /// Returns whether a server or a number has appeared since the last call.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Lets time pass. Returns a hello to send, if it is time.
    pub(super) fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        if now < self.next_hello {
            return None;
        }
        self.next_hello = now + HELLO_INTERVAL;
        self.heard.retain(|_, (at, _)| *at + SILENCE_MAX > now);
        let mut knows: Vec<String> = self.heard.keys().cloned().collect();
        knows.push(self.name.clone());
        knows.sort_unstable();
        if knows != self.knows.0 {
            self.knows = (knows, now);
        }
        let hello = Hello {
            name: self.name.clone(),
            id: self.id,
            knows: self.knows.0.clone(),
            record: self.record.clone(),
        };
        serde_json::to_vec(&hello).ok()
    }

    /// Returns the record that this server should store next.
    pub(super) fn proposal(&self, now: Duration) -> Option<Record> {
        if self.record.is_some() {
            return None;
        }
        let hellos = || self.heard.values().map(|(_, hello)| hello);
        let (knows, since) = &self.knows;
        let proposed = hellos().find_map(|hello| hello.record.as_ref());
        if let Some(record) = proposed {
            let names = record.members.iter().map(|member| &member.name);
            let is_wanted = match record.id_of(&self.name) {
                Some(id) if id == self.id => names.eq(knows),
                // This server was a member, and has lost its disk.
                Some(_) => true,
                None => false,
            };
            return is_wanted.then(|| record.clone());
        }
        let wait = match knows.len() >= self.routes {
            true => STABLE_WAIT,
            false => INCOMPLETE_WAIT,
        };
        let is_agreed = (REPLICAS..=MEMBERS_MAX).contains(&knows.len())
            && knows.first() == Some(&self.name)
            && *since + wait <= now
            && hellos().all(|hello| hello.knows == *knows);
        if !is_agreed {
            return None;
        }
        let mut members: Vec<Member> = hellos()
            .map(|hello| (hello.name.clone(), hello.id))
            .chain([(self.name.clone(), self.id)])
            .map(|(name, id)| Member { name, id })
            .collect();
        members.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let cluster = new_id();
        Some(Record { cluster, members })
    }

    /// Stores a record. The log of this server must exist.
    pub(super) fn store(&mut self, record: Record) -> io::Result<()> {
        let new = self.folder.join(NEW_FILE);
        let mut options = private_files::file_options();
        let mut file = options.write(true).create(true).truncate(true).open(&new)?;
        let stored = Stored {
            record: record.clone(),
            id: self.id,
        };
        file.write_all(&serde_json::to_vec_pretty(&stored)?)?;
        file.sync_all()?;
        fs::rename(&new, self.folder.join(FILE))?;
        File::open(&self.folder)?.sync_all()?;
        self.record = Some(record);
        self.next_hello = Duration::ZERO;
        Ok(())
    }

    /// Returns whether all members have stored the record, so that the lanes may start. `has_begun` means that they
    /// have started here before.
    pub(super) fn is_confirmed(&mut self, has_begun: bool) -> bool {
        let Some(record) = &self.record else {
            return false;
        };
        let has_stored = |member: &Member| {
            let heard = self.heard.get(&member.name);
            member.name == self.name
                || heard.is_some_and(|(_, hello)| hello.record.as_ref() == Some(record))
        };
        self.is_confirmed |= has_begun || record.members.iter().all(has_stored);
        self.is_confirmed
    }

    /// Returns the other members of a lane: names of servers, and the numbers of their logs.
    pub(super) fn others(&self, lane: u16) -> Vec<(String, NodeId)> {
        let members = self
            .record
            .iter()
            .flat_map(|record| record.members_of(lane));
        let others = members.filter(|member| member.name != self.name);
        let with_id = others.map(|member| {
            let heard = self.heard.get(&member.name);
            let id = heard.map_or(member.id, |(_, hello)| hello.id);
            (member.name.clone(), id)
        });
        with_id.collect()
    }

    /// Returns whether a member has sent a hello lately.
    pub(super) fn is_there(&self, id: NodeId) -> bool {
        self.heard.values().any(|(_, hello)| hello.id == id)
    }

    /// Returns the members of a lane in which a server that is there takes the place of one that is not. First it
    /// learns, then it votes. `own` is the member that leads.
    pub(super) fn with_replacement(
        &self,
        lane: u16,
        own: NodeId,
        members: &Members,
    ) -> Option<Members> {
        let record = self.record.as_ref()?;
        let is_absent = |id: &&NodeId| **id != own && !self.is_there(**id);
        let mut absent = members.voters.iter().filter(is_absent);
        let absent = absent.next().filter(|_| absent.next().is_none())?;
        let is_of_lane = |name: &str| record.members_of(lane).any(|member| member.name == name);
        let hellos = self.heard.values().map(|(_, hello)| hello);
        let mut new = hellos.filter(|hello| {
            let is_member = members.voters.contains(&hello.id);
            !is_member && is_of_lane(&hello.name) && hello.record.as_ref() == Some(record)
        });
        let new = new.next()?.id;
        let mut changed = members.clone();
        match members.learners.contains(&new) {
            false => changed.learners = vec![new],
            true => {
                changed.learners.clear();
                changed.voters.retain(|id| id != absent);
                changed.voters.push(new);
            }
        }
        Some(changed)
    }
}

/// Returns a random number for a log or a cluster.
fn new_id() -> u64 {
    identity::random_u64() % INDEX_MAX + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn founding(name: &str, routes: usize) -> Founding {
        let folder = std::env::temp_dir().join(format!("fanline-founding-{:x}", new_id()));
        fs::create_dir(&folder).expect("a folder");
        Founding::open(&folder, name, routes).expect("there is no record")
    }

    /// Lets servers say hello every 100 ms for some time, and store what they should. Messages from and to the server
    /// `silent` are lost.
    fn run(servers: &mut [Founding], millis: std::ops::Range<u64>, silent: &str) {
        for now in millis.step_by(100).map(Duration::from_millis) {
            for from in 0..servers.len() {
                let Some(hello) = servers[from].poll(now) else {
                    continue;
                };
                let name = servers[from].name.clone();
                for to in servers
                    .iter_mut()
                    .filter(|to| name != silent && to.name != silent)
                {
                    to.receive(&hello, now);
                }
                if let Some(record) = servers[from].proposal(now) {
                    servers[from].store(record).expect("it can be stored");
                }
            }
        }
    }

    fn remove(servers: &[Founding]) {
        for server in servers {
            fs::remove_dir_all(&server.folder).expect("a folder");
        }
    }

    #[test]
    fn three_servers_agree_on_their_members() {
        let mut servers = ["b", "a", "c"].map(|name| founding(name, 3));
        run(&mut servers, 0..5000, "");
        let record = servers[0].record.clone().expect("it is founded");
        for server in &mut servers {
            assert_eq!(server.record.as_ref(), Some(&record));
            assert!(server.is_confirmed(false));
            let again = Founding::open(&server.folder, &server.name, 3).expect("a record");
            assert_eq!(
                (again.id, again.record.as_ref()),
                (server.id, Some(&record))
            );
        }
        let other = Founding::open(&servers[0].folder, "d", 3);
        assert!(other.is_err(), "the store belongs to b");
        assert_eq!(record.lanes_of("b").count(), 6);
        assert!(record.lanes_of("b").all(|(_, members)| members.len() == 3));
        remove(&servers);
    }

    #[test]
    fn lanes_start_only_when_all_have_stored_the_record() {
        let mut servers = ["a", "b", "c"].map(|name| founding(name, 3));
        run(&mut servers, 0..1500, "");
        let knows: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(servers[2].knows.0, knows);
        // c hears nothing more. The others may store a record, but do not begin without c.
        run(&mut servers, 1500..2900, "c");
        assert!(servers.iter_mut().all(|server| !server.is_confirmed(false)));
        run(&mut servers, 2900..9000, "");
        assert!(servers.iter_mut().all(|server| server.is_confirmed(false)));
        remove(&servers);
    }

    #[test]
    fn a_server_that_comes_later_is_no_member() {
        let mut servers = Vec::from(["a", "b", "c"].map(|name| founding(name, 3)));
        run(&mut servers, 0..5000, "");
        servers.push(founding("d", 3));
        run(&mut servers, 5000..30_000, "");
        assert!(servers[3].record.is_none());
        remove(&servers);
    }

    #[test]
    fn a_server_that_lost_its_disk_takes_its_own_place() {
        let mut servers = Vec::from(["a", "b", "c"].map(|name| founding(name, 3)));
        run(&mut servers, 0..5000, "");
        let old = servers.remove(2);
        servers.push(founding("c", 3));
        run(&mut servers, 5000..9000, "");
        let (record, new) = (
            servers[0].record.clone().expect("it is founded"),
            servers[2].id,
        );
        assert_eq!(servers[2].record.as_ref(), Some(&record));
        assert_ne!(new, old.id);
        let again = Founding::open(&servers[2].folder, "c", 3).expect("a record");
        assert_eq!(again.id, new);
        let voters = |servers: &[Founding]| servers.iter().map(|it| it.id).collect::<Vec<_>>();
        let mut members = Members {
            voters: vec![servers[0].id, servers[1].id, old.id],
            learners: Vec::new(),
        };
        let next = |members: &Members| servers[0].with_replacement(0, servers[0].id, members);
        members = next(&members).expect("it learns");
        assert_eq!(members.learners, [new]);
        members = next(&members).expect("it votes");
        assert_eq!(members.voters, voters(&servers));
        assert_eq!((members.learners.len(), next(&members)), (0, None));
        // A server that is away is not replaced.
        run(&mut servers, 9000..20_000, "b");
        assert_eq!(
            servers[0].with_replacement(0, servers[0].id, &members),
            None
        );
        servers.push(old);
        remove(&servers);
    }

    #[test]
    fn two_servers_found_nothing_and_fewer_than_the_routes_wait_longer() {
        let mut servers = Vec::from(["a", "b"].map(|name| founding(name, 2)));
        run(&mut servers, 0..20_000, "");
        assert!(servers.iter().all(|server| server.record.is_none()));
        servers.push(founding("c", 5));
        servers[0].routes = 5;
        run(&mut servers, 20_000..30_000, "");
        assert!(servers.iter().all(|server| server.record.is_none()));
        run(&mut servers, 30_000..40_000, "");
        assert!(servers.iter().all(|server| server.record.is_some()));
        remove(&servers);
    }

    #[test]
    fn lanes_of_five_servers_have_three_members_each() {
        let members = (1..=5).map(|id| Member {
            name: format!("s{id}"),
            id,
        });
        let record = Record {
            cluster: 1,
            members: members.collect(),
        };
        let of = |name| -> Vec<u16> { record.lanes_of(name).map(|(lane, _)| lane).collect() };
        assert_eq!(of("s1"), [0, 1, 6, 7, 8, 9]);
        assert_eq!(record.lanes_of("s1").last(), Some((9, vec![5, 1, 2])));
    }
}
