//! What must happen, by models that know the promises and nothing of the engine.

mod core;
mod mqtt;
mod streams;
mod subject;

pub(crate) use core::{Claim, CoreModel, Delivered};
pub(crate) use mqtt::MqttModel;
pub(crate) use streams::{ConsumerKind, STREAMS, Stored, StreamKind, StreamModel};
pub(crate) use subject::matches;
