//! Options of the cluster, as the engine needs them, and addresses of other servers. The engine implements the
//! route protocol, and the shards serve the routes.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use fanline_engine::auth::{Permissions, Rights};
use fanline_engine::jetstream::ClusterSettings;
use fanline_engine::route::{CertificateRules, RouteDial, RouteEnded, RouteSettings};
use fanline_engine::{AccountId, ClientUrls};
use tokio::sync::oneshot;

use crate::client::ServerAddress;
use crate::client::url::Url;
use crate::listen::reachable_urls;
use crate::options::{Addresses, ClientCertificates, ClusterOptions, LinkCompression, Options};

/// A new connection to another server of the cluster, without a session.
pub(crate) struct DialledRoute {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) dial: RouteDial,
    /// The name that the certificate of the other server must have.
    pub(crate) host: String,
    /// Reports the end of the session. If its receiver is dropped, the connection is no longer needed.
    pub(crate) done: oneshot::Sender<RouteEnded>,
}

/// The address of another server of the cluster.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct RouteAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// User and password; empty without one.
    pub(crate) user: String,
    pub(crate) password: String,
}

impl fmt::Display for RouteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl RouteAddress {
    /// Parses `nats-route://user:password@host:6222`. Any scheme is accepted, as in nats-server.
    ///
    /// # Errors
    ///
    /// Fails if the host or the port is missing or invalid.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let url = Url::split(text.trim());
        let (location, _) = url.host_and_path();
        let url = Url { location, ..url };
        let shown = url.without_user_info();
        let address = ServerAddress::from_url(&url, false, 0).map_err(|error| error.to_string())?;
        if address.port == 0 {
            return Err(format!("route {shown:?} has no port"));
        }
        Ok(RouteAddress {
            host: address.host,
            port: address.port,
            user: address.user.or(address.token).unwrap_or_default(),
            password: address.password.unwrap_or_default(),
        })
    }

    /// Returns whether both are the same host and port, as text.
    pub(crate) fn is_same_place(&self, other: &RouteAddress) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }
}

/// Checks the options of the cluster.
///
/// # Errors
///
/// Returns the error of the first invalid option.
pub(crate) fn check(options: &Options) -> Result<(), String> {
    let name = options.cluster_name.as_deref();
    if name.is_some_and(|name| name.contains(char::is_whitespace)) {
        return Err("cluster name cannot contain spaces".into());
    }
    let Some(cluster) = &options.cluster else {
        return Ok(());
    };
    if name.is_some_and(str::is_empty) {
        return Err("cluster name cannot be empty".into());
    }
    if options.jetstream.is_some() {
        check_jetstream(options)?;
    }
    for url in &cluster.routes {
        RouteAddress::parse(url)?;
    }
    if cluster.pool_size == 0 && !cluster.accounts.is_empty() {
        return Err("pool_size cannot be negative if pinned accounts are specified".into());
    }
    for (at, account) in cluster.accounts.iter().enumerate() {
        if cluster.accounts[..at].contains(account) {
            return Err(format!(
                "found duplicate account name {account:?} in pinned accounts list"
            ));
        }
    }
    if (cluster.tls.as_ref()).is_some_and(|tls| !tls.client_certificates.is_required()) {
        return Err("TLS of routes requires client certificates".into());
    }
    Ok(())
}

/// Checks the options of a server with JetStream in a cluster.
fn check_jetstream(options: &Options) -> Result<(), String> {
    let problem = if options.server_name.is_none() {
        "jetstream cluster requires `server_name` to be set"
    } else if options.cluster_name.is_none() {
        "jetstream cluster requires `cluster.name` to be set"
    } else if options.no_system_account {
        "JetStream in a cluster requires the system account: its servers agree on streams there"
    } else if options.mqtt.is_some() {
        "MQTT is not supported by Fanline in a cluster yet: remove `mqtt` or `cluster`"
    } else {
        return Ok(());
    };
    Err(problem.into())
}

/// Returns the cluster of a server, as JetStream needs it; `None` if it is in none.
pub(crate) fn of_jetstream(options: &Options) -> Option<ClusterSettings> {
    options.cluster.as_ref()?;
    Some(ClusterSettings {
        name: options.cluster_name.clone().unwrap_or_default(),
        tags: options.server_tags.clone(),
        replicas: 1,
    })
}

/// Returns the engine's settings of routes; `None` if the server is in no cluster.
pub(crate) fn settings(
    options: &Options,
    addresses: &Addresses,
    shards: usize,
) -> Option<RouteSettings> {
    let (cluster, listening) = options.cluster.as_ref().zip(addresses.cluster)?;
    let accounts = dedicated(options, cluster);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some(RouteSettings {
        host: cluster.host.clone(),
        port: listening.port(),
        advertise: cluster.advertise.clone(),
        user: text(&cluster.user),
        password: text(&cluster.password),
        certificates: certificate_rules(cluster),
        has_tls: cluster.tls.is_some(),
        auth_timeout: cluster.auth_timeout,
        client_urls: match cluster.no_advertise {
            true => ClientUrls::default(),
            false => client_urls(options, addresses),
        },
        pool_size: cluster.pool_size,
        accounts,
        rights: rights(&cluster.permissions),
        compression: requested(&cluster.compression),
        shards: u16::try_from(shards).unwrap_or(u16::MAX),
        // The service comes after the shards.
        jetstream: (options.jetstream.as_ref()).and_then(|_| u16::try_from(shards).ok()),
    })
}

/// Returns the addresses that clients of other servers learn.
fn client_urls(options: &Options, addresses: &Addresses) -> ClientUrls {
    let urls = |advertised: Option<&String>, listening: SocketAddr| match advertised {
        Some(advertised) if advertised.contains(':') => vec![advertised.clone()],
        Some(advertised) => vec![format!("{advertised}:{}", listening.port())],
        None if listening.ip().is_unspecified() => reachable_urls(listening),
        None => vec![listening.to_string()],
    };
    let websocket = options.websocket.as_ref().zip(addresses.websocket);
    ClientUrls {
        plain: urls(options.client_advertise.as_ref(), addresses.clients),
        websocket: websocket.map_or_else(Vec::new, |(websocket, listening)| {
            urls(websocket.advertise.as_ref(), listening)
        }),
    }
}

/// Returns the names of the accounts that have dedicated routes.
fn dedicated(options: &Options, cluster: &ClusterOptions) -> Vec<String> {
    let access = options.auth.directory();
    let system = access.account(AccountId::SYSTEM);
    let system = system.filter(|_| !options.no_system_account);
    let system = system.map(|system| system.name.clone());
    cluster.accounts.iter().cloned().chain(system).collect()
}

/// Returns the compiled permissions of peers; `None` if everything may cross.
fn rights(permissions: &Permissions) -> Option<Arc<Rights>> {
    (*permissions != Permissions::default()).then(|| Arc::new(Rights::new(permissions)))
}

/// Returns the options after a reload, which does not change the address.
pub(crate) fn reloaded(
    before: Option<ClusterOptions>,
    new: Option<ClusterOptions>,
) -> Option<ClusterOptions> {
    let (before, new) = match (before, new) {
        (Some(before), Some(new)) => (before, new),
        (before, _) => return before,
    };
    Some(ClusterOptions {
        routes: new.routes,
        user: new.user,
        password: new.password,
        auth_timeout: new.auth_timeout,
        connect_retries: new.connect_retries,
        connect_backoff: new.connect_backoff,
        compression: new.compression,
        pool_size: new.pool_size,
        accounts: new.accounts,
        permissions: new.permissions,
        ..before
    })
}

/// Returns the engine's settings of routes after a reload.
pub(crate) fn settings_reloaded(before: &RouteSettings, options: &Options) -> RouteSettings {
    let Some(cluster) = &options.cluster else {
        return before.clone();
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    RouteSettings {
        user: text(&cluster.user),
        password: text(&cluster.password),
        certificates: certificate_rules(cluster),
        auth_timeout: cluster.auth_timeout,
        pool_size: cluster.pool_size,
        accounts: dedicated(options, cluster),
        rights: rights(&cluster.permissions),
        compression: requested(&cluster.compression),
        ..before.clone()
    }
}

/// Returns the rules by which certificates authorize other servers, if they do.
fn certificate_rules(cluster: &ClusterOptions) -> Option<CertificateRules> {
    let tls = cluster.tls.as_ref()?;
    let maps = tls.client_certificates == ClientCertificates::RequiredAndMapped;
    let host = |url: &String| RouteAddress::parse(url).map(|address| address.host);
    let hosts = match tls.checks_known_urls {
        true => cluster
            .routes
            .iter()
            .filter_map(|url| host(url).ok())
            .collect(),
        false => Vec::new(),
    };
    (maps || tls.checks_known_urls).then_some(CertificateRules { maps, hosts })
}

/// Returns the compression that this server requests from others.
fn requested(compression: &LinkCompression) -> Option<LinkCompression> {
    match compression {
        LinkCompression::Off => None,
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_routes_are_parsed() {
        for (text, place, user, password) in [
            ("nats-route://a:6222", "a:6222", "", ""),
            ("nats://u:p@a:6222", "a:6222", "u", "p"),
            ("nats-route://10.0.0.1:6222/", "10.0.0.1:6222", "", ""),
            ("nats-route://[::1]:6222/", "[::1]:6222", "", ""),
            ("a:1", "a:1", "", ""),
        ] {
            let address = RouteAddress::parse(text).expect(text);
            assert_eq!(address.to_string(), place, "{text}");
            assert_eq!((&*address.user, &*address.password), (user, password));
        }
        for text in ["nats-route://a", "nats-route://:6222", "", "a:x"] {
            assert!(RouteAddress::parse(text).is_err(), "{text}");
        }
        let error = RouteAddress::parse("nats://u:secret@a").err();
        assert_eq!(error.as_deref(), Some("route \"nats://a\" has no port"));
    }
}
