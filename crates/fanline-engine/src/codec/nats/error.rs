//! Errors sent to clients, and reasons for the end of a connection.

/// The text of an `-ERR`. The texts are exactly nats-server's, because clients compare them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Not a NATS verb: disconnected.
    #[error("Unknown Protocol Operation")]
    UnknownOperation,
    /// Invalid or missing credentials: disconnected.
    #[error("Authorization Violation")]
    Authorization,
    /// No CONNECT in time: disconnected.
    #[error("Authentication Timeout")]
    AuthenticationTimeout,
    /// The client's credentials expired: disconnected.
    #[error("User Authentication Expired")]
    AuthenticationExpired,
    /// The account revoked the client's credentials: disconnected.
    #[error("User Authentication Revoked")]
    AuthenticationRevoked,
    /// The client's account was removed or has expired: disconnected.
    #[error("Account Authentication Expired")]
    AccountAuthenticationExpired,
    /// The server has reached its connection limit: disconnected.
    #[error("maximum connections exceeded")]
    ConnectionsExceeded,
    /// The account has reached its connection limit: disconnected.
    #[error("maximum account active connections exceeded")]
    AccountConnectionsExceeded,
    /// The connection has reached its subscription limit: stays connected.
    #[error("maximum subscriptions exceeded")]
    SubscriptionsExceeded,
    /// A protocol line is too long: disconnected.
    #[error("maximum control line exceeded")]
    ControlLineExceeded,
    /// A message is too large: disconnected.
    #[error("Maximum Payload Violation")]
    PayloadExceeded,
    /// CONNECT requests a protocol other than 0 and 1: disconnected.
    #[error("invalid client protocol")]
    BadProtocolVersion,
    /// CONNECT requests `no_responders` without `headers`: disconnected.
    #[error("no responders requires headers support")]
    NoRespondersWithoutHeaders,
    /// The subject of a SUB is malformed: stays connected.
    #[error("Invalid Subject")]
    InvalidSubject,
    /// A pedantic client published to a malformed or wildcard subject: stays connected.
    #[error("Invalid Publish Subject")]
    InvalidPublishSubject,
    /// Publishing to the subject is not permitted: stays connected.
    #[error("Permissions Violation for Publish to \"{0}\"")]
    PublishDenied(String),
    /// The reply subject is not permitted: stays connected.
    #[error("Permissions Violation for Publish with Reply of \"{0}\"")]
    ReplyDenied(String),
    /// Subscribing is not permitted: stays connected.
    #[error("Permissions Violation for Subscription to \"{0}\"")]
    SubscriptionDenied(String),
    /// Subscribing with the queue group is not permitted: stays connected.
    #[error("Permissions Violation for Subscription to \"{0}\" using queue \"{1}\"")]
    QueueSubscriptionDenied(String, String),
    /// A filter has too many tokens: stays connected.
    #[error("Permissions Violation for Subscription to \"{0}\", too many tokens")]
    TooManyTokens(String),
    /// A subscription is no longer permitted and was removed: stays connected.
    #[error("{0} (sid \"{1}\")")]
    SubscriptionDropped(String, String),
    /// Pings were not answered: disconnected.
    #[error("Stale Connection")]
    Stale,
}

/// The reason for the end of a connection, in the words of nats-server's monitoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum CloseReason {
    #[error("Client Closed")]
    ClientClosed,
    #[error("Authentication Timeout")]
    AuthenticationTimeout,
    #[error("Authentication Expired")]
    AuthenticationExpired,
    #[error("Authentication Failure")]
    AuthenticationFailure,
    #[error("Credentials Revoked")]
    CredentialsRevoked,
    #[error("Proxy Required")]
    ProxyRequired,
    #[error("Proxy Not Trusted")]
    ProxyNotTrusted,
    #[error("Slow Consumer (Pending Bytes)")]
    SlowConsumerPendingBytes,
    #[error("Slow Consumer (Write Deadline)")]
    SlowConsumerWriteDeadline,
    #[error("Write Error")]
    WriteError,
    #[error("Read Error")]
    ReadError,
    #[error("Parse Error")]
    ParseError,
    #[error("Stale Connection")]
    StaleConnection,
    #[error("Protocol Violation")]
    ProtocolViolation,
    #[error("Bad Client Protocol Version")]
    BadClientProtocolVersion,
    #[error("Maximum Connections Exceeded")]
    MaximumConnectionsExceeded,
    #[error("Maximum Account Connections Exceeded")]
    MaximumAccountConnectionsExceeded,
    #[error("Maximum Message Payload Exceeded")]
    MaximumPayloadExceeded,
    #[error("Maximum Control Line Exceeded")]
    MaximumControlLineExceeded,
    #[error("Incorrect Port")]
    WrongPort,
    #[error("Missing Account")]
    MissingAccount,
    #[error("Duplicate Remote LeafNode Connection")]
    DuplicateRemoteLeafnode,
    #[error("Duplicate Route")]
    DuplicateRoute,
    #[error("Route Removed")]
    RouteRemoved,
    #[error("Duplicate Server Name")]
    DuplicateServerName,
    #[error("Cluster Name Conflict")]
    ClusterNameConflict,
    #[error("Wrong Gateway")]
    WrongGateway,
    #[error("Minimum Version Required")]
    MinimumVersionRequired,
    #[error("Cluster Names Identical")]
    ClusterNamesIdentical,
    #[error("No Responders Requires Headers")]
    NoRespondersRequiresHeaders,
    #[error("Duplicate Client ID")]
    DuplicateClientId,
    #[error("Kicked")]
    Kicked,
    #[error("Server Shutdown")]
    ServerShutdown,
    #[error("Internal Error")]
    InternalError,
}

impl CloseReason {
    /// Returns whether pending output is written before the connection is closed.
    pub fn flushes(self) -> bool {
        !matches!(
            self,
            CloseReason::SlowConsumerPendingBytes
                | CloseReason::SlowConsumerWriteDeadline
                | CloseReason::WriteError
                | CloseReason::ReadError
                | CloseReason::InternalError
        )
    }

    /// Returns whether the peer was disconnected as a slow consumer.
    pub fn is_slow_consumer(self) -> bool {
        matches!(
            self,
            CloseReason::SlowConsumerPendingBytes | CloseReason::SlowConsumerWriteDeadline
        )
    }
}
