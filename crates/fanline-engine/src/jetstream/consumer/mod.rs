//! Consumers: each is given the records of a stream that it wants, at its own pace.
//!
//! [`Consumers`] holds all those of one stream. Files beside it, by what happens:
//!
//! - a record comes or goes: `groups`; it goes out: `serve`, over `requests` and `request` when
//!   pulled, `push` when pushed, by `lanes` where subjects are told apart;
//! - an acknowledgement comes or does not: `ack`, `done`, over `pending`;
//! - time passes: `due`; somebody gives orders: `admin`, `pin`; others are told: `status`, `event`,
//!   `info`; it must survive a restart: `state`.

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

pub use ack::AckTopic;
pub use info::{ConsumerInfo, PriorityGroupInfo, SequenceInfo};
pub use machine::{Consumer, Position};
pub use set::Consumers;
pub use shared::Context;
pub use state::StateError;

use crate::store::StoreError;

/// A consumer, within its stream. After it was deleted another may have its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(usize);

/// Why a consumer was not taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Its state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
