//! Connections on their way to a shard.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use fanline_engine::auth::Vouched;
use fanline_engine::codec::websocket::Upgrade;
use fanline_engine::route::Compressed;
use fanline_engine::{AccountId, Peer};
use tokio::io::DuplexStream;

use crate::cluster::DialledRoute;
use crate::gateway::DialledGateway;
use crate::leaf::Dialled;
use crate::wire::{Records, S2Layer};

/// A connection without a session yet.
pub(crate) enum Transport {
    InProcess(DuplexStream),
    /// A system client, in an account.
    SystemClient(DuplexStream, AccountId),
    /// A connection to a hub, as a leaf node.
    Dialled(Box<Dialled>),
    /// A connection to another server of the cluster.
    Route(Box<DialledRoute>),
    /// A connection to another cluster.
    Gateway(Box<DialledGateway>),
    /// An accepted route, passed on by the shard that has read its INFO.
    GreetedRoute(Box<GreetedRoute>),
    /// A connection accepted by a listener.
    Wire(Incoming, Listener),
}

/// An accepted connection.
pub(crate) enum Incoming {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    /// A connection upgraded to WebSocket by the monitoring server.
    Upgraded(Upgraded),
    /// A leaf connection handed over by another shard.
    LeafHandover(Box<LeafHandover>),
}

/// A WebSocket connection that was upgraded from an HTTP request.
pub(crate) struct Upgraded {
    pub(crate) stream: DuplexStream,
    /// The parameters of the upgrade.
    pub(crate) agreed: Box<Upgrade>,
    pub(crate) address: SocketAddr,
    /// The identity of a dashboard user who has logged in.
    pub(crate) identity: Option<Box<Vouched>>,
}

/// The kind of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    Clients,
    WebSocket,
    Mqtt,
    Leafs,
    Routes,
    Gateways,
}

/// An accepted route. Only its INFO shows what it carries, and so which shard serves it.
pub(crate) struct GreetedRoute {
    pub(crate) stream: TcpStream,
    pub(crate) records: Option<Records>,
    pub(crate) peer: Peer,
    /// The connection's name in logs.
    pub(crate) name: String,
    /// Time at which the handshake began.
    pub(crate) begun_at: Duration,
    /// The input up to INFO, and what follows it.
    pub(crate) received: Vec<u8>,
    pub(crate) s2: Option<Box<S2Layer>>,
    pub(crate) compressed: Option<Compressed>,
}

/// A leaf connection over WebSocket. Only the HTTP request identifies it as a leaf connection, so the shard
/// that has read the request hands the connection over.
pub(crate) struct LeafHandover {
    pub(crate) stream: TcpStream,
    pub(crate) records: Option<Records>,
    pub(crate) peer: Peer,
    pub(crate) granted: Box<Upgrade>,
    /// Bytes received after the request.
    pub(crate) early: Vec<u8>,
}
