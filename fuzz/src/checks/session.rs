//! The input is a script for eight clients on two shards. Zero bytes separate its steps:
//!
//! - `0` to `7`, then bytes: this client sends the bytes. It connects first if it is not connected.
//! - `w`, a client, a byte `b`: this client reads `16 * b` bytes of its pending output.
//! - `x`, a client: this client disconnects.
//! - `t`: 20 seconds pass.
//! - `e`: the shards exchange their batches. They also do so at the end of the script.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{
    Auth, Batch, BatchCursor, Chunk, CloseReason, Limits, Peer, ServerInfo, SessionId, Shard,
    ShardConfig,
};

const CLIENTS: usize = 8;
const SHARDS: usize = 2;
const STEPS_MAX: usize = 300;
const PENDING_BYTES_MAX: usize = 8 * 1024;
const PAYLOAD_BYTES_MAX: usize = 6 * 1024;

/// Checks that every client reads a well-formed stream, that its pending output is bounded, and that nothing
/// remains of the client after it has disconnected.
pub fn check(data: &[u8]) {
    let mut simulation = Simulation::new();
    for step in data.split(|b| *b == 0).take(STEPS_MAX) {
        match step {
            [client @ b'0'..=b'7', bytes @ ..] => {
                simulation.send_from(usize::from(client - b'0'), bytes)
            }
            [b'w', client @ b'0'..=b'7', rest @ ..] => {
                let bytes = rest.first().map_or(usize::MAX, |b| 16 * usize::from(*b));
                simulation.read(usize::from(client - b'0'), bytes);
            }
            [b'x', client @ b'0'..=b'7', ..] => simulation.disconnect(usize::from(client - b'0')),
            [b't', ..] => simulation.wait(),
            [b'e', ..] => simulation.exchange(),
            _ => {}
        }
        simulation.settle();
    }
    simulation.exchange();
    for client in 0..CLIENTS {
        simulation.disconnect(client);
    }
    simulation.check_nothing_remains();
}

struct Client {
    id: SessionId,
    /// Bytes that the client has sent, and the shard has not consumed yet.
    unread: Vec<u8>,
    received: Vec<u8>,
}

struct Simulation {
    shards: Vec<Shard>,
    clients: [Option<Client>; CLIENTS],
    now: Duration,
}

impl Simulation {
    fn new() -> Self {
        let limits = Limits {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            control_line_bytes_max: 128,
            pending_bytes_max: PENDING_BYTES_MAX,
            subscriptions_max: Some(16),
            ..Limits::default()
        };
        let config = Arc::new(ShardConfig {
            limits,
            auth: Auth::Open,
            shards: SHARDS,
            traces: false,
            leafs: None,
        });
        let make = |i| Shard::new(i, config.clone(), ServerInfo::default(), 7);
        Simulation {
            shards: (0u16..).take(SHARDS).map(make).collect(),
            clients: [const { None }; CLIENTS],
            now: Duration::ZERO,
        }
    }

    fn send_from(&mut self, at: usize, bytes: &[u8]) {
        let shard = &mut self.shards[at % SHARDS];
        let now = self.now;
        let client = self.clients[at].get_or_insert_with(|| Client {
            id: shard.open(at as u64, Peer::default(), false, now),
            unread: Vec::new(),
            received: Vec::new(),
        });
        client.unread.extend_from_slice(bytes);
        loop {
            let chunk = Chunk::new(client.unread[..].into());
            let receipt = shard.receive(client.id, &chunk, 0..chunk.len(), now);
            assert!(receipt.consumed <= chunk.len());
            client.unread.drain(..receipt.consumed);
            if !receipt.must_flush {
                let rest = client.unread.len();
                assert!(receipt.frame_bytes == 0 || receipt.frame_bytes > rest);
                return;
            }
        }
    }

    fn read(&mut self, at: usize, bytes_max: usize) {
        let Some(client) = &mut self.clients[at] else {
            return;
        };
        let shard = &mut self.shards[at % SHARDS];
        let outbox = shard.outbox(client.id);
        let mut left = bytes_max;
        while left > 0 && !outbox.is_empty() {
            let mut parts = [IoSlice::new(&[]); 4];
            let count = outbox.parts(&mut parts);
            let before = client.received.len();
            for part in &parts[..count] {
                let taken = part.len().min(left);
                client.received.extend_from_slice(&part[..taken]);
                left -= taken;
            }
            assert!(
                client.received.len() > before,
                "an outbox without bytes to write"
            );
            outbox.advance(client.received.len() - before);
        }
        shard.written(client.id, self.now);
    }

    /// Closes a client's connection. If the server has not closed it, the client does.
    fn disconnect(&mut self, at: usize) {
        self.read(at, usize::MAX);
        if let Some(client) = self.clients[at].take() {
            let ended = self.shards[at % SHARDS].remove(client.id, CloseReason::ClientClosed);
            assert!(ended.is_some(), "it was open");
            check_stream(&client.received);
        }
    }

    fn wait(&mut self) {
        self.now += Duration::from_secs(20);
        for shard in &mut self.shards {
            shard.handle_timeout(self.now);
            assert!(shard.next_timeout().is_none_or(|at| at > self.now));
        }
    }

    /// Performs what the runtime does after each call, except for writing the output.
    fn settle(&mut self) {
        for index in 0..SHARDS {
            while self.shards[index].next_dirty().is_some() {}
            while let Some((id, _)) = self.shards[index].next_ended() {
                let mut indices = (index..CLIENTS).step_by(SHARDS);
                let is_ended = |at: &usize| self.clients[*at].as_ref().is_some_and(|c| c.id == id);
                let at = indices.find(is_ended).expect("only open sessions end");
                self.disconnect(at);
            }
        }
        let pending_max = PENDING_BYTES_MAX + PAYLOAD_BYTES_MAX + 4096;
        for (at, client) in self.clients.iter().enumerate() {
            if let Some(client) = client {
                let pending = self.shards[at % SHARDS].pending_bytes(client.id);
                assert!(pending <= pending_max, "{pending} pending bytes");
            }
        }
    }

    fn exchange(&mut self) {
        // A message is forwarded at most a few times, so this loop ends.
        for _ in 0..16 {
            let mut is_quiet = true;
            for from in 0..SHARDS {
                let mut batch = Batch::default();
                batch.append(self.shards[from].outgoing(1 - from));
                assert!(self.shards[from].outgoing(from).is_empty());
                is_quiet &= batch.is_empty();
                let mut cursor = BatchCursor::default();
                while self.shards[1 - from].apply(&batch, &mut cursor).must_flush {}
            }
            self.settle();
            if is_quiet {
                return;
            }
        }
        panic!("the exchange does not end");
    }

    fn check_nothing_remains(&mut self) {
        self.exchange();
        for index in 0..SHARDS {
            let shard = &mut self.shards[index];
            let status = shard.status();
            assert_eq!((status.connections, status.subscriptions), (0, 0));
            assert_eq!(shard.next_timeout(), None);
            // There is no interest on either shard, not even in `>`, so these messages reach no subscriber.
            self.send_from(index, b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n");
            for subject in ["a", "b", "a.b", "a.b.c", "x.y"] {
                self.send_from(index, format!("PUB {subject} 1\r\nx\r\n").as_bytes());
            }
            let shard = &mut self.shards[index];
            assert!(
                shard.outgoing(1 - index).is_empty(),
                "interest of a closed session"
            );
            assert_eq!(shard.status().out_msgs, status.out_msgs);
            self.disconnect(index);
        }
    }
}

/// Checks that a client received complete lines and messages. The last one may be incomplete if the
/// connection was closed.
fn check_stream(stream: &[u8]) {
    let mut rest = stream;
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let line = &rest[..end];
        rest = &rest[end + 2..];
        let name = line.split(|b| *b == b' ').next().unwrap_or_default();
        let text = || String::from_utf8_lossy(line).into_owned();
        match name {
            b"MSG" | b"HMSG" => {
                let Some(after) = check_message(line, name == b"HMSG", rest) else {
                    return;
                };
                rest = after;
            }
            b"INFO" | b"-ERR" => {}
            b"PING" | b"PONG" | b"+OK" => assert_eq!(line, name),
            _ => panic!("a client received {:?}", text()),
        }
    }
}

/// Checks a message, and returns the bytes after it. Returns `None` if the message is incomplete.
fn check_message<'a>(line: &[u8], has_headers: bool, rest: &'a [u8]) -> Option<&'a [u8]> {
    let text = String::from_utf8_lossy(line).into_owned();
    let words: Vec<&str> = text.split(' ').collect();
    let sizes = if has_headers { 2 } else { 1 };
    assert!(
        words.len() == 3 + sizes || words.len() == 4 + sizes,
        "{text:?}"
    );
    assert!(words.iter().all(|word| !word.is_empty()), "{text:?}");
    let size = |back: usize| -> usize {
        let word = words[words.len() - back];
        word.parse().expect("a size is a number")
    };
    if has_headers {
        assert!(size(2) > 0 && size(2) <= size(1), "{text:?}");
    }
    let end = rest.get(size(1)..size(1) + 2)?;
    assert_eq!(end, b"\r\n", "{text:?}");
    Some(&rest[size(1) + 2..])
}
