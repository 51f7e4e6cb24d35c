//! Errors on gateway connections.

/// The text of an `-ERR` on a gateway. The receiver closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// A client or a server of a cluster has connected to the port for gateways: disconnected.
    #[error("attempted to connect to gateway port")]
    NoGateway,
    /// The acceptor, whose cluster has this name, accepts configured clusters only: disconnected.
    #[error("Connection to gateway {0:?} rejected")]
    Rejected(String),
    /// The dialed server is in another cluster: disconnected.
    #[error(
        "Connection from {ours:?} rejected, wanted to connect to {wanted:?}, this is {theirs:?}"
    )]
    WrongName {
        /// Name of the dialer's cluster.
        ours: String,
        /// Name of the cluster that it wanted to reach.
        wanted: String,
        /// Name of the cluster that it has reached.
        theirs: String,
    },
    /// The dialed port is not one for gateways: disconnected.
    #[error("Attempt to connect to gateway {0:?} using wrong port")]
    WrongPort(String),
    /// The filter of a line of interest is invalid: the acceptor closes the connection.
    #[error("Invalid Subscription")]
    InvalidSubscription,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_nats_server() {
        let wrong = GatewayError::WrongName {
            ours: "me".into(),
            wanted: "X".into(),
            theirs: "Y".into(),
        };
        for (error, expected) in [
            (
                GatewayError::NoGateway,
                "attempted to connect to gateway port",
            ),
            (
                GatewayError::Rejected("me".into()),
                "Connection to gateway \"me\" rejected",
            ),
            (
                wrong,
                "Connection from \"me\" rejected, wanted to connect to \"X\", this is \"Y\"",
            ),
            (
                GatewayError::WrongPort("X".into()),
                "Attempt to connect to gateway \"X\" using wrong port",
            ),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }
}
