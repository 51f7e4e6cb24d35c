//! WebSocket on its own listener: upgrade, frames, compression, and close.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use fanline_engine::codec::websocket::{Deflater, unmask};
use fanline_server::auth::{Access, AccessConfig, User};
use fanline_server::{Auth, Limits, Options, WebSocketOptions};

use crate::raw::{TestServer, options};
use crate::transports::{Authority, ByteClient, TlsClient, connect};

const MASK: [u8; 4] = [9, 7, 5, 3];

fn server(websocket: WebSocketOptions) -> TestServer {
    TestServer::with(Options {
        websocket: Some(websocket),
        ..options(2)
    })
}

fn address(server: &TestServer) -> SocketAddr {
    server.handle.addresses().websocket.expect("it is on")
}

fn request(extra: &str) -> String {
    request_for("/", extra)
}

fn request_for(target: &str, extra: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{extra}\r\n"
    )
}

/// Returns a masked frame of a client.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        len @ 0..=125 => bytes.push(0x80 | u8::try_from(len).expect("short")),
        len @ 126..=65_535 => {
            bytes.push(0x80 | 126);
            bytes.extend(u16::try_from(len).expect("medium").to_be_bytes());
        }
        len => {
            bytes.push(0x80 | 127);
            bytes.extend((len as u64).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    let from = bytes.len();
    bytes.extend_from_slice(payload);
    unmask(&mut bytes[from..], MASK, 0);
    bytes
}

/// A frame of the server.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    first: u8,
    payload: Vec<u8>,
}

/// An upgraded WebSocket client.
pub(crate) struct Page<S> {
    connection: ByteClient<S>,
    response: String,
    /// Unread data of frames.
    data: Vec<u8>,
}

impl<S: Read + Write> Page<S> {
    pub(crate) fn over(stream: S, extra: &str) -> Self {
        Page::at("/", stream, extra)
    }

    /// Upgrades at this path.
    pub(crate) fn at(target: &str, stream: S, extra: &str) -> Self {
        let mut connection = ByteClient::new(stream);
        connection.send(request_for(target, extra));
        let response = connection.read_until("\r\n\r\n");
        assert!(response.starts_with("HTTP/1.1 101 "), "{response}");
        Page {
            connection,
            response,
            data: Vec::new(),
        }
    }

    fn send(&mut self, text: impl AsRef<[u8]>) {
        self.connection.send(frame(0x82, text.as_ref()));
    }

    fn frame(&mut self) -> Option<Heard> {
        let head = self.take(2)?;
        let len = match head[1] {
            126 => {
                let len = self.take(2)?;
                usize::from(u16::from_be_bytes([len[0], len[1]]))
            }
            127 => {
                let len = self.take(8)?;
                usize::try_from(u64::from_be_bytes(len.try_into().expect("eight bytes")))
                    .expect("a size")
            }
            short => usize::from(short),
        };
        let payload = self.take(len)?;
        Some(Heard {
            first: head[0],
            payload,
        })
    }

    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let mut room = [0; 16 * 1024];
        while self.connection.received.len() < bytes {
            match self.connection.stream.read(&mut room) {
                Ok(read) if read > 0 => self.connection.received.extend_from_slice(&room[..read]),
                _ => return None,
            }
        }
        Some(self.connection.received.drain(..bytes).collect())
    }

    /// Reads frames until their data contains a text.
    #[track_caller]
    fn until(&mut self, wanted: &str) -> String {
        loop {
            let at = self
                .data
                .windows(wanted.len())
                .position(|w| w == wanted.as_bytes());
            if let Some(at) = at {
                let taken: Vec<u8> = self.data.drain(..at + wanted.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            let received = self.frame().expect("more comes");
            match received.first {
                0x82 => self.data.extend(received.payload),
                0xc2 => self.data.extend(inflate(&received.payload)),
                _ => panic!("{received:?}"),
            }
        }
    }

    /// Returns the code of the close frame.
    #[track_caller]
    fn close_code(&mut self) -> u16 {
        loop {
            let received = self.frame().expect("a close frame comes");
            if received.first == 0x88 {
                return u16::from_be_bytes([received.payload[0], received.payload[1]]);
            }
        }
    }

    fn connect(&mut self) {
        self.until("\r\n");
        self.send("CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n");
        self.until("PONG\r\n");
    }
}

/// Reads the payload of frames, until the close frame.
impl<S: Read + Write> Read for Page<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.data.is_empty() {
            match self.frame() {
                Some(received) if received.first == 0x82 => self.data = received.payload,
                _ => return Ok(0),
            }
        }
        let taken = room.len().min(self.data.len());
        room[..taken].copy_from_slice(&self.data[..taken]);
        self.data.drain(..taken);
        Ok(taken)
    }
}

impl<S: Read + Write> Write for Page<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stream = &mut self.connection.stream;
        stream.write_all(&frame(0x82, bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.connection.stream.flush()
    }
}

fn inflate(payload: &[u8]) -> Vec<u8> {
    let mut inflater = fanline_engine::codec::websocket::Inflater::new(1 << 26);
    let mut room = vec![0; 1 << 20];
    let mut out = Vec::new();
    let mut at = 0;
    while at < payload.len() {
        let inflated = inflater.feed(&payload[at..], &mut room).expect("deflate");
        out.extend_from_slice(&room[..inflated.written]);
        at += inflated.taken;
    }
    while let Some(written) = inflater.finish(&mut room).expect("deflate") {
        out.extend_from_slice(&room[..written]);
    }
    out
}

fn deflate(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Deflater::default().message([payload].into_iter(), &mut out);
    out
}

fn page(server: &TestServer, extra: &str) -> Page<TcpStream> {
    Page::over(connect(address(server)), extra)
}

#[test]
fn messages_go_both_ways() {
    let server = server(WebSocketOptions::default());
    let mut one = page(&server, "");
    let info = one.until("\r\n");
    let port = address(&server).port();
    assert!(info.contains(&format!("\"port\":{port},")), "{info}");
    one.send("CONNECT {\"verbose\":false}\r\nSUB a.* 1\r\nPING\r\n");
    one.until("PONG\r\n");
    // Messages are exchanged with a client over plain TCP, in both directions.
    let mut other = server.client();
    other.subscribe("b", "7");
    other.publish("a.b", "hello");
    one.until("MSG a.b 1 5\r\nhello\r\n");
    one.send("PUB b 2\r\nhi\r\n");
    assert_eq!(other.message().payload, b"hi");
}

#[test]
fn fragments_text_and_control_frames_are_understood() {
    let server = server(WebSocketOptions::default());
    let mut page = page(&server, "");
    page.connect();
    page.send("SUB a 1\r\n");
    let connection = &mut page.connection;
    connection.send(frame(0x01, b"PUB a "));
    connection.send(frame(0x89, b"there?"));
    connection.send(frame(0x00, b"5\r\nhel"));
    connection.send(frame(0x8a, b"unasked"));
    connection.send(frame(0x80, b"lo\r\n"));
    let mut pong = None;
    let mut data = Vec::new();
    while !data.ends_with(b"MSG a 1 5\r\nhello\r\n") {
        let received = page.frame().expect("more comes");
        match received.first {
            0x8a => pong = Some(received.payload),
            _ => data.extend(received.payload),
        }
    }
    assert_eq!(pong.as_deref(), Some(&b"there?"[..]));
}

#[test]
fn pings_are_answered_in_order() {
    let server = server(WebSocketOptions::default());
    let mut page = page(&server, "");
    page.connect();
    let pings: Vec<Vec<u8>> = (0..10_u8).map(|n| frame(0x89, &[n])).collect();
    page.connection.send(pings.concat());
    for n in 0..10_u8 {
        let pong = loop {
            let received = page.frame().expect("a pong comes");
            if received.first == 0x8a {
                break received.payload;
            }
        };
        assert_eq!(pong, [n]);
    }
}

#[test]
fn a_close_is_answered_with_its_code_and_reason() {
    let server = server(WebSocketOptions::default());
    for payload in [&b""[..], b"\x03\xe8", b"\x0f\xa0that is all"] {
        let mut page = page(&server, "");
        page.connect();
        page.connection.send(frame(0x88, payload));
        let answer = loop {
            let received = page.frame().expect("a close frame comes");
            if received.first == 0x88 {
                break received.payload;
            }
        };
        assert_eq!(answer, payload);
    }
}

/// Regression: the header of a compressed frame without payload was read twice.
#[test]
fn compressed_message_may_end_with_an_empty_frame() {
    let server = server(WebSocketOptions {
        compression: true,
        ..WebSocketOptions::default()
    });
    let mut page = page(&server, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    page.connect();
    let packed = deflate(b"SUB a 1\r\nPUB a 2\r\nhi\r\n");
    page.connection
        .send([frame(0x42, &packed), frame(0x80, b"")].concat());
    page.until("MSG a 1 2\r\nhi\r\n");
}

#[test]
fn large_messages_arrive_whole() {
    for extra in [
        "",
        "Sec-WebSocket-Extensions: permessage-deflate\r\n",
        "User-Agent: Mozilla/5.0\r\n",
    ] {
        let server = server(WebSocketOptions {
            compression: true,
            ..WebSocketOptions::default()
        });
        let mut publisher = page(&server, extra);
        let mut subscriber = page(&server, extra);
        assert_eq!(
            subscriber.response.contains("permessage-deflate"),
            extra.contains("deflate")
        );
        publisher.connect();
        subscriber.connect();
        subscriber.send("SUB big 1\r\nPING\r\n");
        subscriber.until("PONG\r\n");
        for bytes in [1, 100, 5000, 70_000, 900_000] {
            let payload: String = (0..bytes)
                .map(|i| char::from(b'a' + (i % 23) as u8))
                .collect();
            let message = format!("PUB big {bytes}\r\n{payload}\r\n");
            match extra.contains("deflate") {
                true => publisher
                    .connection
                    .send(frame(0xc2, &deflate(message.as_bytes()))),
                false => publisher.send(message),
            }
            subscriber.until(&format!("MSG big 1 {bytes}\r\n{payload}\r\n"));
        }
    }
}

#[test]
fn browsers_get_small_frames() {
    let server = server(WebSocketOptions::default());
    let mut page = page(&server, "User-Agent: Mozilla/5.0 (X11)\r\n");
    page.connect();
    page.send("SUB a 1\r\nPING\r\n");
    page.until("PONG\r\n");
    page.send(format!("PUB a 10000\r\n{}\r\n", "x".repeat(10_000)));
    let mut left = 10_000;
    while left > 0 {
        let received = page.frame().expect("more comes");
        assert!(received.payload.len() <= 4096, "{}", received.payload.len());
        left -= received
            .payload
            .iter()
            .filter(|byte| **byte == b'x')
            .count();
    }
}

#[test]
fn close_frame_has_a_code() {
    let limits = Limits {
        payload_bytes_max: 1000,
        ..Limits::default()
    };
    let server = TestServer::with(Options {
        websocket: Some(WebSocketOptions {
            compression: true,
            ..WebSocketOptions::default()
        }),
        limits,
        ..options(1)
    });
    let bomb = deflate(&vec![b' '; 10_000_000]);
    for (bytes, code) in [
        (frame(0x88, b"\x0b\xb8"), 3000),
        (frame(0x82, b"NONSENSE\r\n"), 1002),
        (frame(0x82, b"PUB a 2000\r\n"), 1009),
        (frame(0x83, b""), 1002),
        (b"\x82\x02hi".to_vec(), 1002),
        (frame(0x80, b""), 1002),
        (frame(0x82, &[b' '; 9000]), 1009),
        (frame(0xc2, &bomb), 1009),
        (frame(0xc2, b"\xff\xff\xff\xff"), 1007),
    ] {
        let mut page = page(&server, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
        page.connect();
        page.connection.send(&bytes);
        assert_eq!(
            page.close_code(),
            code,
            "{:?}",
            &bytes[..bytes.len().min(20)]
        );
        assert_eq!(page.frame(), None, "the connection ends");
    }
}

#[test]
fn stopping_server_sends_a_close_frame() {
    let server = server(WebSocketOptions::default());
    let mut page = page(&server, "");
    page.connect();
    server.handle.shutdown();
    assert_eq!(page.close_code(), 1001);
}

#[test]
fn cookies_are_credentials() {
    let server = TestServer::with(Options {
        auth: Auth::User {
            name: "ada".into(),
            password: "s3cret".into(),
        },
        websocket: Some(WebSocketOptions {
            user_cookie: Some("u".into()),
            pass_cookie: Some("p".into()),
            headers: vec![("X-Served-By".into(), "us".into())],
            ..WebSocketOptions::default()
        }),
        ..options(1)
    });
    let mut known = page(&server, "Cookie: u=ada; p=s3cret\r\n");
    assert!(known.response.contains("X-Served-By: us\r\n"));
    known.connect();
    let mut unknown = page(&server, "Cookie: u=ada; p=wrong\r\n");
    unknown.until("\r\n");
    unknown.send("CONNECT {}\r\n");
    unknown.until("-ERR 'Authorization Violation'\r\n");
    assert_eq!(unknown.close_code(), 1008);
}

/// The listener's credentials apply only to its own clients.
#[test]
fn listener_has_its_own_credentials() {
    let token = |token: &str| Auth::Token(token.into());
    for (of_server, of_listener, fields, is_admitted) in [
        (Auth::Open, token("web"), "", false),
        (Auth::Open, token("web"), "\"auth_token\":\"web\"", true),
        (token("tcp"), token("web"), "\"auth_token\":\"tcp\"", false),
        (token("tcp"), token("web"), "\"auth_token\":\"web\"", true),
        (token("tcp"), Auth::Open, "\"auth_token\":\"tcp\"", true),
    ] {
        let server = TestServer::with(Options {
            auth: of_server.clone(),
            websocket: Some(WebSocketOptions {
                auth: Some(of_listener.clone()),
                ..WebSocketOptions::default()
            }),
            ..options(1)
        });
        let mut client = page(&server, "");
        let info = client.until("\r\n");
        assert!(info.contains("\"auth_required\":true"), "{info}");
        client.send(format!("CONNECT {{{fields}}}\r\nPING\r\n"));
        let expected = match is_admitted {
            true => "PONG\r\n",
            false => "-ERR 'Authorization Violation'\r\n",
        };
        client.until(expected);
        // A client over TCP uses the server's credentials.
        let mut other = ByteClient::new(connect(server.address()));
        let info = other.read_until("\r\n");
        assert_eq!(
            info.contains("\"auth_required\":true"),
            of_server.is_required(),
            "{info}"
        );
        other.send("CONNECT {\"auth_token\":\"web\"}\r\nPING\r\n");
        other.read_until(match of_server.is_required() {
            true => "-ERR 'Authorization Violation'\r\n",
            false => "PONG\r\n",
        });
    }
}

#[test]
fn no_auth_user_of_the_listener_applies() {
    let mut config = AccessConfig::default();
    config.account_mut("A").users.push(User::new("ada", "pw"));
    config.account_mut("B").users.push(User::new("guest", "pw"));
    let server = TestServer::with(Options {
        auth: Auth::Directory(Access::new(config).expect("a directory").into()),
        websocket: Some(WebSocketOptions {
            no_auth_user: Some("guest".into()),
            ..WebSocketOptions::default()
        }),
        ..options(1)
    });
    let mut guest = page(&server, "");
    assert!(!guest.until("\r\n").contains("auth_required"));
    guest.send("CONNECT {\"verbose\":false,\"protocol\":1}\r\nPING\r\n");
    guest.until("\"remote_account\":\"B\"");
    let mut other = ByteClient::new(connect(server.address()));
    other.read_until("\r\n");
    other.send("CONNECT {}\r\n");
    other.read_until("-ERR 'Authorization Violation'\r\n");
}

#[test]
fn masks_are_optional_if_agreed() {
    let server = server(WebSocketOptions::default());
    let mut page = page(&server, "Nats-No-Masking: true\r\n");
    assert!(page.response.contains("Nats-No-Masking: true\r\n"));
    page.connection.send(b"\x82\x06PING\r\n");
    page.until("PONG\r\n");
}

#[test]
fn forwarded_for_does_not_change_the_checked_address() {
    // Networks in tokens (`src`) are compared with the socket's address, because any client may send the
    // header.
    let server = server(WebSocketOptions::default());
    let mut page = page(&server, "X-Forwarded-For: 203.0.113.7\r\n");
    let info = page.until("\r\n");
    assert!(info.contains("\"client_ip\":\"127.0.0.1\""), "{info}");
}

#[test]
fn it_works_within_tls() {
    let authority = Authority::new();
    let server = server(WebSocketOptions {
        tls: Some(authority.tls()),
        handshake_timeout: crate::raw::WAIT_MAX,
        ..WebSocketOptions::default()
    });
    let ca = authority.ca();
    let stream = TlsClient::new(&ca).over(connect(address(&server)));
    let mut page = Page::over(stream, "");
    page.connect();
    page.send("SUB a 1\r\nPUB a 2\r\nhi\r\n");
    page.until("MSG a 1 2\r\nhi\r\n");
    page.connection.send(frame(0x88, b"\x03\xe8"));
    assert_eq!(page.close_code(), 1000);
}

#[test]
fn invalid_upgrade_gets_an_error_response() {
    let server = server(WebSocketOptions {
        same_origin: true,
        ..WebSocketOptions::default()
    });
    for (received, status) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "400"),
        (request("").replace("GET", "POST"), "405"),
        (request("").replace("GET /", "GET /mqtt"), "404"),
        (request("Origin: http://evil.example\r\n"), "403"),
        (request(&format!("X: {}\r\n", "y".repeat(20_000))), "431"),
        (request(&"X: y\r\n".repeat(70)), "431"),
    ] {
        let mut connection = ByteClient::new(connect(address(&server)));
        connection.send(received);
        let response = connection.read_to_end();
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{response}"
        );
    }
}

#[test]
fn slow_upgrades_end_and_others_are_served() {
    let server = server(WebSocketOptions {
        handshake_timeout: std::time::Duration::from_millis(1500),
        ..WebSocketOptions::default()
    });
    let mut slow: Vec<_> = (0..1000)
        .map(|_| {
            let mut connection = ByteClient::new(connect(address(&server)));
            connection.send("GET / HTTP/1.1\r\nHost: a\r\nX-");
            connection
        })
        .collect();
    page(&server, "").connect();
    for connection in &mut slow {
        assert_eq!(connection.read_to_end(), "");
    }
}
