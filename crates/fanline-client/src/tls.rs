//! TLS of the client.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, DEFAULT_VERSIONS, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::ServerAddress;
use super::error::ClientError;

/// The TLS options of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsSettings {
    /// Whether the client requires TLS, even if the server does not.
    pub(super) is_wanted: bool,
    /// Whether TLS starts before INFO.
    pub(super) is_first: bool,
    /// PEM file of the authorities that may sign server certificates. With `None`, the system's authorities
    /// are used.
    pub(super) ca_file: Option<PathBuf>,
    /// PEM files of the client's certificate and its key.
    pub(super) certificate: Option<(PathBuf, PathBuf)>,
}

/// Performs the TLS handshake with the server of this address.
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
    let failed = |error: rustls::Error| ClientError::Tls(error.to_string());
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(failed)?
        .with_root_certificates(authorities(settings.ca_file.as_deref())?);
    match &settings.certificate {
        None => Ok(config.with_no_client_auth()),
        Some((chain, key)) => {
            let chain = certificates(chain)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
            config.with_client_auth_cert(chain, key).map_err(failed)
        }
    }
}

/// Reads the certificate authorities from a PEM file. Without a file, returns those that the system trusts.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| unusable(path, &error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
}

/// Reads the certificates of a PEM file. A file without certificates is an error.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found: Vec<_> = found.map_err(|error| unreadable(path, error))?;
    match found.is_empty() {
        true => Err(unreadable(path, PemError::NoItemsFound)),
        false => Ok(found),
    }
}

/// Returns an error about a file of certificates or keys.
fn unusable(path: &Path, reason: &dyn fmt::Display) -> ClientError {
    ClientError::Tls(format!("{}: {reason}", path.display()))
}

/// Returns the error of reading a PEM file.
fn unreadable(path: &Path, error: PemError) -> ClientError {
    match error {
        PemError::Io(source) => unusable(path, &source),
        PemError::NoItemsFound => unusable(path, &"it contains no certificate or key"),
        error => unusable(path, &error),
    }
}
