//! Bytes to verbs and back, one module a protocol.

pub mod leaf;
pub mod mqtt;
pub(crate) mod nats;
pub mod proxy;
pub mod s2;
pub mod websocket;
