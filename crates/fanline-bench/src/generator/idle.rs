//! Idle connections.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::connection::Connection;

/// Opens `count` connections. They complete the handshake, have no subscription, and then send nothing.
pub(crate) fn open(address: SocketAddr, count: usize) -> Result<Vec<Connection>> {
    (0..count)
        .map(|index| {
            Connection::open(address).with_context(|| format!("at connection {index} of {count}"))
        })
        .collect()
}
