//! Commands to a shard.

use std::sync::Arc;

use fanline_engine::auth::AccountId;
use fanline_engine::gateway::{GatewayStatus, KnownGateway};
use fanline_engine::leaf::LeafStatus;
use fanline_engine::route::{RouteDetail, RouteStatus};
use fanline_engine::{Access, ClientUrls, ServerInfo, ShardConfig, ShardStatus};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{ConnectionQuery, ConnectionReport, Transport};
use crate::tls::ListenersTls;

#[cfg(test)]
/// A closure that a test runs on a shard's thread.
pub(crate) type OnShard = dyn FnOnce(&std::rc::Rc<crate::runtime::Runtime>) + Send;

/// A command to a shard.
pub(crate) enum Command {
    /// Serves a connection.
    Serve {
        transport: Transport,
        cid: u64,
        /// Whether the server has reached its connection limit. The shard then sends an error and closes the
        /// connection.
        is_full: bool,
        /// The arriving connection's permit, released when the connection's session begins.
        arrival: Option<OwnedSemaphorePermit>,
    },
    /// Returns whether a subject of the default account has subscribers.
    HasInterest(Arc<str>, oneshot::Sender<bool>),
    /// Returns the counters of each account.
    Status(oneshot::Sender<Vec<ShardStatus>>),
    /// Closes a client's connection. Returns whether the client was found.
    Kick(u64, oneshot::Sender<bool>),
    /// Closes the connection of a client or a leaf node, because its account has too many in the cluster. Returns
    /// whether the connection was found.
    CloseOverLimit(u64, oneshot::Sender<bool>),
    /// Sets the numbers of an account's clients and leaf nodes at the other servers of the cluster.
    SetRemoteConnections(AccountId, u32, u32),
    /// Asks a client to reconnect elsewhere. Returns whether the client was found.
    RequestReconnect(u64, oneshot::Sender<bool>),
    /// Returns the connections that a query selects.
    Connections(ConnectionQuery, oneshot::Sender<ConnectionReport>),
    /// Returns leaf nodes, with their subscriptions if the flag is set.
    LeafNodes(bool, oneshot::Sender<Vec<LeafStatus>>),
    /// Returns the routes, with a detail.
    Routes(RouteDetail, oneshot::Sender<Vec<RouteStatus>>),
    /// A command about gateways.
    Gateways(GatewayCommand),
    /// Changes routes.
    ChangeRoutes(RouteChange),
    /// Closes the connection to this remote.
    CloseRemote(u64),
    /// Announces the addresses of the cluster's servers to clients.
    SetConnectUrls(Arc<ClientUrls>),
    /// Announces lame duck mode to all clients.
    AnnounceLameDuck,
    /// Replaces users, accounts, and permissions.
    ReplaceAccess(Arc<Access>),
    /// Replies when all commands before this one are done.
    Barrier(oneshot::Sender<()>),
    /// Applies a new configuration.
    Reload(Box<Reload>),
    /// Replaces the TLS settings of new connections.
    ReplaceTls(Arc<ListenersTls>),
    /// Closes this many connections.
    CloseSome(usize),
    /// Closes this number of clients, because the connection limit is exceeded.
    CloseExcess(usize),
    /// Closes all connections and ends the shard.
    Stop,
    /// Runs a closure on the shard's thread.
    #[cfg(test)]
    Run(Box<OnShard>),
}

/// A change of routes to the other servers of the cluster.
pub(crate) enum RouteChange {
    /// Closes the routes that the dialing task with this number has dialed.
    Close(u64),
    /// Takes over the name of another server's cluster, which may have been generated.
    AdoptName(String, bool),
}

/// A command about gateways.
pub(crate) enum GatewayCommand {
    /// Returns the registered connections.
    Status {
        /// Whether to return the filters of their accounts, too.
        with_filters: bool,
        to: oneshot::Sender<Vec<GatewayStatus>>,
    },
    /// Sets the other clusters that the server knows.
    SetKnown(Vec<KnownGateway>),
}

/// A new configuration. The shard applies all parts at once, so that INFO and behavior agree.
#[derive(Clone)]
pub(crate) struct Reload {
    pub(crate) config: Arc<ShardConfig>,
    pub(crate) info: ServerInfo,
    pub(crate) access: Arc<Access>,
    pub(crate) tls: Arc<ListenersTls>,
}
