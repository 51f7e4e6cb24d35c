//! Client side of the WebSocket upgrade (RFC 6455, section 4.1), for leaf connections that this server dials.

use super::handshake::{
    Compression, DEFLATE, HEADERS_MAX, Headers, UPGRADE_BYTES_MAX, Upgrade, accept_of,
};

/// The parameters of an upgrade request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpgradeRequest {
    /// `host:port` of the address that is dialed.
    pub host: String,
    /// The path, which begins with a slash.
    pub path: String,
    /// Whether compression is offered.
    pub compression: bool,
    /// Whether unmasked frames are requested.
    pub no_masking: bool,
    /// Sixteen unpredictable bytes in base64.
    pub key: String,
}

/// The result of an upgrade request.
#[derive(Debug)]
pub enum UpgradeResponse {
    /// The response is incomplete.
    Partial,
    /// The upgrade failed, with the reason.
    Refused(String),
    /// The upgrade succeeded. [`Upgrade::request_bytes`] is the length of the response, which frames follow.
    Granted(Box<Upgrade>),
}

impl UpgradeRequest {
    /// Returns the whole request.
    pub fn text(&self) -> String {
        let UpgradeRequest {
            host, path, key, ..
        } = self;
        let mut request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        );
        if self.no_masking {
            request.push_str("Nats-No-Masking: true\r\n");
        }
        if self.compression {
            request.push_str("Sec-WebSocket-Extensions: ");
            request.push_str(DEFLATE);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request
    }

    /// Parses the response.
    pub fn parse_response(&self, bytes: &[u8]) -> UpgradeResponse {
        let mut room = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut room);
        let response_bytes = match response.parse(bytes) {
            Ok(httparse::Status::Complete(taken)) => taken,
            Ok(httparse::Status::Partial) if bytes.len() < UPGRADE_BYTES_MAX => {
                return UpgradeResponse::Partial;
            }
            _ => {
                return UpgradeResponse::Refused(
                    "the response to the WebSocket upgrade is not HTTP".into(),
                );
            }
        };
        let headers = Headers(response.headers);
        let code = response.code.unwrap_or_default();
        if code != 101 {
            let reason = response.reason.unwrap_or_default();
            return UpgradeResponse::Refused(format!(
                "the WebSocket upgrade was refused with status {code} {reason}"
            ));
        }
        match self.agree(&headers) {
            Ok(agreed) => UpgradeResponse::Granted(Box::new(Upgrade {
                request_bytes: response_bytes,
                ..agreed
            })),
            Err(what) => UpgradeResponse::Refused(format!(
                "the response to the WebSocket upgrade has {what}"
            )),
        }
    }

    fn agree(&self, headers: &Headers<'_>) -> Result<Upgrade, &'static str> {
        if !(headers.has("Upgrade", "websocket") && headers.has("Connection", "upgrade")) {
            return Err("no valid Upgrade and Connection headers");
        }
        if headers.one("Sec-WebSocket-Accept") != Some(accept_of(&self.key).as_str()) {
            return Err("a wrong Sec-WebSocket-Accept");
        }
        let mut compression = Compression::Off;
        for extension in headers.all("Sec-WebSocket-Extensions") {
            let parts: Vec<&str> = extension.split(';').map(str::trim).collect();
            let keeps_nothing = parts.contains(&"server_no_context_takeover")
                && parts.contains(&"client_no_context_takeover");
            // The request did not offer any other extension (RFC 6455, section 9.1).
            if !self.compression || parts.first() != Some(&"permessage-deflate") || !keeps_nothing {
                return Err("an extension that was not offered");
            }
            compression = Compression::Deflate;
        }
        Ok(Upgrade {
            compression,
            is_masked: false,
            masks: !(self.no_masking && headers.has("Nats-No-Masking", "true")),
            is_leaf: true,
            ..Upgrade::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{UpgradeResult, UpgradeRules, upgrade};
    use super::*;

    fn request() -> UpgradeRequest {
        UpgradeRequest {
            host: "hub.example:443".into(),
            path: "/some/leafnode".into(),
            compression: true,
            no_masking: true,
            key: "AQIDBAUGBwgJCgsMDQ4PEA==".into(),
        }
    }

    #[test]
    fn upgrade_between_servers_succeeds() {
        for (compression, no_masking) in [(false, false), (true, false), (true, true)] {
            let request = UpgradeRequest {
                no_masking,
                ..request()
            };
            let rules = UpgradeRules {
                compression,
                leafnodes: true,
                ..UpgradeRules::default()
            };
            let UpgradeResult::Granted(granted) = upgrade(request.text().as_bytes(), &rules) else {
                panic!("not granted");
            };
            assert!(granted.is_leaf && granted.is_masked != no_masking);
            let answer = [granted.response.as_bytes(), b"\x82\x00"].concat();
            for end in 0..granted.response.len() {
                assert!(matches!(
                    request.parse_response(&answer[..end]),
                    UpgradeResponse::Partial
                ));
            }
            let UpgradeResponse::Granted(agreed) = request.parse_response(&answer) else {
                panic!("not understood");
            };
            assert_eq!(agreed.request_bytes, granted.response.len());
            assert_eq!(agreed.compression, granted.compression);
            assert_eq!((agreed.masks, agreed.is_masked), (!no_masking, false));
        }
        let none = upgrade(request().text().as_bytes(), &UpgradeRules::default());
        assert!(matches!(none, UpgradeResult::Refused(_)));
    }

    #[test]
    fn invalid_responses_are_refused() {
        let ok =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
        let accept = format!("Sec-WebSocket-Accept: {}\r\n", accept_of(&request().key));
        for (answer, expected) in [
            ("INFO {}\r\n".to_owned(), "not HTTP"),
            ("HTTP/1.1 404 Not Found\r\n\r\n".into(), "404 Not Found"),
            (format!("{ok}\r\n"), "Sec-WebSocket-Accept"),
            (format!("HTTP/1.1 101 Sure\r\n{accept}\r\n"), "headers"),
            (
                format!("{ok}{accept}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
                "an extension",
            ),
        ] {
            match request().parse_response(answer.as_bytes()) {
                UpgradeResponse::Refused(why) => assert!(why.contains(expected), "{why}"),
                other => panic!("{answer}: {other:?}"),
            }
        }
    }
}
