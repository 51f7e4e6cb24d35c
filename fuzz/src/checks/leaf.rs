//! The input is what a leaf node sends: to the parser, and to a hub that has let it in.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::codec::leaf::LEAF_LINE_BYTES_MAX;
use fanline_engine::codec::leaf::parse::{LeafParsed, LeafVerb, parse_leaf};
use fanline_engine::leaf::Agreed;
use fanline_engine::{Auth, Chunk, Limits, Peer, ServerInfo, Shard, ShardConfig};

/// Long inputs are cut at some places only: every place would take time with its square.
const CUTS_MAX: usize = 200;

const PAYLOAD_BYTES_MAX: usize = 1024;

/// Whatever comes, the parser says the same however it was cut, and a hub says something sensible.
pub fn check(data: &[u8]) {
    let mut whole = Heard::default();
    whole.hear(data);
    let step = data.len() / CUTS_MAX + 1;
    for cut in (0..data.len()).step_by(step) {
        let mut parts = Heard::default();
        parts.hear(&data[..cut]);
        parts.hear(data);
        assert_eq!(parts, whole, "cut at {cut}");
    }
    check_hub(data);
}

/// What a parser made of the bytes so far.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    verbs: Vec<String>,
    consumed: usize,
    fault: Option<String>,
}

impl Heard {
    /// Goes on where it was left, now that `data` is there from its beginning.
    fn hear(&mut self, data: &[u8]) {
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
                        assert!(!publish.topic.is_empty());
                    }
                    self.verbs.push(format!("{verb:?}"));
                    self.consumed += taken;
                }
                LeafParsed::Partial { frame_bytes } => {
                    let most = LEAF_LINE_BYTES_MAX + PAYLOAD_BYTES_MAX + 2;
                    assert!(frame_bytes == 0 || (frame_bytes > input.len() && frame_bytes <= most));
                    return;
                }
                LeafParsed::Wrong(fault) => self.fault = Some(format!("{fault:?}")),
            }
        }
    }
}

/// A hub with one leaf that says this, and a client that wants everything.
fn check_hub(data: &[u8]) {
    let config = ShardConfig {
        limits: Limits::default(),
        auth: Auth::Open,
        shards: 1,
        traces: false,
        leafs: None,
    };
    let now = Duration::ZERO;
    let mut hub = Shard::new(0, Arc::new(config), ServerInfo::default(), 7);
    let leaf = hub.open_leaf(1, Peer::default(), None, Agreed::default(), now);
    let client = hub.open(2, Peer::default(), false, now);
    let mut say = |id, bytes: &[u8]| {
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
    say(
        client,
        b"CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB > 1\r\n",
    );
    say(leaf, b"CONNECT {\"name\":\"leaf\",\"headers\":true}\r\n");
    say(leaf, data);
    say(client, b"PUB a r 2\r\nhi\r\n");
}
