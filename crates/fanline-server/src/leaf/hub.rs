//! A hub: its addresses, credentials, and TLS.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fanline_engine::leaf::{LeafCredentials, LeafEnded, LeafRemote};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::LeafAddress;
use super::proxy::Proxy;
use crate::auth::nkey::SecretKey;
use crate::client::{Credentials, ServerAddress};
use crate::options::{LeafnodeRemote, TlsHandshake, TlsOptions};
use crate::tls::client_config;
use crate::wire::Carrier;

/// Default time limit of the TLS handshake.
const TLS_TIME: Duration = Duration::from_secs(2);

/// A new connection to a hub, without a session.
pub(crate) struct Dialled {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) hub: Arc<Hub>,
    /// The address that was dialed.
    pub(crate) address: LeafAddress,
    pub(crate) credentials: Option<Credentials>,
    /// Deadline for the proxy to reach the hub.
    pub(crate) reached_by: Instant,
    /// Reports the end of the session, or the reason why the hub was not reached. If its receiver is dropped,
    /// the connection is no longer needed.
    pub(crate) done: oneshot::Sender<Result<LeafEnded, String>>,
}

/// A remote, ready to be dialed.
pub(crate) struct Hub {
    pub(crate) remote: Arc<LeafRemote>,
    pub(crate) addresses: Vec<LeafAddress>,
    pub(crate) options: LeafnodeRemote,
    /// The proxy, if there is one.
    pub(crate) proxy: Option<Proxy>,
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Hub {
    /// Reads a remote's options and files.
    ///
    /// # Errors
    ///
    /// Fails if an option or file is invalid.
    pub(crate) fn new(id: u64, options: &LeafnodeRemote) -> Result<Self, String> {
        let addresses: Result<Vec<_>, _> = (options.urls.iter())
            .map(|url| LeafAddress::parse(url).map_err(|error| error.to_string()))
            .collect();
        let hub = Hub {
            remote: Arc::new(LeafRemote {
                id,
                account: options.account.clone(),
                is_hub: options.is_hub,
                deny_imports: options.deny_imports.clone(),
                deny_exports: options.deny_exports.clone(),
                isolates: options.isolates,
                requests_isolation: options.requests_isolation,
            }),
            addresses: addresses?,
            options: options.clone(),
            proxy: options.proxy.as_ref().map(Proxy::new).transpose()?,
            tls: OnceLock::new(),
        };
        let over_websocket = |address: &LeafAddress| address.websocket_path.is_some();
        if hub.addresses.iter().any(over_websocket) && !hub.addresses.iter().all(over_websocket) {
            let urls = options.shown_urls();
            return Err(format!(
                "remote leaf node configuration cannot have a mix of websocket and non-websocket urls: {urls:?}"
            ));
        }
        if hub.options.tls.is_some() || hub.addresses.iter().any(|address| address.server.is_tls) {
            hub.tls_config()?;
        }
        hub.credentials()?;
        Ok(hub)
    }

    /// Returns whether TLS is required regardless of the hub's INFO.
    pub(crate) fn wants_tls(&self, address: &LeafAddress) -> bool {
        self.options.tls.is_some() || address.server.is_tls
    }

    /// Returns whether TLS begins before the hub's INFO.
    pub(crate) fn begins_with_tls(&self) -> bool {
        let handshake = self.options.tls.as_ref().map(|tls| tls.handshake);
        handshake.is_some_and(|handshake| handshake != TlsHandshake::AfterInfo)
    }

    fn tls_config(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let none = TlsOptions::default();
        let options = self.options.tls.as_ref().unwrap_or(&none);
        let config = client_config(options).map_err(|error| format!("TLS: {error}"))?;
        Ok(Arc::clone(self.tls.get_or_init(|| Arc::new(config))))
    }

    /// Reads the credentials for the hub. They are read for each connection, because the file may change.
    pub(crate) fn credentials(&self) -> Result<Option<Credentials>, String> {
        if let Some(path) = &self.options.credentials {
            return Credentials::from_file_content(&read(path)?)
                .map(Some)
                .map_err(|error| format!("{}: {error}", path.display()));
        }
        let Some(seed) = &self.options.nkey else {
            return Ok(None);
        };
        let text = match SecretKey::parse(seed.trim()) {
            Some(_) => seed.clone(),
            None => read(Path::new(seed))?,
        };
        let credentials = Credentials::from_nkey(&text);
        credentials.map(Some).map_err(|error| error.to_string())
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the credentials for a hub that has sent this nonce.
pub(crate) fn credentials_for(
    address: &LeafAddress,
    credentials: Option<&Credentials>,
    nonce: &str,
) -> LeafCredentials {
    let address = &address.server;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut shown = LeafCredentials {
        user: text(&address.user),
        pass: text(&address.password),
        auth_token: text(&address.token),
        jwt: credentials
            .and_then(Credentials::jwt)
            .unwrap_or_default()
            .into(),
        ..LeafCredentials::default()
    };
    // A name without a password in the URL may be a user or a token, so both fields contain it.
    if shown.user.is_empty() {
        shown.user.clone_from(&shown.auth_token);
    }
    if let Some(signer) = credentials.filter(|_| !nonce.is_empty()) {
        shown.sig = signer.sign(nonce);
        shown.nkey = signer.nkey().unwrap_or_default();
    }
    shown
}

/// Performs the TLS handshake with a hub.
pub(crate) async fn tls_handshake(
    hub: &Hub,
    address: &LeafAddress,
    stream: Box<dyn Carrier>,
) -> Result<TlsStream<Box<dyn Carrier>>, String> {
    let address = &address.server;
    // An advertised address is usually an IP address, while the certificate contains the host name. So for an
    // address that is not configured, the certificate must match the first configured host name.
    let mut known = hub.addresses.iter().map(|known| &known.server);
    let is_known = known.any(|known| known.host == address.host);
    let first: Option<&ServerAddress> = hub.addresses.first().map(|known| &known.server);
    let host = &first.filter(|_| !is_known).unwrap_or(address).host;
    let name = ServerName::try_from(host.clone()).map_err(|error| format!("{host}: {error}"))?;
    let connector = TlsConnector::from(hub.tls_config()?);
    let time = hub.options.tls.as_ref().map_or(TLS_TIME, |tls| tls.timeout);
    match tokio::time::timeout(time, connector.connect(name, stream)).await {
        Ok(shaken) => shaken.map_err(|error| error.to_string()),
        Err(_) => Err("timeout".into()),
    }
}
