//! The settings of the listener for leaf connections.

use std::sync::Arc;

use crate::auth::Access;
use crate::codec::leaf::{LeafCompression, Port};
use crate::codec::nats::info::TlsTold;

/// The settings of the listener for leaf connections.
#[derive(Clone, Debug, Default)]
pub struct LeafListener {
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// What leafs are told of where it is, as `host:port`.
    pub urls: Vec<String>,
    /// What leafs have to know of TLS.
    pub tls: TlsTold,
    /// Who may come as a leaf, if not those who may come as clients. Accounts are found by name.
    pub access: Option<Arc<Access>>,
    /// The account of those who need not say who they are; `$G` when `None`.
    pub account: Option<String>,
    /// All must come through a proxy that is trusted.
    pub needs_proxy: bool,
    /// The oldest version that may come.
    pub min_version: Option<String>,
    /// What one leaf wants is not told to others.
    pub isolates: bool,
    /// Whether links are compressed.
    pub compression: LeafCompression,
}

impl LeafListener {
    /// What INFO says of the listener.
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
