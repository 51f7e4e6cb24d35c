//! TLS of routes, on which each side verifies the other's certificate.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Tls, TlsError, client_config};
use crate::options::TlsOptions;

/// TLS of new routes.
#[derive(Debug)]
pub(crate) struct RouteTls {
    pub(crate) accepted: Tls,
    dialed: Arc<ClientConfig>,
}

impl RouteTls {
    /// Reads the files. Both directions use the same certificate and authorities.
    pub(super) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        Ok(RouteTls {
            accepted: Tls::new(options)?,
            dialed: Arc::new(client_config(options)?),
        })
    }

    /// Performs the handshake with a server that this one has dialed. The server's certificate must be for
    /// `host`, and pinned if there are pinned certificates.
    pub(crate) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|e| format!("{host}: {e}"))?;
        let connector = TlsConnector::from(Arc::clone(&self.dialed));
        let time = self.accepted.options().timeout;
        let shaken = timeout(time, connector.connect(name, stream)).await;
        let shaken = shaken.map_err(|_| "timeout")?.map_err(|e| e.to_string())?;
        let (_, session) = shaken.get_ref();
        self.accepted.peer(session, true)?;
        Ok(shaken)
    }
}
