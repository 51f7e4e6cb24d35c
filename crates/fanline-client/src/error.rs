//! What can go wrong for a client.

use std::io;

/// Why an operation of a [`Client`](super::Client) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server's address cannot be understood.
    #[error("cannot understand the server address \"{address}\": {reason}")]
    InvalidAddress {
        /// The address as given, without credentials.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A key or a credentials file that cannot be used.
    #[error("invalid credentials: {0}")]
    InvalidCredentials(&'static str),
    /// No connection could be opened.
    #[error("cannot connect to {address}: {source}")]
    Unreachable {
        /// The address that was tried last.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server wants TLS, which is not spoken over a stream that was handed in.
    #[error("the server requires TLS, which is not spoken over this stream")]
    TlsRequired,
    /// TLS could not begin.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server refused the connection, with these words.
    #[error("the server refused the connection: {0}")]
    Refused(String),
    /// A topic, filter or queue name that cannot be sent.
    #[error("invalid subject {topic:?}: {reason}")]
    InvalidTopic {
        /// What was given.
        topic: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A header that cannot be sent.
    #[error("invalid header {name:?}: {reason}")]
    InvalidHeader {
        /// The header's name.
        name: String,
        /// What is wrong with the name or the value.
        reason: &'static str,
    },
    /// Headers were given, and the server does not take any.
    #[error("the server does not support headers")]
    HeadersUnsupported,
    /// Headers and payload together are larger than the server takes. Nothing was sent.
    #[error("the message has {bytes} bytes, the server takes at most {bytes_max}")]
    PayloadTooLarge {
        /// Header and payload bytes of the message.
        bytes: usize,
        /// The server's `max_payload`.
        bytes_max: usize,
    },
    /// Subject and reply together are longer than this server reads: known of one in this process.
    #[error("the subject takes a line of {bytes} bytes, the server reads at most {bytes_max}")]
    LineTooLong {
        /// How long the line would be.
        bytes: usize,
        /// The server's limit.
        bytes_max: usize,
    },
    /// Nobody listens to the topic of a request.
    #[error("no responders: nobody is subscribed to the subject")]
    NoResponders,
    /// No answer came in time. The message may still have arrived.
    #[error("no answer within the timeout")]
    TimedOut,
    /// The connection is gone.
    #[error("disconnected: {0}")]
    Disconnected(Disconnect),
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Disconnect {
    /// This side closed it: drained, or every handle was dropped.
    #[error("closed by this client")]
    Closed,
    /// The server closed it without a word.
    #[error("the server closed the connection")]
    ServerClosed,
    /// The server closed it after this `-ERR`.
    #[error("the server closed the connection: {0}")]
    ServerError(String),
    /// The stream failed.
    #[error("{0}")]
    Io(String),
    /// The server sent something that is not the NATS protocol.
    #[error("the server sent something unexpected: {0}")]
    Protocol(&'static str),
    /// Several pings in a row went unanswered.
    #[error("the server no longer answers")]
    Stale,
}

impl From<io::Error> for Disconnect {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Whether a dying server's last bytes arrive before the reset is a matter of luck.
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Disconnect::ServerClosed,
            _ => Disconnect::Io(error.to_string()),
        }
    }
}
