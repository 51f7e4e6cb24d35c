//! Addresses of servers: `nats://user:password@host:port` and its shorter forms.

use super::error::ClientError;

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
    /// Returns host and port for messages, without credentials.
    pub fn host_and_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
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

fn parse(text: &str) -> Result<ServerAddress, ClientError> {
    parse_with_port(text, PORT_DEFAULT)
}

/// Parses one address.
#[doc(hidden)]
pub fn parse_with_port(text: &str, port_default: u16) -> Result<ServerAddress, ClientError> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("nats", text));
    // Credentials come before the last `@` and never appear in an error.
    let (credentials, host_port) = match rest.rsplit_once('@') {
        Some((credentials, host_port)) => (Some(credentials), host_port),
        None => (None, rest),
    };
    let invalid = |reason| {
        Err(ClientError::InvalidAddress {
            address: host_port.into(),
            reason,
        })
    };
    match scheme {
        "nats" | "tls" => {}
        "ws" | "wss" => return invalid("WebSocket is not supported by this client yet"),
        _ => return invalid("the scheme should be nats:// or tls://"),
    }
    let host_port = host_port.trim_end_matches('/');
    let (host, port) = match host_port.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return invalid("a colon should follow the bracket"),
            },
            None => return invalid("the bracket is not closed"),
        },
        None => match host_port.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return invalid("an IPv6 address needs brackets");
            }
            Some((host, port)) => (host, Some(port)),
            None => (host_port, None),
        },
    };
    if host.is_empty() {
        return invalid("the host is missing");
    }
    if host.contains(|c: char| c.is_whitespace() || c == '/') {
        return invalid("the host has a space or a slash");
    }
    let port = match port.map(str::parse) {
        None => port_default,
        Some(Ok(port)) => port,
        Some(Err(_)) => return invalid("the port should be a number up to 65535"),
    };
    let mut address = ServerAddress {
        host: host.to_owned(),
        port,
        is_tls: scheme == "tls",
        ..Default::default()
    };
    match credentials.map(|credentials| credentials.split_once(':').ok_or(credentials)) {
        Some(Ok((user, password))) => {
            address.user = Some(percent_decode(user));
            address.password = Some(percent_decode(password));
        }
        Some(Err(token)) => address.token = Some(percent_decode(token)),
        None => {}
    }
    Ok(address)
}

/// Decodes percent escapes such as `%40`; other text stays as it is.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| {
            after
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
