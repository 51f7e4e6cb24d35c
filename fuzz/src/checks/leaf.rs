//! The input is the bytes from a leaf node. They are passed to the parser, and to a hub that has accepted the
//! leaf node.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::codec::leaf::LEAF_LINE_BYTES_MAX;
use fanline_engine::codec::leaf::parse::{LeafParsed, LeafVerb, parse_leaf};
use fanline_engine::leaf::Agreed;
use fanline_engine::{Auth, Chunk, Limits, Peer, ServerInfo, Shard, ShardConfig};

/// Maximum number of positions at which the input is cut. To cut at every position would take quadratic time.
const CUTS_MAX: usize = 200;

const PAYLOAD_BYTES_MAX: usize = 1024;

/// Checks that the parser returns the same results wherever the input is cut, and that a hub does not panic.
pub fn check(data: &[u8]) {
    let mut whole = Outcome::default();
    whole.parse_on(data);
    let step = data.len() / CUTS_MAX + 1;
    for cut in (0..data.len()).step_by(step) {
        let mut parts = Outcome::default();
        parts.parse_on(&data[..cut]);
        parts.parse_on(data);
        assert_eq!(parts, whole, "cut at {cut}");
    }
    check_hub(data);
}

/// The results of a parser so far.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    verbs: Vec<String>,
    consumed: usize,
    fault: Option<String>,
}

impl Outcome {
    /// Continues parsing. `data` is the whole input so far.
    fn parse_on(&mut self, data: &[u8]) {
        while self.fault.is_none() && self.consumed < data.len() {
            let input = &data[self.consumed..];
            match parse_leaf(input, PAYLOAD_BYTES_MAX) {
                LeafParsed::Verb(verb, taken) => {
                    assert!(taken > 0 && taken <= input.len());
                    if let LeafVerb::Message(message) = &verb {
                        let publish = &message.publish;
                        assert_eq!(publish.body.end, taken);
                        assert!(input[publish.body.clone()].ends_with(b"\r\n"));
                        assert!(publish.payload_bytes() <= PAYLOAD_BYTES_MAX);
                        assert!(publish.header_bytes <= publish.payload_bytes());
                        assert!(!publish.subject.is_empty());
                    }
                    self.verbs.push(format!("{verb:?}"));
                    self.consumed += taken;
                }
                LeafParsed::Partial { frame_bytes } => {
                    let frame_bytes_max = LEAF_LINE_BYTES_MAX + PAYLOAD_BYTES_MAX + 2;
                    assert!(
                        frame_bytes == 0
                            || (frame_bytes > input.len() && frame_bytes <= frame_bytes_max)
                    );
                    return;
                }
                LeafParsed::Wrong(fault) => self.fault = Some(format!("{fault:?}")),
            }
        }
    }
}

/// Runs a hub with one leaf node that sends the input, and a client that subscribes to everything.
fn check_hub(data: &[u8]) {
    let config = ShardConfig {
        limits: Limits::default(),
        auth: Auth::Open,
        shards: 1,
        traces: false,
        leafs: None,
        routes: None,
        gateways: None,
    };
    let now = Duration::ZERO;
    let mut hub = Shard::new(0, Arc::new(config), ServerInfo::default(), 7);
    let leaf = hub.open_leaf(1, Peer::default(), None, Agreed::default(), now);
    let client = hub.open(2, Peer::default(), false, now);
    let mut send = |id, bytes: &[u8]| {
        let chunk = Chunk::new(bytes.into());
        let mut at = 0;
        loop {
            let receipt = hub.receive(id, &chunk, at..chunk.len(), now);
            at += receipt.consumed;
            assert!(at <= chunk.len());
            if !receipt.must_flush {
                return;
            }
        }
    };
    send(
        client,
        b"CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB > 1\r\n",
    );
    send(leaf, b"CONNECT {\"name\":\"leaf\",\"headers\":true}\r\n");
    send(leaf, data);
    send(client, b"PUB a r 2\r\nhi\r\n");
}
