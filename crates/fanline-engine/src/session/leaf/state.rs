//! The state of one leaf connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::super::announced::Announced;
use super::{Compressed, Dialled, LeafRemote, Rules};
use crate::codec::compression::level_name;
use crate::codec::s2::Level;

/// Credentials for a hub; fields without a value are empty.
#[derive(Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in CONNECT")]
pub struct LeafCredentials {
    pub user: String,
    pub pass: String,
    pub auth_token: String,
    pub nkey: String,
    pub jwt: String,
    pub sig: String,
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for LeafCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeafCredentials(..)")
    }
}

/// The side of the connection on which this server is.
#[derive(Clone, Debug)]
pub(crate) enum Side {
    /// The other side dialed.
    Listening,
    /// This side dialed.
    Dialling(Box<Dialled>),
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// CONNECT, or the INFO that responds to it, has not arrived.
    Greeting,
    /// The handshake is complete: messages and interest cross.
    Ready,
}

/// The state of one leaf connection.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) side: Side,
    pub(crate) phase: Phase,
    pub(crate) rules: Rules,
    pub(crate) announced: Announced,
    /// Name, cluster, and account of the other side.
    pub(crate) name: String,
    pub(crate) cluster: Arc<str>,
    pub(crate) remote_account: String,
    /// Whether the interest of other leaf connections is hidden from the other side.
    pub(crate) isolates: bool,
    /// Whether the other side supports traces. It then does not deliver messages that request only a trace.
    pub(crate) takes_traces: bool,
    /// Whether the other side is the hub, although it dialed.
    pub(crate) is_remote_hub: bool,
    /// Whether the other side dialed and has JetStream.
    pub(crate) has_jetstream: bool,
    /// Delay before the remote is dialed again; `None` means the usual delay.
    pub(crate) retry_after: Option<Duration>,
    /// The error that the other side sent.
    pub(crate) complaint: Option<String>,
    /// Other URLs of the hub.
    pub(crate) urls: Vec<String>,
    /// The compression that both sides have agreed on.
    pub(crate) compressed: Option<Compressed>,
    /// Number of times that the connection was established before.
    pub(crate) reconnects: u64,
    /// Loop subjects that prove that the connection closes a cycle. While there are any, no message crosses.
    pub(crate) loops: Vec<Box<[u8]>>,
    /// Time at which the connection is closed, if it still closes a cycle.
    pub(crate) paused_until: Option<Duration>,
}

impl Leaf {
    /// Creates the state of a connection: a dialed one with `dialled`, otherwise an accepted one.
    pub(crate) fn new(dialled: Option<Dialled>, compressed: Option<Compressed>) -> Self {
        Leaf {
            side: dialled.map_or(Side::Listening, |dialled| Side::Dialling(dialled.into())),
            phase: Phase::Greeting,
            rules: Rules::default(),
            announced: Announced::default(),
            name: String::new(),
            cluster: Arc::default(),
            remote_account: String::new(),
            isolates: false,
            takes_traces: false,
            is_remote_hub: false,
            has_jetstream: false,
            retry_after: None,
            complaint: None,
            urls: Vec::new(),
            compressed,
            reconnects: 0,
            loops: Vec::new(),
            paused_until: None,
        }
    }

    /// Returns whether the connection is paused: no message crosses, because the connection closes a cycle.
    pub(crate) fn is_paused(&self) -> bool {
        !self.loops.is_empty()
    }

    /// Returns whether both connections lead to servers of one cluster. Those servers exchange messages
    /// directly.
    pub(crate) fn is_same_cluster(&self, other: &Leaf) -> bool {
        !self.cluster.is_empty() && self.cluster == other.cluster
    }

    /// Returns the key that identifies a connection after it is established again. All servers of one remote
    /// have the same key.
    pub(crate) fn key(&self) -> String {
        match self.remote() {
            Some(remote) => format!("> {}", remote.id),
            None => format!("< {} {}", self.name, self.remote_account),
        }
    }

    /// Returns the compression level of output for a round-trip time.
    pub(crate) fn level(&self, rtt: Option<Duration>) -> Option<Level> {
        let compressed = self.compressed.as_ref()?;
        Some(compressed.level(rtt))
    }

    /// Returns the name of the compression.
    pub(crate) fn compression(&self, rtt: Option<Duration>) -> &'static str {
        self.level(rtt).map_or("off", level_name)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns the remote that was dialed.
    pub(crate) fn remote(&self) -> Option<&Arc<LeafRemote>> {
        match &self.side {
            Side::Listening => None,
            Side::Dialling(dialled) => Some(&dialled.remote),
        }
    }

    /// Returns whether this server is the spoke.
    pub(crate) fn is_spoke(&self) -> bool {
        match &self.side {
            Side::Listening => self.is_remote_hub,
            Side::Dialling(dialled) => !dialled.remote.is_hub,
        }
    }
}

/// A leaf connection in monitoring.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "named as in nats-server's /leafz")]
pub struct LeafStatus {
    pub id: u64,
    pub name: String,
    pub is_spoke: bool,
    pub is_isolated: bool,
    pub account: String,
    pub ip: String,
    pub port: u16,
    pub rtt: Option<Duration>,
    pub in_msgs: u64,
    pub out_msgs: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub subscriptions: usize,
    pub subscriptions_list: Vec<String>,
    /// The remote that was dialed.
    pub remote: Option<u64>,
    pub compression: &'static str,
    pub websocket: bool,
    pub reconnects: u64,
}

/// Facts about an ended leaf connection that the dialer needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafEnded {
    /// The remote that was dialed.
    pub remote: Option<u64>,
    /// Whether the handshake was complete.
    pub was_ready: bool,
    /// Delay before the remote is dialed again; `None` means the usual delay.
    pub retry_after: Option<Duration>,
    /// The error that the other side sent.
    pub complaint: Option<String>,
    /// Other URLs of the hub.
    pub urls: Vec<String>,
}
