//! The input is a script for six clients, which is run on one, two, and three shards. A naive model of the
//! protocol decides what each client has to receive (`delivery_model.rs`).
//!
//! A step is a client, a verb, and the verb's operands, one byte each. Every byte has a meaning: its value modulo
//! the number of choices, so `0` is the first of up to six clients and of eight verbs.
//!
//! - `0`, options: the client disconnects, then connects with these options. Bit 0: without headers; bit 1: with
//!   `no_responders`; bit 2: without `echo`.
//! - `1`, filter, queue group, sid: SUB
//! - `2`, sid, limit: UNSUB, at once if the limit is 0
//! - `3`, subject, size: PUB
//! - `4`, subject, reply, size: PUB with a reply subject
//! - `5`, subject, reply, headers, size: HPUB
//! - `6`, count: the client repeats its last message.
//! - `7`: the client disconnects.
//!
//! A client sends successive steps as one input, a *burst*. After each burst the shards exchange their batches,
//! and every client reads.

use fanline_engine::Limits;

use super::delivery_model::{Message, Model};
use super::delivery_received::Received;
use super::simulation::Simulation;

pub(super) const CLIENTS: usize = 6;
const SHARDS_MAX: usize = 3;
const STEPS_MAX: usize = 300;
/// Largest number of messages in a burst. It bounds the pending output far below its limit.
const MESSAGES_MAX: usize = 40;

const FILTERS: [&str; 8] = ["a", "a.b", "a.*", "*.b", ">", "a.>", "r.*", "*"];
const SUBJECTS: [&str; 6] = ["a", "a.b", "a.c", "c.b", "r.1", "r.2"];
const REPLIES: [&str; 4] = ["", "r.1", "r.2", "a.b"];
pub(super) const QUEUES: [&str; 3] = ["", "q", "workers"];
const SIDS: [&str; 6] = ["1", "2", "33", "4", "5", "66"];
const LIMITS: u8 = 8;
const SIZES: [usize; 4] = [0, 10, 300, 4200];
const HEADERS: [&str; 2] = [
    "NATS/1.0\r\nA: b\r\n\r\n",
    "NATS/1.0\r\nLonger: value\r\nB:c\r\n\r\n",
];

/// Options of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientOptions {
    pub(super) headers: bool,
    pub(super) no_responders: bool,
    pub(super) echo: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            headers: true,
            no_responders: false,
            echo: true,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Connect(ClientOptions),
    Disconnect,
    Subscribe {
        filter: &'static str,
        queue: &'static str,
        sid: &'static str,
    },
    Unsubscribe {
        sid: &'static str,
        limit: u64,
    },
    Publish(Message),
}

struct Burst {
    client: usize,
    steps: Vec<Step>,
    messages: usize,
}

impl Burst {
    fn takes_more_of(&self, client: usize) -> bool {
        let has_ended = matches!(self.steps[..], [Step::Disconnect]);
        self.client == client && !has_ended && self.messages < MESSAGES_MAX
    }
}

/// Checks that each client receives exactly the messages of its plain subscriptions in order, that one member of
/// each queue group receives a message, and that requests without a responder are reported.
pub fn check(data: &[u8]) {
    let bursts = read_script(data);
    for shards in 1..=SHARDS_MAX {
        let mut run = Run {
            simulation: Simulation::new(shards, CLIENTS, Limits::default()),
            model: Model::new(shards),
        };
        bursts.iter().for_each(|burst| run.play(burst));
    }
}

/// Reads the operands of steps.
struct Operands<'a>(&'a [u8]);

impl Operands<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        Some(choices[usize::from(self.next()?) % choices.len()])
    }
}

fn read_script(data: &[u8]) -> Vec<Burst> {
    let mut operands = Operands(data);
    let mut bursts: Vec<Burst> = Vec::new();
    // The last message of each client, which it may repeat.
    let mut last: [Option<Message>; CLIENTS] = [const { None }; CLIENTS];
    let mut number = 0;
    for _ in 0..STEPS_MAX {
        let Some((client, step, count)) = read_step(&mut operands, &last) else {
            break;
        };
        let Some(step) = step else { continue };
        // All shards know a member of a queue group before the next message, so that no message reaches a member
        // that has subscribed after it.
        let begins = match &step {
            Step::Connect(_) | Step::Disconnect => true,
            Step::Subscribe { queue, .. } => !queue.is_empty(),
            Step::Unsubscribe { .. } | Step::Publish(_) => false,
        };
        for _ in 0..count {
            if begins
                || !bursts
                    .last()
                    .is_some_and(|burst| burst.takes_more_of(client))
            {
                bursts.push(Burst {
                    client,
                    steps: Vec::new(),
                    messages: 0,
                });
            }
            let burst = bursts.last_mut().expect("one was added");
            let mut step = step.clone();
            if let Step::Publish(message) = &mut step {
                number += 1;
                message.number = number;
                burst.messages += 1;
                last[client] = Some(message.clone());
            }
            burst.steps.push(step);
        }
    }
    bursts
}

/// Reads a step and the number of its repetitions. The step is `None` if a client has no message to repeat.
fn read_step(
    operands: &mut Operands<'_>,
    last: &[Option<Message>; CLIENTS],
) -> Option<(usize, Option<Step>, u8)> {
    let client = usize::from(operands.next()?) % CLIENTS;
    let mut count = 1;
    let step = match operands.next()? % 8 {
        0 => {
            let bits = operands.next()?;
            let no_responders = bits & 2 != 0;
            Step::Connect(ClientOptions {
                headers: bits & 1 == 0 || no_responders,
                no_responders,
                echo: bits & 4 == 0,
            })
        }
        1 => Step::Subscribe {
            filter: operands.one_of(&FILTERS)?,
            queue: operands.one_of(&QUEUES)?,
            sid: operands.one_of(&SIDS)?,
        },
        2 => Step::Unsubscribe {
            sid: operands.one_of(&SIDS)?,
            limit: u64::from(operands.next()? % LIMITS),
        },
        verb @ 3..=5 => Step::Publish(Message {
            number: 0,
            subject: operands.one_of(&SUBJECTS)?,
            reply: match verb {
                3 => "",
                _ => operands.one_of(&REPLIES)?,
            },
            headers: match verb {
                5 => operands.one_of(&HEADERS)?,
                _ => "",
            },
            filler_bytes: operands.one_of(&SIZES)?,
        }),
        6 => {
            count = 1 + operands.next()? % 16;
            match &last[client] {
                Some(message) => Step::Publish(message.clone()),
                None => return Some((client, None, 0)),
            }
        }
        _ => Step::Disconnect,
    };
    Some((client, Some(step), count))
}

struct Run {
    simulation: Simulation,
    model: Model,
}

impl Run {
    fn play(&mut self, burst: &Burst) {
        let client = burst.client;
        if let [Step::Disconnect] = burst.steps[..] {
            self.disconnect(client);
            return self.settle();
        }
        if let [Step::Connect(options), ..] = burst.steps[..] {
            self.disconnect(client);
            self.connect(client, options);
        } else if !self.simulation.is_connected(client) {
            self.connect(client, ClientOptions::default());
        }
        let headers = self.model.options(client).headers;
        let mut input: Vec<u8> = Vec::new();
        for step in &burst.steps {
            write_step(&mut input, step, headers);
        }
        input.extend_from_slice(b"PING\r\n");
        self.simulation.send_from(client, &input);
        self.settle();
        let mut received = Received::default();
        for at in 0..CLIENTS {
            self.simulation.read(at, usize::MAX);
            received.add(at, &self.simulation.take_received(at), at == client);
        }
        self.model.play(client, &burst.steps, &mut received);
        received.check_empty();
    }

    fn connect(&mut self, client: usize, options: ClientOptions) {
        let line = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":{},\"no_responders\":{},\"echo\":{}}}\r\n",
            options.headers, options.no_responders, options.echo
        );
        self.simulation.send_from(client, line.as_bytes());
        self.model.connect(client, options);
    }

    fn disconnect(&mut self, client: usize) {
        if let Some(unread) = self.simulation.disconnect(client) {
            assert!(unread.is_empty(), "bytes after the last burst");
        }
        self.model.disconnect(client);
        self.settle();
    }

    /// Exchanges batches until there are none. The server must not end a connection.
    fn settle(&mut self) {
        // A message is forwarded at most a few times, so this loop ends.
        for _ in 0..16 {
            assert_eq!(self.simulation.next_ended(), None, "an ended connection");
            if self.simulation.exchange_once() {
                return;
            }
        }
        panic!("the exchange does not end");
    }
}

fn write_step(input: &mut Vec<u8>, step: &Step, takes_headers: bool) {
    let line = match step {
        Step::Connect(_) | Step::Disconnect => return,
        Step::Subscribe { filter, queue, sid } => {
            // Repeated spaces are allowed, so an empty group is left out.
            format!("SUB {filter} {queue} {sid}\r\n")
        }
        Step::Unsubscribe { sid, limit: 0 } => format!("UNSUB {sid}\r\n"),
        Step::Unsubscribe { sid, limit } => format!("UNSUB {sid} {limit}\r\n"),
        Step::Publish(message) => {
            let (subject, reply) = (message.subject, message.reply);
            let payload = message.payload();
            let space = if reply.is_empty() { "" } else { " " };
            match message.headers {
                headers if takes_headers && !headers.is_empty() => {
                    let (head, all) = (headers.len(), headers.len() + payload.len());
                    format!("HPUB {subject} {reply}{space}{head} {all}\r\n{headers}{payload}\r\n")
                }
                _ => {
                    let all = payload.len();
                    format!("PUB {subject} {reply}{space}{all}\r\n{payload}\r\n")
                }
            }
        }
    };
    input.extend_from_slice(line.as_bytes());
}
