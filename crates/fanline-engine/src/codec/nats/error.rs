//! What a client is told when something is wrong, and why a connection ended.

/// An `-ERR` text. Clients match on them, so they are nats-server's to the letter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Not the protocol: the connection is closed.
    #[error("Unknown Protocol Operation")]
    UnknownOperation,
    /// Bad credentials, or none where some are needed: closed.
    #[error("Authorization Violation")]
    Authorization,
    /// No CONNECT in time: closed.
    #[error("Authentication Timeout")]
    AuthenticationTimeout,
    /// What a user was let in by does not hold any more: closed.
    #[error("User Authentication Expired")]
    AuthenticationExpired,
    /// A user's account has taken back what it was let in by: closed.
    #[error("User Authentication Revoked")]
    AuthenticationRevoked,
    /// The account of a user is gone: closed.
    #[error("Account Authentication Expired")]
    AccountAuthenticationExpired,
    /// The server is full: closed.
    #[error("maximum connections exceeded")]
    ConnectionsExceeded,
    /// The account has all the connections that it may have: closed.
    #[error("maximum account active connections exceeded")]
    AccountConnectionsExceeded,
    /// The connection has all the subscriptions that it may have: it stays.
    #[error("maximum subscriptions exceeded")]
    SubscriptionsExceeded,
    /// A protocol line is too long: closed.
    #[error("maximum control line exceeded")]
    ControlLineExceeded,
    /// A message is too large: closed.
    #[error("Maximum Payload Violation")]
    PayloadExceeded,
    /// CONNECT asks for a protocol that is neither 0 nor 1: closed.
    #[error("invalid client protocol")]
    BadProtocolVersion,
    /// CONNECT wants `no_responders` without `headers`: closed.
    #[error("no responders requires headers support")]
    NoRespondersWithoutHeaders,
    /// A SUB whose subject is malformed: the connection stays.
    #[error("Invalid Subject")]
    InvalidSubject,
    /// A pedantic client published to a malformed or wildcard subject: it stays.
    #[error("Invalid Publish Subject")]
    InvalidPublishSubject,
    /// Publishing to a reserved subject: the connection stays.
    #[error("Permissions Violation for Publish to \"{0}\"")]
    PublishDenied(String),
    /// A reply subject that is reserved: the connection stays.
    #[error("Permissions Violation for Publish with Reply of \"{0}\"")]
    ReplyDenied(String),
    /// Subscribing is not allowed: the connection stays.
    #[error("Permissions Violation for Subscription to \"{0}\"")]
    SubscriptionDenied(String),
    /// The same with a queue group: the connection stays.
    #[error("Permissions Violation for Subscription to \"{0}\" using queue \"{1}\"")]
    QueueSubscriptionDenied(String, String),
    /// A filter has more tokens than it may have: the connection stays.
    #[error("Permissions Violation for Subscription to \"{0}\", too many tokens")]
    TooManyTokens(String),
    /// A subscription is not allowed any more: it is gone, the connection stays.
    #[error("{0} (sid \"{1}\")")]
    SubscriptionDropped(String, String),
    /// Pings were not answered: closed.
    #[error("Stale Connection")]
    Stale,
}

/// Why a connection was closed, in the words of nats-server's monitoring.
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
    /// Whether what waits for the peer is still worth writing before the connection is closed.
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

    /// Whether the peer was dropped for reading too slowly.
    pub fn is_slow_consumer(self) -> bool {
        matches!(
            self,
            CloseReason::SlowConsumerPendingBytes | CloseReason::SlowConsumerWriteDeadline
        )
    }
}
