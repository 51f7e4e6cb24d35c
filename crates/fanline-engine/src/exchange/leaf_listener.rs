//! The settings of the listener for leaf connections.

use std::sync::Arc;

use crate::auth::Access;
use crate::codec::leaf::{LeafCompression, Port};
use crate::codec::nats::info::TlsTold;

/// The settings of the listener for leaf connections.
#[derive(Clone, Debug, Default)]
pub struct LeafListener {
    /// The address that it listens on.
    pub host: String,
    /// The address that it listens on.
    pub port: u16,
    /// The URLs that are announced to leaf nodes, as `host:port`.
    pub urls: Vec<String>,
    /// What INFO says of TLS.
    pub tls: TlsTold,
    /// The users that may connect as leaf nodes; `None` is those that may connect as clients. Accounts are found by
    /// name.
    pub access: Option<Arc<Access>>,
    /// The account of leaf nodes without credentials; `None` is `$G`.
    pub account: Option<String>,
    /// Whether all leaf nodes have to come through a trusted proxy.
    pub needs_proxy: bool,
    /// The oldest version that is admitted.
    pub min_version: Option<String>,
    /// Whether the interest of one leaf node is not announced to others.
    pub isolates: bool,
    /// The compression of connections.
    pub compression: LeafCompression,
}

impl LeafListener {
    /// Returns what INFO says of the listener.
    pub(crate) fn port(&self) -> Port<'_> {
        Port {
            host: &self.host,
            port: self.port,
            urls: &self.urls,
            tls: self.tls,
            compression: self.compression.name(),
        }
    }
}
