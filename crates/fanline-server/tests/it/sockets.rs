//! Unix sockets, the PROXY protocol, and WebSocket and HTTPS on the monitoring port.

#[cfg(unix)]
use std::os::unix::net::UnixStream;

use fanline_server::{ClientCertificates, Options, TlsOptions, WebSocketOptions};

use crate::folder::TempFolder;
use crate::raw::{TestServer, options};
use crate::transports::{Authority, ByteClient, TlsClient, connect};

#[cfg(unix)]
#[test]
fn clients_connect_over_a_unix_socket() {
    let folder = TempFolder::new("sockets");
    let path = folder.path("nats.sock");
    let start = || {
        TestServer::with(Options {
            unix_socket: Some(path.clone()),
            ..options(2)
        })
    };
    let server = start();
    let mut client = ByteClient::new(UnixStream::connect(&path).expect("it listens"));
    client.greet();
    client.send("SUB a 1\r\nPING\r\n");
    client.read_until("PONG\r\n");
    server.client().publish("a", vec![b'x'; 500_000]);
    client.read_until("MSG a 1 500000\r\n");
    client.read_until("x\r\n");
    // A socket in use is not replaced.
    let second = fanline_server::Server::start(Options {
        unix_socket: Some(path.clone()),
        ..options(1)
    });
    assert!(second.is_err());
    server.handle.shutdown();
    server.wait();
    assert!(!path.exists(), "it is gone with its server");
    // A socket left by a killed server is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let _server = start();
    ByteClient::new(UnixStream::connect(&path).expect("it listens")).greet();
}

#[test]
fn proxy_header_sets_the_client_address() {
    let server = TestServer::with(Options {
        proxy_protocol: true,
        ..options(1)
    });
    let mut v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    v2.extend([203, 0, 113, 7, 10, 0, 0, 1, 0x13, 0x88, 0x10, 0x7e]);
    for (header, ip) in [
        (
            &b"PROXY TCP4 203.0.113.7 10.0.0.1 5000 4222\r\n"[..],
            "203.0.113.7",
        ),
        (b"PROXY TCP6 2001:db8::7 ::1 5000 4222\r\n", "2001:db8::7"),
        (&v2, "203.0.113.7"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
        // The header may be missing.
        (b"PING\r\n", "127.0.0.1"),
    ] {
        let mut client = ByteClient::new(connect(server.address()));
        for byte in header {
            client.send([*byte]);
        }
        let info = client.read_until("\r\n");
        assert!(info.contains(&format!("\"client_ip\":\"{ip}\"")), "{info}");
        client.connect();
    }
    // A client without a proxy may wait for INFO before it sends anything.
    let mut direct = ByteClient::new(connect(server.address()));
    let info = direct.read_until("\r\n");
    assert!(info.contains("\"client_ip\":\"127.0.0.1\""), "{info}");
    direct.connect();
    let mut wrong = ByteClient::new(connect(server.address()));
    wrong.send("PROXY TCP4 nobody\r\n");
    assert_eq!(wrong.read_to_end(), "");
}

#[test]
fn monitoring_is_served_over_https_and_upgrades() {
    let authority = Authority::new();
    for is_https in [false, true] {
        let server = TestServer::with(Options {
            tls: Some(authority.tls()),
            monitoring: Some(("127.0.0.1".into(), 0)),
            monitoring_tls: is_https,
            websocket: Some(WebSocketOptions::default()),
            ..options(1)
        });
        let address = server.handle.addresses().monitoring.expect("it is on");
        let ca = authority.ca();
        let open = || -> Box<dyn ReadWrite> {
            match is_https {
                true => Box::new(TlsClient::new(&ca).over(connect(address))),
                false => Box::new(connect(address)),
            }
        };
        let mut client = ByteClient::new(open());
        client.send("GET /varz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.read_until("HTTP/1.1 200 OK");
        client.read_until("\"server_id\"");
        let mut nats = ByteClient::new(connect(server.address()));
        nats.read_until("\r\n");
        let mut nats = ByteClient::new(TlsClient::new(&ca).over(nats.stream));
        nats.connect();
        client.send("GET /connz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.read_until("\"tls_version\": \"1.3\"");
        let mut page = ByteClient::new(open());
        page.send(
            "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Version: 13\r\nNats-No-Masking: true\r\n\r\n",
        );
        page.read_until("HTTP/1.1 101 ");
        page.read_until("INFO {");
        page.send(b"\x82\x06PING\r\n");
        page.read_until("PONG\r\n");
    }
}

trait ReadWrite: std::io::Read + std::io::Write {}
impl<S: std::io::Read + std::io::Write> ReadWrite for S {}

/// Regression: the monitoring port admitted WebSocket clients without the TLS or client certificate that the
/// WebSocket listener requires.
#[test]
fn monitoring_port_does_not_bypass_the_websocket_listener() {
    let authority = Authority::new();
    let required = TlsOptions {
        client_certificates: ClientCertificates::Required,
        ca_file: Some(authority.ca()),
        ..authority.tls()
    };
    for (is_https, tls, is_upgraded) in [
        (false, None, true),
        (true, None, true),
        (false, Some(authority.tls()), false),
        (true, Some(authority.tls()), true),
        (true, Some(required), false),
    ] {
        let server = TestServer::with(Options {
            tls: Some(authority.tls()),
            monitoring: Some(("127.0.0.1".into(), 0)),
            monitoring_tls: is_https,
            websocket: Some(WebSocketOptions {
                tls: tls.clone(),
                ..WebSocketOptions::default()
            }),
            ..options(1)
        });
        let address = server.handle.addresses().monitoring.expect("it is on");
        let stream: Box<dyn ReadWrite> = match is_https {
            true => Box::new(TlsClient::new(&authority.ca()).over(connect(address))),
            false => Box::new(connect(address)),
        };
        let mut page = ByteClient::new(stream);
        page.send(
            "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Version: 13\r\n\r\n",
        );
        page.read_until(if is_upgraded {
            "HTTP/1.1 101 "
        } else {
            "HTTP/1.1 404 "
        });
    }
}
