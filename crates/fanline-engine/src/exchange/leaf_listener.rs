//! The settings of the listener for leaf connections.

use std::sync::Arc;

use crate::auth::Access;
use crate::codec::compression::LinkCompression;
use crate::codec::leaf::Port;
use crate::codec::nats::info::TlsInfo;

/// The settings of the listener for leaf connections.
#[derive(Clone, Debug, Default)]
pub struct LeafListener {
    /// The host name or address that the listener binds.
    pub host: String,
    /// The port that the listener binds.
    pub port: u16,
    /// The URLs in INFO, as `host:port`.
    pub urls: Vec<String>,
    /// The TLS fields of INFO.
    pub tls: TlsInfo,
    /// The users that may connect as leaf nodes; `None` means the users of clients. An account is identified
    /// by its name.
    pub access: Option<Arc<Access>>,
    /// The account of leaf nodes without credentials; `None` means `$G`.
    pub account: Option<String>,
    /// Whether all leaf nodes must connect through a trusted proxy.
    pub needs_proxy: bool,
    /// The oldest version that may connect.
    pub min_version: Option<String>,
    /// Whether the interest of each leaf node is hidden from the other leaf nodes.
    pub isolates: bool,
    /// Compression of the connections.
    pub compression: LinkCompression,
}

impl LeafListener {
    /// Returns the INFO fields of the listener.
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
