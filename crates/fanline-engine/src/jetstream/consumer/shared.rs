//! State shared by the consumers of a stream, and the context of each call.

use super::ConsumerId;
use super::groups::Groups;
use super::status::Status;
use crate::jetstream::{Message, Now, Port};
use crate::random::{Purpose, Random, Seed};
use crate::store::Store;

/// Context of a call: the time, the stream's records, and the port.
pub struct Context<'a> {
    /// Current time.
    pub now: Now,
    /// Records of the stream.
    pub store: &'a mut Store,
    /// Subscribers and publishers of the account.
    pub port: &'a mut dyn Port,
}

/// State shared by the consumers of a stream.
pub(super) struct CommonState {
    pub(super) stream: String,
    pub(super) account: String,
    /// Whether the stream removes acknowledged records, and therefore needs their sequences.
    pub(super) reports_unneeded: bool,
    pub(super) unneeded: Vec<u64>,
    pub(super) unused: Vec<ConsumerId>,
    pub(super) unsaved: Vec<ConsumerId>,
    /// Consumers and reply subjects of acknowledgements that wait for confirmation.
    pub(super) confirmations: Vec<(ConsumerId, Box<[u8]>)>,
    /// Number of bytes delivered since the last call of [`settle`](super::Consumers::settle).
    pub(super) delivered_bytes: u64,
    /// Source of ids of events, pins, and flow control subjects.
    pub(super) random: Random,
    pub(super) scratch: Scratch,
}

impl CommonState {
    pub(super) fn new(stream: &str, account: &str, seed: Seed) -> Self {
        CommonState {
            stream: stream.to_owned(),
            account: account.to_owned(),
            reports_unneeded: false,
            unneeded: Vec::new(),
            unused: Vec::new(),
            unsaved: Vec::new(),
            confirmations: Vec::new(),
            delivered_bytes: 0,
            random: Random::new(seed, Purpose::Consumers),
            scratch: Scratch::default(),
        }
    }
}

/// Buffers that are reused for each message.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) reply: Vec<u8>,
    pub(super) subject: Vec<u8>,
    pub(super) headers: Vec<u8>,
    pub(super) sequences: Vec<u64>,
}

/// Context of a call to one consumer, with the stream's records.
pub(super) struct CallWithStore<'a> {
    pub(super) store: &'a mut Store,
    pub(super) context: CallContext<'a>,
}

/// Context without the stream's records, for use while a record is borrowed.
pub(super) struct CallContext<'a> {
    pub(super) now: Now,
    /// Nanoseconds since the server's start.
    pub(super) at: u64,
    /// Number of the current call of `settle` or `handle_timeout`. Interest in subjects does not change
    /// during a call.
    pub(super) number: u64,
    pub(super) port: &'a mut dyn Port,
    pub(super) groups: &'a Groups,
    pub(super) shared: &'a mut CommonState,
}

impl CallContext<'_> {
    /// Sends a status.
    pub(super) fn send(&mut self, to: &[u8], reply: &[u8], status: Status<'_>) {
        let headers = &mut self.shared.scratch.headers;
        status.write(headers);
        self.port.publish(&Message {
            subject: to,
            reply,
            headers,
            payload: b"",
            ..Message::default()
        });
    }

    /// Registers that the stream may be able to remove a record.
    pub(super) fn note_unneeded(&mut self, sequence: u64) {
        if self.shared.reports_unneeded {
            self.shared.unneeded.push(sequence);
        }
    }
}

/// Returns nanoseconds since the server's start.
pub(super) fn nanos(now: Now) -> u64 {
    u64::try_from(now.since_start.as_nanos()).unwrap_or(u64::MAX)
}
