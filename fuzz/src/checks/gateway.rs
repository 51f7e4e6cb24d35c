//! The input is the bytes from a server of another cluster. It is passed to a server as that of a new connection, of a
//! registered dialer, and of an acceptor that this server has dialed, with all interest and without. Its lines are
//! those of routes, whose check covers the parser.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::codec::gateway::{GatewayConnect, GatewayInfo, ReplyMark};
use fanline_engine::codec::route::parse::{RouteParsed, RouteVerb, parse_route};
use fanline_engine::gateway::{GatewayDial, GatewaySettings};
use fanline_engine::route::RouteSettings;
use fanline_engine::{Auth, Chunk, CloseReason, Limits, Peer, ServerInfo, Shard, ShardConfig};

/// What a dialer sends first.
const DIALER: &[u8] = b"CONNECT {\"name\":\"NA\",\"gateway\":\"a\"}\r\n\
    INFO {\"server_id\":\"NA\",\"server_name\":\"a1\",\"headers\":true,\"gateway\":\"a\"}\r\n";

/// What acceptors send first: one that announces all interest, and one that expects all messages.
const ACCEPTORS: [&[u8]; 2] = [
    b"INFO {\"server_id\":\"NA\",\"server_name\":\"a1\",\"headers\":true,\"gateway\":\"a\",\"gateway_iom\":true}\r\n",
    b"INFO {\"server_id\":\"NA\",\"server_name\":\"a1\",\"gateway\":\"a\"}\r\n",
];

/// Checks that JSON is written as it was read, and that a server does not panic.
pub fn check(data: &[u8]) {
    check_json(data);
    check_server(None, b"", data);
    check_server(None, DIALER, data);
    for first in ACCEPTORS {
        check_server(Some("a"), first, data);
    }
}

/// Checks CONNECT and INFO at the start of the input.
fn check_json(data: &[u8]) {
    match parse_route(data, false) {
        RouteParsed::Verb(RouteVerb::Info(json), _) => {
            let Some(info) = GatewayInfo::parse(json) else {
                return;
            };
            let line = info.line();
            let json = line.strip_prefix(b"INFO ").expect("a line of INFO");
            assert_eq!(GatewayInfo::parse(json.trim_ascii()).as_ref(), Some(&info));
            let _ = info.command();
        }
        RouteParsed::Verb(RouteVerb::Connect(json), _) => {
            let Some(connect) = GatewayConnect::parse(json) else {
                return;
            };
            let line = connect.line();
            let json = line.strip_prefix(b"CONNECT ").expect("a line of CONNECT");
            assert_eq!(GatewayConnect::parse(json.trim_ascii()), Some(connect));
        }
        RouteParsed::Verb(RouteVerb::Message(message), _) => {
            for subject in [message.publish.subject, message.publish.reply] {
                if let Some((mark, rest)) = ReplyMark::split(subject) {
                    assert_eq!([mark.as_bytes(), rest].concat(), subject);
                }
            }
        }
        _ => {}
    }
}

/// Runs a server with a peer that sends the input, another cluster, and a client that subscribes to everything.
fn check_server(dialed: Option<&str>, first: &[u8], data: &[u8]) {
    let config = ShardConfig {
        limits: Limits::default(),
        auth: Auth::Open,
        shards: 1,
        traces: false,
        leafs: None,
        routes: Some(Arc::new(RouteSettings::default())),
        gateways: Some(Arc::new(GatewaySettings {
            name: "own".into(),
            ..GatewaySettings::default()
        })),
    };
    let info = ServerInfo {
        server_id: "NOWN".into(),
        server_name: "own".into(),
        cluster: Some("own".into()),
        headers: true,
        ..ServerInfo::default()
    };
    let now = Duration::ZERO;
    let mut server = Shard::new(0, Arc::new(config), info, 7);
    let dial = |gateway: &str| GatewayDial {
        gateway: gateway.into(),
        ..GatewayDial::default()
    };
    let peer = server.open_gateway(1, Peer::default(), dialed.map(dial), now);
    let other = server.open_gateway(2, Peer::default(), Some(dial("b")), now);
    let client = server.open(3, Peer::default(), false, now);
    let mut send = |id, bytes: &[u8]| {
        let chunk = Chunk::new(bytes.into());
        let mut at = 0;
        loop {
            let receipt = server.receive(id, &chunk, at..chunk.len(), now);
            at += receipt.consumed;
            assert!(at <= chunk.len());
            if !receipt.must_flush {
                return;
            }
        }
    };
    send(
        client,
        b"CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB > 1\r\nSUB > q 2\r\n",
    );
    send(other, ACCEPTORS[0]);
    send(
        other,
        b"INFO {\"gateway\":\"b\"}\r\nRS+ $G > q 1\r\nRS+ $G >\r\n",
    );
    send(peer, first);
    send(peer, data);
    send(
        client,
        b"PUB a r 2\r\nhi\r\nPUB in.1 2\r\nhi\r\nUNSUB 1\r\nUNSUB 2\r\nPUB a 0\r\n\r\n",
    );
    server.handle_timeout(Duration::from_secs(3));
    for id in [peer, other] {
        server.remove(id, CloseReason::ReadError);
    }
    assert!(server.gateways(true).is_empty());
}
