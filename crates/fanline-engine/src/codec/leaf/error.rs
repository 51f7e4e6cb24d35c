//! Errors of leaf connections. The texts are nats-server's, because spokes recognize some of them.

/// The text of an `-ERR`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeafError {
    /// A loop was detected: disconnected.
    #[error("Loop detected for leafnode account={0:?}. Delaying attempt to reconnect for 30s")]
    Loop(String),
    /// Both sides have the same cluster name: disconnected.
    #[error("remote leafnode has same cluster name")]
    SameCluster,
    /// The cluster name contains spaces: disconnected.
    #[error("cluster name cannot contain spaces")]
    ClusterWithSpaces,
    /// The version of the other side is too old: disconnected.
    #[error("connection rejected since minimum version required is {0:?}")]
    Version(String),
    /// A client has connected to the port for leaf nodes: disconnected.
    #[error("attempted to connect to leaf node port")]
    Client,
    /// A gateway has connected to the port for leaf nodes: disconnected.
    #[error("Rejecting connection from gateway {0:?} on the leafnode port")]
    Gateway(String),
    /// The same server has connected again: the older connection is disconnected.
    #[error("Duplicate Remote LeafNode Connection")]
    Duplicate,
    /// The account does not exist, or was removed: disconnected.
    #[error("Account {0:?} is not known")]
    UnknownAccount(String),
    /// A filter is invalid: the line is ignored.
    #[error("Invalid Subscription")]
    InvalidSubscription,
}

impl LeafError {
    /// Returns the delay before a spoke dials again after it has received this error; `None` means the usual
    /// delay.
    pub(crate) fn retry_after(text: &str) -> Option<std::time::Duration> {
        let text = text.to_ascii_lowercase();
        let clashes = [
            "loop detected",
            "same cluster name",
            "permissions violation",
            "duplicate remote",
        ];
        if clashes.iter().any(|clash| text.contains(clash)) {
            return Some(super::RETRY_AFTER_CLASH);
        }
        text.contains("minimum version")
            .then_some(super::RETRY_AFTER_VERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spokes_wait_as_long_as_it_makes_sense() {
        for (error, seconds) in [
            (LeafError::Loop("A".into()), Some(30)),
            (LeafError::SameCluster, Some(30)),
            (LeafError::Version("2.8.0".into()), Some(5)),
            (LeafError::Client, None),
            (LeafError::InvalidSubscription, None),
        ] {
            let found = LeafError::retry_after(&error.to_string());
            assert_eq!(found.map(|time| time.as_secs()), seconds, "{error}");
        }
    }
}
