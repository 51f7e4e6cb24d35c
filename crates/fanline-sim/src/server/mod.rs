//! One server: shards, their mailboxes, and either the JetStream service with its disks, or routes to other servers.
//!
//! The methods are the steps of its threads. Each obeys the order of calls that `Shard` and `JetStreamService` require,
//! as the runtime of `fanline-server` does; between two of them anything may happen.

mod disks;
mod routes;
mod sabotage;
mod service;
mod shard;
mod socket;

use std::sync::Arc;

use fanline_engine::auth::Access;
use fanline_engine::jetstream::Now;
use fanline_engine::route::{RouteEnded, RouteEvent, RouteSettings};
use fanline_engine::store::simulated_disk::Dice;
use fanline_engine::{Auth, Batch, Limits, ServerInfo, SessionId, Shard, ShardConfig};

pub use disks::Disks;
pub use sabotage::Sabotage;
pub(crate) use socket::Socket;

use service::ServiceThread;
pub(crate) use service::SyncState;
pub(crate) use shard::ConnectionKey;
use shard::{Connection, ShardThread};

/// What a server is started with.
#[derive(Clone)]
pub struct ServerSettings {
    /// Number of shards with connections.
    pub shards: usize,
    /// Limits of clients.
    pub limits: Limits,
    /// Users and accounts.
    pub access: Arc<Access>,
    /// Seed of identifiers and choices.
    pub seed: u64,
    /// What the harness does wrong.
    pub sabotage: Sabotage,
    /// The server's place in a cluster. Such a server has no JetStream.
    pub member: Option<Member>,
}

/// A server's place in a cluster.
#[derive(Clone)]
pub struct Member {
    /// Its id, which no server has had before.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The settings of its routes.
    pub routes: RouteSettings,
}

/// A running server.
pub struct Server {
    threads: Vec<ShardThread>,
    service: Option<ServiceThread>,
    /// For each shard, the batch that it has not taken yet. With a service, the last entry is the batch for it.
    mailboxes: Vec<Batch>,
    connections: Vec<Option<Connection>>,
    connections_opened: u64,
    config: Arc<ShardConfig>,
    info: ServerInfo,
    disks: Disks,
    /// Events about peers that the dialer has not taken.
    route_events: Vec<RouteEvent>,
    /// Ended routes that the dialer has not taken.
    ended_routes: Vec<(ConnectionKey, RouteEnded)>,
    sabotage: Sabotage,
    /// Choices of a sabotage.
    sabotage_dice: Dice,
    now: Now,
}

impl Server {
    /// Starts a server with the given disks, and recovers the streams on them.
    ///
    /// # Panics
    /// With more shards than the engine allows.
    pub fn start(settings: &ServerSettings, disks: &Disks, now: Now) -> Self {
        let routes = settings.member.as_ref().map(|member| &member.routes);
        let has_service = settings.member.is_none();
        let config = Arc::new(ShardConfig {
            limits: settings.limits.clone(),
            auth: Auth::Directory(Arc::clone(&settings.access)),
            shards: settings.shards + usize::from(has_service),
            traces: false,
            leafs: None,
            routes: routes.map(|routes| Arc::new(routes.clone())),
            gateways: None,
        });
        let info = match &settings.member {
            None => ServerInfo::default(),
            Some(member) => ServerInfo {
                server_id: member.id.clone(),
                server_name: member.name.clone(),
                cluster: Some("c".into()),
                headers: true,
                ..ServerInfo::default()
            },
        };
        let thread = |index: u16| {
            let seed = settings.seed.wrapping_add(u64::from(index) << 32);
            let shard = Shard::new(index, Arc::clone(&config), info.clone(), seed);
            ShardThread::new(shard)
        };
        let shards = u16::try_from(settings.shards).expect("a simulated server has few shards");
        let service =
            has_service.then(|| ServiceThread::start(shards, &config, settings, disks, now));
        let mut server = Server {
            threads: (0..shards).map(thread).collect(),
            service,
            mailboxes: (0..config.shards).map(|_| Batch::default()).collect(),
            connections: Vec::new(),
            connections_opened: 0,
            config,
            info,
            disks: disks.clone(),
            route_events: Vec::new(),
            ended_routes: Vec::new(),
            sabotage: settings.sabotage,
            sabotage_dice: Dice::new(settings.seed ^ 0x5ab0),
            now,
        };
        server.end_round();
        server
    }

    /// Sets the time of the next steps.
    pub fn set_now(&mut self, now: Now) {
        self.now = now;
    }

    /// Returns the number of shards with connections.
    pub fn shards(&self) -> usize {
        self.threads.len()
    }

    /// Returns whether no batch waits in a mailbox.
    pub(crate) fn is_idle(&self) -> bool {
        self.mailboxes.iter().all(Batch::is_empty)
            && self.threads.iter().all(|thread| !thread.shard.has_work())
            && self.syncs().is_empty()
    }

    /// Returns the number of open sessions, and of subscriptions, on all shards.
    pub(crate) fn sessions_and_subscriptions(&self) -> (usize, usize) {
        let mut sessions = 0;
        let mut subscriptions = 0;
        for thread in &self.threads {
            sessions += thread.shard.session_ids().count();
            for status in thread.shard.status_by_account() {
                subscriptions += status.subscriptions;
            }
        }
        (sessions, subscriptions)
    }

    fn connection(&mut self, key: ConnectionKey) -> Option<&mut Connection> {
        self.connections.get_mut(key.0)?.as_mut()
    }

    /// Returns the socket of a connection, while the server or the client has it open.
    pub(crate) fn socket(&mut self, key: ConnectionKey) -> Option<&mut Socket> {
        self.connection(key)
            .map(|connection| &mut connection.socket)
    }

    /// Returns the keys of all connections.
    pub(crate) fn connection_keys(&self) -> Vec<ConnectionKey> {
        let open = self.connections.iter().enumerate();
        open.filter(|(_, connection)| connection.is_some())
            .map(|(at, _)| ConnectionKey(at))
            .collect()
    }

    fn find(&self, shard: usize, session: SessionId) -> Option<usize> {
        self.connections.iter().position(|connection| {
            connection.as_ref().is_some_and(|connection| {
                connection.shard == shard && connection.session == Some(session)
            })
        })
    }
}
