//! Connections on their way to a shard.

use std::net::{SocketAddr, TcpStream};

use fanline_engine::auth::Vouched;
use fanline_engine::codec::websocket::Upgrade;
use fanline_engine::{AccountId, Peer};
use tokio::io::DuplexStream;

use crate::leaf::Dialled;
use crate::wire::Records;

/// A connection that is not served yet.
pub(crate) enum Transport {
    InProcess(DuplexStream),
    /// A client of the server's own, in an account.
    SystemClient(DuplexStream, AccountId),
    /// One to a hub, as a leaf node.
    Dialled(Box<Dialled>),
    /// By the listener that it came to.
    Wire(Incoming, Listener),
}

/// A connection as accepted.
pub(crate) enum Incoming {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    /// One that was upgraded elsewhere already.
    Upgraded(Upgraded),
    /// A leaf that another shard has found among its connections.
    LeafHandover(Box<LeafHandover>),
}

/// A WebSocket connection that came with a request over HTTP.
pub(crate) struct Upgraded {
    pub(crate) stream: DuplexStream,
    /// What it was told.
    pub(crate) agreed: Box<Upgrade>,
    pub(crate) address: SocketAddr,
    /// Who it is, if it was let in there.
    pub(crate) vouched: Option<Box<Vouched>>,
}

/// What a connection came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    Clients,
    WebSocket,
    Mqtt,
    Leafs,
}

/// A leaf that has come over WebSocket, for the shard that serves leafs: what it is was known only when its
/// request was read, which another shard has done.
pub(crate) struct LeafHandover {
    pub(crate) stream: TcpStream,
    pub(crate) records: Option<Records>,
    pub(crate) peer: Peer,
    pub(crate) granted: Box<Upgrade>,
    /// What came behind the request.
    pub(crate) early: Vec<u8>,
}
