//! What the consumers of a stream have in common, and what they are handed at each call.

use super::ConsumerId;
use super::groups::Groups;
use super::status::Status;
use crate::jetstream::{Message, Now, Port};
use crate::random::{Purpose, Random, Seed};
use crate::store::Store;

/// What surrounds a call: the time, the stream's records, and the outside.
pub struct Context<'a> {
    /// The time.
    pub now: Now,
    /// The stream's records.
    pub store: &'a mut Store,
    /// The outside.
    pub port: &'a mut dyn Port,
}

/// What the consumers of a stream have in common.
pub(super) struct Shared {
    pub(super) stream: String,
    pub(super) account: String,
    /// Records go when they are acknowledged, so the stream wants to know which.
    pub(super) reports_done: bool,
    pub(super) done: Vec<u64>,
    pub(super) unused: Vec<ConsumerId>,
    pub(super) unsaved: Vec<ConsumerId>,
    /// Where acknowledgements are to be confirmed, and whose they are.
    pub(super) confirmations: Vec<(ConsumerId, Box<[u8]>)>,
    /// What has been delivered since [`settle`](super::Consumers::settle) was called.
    pub(super) delivered_bytes: u64,
    /// Ids of events, pins, and flow control subjects.
    pub(super) random: Random,
    pub(super) scratch: Scratch,
}

impl Shared {
    pub(super) fn new(stream: &str, account: &str, seed: Seed) -> Self {
        Shared {
            stream: stream.to_owned(),
            account: account.to_owned(),
            reports_done: false,
            done: Vec::new(),
            unused: Vec::new(),
            unsaved: Vec::new(),
            confirmations: Vec::new(),
            delivered_bytes: 0,
            random: Random::new(seed, Purpose::Consumers),
            scratch: Scratch::default(),
        }
    }
}

/// Buffers that are filled anew for each message.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) reply: Vec<u8>,
    pub(super) headers: Vec<u8>,
    pub(super) sequences: Vec<u64>,
}

/// What a consumer works with: its records, and all the rest.
pub(super) struct Work<'a> {
    pub(super) store: &'a mut Store,
    pub(super) round: Round<'a>,
}

/// All but the records, so that it can be used while a record is looked at.
pub(super) struct Round<'a> {
    pub(super) now: Now,
    /// The same since the server's start, in nanoseconds.
    pub(super) at: u64,
    /// Interest does not change within a round.
    pub(super) number: u64,
    pub(super) port: &'a mut dyn Port,
    pub(super) groups: &'a Groups,
    pub(super) shared: &'a mut Shared,
}

impl Round<'_> {
    /// Sends a status.
    pub(super) fn send(&mut self, to: &[u8], reply: &[u8], status: Status<'_>) {
        let headers = &mut self.shared.scratch.headers;
        status.write(headers);
        self.port.publish(&Message {
            topic: to,
            reply,
            headers,
            payload: b"",
            ..Message::default()
        });
    }

    /// The stream may want to drop a record now.
    pub(super) fn done(&mut self, sequence: u64) {
        if self.shared.reports_done {
            self.shared.done.push(sequence);
        }
    }
}

/// Nanoseconds since the server's start.
pub(super) fn nanos(now: Now) -> u64 {
    u64::try_from(now.since_start.as_nanos()).unwrap_or(u64::MAX)
}
