//! Errors of a bridge: errors that a call returns, and later faults.

use fanline::Subject;
use tracing::warn;

use crate::client::jetstream::JetStreamError;
use crate::client::{ClientError, Disconnect};

/// The reason why a binding failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The server has stopped, refused the credentials, or rejected a subject.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The credentials do not permit the subscription. Contains the server's error text.
    #[error("the server refused: {0}")]
    NotAllowed(String),
    /// The stream or JetStream does not exist.
    #[error(transparent)]
    JetStream(#[from] JetStreamError),
    /// The call was made inside an observer on the bridge's thread, which cannot wait for the server. Make
    /// the call on another thread.
    #[error("a bridge cannot be asked for this inside an observer that it calls")]
    InsideObserver,
    /// A thread could not be started.
    #[error("the bridge's thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// An error that occurs while a binding exists. The message or value is skipped, and the binding continues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A message could not be decoded.
    #[error("a message on {subject:?} could not be decoded: {reason}")]
    Decode {
        /// The message's subject.
        subject: String,
        /// The codec's error.
        reason: String,
    },
    /// A value could not be encoded. Or it could not be sent, because it is too large or has headers that the
    /// server does not support.
    #[error("a value for {subject:?} could not be published: {reason}")]
    Encode {
        /// The value's subject, or the filter that its source is bound to.
        subject: String,
        /// The error of the codec or of the limit.
        reason: String,
    },
    /// A value has an invalid subject, or a subject that does not match the binding of its source.
    #[error(
        "a source that is bound to {bound_to:?} cannot publish to {subject:?}{}",
        hint(subject)
    )]
    Subject {
        /// The value's subject.
        subject: String,
        /// The subject or filter that its source is bound to.
        bound_to: String,
    },
    /// The server accepted fewer values than were published, so some were skipped. A binding reports this
    /// fault for the first skipped value, and again only after the server has accepted values in the
    /// meantime.
    #[error("values for {bound_to:?} were left out, because the server takes less")]
    Full {
        /// The subject or filter that the source is bound to.
        bound_to: String,
    },
    /// A consumer read messages more slowly than they arrived, so some were dropped.
    #[error("{messages} messages on {filter:?} were dropped, because they were not taken")]
    Dropped {
        /// The subscription's filter.
        filter: String,
        /// The number of messages dropped since the last fault.
        messages: u64,
    },
    /// Reading a stream has ended.
    #[error("the stream {stream:?} cannot be read any more: {reason}")]
    Stream {
        /// The stream's name.
        stream: String,
        /// The reason.
        reason: String,
    },
    /// An error from the server, for instance that a publish is not permitted.
    #[error("the server said: {0}")]
    Server(String),
    /// The bridge is closed. No faults follow.
    #[error("the bridge is closed: {0}")]
    Closed(Disconnect),
}

/// Returns a hint if the codec has set no subject.
fn hint(subject: &str) -> &'static str {
    match subject {
        "" => ": give each value a subject, by `codec.to(|value| …)`",
        _ => "",
    }
}

/// Reports a fault. Logs it if nothing observes faults.
pub(super) fn report(faults: &Subject<Fault>, fault: Fault) {
    if faults.has_observers() {
        faults.next(fault);
    } else if !matches!(fault, Fault::Closed(Disconnect::Closed)) {
        warn!("bridge: {fault}");
    }
}
