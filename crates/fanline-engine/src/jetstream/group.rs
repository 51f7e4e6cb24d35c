//! The group of servers that replicate the streams of a service, in descriptions and advisories.
//!
//! nats-server has a group for each replicated stream and each replicated consumer. Clients and tools compare the names of
//! groups, so each stream and each consumer shows one of its own here, too.

use std::sync::Arc;

use serde::Serialize;

use super::account::JetStream;
use super::accounts::JetStreams;
use super::advisory::Elected;
use super::consumer::{Consumer, ConsumerId};
use super::stream::Stream;
use super::streams::Key;
use super::{Now, Ports, Storage, Timestamp};
use crate::auth::AccountId;
use crate::name_hash::name_hash;

/// What the leader of a group knows about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    /// Name of the leader's server.
    pub leader: String,
    /// When it became the leader, in nanoseconds since 1970 UTC.
    pub leader_since_unix_nanos: i64,
    /// Name of the account that carries the messages of the group.
    pub traffic_account: String,
    /// The other members, in any order.
    pub followers: Vec<Follower>,
}

/// A member of a group that follows its leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Follower {
    /// Name of its server.
    pub name: String,
    /// Whether it has answered recently, and has all that the leader has.
    pub current: bool,
    /// Whether its server is not connected.
    pub offline: bool,
    /// Nanoseconds since its last message.
    pub active: u64,
    /// Number of entries that it lacks.
    pub lag: u64,
}

/// The servers of a stream or a consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClusterInfo {
    /// Name of the cluster, if the server is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of its group, if it is replicated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raft_group: Option<String>,
    /// Name of the server, or of that of the leader.
    pub leader: String,
    /// When it became the leader, if it is replicated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_since: Option<Timestamp>,
    /// Whether the system account carries the messages of the group.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub system_account: bool,
    /// Name of the account that carries the messages of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_account: Option<String>,
    /// The other members of the group, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaInfo>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaInfo {
    /// Name of its server.
    pub name: String,
    /// Whether it has answered recently, and has all that the leader has.
    pub current: bool,
    /// Whether its server is not connected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
    /// Nanoseconds since its last message.
    pub active: u64,
    /// Number of entries that it lacks.
    #[serde(skip_serializing_if = "is_zero")]
    pub lag: u64,
    /// Id that nats-server derives from the name.
    pub peer: String,
}

impl JetStreams {
    /// Sets what descriptions and advisories show about the group of the service's streams. Call it before
    /// [`set_accounts`](super::Handler::set_accounts), and after each change.
    pub fn set_group(&mut self, group: GroupState) {
        let group = Arc::new(group);
        self.each_running(|jetstream| jetstream.group = Arc::clone(&group));
        self.group = group;
    }

    /// Returns whether a client has requested since the last call that another server leads, and the name of the server
    /// that it prefers. Transfer the lead after the answers so far have left.
    pub fn take_step_down(&mut self) -> Option<Option<String>> {
        self.step_down.take()
    }

    /// Reports the leader of streams and consumers that were created or opened, in their account and in the system
    /// account.
    pub(super) fn announce_leaders(&mut self, account: AccountId, now: Now, ports: &mut dyn Ports) {
        let name = self.name_of(account).to_owned();
        let Some(jetstream) = self.running_mut(account) else {
            return;
        };
        for elected in std::mem::take(&mut jetstream.elected) {
            if account != AccountId::SYSTEM {
                jetstream.announce_leader(&elected, None, now, ports.of(account));
            }
            let port = ports.of(AccountId::SYSTEM);
            jetstream.announce_leader(&elected, Some(&name), now, port);
        }
    }
}

impl JetStream {
    /// Returns whether the streams of this service are replicated.
    pub(super) fn is_replicated(&self) -> bool {
        let cluster = self.settings.cluster.as_ref();
        cluster.is_some_and(|cluster| cluster.replicas > 1)
    }

    /// Returns the servers of a stream, for descriptions that show them even without a cluster.
    pub(super) fn cluster_info(&self, key: Key) -> ClusterInfo {
        let stream = self.streams.get(key).filter(|_| self.is_replicated());
        let group = stream.map(|stream| group_of_stream(stream, &self.settings.account));
        self.members_of(group)
    }

    /// Returns the servers of a stream, if the server is in a cluster.
    pub(super) fn shown_cluster(&self, key: Key) -> Option<ClusterInfo> {
        let cluster = self.settings.cluster.as_ref();
        cluster.map(|_| self.cluster_info(key))
    }

    /// Returns the servers of a consumer, if the server is in a cluster.
    pub(super) fn shown_cluster_of_consumer(
        &self,
        key: Key,
        id: ConsumerId,
    ) -> Option<ClusterInfo> {
        self.settings.cluster.as_ref()?;
        Some(self.members_of(self.group_of_consumer(key, id)))
    }

    /// Returns the name of the group of a consumer, if it is replicated.
    pub(super) fn group_of_consumer(&self, key: Key, id: ConsumerId) -> Option<String> {
        let stream = self.streams.get(key).filter(|_| self.is_replicated())?;
        let consumer = stream.consumers().get(id)?;
        group_of_consumer(consumer, stream, &self.settings.account)
    }

    /// Returns the members of a group of this name; the server alone without a name.
    fn members_of(&self, raft_group: Option<String>) -> ClusterInfo {
        let cluster = self.settings.cluster.as_ref();
        let name = cluster.map(|cluster| cluster.name.clone());
        let group = &self.group;
        if raft_group.is_none() || group.leader.is_empty() {
            return ClusterInfo {
                name,
                raft_group,
                leader: self.settings.server_name.clone(),
                ..ClusterInfo::default()
            };
        }
        ClusterInfo {
            name,
            raft_group,
            leader: group.leader.clone(),
            leader_since: Some(Timestamp::from_unix_nanos(group.leader_since_unix_nanos)),
            system_account: true,
            traffic_account: Some(group.traffic_account.clone()),
            replicas: group.replicas(false),
        }
    }

    /// Reports later that this server leads a stream.
    pub(super) fn note_stream_leader(&mut self, key: Key) {
        if self.is_replicated() {
            self.elected.push(Elected::Stream(key));
        }
    }

    /// Reports later that this server leads the consumers of a stream.
    pub(super) fn note_consumer_leaders(&mut self, key: Key) {
        let stream = self.streams.get(key).filter(|_| self.is_replicated());
        let consumers = stream
            .into_iter()
            .flat_map(|stream| stream.consumers().iter());
        let ids: Vec<ConsumerId> = consumers.map(|(id, _)| id).collect();
        for id in ids {
            self.note_consumer_leader(key, id);
        }
    }

    /// Reports later that this server leads a consumer.
    pub(super) fn note_consumer_leader(&mut self, key: Key, id: ConsumerId) {
        if self.group_of_consumer(key, id).is_some() {
            self.elected.push(Elected::Consumer(key, id));
        }
    }

    /// Reports that this server leads a stream or a consumer, unless it was deleted. `account` is set in the system
    /// account.
    fn announce_leader(
        &mut self,
        elected: &Elected,
        account: Option<&str>,
        now: Now,
        port: &mut dyn super::Port,
    ) {
        let (Elected::Stream(key) | Elected::Consumer(key, _)) = *elected;
        let Some(stream) = self.streams.get(key) else {
            return;
        };
        let stream_name = stream.config().name.as_str();
        let consumer = match *elected {
            Elected::Stream(_) => None,
            Elected::Consumer(_, id) => match stream.consumers().get(id) {
                Some(consumer) => Some(consumer.name()),
                None => return,
            },
        };
        let group = &self.group;
        let names = (stream_name, consumer);
        let leader = match group.leader.as_str() {
            "" => &self.settings.server_name,
            leader => leader,
        };
        let members = (leader, group.replicas(true));
        let advisories = &mut self.advisories;
        advisories.leader_elected(names, account, members, now, port);
    }
}

impl GroupState {
    /// Returns the members by name, with or without the leader.
    fn replicas(&self, with_leader: bool) -> Vec<ReplicaInfo> {
        let is_shown = with_leader && !self.leader.is_empty();
        let leader = is_shown.then(|| Follower {
            name: self.leader.clone(),
            current: true,
            ..Follower::default()
        });
        let members = leader.iter().chain(&self.followers);
        let mut replicas: Vec<ReplicaInfo> = members.map(ReplicaInfo::of).collect();
        replicas.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        replicas
    }
}

impl ClusterInfo {
    /// Returns whether a server of this name or id is a member.
    pub(super) fn has_member(&self, peer: &str) -> bool {
        let replicas = self.replicas.iter().map(|replica| &replica.name);
        let mut names = replicas.chain([&self.leader]);
        names.any(|name| name == peer || hash(name) == peer)
    }
}

impl ReplicaInfo {
    fn of(member: &Follower) -> Self {
        ReplicaInfo {
            name: member.name.clone(),
            current: member.current,
            offline: member.offline,
            active: member.active,
            lag: member.lag,
            peer: hash(&member.name),
        }
    }
}

fn group_of_stream(stream: &Stream, account: &str) -> String {
    let config = stream.config();
    let id = format!("{account} {} {}", config.name, stream.created());
    group_name('S', config.num_replicas, config.storage, &id)
}

fn group_of_consumer(consumer: &Consumer, stream: &Stream, account: &str) -> Option<String> {
    let (config, of_stream) = (consumer.config(), stream.config());
    let replicas = of_stream.durability().replicas_of(config);
    let (name, created) = (consumer.name(), consumer.created());
    let id = format!("{account} {} {name} {created}", of_stream.name);
    let storage = match config.mem_storage {
        true => Storage::Memory,
        false => of_stream.storage,
    };
    (replicas > 1).then(|| group_name('C', replicas, storage, &id))
}

/// Returns the name of the group of a stream or a consumer. It is the same on all servers, and changes when the stream or
/// consumer is created again.
fn group_name(kind: char, replicas: i64, storage: Storage, id: &str) -> String {
    let storage = match storage {
        Storage::File => 'F',
        Storage::Memory => 'M',
    };
    format!("{kind}-R{replicas}{storage}-{}", hash(id))
}

fn hash(name: &str) -> String {
    String::from_utf8_lossy(&name_hash::<8>(name)).into_owned()
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
