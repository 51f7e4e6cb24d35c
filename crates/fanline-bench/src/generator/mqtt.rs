//! Clients of MQTT 3.1.1, which all measured servers support.

pub(crate) mod connection;
pub(crate) mod flow;
pub(crate) mod incoming;
pub(crate) mod packets;

use std::net::SocketAddr;

use anyhow::{Context, Result};

pub(crate) use connection::Connection;

/// Opens `count` connections. They complete the handshake, have no subscription, and then send nothing.
pub(crate) fn open_idle(address: SocketAddr, count: usize) -> Result<Vec<Connection>> {
    let open = |index| {
        Connection::open(address, &format!("idle{index}"), true)
            .with_context(|| format!("at connection {index} of {count}"))
    };
    (0..count).map(open).collect()
}
