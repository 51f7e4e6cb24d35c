//! Commands to a shard, and what they carry.

use std::sync::Arc;

use fanline_engine::codec::leaf::LeafStatus;
use fanline_engine::{Access, ServerInfo, ShardConfig, ShardStatus};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{ConnectionQuery, ConnectionReport, Transport};
use crate::tls::ListenersTls;

#[cfg(test)]
/// Something that a test does on a shard's thread.
pub(crate) type OnShard = dyn FnOnce(&std::rc::Rc<crate::runtime::Runtime>) + Send;

/// What the control thread asks of a shard.
pub(crate) enum Command {
    /// Serve this connection.
    Serve {
        transport: Transport,
        cid: u64,
        /// The server has all the connections that it may have: say so and close.
        is_full: bool,
        /// Returned when the connection is opened.
        arrival: Option<OwnedSemaphorePermit>,
    },
    /// Tell whether anybody gets what is published to this topic, in the account without a name.
    HasInterest(Arc<str>, oneshot::Sender<bool>),
    /// Tell how much there is and was of everything, account by account.
    Status(oneshot::Sender<Vec<ShardStatus>>),
    /// Close a client's connection, and tell whether there was one.
    Kick(u64, oneshot::Sender<bool>),
    /// Tell a client to go elsewhere, and tell whether there is one.
    RequestReconnect(u64, oneshot::Sender<bool>),
    /// Tell of connections.
    Connections(ConnectionQuery, oneshot::Sender<ConnectionReport>),
    /// Tell of leaf nodes, with what they want or without.
    LeafNodes(bool, oneshot::Sender<Vec<LeafStatus>>),
    /// Close the link that was dialled for this remote.
    CloseRemote(u64),
    /// Tell all clients that the server is going away.
    AnnounceLameDuck,
    /// Let this say from now on who may connect, and what they may do.
    ReplaceAccess(Arc<Access>),
    /// Say so when this is reached: what came before is done then.
    Barrier(oneshot::Sender<()>),
    /// Go on with other limits and credentials.
    Reload(Box<Reload>),
    /// Begin connections that come from now on with this.
    ReplaceTls(Arc<ListenersTls>),
    /// Close this many connections.
    CloseSome(usize),
    /// Close this many clients, which are more than the server may have.
    CloseExcess(usize),
    /// Close everything and end.
    Stop,
    /// Run this on the shard's thread.
    #[cfg(test)]
    Run(Box<OnShard>),
}

/// What a shard goes on with. All of it changes at once, so that a connection is told what it meets.
#[derive(Clone)]
pub(crate) struct Reload {
    pub(crate) config: Arc<ShardConfig>,
    pub(crate) info: ServerInfo,
    pub(crate) access: Arc<Access>,
    pub(crate) tls: Arc<ListenersTls>,
}
