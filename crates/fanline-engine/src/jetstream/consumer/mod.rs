//! Consumers: each delivers matching records of a stream at its own pace.
//!
//! [`Consumers`] contains all consumers of one stream. The other files, by event:
//!
//! - a record is stored or removed: `groups`; a record is delivered: `serve`, and `run` for the ones that
//!   follow it, with `requests` and `request` for pull consumers, `push` for push consumers, and `lanes` if subjects have limits or take turns;
//! - an acknowledgement arrives or is overdue: `ack`, `acknowledge`, and `pending`;
//! - a timer is due: `due`; administration: `admin`, `pin`; messages to clients: `status`, `event`, `info`;
//!   restart: `state`.

mod ack;
mod acknowledge;
mod admin;
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
mod run;
mod serve;
mod set;
mod shared;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod write;

pub use ack::AckSubject;
pub(crate) use ack::AckTokens;
pub use info::{ConsumerInfo, PriorityGroupInfo, SequenceInfo};
pub use machine::{Consumer, Position};
pub use set::Consumers;
pub use shared::Context;
pub use state::StateError;

use crate::store::StoreError;

/// Index of a consumer in its stream. It may be reused after the consumer is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(usize);

/// Reason for which a consumer could not be recovered.
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
