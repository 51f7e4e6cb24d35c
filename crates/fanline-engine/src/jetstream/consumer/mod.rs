//! Consumers: each delivers matching records of a stream at its own pace.
//!
//! [`Consumers`] contains all consumers of one stream. Other files by event:
//!
//! - a record is stored or removed: `groups`; it is delivered: `serve`, for pull consumers with `requests`
//!   and `request`, for push consumers with `push`; `lanes` where subjects have limits or take turns;
//! - an acknowledgement arrives or is missing: `ack`, `done`, with `pending`;
//! - time passes: `due`; administration: `admin`, `pin`; messages to clients: `status`, `event`, `info`;
//!   restart: `state`.

mod ack;
mod admin;
mod done;
mod due;
mod event;
mod groups;
mod info;
mod lanes;
mod machine;
mod pending;
mod pin;
mod pull;
mod push;
mod request;
mod requests;
mod rules;
mod serve;
mod set;
mod shared;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod write;

pub use ack::AckSubject;
pub use info::{ConsumerInfo, PriorityGroupInfo, SequenceInfo};
pub use machine::{Consumer, Position};
pub use set::Consumers;
pub use shared::Context;
pub use state::StateError;

use crate::store::StoreError;

/// Index of a consumer in its stream; reused after a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(usize);

/// Why a consumer could not be recovered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The saved state is invalid.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
