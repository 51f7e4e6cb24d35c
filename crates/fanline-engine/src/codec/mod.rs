//! Encoding and decoding of protocols, one module per protocol.

pub mod compression;
pub mod gateway;
mod json;
pub mod leaf;
mod line;
pub mod mqtt;
pub(crate) mod nats;
pub mod proxy;
pub mod route;
pub mod s2;
pub mod websocket;
