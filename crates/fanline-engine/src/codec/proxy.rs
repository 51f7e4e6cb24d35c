//! The PROXY protocol, versions 1 and 2: a header from a proxy with the address of the forwarded client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// First bytes of a version 2 header.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Largest length of a version 1 line in bytes, including its CRLF.
const LINE_BYTES_MAX: usize = 107;
/// Length in bytes of the fixed part of a version 2 header.
const HEAD_BYTES: usize = 16;
/// Largest length in bytes of the variable part of a version 2 header. If it is longer, the connection is
/// closed.
const BODY_BYTES_MAX: usize = 2048;

/// Largest number of bytes needed to parse a header.
pub const PROXY_BYTES_MAX: usize = HEAD_BYTES + BODY_BYTES_MAX;

/// The first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxied {
    /// More bytes are needed.
    Partial,
    /// There is no header. The bytes belong to the connection itself.
    Not,
    /// A header. Without a source, the proxy itself is the client.
    Header {
        /// Length of the header.
        bytes: usize,
        /// Address of the client.
        source: Option<SocketAddr>,
    },
    /// An invalid header, with the reason. The caller must disconnect.
    Wrong(&'static str),
}

/// Parses the first bytes of a connection.
pub fn proxied(bytes: &[u8]) -> Proxied {
    let begins = |with: &[u8]| {
        let both = with.len().min(bytes.len());
        bytes[..both] == with[..both]
    };
    if begins(SIGNATURE) {
        return version_2(bytes);
    }
    if begins(b"PROXY ") {
        return version_1(bytes);
    }
    Proxied::Not
}

fn version_1(bytes: &[u8]) -> Proxied {
    let seen = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = seen.windows(2).position(|pair| pair == b"\r\n") else {
        return match bytes.len() < LINE_BYTES_MAX {
            true => Proxied::Partial,
            false => Proxied::Wrong("a PROXY protocol line of more than 107 bytes"),
        };
    };
    let words: Vec<&str> = match std::str::from_utf8(&seen[..end]) {
        Ok(line) => line.split(' ').collect(),
        Err(_) => return Proxied::Wrong("a PROXY protocol line that is not UTF-8"),
    };
    let bytes = end + 2;
    let source = match words[..] {
        ["PROXY", "UNKNOWN", ..] => None,
        ["PROXY", "TCP4", from, to, from_port, to_port] => {
            let is_fine = to.parse::<Ipv4Addr>().is_ok() && port(to_port).is_some();
            let ip = from.parse().ok().map(IpAddr::V4).filter(|_| is_fine);
            match ip.zip(port(from_port)) {
                Some(source) => Some(SocketAddr::from(source)),
                None => return Proxied::Wrong("an invalid address in the PROXY protocol line"),
            }
        }
        ["PROXY", "TCP6", from, to, from_port, to_port] => {
            let is_fine = to.parse::<Ipv6Addr>().is_ok() && port(to_port).is_some();
            let ip = from.parse().ok().map(IpAddr::V6).filter(|_| is_fine);
            match ip.zip(port(from_port)) {
                Some(source) => Some(SocketAddr::from(source)),
                None => return Proxied::Wrong("an invalid address in the PROXY protocol line"),
            }
        }
        _ => return Proxied::Wrong("a malformed PROXY protocol line"),
    };
    Proxied::Header { bytes, source }
}

/// Parses digits without a sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain && is_short)
}

fn version_2(bytes: &[u8]) -> Proxied {
    let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else {
        return Proxied::Partial;
    };
    let (command, family) = (head[12], head[13]);
    let body_bytes = usize::from(u16::from_be_bytes([head[14], head[15]]));
    if command >> 4 != 2 {
        return Proxied::Wrong("an unknown PROXY protocol version");
    }
    if body_bytes > BODY_BYTES_MAX {
        return Proxied::Wrong("a PROXY protocol header that is too long");
    }
    let Some(body) = rest.get(..body_bytes) else {
        return Proxied::Partial;
    };
    let bytes = HEAD_BYTES + body_bytes;
    let source = match (command & 0x0f, family) {
        // LOCAL: the proxy itself connects, for example for a health check.
        (0, _) => None,
        (1, 0x11) => match *body {
            [a, b, c, d, _, _, _, _, high, low, ..] => {
                Some((IpAddr::from([a, b, c, d]), u16::from_be_bytes([high, low])))
            }
            [..] if body.len() < 12 => {
                return Proxied::Wrong("a PROXY protocol header that is too short");
            }
            _ => None,
        },
        (1, 0x21) => match (body.first_chunk::<16>(), body.get(32..36)) {
            (Some(ip), Some(ports)) => {
                Some((IpAddr::from(*ip), u16::from_be_bytes([ports[0], ports[1]])))
            }
            _ => return Proxied::Wrong("a PROXY protocol header that is too short"),
        },
        // Headers of Unix sockets and of unspecified families are accepted, but contain no IP address.
        (1, 0x00 | 0x31 | 0x32 | 0x12 | 0x22) => None,
        _ => return Proxied::Wrong("an unknown PROXY protocol command"),
    };
    Proxied::Header {
        bytes,
        source: source.map(SocketAddr::from),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        bytes.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8], source: Option<&str>) {
        let source = source.map(|text| text.parse().unwrap());
        let header = Proxied::Header {
            bytes: bytes.len(),
            source,
        };
        assert_eq!(proxied(bytes), header);
        for end in 0..bytes.len() {
            assert_eq!(proxied(&bytes[..end]), Proxied::Partial, "{end}");
        }
        let followed = [bytes, b"CONNECT {}\r\n"].concat();
        assert_eq!(proxied(&followed), header);
    }

    #[test]
    fn both_versions_contain_the_client_address() {
        check(
            b"PROXY TCP4 203.0.113.7 10.0.0.1 5000 4222\r\n",
            Some("203.0.113.7:5000"),
        );
        check(
            b"PROXY TCP6 2001:db8::7 ::1 5000 4222\r\n",
            Some("[2001:db8::7]:5000"),
        );
        check(b"PROXY UNKNOWN\r\n", None);
        let v4 = [203, 0, 113, 7, 10, 0, 0, 1, 19, 136, 16, 126];
        check(&v2(0x21, 0x11, &v4), Some("203.0.113.7:5000"));
        check(
            &v2(0x21, 0x11, &[&v4[..], b"\x04\0\x01x"].concat()),
            Some("203.0.113.7:5000"),
        );
        let mut v6 = [0; 36];
        (v6[0], v6[1], v6[15], v6[32], v6[33]) = (0x20, 0x01, 7, 19, 136);
        check(&v2(0x21, 0x21, &v6), Some("[2001::7]:5000"));
        check(&v2(0x20, 0, b""), None);
        check(&v2(0x21, 0, b""), None);
        check(&v2(0x21, 0x31, &[0; 216]), None);
    }

    #[test]
    fn invalid_headers_differ_from_missing_ones() {
        for bytes in [
            &b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n"[..],
            b"PROXY TCP4 1.2.3.4 5.6.7.8 1 99999\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n",
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n",
            b"PROXY \xff\r\n",
            &[&b"PROXY "[..], &[b'x'; 200]].concat(),
            &v2(0x11, 0x11, &[0; 12]),
            &v2(0x22, 0x11, &[0; 12]),
            &v2(0x21, 0x11, &[0; 9]),
            &v2(0x21, 0x21, &[0; 35]),
            &v2(0x21, 0x11, &[0; 3000]),
        ] {
            assert!(matches!(proxied(bytes), Proxied::Wrong(_)), "{bytes:?}");
        }
        for bytes in [
            &b"CONNECT {}\r\n"[..],
            b"PUB a 0\r\n",
            b"\x16\x03\x01",
            b"\r\nPING\r\n",
        ] {
            assert_eq!(proxied(bytes), Proxied::Not, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..60), first in any::<bool>()) {
            let start: &[u8] = if first { b"PROXY TCP4 " } else { SIGNATURE };
            let bytes = [start, &body].concat();
            let verdict = proxied(&bytes);
            if let Proxied::Header { bytes: taken, .. } = verdict {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
