//! TLS for clients: handshakes, client certificates, and the protocol over TLS.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use fanline_server::client::{Client, ConnectOptions};
use fanline_server::{
    Certificate, ClientCertificates, JetStreamOptions, LeafnodeListener, LeafnodeOptions,
    MqttOptions, Options, TlsHandshake, TlsOptions, TlsVersion, WebSocketOptions,
};

use crate::raw::{SHARD_COUNTS, TestServer, WAIT_MAX, block_on, options};
use crate::transports::{Authority, ByteClient, TlsClient, connect};

fn server(tls: TlsOptions) -> TestServer {
    TestServer::with(Options {
        tls: Some(tls),
        ..options(2)
    })
}

#[test]
fn tls_begins_after_info() {
    let authority = Authority::new();
    let ca = authority.ca();
    for versions in [
        rustls::ALL_VERSIONS.to_vec(),
        vec![&rustls::version::TLS12],
        vec![&rustls::version::TLS13],
    ] {
        let server = server(authority.tls());
        let mut plain = ByteClient::new(connect(server.address()));
        let info = plain.read_until("\r\n");
        assert!(info.contains("\"tls_required\":true"), "{info}");
        let mut client = TlsClient::new(&ca);
        client.versions = versions;
        let mut client = ByteClient::new(client.over(plain.stream));
        client.connect();
        client.send("SUB a.* 1\r\nPUB a.b 2\r\nhi\r\n");
        assert_eq!(client.read_until("hi\r\n").lines().last(), Some("hi"));
    }
}

#[test]
fn large_and_split_messages_arrive_whole_over_tls() {
    let authority = Authority::new();
    let server = server(TlsOptions {
        handshake: TlsHandshake::First,
        ..authority.tls()
    });
    let ca = authority.ca();
    let begin = || {
        let stream = connect(server.address());
        let mut client = ByteClient::new(TlsClient::new(&ca).over(stream));
        let info = client.greet();
        assert!(info.contains("\"tls_required\":true"), "{info}");
        client
    };
    let (mut publisher, mut subscriber) = (begin(), begin());
    subscriber.send("SUB big 1\r\nPING\r\n");
    subscriber.read_until("PONG\r\n");
    let payloads: Vec<String> = [1, 4000, 5000, 16_384, 70_000, 1_000_000]
        .iter()
        .map(|bytes| "x".repeat(*bytes))
        .collect();
    for payload in &payloads {
        publisher.send(format!("PUB big {}\r\n{payload}\r\n", payload.len()));
    }
    // Each write has one byte, so each byte is a TLS record of its own.
    for byte in b"PUB big 3\r\nend\r\n" {
        publisher.send([*byte]);
    }
    for payload in &payloads {
        let reply = subscriber.read_until(&format!("{}\r\n{payload}\r\n", payload.len()));
        assert!(reply.starts_with("MSG big 1 "), "{}", &reply[..20]);
    }
    subscriber.read_until("MSG big 1 3\r\nend\r\n");
}

#[test]
fn clear_client_gets_tls_required_error() {
    let authority = Authority::new();
    let server = server(authority.tls());
    let mut client = ByteClient::new(connect(server.address()));
    client.read_until("\r\n");
    client.send("CONNECT {}\r\n");
    let reply = client.read_to_end();
    assert_eq!(reply, "-ERR 'Secure Connection - TLS Required'\r\n");
}

#[test]
fn both_are_served_where_that_is_allowed() {
    let authority = Authority::new();
    let server = TestServer::with(Options {
        tls: Some(authority.tls()),
        allow_non_tls: true,
        ..options(1)
    });
    let mut plain = ByteClient::new(connect(server.address()));
    let info = plain.greet();
    assert!(info.contains("\"tls_available\":true"), "{info}");
    assert!(!info.contains("tls_required"), "{info}");
    let mut secret = ByteClient::new(connect(server.address()));
    secret.read_until("\r\n");
    let mut secret = ByteClient::new(TlsClient::new(&authority.ca()).over(secret.stream));
    secret.connect();
}

#[test]
fn handshake_first_auto_accepts_both_orders() {
    let authority = Authority::new();
    let server = server(TlsOptions {
        handshake: TlsHandshake::FirstWithin(Duration::from_millis(50)),
        ..authority.tls()
    });
    let ca = authority.ca();
    // A client that waits receives INFO.
    let mut late = ByteClient::new(connect(server.address()));
    late.read_until("\r\n");
    ByteClient::new(TlsClient::new(&ca).over(late.stream)).connect();
    // A client that starts TLS receives INFO after the handshake. On a slow machine the server may already
    // have sent INFO.
    let mut early = TlsClient::new(&ca).over(connect(server.address()));
    if early.flush().is_ok() && early.conn.complete_io(&mut early.sock).is_ok() {
        ByteClient::new(early).greet();
    }
}

#[test]
fn client_certificates_are_verified() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let (ada, ada_key) = authority.user("ada");
    let (bob, _) = authority.user("bob");
    let (eve, _) = stranger.user("eve");
    let pinned = |pins: &[[u8; 32]]| TlsOptions {
        ca_file: Some(authority.ca()),
        client_certificates: ClientCertificates::Required,
        pinned_certs: pins.iter().copied().collect(),
        handshake: TlsHandshake::First,
        ..authority.tls()
    };
    for (pins, certificate, expected) in [
        (&[][..], None, false),
        (&[], Some(&ada), true),
        (&[], Some(&eve), false),
        (&[ada_key], Some(&ada), true),
        (&[ada_key], Some(&bob), false),
    ] {
        let server = server(pinned(pins));
        let ca = authority.ca();
        let mut client = TlsClient::new(&ca);
        client.certificate = certificate;
        let mut client = ByteClient::new(client.over(connect(server.address())));
        let info = client.first_line();
        assert_eq!(info.contains("\"tls_verify\":true"), expected, "{info:?}");
    }
}

/// Clients of nats-server recognize this alert.
#[test]
fn certificate_of_another_authority_with_the_same_name_has_an_unknown_issuer() {
    let authority = Authority::new();
    let server = server(TlsOptions {
        ca_file: Some(authority.ca()),
        client_certificates: ClientCertificates::Required,
        handshake: TlsHandshake::First,
        ..authority.tls()
    });
    let stranger = Authority::new();
    let (eve, _) = stranger.user("eve");
    let ca = authority.ca();
    let mut client = TlsClient::new(&ca);
    client.certificate = Some(&eve);
    let mut stream = client.over(connect(server.address()));
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(error.to_string().contains("UnknownCA"), "{error}");
}

/// `openssl req -x509` creates certificates of authorities, and people use them for clients. Like
/// nats-server, this server accepts such a certificate only if it is in the file of authorities.
#[test]
fn listed_authority_is_accepted_as_client() {
    use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let authority = Authority::new();
    let plain = authority.own("plain", |_| {});
    let for_clients = authority.own("clients", |p| p.extended_key_usages = vec![ClientAuth]);
    let for_servers = authority.own("servers", |p| p.extended_key_usages = vec![ServerAuth]);
    let expired = authority.own("expired", |p| {
        p.not_after = rcgen::date_time_ymd(2001, 1, 1)
    });
    let early = authority.own("early", |p| p.not_before = rcgen::date_time_ymd(2999, 1, 1));
    let all = authority.folder.path("all.pem");
    let files = [&plain, &for_clients, &for_servers, &expired, &early];
    let texts = files.map(|files| std::fs::read_to_string(&files.cert_file).expect("a file"));
    let ca = std::fs::read_to_string(authority.ca()).expect("a file");
    std::fs::write(&all, texts.concat() + &ca).expect("a file");
    // This certificate has the same name, but another key.
    let twin = authority.own("twin", |params| {
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "plain");
    });
    let (ada, _) = authority.user("ada");
    let server = server(TlsOptions {
        ca_file: Some(all),
        client_certificates: ClientCertificates::Required,
        handshake: TlsHandshake::First,
        ..authority.tls()
    });
    let ca = authority.ca();
    let check = |what: &str, certificate: &Certificate, expected: bool| {
        for version in rustls::ALL_VERSIONS {
            let mut client = TlsClient::new(&ca);
            client.certificate = Some(certificate);
            client.versions = vec![version];
            let mut client = ByteClient::new(client.over(connect(server.address())));
            let info = client.first_line();
            assert_eq!(
                info.contains("\"tls_verify\":true"),
                expected,
                "{what} {info:?}"
            );
        }
    };
    check("of no said use", &plain, true);
    check("for clients", &for_clients, true);
    check("of an authority", &ada, true);
    check("for servers", &for_servers, false);
    check("expired", &expired, false);
    check("not yet", &early, false);
    check("another of that name", &twin, false);
    check("not listed", &authority.own("stranger", |_| {}), false);
}

impl<S: Read + Write> ByteClient<S> {
    /// Returns the first line, or an empty text.
    fn first_line(&mut self) -> String {
        let mut byte = [0];
        let mut line = String::new();
        while !line.ends_with('\n') && matches!(self.stream.read(&mut byte), Ok(1)) {
            line.push(char::from(byte[0]));
        }
        line
    }
}

#[test]
fn certificate_is_chosen_by_host_name() {
    let authority = Authority::new();
    let server = server(TlsOptions {
        certificates: vec![
            authority.host("first.example"),
            authority.host("second.example"),
            authority.host("*.third.example"),
        ],
        handshake: TlsHandshake::First,
        ..authority.tls()
    });
    let ca = authority.ca();
    for name in ["first.example", "second.example", "any.third.example"] {
        let mut client = TlsClient::new(&ca);
        client.name = name;
        ByteClient::new(client.over(connect(server.address()))).greet();
    }
}

#[test]
fn old_versions_and_unwanted_suites_are_refused() {
    let authority = Authority::new();
    let ca = authority.ca();
    let newest = server(TlsOptions {
        min_version: TlsVersion::V1_3,
        cipher_suites: vec!["TLS_AES_128_GCM_SHA256".into()],
        curve_preferences: vec!["X25519".into()],
        handshake: TlsHandshake::First,
        ..authority.tls()
    });
    let mut client = TlsClient::new(&ca);
    client.versions = vec![&rustls::version::TLS12];
    let mut refused = ByteClient::new(client.over(connect(newest.address())));
    assert_eq!(refused.first_line(), "");
    let mut fine = ByteClient::new(TlsClient::new(&ca).over(connect(newest.address())));
    fine.greet();
    let suite = fine.stream.conn.negotiated_cipher_suite().expect("one");
    assert_eq!(suite.suite(), rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
}

#[test]
fn new_certificates_are_for_new_connections() {
    let authority = Authority::new();
    let successor = Authority::new();
    let tls = TlsOptions {
        handshake: TlsHandshake::First,
        ..authority.tls()
    };
    let files = tls.certificates[0].clone();
    let server = server(tls);
    let mut before =
        ByteClient::new(TlsClient::new(&authority.ca()).over(connect(server.address())));
    before.greet();
    // An invalid file changes nothing.
    std::fs::write(&files.cert_file, "nothing").expect("a file");
    assert!(server.handle.reload_tls().is_err());
    let mut still =
        ByteClient::new(TlsClient::new(&authority.ca()).over(connect(server.address())));
    still.greet();
    let new = successor.host("localhost");
    std::fs::copy(new.cert_file, files.cert_file).expect("a file");
    std::fs::copy(new.key_file, files.key_file).expect("a file");
    server.handle.reload_tls().expect("the new files are fine");
    let mut after =
        ByteClient::new(TlsClient::new(&successor.ca()).over(connect(server.address())));
    after.greet();
    let mut old = ByteClient::new(TlsClient::new(&authority.ca()).over(connect(server.address())));
    assert_eq!(old.first_line(), "");
    before.send("PING\r\n");
    before.read_until("PONG\r\n");
}

#[test]
fn reload_changes_client_certificate_requirements() {
    let authority = Authority::new();
    let ca = authority.ca();
    let tls = TlsOptions {
        handshake: TlsHandshake::First,
        ..authority.tls()
    };
    let server = server(tls.clone());
    let mut before = ByteClient::new(TlsClient::new(&ca).over(connect(server.address())));
    before.greet();
    let stricter = Options {
        tls: Some(TlsOptions {
            client_certificates: ClientCertificates::Required,
            ca_file: Some(ca.clone()),
            ..tls
        }),
        ..options(2)
    };
    server.handle.reload(stricter).expect("it makes sense");
    let mut nobody = ByteClient::new(TlsClient::new(&ca).over(connect(server.address())));
    assert_eq!(nobody.first_line(), "");
    let (ada, _) = authority.user("ada");
    let mut client = TlsClient::new(&ca);
    client.certificate = Some(&ada);
    ByteClient::new(client.over(connect(server.address()))).greet();
    before.send("PING\r\n");
    before.read_until("PONG\r\n");
}

#[test]
fn reload_turns_tls_on_and_off_for_new_connections() {
    let authority = Authority::new();
    let ca = authority.ca();
    for shards in SHARD_COUNTS {
        let with = |tls: Option<TlsOptions>, allow_non_tls| Options {
            tls,
            allow_non_tls,
            ..options(shards)
        };
        let server = TestServer::with(with(None, false));
        let reload = |options| server.handle.reload(options).expect("it makes sense");
        let mut plain = ByteClient::new(connect(server.address()));
        assert!(!plain.greet().contains("tls_"));
        plain.send("SUB a 1\r\nPING\r\n");
        plain.read_until("PONG\r\n");
        // With `allow_non_tls`, no client is refused while clients change to TLS.
        reload(with(Some(authority.tls()), true));
        let mut either = ByteClient::new(connect(server.address()));
        assert!(either.greet().contains("\"tls_available\":true"));
        reload(with(Some(authority.tls()), false));
        let mut secret = ByteClient::new(connect(server.address()));
        assert!(secret.read_until("\r\n").contains("\"tls_required\":true"));
        let mut secret = ByteClient::new(TlsClient::new(&ca).over(secret.stream));
        secret.connect();
        let mut late = ByteClient::new(connect(server.address()));
        late.read_until("\r\n");
        late.send("CONNECT {}\r\n");
        assert_eq!(
            late.read_to_end(),
            "-ERR 'Secure Connection - TLS Required'\r\n"
        );
        // A missing file changes nothing.
        let broken = TlsOptions {
            ca_file: Some("nowhere.pem".into()),
            client_certificates: ClientCertificates::Required,
            ..authority.tls()
        };
        assert!(server.handle.reload(with(Some(broken), false)).is_err());
        reload(with(None, false));
        let mut last = ByteClient::new(connect(server.address()));
        assert!(!last.greet().contains("tls_"));
        for (number, client) in [&mut either, &mut last].into_iter().enumerate() {
            client.send(format!("PUB a 1\r\n{number}\r\n"));
            plain.read_until(&format!("MSG a 1 1\r\n{number}\r\n"));
        }
        secret.send("PUB a 6\r\nsecret\r\n");
        plain.read_until("secret\r\n");
    }
}

/// Sends CONNECT as an MQTT client.
fn mqtt_hello<S: Read + Write>(stream: S) {
    let mut client = ByteClient::new(stream);
    client.send(b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01a");
    client.read_until("\x20\x02\0\0");
}

#[test]
fn a_reload_changes_the_tls_of_every_listener() {
    let (authority, successor) = (Authority::new(), Authority::new());
    let (ca, newer) = (authority.ca(), successor.ca());
    let with = |others: Option<TlsOptions>, websocket: Option<TlsOptions>| Options {
        jetstream: Some(JetStreamOptions::default()),
        mqtt: Some(MqttOptions {
            tls: others.clone(),
            ..MqttOptions::default()
        }),
        leafnodes: LeafnodeOptions {
            listener: Some(LeafnodeListener {
                port: 0,
                tls: others,
                ..LeafnodeListener::default()
            }),
            ..LeafnodeOptions::default()
        },
        websocket: Some(WebSocketOptions {
            tls: websocket,
            handshake_timeout: WAIT_MAX,
            ..WebSocketOptions::default()
        }),
        ..options(2)
    };
    let server = TestServer::with(with(None, Some(authority.tls())));
    let reload = |options| server.handle.reload(options).expect("it makes sense");
    let addresses = server.handle.addresses();
    let mqtt = || connect(addresses.mqtt.expect("it listens"));
    let leaf = || connect(addresses.leafnodes.expect("it listens"));
    let page = |ca: &Path| {
        let stream = connect(addresses.websocket.expect("it listens"));
        let mut page = ByteClient::new(TlsClient::new(ca).over(stream));
        // This fails if the peer does not trust the authority.
        let _ = page.stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
        page.first_line()
    };
    mqtt_hello(mqtt());
    assert!(
        !ByteClient::new(leaf())
            .read_until("\r\n")
            .contains("tls_required")
    );
    assert!(page(&ca).starts_with("HTTP/1.1 4"));
    reload(with(Some(authority.tls()), Some(successor.tls())));
    mqtt_hello(TlsClient::new(&ca).over(mqtt()));
    let mut secret = ByteClient::new(leaf());
    let reply = secret.read_until("\r\n");
    assert!(reply.contains("\"tls_required\":true"), "{reply}");
    assert!(page(&newer).starts_with("HTTP/1.1 4"));
    assert_eq!(page(&ca), "");
    // A reload cannot turn off TLS of the WebSocket listener.
    reload(with(None, None));
    mqtt_hello(mqtt());
    assert!(
        !ByteClient::new(leaf())
            .read_until("\r\n")
            .contains("tls_required")
    );
    assert!(page(&newer).starts_with("HTTP/1.1 4"));
}

#[test]
fn a_thousand_half_open_handshakes_end_and_others_are_served() {
    let authority = Authority::new();
    let server = server(TlsOptions {
        handshake: TlsHandshake::First,
        timeout: Duration::from_millis(1500),
        ..authority.tls()
    });
    let mut half_open: Vec<_> = (0..1000)
        .map(|number| {
            let mut stream = connect(server.address());
            // Some clients send nothing, some start a handshake, and some announce a large record.
            let begun: &[u8] = match number % 3 {
                0 => b"",
                1 => b"\x16\x03\x01\x02\x00\x01\x00",
                _ => b"\x16\x03\x01\x40\x00\x01\xff\xff\xff",
            };
            stream.write_all(begun).expect("it listens");
            stream
        })
        .collect();
    let ca = authority.ca();
    let mut client = ByteClient::new(TlsClient::new(&ca).over(connect(server.address())));
    client.greet();
    for stream in half_open.drain(..) {
        // The server closes the connection. It may send something before.
        ByteClient::new(stream).read_to_end();
    }
    client.send("PING\r\n");
    client.read_until("PONG\r\n");
}

#[test]
fn fanline_client_connects_over_tls() {
    let authority = Authority::new();
    let (ada, _) = authority.user("ada");
    for is_first in [false, true] {
        let server = server(TlsOptions {
            ca_file: Some(authority.ca()),
            client_certificates: ClientCertificates::Required,
            handshake: match is_first {
                true => TlsHandshake::First,
                false => TlsHandshake::AfterInfo,
            },
            ..authority.tls()
        });
        block_on(async {
            let url = format!("tls://localhost:{}", server.address().port());
            let options = ConnectOptions::new(&url)
                .expect("an address")
                .connect_timeout(WAIT_MAX)
                .tls_ca(authority.ca())
                .tls_certificate(&ada.cert_file, &ada.key_file)
                .tls_first(is_first);
            let client = Client::connect(&options).await.expect("it is let in");
            let mut messages = client.subscribe("a").await.expect("a subscription");
            client
                .publish("a", vec![b'x'; 100_000])
                .await
                .expect("sent");
            let message = messages.next().await.expect("a message");
            assert_eq!(message.payload().len(), 100_000);
            // Connections within the process need no encryption.
            assert!(server.handle.client().await.is_ok());
        });
    }
}
