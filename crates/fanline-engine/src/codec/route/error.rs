//! Errors of routes. The texts are nats-server's.

/// The text of an `-ERR`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The cluster names of both sides differ: disconnected.
    #[error("Rejecting connection, cluster name {theirs:?} does not match {ours:?}")]
    ClusterName {
        /// Name of the refused server's cluster.
        theirs: String,
        /// Name of this server's cluster.
        ours: String,
    },
    /// A client has connected to the port for routes: disconnected.
    #[error("attempted to connect to route port")]
    Client,
    /// A gateway has connected to the port for routes: disconnected.
    #[error("Rejecting connection from gateway {0:?} on the Route port")]
    Gateway(String),
    /// A filter is invalid: the line is ignored, but the other side closes the connection.
    #[error("Invalid Subscription")]
    InvalidSubscription,
    /// The dialer requests a dedicated connection for an account that has none here: disconnected.
    #[error("No route for account {0:?}")]
    NoRouteForAccount(String),
    /// The dialer requests a dedicated connection for an account that does not exist here: disconnected.
    #[error("Unable to lookup account {0:?}: account missing")]
    UnknownAccount(String),
    /// The dialer requests a slot that the pool does not have: disconnected.
    #[error("Invalid route pool index: {slot} - pool size is {size}")]
    InvalidPoolIndex {
        /// The requested slot.
        slot: i64,
        /// The larger pool size of both sides.
        size: u32,
    },
    /// The acceptor has assigned a slot, which only the dialer does: disconnected.
    #[error("Route pool index should not be set but is set to {0}")]
    PoolIndexSet(i64),
    /// Both sides have JetStream, and the other one is a nats-server: disconnected.
    #[error(
        "Rejecting server {theirs:?} with JetStream of nats-server, because server {ours:?} has JetStream of Fanline"
    )]
    JetStream {
        /// Name of the refused server.
        theirs: String,
        /// Name of this server.
        ours: String,
    },
    /// A dedicated connection is not possible, because one side has no pool: disconnected.
    #[error("Not possible to have a dedicated route for account {0:?} between those servers")]
    DedicatedImpossible(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_nats_server() {
        let name = RouteError::ClusterName {
            theirs: "A".into(),
            ours: "B".into(),
        };
        for (error, expected) in [
            (
                name,
                "Rejecting connection, cluster name \"A\" does not match \"B\"",
            ),
            (
                RouteError::NoRouteForAccount("X".into()),
                "No route for account \"X\"",
            ),
            (
                RouteError::DedicatedImpossible("$SYS".into()),
                "Not possible to have a dedicated route for account \"$SYS\" between those servers",
            ),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }
}
