//! Models of what clients may see. They know what the server promises, and do not use the engine.

mod core;
mod mqtt;
mod mqtt_retained;
mod streams;
mod subject;

pub(crate) use core::{Claim, CoreModel, Delivered};
pub(crate) use mqtt::MqttModel;
pub(crate) use mqtt_retained::RetainedModel;
pub(crate) use streams::{ConsumerKind, STREAMS, Stored, StreamKind, StreamModel};
pub(crate) use subject::matches;
