//! Queries of connections, and their results.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{CloseReason, ConnectionStatus};

/// A closed connection.
#[derive(Clone, Debug)]
pub(crate) struct ClosedConnection {
    /// The last state of the connection, without its subscriptions.
    pub(crate) status: ConnectionStatus,
    pub(crate) reason: CloseReason,
    pub(crate) stopped_at: Duration,
}

/// A query that selects connections of a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionQuery {
    pub(crate) open: bool,
    pub(crate) closed: bool,
    /// If set, selects only connections with one of these ids, which are in ascending order.
    pub(crate) cids: Option<Arc<[u64]>>,
    /// Whether to select only connections with pending output, whose peers read too slowly.
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
    /// A client was admitted.
    Connected(Box<ConnectionStatus>),
    /// A leaf connection is ready for messages.
    Linked(Box<ConnectionStatus>),
    /// A connection closed.
    Closed(Box<ClosedConnection>),
    /// A connection closed before it was admitted.
    Refused(Box<ClosedConnection>),
}
