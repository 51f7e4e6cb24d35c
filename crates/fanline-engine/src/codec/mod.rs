//! Encoding and decoding of protocols, one module per protocol.

pub mod leaf;
pub mod mqtt;
pub(crate) mod nats;
pub mod proxy;
pub mod s2;
pub mod websocket;
