//! Server side of the WebSocket upgrade (RFC 6455, section 4.2).

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::codec::nats::connect::CookieCredentials;

/// Largest size of the request line and headers in bytes. A larger request is refused with status 431.
pub const UPGRADE_BYTES_MAX: usize = 16 * 1024;
/// Largest number of headers in a request. A request with more is refused with status 431.
pub(super) const HEADERS_MAX: usize = 64;
/// Suffix that is appended to the key before hashing (RFC 6455, section 1.3).
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Compression in the response, without state between messages on either side.
pub(super) const DEFLATE: &str =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

/// A listener's requirements for an upgrade.
#[derive(Clone, Debug, Default)]
pub struct UpgradeRules {
    /// Whether the listener uses TLS, which determines the default port of its own origin.
    pub is_tls: bool,
    /// Whether a page may connect only to the origin from which it was loaded.
    pub same_origin: bool,
    /// Origins whose pages may connect; empty allows all.
    pub allowed_origins: Vec<Origin>,
    /// Whether compression may be negotiated.
    pub compression: bool,
    /// Names of cookies with credentials.
    pub cookies: CookieNames,
    /// Additional lines of the response, each with its line end.
    pub extra_headers: String,
    /// Whether MQTT is served: with a path that ends with `/mqtt`, or with the subprotocol `mqtt`.
    pub mqtt: bool,
    /// Whether leaf nodes are served: with a path that ends with `/leafnode`.
    pub leafnodes: bool,
}

/// Names of the cookies with credentials.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "named after the credentials")]
pub struct CookieNames {
    pub jwt: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub token: Option<String>,
}

/// The origin of a page: scheme, host, and port (RFC 6454).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// Parses an origin such as `https://example.org:8443`. Returns `None` if it is not a web origin.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once("://")?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return None,
        };
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        Origin::of_host(authority, is_tls)
    }

    /// Returns the origin for the host of a request.
    fn of_host(authority: &str, is_tls: bool) -> Option<Self> {
        let default_port = if is_tls { 443 } else { 80 };
        if authority.contains(['#', '@']) {
            return None;
        }
        let after_host = authority.rfind(']').map_or(0, |end| end + 1);
        let (host, port) = match authority[after_host..].rfind(':') {
            Some(colon) => {
                let (host, port) = authority.split_at(after_host + colon);
                (host, port[1..].parse().ok()?)
            }
            None => (authority, default_port),
        };
        (!host.is_empty()).then(|| Origin {
            is_tls,
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

/// The result of an upgrade request.
#[derive(Debug)]
pub enum UpgradeResult {
    /// The request is incomplete.
    Partial,
    /// The upgrade is refused. The caller writes the response and closes the connection.
    Refused(Refusal),
    /// The upgrade is accepted.
    Granted(Box<Upgrade>),
}

/// The HTTP status of a refused upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status code and text.
    pub status: &'static str,
}

impl Refusal {
    /// Returns the whole response.
    pub fn response(self) -> String {
        let status = self.status;
        let text = status.split_once(' ').map_or(status, |(_, text)| text);
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Sec-WebSocket-Version: 13\r\nX-Content-Type-Options: nosniff\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{text}\n",
            text.len() + 1
        )
    }
}

const BAD_REQUEST: Refusal = Refusal {
    status: "400 Bad Request",
};

/// An accepted upgrade.
#[derive(Clone, Debug, Default)]
pub struct Upgrade {
    /// Response to write.
    pub response: String,
    /// Length of the request in bytes. Frames follow it.
    pub request_bytes: usize,
    /// Negotiated compression.
    pub compression: Compression,
    /// Whether the client masks its frames.
    pub is_masked: bool,
    /// Whether the client is a browser.
    pub is_browser: bool,
    /// Client address from a header. Any client can set the header, so the address is only logged.
    pub forwarded_for: Option<IpAddr>,
    /// Credentials from cookies.
    pub cookies: CookieCredentials,
    /// Whether the connection uses MQTT.
    pub is_mqtt: bool,
    /// Whether this is a leaf connection between two servers.
    pub is_leaf: bool,
    /// Whether this side masks its frames, because it has sent the upgrade request.
    pub masks: bool,
}

/// The compression of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    Off,
    /// permessage-deflate in both directions.
    Deflate,
}

/// Parses an upgrade request.
pub fn upgrade(bytes: &[u8], rules: &UpgradeRules) -> UpgradeResult {
    let mut room = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut room);
    let request_bytes = match request.parse(bytes) {
        Ok(httparse::Status::Complete(taken)) => taken,
        Ok(httparse::Status::Partial) if bytes.len() < UPGRADE_BYTES_MAX => {
            return UpgradeResult::Partial;
        }
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return UpgradeResult::Refused(Refusal {
                status: "431 Request Header Fields Too Large",
            });
        }
        Err(httparse::Error::Version) => {
            return UpgradeResult::Refused(Refusal {
                status: "505 HTTP Version Not Supported",
            });
        }
        Err(_) => return UpgradeResult::Refused(BAD_REQUEST),
    };
    let headers = Headers(request.headers);
    let path = request.path.unwrap_or_default();
    match agree(request.method.unwrap_or_default(), path, &headers, rules) {
        Ok(agreed) => UpgradeResult::Granted(Box::new(Upgrade {
            request_bytes,
            ..agreed
        })),
        Err(refusal) => UpgradeResult::Refused(refusal),
    }
}

fn agree(
    method: &str,
    path: &str,
    headers: &Headers<'_>,
    rules: &UpgradeRules,
) -> Result<Upgrade, Refusal> {
    let path = path.split('?').next().unwrap_or_default();
    if path == "*" {
        return Err(BAD_REQUEST);
    }
    let is_leaf = path.ends_with("/leafnode");
    let names_mqtt = headers.has("Sec-WebSocket-Protocol", "mqtt");
    // MQTT-6.0.0-3 requires clients to name the subprotocol, but nats-server considers only the path.
    let is_mqtt = path.ends_with("/mqtt") || names_mqtt && rules.mqtt && !is_leaf;
    if is_mqtt && !rules.mqtt || is_leaf && !rules.leafnodes {
        return Err(Refusal {
            status: "404 Not Found",
        });
    }
    if method != "GET" {
        return Err(Refusal {
            status: "405 Method Not Allowed",
        });
    }
    let mut hosts = headers.all("Host");
    let (Some(host), None) = (hosts.next().filter(|host| !host.is_empty()), hosts.next()) else {
        return Err(BAD_REQUEST);
    };
    let key = headers.one("Sec-WebSocket-Key").unwrap_or_default();
    let is_key = BASE64.decode(key).is_ok_and(|key| key.len() == 16);
    let is_upgrade = headers.has("Upgrade", "websocket")
        && headers.has("Connection", "upgrade")
        && headers.has("Sec-WebSocket-Version", "13");
    if !(is_upgrade && is_key) {
        return Err(BAD_REQUEST);
    }
    let origin = headers.one("Origin").filter(|origin| !origin.is_empty());
    // Before RFC 6455, the header had this name.
    let origin = origin.or_else(|| headers.one("Sec-WebSocket-Origin"));
    if !is_origin_allowed(origin, host, rules) {
        return Err(Refusal {
            status: "403 Forbidden",
        });
    }
    let compression = match rules.compression && offers_deflate(headers) {
        true => Compression::Deflate,
        false => Compression::Off,
    };
    let is_masked = headers.one("Nats-No-Masking") != Some("true");
    let mut extra = rules.extra_headers.clone();
    // MQTT-6.0.0-4.
    if is_mqtt && names_mqtt {
        extra.push_str("Sec-WebSocket-Protocol: mqtt\r\n");
    }
    Ok(Upgrade {
        response: response(key, compression, is_masked, &extra),
        request_bytes: 0,
        compression,
        is_masked,
        is_browser: headers
            .one("User-Agent")
            .is_some_and(|agent| agent.starts_with("Mozilla/")),
        forwarded_for: forwarded_for(headers),
        cookies: cookies(headers, &rules.cookies),
        is_mqtt,
        is_leaf,
        masks: false,
    })
}

fn response(key: &str, compression: Compression, is_masked: bool, extra: &str) -> String {
    let accept = accept_of(key);
    let mut response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n"
    );
    if compression == Compression::Deflate {
        response.push_str("Sec-WebSocket-Extensions: ");
        response.push_str(DEFLATE);
        response.push_str("\r\n");
    }
    if !is_masked {
        response.push_str("Nats-No-Masking: true\r\n");
    }
    response.push_str(extra);
    response.push_str("\r\n");
    response
}

/// Returns the header value that proves that a key was received (RFC 6455, section 4.2.2).
pub(super) fn accept_of(key: &str) -> String {
    let joined = format!("{key}{MAGIC}");
    BASE64.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, joined.as_bytes()))
}

/// Returns whether the origin of a request is allowed. A client that sends no origin is not a browser, so it
/// cannot be misused by web pages (RFC 6455, section 1.6).
fn is_origin_allowed(origin: Option<&str>, host: &str, rules: &UpgradeRules) -> bool {
    let is_free = !rules.same_origin && rules.allowed_origins.is_empty();
    let Some(origin) = origin.filter(|origin| !is_free && !origin.is_empty()) else {
        return true;
    };
    let Some(origin) = Origin::parse(origin) else {
        return false;
    };
    let is_same = || Origin::of_host(host, rules.is_tls).as_ref() == Some(&origin);
    (!rules.same_origin || is_same())
        && (rules.allowed_origins.is_empty() || rules.allowed_origins.contains(&origin))
}

/// Returns whether an offer of compression is acceptable (RFC 7692, section 5.1). An offer is not acceptable
/// if it requests a smaller window of this side, or has an unknown parameter.
fn offers_deflate(headers: &Headers<'_>) -> bool {
    let offers = headers.all("Sec-WebSocket-Extensions");
    let mut offers = offers.flat_map(|value| value.split(','));
    offers.any(|offer| {
        let mut parts = offer.split(';').map(str::trim);
        let is_deflate = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("permessage-deflate"));
        is_deflate && parts.all(can_meet)
    })
}

fn can_meet(parameter: &str) -> bool {
    let (name, value) = match parameter.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
        None => (parameter, None),
    };
    match (name, value) {
        ("server_no_context_takeover" | "client_no_context_takeover", None) => true,
        ("server_max_window_bits", Some("15")) | ("client_max_window_bits", None) => true,
        ("client_max_window_bits", Some(bits)) => {
            bits.parse().is_ok_and(|bits: u8| (8..=15).contains(&bits))
        }
        _ => false,
    }
}

fn forwarded_for(headers: &Headers<'_>) -> Option<IpAddr> {
    let value = headers.one("X-Forwarded-For")?;
    value
        .split(',')
        .find_map(|address| address.trim().parse().ok())
}

fn cookies(headers: &Headers<'_>, names: &CookieNames) -> CookieCredentials {
    let cookie = |wanted: &Option<String>| {
        let wanted = wanted.as_deref()?;
        let mut pairs = headers.all("Cookie").flat_map(|value| value.split(';'));
        pairs.find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            (name.trim() == wanted).then(|| value.trim().trim_matches('"').to_owned())
        })
    };
    CookieCredentials {
        jwt: cookie(&names.jwt).unwrap_or_default(),
        user: cookie(&names.user).unwrap_or_default(),
        password: cookie(&names.password).unwrap_or_default(),
        token: cookie(&names.token).unwrap_or_default(),
    }
}

/// Headers by name, case-insensitive.
pub(super) struct Headers<'a>(pub(super) &'a [httparse::Header<'a>]);

impl<'a> Headers<'a> {
    /// Returns the values of a header that are UTF-8.
    pub(super) fn all(&self, name: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
        let named = self
            .0
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.filter_map(|header| std::str::from_utf8(header.value).ok())
    }

    pub(super) fn one(&self, name: &'static str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Returns whether one of the comma-separated values equals `value`.
    pub(super) fn has(&self, name: &'static str, value: &str) -> bool {
        let mut values = self.all(name).flat_map(|all| all.split(','));
        values.any(|one| one.trim().eq_ignore_ascii_case(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a request. The headers in `changes` replace the usual headers, or are added.
    fn request(start: &str, changes: &[(&str, &str)]) -> String {
        let mut headers = vec![
            ("Host", "example.org:9222"),
            ("Upgrade", "websocket"),
            ("Connection", "keep-alive, Upgrade"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Sec-WebSocket-Version", "13"),
        ];
        for (name, value) in changes {
            headers.retain(|(known, _)| known != name);
            headers.push((name, value));
        }
        let lines = headers.iter().filter(|(_, value)| !value.is_empty());
        let lines: String = lines
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        format!("{start} HTTP/1.1\r\n{lines}\r\n")
    }

    fn ask(start: &str, changes: &[(&str, &str)], rules: &UpgradeRules) -> Result<Upgrade, String> {
        match upgrade(request(start, changes).as_bytes(), rules) {
            UpgradeResult::Granted(upgrade) => Ok(*upgrade),
            UpgradeResult::Refused(refusal) => Err(refusal.status[..3].into()),
            UpgradeResult::Partial => Err("partial".into()),
        }
    }

    #[test]
    fn example_of_the_rfc_is_upgraded() {
        let text = request("GET /chat", &[]);
        let granted = ask("GET /chat", &[], &UpgradeRules::default()).unwrap();
        assert_eq!(granted.request_bytes, text.len());
        assert!(granted.is_masked && !granted.is_browser);
        assert_eq!(
            granted.response,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        );
        for end in 0..text.len() {
            let result = upgrade(&text.as_bytes()[..end], &UpgradeRules::default());
            assert!(matches!(result, UpgradeResult::Partial), "{end}");
        }
    }

    #[test]
    fn invalid_upgrades_are_refused() {
        let cases: &[(&str, &str, &str, &str)] = &[
            ("POST /", "Host", "a", "405"),
            ("GET /mqtt", "Host", "a", "404"),
            ("GET /a/leafnode?x", "Host", "a", "404"),
            ("GET /", "Host", "", "400"),
            ("GET *", "Host", "a", "400"),
            ("GET /", "Upgrade", "", "400"),
            ("GET /", "Upgrade", "h2c", "400"),
            ("GET /", "Connection", "keep-alive", "400"),
            ("GET /", "Sec-WebSocket-Key", "", "400"),
            ("GET /", "Sec-WebSocket-Key", "c2hvcnQ=", "400"),
            ("GET /", "Sec-WebSocket-Version", "12", "400"),
        ];
        for (start, header, value, status) in cases {
            let refused = ask(start, &[(header, value)], &UpgradeRules::default()).err();
            assert_eq!(
                refused.as_deref(),
                Some(*status),
                "{start} {header}: {value}"
            );
        }
        let broken = upgrade(b"\x16\x03\x01 hello\r\n\r\n", &UpgradeRules::default());
        assert!(
            matches!(broken, UpgradeResult::Refused(BAD_REQUEST)),
            "{broken:?}"
        );
    }

    #[test]
    fn mqtt_is_selected_by_path_or_subprotocol() {
        let rules = UpgradeRules {
            mqtt: true,
            ..UpgradeRules::default()
        };
        let says = [("Sec-WebSocket-Protocol", "mqtt")];
        let old = [("Sec-WebSocket-Protocol", "mqttv3.1")];
        for (start, changes, is_mqtt) in [
            ("GET /a/mqtt?b", &says[..], true),
            ("GET /mqtt", &[][..], true),
            ("GET /mqtt", &old[..], true),
            ("GET /", &says[..], true),
            ("GET /", &old[..], false),
            ("GET /mqtt/", &[][..], false),
        ] {
            let granted = ask(start, changes, &rules).unwrap();
            assert_eq!(granted.is_mqtt, is_mqtt, "{start} {changes:?}");
            // MQTT-6.0.0-4.
            let is_named = granted
                .response
                .contains("\r\nSec-WebSocket-Protocol: mqtt\r\n");
            assert_eq!(is_named, changes == says, "{start} {changes:?}");
        }
        let off = ask("GET /", &says, &UpgradeRules::default()).unwrap();
        assert!(!off.is_mqtt && !off.response.contains("mqtt"));
    }

    #[test]
    fn large_requests_are_refused() {
        let long = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(UPGRADE_BYTES_MAX));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(65));
        for text in [long, many] {
            match upgrade(text.as_bytes(), &UpgradeRules::default()) {
                UpgradeResult::Refused(refusal) => assert!(refusal.status.starts_with("431")),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn pages_are_admitted_by_origin() {
        let same = UpgradeRules {
            same_origin: true,
            ..UpgradeRules::default()
        };
        let listed = UpgradeRules {
            allowed_origins: vec![Origin::parse("https://a.example").unwrap()],
            ..UpgradeRules::default()
        };
        for (rules, origin, expected) in [
            (&UpgradeRules::default(), "https://evil.example", true),
            (&same, "", true),
            (&same, "http://example.org:9222", true),
            (&same, "http://EXAMPLE.org:9222", true),
            (&same, "http://example.org", false),
            (&same, "https://example.org:9222", false),
            (&same, "http://evil.example:9222", false),
            (&same, "null", false),
            (&listed, "https://a.example", true),
            (&listed, "https://a.example:443", true),
            (&listed, "http://a.example", false),
            (&listed, "https://a.example:444", false),
            (&listed, "https://b.example", false),
            (&listed, "https://a.example#.b.example", false),
            (&listed, "https://a.example@b.example", false),
        ] {
            let granted = ask("GET /", &[("Origin", origin)], rules);
            assert_eq!(
                granted.map(|_| true).map_err(|status| status == "403"),
                if expected { Ok(true) } else { Err(true) },
                "{origin}"
            );
        }
    }

    #[test]
    fn compression_is_negotiated_for_acceptable_offers() {
        let rules = UpgradeRules {
            compression: true,
            ..UpgradeRules::default()
        };
        for (offer, expected) in [
            ("permessage-deflate", true),
            ("permessage-deflate; client_max_window_bits", true),
            ("permessage-deflate; client_max_window_bits=10", true),
            ("permessage-deflate; server_no_context_takeover", true),
            ("x-webkit-deflate-frame, permessage-deflate", true),
            ("permessage-deflate; server_max_window_bits=10", false),
            (
                "permessage-deflate; server_max_window_bits=10, permessage-deflate",
                true,
            ),
            ("permessage-deflate; surprise", false),
            ("permessage-bzip2", false),
            ("", false),
        ] {
            let granted = ask("GET /", &[("Sec-WebSocket-Extensions", offer)], &rules).unwrap();
            assert_eq!(
                granted.compression == Compression::Deflate,
                expected,
                "{offer}"
            );
            assert_eq!(granted.response.contains(DEFLATE), expected, "{offer}");
            let without = ask(
                "GET /",
                &[("Sec-WebSocket-Extensions", offer)],
                &UpgradeRules::default(),
            );
            assert_eq!(without.unwrap().compression, Compression::Off);
        }
    }

    #[test]
    fn forwarded_address_and_cookies_are_read() {
        let rules = UpgradeRules {
            cookies: CookieNames {
                user: Some("who".into()),
                password: Some("what".into()),
                jwt: Some("jwt".into()),
                token: None,
            },
            extra_headers: "X-Served-By: us\r\n".into(),
            ..UpgradeRules::default()
        };
        let changes = [
            ("Cookie", "a=b; who=ada; what=\"s3cret\"; token=t"),
            ("X-Forwarded-For", "unknown, 203.0.113.7, 10.0.0.1"),
            ("Nats-No-Masking", "true"),
            ("User-Agent", "Mozilla/5.0"),
        ];
        let granted = ask("GET /", &changes, &rules).unwrap();
        assert_eq!(granted.cookies.user, "ada");
        assert_eq!(granted.cookies.password, "s3cret");
        assert_eq!(granted.cookies.token, "");
        assert_eq!(granted.forwarded_for, "203.0.113.7".parse().ok());
        assert!(!granted.is_masked && granted.is_browser);
        assert!(granted.response.contains("Nats-No-Masking: true\r\n"));
        assert!(granted.response.ends_with("X-Served-By: us\r\n\r\n"));
    }
}
