//! Questions about connections.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{CloseReason, ConnectionStatus};

/// A connection that has closed.
#[derive(Clone, Debug)]
pub(crate) struct ClosedConnection {
    /// What was known of it last, without the list of its subscriptions.
    pub(crate) status: ConnectionStatus,
    pub(crate) reason: CloseReason,
    pub(crate) stopped_at: Duration,
}

/// Which connections to tell of.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionQuery {
    pub(crate) open: bool,
    pub(crate) closed: bool,
    /// Only those with one of these ids, in ascending order.
    pub(crate) cids: Option<Arc<[u64]>>,
    /// Only those that take less than there is for them.
    pub(crate) behind: bool,
    /// Whether to list the subscriptions of those that are open.
    pub(crate) subscriptions: bool,
}

impl ConnectionQuery {
    pub(crate) fn includes(&self, cid: u64) -> bool {
        self.cids
            .as_ref()
            .is_none_or(|cids| cids.binary_search(&cid).is_ok())
    }
}

/// What a shard tells of connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionReport {
    pub(crate) open: Vec<ConnectionStatus>,
    pub(crate) closed: Vec<ClosedConnection>,
}

/// What happened to a connection.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    /// It was let in.
    Connected(Box<ConnectionStatus>),
    /// It is another server's, and messages cross it.
    Linked(Box<ConnectionStatus>),
    /// It is gone.
    Closed(Box<ClosedConnection>),
    /// It is gone, and was never let in.
    Refused(Box<ClosedConnection>),
}
