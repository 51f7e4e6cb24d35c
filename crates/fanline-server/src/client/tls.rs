//! TLS for the client.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, DEFAULT_VERSIONS};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::ServerAddress;
use super::error::ClientError;
use crate::tls::{authorities, read_chain_and_key};

/// How a client sets TLS up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsSettings {
    /// It is spoken, whatever the server says.
    pub(super) is_wanted: bool,
    /// It begins before INFO.
    pub(super) is_first: bool,
    /// The authorities that servers must come from; the system's when `None`.
    pub(super) ca_file: Option<PathBuf>,
    /// The client's own certificate and its key.
    pub(super) certificate: Option<(PathBuf, PathBuf)>,
}

/// Shakes hands with the server of this address.
pub(super) async fn begin(
    stream: TcpStream,
    address: &ServerAddress,
    settings: &TlsSettings,
) -> Result<TlsStream<TcpStream>, ClientError> {
    let failed = |what: String| ClientError::Tls(what);
    let name = ServerName::try_from(address.host.clone())
        .map_err(|error| failed(format!("{}: {error}", address.host)))?;
    let connector = TlsConnector::from(Arc::new(config(settings)?));
    let shaking = connector.connect(name, stream).await;
    shaking.map_err(|error| failed(error.to_string()))
}

fn config(settings: &TlsSettings) -> Result<ClientConfig, ClientError> {
    let failed = |what: &dyn std::fmt::Display| ClientError::Tls(what.to_string());
    let roots = authorities(settings.ca_file.as_deref()).map_err(|error| failed(&error))?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots);
    match &settings.certificate {
        None => Ok(config.with_no_client_auth()),
        Some((chain, key)) => {
            let (chain, key) = read_chain_and_key(chain, key).map_err(|error| failed(&error))?;
            let config = config.with_client_auth_cert(chain, key);
            config.map_err(|error| failed(&error))
        }
    }
}
