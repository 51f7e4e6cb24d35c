//! Options of gateways, as the engine needs them. The engine implements the gateway protocol, and the first
//! shard serves the connections.

use fanline_engine::gateway::{GatewayDial, GatewayEnded, GatewaySettings};
use tokio::sync::oneshot;

use crate::cluster::RouteAddress;
use crate::listen::reachable_urls;
use crate::options::{Addresses, GatewayOptions, Options};

/// A new connection to another cluster, without a session.
pub(crate) struct DialledGateway {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) dial: GatewayDial,
    /// The name that the certificate of the other server must have.
    pub(crate) host: String,
    /// Reports the end of the session.
    pub(crate) done: oneshot::Sender<GatewayEnded>,
}

/// Checks the options of gateways.
///
/// # Errors
///
/// Returns the error of the first invalid option.
pub(crate) fn check(options: &Options) -> Result<(), String> {
    let Some(gateway) = &options.gateway else {
        return Ok(());
    };
    check_names(options, gateway)?;
    for remote in &gateway.gateways {
        for url in &remote.urls {
            RouteAddress::parse(url)?;
        }
        if remote.urls.is_empty() {
            return Err(format!("gateway {:?} has no URL", remote.name));
        }
    }
    if (gateway.tls.as_ref()).is_some_and(|tls| !tls.client_certificates.is_required()) {
        return Err("TLS of gateways requires client certificates".into());
    }
    if options.jetstream.is_some() {
        let problem = "JetStream is not supported by Fanline together with gateways: remove \
                       `jetstream` or `gateway`";
        return Err(problem.into());
    }
    Ok(())
}

fn check_names(options: &Options, gateway: &GatewayOptions) -> Result<(), String> {
    let names = gateway.gateways.iter().map(|remote| &remote.name);
    for name in names.chain([&gateway.name]) {
        if name.is_empty() {
            return Err("gateway has no name".into());
        }
        if name.contains(char::is_whitespace) {
            return Err("gateway name cannot contain spaces".into());
        }
    }
    let is_other = |cluster: &String| *cluster != gateway.name;
    match options.cluster_name.as_ref().is_some_and(is_other) {
        true => Err("cluster name conflicts between cluster and gateway definitions".into()),
        false => Ok(()),
    }
}

/// Returns the engine's settings of gateways; `None` if there are none.
pub(crate) fn settings(options: &Options, addresses: &Addresses) -> Option<GatewaySettings> {
    let (gateway, listening) = options.gateway.as_ref().zip(addresses.gateway)?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let remotes = gateway.gateways.iter();
    let url = match &gateway.advertise {
        Some(advertised) if advertised.contains(':') => advertised.clone(),
        Some(advertised) => format!("{advertised}:{}", listening.port()),
        None if listening.ip().is_unspecified() => {
            let first = reachable_urls(listening).into_iter().next();
            first.unwrap_or_else(|| listening.to_string())
        }
        None => listening.to_string(),
    };
    Some(GatewaySettings {
        name: gateway.name.clone(),
        host: gateway.host.clone(),
        port: listening.port(),
        url,
        user: text(&gateway.user),
        password: text(&gateway.password),
        has_tls: gateway.tls.is_some(),
        auth_timeout: gateway.auth_timeout,
        configured: remotes.map(|remote| remote.name.clone()).collect(),
        rejects_unknown: gateway.rejects_unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{JetStreamOptions, RemoteGateway};

    fn remote(name: &str, url: &str) -> RemoteGateway {
        RemoteGateway {
            name: name.into(),
            urls: match url {
                "" => Vec::new(),
                url => vec![url.into()],
            },
        }
    }

    fn check_of(change: impl Fn(&mut Options, &mut GatewayOptions)) -> Result<(), String> {
        let mut options = Options::default();
        let mut gateway = GatewayOptions {
            name: "A".into(),
            gateways: vec![remote("B", "nats://h:7222")],
            ..GatewayOptions::default()
        };
        change(&mut options, &mut gateway);
        check(&Options {
            gateway: Some(gateway),
            ..options
        })
    }

    #[test]
    fn invalid_options_are_refused() {
        type Change = fn(&mut Options, &mut GatewayOptions);
        let cases: [(Change, &str); 8] = [
            (|_, own| own.name.clear(), "gateway has no name"),
            (
                |_, own| own.name = "a b".into(),
                "gateway name cannot contain spaces",
            ),
            (|_, own| own.gateways[0].name.clear(), "gateway has no name"),
            (
                |_, own| own.gateways[0] = remote("B", ""),
                "gateway \"B\" has no URL",
            ),
            (
                |_, own| own.gateways[0] = remote("B", "nats://h"),
                "route \"nats://h\" has no port",
            ),
            (
                |options, _| options.cluster_name = Some("C".into()),
                "cluster name conflicts between cluster and gateway definitions",
            ),
            (
                |_, own| own.tls = Some(crate::TlsOptions::default()),
                "TLS of gateways requires client certificates",
            ),
            (
                |options, _| options.jetstream = Some(JetStreamOptions::default()),
                "JetStream is not supported by Fanline together with gateways: remove `jetstream` or \
                 `gateway`",
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(check_of(change), Err(expected.into()));
        }
        assert_eq!(check_of(|_, _| {}), Ok(()));
        let same = |options: &mut Options, _: &mut GatewayOptions| {
            options.cluster_name = Some("A".into());
        };
        assert_eq!(check_of(same), Ok(()));
    }
}
