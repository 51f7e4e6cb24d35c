use super::*;
use crate::auth::{Auth, ConnectionKind, Peer};
use crate::limits::Limits;
use crate::session::connections::REMOVED_AT_ONCE_MAX;

/// Simulated shards, and the output of each client.
pub(super) struct Simulation {
    pub(super) shards: Vec<Shard>,
    pub(super) now: Duration,
    next_cid: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Client {
    pub(super) shard: usize,
    pub(super) id: SessionId,
}

const QUIET: &str =
    "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n";

impl Simulation {
    pub(super) fn new(shards: usize) -> Self {
        Simulation::with(shards, Limits::default(), Auth::Open)
    }

    pub(super) fn with(shards: usize, limits: Limits, auth: Auth) -> Self {
        let config = ShardConfig {
            limits,
            auth,
            shards,
            traces: false,
            leafs: None,
            routes: None,
            gateways: None,
        };
        Simulation::of(config, &ServerInfo::default())
    }

    pub(super) fn of(config: ShardConfig, info: &ServerInfo) -> Self {
        let config = Arc::new(config);
        let shards = (0..config.shards)
            .map(|i| {
                let index = u16::try_from(i).unwrap();
                Shard::new(index, config.clone(), info.clone(), 42 + i as u64)
            })
            .collect();
        Simulation {
            shards,
            now: Duration::ZERO,
            next_cid: 0,
        }
    }

    pub(super) fn open(&mut self, shard: usize) -> Client {
        self.open_as(shard, ConnectionKind::default())
    }

    pub(super) fn open_as(&mut self, shard: usize, kind: ConnectionKind) -> Client {
        self.next_cid += 1;
        let peer = Peer {
            kind,
            ..Peer::default()
        };
        let id = self.shards[shard].open(self.next_cid, peer, false, self.now);
        Client { shard, id }
    }

    /// Opens a client, sends CONNECT, and discards the first output.
    pub(super) fn client(&mut self, shard: usize) -> Client {
        let client = self.open(shard);
        self.send(client, QUIET);
        self.read(client);
        client
    }

    fn send_bytes(&mut self, client: Client, bytes: &[u8]) -> Receipt {
        let chunk = Chunk::new(bytes.into());
        let mut at = 0;
        let receipt = loop {
            let shard = &mut self.shards[client.shard];
            let receipt = shard.receive(client.id, &chunk, at..chunk.len(), self.now);
            at += receipt.consumed;
            if !receipt.must_flush {
                break Receipt {
                    consumed: at,
                    ..receipt
                };
            }
        };
        self.exchange();
        receipt
    }

    pub(super) fn send(&mut self, client: Client, text: &str) {
        let receipt = self.send_bytes(client, text.as_bytes());
        assert_eq!(receipt.consumed, text.len(), "{text:?}");
    }

    /// Passes batches between the shards until there are none.
    pub(super) fn exchange(&mut self) {
        loop {
            let mut moved = false;
            for from in 0..self.shards.len() {
                for to in 0..self.shards.len() {
                    let mut batch = std::mem::take(self.shards[from].outgoing(to));
                    moved |= !batch.is_empty();
                    let mut cursor = BatchCursor::default();
                    while self.shards[to].apply(&batch, &mut cursor).must_flush {}
                    batch.clear();
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Takes the output of a client.
    pub(super) fn read(&mut self, client: Client) -> String {
        let shard = &mut self.shards[client.shard];
        let out = shard.outbox(client.id);
        let mut bytes = Vec::new();
        while !out.is_empty() {
            let mut parts = [std::io::IoSlice::new(&[]); 4];
            let count = out.parts(&mut parts);
            let taken: Vec<u8> = parts[..count].iter().flat_map(|p| p.to_vec()).collect();
            out.advance(taken.len());
            bytes.extend(taken);
        }
        shard.written(client.id, self.now);
        String::from_utf8(bytes).unwrap()
    }

    pub(super) fn is_ended(&self, client: Client) -> Option<CloseReason> {
        self.shards[client.shard].broker.exchange.sessions[client.id.index()].ending
    }
}

/// Checks that a client that sends `input` receives `output`.
#[track_caller]
fn check(input: &str, output: &str) {
    let mut simulation = Simulation::new(1);
    let client = simulation.client(0);
    simulation.send(client, input);
    assert_eq!(simulation.read(client), output, "{input:?}");
}

#[test]
fn messages_are_delivered_to_subscribers() {
    check("SUB a 1\r\nPUB a 2\r\nhi\r\n", "MSG a 1 2\r\nhi\r\n");
    check(
        "SUB a 1\r\nPUB a r.x 2\r\nhi\r\n",
        "MSG a 1 r.x 2\r\nhi\r\n",
    );
    check("SUB a 1\nPUB a 2\nhi\r\n", "MSG a 1 2\r\nhi\r\n");
    check("sub a 1\r\npUb  a\t002 \r\nhi\r\n", "MSG a 1 2\r\nhi\r\n");
    check("SUB a 1\r\nPUB a   r    0\r\n\r\n", "MSG a 1 r 0\r\n\r\n");
    check(
        "SUB * abc\r\nSUB > 2\r\nPUB a 0\r\n\r\n",
        "MSG a 2 0\r\n\r\nMSG a abc 0\r\n\r\n",
    );
    check(
        "SUB a 1\r\nHPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        "HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
    );
    check(
        "SUB a 1\r\nHPUB a r 12  14\r\nNATS/1.0\r\n\r\nhi\r\n",
        "HMSG a 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
    );
    check("SUB a 1\r\nPUB a..b 0\r\n\r\nPUB b 0\r\n\r\n", "");
    check(
        "SUB foo.* 1\r\nPUB foo.* 0\r\n\r\n",
        "MSG foo.* 1 0\r\n\r\n",
    );
}

#[test]
fn protocol_trace_shows_both_directions_without_secrets() {
    let mut simulation = Simulation::new(1);
    let plain = simulation.client(0);
    let client = simulation.client(0);
    simulation.send(
        plain,
        "CONNECT {\"headers\":false,\"no_responders\":false}\r\nSUB a 9\r\n",
    );
    simulation.shards[0].broker.exchange.outputs.traces = true;
    simulation.send(
        client,
        "CONNECT {\"name\":\"n\",\"PASS\":\"p\",\"auth_token\":\"t\"}\r\nSUB a 1\r\nPING\r\n\
         HPUB a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\nPUB b\x1b 0\r\n\r\nNO\r\n",
    );
    let lines = simulation.shards[0].take_traces();
    let (to_plain, own): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(id, _)| *id == plain.id);
    let own: Vec<_> = own.into_iter().map(|(_, line)| line).collect();
    let to_plain: Vec<_> = to_plain.into_iter().map(|(_, line)| line).collect();
    assert_eq!(to_plain, ["->> [MSG a 9 r 2]", "->> MSG_PAYLOAD: [\"hi\"]"]);
    assert_eq!(
        own,
        [
            "<<- [CONNECT {\"PASS\":\"[REDACTED]\",\"auth_token\":\"[REDACTED]\",\"name\":\"n\"}]",
            "<<- [SUB a 1]",
            "<<- [PING]",
            "->> [PONG]",
            "<<- [HPUB a r 12 14]",
            "<<- MSG_PAYLOAD: [\"NATS/1.0\\r\\n\\r\\nhi\"]",
            "->> [HMSG a 1 r 12 14]",
            "->> MSG_PAYLOAD: [\"NATS/1.0\\r\\n\\r\\nhi\"]",
            "<<- [PUB b\u{fffd} 0]",
            "<<- MSG_PAYLOAD: [\"\"]",
            "->> [-ERR 'Unknown Protocol Operation']",
        ]
    );
}

#[test]
fn protocol_trace_limits_payloads() {
    for (traced_bytes_max, traces_headers_only, expected) in [
        (None, false, vec!["NATS/1.0\\r\\n\\r\\nhello", "world"]),
        (Some(5), false, vec!["NATS/...", "world"]),
        (Some(4), false, vec!["NATS...", "worl..."]),
        (None, true, vec!["NATS/1.0\\r\\n\\r\\n"]),
        (Some(5), true, vec!["NATS/..."]),
    ] {
        let mut simulation = Simulation::new(1);
        let client = simulation.client(0);
        let limits = Limits {
            traced_bytes_max,
            traces_headers_only,
            ..Limits::default()
        };
        simulation.shards[0]
            .broker
            .exchange
            .outputs
            .set_limits(&limits, true);
        simulation.send(
            client,
            "SUB a 1\r\nHPUB a 12 17\r\nNATS/1.0\r\n\r\nhello\r\nPUB a 5\r\nworld\r\n",
        );
        let lines = simulation.shards[0].take_traces();
        let lines = lines.into_iter().map(|(_, line)| line);
        let payloads: Vec<String> = lines.filter(|line| line.contains("MSG_PAYLOAD")).collect();
        let wanted = expected.iter().flat_map(|text| {
            ["<<-", "->>"].map(|direction| format!("{direction} MSG_PAYLOAD: [\"{text}\"]"))
        });
        assert_eq!(payloads, wanted.collect::<Vec<_>>());
    }
}

#[test]
fn filter_tokens_are_limited() {
    let limits = Limits {
        subscription_tokens_max: Some(3),
        ..Limits::default()
    };
    let mut simulation = Simulation::with(1, limits, Auth::Open);
    let client = simulation.client(0);
    let refusal = |filter: &str| {
        format!(
            "-ERR 'Permissions Violation for Subscription to \"{filter}\", too many tokens'\r\n"
        )
    };
    simulation.send(
        client,
        "SUB a.b.c.d 1\r\nSUB a.*.>.d q 1\r\nSUB a.b.c 2\r\nPUB a.b.c 0\r\n\r\n",
    );
    let output = simulation.read(client);
    assert!(output.contains(&refusal("a.b.c.d")), "{output}");
    assert!(output.contains(&refusal("a.*.>.d")), "{output}");
    assert!(output.ends_with("MSG a.b.c 2 0\r\n\r\n"), "{output}");
}

#[test]
fn unsub_with_max_ends_a_subscription() {
    let publish = "PUB a 1\r\nx\r\n".repeat(3);
    let message = "MSG a 1 1\r\nx\r\n";
    check(
        &format!("SUB a 1\r\nUNSUB 1 2\r\n{publish}"),
        &message.repeat(2),
    );
    check(
        &format!("SUB a 1\r\n{publish}UNSUB 1 4\r\n{publish}"),
        &message.repeat(4),
    );
    check(
        &format!("SUB a 1\r\n{publish}UNSUB 1 3\r\n{publish}"),
        &message.repeat(3),
    );
    check(&format!("SUB a 1\r\nUNSUB 1\r\n{publish}"), "");
    check(
        "SUB a 1\r\nUNSUB 9\r\nUNSUB 9 9\r\nPUB a 1\r\nx\r\n",
        message,
    );
}

#[test]
fn errors_that_leave_the_connection_open() {
    check(
        "SUB a..b 1\r\nPING\r\n",
        "-ERR 'Invalid Subject'\r\nPONG\r\n",
    );
    check("SUB a.>.b 1\r\n", "-ERR 'Invalid Subject'\r\n");
    check(
        "SUB a _sys_ 1\r\n",
        "-ERR 'Permissions Violation for Subscription to \"a\" using queue \"_sys_\"'\r\n",
    );
    check(
        "PUB $NRG.x 0\r\n\r\n",
        "-ERR 'Permissions Violation for Publish to \"$NRG.x\"'\r\n",
    );
    check(
        "PUB a _R_.x 0\r\n\r\n",
        "-ERR 'Permissions Violation for Publish with Reply of \"_R_.x\"'\r\n",
    );
    check(
        "CONNECT {\"pedantic\":true}\r\nSUB a.* 1\r\nPUB a.* 0\r\n\r\n",
        "-ERR 'Invalid Publish Subject'\r\nMSG a.* 1 0\r\n\r\n",
    );
    check(
        "CONNECT {\"verbose\":true}\r\nSUB a 1\r\nPUB b 0\r\n\r\nUNSUB 1\r\nPING\r\n",
        "+OK\r\n+OK\r\n+OK\r\n+OK\r\nPONG\r\n",
    );
}

#[test]
fn errors_that_close() {
    for (input, answer, reason) in [
        (
            "FOO\r\n",
            "-ERR 'Unknown Protocol Operation'\r\n",
            CloseReason::ProtocolViolation,
        ),
        (
            "\r\n",
            "-ERR 'Unknown Protocol Operation'\r\n",
            CloseReason::ProtocolViolation,
        ),
        (
            "PUB a 1\r\nxyz",
            "-ERR 'Unknown Protocol Operation'\r\n",
            CloseReason::ProtocolViolation,
        ),
        ("PUB a\r\n", "", CloseReason::ProtocolViolation),
        ("PUB a b c 1\r\n", "", CloseReason::ProtocolViolation),
        ("PUB a -1\r\n", "", CloseReason::ProtocolViolation),
        ("HPUB a 5 2\r\n", "", CloseReason::ProtocolViolation),
        ("SUB a\r\n", "", CloseReason::ProtocolViolation),
        ("CONNECT {x\r\n", "", CloseReason::ProtocolViolation),
        (
            "CONNECT {\"protocol\":2}\r\n",
            "-ERR 'invalid client protocol'\r\n",
            CloseReason::BadClientProtocolVersion,
        ),
        (
            "CONNECT {\"headers\":false}\r\n",
            "-ERR 'no responders requires headers support'\r\n",
            CloseReason::NoRespondersRequiresHeaders,
        ),
        (
            "CONNECT {\"account\":\"A\"}\r\n",
            "-ERR 'Authorization Violation'\r\n",
            CloseReason::AuthenticationFailure,
        ),
        (
            "PUB a 2147483648\r\n",
            "-ERR 'Maximum Payload Violation'\r\n",
            CloseReason::MaximumPayloadExceeded,
        ),
        (
            "PUB a 99999999999999999999999999\r\n",
            "-ERR 'Maximum Payload Violation'\r\n",
            CloseReason::MaximumPayloadExceeded,
        ),
        (
            "PUB a 1048577\r\n",
            "-ERR 'Maximum Payload Violation'\r\n",
            CloseReason::MaximumPayloadExceeded,
        ),
        ("-ERR 'x'\r\n", "", CloseReason::ParseError),
        ("INFO {\r\n", "", CloseReason::ProtocolViolation),
    ] {
        let mut simulation = Simulation::new(1);
        let client = simulation.client(0);
        simulation.send_bytes(client, input.as_bytes());
        assert_eq!(simulation.read(client), answer, "{input:?}");
        assert_eq!(simulation.is_ended(client), Some(reason), "{input:?}");
        // The rest of the input is ignored.
        assert_eq!(simulation.send_bytes(client, b"SUB a 1\r\n").consumed, 9);
        assert!(
            simulation.shards[0]
                .remove(client.id, CloseReason::ClientClosed)
                .is_some()
        );
        assert_eq!(simulation.shards[0].status().subscriptions, 0);
    }
}

#[test]
fn control_line_is_limited_whole_or_in_parts() {
    let long = format!("PUB {} 0\r\n", "a".repeat(4096));
    for input in [
        &long[..],
        &long[..4200.min(long.len() - 2)],
        &format!("SUB {}", "b".repeat(5000)),
    ] {
        let mut simulation = Simulation::new(1);
        let client = simulation.client(0);
        simulation.send_bytes(client, input.as_bytes());
        assert_eq!(
            simulation.read(client),
            "-ERR 'maximum control line exceeded'\r\n"
        );
    }
    let fits = format!("PUB {} 0\r\n\r\n", "a".repeat(4094));
    check(&fits, "");
}

#[test]
fn no_responders_goes_to_the_requesters_own_subscription() {
    let status = "NATS/1.0 503\r\nNats-Subject: ok.none\r\n\r\n\r\n";
    check(
        "SUB in.* 7\r\nPUB ok.none in.1 2\r\nhi\r\n",
        &format!("HMSG in.1 7 39 39\r\n{status}"),
    );
    check("PUB ok.none in.1 2\r\nhi\r\n", "");
    check("SUB in.* q 7\r\nPUB ok.none in.1 2\r\nhi\r\n", "");
    let mut simulation = Simulation::new(2);
    let (asks, serves) = (simulation.client(0), simulation.client(1));
    simulation.send(asks, "SUB in 1\r\n");
    simulation.send(serves, "SUB service q 1\r\n");
    simulation.send(asks, "PUB service in 0\r\n\r\n");
    assert_eq!(simulation.read(asks), "");
    assert_eq!(simulation.read(serves), "MSG service 1 in 0\r\n\r\n");
    simulation.send(serves, "UNSUB 1\r\n");
    simulation.send(asks, "PUB service in 0\r\n\r\n");
    assert!(
        simulation
            .read(asks)
            .starts_with("HMSG in 1 39 39\r\nNATS/1.0 503")
    );
}

#[test]
fn later_subscriber_receives_a_cached_subject() {
    const NOBODY: &str = "PUB a 1\r\n1\r\nPUB a 1\r\n2\r\nPUB a 1\r\n3\r\n";
    for shard in 0..2 {
        let mut simulation = Simulation::new(2);
        let (publisher, late) = (simulation.client(0), simulation.client(shard));
        simulation.send(publisher, NOBODY);
        simulation.send(late, "SUB a 1\r\n");
        simulation.send(publisher, "PUB a 1\r\n4\r\nPUB a 1\r\n5\r\n");
        let found = simulation.read(late);
        assert_eq!(
            found, "MSG a 1 1\r\n4\r\nMSG a 1 1\r\n5\r\n",
            "on shard {shard}"
        );
        simulation.send(late, "UNSUB 1\r\n");
        simulation.send(publisher, NOBODY);
        assert_eq!(simulation.read(late), "", "on shard {shard}");
    }
    // The same in a single input, with a request that has no responder.
    let input = format!("{NOBODY}SUB r 9\r\nPUB a r 1\r\n4\r\nSUB a 1\r\nPUB a 1\r\n5\r\n");
    let status = "NATS/1.0 503\r\nNats-Subject: a\r\n\r\n";
    let status_message = format!("HMSG r 9 {0} {0}\r\n{status}\r\n", status.len());
    check(&input, &format!("{status_message}MSG a 1 1\r\n5\r\n"));
}

#[test]
fn headers_are_stripped_for_clients_without_headers() {
    for size in [2, SHARED] {
        let mut simulation = Simulation::new(1);
        let (old, new) = (simulation.open(0), simulation.client(0));
        simulation.send(old, "CONNECT {\"verbose\":false}\r\nSUB a 1\r\n");
        simulation.read(old);
        let payload = "x".repeat(size);
        let header = "NATS/1.0\r\nA: b\r\n\r\n";
        let total = header.len() + size;
        simulation.send(
            new,
            &format!("HPUB a r {} {total}\r\n{header}{payload}\r\n", header.len()),
        );
        assert_eq!(
            simulation.read(old),
            format!("MSG a 1 r {size}\r\n{payload}\r\n")
        );
    }
}

pub(super) const SHARED: usize = crate::SHARED_BYTES_MIN + 100;

#[test]
fn echo_can_be_off() {
    let mut simulation = Simulation::new(1);
    let (silent, other) = (simulation.client(0), simulation.client(0));
    simulation.send(
        silent,
        "CONNECT {\"echo\":false}\r\nSUB a 1\r\nSUB a q 2\r\n",
    );
    simulation.send(other, "SUB a 1\r\nSUB a q 2\r\n");
    for _ in 0..20 {
        simulation.send(silent, "PUB a 0\r\n\r\n");
    }
    assert_eq!(simulation.read(silent), "");
    assert_eq!(
        simulation.read(other),
        "MSG a 1 0\r\n\r\nMSG a 2 0\r\n\r\n".repeat(20)
    );
}

#[test]
fn verbs_before_credentials_are_refused() {
    let auth = Auth::User {
        name: "ada".into(),
        password: "x".into(),
    };
    for (input, answer) in [
        ("PUB a 0\r\n\r\n", "-ERR 'Authorization Violation'\r\n"),
        ("PING\r\n", "-ERR 'Authorization Violation'\r\n"),
        (
            "CONNECT {\"user\":\"ada\"}\r\n",
            "-ERR 'Authorization Violation'\r\n",
        ),
        (
            "CONNECT {\"user\":\"ada\",\"pass\":\"x\"}\r\nPING\r\n",
            "+OK\r\nPONG\r\n",
        ),
    ] {
        let mut simulation = Simulation::with(1, Limits::default(), auth.clone());
        let client = simulation.open(0);
        simulation.read(client);
        simulation.send_bytes(client, input.as_bytes());
        assert_eq!(simulation.read(client), answer, "{input:?}");
    }
    let mut simulation = Simulation::with(1, Limits::default(), auth);
    let client = simulation.open(0);
    simulation.read(client);
    simulation.shards[0].handle_timeout(Duration::from_millis(1999));
    assert_eq!(simulation.is_ended(client), None);
    simulation.shards[0].handle_timeout(Duration::from_secs(2));
    assert_eq!(simulation.read(client), "-ERR 'Authentication Timeout'\r\n");
}

#[test]
fn second_info_follows_the_first_pong() {
    let mut simulation = Simulation::new(1);
    let client = simulation.open(0);
    assert!(simulation.read(client).starts_with("INFO {"));
    simulation.send(
        client,
        "CONNECT {\"verbose\":false,\"protocol\":1}\r\nPING\r\nPING\r\n",
    );
    let answer = simulation.read(client);
    assert!(answer.starts_with("PONG\r\nINFO {"), "{answer}");
    assert!(answer.contains("\"connect_info\":true") && answer.ends_with(" \r\nPONG\r\n"));
    simulation.shards[0].announce_lame_duck();
    assert!(simulation.read(client).contains("\"ldm\":true"));
}

#[test]
fn silent_client_is_pinged_then_disconnected() {
    let mut simulation = Simulation::new(1);
    let client = simulation.client(0);
    let mut at = |secs| {
        simulation.shards[0].handle_timeout(Duration::from_secs(secs));
        simulation.read(client)
    };
    assert_eq!(at(1), "");
    assert_eq!(at(3), "PING\r\n");
    assert_eq!(at(100), "");
    assert_eq!(at(124), "PING\r\n");
    assert_eq!(at(250), "-ERR 'Stale Connection'\r\n");
}

#[test]
fn client_that_connects_late_is_pinged_after_the_answer_to_its_own_ping() {
    let mut simulation = Simulation::new(1);
    let client = simulation.open(0);
    assert!(simulation.read(client).starts_with("INFO {"));
    simulation.shards[0].handle_timeout(Duration::from_secs(3));
    simulation.now = Duration::from_secs(4);
    simulation.send(client, "CONNECT {\"verbose\":false}\r\nPING\r\n");
    assert_eq!(simulation.read(client), "PONG\r\n");
    simulation.shards[0].handle_timeout(Duration::from_secs(124));
    assert_eq!(simulation.read(client), "PING\r\n");
}

#[test]
fn active_client_is_not_pinged() {
    let mut simulation = Simulation::new(1);
    let client = simulation.client(0);
    simulation.shards[0].handle_timeout(Duration::from_secs(3));
    simulation.now = Duration::from_secs(4);
    simulation.send(client, "PONG\r\n");
    simulation.read(client);
    simulation.now = Duration::from_secs(100);
    simulation.send(client, "PUB a 0\r\n\r\n");
    simulation.shards[0].handle_timeout(Duration::from_secs(124));
    assert_eq!(simulation.read(client), "");
}

#[test]
fn slow_consumer_is_disconnected_alone() {
    let limits = Limits {
        pending_bytes_max: 10_000,
        ..Limits::default()
    };
    let mut simulation = Simulation::with(1, limits, Auth::Open);
    let (slow, good, publisher) = (
        simulation.client(0),
        simulation.client(0),
        simulation.client(0),
    );
    simulation.send(slow, "SUB a 1\r\n");
    simulation.send(good, "SUB a 1\r\n");
    let mut received = 0;
    for _ in 0..30 {
        simulation.send(
            publisher,
            &format!("PUB a 1000\r\n{}\r\n", "x".repeat(1000)),
        );
        received += simulation.read(good).len();
    }
    assert_eq!(received, 30 * (1000 + "MSG a 1 1000\r\n\r\n".len()));
    assert_eq!(
        simulation.is_ended(slow),
        Some(CloseReason::SlowConsumerPendingBytes)
    );
    assert_eq!(simulation.shards[0].pending_bytes(slow.id), 0);
    assert!(
        simulation
            .send_bytes(publisher, b"PING\r\n")
            .congested
            .is_none()
    );
}

#[test]
fn blocked_write_has_a_deadline() {
    let mut simulation = Simulation::new(1);
    let client = simulation.client(0);
    simulation.send(client, "PING\r\n");
    simulation.shards[0].written(client.id, Duration::from_secs(1));
    simulation.shards[0].handle_timeout(Duration::from_millis(10_900));
    assert_eq!(simulation.is_ended(client), None);
    simulation.shards[0].handle_timeout(Duration::from_secs(11));
    assert_eq!(
        simulation.is_ended(client),
        Some(CloseReason::SlowConsumerWriteDeadline)
    );
}

#[test]
fn subscriptions_are_limited() {
    let limits = Limits {
        subscriptions_max: Some(2),
        ..Limits::default()
    };
    let mut simulation = Simulation::with(1, limits, Auth::Open);
    let client = simulation.client(0);
    simulation.send(
        client,
        "SUB a 1\r\nSUB b 2\r\nSUB c 3\r\nUNSUB 1\r\nSUB c 3\r\nPUB c 0\r\n\r\n",
    );
    assert_eq!(
        simulation.read(client),
        "-ERR 'maximum subscriptions exceeded'\r\nMSG c 3 0\r\n\r\n"
    );
}

#[test]
fn many_subscriptions_are_removed_in_steps() {
    let count = 2 * REMOVED_AT_ONCE_MAX + 1;
    let mut simulation = Simulation::new(2);
    let (leaver, other) = (simulation.client(0), simulation.client(0));
    let lines: String = (0..count).map(|i| format!("SUB a.{i} {i}\r\n")).collect();
    simulation.send(leaver, &lines);
    simulation.shards[0].end(leaver.id, CloseReason::ClientClosed);
    simulation.exchange();
    // A closed connection receives nothing, and a requester receives a 503 at once.
    for i in [0, count - 1] {
        simulation.send(other, &format!("PUB a.{i} r 0\r\n\r\n"));
    }
    simulation.send(other, "SUB r 1\r\nPUB a.7 r 0\r\n\r\n");
    assert!(simulation.read(other).contains("NATS/1.0 503"));
    assert_eq!(simulation.read(leaver), "");
    let mut portions = 1;
    while simulation.shards[0].remove_some_subscriptions(leaver.id) {
        portions += 1;
    }
    simulation.exchange();
    assert_eq!(portions, 3);
    for shard in 0..2 {
        assert!(!simulation.shards[shard].has_subscriber(AccountId::GLOBAL, b"a.0"));
    }
    let ended = simulation.shards[0].remove(leaver.id, CloseReason::ClientClosed);
    assert_eq!(ended.unwrap().status.subscriptions, count);
    assert_eq!(simulation.shards[0].status().subscriptions, 1);
}

#[test]
fn queue_subscriptions_are_removed_at_once() {
    let mut simulation = Simulation::new(2);
    let (leaver, member, publisher) = (
        simulation.client(0),
        simulation.client(0),
        simulation.client(1),
    );
    let lines: String = (0..2 * REMOVED_AT_ONCE_MAX)
        .map(|i| format!("SUB a.{i} {i}\r\n"))
        .collect();
    simulation.send(leaver, &lines);
    simulation.send(leaver, "SUB g workers g\r\n");
    simulation.shards[0].end(leaver.id, CloseReason::ClientClosed);
    simulation.exchange();
    assert!(!simulation.shards[1].has_subscriber(AccountId::GLOBAL, b"g"));
    simulation.send(member, "SUB g workers 1\r\n");
    simulation.send(publisher, "PUB g 0\r\n\r\n");
    assert_eq!(simulation.read(member), "MSG g 1 0\r\n\r\n");
}

#[test]
fn remove_drops_remaining_subscriptions() {
    let mut simulation = Simulation::new(1);
    let leaver = simulation.client(0);
    let count = 3 * REMOVED_AT_ONCE_MAX;
    let lines: String = (0..count).map(|i| format!("SUB a.{i} {i}\r\n")).collect();
    simulation.send(leaver, &lines);
    simulation.shards[0].remove(leaver.id, CloseReason::ClientClosed);
    assert_eq!(simulation.shards[0].status().subscriptions, 0);
    assert_eq!(
        simulation.shards[0].status().subscriptions_added,
        count as u64
    );
}

#[test]
fn cross_shard_messages_arrive_once_and_in_order() {
    let mut simulation = Simulation::new(3);
    let publisher = simulation.client(0);
    let readers: Vec<Client> = (0..3).map(|shard| simulation.client(shard)).collect();
    for reader in &readers {
        simulation.send(
            *reader,
            "SUB a.* 1\r\nSUB a.b 2\r\nSUB b.* 3\r\nUNSUB 3\r\n",
        );
    }
    let payloads: Vec<String> = (0..50)
        .map(|i| "y".repeat(if i % 7 == 0 { SHARED } else { i }))
        .collect();
    let all: String = payloads
        .iter()
        .map(|p| format!("PUB a.b r {}\r\n{p}\r\nPUB b.b 0\r\n\r\n", p.len()))
        .collect();
    simulation.send(publisher, &all);
    for reader in &readers {
        let got = simulation.read(*reader);
        let of_sid = |sid: &str| -> Vec<String> {
            payloads
                .iter()
                .map(|p| format!("MSG a.b {sid} r {}\r\n{p}\r\n", p.len()))
                .collect()
        };
        let mut rest = &got[..];
        for (one, two) in of_sid("1").iter().zip(of_sid("2")) {
            rest = rest
                .strip_prefix(&one[..])
                .or_else(|| rest.strip_prefix(&two[..]))
                .unwrap();
            rest = rest
                .strip_prefix(&two[..])
                .or_else(|| rest.strip_prefix(&one[..]))
                .unwrap();
        }
        assert_eq!(rest, "");
    }
}

#[test]
fn one_member_on_any_shard_receives_each_message() {
    let mut simulation = Simulation::new(2);
    let publisher = simulation.client(0);
    let members: Vec<Client> = (0..4).map(|i| simulation.client(i / 2)).collect();
    for (i, member) in members.iter().enumerate() {
        // The same group under two filters is one group.
        simulation.send(
            *member,
            if i % 2 == 0 {
                "SUB a.b q 1\r\n"
            } else {
                "SUB a.> q 1\r\n"
            },
        );
    }
    let total = 1000;
    simulation.send(publisher, &"PUB a.b 0\r\n\r\n".repeat(total));
    let message = "MSG a.b 1 0\r\n\r\n";
    let counts: Vec<usize> = members
        .iter()
        .map(|m| simulation.read(*m).matches(message).count())
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), total);
    assert!(counts.iter().all(|c| (150..350).contains(c)), "{counts:?}");
}

/// Publishes 64 messages to `a` on shard 0. While those for the group's only member on shard 1 are in transit,
/// the member leaves, and then `meanwhile` happens.
fn publish_past_a_member_that_leaves(
    simulation: &mut Simulation,
    (publisher, leaves): (Client, Client),
    meanwhile: impl FnOnce(&mut Simulation),
) {
    simulation.send(leaves, "SUB a q 1\r\n");
    let chunk = Chunk::new("PUB a 0\r\n\r\n".repeat(64).as_bytes().into());
    simulation.shards[0].receive(publisher.id, &chunk, 0..chunk.len(), Duration::ZERO);
    let mut under_way = std::mem::take(simulation.shards[0].outgoing(1));
    assert!(!under_way.is_empty());
    simulation.send(leaves, "UNSUB 1\r\n");
    meanwhile(simulation);
    simulation.shards[1].apply(&under_way, &mut BatchCursor::default());
    under_way.clear();
    simulation.exchange();
    assert_eq!(simulation.read(leaves), "");
}

#[test]
fn message_for_a_queue_group_follows_its_members() {
    let mut simulation = Simulation::new(3);
    let [publisher, leaves, stays] = [0, 1, 2].map(|shard| simulation.client(shard));
    simulation.send(stays, "SUB a q 1\r\n");
    publish_past_a_member_that_leaves(&mut simulation, (publisher, leaves), |_| ());
    assert_eq!(simulation.read(stays).matches("MSG a 1 0").count(), 64);
}

/// The messages come back to the publisher's shard, whose only member is the publisher.
#[test]
fn message_that_comes_back_skips_a_publisher_without_echo() {
    let mut simulation = Simulation::new(3);
    let [publisher, leaves, stays] = [0, 1, 2].map(|shard| simulation.client(shard));
    simulation.send(publisher, "CONNECT {\"echo\":false}\r\nSUB a q 1\r\n");
    simulation.send(stays, "SUB a q 1\r\n");
    publish_past_a_member_that_leaves(&mut simulation, (publisher, leaves), |_| ());
    assert_eq!(simulation.read(publisher), "");
    assert_eq!(simulation.read(stays).matches("MSG a 1 0").count(), 64);
}

/// The publisher disconnects, and a new member has its index when the messages come back.
#[test]
fn message_that_comes_back_reaches_the_successor_of_its_publisher() {
    let mut simulation = Simulation::new(2);
    let [publisher, leaves] = [0, 1].map(|shard| simulation.client(shard));
    simulation.send(publisher, "CONNECT {\"echo\":false}\r\n");
    let mut successor = publisher;
    publish_past_a_member_that_leaves(&mut simulation, (publisher, leaves), |simulation| {
        simulation.shards[0].remove(publisher.id, CloseReason::ClientClosed);
        successor = simulation.client(0);
        simulation.send(successor, "SUB a q 1\r\n");
    });
    assert_eq!(successor, publisher);
    assert_eq!(simulation.read(successor).matches("MSG a 1 0").count(), 64);
}

#[test]
fn wide_fan_out_is_written_in_steps() {
    let mut simulation = Simulation::new(1);
    let publisher = simulation.client(0);
    for _ in 0..200 {
        let reader = simulation.client(0);
        simulation.send(reader, "SUB a 1\r\n");
    }
    let chunk = Chunk::new(
        format!("PUB a 1000\r\n{}\r\n", "x".repeat(1000))
            .repeat(100)
            .as_bytes()
            .into(),
    );
    let receipt =
        simulation.shards[0].receive(publisher.id, &chunk, 0..chunk.len(), Duration::ZERO);
    assert!(receipt.must_flush && receipt.consumed < chunk.len());
}

/// The input of a session has the same effect wherever it is split.
#[test]
fn input_may_be_split_anywhere() {
    let session = "CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB a.> q 1\r\nSUB a.* 22\nPING\r\n\
        PUB a.b r 5\r\nhe\r\no\r\nPUB a.b  0\r\n\r\nHPUB a.c 12 14\r\nNATS/1.0\r\n\r\nhi\r\nUNSUB 22 9\r\nPUB a.x 1\r\nx\r\nPONG\r\n";
    let play = |cuts: &[usize]| {
        let mut simulation = Simulation::new(1);
        let client = simulation.open(0);
        let mut held: Vec<u8> = Vec::new();
        let mut from = 0;
        for to in cuts.iter().copied().chain([session.len()]) {
            held.extend_from_slice(&session.as_bytes()[from..to]);
            let receipt = simulation.send_bytes(client, &held);
            held.drain(..receipt.consumed);
            from = to;
        }
        assert!(held.is_empty());
        simulation.read(client)
    };
    let whole = play(&[]);
    assert!(
        whole.contains("HMSG a.c 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"),
        "{whole}"
    );
    for cut in 0..session.len() {
        assert_eq!(play(&[cut]), whole, "cut at {cut}");
    }
    let every: Vec<usize> = (1..session.len()).collect();
    assert_eq!(play(&every), whole);
}
