//! What can go wrong between a client and JetStream.

use std::fmt;

use serde_json::Value;

use crate::ClientError;

/// Why an operation of [`JetStream`](super::JetStream) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JetStreamError {
    /// The connection failed, or nobody answered.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// JetStream refused, with nats-server's numbers and words.
    #[error("{description} ({err_code})")]
    Api {
        /// What HTTP would call it: 400, 404, 503.
        code: u16,
        /// Which error it is, for programs: 10059 is a stream that is not there.
        err_code: u16,
        /// Which error it is, for people.
        description: String,
    },
    /// Nobody serves the API: the server, or the account, has no JetStream.
    #[error("JetStream is not enabled on this server or for this account")]
    NotEnabled,
    /// Nothing answers to this subject, which no stream keeps.
    #[error("no stream keeps the subject")]
    NoStream,
    /// A stream, a consumer, a bucket or a key has a name that cannot be used.
    #[error("invalid {what} {name:?}: {reason}")]
    InvalidName {
        /// Of what it was to be the name.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no such bucket, key or object.
    #[error("{what} {name:?} not found")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Under which name.
        name: String,
    },
    /// The key is there already, at this revision.
    #[error("key {key:?} exists at revision {revision}")]
    KeyExists {
        /// The key.
        key: String,
        /// Its revision.
        revision: u64,
    },
    /// An object's bytes are not those that were put there.
    #[error("the object is damaged: {0}")]
    Damaged(String),
    /// A status in place of a message ended the transfer.
    #[error("the server ended it: {0}")]
    Ended(String),
    /// A file of this side, or what was to be sent, could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The server said something that cannot be understood.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
}

/// `err_code` of a stream that is not there.
const STREAM_NOT_FOUND: u16 = 10_059;
/// `err_code` of a record that is not there.
const MESSAGE_NOT_FOUND: u16 = 10_037;
/// `err_code`s of a publish that expected another last sequence.
const WRONG_LAST_SEQUENCE: [u16; 2] = [10_071, 10_164];

impl JetStreamError {
    /// A name that cannot be that of `what`.
    pub(super) fn invalid_name(what: &'static str, name: &str, reason: &'static str) -> Self {
        JetStreamError::InvalidName {
            what,
            name: name.to_owned(),
            reason,
        }
    }

    /// The number of the API's error, if it is one.
    pub fn err_code(&self) -> Option<u16> {
        match self {
            JetStreamError::Api { err_code, .. } => Some(*err_code),
            _ => None,
        }
    }

    /// Whether the stream is not there.
    pub fn is_stream_not_found(&self) -> bool {
        self.err_code() == Some(STREAM_NOT_FOUND)
    }

    /// Whether the record is not there.
    pub fn is_message_not_found(&self) -> bool {
        self.err_code() == Some(MESSAGE_NOT_FOUND)
    }

    /// Whether somebody else has written in between.
    pub fn is_wrong_last_sequence(&self) -> bool {
        self.err_code()
            .is_some_and(|code| WRONG_LAST_SEQUENCE.contains(&code))
    }

    pub(super) fn from_json(error: &Value) -> Self {
        let number = |name| {
            let number = error.get(name).and_then(Value::as_u64);
            number.and_then(|n| u16::try_from(n).ok()).unwrap_or(0)
        };
        let description = error.get("description").and_then(Value::as_str);
        JetStreamError::Api {
            code: number("code"),
            err_code: number("err_code"),
            description: description.unwrap_or("unknown error").to_owned(),
        }
    }

    pub(super) fn unexpected(why: impl fmt::Display) -> Self {
        JetStreamError::Unexpected(why.to_string())
    }

    pub(super) fn not_found(what: &'static str, name: &str) -> Self {
        JetStreamError::NotFound {
            what,
            name: name.to_owned(),
        }
    }
}
