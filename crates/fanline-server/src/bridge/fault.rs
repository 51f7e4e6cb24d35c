//! What can go wrong with a bridge: at once, for who asks, and later, for who listens.

use fanline::Subject;
use tracing::warn;

use crate::client::jetstream::JetStreamError;
use crate::client::{ClientError, Disconnect};

/// Why something could not be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The server has stopped, does not admit these credentials, or cannot understand a subject.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server does not allow these credentials to subscribe to it, in its own words.
    #[error("the server refused: {0}")]
    NotAllowed(String),
    /// There is no such stream, or no JetStream.
    #[error(transparent)]
    JetStream(#[from] JetStreamError),
    /// It was asked for inside an observer that the bridge calls, which cannot wait for the server:
    /// ask on another thread.
    #[error("a bridge cannot be asked for this inside an observer that it calls")]
    InsideObserver,
    /// A thread could not be started.
    #[error("the bridge's thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// What went wrong later. A message or a value that has one is left out; what follows goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A message could not be decoded.
    #[error("a message on {subject:?} could not be decoded: {reason}")]
    Decode {
        /// Its subject.
        subject: String,
        /// What the codec said.
        reason: String,
    },
    /// A value could not be encoded, or not be sent as it is: too large, or with headers that the
    /// server does not take.
    #[error("a value for {subject:?} could not be published: {reason}")]
    Encode {
        /// Its subject, or the filter that its source is bound to.
        subject: String,
        /// What the codec or the server's limits say.
        reason: String,
    },
    /// A value was to go to a subject that its source is not bound to, or that is none.
    #[error(
        "a source that is bound to {bound_to:?} cannot publish to {subject:?}{}",
        hint(subject)
    )]
    Subject {
        /// The subject.
        subject: String,
        /// What its source is bound to.
        bound_to: String,
    },
    /// The server took less than was published. Told once until it takes more again.
    #[error("values for {bound_to:?} were left out, because the server takes less")]
    Full {
        /// What the source is bound to.
        bound_to: String,
    },
    /// A consumer took less than arrived; so many messages were dropped since the last fault.
    #[error("{messages} messages on {filter:?} were dropped, because they were not taken")]
    Dropped {
        /// What was subscribed to.
        filter: String,
        /// How many.
        messages: u64,
    },
    /// Reading a stream has ended.
    #[error("the stream {stream:?} cannot be read any more: {reason}")]
    Stream {
        /// Its name.
        stream: String,
        /// Why.
        reason: String,
    },
    /// The server said this, for instance that a publish is not allowed.
    #[error("the server said: {0}")]
    Server(String),
    /// The bridge is closed; nothing follows.
    #[error("the bridge is closed: {0}")]
    Closed(Disconnect),
}

/// What is missing where a codec says of no value where it goes.
fn hint(subject: &str) -> &'static str {
    match subject {
        "" => ": give each value a subject, by `codec.to(|value| …)`",
        _ => "",
    }
}

/// Where faults are told. Those that nobody listens to are logged.
pub(super) fn tell(faults: &Subject<Fault>, fault: Fault) {
    if faults.has_observers() {
        faults.next(fault);
    } else if !matches!(fault, Fault::Closed(Disconnect::Closed)) {
        warn!("bridge: {fault}");
    }
}
