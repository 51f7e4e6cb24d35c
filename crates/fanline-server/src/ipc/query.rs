//! Queries of connections, and their results.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{CloseReason, ConnectionStatus};

/// A closed connection.
#[derive(Clone, Debug)]
pub(crate) struct ClosedConnection {
    /// Its last state, without its subscriptions.
    pub(crate) status: ConnectionStatus,
    pub(crate) reason: CloseReason,
    pub(crate) stopped_at: Duration,
}

/// Selects connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionQuery {
    pub(crate) open: bool,
    pub(crate) closed: bool,
    /// Only those with one of these ids, in ascending order.
    pub(crate) cids: Option<Arc<[u64]>>,
    /// Only those with pending output that they do not read fast enough.
    pub(crate) behind: bool,
    /// Whether to list the subscriptions of open connections.
    pub(crate) subscriptions: bool,
}

impl ConnectionQuery {
    pub(crate) fn includes(&self, cid: u64) -> bool {
        self.cids
            .as_ref()
            .is_none_or(|cids| cids.binary_search(&cid).is_ok())
    }
}

/// The connections of a shard that a query selects.
#[derive(Debug, Default)]
pub(crate) struct ConnectionReport {
    pub(crate) open: Vec<ConnectionStatus>,
    pub(crate) closed: Vec<ClosedConnection>,
}

/// A change of a connection, for the system account.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    /// It was admitted.
    Connected(Box<ConnectionStatus>),
    /// A leaf connection is ready for messages.
    Linked(Box<ConnectionStatus>),
    /// It closed.
    Closed(Box<ClosedConnection>),
    /// It closed without having been admitted.
    Refused(Box<ClosedConnection>),
}
