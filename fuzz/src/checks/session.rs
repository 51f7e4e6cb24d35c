//! The input is a script for eight clients on two shards. Zero bytes separate its steps:
//!
//! - `0` to `7`, then bytes: this client sends the bytes. It connects first if it is not connected.
//! - `w`, a client, a byte `b`: this client reads `16 * b` bytes of its pending output.
//! - `x`, a client: this client disconnects.
//! - `t`: 20 seconds pass.
//! - `e`: the shards exchange their batches. They also do so at the end of the script.

use std::time::Duration;

use fanline_engine::Limits;

use super::simulation::Simulation;

const CLIENTS: usize = 8;
const SHARDS: usize = 2;
const STEPS_MAX: usize = 300;
const PENDING_BYTES_MAX: usize = 8 * 1024;
const PAYLOAD_BYTES_MAX: usize = 6 * 1024;

/// Checks that every client reads a well-formed stream, that its pending output is bounded, and that nothing
/// remains of the client after it has disconnected.
pub fn check(data: &[u8]) {
    let limits = Limits {
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        control_line_bytes_max: 128,
        pending_bytes_max: PENDING_BYTES_MAX,
        subscriptions_max: Some(16),
        ..Limits::default()
    };
    let mut simulation = Simulation::new(SHARDS, CLIENTS, limits);
    for step in data.split(|b| *b == 0).take(STEPS_MAX) {
        match step {
            [client @ b'0'..=b'7', bytes @ ..] => {
                simulation.send_from(usize::from(client - b'0'), bytes)
            }
            [b'w', client @ b'0'..=b'7', rest @ ..] => {
                let bytes = rest.first().map_or(usize::MAX, |b| 16 * usize::from(*b));
                simulation.read(usize::from(client - b'0'), bytes);
            }
            [b'x', client @ b'0'..=b'7', ..] => {
                disconnect(&mut simulation, usize::from(client - b'0'));
            }
            [b't', ..] => wait(&mut simulation),
            [b'e', ..] => exchange(&mut simulation),
            _ => {}
        }
        settle(&mut simulation);
    }
    exchange(&mut simulation);
    for client in 0..CLIENTS {
        disconnect(&mut simulation, client);
    }
    check_nothing_remains(&mut simulation);
}

fn disconnect(simulation: &mut Simulation, at: usize) {
    if let Some(received) = simulation.disconnect(at) {
        check_stream(&received);
    }
}

fn wait(simulation: &mut Simulation) {
    simulation.now += Duration::from_secs(20);
    let now = simulation.now;
    for shard in &mut simulation.shards {
        shard.handle_timeout(now);
        assert!(shard.next_timeout().is_none_or(|at| at > now));
    }
}

/// Disconnects clients that the server has ended, and checks the pending output of the others.
fn settle(simulation: &mut Simulation) {
    while let Some(at) = simulation.next_ended() {
        disconnect(simulation, at);
    }
    let pending_max = PENDING_BYTES_MAX + PAYLOAD_BYTES_MAX + 4096;
    for at in 0..CLIENTS {
        let pending = simulation.pending_bytes(at);
        assert!(pending <= pending_max, "{pending} pending bytes");
    }
}

fn exchange(simulation: &mut Simulation) {
    // A message is forwarded at most a few times, so this loop ends.
    for _ in 0..16 {
        let is_quiet = simulation.exchange_once();
        settle(simulation);
        if is_quiet {
            return;
        }
    }
    panic!("the exchange does not end");
}

fn check_nothing_remains(simulation: &mut Simulation) {
    exchange(simulation);
    for index in 0..SHARDS {
        let shard = &mut simulation.shards[index];
        let status = shard.status();
        assert_eq!((status.connections, status.subscriptions), (0, 0));
        assert_eq!(shard.next_timeout(), None);
        // There is no interest on either shard, not even in `>`, so these messages reach no subscriber.
        simulation.send_from(index, b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n");
        for subject in ["a", "b", "a.b", "a.b.c", "x.y"] {
            simulation.send_from(index, format!("PUB {subject} 1\r\nx\r\n").as_bytes());
        }
        let shard = &mut simulation.shards[index];
        assert!(
            shard.outgoing(1 - index).is_empty(),
            "interest of a closed session"
        );
        assert_eq!(shard.status().out_msgs, status.out_msgs);
        disconnect(simulation, index);
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
