//! HTTP proxies to hubs: `CONNECT` opens a tunnel.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::ServerAddress;
use crate::client::url::Url;
use crate::options::{LeafnodeProxy, TlsOptions};
use crate::tls::client_config;

/// Default ports of proxies.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Largest response of a proxy, in bytes. If it is longer, the connection attempt fails.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// A proxy, ready for connections.
pub(crate) struct Proxy {
    pub(crate) address: ServerAddress,
    /// TLS settings and host name, for a proxy over HTTPS.
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// The `Proxy-Authorization` header line; empty without credentials.
    authorization: String,
    /// Time limit until the tunnel is open; the remote's dial timeout if `None`.
    pub(crate) timeout: Option<Duration>,
}

/// Returns the proxy's address, and whether connections to the proxy use TLS.
///
/// # Errors
///
/// Fails if an option is invalid. TLS files are not read.
pub(crate) fn check_proxy(options: &LeafnodeProxy) -> Result<(ServerAddress, bool), String> {
    let url = Url::split(&options.url);
    let scheme = url.scheme.unwrap_or_default().to_ascii_lowercase();
    let is_tls = match scheme.as_str() {
        "http" if options.tls.is_some() => {
            let why = "proxy TLS configuration requires an https proxy URL, got: http";
            return Err(why.into());
        }
        "http" => false,
        "https" => true,
        other => {
            return Err(format!(
                "proxy URL scheme must be http or https, got: {other}"
            ));
        }
    };
    if options.username.is_some() != options.password.is_some() {
        return Err("proxy username and password must both be specified or both be empty".into());
    }
    let port = if is_tls { HTTPS_PORT } else { HTTP_PORT };
    let address = ServerAddress::from_url(&url, is_tls, port);
    Ok((address.map_err(|error| format!("proxy: {error}"))?, is_tls))
}

impl Proxy {
    /// Reads a proxy's options and files.
    ///
    /// # Errors
    ///
    /// Fails if an option or file is invalid.
    pub(crate) fn new(options: &LeafnodeProxy) -> Result<Self, String> {
        let (address, is_tls) = check_proxy(options)?;
        let tls = match is_tls {
            true => Some(tls(&address, options.tls.as_ref())?),
            false => None,
        };
        let user = options.username.as_ref().or(address.user.as_ref());
        let password = options.password.as_ref().or(address.password.as_ref());
        let login = user.zip(password).map(|(user, password)| {
            let login = BASE64.encode(format!("{user}:{password}"));
            format!("Proxy-Authorization: Basic {login}\r\n")
        });
        let authorization = login.unwrap_or_default();
        Ok(Proxy {
            address,
            tls,
            authorization,
            timeout: options.timeout,
        })
    }

    /// Returns the `CONNECT` request.
    fn request(&self, hub: &ServerAddress) -> Result<String, String> {
        // A hub may advertise any text as its host, so the host is checked.
        let is_no_name = |byte: u8| byte.is_ascii_control() || byte == b' ';
        if hub.host.bytes().any(is_no_name) {
            return Err(format!("{:?} is not a host name", hub.host));
        }
        let place = hub.host_and_port();
        let login = &self.authorization;
        Ok(format!(
            "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n"
        ))
    }

    /// Returns an error text that names the proxy.
    pub(crate) fn wrong(&self, what: &str) -> String {
        format!("proxy {}: {what}", self.address.host_and_port())
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Performs the TLS handshake with the proxy.
    ///
    /// # Errors
    ///
    /// Returns the reason of the failure.
    pub(crate) async fn tls_handshake(
        &self,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let Some((config, name)) = &self.tls else {
            return Err(self.wrong("TLS is not configured"));
        };
        let connector = TlsConnector::from(Arc::clone(config));
        let shaken = connector.connect(name.clone(), stream).await;
        shaken.map_err(|error| self.wrong(&format!("TLS handshake failed: {error}")))
    }

    /// Opens a tunnel to a hub over a connection to the proxy.
    ///
    /// # Errors
    ///
    /// Fails if the proxy does not open the tunnel. The error contains the proxy's status line.
    pub(crate) async fn open_tunnel(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        hub: &ServerAddress,
    ) -> Result<(), String> {
        let wrong = |what: &str| self.wrong(what);
        let failed = |error: std::io::Error| wrong(&crate::error::os_error_text(&error));
        let request = self.request(hub)?;
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        stream.flush().await.map_err(failed)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= HEAD_BYTES_MAX {
                return Err(wrong("its response is too long"));
            }
            // Reads byte by byte, because bytes from the hub may directly follow the response.
            head.push(stream.read_u8().await.map_err(failed)?);
        }
        match is_granted(&head) {
            true => Ok(()),
            false => Err(wrong(&status_line(&head))),
        }
    }
}

fn tls(
    address: &ServerAddress,
    options: Option<&TlsOptions>,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), String> {
    let usual = TlsOptions::default();
    let config = client_config(options.unwrap_or(&usual));
    let config = config.map_err(|error| format!("proxy: TLS: {error}"))?;
    let host = &address.host;
    let name = ServerName::try_from(host.clone()).map_err(|error| format!("{host}: {error}"))?;
    Ok((Arc::new(config), name))
}

/// Returns whether a response grants the tunnel: `HTTP/1.1 200 Connection established`.
fn is_granted(head: &[u8]) -> bool {
    let mut words = head.split(|b| *b == b' ');
    let is_http = words
        .next()
        .is_some_and(|word| word.starts_with(b"HTTP/1."));
    let code = words.next().unwrap_or_default();
    is_http && code.starts_with(b"2")
}

/// Returns a printable status line for the log.
fn status_line(head: &[u8]) -> String {
    let line = head.split(|b| *b == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(url: &str, login: Option<(&str, &str)>) -> LeafnodeProxy {
        LeafnodeProxy {
            username: login.map(|(user, _)| user.into()),
            password: login.map(|(_, password)| password.into()),
            ..LeafnodeProxy::new(url)
        }
    }

    #[test]
    fn connect_request_names_the_hub() {
        let hub = ServerAddress::from_url(&Url::split("[::1]"), false, 7422).unwrap();
        let made = Proxy::new(&proxy("http://squid:3128", Some(("ada", "secret")))).unwrap();
        assert_eq!(made.address.host_and_port(), "squid:3128");
        assert_eq!(
            made.request(&hub).unwrap(),
            "CONNECT [::1]:7422 HTTP/1.1\r\nHost: [::1]:7422\r\n\
             Proxy-Authorization: Basic YWRhOnNlY3JldA==\r\n\r\n"
        );
        for (url, place, is_tls) in [
            ("HTTP://squid", "squid:80", false),
            ("https://squid", "squid:443", true),
            ("https://u:p@squid:3129", "squid:3129", true),
        ] {
            let usual = Proxy::new(&proxy(url, None)).unwrap();
            assert_eq!(usual.address.host_and_port(), place);
            assert_eq!(usual.is_tls(), is_tls, "{url}");
        }
        let usual = Proxy::new(&proxy("http://squid", None)).unwrap();
        let address = ServerAddress {
            host: "hub\r\nX: y".into(),
            ..hub
        };
        assert!(usual.request(&address).is_err());
    }

    #[test]
    fn invalid_proxy_url_is_rejected() {
        for url in ["ftp://squid", "squid:3128", ""] {
            assert!(Proxy::new(&proxy(url, None)).is_err(), "{url}");
        }
        let half = LeafnodeProxy {
            username: Some("ada".into()),
            ..LeafnodeProxy::new("http://squid")
        };
        assert!(Proxy::new(&half).is_err());
        let in_clear = LeafnodeProxy {
            tls: Some(TlsOptions::default()),
            ..LeafnodeProxy::new("http://squid")
        };
        assert!(Proxy::new(&in_clear).is_err());
    }

    #[test]
    fn only_success_opens_the_tunnel() {
        for (head, expected) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", true),
            ("HTTP/1.0 200\r\n\r\n", true),
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", false),
            ("INFO 200 \r\n\r\n", false),
            ("\r\n\r\n", false),
        ] {
            assert_eq!(is_granted(head.as_bytes()), expected, "{head}");
        }
        assert_eq!(
            status_line(b"HTTP/1.1 502 \x1b[1mno\r\n\r\n"),
            "HTTP/1.1 502 [1mno"
        );
    }
}
