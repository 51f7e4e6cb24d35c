//! Tests of runs: successive messages with one subject.

use super::tests::{Client, SHARED, Simulation};

/// A published message and its delivery.
struct Sent {
    subject: &'static str,
    reply: &'static str,
    payload: String,
    has_headers: bool,
}

/// Options of a client that does not accept headers.
const PLAIN: &str =
    "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":false,\"no_responders\":false}\r\n";

const HEADER: &str = "NATS/1.0\r\n\r\n";

impl Sent {
    /// Creates a message from its number. Subjects, sizes, and forms that end a run repeat at intervals
    /// without a common factor.
    fn numbered(i: usize) -> Self {
        Sent {
            subject: if i.is_multiple_of(17) {
                "narrow"
            } else {
                "wide"
            },
            reply: if i.is_multiple_of(13) { "r " } else { "" },
            payload: if i.is_multiple_of(41) {
                "x".repeat(SHARED)
            } else {
                format!("m{i}")
            },
            has_headers: i.is_multiple_of(29),
        }
    }

    fn publish(&self, i: usize) -> String {
        let Sent {
            subject,
            reply,
            payload,
            ..
        } = self;
        let size = payload.len();
        if self.has_headers {
            let (headers, total) = (HEADER.len(), HEADER.len() + size);
            format!("HPUB {subject} {reply}{headers} {total}\r\n{HEADER}{payload}\r\n")
        } else if i.is_multiple_of(11) {
            format!("pub  {subject} {reply}{size} \r\n{payload}\r\nPING\r\n")
        } else {
            format!("PUB {subject} {reply}{size}\r\n{payload}\r\n")
        }
    }

    fn delivery(&self, sid: &str, takes_headers: bool) -> String {
        let Sent {
            subject,
            reply,
            payload,
            ..
        } = self;
        let size = payload.len();
        if self.has_headers && takes_headers {
            let (headers, total) = (HEADER.len(), HEADER.len() + size);
            return format!(
                "HMSG {subject} {sid} {reply}{headers} {total}\r\n{HEADER}{payload}\r\n"
            );
        }
        format!("MSG {subject} {sid} {reply}{size}\r\n{payload}\r\n")
    }
}

/// Messages on one subject are delivered in runs. The output must be the same as for single messages. Each
/// reader is on the shard that `shard_of` returns.
fn check_runs(shards: usize, shard_of: impl Fn(usize) -> usize) {
    let mut simulation = Simulation::new(shards);
    let publisher = simulation.client(0);
    let readers: Vec<Client> = (0..41).map(|i| simulation.client(shard_of(i))).collect();
    simulation.send(readers[39], PLAIN);
    for (i, reader) in readers.iter().enumerate() {
        simulation.send(*reader, "SUB wide 1\r\nSUB narrow 22\r\n");
        if i.is_multiple_of(4) && i < 40 {
            simulation.send(*reader, &format!("UNSUB 1 {}\r\n", i + 1));
        }
    }
    let sent: Vec<Sent> = (0..300).map(Sent::numbered).collect();
    let input: String = sent
        .iter()
        .enumerate()
        .map(|(i, sent)| sent.publish(i))
        .collect();
    simulation.send(publisher, &input);
    for (i, reader) in readers.iter().enumerate() {
        let wide_max = if i % 4 == 0 && i < 40 {
            i + 1
        } else {
            usize::MAX
        };
        let mut wide = 0;
        let mut wanted = String::new();
        for sent in &sent {
            let is_wide = sent.subject == "wide";
            wide += usize::from(is_wide);
            if !is_wide || wide <= wide_max {
                wanted += &sent.delivery(if is_wide { "1" } else { "22" }, i != 39);
            }
        }
        assert_eq!(simulation.read(*reader), wanted, "reader {i}");
    }
    let subscriptions = simulation.shards.iter().map(|it| it.status().subscriptions);
    assert_eq!(subscriptions.sum::<usize>(), 2 * 41 - 10);
}

#[test]
fn run_on_one_shard_equals_single_messages() {
    check_runs(1, |_| 0);
}

#[test]
fn run_to_another_shard_equals_single_messages() {
    check_runs(2, |_| 1);
}

#[test]
fn run_to_several_shards_equals_single_messages() {
    check_runs(3, |i| i % 3);
}

/// Sends messages to sibling subjects, among others, to a reader on another shard, which must receive them like
/// single messages.
fn check_siblings(connect: &str, takes_headers: bool, limit: usize) {
    let mut simulation = Simulation::new(2);
    let (publisher, reader) = (simulation.client(0), simulation.client(1));
    let limited = match limit {
        0 => String::new(),
        limit => format!("UNSUB 1 {limit}\r\n"),
    };
    let lines = format!("{connect}SUB in.* 1\r\nSUB in.x.* 2\r\n{limited}");
    simulation.send(reader, &lines);
    let (mut input, mut wanted, mut received) = (String::new(), String::new(), 0);
    for i in 0..200_usize {
        let subject = match i {
            _ if i.is_multiple_of(7) => format!("other.{i}"),
            _ if i.is_multiple_of(9) => format!("in.x.{i}"),
            _ => format!("in.{}", i - usize::from(i.is_multiple_of(5))),
        };
        let payload = match i.is_multiple_of(17) {
            true => "x".repeat(SHARED),
            false => format!("m{i}"),
        };
        let reply = if i.is_multiple_of(3) { "r " } else { "" };
        let (size, headers) = (payload.len(), HEADER.len());
        let (verb, sizes, header) = match i.is_multiple_of(13) {
            true => ("H", format!("{headers} {}", headers + size), HEADER),
            false => ("", format!("{size}"), ""),
        };
        input += &format!("{verb}PUB {subject} {reply}{sizes}\r\n{header}{payload}\r\n");
        let sid = match subject.split('.').collect::<Vec<_>>()[..] {
            ["in", "x", _] => "2",
            ["in", _] if limit == 0 || received < limit => "1",
            _ => continue,
        };
        received += usize::from(sid == "1");
        wanted += &match takes_headers {
            true => format!("{verb}MSG {subject} {sid} {reply}{sizes}\r\n{header}{payload}\r\n"),
            false => format!("MSG {subject} {sid} {reply}{size}\r\n{payload}\r\n"),
        };
    }
    simulation.send(publisher, &input);
    assert_eq!(simulation.read(reader), wanted);
}

#[test]
fn siblings_on_another_shard_are_delivered_like_single_messages() {
    check_siblings("", true, 0);
    check_siblings("", true, 60);
    check_siblings(PLAIN, false, 0);
}
