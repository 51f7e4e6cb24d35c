//! The input is the bytes from a peer on a route. They are parsed as those of a connection for all accounts,
//! and as those of a dedicated one. Then they are passed to a server, first as the whole input of a new
//! connection, then as that of a registered peer.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::codec::route::parse::{RouteMessage, RouteParsed, RouteVerb, parse_route};
use fanline_engine::codec::route::{
    ROUTE_LINE_BYTES_MAX, ROUTE_PAYLOAD_BYTES_MAX, RouteConnect, RouteInfo, write_head,
    write_interest,
};
use fanline_engine::route::{RouteDetail, RouteSettings};
use fanline_engine::{Auth, Chunk, Limits, Peer, ServerInfo, Shard, ShardConfig};

/// Maximum number of positions at which the input is cut. To cut at every position would take quadratic time.
const CUTS_MAX: usize = 200;

/// The handshake of a peer.
const HANDSHAKE: &[u8] = b"CONNECT {\"name\":\"NA\",\"cluster\":\"c\",\"headers\":true}\r\n\
    INFO {\"server_id\":\"NA\",\"server_name\":\"a\",\"headers\":true,\"passed_on\":true}\r\n";

/// Checks that the parser returns the same results wherever the input is cut, that lines are written as they
/// were read, and that a server does not panic.
pub fn check(data: &[u8]) {
    for is_dedicated in [false, true] {
        let mut whole = Outcome::new(is_dedicated);
        whole.parse_on(data);
        let step = data.len() / CUTS_MAX + 1;
        for cut in (0..data.len()).step_by(step) {
            let mut parts = Outcome::new(is_dedicated);
            parts.parse_on(&data[..cut]);
            parts.parse_on(data);
            assert_eq!(parts, whole, "cut at {cut}");
        }
    }
    check_server(b"", data);
    check_server(HANDSHAKE, data);
}

/// Runs a server with a peer that sends the input, another peer, and a client that subscribes to everything.
fn check_server(handshake: &[u8], data: &[u8]) {
    let config = ShardConfig {
        limits: Limits::default(),
        auth: Auth::Open,
        shards: 1,
        traces: false,
        leafs: None,
        routes: Some(Arc::new(RouteSettings::default())),
        gateways: None,
    };
    let info = ServerInfo {
        server_id: "NOWN".into(),
        server_name: "own".into(),
        cluster: Some("c".into()),
        headers: true,
        ..ServerInfo::default()
    };
    let now = Duration::ZERO;
    let mut server = Shard::new(0, Arc::new(config), info, 7);
    let peer = server.open_route(1, Peer::default(), None, None, now);
    let other = server.open_route(2, Peer::default(), None, None, now);
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
    send(
        other,
        b"CONNECT {\"name\":\"NB\",\"cluster\":\"c\"}\r\nINFO {\"server_id\":\"NB\"}\r\nRS+ $G > q 2\r\n",
    );
    send(peer, handshake);
    send(peer, data);
    send(client, b"PUB a r 2\r\nhi\r\nUNSUB 1\r\nUNSUB 2\r\n");
    for route in server.routes(RouteDetail::Subscriptions) {
        assert_eq!(route.subscriptions_list.len(), route.subscriptions);
    }
    for id in [peer, other] {
        server.remove(id, fanline_engine::CloseReason::ReadError);
    }
    assert!(server.routes(RouteDetail::Announced).is_empty());
}

/// The results of a parser so far.
#[derive(Debug, PartialEq)]
struct Outcome {
    is_dedicated: bool,
    verbs: Vec<String>,
    consumed: usize,
    fault: Option<String>,
}

impl Outcome {
    fn new(is_dedicated: bool) -> Self {
        Outcome {
            is_dedicated,
            verbs: Vec::new(),
            consumed: 0,
            fault: None,
        }
    }

    /// Continues parsing. `data` is the whole input so far.
    fn parse_on(&mut self, data: &[u8]) {
        while self.fault.is_none() && self.consumed < data.len() {
            let input = &data[self.consumed..];
            match parse_route(input, self.is_dedicated) {
                RouteParsed::Verb(verb, taken) => {
                    assert!(taken > 0 && taken <= input.len());
                    check_verb(&verb, input, taken, self.is_dedicated);
                    self.verbs.push(format!("{verb:?}"));
                    self.consumed += taken;
                }
                RouteParsed::Partial { frame_bytes } => {
                    let frame_bytes_max = ROUTE_LINE_BYTES_MAX + ROUTE_PAYLOAD_BYTES_MAX + 2;
                    assert!(
                        frame_bytes == 0
                            || (frame_bytes > input.len() && frame_bytes <= frame_bytes_max)
                    );
                    return;
                }
                RouteParsed::Wrong(fault) => self.fault = Some(format!("{fault:?}")),
            }
        }
    }
}

fn check_verb(verb: &RouteVerb<'_>, input: &[u8], taken: usize, is_dedicated: bool) {
    match verb {
        RouteVerb::Message(message) => {
            let publish = &message.publish;
            assert_eq!(publish.body.end, taken);
            assert!(input[publish.body.clone()].ends_with(b"\r\n"));
            assert!(publish.payload_bytes() <= ROUTE_PAYLOAD_BYTES_MAX);
            assert!(publish.header_bytes <= publish.payload_bytes());
            assert!(!publish.subject.is_empty());
            assert_eq!(message.account.is_empty(), is_dedicated);
            check_written_message(message, is_dedicated);
        }
        RouteVerb::Subscribe(interest) | RouteVerb::Unsubscribe(interest) => {
            assert!(!interest.filter.is_empty());
            assert_eq!(interest.account.is_empty(), is_dedicated);
            let mut line = Vec::new();
            let (account, filter) = (interest.account, interest.filter);
            write_interest(
                &mut line,
                interest.origin,
                account,
                (filter, interest.queue),
                interest.weight,
            );
            let again = match interest.weight {
                0 => RouteVerb::Unsubscribe(*interest),
                _ => RouteVerb::Subscribe(*interest),
            };
            let parsed = parse_route(&line, is_dedicated);
            assert_eq!(parsed, RouteParsed::Verb(again, line.len()));
        }
        RouteVerb::Info(json) => {
            if let Some(info) = RouteInfo::parse(json) {
                let line = info.line();
                let json = line.strip_prefix(b"INFO ").map(<[u8]>::trim_ascii);
                let again = json.and_then(RouteInfo::parse);
                let gateway = info.gateway.clone();
                assert_eq!(
                    again.map(|again| RouteInfo { gateway, ..again }),
                    Some(info)
                );
            }
        }
        RouteVerb::Connect(json) => {
            if let Some(connect) = RouteConnect::parse(json) {
                let shown = format!("{connect:?}");
                let secret = &connect.pass;
                assert!(secret.len() < 20 || !shown.contains(secret.as_str()));
            }
        }
        _ => {}
    }
}

/// Checks that the line of a message without an origin is written as it was read.
fn check_written_message(message: &RouteMessage<'_>, is_dedicated: bool) {
    let RouteMessage {
        origin,
        account,
        publish,
        groups,
    } = message;
    let groups = groups.split(|b| b.is_ascii_whitespace());
    let groups: Vec<&[u8]> = groups.filter(|name| !name.is_empty()).collect();
    if !origin.is_empty() || publish.payload_bytes() > 1024 {
        return;
    }
    let mut line = Vec::new();
    write_head(
        &mut line,
        account,
        publish.subject,
        publish.reply,
        &groups.join(&b' '),
        publish.header_bytes,
        publish.payload_bytes(),
    );
    line.extend_from_slice(&vec![b'x'; publish.payload_bytes()]);
    line.extend_from_slice(b"\r\n");
    let RouteParsed::Verb(RouteVerb::Message(again), _) = parse_route(&line, is_dedicated) else {
        panic!("{line:?} is no message");
    };
    assert_eq!(again.publish.subject, publish.subject);
    assert_eq!(again.publish.reply, publish.reply);
    assert_eq!(again.publish.header_bytes, publish.header_bytes);
    assert_eq!(again.groups, groups.join(&b' '));
}
