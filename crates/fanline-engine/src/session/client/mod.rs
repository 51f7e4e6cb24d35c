//! NATS clients, with a file for each verb.

mod connect;
mod info;
mod ping;
mod subscribe;
mod unsubscribe;

use std::ops::Range;
use std::time::Duration;

use super::{AnySession, Broker, Receipt, Session};
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::parse::{ParseLimits, Parsed, Verb, parse, parse_usual_publish};
use crate::exchange::message::Context;
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::run::Intake;
use crate::exchange::session::SessionId;
use crate::exchange::text::first_line;
use crate::limits::Limits;
use crate::outbox::Chunk;

/// The handle of a NATS client's session.
pub(crate) struct ClientSession<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) id: SessionId,
}

/// The number of input bytes that a verb used.
enum Taken {
    Bytes(usize),
    /// The verb is not complete; see [`Receipt::frame_bytes`].
    Partial {
        frame_bytes: usize,
    },
    /// The rest of the input waits for [`Shard::decided`](crate::Shard::decided).
    AwaitsCheck(usize),
}

impl ClientSession<'_> {
    #[inline]
    fn session(&self) -> &Session {
        &self.broker.exchange.sessions[self.id.index()]
    }

    #[inline]
    fn session_mut(&mut self) -> &mut Session {
        &mut self.broker.exchange.sessions[self.id.index()]
    }

    /// Returns the handle with the operations that all kinds of sessions share.
    #[inline]
    pub(crate) fn any(&mut self) -> AnySession<'_> {
        self.broker.any(self.id)
    }

    /// Handles the input `chunk[range]`, which begins with the bytes that the last call did not consume.
    #[inline]
    pub(crate) fn receive(&mut self, chunk: &Chunk, range: Range<usize>, now: Duration) -> Receipt {
        let input = &chunk[range.clone()];
        let mut receipt = Receipt::default();
        self.broker.begin_input(self.id, now);
        let mut intake = self.broker.begin_intake(self.id, chunk);
        if self.session().ending.is_some() {
            receipt.consumed = input.len();
        }
        while receipt.consumed < input.len() {
            let rest = &input[receipt.consumed..];
            let from = range.start + receipt.consumed;
            if intake.is_admitted
                && let Some((publish, taken)) = parse_usual_publish(rest, intake.limits)
            {
                (self.any()).publish(&mut intake, &publish, from, Context::default());
                receipt.consumed += taken;
            } else {
                self.broker.exchange.end_run(&intake);
                match self.receive_other(&mut intake, rest, from, now) {
                    Taken::Bytes(taken) => receipt.consumed += taken,
                    Taken::Partial { frame_bytes } => {
                        receipt.frame_bytes = frame_bytes;
                        break;
                    }
                    Taken::AwaitsCheck(taken) => {
                        receipt.consumed += taken;
                        receipt.awaits_check = true;
                        break;
                    }
                }
            }
            if !self.broker.exchange.outputs.ended.is_empty() && self.session().ending.is_some() {
                receipt.consumed = input.len();
                break;
            }
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.broker.end_input(&intake, &mut receipt);
        receipt.announced_bytes = self.broker.exchange.outputs.announced_bytes;
        receipt
    }

    /// Handles one verb of any form.
    #[inline(never)]
    fn receive_other(
        &mut self,
        intake: &mut Intake<'_>,
        input: &[u8],
        from: usize,
        now: Duration,
    ) -> Taken {
        let id = intake.id;
        if !intake.is_admitted && !b"cC".contains(&input[0]) {
            if !self.admit_without_connect() {
                self.any().refuse_credentials();
                return Taken::Bytes(input.len());
            }
            *intake = self.broker.begin_intake(id, intake.chunk);
        }
        match parse(input, intake.limits) {
            Parsed::Verb(Verb::Publish(publish), taken) => {
                (self.any()).publish(intake, &publish, from, Context::default());
                Taken::Bytes(taken)
            }
            Parsed::Verb(verb, taken) => {
                self.broker.end_intake(intake);
                self.handle(verb, &input[..taken], now);
                *intake = self.broker.begin_intake(id, intake.chunk);
                match self.session().check {
                    Some(_) => Taken::AwaitsCheck(taken),
                    None => Taken::Bytes(taken),
                }
            }
            Parsed::Partial { frame_bytes } => Taken::Partial { frame_bytes },
            Parsed::Wrong(fault) => {
                self.broker.refuse(self.id, fault.error, fault.reason);
                Taken::Bytes(input.len())
            }
        }
    }

    /// Handles a verb other than PUB and HPUB.
    pub(crate) fn handle(&mut self, verb: Verb<'_>, frame: &[u8], now: Duration) {
        if self.broker.exchange.outputs.traces {
            self.trace_verb(&verb, frame);
        }
        match verb {
            // Handled by `publish`.
            Verb::Publish(_) => {}
            Verb::Subscribe { filter, queue, sid } => self.subscribe(filter, queue, sid),
            Verb::Unsubscribe { sid, max } => self.unsubscribe(sid, max),
            Verb::Connect(json) => self.connect(json),
            Verb::Ping => self.ping(),
            Verb::Pong => self.any().pong(now),
            // INFO has no effect on a server, but its argument must be JSON.
            Verb::Info(json) => {
                if serde_json::from_slice::<serde::de::IgnoredAny>(json).is_err() {
                    self.broker.end(self.id, CloseReason::ProtocolViolation);
                }
            }
            Verb::Ok => {}
            Verb::Error(_) => self.broker.end(self.id, CloseReason::ParseError),
        }
    }

    #[cold]
    fn trace_verb(&mut self, verb: &Verb<'_>, frame: &[u8]) {
        let shown = match verb {
            Verb::Connect(json) => format!("CONNECT {}", redact(json)),
            _ => first_line(frame),
        };
        self.broker
            .exchange
            .outputs
            .trace_lines
            .push((self.id, format!("<<- [{shown}]")));
    }
}

/// Returns the limits of the parser for a client.
pub(crate) fn parse_limits(limits: &Limits, headers: bool) -> ParseLimits {
    ParseLimits {
        control_line_bytes_max: limits.control_line_bytes_max,
        payload_bytes_max: limits.payload_bytes_max,
        headers,
    }
}

/// Returns a CONNECT without its secrets. The names of secrets are case-insensitive, as in the parser.
fn redact(json: &[u8]) -> String {
    const SECRETS: [&str; 6] = ["pass", "auth_token", "jwt", "sig", "proxy_sig", "nkey"];
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(json) else {
        return "[unreadable]".into();
    };
    for (key, value) in value.as_object_mut().into_iter().flatten() {
        if SECRETS.contains(&key.to_ascii_lowercase().as_str()) {
            *value = "[REDACTED]".into();
        }
    }
    value.to_string()
}
