//! TLS settings: certificates, authorities, and requirements on clients.

mod certificates;
mod clients;
mod names;
mod routes;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanline_engine::auth::certificate::{CertificateNames, certificate_names};
use fanline_engine::{TlsInfo, TlsPeer};
use ring::digest::{SHA256, digest};
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, CommonState, RootCertStore, ServerConfig, SupportedProtocolVersion, version,
};

use crate::options::{Options, TlsOptions, TlsVersion};
use crate::sync::Lock;
use certificates::{Certificates, read_chain_and_key};
use clients::ClientVerifier;
pub(crate) use routes::RouteTls;

/// The reason why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {what}", path.display())]
    Content { path: PathBuf, what: String },
    #[error("{0}")]
    Option(String),
}

/// TLS of new connections to one listener. A reload creates a new value.
#[derive(Debug)]
pub(crate) struct Tls {
    options: TlsOptions,
    config: Arc<ServerConfig>,
    /// Expiry of the certificate.
    not_after: Option<String>,
    begun: Lock<Begun>,
}

/// TLS of all listeners.
#[derive(Clone, Debug)]
pub(crate) struct ListenersTls {
    pub(crate) clients: Option<Arc<Tls>>,
    /// Whether clients may connect without TLS.
    pub(crate) allow_non_tls: bool,
    pub(crate) websocket: Option<Arc<Tls>>,
    pub(crate) mqtt: Option<Arc<Tls>>,
    pub(crate) leafs: Option<Arc<Tls>>,
    pub(crate) routes: Option<Arc<RouteTls>>,
    pub(crate) gateways: Option<Arc<RouteTls>>,
}

impl ListenersTls {
    /// Reads the files of all listeners.
    pub(crate) fn read(options: &Options) -> Result<Self, TlsError> {
        let read = |options: Option<&TlsOptions>| {
            let tls = options.map(Tls::new).transpose();
            tls.map(|tls| tls.map(Arc::new))
        };
        let (websocket, mqtt) = (options.websocket.as_ref(), options.mqtt.as_ref());
        let leafs = options.leafnodes.listener.as_ref();
        let routes = options.cluster.as_ref();
        let routes = routes.and_then(|cluster| cluster.tls.as_ref());
        let gateways = options.gateway.as_ref();
        let gateways = gateways.and_then(|gateway| gateway.tls.as_ref());
        Ok(ListenersTls {
            clients: read(options.tls.as_ref())?,
            allow_non_tls: options.allow_non_tls,
            websocket: read(websocket.and_then(|listener| listener.tls.as_ref()))?,
            mqtt: read(mqtt.and_then(|listener| listener.tls.as_ref()))?,
            leafs: read(leafs.and_then(|listener| listener.tls.as_ref()))?,
            routes: routes.map(RouteTls::new).transpose()?.map(Arc::new),
            gateways: gateways.map(RouteTls::new).transpose()?.map(Arc::new),
        })
    }
}

/// Number of handshakes that were started in the current second.
#[derive(Debug)]
struct Begun {
    since: Instant,
    count: u32,
}

impl Tls {
    /// Reads the files of a listener.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let begun = Begun {
            since: Instant::now(),
            count: 0,
        };
        let (config, not_after) = server_config(options)?;
        Ok(Tls {
            options: options.clone(),
            config: Arc::new(config),
            not_after,
            begun: Lock::new(begun),
        })
    }

    pub(crate) fn options(&self) -> &TlsOptions {
        &self.options
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Returns the expiry of the first certificate in RFC 3339 format.
    pub(crate) fn not_after(&self) -> Option<String> {
        self.not_after.clone()
    }

    /// Counts a handshake. Returns whether it is within the rate limit.
    pub(crate) fn may_begin(&self) -> bool {
        let Some(most) = self.options.connection_rate_limit else {
            return true;
        };
        let mut begun = self.begun.lock();
        if begun.since.elapsed() >= Duration::from_secs(1) {
            (begun.since, begun.count) = (Instant::now(), 0);
        }
        begun.count = begun.count.saturating_add(1);
        begun.count <= most
    }

    /// Returns the peer of a finished handshake, or the reason why the peer is refused.
    pub(crate) fn peer(
        &self,
        session: &CommonState,
        is_first: bool,
    ) -> Result<TlsPeer, &'static str> {
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let names = certificate.and_then(|certificate| certificate_names(certificate));
        check_pin(&self.options, certificate, names.as_ref())?;
        Ok(TlsPeer {
            version: match session.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "1.3",
                _ => "1.2",
            },
            cipher_suite: session
                .negotiated_cipher_suite()
                .map_or_else(String::new, |suite| names::suite_name(suite.suite())),
            is_first,
            names,
        })
    }
}

fn check_pin(
    options: &TlsOptions,
    certificate: Option<&CertificateDer<'_>>,
    names: Option<&CertificateNames>,
) -> Result<(), &'static str> {
    if options.pinned_certs.is_empty() {
        return Ok(());
    }
    let key = certificate
        .zip(names)
        .and_then(|(certificate, names)| certificate.get(names.public_key.clone()));
    let is_pinned = key.is_some_and(|key| {
        let hash = digest(&SHA256, key);
        let pins = options.pinned_certs.iter();
        pins.into_iter().any(|pin| pin == hash.as_ref())
    });
    match is_pinned {
        true => Ok(()),
        false => Err("certificate not pinned"),
    }
}

/// Returns a listener's configuration, and the expiry of its first certificate.
fn server_config(options: &TlsOptions) -> Result<(ServerConfig, Option<String>), TlsError> {
    let provider = Arc::new(crypto(options)?);
    let certificates = Certificates::read(&options.certificates, &provider)?;
    let not_after = certificates.not_after();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions(options))
        .map_err(|error| {
            TlsError::Option(format!("no cipher suite for these versions: {error}"))
        })?;
    let builder = match options.client_certificates.is_required() {
        false => builder.with_no_client_auth(),
        true => {
            let roots = Arc::new(authorities(options.ca_file.as_deref())?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| TlsError::Option(format!("client certificates: {error}")))?;
            // Only authorities of the configured file are accepted as clients, not the system's authorities.
            let own = options
                .ca_file
                .as_deref()
                .map(certificates::read_certificates);
            let own = own.transpose()?.unwrap_or_default();
            builder.with_client_cert_verifier(Arc::new(ClientVerifier::new(verifier, own)))
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    config.ignore_client_order = !options.cipher_suites.is_empty();
    // One ticket suffices for browsers. NATS clients hardly ever resume sessions.
    config.send_tls13_tickets = 1;
    Ok((config, not_after))
}

fn versions(options: &TlsOptions) -> &'static [&'static SupportedProtocolVersion] {
    static ALL: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
    match options.min_version {
        TlsVersion::V1_2 => &ALL,
        TlsVersion::V1_3 => &ALL[..1],
    }
}

/// Returns the TLS fields of INFO.
pub(crate) fn info_of(tls: Option<&TlsOptions>, allow_non_tls: bool) -> TlsInfo {
    tls.map_or_else(TlsInfo::default, |tls| TlsInfo {
        required: !allow_non_tls,
        available: allow_non_tls,
        verify: tls.client_certificates.is_required(),
    })
}

/// Checks a listener's options and files.
pub(crate) fn check(options: &TlsOptions) -> Result<(), TlsError> {
    if let Some(path) = &options.ca_file {
        authorities(Some(path))?;
    }
    match options.certificates.is_empty() {
        // The options may have no certificates. Whether they need one is not checked here, because it depends
        // on the listener.
        true => crypto(options).map(drop),
        false => server_config(options).map(drop),
    }
}

/// Returns the configuration of connections that this side opens.
pub(crate) fn client_config(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(crypto(options)?);
    let failed = |error: rustls::Error| TlsError::Option(error.to_string());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions(options))
        .map_err(failed)?
        .with_root_certificates(authorities(options.ca_file.as_deref())?);
    match options.certificates.first() {
        None => Ok(config.with_no_client_auth()),
        Some(files) => {
            let (chain, key) = read_chain_and_key(&files.cert_file, &files.key_file)?;
            config.with_client_auth_cert(chain, key).map_err(failed)
        }
    }
}

/// Reads the authorities of a PEM file, or those of the system.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            for certificate in certificates::read_certificates(path)? {
                roots.add(certificate).map_err(|error| TlsError::Content {
                    path: path.into(),
                    what: error.to_string(),
                })?;
            }
        }
        None => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    Ok(roots)
}

/// Returns the configured suites and curves.
fn crypto(options: &TlsOptions) -> Result<CryptoProvider, TlsError> {
    let mut crypto = provider::default_provider();
    if !options.cipher_suites.is_empty() {
        let wanted = options.cipher_suites.iter();
        let suites: Result<Vec<_>, _> = wanted.map(|name| names::suite(name)).collect();
        crypto.cipher_suites = suites?;
    }
    if !options.curve_preferences.is_empty() {
        let wanted = options.curve_preferences.iter();
        let groups: Result<Vec<_>, _> = wanted.map(|name| names::curve(name)).collect();
        crypto.kx_groups = groups?;
    }
    Ok(crypto)
}
