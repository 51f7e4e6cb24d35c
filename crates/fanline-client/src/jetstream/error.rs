//! Errors of JetStream operations.

use std::fmt;

use serde_json::Value;

use crate::ClientError;

/// The error of an operation of [`JetStream`](super::JetStream).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JetStreamError {
    /// The connection failed, or there was no reply.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// JetStream returned an error. Numbers and texts are those of nats-server.
    #[error("{description} ({err_code})")]
    Api {
        /// Kind of the error, as an HTTP status.
        code: u16,
        /// Number of the error, for programs: 10059 means that the stream does not exist.
        err_code: u16,
        /// Description of the error, for people.
        description: String,
    },
    /// JetStream is not enabled on the server or for the account.
    #[error("JetStream is not enabled on this server or for this account")]
    NotEnabled,
    /// No stream stores the subject.
    #[error("no stream stores the subject")]
    NoStream,
    /// The name of a stream, consumer, bucket, or key is invalid.
    #[error("invalid {what} {name:?}: {reason}")]
    InvalidName {
        /// Kind of the name.
        what: &'static str,
        /// Name.
        name: String,
        /// Reason.
        reason: &'static str,
    },
    /// The bucket, key, or object does not exist.
    #[error("{what} {name:?} not found")]
    NotFound {
        /// Kind of the missing item.
        what: &'static str,
        /// Name.
        name: String,
    },
    /// The key already exists, with this revision.
    #[error("key {key:?} exists at revision {revision}")]
    KeyExists {
        /// Key.
        key: String,
        /// Revision.
        revision: u64,
    },
    /// The bytes of an object do not match its digest.
    #[error("the object is damaged: {0}")]
    Damaged(String),
    /// The server ended a pull request or transfer with this status.
    #[error("the server ended it: {0}")]
    Ended(String),
    /// A local file could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The server's reply is invalid.
    #[error("unexpected reply: {0}")]
    Unexpected(String),
}

/// `err_code` of a stream that does not exist.
const STREAM_NOT_FOUND: u16 = 10_059;
/// `err_code` of a message that does not exist.
const MESSAGE_NOT_FOUND: u16 = 10_037;
/// `err_code`s of a publish whose expected last sequence was wrong.
const WRONG_LAST_SEQUENCE: [u16; 2] = [10_071, 10_164];

impl JetStreamError {
    /// Returns the error for an invalid name. `what` is the kind of the name.
    pub(super) fn invalid_name(what: &'static str, name: &str, reason: &'static str) -> Self {
        JetStreamError::InvalidName {
            what,
            name: name.to_owned(),
            reason,
        }
    }

    /// Returns the number of the error, if the API returned it.
    pub fn err_code(&self) -> Option<u16> {
        match self {
            JetStreamError::Api { err_code, .. } => Some(*err_code),
            _ => None,
        }
    }

    /// Returns whether this is the error of a stream that does not exist.
    pub fn is_stream_not_found(&self) -> bool {
        self.err_code() == Some(STREAM_NOT_FOUND)
    }

    /// Returns whether this is the error of a message that does not exist.
    pub fn is_message_not_found(&self) -> bool {
        self.err_code() == Some(MESSAGE_NOT_FOUND)
    }

    /// Returns whether the expected last sequence was wrong, because another writer was faster.
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
