//! Addresses of servers: `nats://user:password@host:port` and its shorter forms.

use super::error::ClientError;
use super::url::{Url, percent_decode, split_host_port};

/// Default port.
const PORT_DEFAULT: u16 = 4222;

/// The address of a server, with credentials.
#[derive(Clone, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct ServerAddress {
    /// Host name or address, without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    pub token: Option<String>,
    /// Whether the scheme requires TLS.
    pub is_tls: bool,
}

impl ServerAddress {
    /// Returns the host and the port, without credentials, for logs and error texts.
    pub fn host_and_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Parses the user info, host, and port of a URL, and ignores its scheme. User info without a colon is a
    /// token.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the host or the port.
    pub fn from_url(url: &Url<'_>, is_tls: bool, port_default: u16) -> Result<Self, ClientError> {
        let refuse = |reason| Err(refused(url, reason));
        let (host, port) = match split_host_port(url.location.trim_end_matches('/')) {
            Ok(parts) => parts,
            Err(reason) => return refuse(reason),
        };
        if host.is_empty() {
            return refuse("the host is missing");
        }
        if host.contains(|c: char| c.is_whitespace() || c == '/') {
            return refuse("the host has a space or a slash");
        }
        let port = match port.map(str::parse) {
            None => port_default,
            Some(Ok(port)) => port,
            Some(Err(_)) => return refuse("the port should be a number up to 65535"),
        };
        let decode = |text: &str| String::from_utf8_lossy(&percent_decode(text).0).into_owned();
        let mut address = ServerAddress {
            host: host.to_owned(),
            port,
            is_tls,
            ..Default::default()
        };
        match url.user_info.map(|info| info.split_once(':').ok_or(info)) {
            Some(Ok((user, password))) => {
                address.user = Some(decode(user));
                address.password = Some(decode(password));
            }
            Some(Err(token)) => address.token = Some(decode(token)),
            None => {}
        }
        Ok(address)
    }
}

/// Parses a comma-separated list of at least one address.
pub(super) fn parse_list(list: &str) -> Result<Vec<ServerAddress>, ClientError> {
    let parsed: Result<Vec<_>, _> = list
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(parse)
        .collect();
    match parsed {
        Ok(addresses) if addresses.is_empty() => Err(ClientError::InvalidAddress {
            address: list.into(),
            reason: "it is empty",
        }),
        parsed => parsed,
    }
}

/// Parses one address.
fn parse(text: &str) -> Result<ServerAddress, ClientError> {
    let url = Url::split(text);
    let is_tls = match url.scheme {
        None | Some("nats") => false,
        Some("tls") => true,
        Some("ws" | "wss") => {
            return Err(refused(
                &url,
                "WebSocket is not supported by this client yet",
            ));
        }
        Some(_) => return Err(refused(&url, "the scheme should be nats:// or tls://")),
    };
    ServerAddress::from_url(&url, is_tls, PORT_DEFAULT)
}

// The error contains only the location (host, port, and path), so that credentials never appear in its text.
fn refused(url: &Url<'_>, reason: &'static str) -> ClientError {
    ClientError::InvalidAddress {
        address: url.location.into(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_form_of_address() {
        for (text, host_port, user, password, token) in [
            ("localhost", "localhost:4222", None, None, None),
            ("nats://h:1", "h:1", None, None, None),
            ("nats://h:1/", "h:1", None, None, None),
            ("[::1]:5", "[::1]:5", None, None, None),
            ("nats://[::1]", "[::1]:4222", None, None, None),
            ("nats://u:p@h", "h:4222", Some("u"), Some("p"), None),
            ("u:p%40%3a%zz@h", "h:4222", Some("u"), Some("p@:%zz"), None),
            ("nats://t0k@h:9", "h:9", None, None, Some("t0k")),
        ] {
            let address = parse(text).expect(text);
            assert_eq!(address.host_and_port(), host_port, "{text}");
            let who = (address.user.as_deref(), address.password.as_deref());
            assert_eq!(
                (who, address.token.as_deref()),
                ((user, password), token),
                "{text}"
            );
        }
        assert_eq!(parse_list("a, b:1,").expect("a list").len(), 2);
    }

    #[test]
    fn invalid_address_error_contains_no_credentials() {
        for text in [
            "",
            ",",
            "http://h",
            "mqtt://h",
            "wss://h",
            ":4222",
            "h:",
            "h:x",
            "h:65536",
            "::1",
            "[::1",
            "[::1]5",
            "secret@",
            "u:secret@h:x",
            "a b",
            "h/secretless",
        ] {
            let error = parse_list(text)
                .err()
                .unwrap_or_else(|| panic!("{text} was accepted"));
            assert!(!error.to_string().contains("secret@"), "{error}");
            assert!(!error.to_string().contains("u:"), "{error}");
        }
    }
}
