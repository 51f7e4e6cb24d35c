//! The state of one gateway connection.

use std::fmt;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};

use crate::auth::AccountId;
use crate::codec::gateway::{GatewayInfo, PROTOCOL};

/// Largest number of subjects of an account without interest that a connection stores. Messages to further ones
/// are sent although the other cluster ignores them.
const REFUSED_MAX: usize = 10_000;

/// A connection to another cluster that this server has dialed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GatewayDial {
    /// Name of the other cluster.
    pub gateway: String,
    /// User and password to send; empty without one.
    pub user: String,
    /// The password.
    pub password: String,
    /// Whether the other cluster is configured; otherwise the server has learned of it from another one.
    pub is_configured: bool,
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for GatewayDial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayDial")
            .field("gateway", &self.gateway)
            .field("is_configured", &self.is_configured)
            .finish_non_exhaustive()
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The dialer's CONNECT has not arrived.
    Connecting,
    /// The peer's INFO has not arrived.
    Greeting,
    /// The connection is registered: messages and interest cross.
    Ready,
}

/// The reason why a dialed connection ended, as far as it matters for the next attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GatewayOutcome {
    /// The connection failed, or has ended after it was registered.
    #[default]
    Ended,
    /// The other cluster is connected already.
    Duplicate,
}

/// How a dialed connection decides about plain messages of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayMode {
    /// It sends them, except those to subjects without interest.
    Optimistic,
    /// It still sends them, while the other cluster announces all its interest.
    Transitioning,
    /// It sends them if there is interest.
    InterestOnly,
}

/// What a dialed connection knows of the interest in an account, apart from subscriptions.
#[derive(Debug)]
pub(crate) struct InAccount {
    pub(super) mode: GatewayMode,
    /// Subjects without interest. Empty unless the mode is optimistic.
    refused: HashSet<Box<[u8]>>,
}

/// The state of one gateway connection.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// The dialed connection; `None` for an accepted one.
    pub(crate) dial: Option<GatewayDial>,
    pub(crate) phase: Phase,
    /// Name of the peer's cluster; empty before it is known.
    pub(crate) name: String,
    /// The peer's INFO; default before it has arrived.
    pub(crate) info: GatewayInfo,
    /// Accounts whose mode is not the default one, or was not.
    pub(super) accounts: HashMap<AccountId, InAccount>,
    pub(crate) outcome: GatewayOutcome,
    /// The error that the peer sent.
    pub(crate) complaint: Option<String>,
}

impl Gateway {
    /// Creates the state of a connection: a dialed one with `dial`, otherwise an accepted one.
    pub(crate) fn new(dial: Option<GatewayDial>) -> Self {
        Gateway {
            phase: match dial {
                Some(_) => Phase::Greeting,
                None => Phase::Connecting,
            },
            name: (dial.as_ref()).map_or_else(String::new, |dial| dial.gateway.clone()),
            dial,
            info: GatewayInfo::default(),
            accounts: HashMap::new(),
            outcome: GatewayOutcome::default(),
            complaint: None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    pub(crate) fn is_dialed(&self) -> bool {
        self.dial.is_some()
    }

    /// Returns whether the peer continues traces.
    pub(crate) fn takes_traces(&self) -> bool {
        self.info.proto >= u64::from(PROTOCOL)
    }

    /// Returns the mode of an account.
    pub(crate) fn mode_of(&self, account: AccountId) -> GatewayMode {
        let default = match self.info.gateway_iom {
            true => GatewayMode::InterestOnly,
            false => GatewayMode::Optimistic,
        };
        let known = self.accounts.get(&account);
        known.map_or(default, |known| known.mode)
    }

    /// Sets the mode of an account.
    pub(super) fn set_mode(&mut self, account: AccountId, mode: GatewayMode) {
        let known = self.in_account(account);
        known.mode = mode;
        if mode == GatewayMode::InterestOnly {
            known.refused = HashSet::new();
        }
    }

    fn in_account(&mut self, account: AccountId) -> &mut InAccount {
        let mode = self.mode_of(account);
        self.accounts.entry(account).or_insert_with(|| InAccount {
            mode,
            refused: HashSet::new(),
        })
    }

    /// Records that there is no interest in a subject.
    pub(super) fn refuse_subject(&mut self, account: AccountId, subject: &[u8]) {
        let known = self.in_account(account);
        if known.refused.len() < REFUSED_MAX {
            known.refused.insert(subject.into());
        }
    }

    /// Records that there is interest in the subjects of a filter.
    pub(super) fn admit_subjects(
        &mut self,
        account: AccountId,
        is_covered: impl Fn(&[u8]) -> bool,
    ) {
        if let Some(known) = self.accounts.get_mut(&account) {
            known.refused.retain(|subject| !is_covered(subject));
        }
    }

    /// Returns whether a message may go to the peer.
    pub(crate) fn may_send(&self, account: AccountId, subject: &[u8], group: &[u8]) -> bool {
        let is_refused = |known: &InAccount| known.refused.contains(subject);
        self.is_ready()
            && self.is_dialed()
            && (!group.is_empty() || !self.accounts.get(&account).is_some_and(is_refused))
    }

    /// Returns the number of subjects of an account without interest.
    pub(crate) fn refused_in(&self, account: AccountId) -> usize {
        let known = self.accounts.get(&account);
        known.map_or(0, |known| known.refused.len())
    }

    /// Returns facts about the ended connection.
    pub(crate) fn ended(&self) -> GatewayEnded {
        GatewayEnded {
            was_ready: self.is_ready(),
            peer_name: self.info.server_name.clone(),
            outcome: self.outcome,
            complaint: self.complaint.clone(),
        }
    }
}

/// Facts about an ended gateway connection that the dialer needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayEnded {
    /// Whether the connection was registered.
    pub was_ready: bool,
    /// Name of the peer; empty if it is not known.
    pub peer_name: String,
    /// Why the connection ended.
    pub outcome: GatewayOutcome,
    /// The error that the peer sent.
    pub complaint: Option<String>,
}

/// A gateway connection in monitoring.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "named as in nats-server's /gatewayz")]
pub struct GatewayStatus {
    /// Name of the other cluster.
    pub gateway: String,
    /// Whether this server has dialed the connection.
    pub is_dialed: bool,
    pub is_configured: bool,
    pub cid: u64,
    /// Id of the other server.
    pub name: String,
    /// Name of the other server.
    pub server_name: String,
    pub ip: String,
    pub port: u16,
    pub opened_at: Duration,
    pub active_at: Duration,
    pub rtt: Option<Duration>,
    pub pending_size: usize,
    pub in_msgs: u64,
    pub out_msgs: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub subscriptions: usize,
    /// Number of subscriptions that this server has announced to the other one; 0 if it has dialed the connection.
    pub announced: usize,
    pub accounts: Vec<GatewayAccount>,
}

/// An account on a gateway connection in monitoring.
#[derive(Clone, Debug)]
pub struct GatewayAccount {
    /// Name of the account.
    pub name: String,
    /// How messages of the account are sent.
    pub mode: GatewayMode,
    /// Number of subjects without interest, on a dialed connection.
    pub refused: usize,
    /// Number of subscriptions, with those of queue groups.
    pub subs: usize,
    /// Number of queue groups with subscriptions.
    pub queue_subs: usize,
    /// The filters with their queue groups, which are empty for plain subscriptions.
    pub filters: Vec<(String, String)>,
}
