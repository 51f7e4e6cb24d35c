//! Errors of the client.

use std::io;

/// The error of an operation of a [`Client`](super::Client).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address of a server is invalid.
    #[error("invalid server address \"{address}\": {reason}")]
    InvalidAddress {
        /// Address, without credentials.
        address: String,
        /// Reason.
        reason: &'static str,
    },
    /// The key or credentials file is invalid.
    #[error("invalid credentials: {0}")]
    InvalidCredentials(&'static str),
    /// The connection could not be opened.
    #[error("cannot connect to {address}: {source}")]
    Unreachable {
        /// Address that was tried last.
        address: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The server requires TLS, which [`Client::over`](super::Client::over) does not support.
    #[error("the server requires TLS, which is not supported over this stream")]
    TlsRequired,
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server refused the connection with this text.
    #[error("the server refused the connection: {0}")]
    Refused(String),
    /// The subject, filter, or queue name is invalid.
    #[error("invalid subject {subject:?}: {reason}")]
    InvalidSubject {
        /// Subject, filter, or queue name.
        subject: String,
        /// Reason.
        reason: &'static str,
    },
    /// The header is invalid.
    #[error("invalid header {name:?}: {reason}")]
    InvalidHeader {
        /// Name of the header.
        name: String,
        /// Reason.
        reason: &'static str,
    },
    /// The message has headers, which the server does not support.
    #[error("the server does not support headers")]
    HeadersUnsupported,
    /// Headers and payload exceed the server's limit. Nothing was sent.
    #[error("the message has {bytes} bytes, the server accepts at most {bytes_max}")]
    PayloadTooLarge {
        /// Header and payload bytes of the message.
        bytes: usize,
        /// The server's `max_payload`.
        bytes_max: usize,
    },
    /// Subject and reply exceed the server's limit for a line. The client checks this only for a server in
    /// the same process, because other servers do not announce that limit.
    #[error("the protocol line has {bytes} bytes, the server accepts at most {bytes_max}")]
    LineTooLong {
        /// Length of the line.
        bytes: usize,
        /// The server's limit.
        bytes_max: usize,
    },
    /// The subject of a request has no subscribers.
    #[error("no responders: the subject has no subscribers")]
    NoResponders,
    /// No reply arrived in time. The server or a responder may have received the message nevertheless.
    #[error("no reply within the timeout")]
    TimedOut,
    /// The connection is closed.
    #[error("disconnected: {0}")]
    Disconnected(Disconnect),
}

/// The reason why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Disconnect {
    /// This client closed the connection: it was drained, or all its handles were dropped.
    #[error("closed by this client")]
    Closed,
    /// The server closed the connection without an error.
    #[error("the server closed the connection")]
    ServerClosed,
    /// The server closed the connection after this `-ERR`.
    #[error("the server closed the connection: {0}")]
    ServerError(String),
    /// The byte stream failed.
    #[error("{0}")]
    Io(String),
    /// The server violated the NATS protocol.
    #[error("the server sent something unexpected: {0}")]
    Protocol(&'static str),
    /// Several consecutive pings had no reply.
    #[error("the server no longer responds")]
    Stale,
}

impl From<io::Error> for Disconnect {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A server that stops may reset the connection before its last bytes arrive.
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Disconnect::ServerClosed,
            _ => Disconnect::Io(error.to_string()),
        }
    }
}
