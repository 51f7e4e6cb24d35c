//! What is known of one link.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::told::Told;
use super::{Compressed, Dialled, LeafRemote, Rules};
use crate::codec::leaf::level_name;
use crate::codec::s2::Level;

/// What a hub is shown; empty where there is nothing.
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

/// Which side of a link this server is on.
#[derive(Clone, Debug)]
pub(crate) enum Side {
    /// The other one has come here.
    Listening,
    /// This one has dialled.
    Dialling(Box<Dialled>),
}

/// How far a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// CONNECT, or the INFO that answers it, has not come.
    Greeting,
    /// Messages and interest cross.
    Ready,
}

/// One link, as its session knows it.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) side: Side,
    pub(crate) phase: Phase,
    pub(crate) rules: Rules,
    pub(crate) told: Told,
    /// What the other one is called, its cluster, and its account.
    pub(crate) name: String,
    pub(crate) cluster: String,
    pub(crate) remote_account: String,
    /// It is not told what other leafs want.
    pub(crate) isolates: bool,
    /// It tells of messages that are traced, and leaves alone those that are only for that.
    pub(crate) takes_traces: bool,
    /// It calls itself the hub of this link, though it has dialled.
    pub(crate) is_remote_hub: bool,
    /// It has come, and has said that it has JetStream.
    pub(crate) has_jetstream: bool,
    /// When it may be dialled again, if not as usual.
    pub(crate) retry_after: Option<Duration>,
    /// What the other side has complained of.
    pub(crate) complaint: Option<String>,
    /// Where else the hub says that it is.
    pub(crate) urls: Vec<String>,
    /// By what both have agreed to compress.
    pub(crate) compressed: Option<Compressed>,
    /// How often it had been there before.
    pub(crate) reconnects: u64,
    /// The subjects by which it is seen that it closes a cycle; nothing crosses while there are any.
    pub(crate) circling: Vec<Box<[u8]>>,
    /// When it is cut if there still are.
    pub(crate) held_until: Option<Duration>,
}

impl Leaf {
    /// A connection that was accepted, or one that was dialled.
    pub(crate) fn new(dialled: Option<Dialled>, compressed: Option<Compressed>) -> Self {
        Leaf {
            side: dialled.map_or(Side::Listening, |dialled| Side::Dialling(dialled.into())),
            phase: Phase::Greeting,
            rules: Rules::default(),
            told: Told::default(),
            name: String::new(),
            cluster: String::new(),
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
            circling: Vec::new(),
            held_until: None,
        }
    }

    /// Whether nothing crosses it because it closes a cycle.
    pub(crate) fn is_held(&self) -> bool {
        !self.circling.is_empty()
    }

    /// Whether the other sides of both are servers of one cluster: those hear each other without this one.
    pub(crate) fn is_beside(&self, other: &Leaf) -> bool {
        !self.cluster.is_empty() && self.cluster == other.cluster
    }

    /// By what it is known again when it comes back: of a remote it is no matter which of its servers it is.
    pub(crate) fn known_as(&self) -> String {
        match self.remote() {
            Some(remote) => format!("> {}", remote.id),
            None => format!("< {} {}", self.name, self.remote_account),
        }
    }

    /// How what is written is compressed, by the last round trip that was measured.
    pub(crate) fn level(&self, rtt: Option<Duration>) -> Option<Level> {
        let compressed = self.compressed.as_ref()?;
        Some(compressed.level(rtt))
    }

    /// What that is called.
    pub(crate) fn compression(&self, rtt: Option<Duration>) -> &'static str {
        self.level(rtt).map_or("off", level_name)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// What was dialled for.
    pub(crate) fn remote(&self) -> Option<&Arc<LeafRemote>> {
        match &self.side {
            Side::Listening => None,
            Side::Dialling(dialled) => Some(&dialled.remote),
        }
    }

    /// Whether this server is the spoke of it.
    pub(crate) fn is_spoke(&self) -> bool {
        match &self.side {
            Side::Listening => self.is_remote_hub,
            Side::Dialling(dialled) => !dialled.remote.is_hub,
        }
    }
}

/// What monitoring tells of a link.
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
    /// Of those that were dialled, which one.
    pub remote: Option<u64>,
    pub compression: &'static str,
    pub websocket: bool,
    pub reconnects: u64,
}

/// What whoever has dialled wants to know of a link that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafEnded {
    /// Which server it was dialled for.
    pub remote: Option<u64>,
    /// Whether anything could cross.
    pub was_ready: bool,
    /// How long to wait, if not as long as usual.
    pub retry_after: Option<Duration>,
    /// What the other side has complained of.
    pub complaint: Option<String>,
    /// Where else the hub says that it is.
    pub urls: Vec<String>,
}
