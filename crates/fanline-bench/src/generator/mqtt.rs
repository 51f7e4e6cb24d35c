//! Clients of MQTT 3.1.1, which all measured servers support.

pub(crate) mod connection;
pub(crate) mod flow;
pub(crate) mod incoming;
pub(crate) mod packets;

pub(crate) use connection::Connection;
