//! Leaf connections over compression, WebSocket, both, and proxies, and their monitoring.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use fanline_server::auth::{Access, AccessConfig, User};
use fanline_server::client::{Client, ConnectOptions, Subscription};
use fanline_server::{
    Auth, CompressionLevel, LeafnodeListener, LeafnodeOptions, LeafnodeProxy, LeafnodeRemote,
    LeafnodeUser, LinkCompression, Options, TlsOptions, WebSocketOptions,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::leaf::{
    check_link, client, hub, leaf_port, leafz, named, remote, spoke, spoke_options, until_wanted,
};
use crate::raw::{TestServer, WAIT_MAX, block_on, until};
use crate::transports::Authority;

/// Checks that payloads of many sizes and contents arrive unchanged in both directions.
fn check_payloads(hub: &TestServer, spoke: &TestServer) {
    let noise = |n: usize| u8::try_from((n * n * 31 + n / 7 + n * 1_000_003) % 251).expect("small");
    let payloads: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"a".repeat(1_000_000),
        (0..1_000_000).map(noise).collect(),
        b"{\"on\": true, \"level\": 17}".repeat(3_000),
    ];
    block_on(async {
        let (above, below) = (client(hub).await, client(spoke).await);
        for (from, to, server, subject) in [
            (&above, &below, hub, "whole.down"),
            (&below, &above, spoke, "whole.up"),
        ] {
            let mut messages = to.subscribe(subject).await.expect("a filter");
            to.flush().await.expect("it answers");
            until_wanted(server, subject, 1);
            for payload in &payloads {
                let sent = from.publish(subject, payload.clone()).await;
                sent.expect("it takes it");
            }
            for payload in &payloads {
                let next = timeout(WAIT_MAX, messages.next()).await.expect("in time");
                let found = next.expect("a message");
                assert!(found.payload() == &payload[..], "{} bytes", payload.len());
            }
        }
    });
}

#[test]
fn links_are_compressed_as_both_sides_want() {
    let (fast, best) = (
        LinkCompression::Always(CompressionLevel::Fast),
        LinkCompression::Always(CompressionLevel::Best),
    );
    for (above, below, expected) in [
        (LinkCompression::Off, fast.clone(), ["off", "off"]),
        (best.clone(), LinkCompression::Off, ["off", "off"]),
        (
            LinkCompression::Accept,
            LinkCompression::Accept,
            ["off", "off"],
        ),
        (
            LinkCompression::Accept,
            best.clone(),
            ["s2_best", "s2_best"],
        ),
        (
            LinkCompression::default(),
            LinkCompression::Accept,
            ["s2_uncompressed", "s2_fast"],
        ),
        (best, fast, ["s2_best", "s2_fast"]),
    ] {
        let hub = hub(
            "hub",
            2,
            LeafnodeListener {
                compression: above,
                ..LeafnodeListener::default()
            },
        );
        let remote = LeafnodeRemote {
            compression: below,
            ..remote(&hub)
        };
        let spoke = spoke("spoke", 2, vec![remote]);
        check_link(&hub, &spoke);
        check_payloads(&hub, &spoke);
        let reply = [&hub, &spoke].map(|server| leafz(server)[0]["compression"].clone());
        if expected[0] == "s2_uncompressed" {
            // On a busy machine the round-trip time may be long, so that a level with compression is chosen.
            assert!(
                reply[0]
                    .as_str()
                    .is_some_and(|name| name.starts_with("s2_"))
            );
            assert_eq!(reply[1], expected[1]);
        } else {
            assert_eq!(reply, expected);
        }
    }
}

fn websocket_hub(shards: usize, compression: bool, tls: Option<TlsOptions>) -> TestServer {
    TestServer::with(Options {
        websocket: Some(WebSocketOptions {
            port: 0,
            tls,
            compression,
            ..WebSocketOptions::default()
        }),
        leafnodes: LeafnodeOptions {
            listener: Some(LeafnodeListener {
                port: 0,
                ..LeafnodeListener::default()
            }),
            ..LeafnodeOptions::default()
        },
        ..named("hub", shards)
    })
}

fn websocket_port(hub: &TestServer) -> u16 {
    hub.handle.addresses().websocket.expect("it listens").port()
}

#[test]
fn links_go_over_websocket() {
    for (shards, deflate, no_masking, compression) in [
        (1, false, false, LinkCompression::Off),
        (2, false, true, LinkCompression::Off),
        (2, true, false, LinkCompression::default()),
        (1, true, true, LinkCompression::default()),
        (
            2,
            false,
            false,
            LinkCompression::Always(CompressionLevel::Better),
        ),
    ] {
        let hub = websocket_hub(shards, true, None);
        let port = websocket_port(&hub);
        let remote = LeafnodeRemote {
            compression: compression.clone(),
            websocket_compression: deflate,
            websocket_no_masking: no_masking,
            ..LeafnodeRemote::new(format!("ws://127.0.0.1:{port}/some/where"))
        };
        let spoke = spoke("spoke", shards, vec![remote]);
        check_link(&hub, &spoke);
        check_payloads(&hub, &spoke);
        for server in [&hub, &spoke] {
            let leafs = leafz(server);
            assert_eq!(leafs[0]["websocket"], true, "{leafs:?}");
            let is_packed = leafs[0]["compression"] != "off";
            assert_eq!(is_packed, !deflate && compression != LinkCompression::Off);
        }
        // The listener for WebSocket clients still works.
        assert_eq!(
            hub.handle.addresses().websocket.map(|at| at.port()),
            Some(port)
        );
    }
}

#[test]
fn links_go_over_websocket_and_tls() {
    let authority = Authority::new();
    let hub = websocket_hub(2, false, Some(authority.tls()));
    let port = websocket_port(&hub);
    let at = |tls: Option<TlsOptions>| LeafnodeRemote {
        tls,
        ..LeafnodeRemote::new(format!("wss://localhost:{port}"))
    };
    let doubting = spoke("doubting", 1, vec![at(None)]);
    let trusting = at(Some(TlsOptions {
        ca_file: Some(authority.ca()),
        timeout: WAIT_MAX,
        ..TlsOptions::default()
    }));
    let spoke = spoke("spoke", 1, vec![trusting]);
    check_link(&hub, &spoke);
    assert!(leafz(&doubting).is_empty());
}

/// Runs an HTTP proxy that opens tunnels for the right password.
fn proxy() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || tunnel(&client));
        }
    });
    address
}

fn tunnel(client: &TcpStream) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    let mut reader = client;
    while !head.ends_with(b"\r\n\r\n") {
        reader.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let mut writer = client;
    if !head.contains("\r\nProxy-Authorization: Basic YWRhOnNlY3JldA==\r\n") {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        writer.write_all(refusal).ok()?;
        return None;
    }
    let place = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    let hub = TcpStream::connect(place).ok()?;
    writer
        .write_all(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
        .ok()?;
    std::thread::scope(|scope| {
        scope.spawn(|| carry(client, &hub));
        carry(&hub, client);
    });
    Some(())
}

/// Copies bytes until either side ends, then ends both.
fn carry(mut from: &TcpStream, mut to: &TcpStream) {
    // An error is ignored, because both endpoints detect the end.
    let _ = std::io::copy(&mut from, &mut to);
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

#[test]
fn links_go_through_a_proxy() {
    let proxy = proxy();
    let hub = websocket_hub(1, false, None);
    let port = websocket_port(&hub);
    let through = |password: &str| LeafnodeProxy {
        username: Some("ada".into()),
        password: Some(password.into()),
        timeout: Some(WAIT_MAX),
        ..LeafnodeProxy::new(format!("http://{proxy}"))
    };
    for url in [
        leaf_port(&hub).to_string(),
        format!("ws://127.0.0.1:{port}"),
    ] {
        let at = |password| LeafnodeRemote {
            proxy: Some(through(password)),
            ..LeafnodeRemote::new(url.clone())
        };
        let unknown = spoke("unknown", 1, vec![at("wrong")]);
        let spoke = spoke("spoke", 1, vec![at("secret")]);
        check_link(&hub, &spoke);
        check_payloads(&hub, &spoke);
        assert!(leafz(&unknown).is_empty());
    }
}

/// Runs the same proxy with TLS.
fn secret_proxy(authority: &Authority) -> SocketAddr {
    let inner = proxy();
    let files = authority.host("localhost");
    let own = CertificateDer::from_pem_file(&files.cert_file).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(&files.key_file).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own], key)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a socket");
    std::thread::spawn(move || {
        block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut client = acceptor.accept(client).await?;
                    let mut inner = tokio::net::TcpStream::connect(inner).await?;
                    tokio::io::copy_bidirectional(&mut client, &mut inner).await
                });
            }
        });
    });
    address
}

#[test]
fn links_go_through_an_https_proxy() {
    let authority = Authority::new();
    let proxy = secret_proxy(&authority);
    let trusting = || TlsOptions {
        ca_file: Some(authority.ca()),
        ..TlsOptions::default()
    };
    let through = |tls: Option<TlsOptions>| LeafnodeProxy {
        username: Some("ada".into()),
        password: Some("secret".into()),
        timeout: Some(WAIT_MAX),
        tls,
        ..LeafnodeProxy::new(format!("https://localhost:{}", proxy.port()))
    };
    let clear = websocket_hub(1, false, None);
    let secret = hub(
        "hub",
        1,
        LeafnodeListener {
            tls: Some(authority.tls()),
            ..LeafnodeListener::default()
        },
    );
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = unused.local_addr().expect("an address");
    drop(unused);
    let websocket = format!("ws://127.0.0.1:{}", websocket_port(&clear));
    let secret_url = format!("tls://localhost:{}", leaf_port(&secret).port());
    for (hub, urls, tls) in [
        // A hub that the proxy cannot reach is skipped.
        (
            &clear,
            vec![nobody.to_string(), leaf_port(&clear).to_string()],
            None,
        ),
        (&clear, vec![websocket], None),
        (&secret, vec![secret_url], Some(trusting())),
    ] {
        let by = |proxy| LeafnodeRemote {
            urls: urls.clone(),
            no_randomize: true,
            tls: tls.clone(),
            proxy: Some(proxy),
            ..LeafnodeRemote::new("")
        };
        let doubting = spoke("doubting", 1, vec![by(through(None))]);
        let spoke = spoke("spoke", 1, vec![by(through(Some(trusting())))]);
        check_link(hub, &spoke);
        check_payloads(hub, &spoke);
        assert!(leafz(&doubting).is_empty());
    }
}

#[test]
fn new_links_use_the_reloaded_compression() {
    let with = |compression: LinkCompression| Options {
        leafnodes: LeafnodeOptions {
            listener: Some(LeafnodeListener {
                port: 0,
                compression,
                ..LeafnodeListener::default()
            }),
            ..LeafnodeOptions::default()
        },
        ..named("hub", 1)
    };
    let hub = TestServer::with(with(LinkCompression::Off));
    let remote = || LeafnodeRemote {
        compression: LinkCompression::Accept,
        ..remote(&hub)
    };
    let before = spoke("before", 1, vec![remote()]);
    check_link(&hub, &before);
    let best = LinkCompression::Always(CompressionLevel::Best);
    hub.handle.reload(with(best)).expect("it may change");
    let after = spoke("after", 1, vec![remote()]);
    until("both are there", || {
        leafz(&hub).len() == 2 && leafz(&after).len() == 1
    });
    assert_eq!(leafz(&before)[0]["compression"], "off");
    assert_eq!(leafz(&after)[0]["compression"], "s2_best");
}

/// Opens a leaf connection that has requested compression.
fn asks_for_compression(hub: &TestServer) -> TcpStream {
    let mut stream = TcpStream::connect(leaf_port(hub)).expect("it listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).expect("INFO");
    }
    let wish = b"INFO {\"client_id\":1,\"compression\":\"s2_fast\"} \r\n";
    stream.write_all(wish).expect("it reads");
    stream
}

#[test]
fn invalid_compressed_stream_closes_only_its_link() {
    let hub = hub("hub", 1, LeafnodeListener::default());
    let spoke = spoke("spoke", 1, vec![remote(&hub)]);
    let head = &b"\xff\x06\x00\x00S2sTwO"[..];
    for garbage in [
        &b"CONNECT {\"name\":\"plain\"}\r\n"[..],
        // Compressed blocks: one with a wrong checksum, and one that would be too large.
        &[head, b"\x01\x08\x00\x00\x00\x00\x00\x00PING"].concat(),
        &[
            head,
            b"\x00\x0a\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f\x00",
        ]
        .concat(),
    ] {
        let mut stream = asks_for_compression(&hub);
        stream.write_all(garbage).expect("it reads");
        let mut received = Vec::new();
        // The server may close the socket with unread bytes.
        let _ = stream.read_to_end(&mut received);
        assert!(
            received.is_empty() || received.starts_with(head),
            "{received:?}"
        );
    }
    check_link(&hub, &spoke);
    assert_eq!(leafz(&hub).len(), 1);
}

#[test]
fn links_are_published_in_the_system_account() {
    let mut config = AccessConfig {
        system_account: Some("SYS".into()),
        ..AccessConfig::default()
    };
    config.account_mut("A");
    let users = &mut config.account_mut("SYS").users;
    users.push(User::new("sys", "pw"));
    let listener = LeafnodeListener {
        port: 0,
        users: vec![LeafnodeUser {
            user: User::new("edge", "pw"),
            account: Some("A".into()),
        }],
        ..LeafnodeListener::default()
    };
    let hub = TestServer::with(Options {
        auth: Auth::Directory(Arc::new(Access::new(config).expect("a directory"))),
        leafnodes: LeafnodeOptions {
            listener: Some(listener),
            ..LeafnodeOptions::default()
        },
        ..named("hub", 2)
    });
    let at = LeafnodeRemote::new(format!("nats-leaf://edge:pw@{}", leaf_port(&hub)));
    block_on(async {
        let url = format!("nats://sys:pw@{}", hub.address());
        let options = ConnectOptions::new(&url).expect("an address");
        let system = Client::connect(&options).await.expect("it listens");
        let events = system.subscribe("$SYS.ACCOUNT.A.>").await;
        let mut events = events.expect("a filter");
        system.flush().await.expect("it answers");
        let spoke = TestServer::with(spoke_options("spoke", 1, vec![at]));
        let event = reply(&mut events, "LEAFNODE.CONNECT").await;
        assert_eq!(event["acc"], "A", "{event}");
        assert_eq!(event["server"]["name"], "hub", "{event}");
        let counts = reply(&mut events, "SERVER.CONNS").await;
        assert_eq!(counts["leafnodes"], 1, "{counts}");
        assert_eq!(counts["total_conns"], 1, "{counts}");
        let answer = ask(&system, "$SYS.REQ.ACCOUNT.A.LEAFZ", "").await;
        let leaf = &answer["data"]["leafs"][0];
        assert_eq!(leaf["name"], "spoke", "{answer}");
        assert_eq!(leaf["reconnects"], Value::Null, "{answer}");
        // The leaf node is disconnected, and connects again.
        let server = event["server"]["id"].as_str().expect("an id");
        let kick = format!("$SYS.REQ.SERVER.{server}.KICK");
        ask(&system, &kick, &json!({ "cid": leaf["id"] }).to_string()).await;
        let event = reply(&mut events, "DISCONNECT").await;
        assert_eq!(event["client"]["kind"], "Leafnode", "{event}");
        assert_eq!(event["client"]["user"], "edge", "{event}");
        reply(&mut events, "LEAFNODE.CONNECT").await;
        for server in [&hub, &spoke] {
            until("the link is there again", || {
                let leafs = leafz(server);
                leafs.first().is_some_and(|leaf| leaf["reconnects"] == 1)
            });
        }
        let answer = ask(&system, "$SYS.REQ.ACCOUNT.A.STATZ", "").await;
        let counts = &answer["data"]["account_statz"][0];
        assert_eq!(counts["leafnodes"], 1, "{answer}");
        let metrics = page(&hub, "/metrics");
        let mut lines = metrics.lines();
        let line = lines.find(|line| line.starts_with("fanline_leafnode_reconnects_total{"));
        let line = line.unwrap_or_else(|| panic!("{metrics}"));
        assert!(
            line.contains("name=\"spoke\"") && line.ends_with("} 1"),
            "{line}"
        );
    });
}

/// Returns the next event of the account with this subject.
async fn reply(events: &mut Subscription, what: &str) -> Value {
    loop {
        let next = timeout(WAIT_MAX, events.next()).await.expect("in time");
        let message = next.expect("a message");
        if message.subject().ends_with(what) {
            return serde_json::from_slice(message.payload()).expect("JSON");
        }
    }
}

async fn ask(system: &Client, subject: &str, body: &str) -> Value {
    let answer = system.request(subject, body.to_owned(), WAIT_MAX).await;
    let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
    serde_json::from_slice(answer.payload()).expect("JSON")
}

fn page(server: &TestServer, path: &str) -> String {
    let address = server.handle.addresses().monitoring.expect("it is on");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("an answer");
    page
}
