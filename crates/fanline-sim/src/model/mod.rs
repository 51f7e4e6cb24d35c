//! What must happen, by models that know the promises and nothing of the engine.

mod core;
mod subject;

pub(crate) use core::{Claim, CoreModel, Delivered, SubscriptionKey};
pub(crate) use subject::matches;
