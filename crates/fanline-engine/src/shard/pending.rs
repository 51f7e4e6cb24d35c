//! What a shard has decided and the shell has yet to do.

use std::borrow::Cow;
use std::time::Duration;

use super::crossing::FROM_DEVICE;
use super::deliver::Message;
use super::mqtt::Answers;
use super::session::{Session, SessionId};
use super::tracing::Traced;
use super::verbs::{first_line, text};
use crate::exchange::router::{Route, SubId, Subscription};
use crate::limits::Limits;

/// A subscriber with more than this waiting holds its publishers back for a moment, so that a
/// burst costs time rather than memory and cache.
const CONGESTED_BYTES: usize = 2 * 1024 * 1024;

/// Buffers kept for connections that have something to write, and the largest one kept.
const SPARE_BUFFERS_MAX: usize = 4096;
const SPARE_BUFFER_BYTES_MAX: usize = 256 * 1024;
const SPARE_BYTES_MAX: usize = 2 * super::PRODUCED_BYTES_MAX;

/// Lines for the log that are kept until the shell takes them; more are dropped, since each was told
/// to its client as well.
const NOTICES_MAX: usize = 256;

#[derive(Default)]
pub(super) struct Pending {
    /// The time that the shard was told last.
    pub(super) now: Duration,
    /// Sessions with something to write that the shell was not told of yet.
    pub(super) dirty: Vec<SessionId>,
    /// Sessions that have ended and wait to be closed.
    pub(super) ended: Vec<SessionId>,
    /// Subscriptions that have had all they wanted.
    pub(super) spent: Vec<SubId>,
    /// Whether somebody has more waiting than the limit.
    pub(super) overflowed: bool,
    pub(super) congested_bytes: usize,
    overflow_bytes: usize,
    /// The subscriber with the most waiting, among those that have too much.
    pub(super) congested: Option<(SessionId, usize)>,
    /// Bytes queued since the batch began.
    pub(super) produced_bytes: usize,
    /// Bytes of them by which leafs were told what is wanted.
    pub(super) told_bytes: usize,
    /// Whether each line is told.
    pub(super) traces: bool,
    /// Bytes that are told of a message; `None` is all.
    traced_bytes_max: Option<usize>,
    /// Whether its headers alone are told.
    traces_headers_only: bool,
    /// The message at hand, if its way is told.
    pub(super) traced: Option<Box<Traced>>,
    /// Whether there is anything to be told of a delivery.
    pub(super) watches: bool,
    /// What the message at hand crosses with: [`FROM_DEVICE`], or 0.
    pub(super) origin_bits: u8,
    pub(super) trace_lines: Vec<(SessionId, String)>,
    /// What the log is to say.
    pub(super) notices: Vec<(SessionId, String)>,
    /// What came for MQTT sessions.
    pub(super) mqtt: Answers,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

impl Pending {
    pub(super) fn new(limits: &Limits, traces: bool) -> Self {
        let mut pending = Pending::default();
        pending.set_limits(limits, traces);
        pending
    }

    pub(super) fn set_limits(&mut self, limits: &Limits, traces: bool) {
        self.congested_bytes = CONGESTED_BYTES.min(limits.pending_bytes_max / 2);
        self.overflow_bytes = limits.pending_bytes_max;
        self.traces = traces;
        self.traced_bytes_max = limits.traced_bytes_max;
        self.traces_headers_only = limits.traces_headers_only;
        self.watches = traces;
    }

    /// Takes note of who has published what another shard passes on; gives what else it crossed with.
    #[inline]
    pub(super) fn take_origin(&mut self, hops: u8) -> u8 {
        self.origin_bits = hops & FROM_DEVICE;
        hops & !FROM_DEVICE
    }

    /// Notes what the log is to say of a session.
    pub(super) fn notice(&mut self, id: SessionId, line: impl FnOnce() -> String) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push((id, line()));
        }
    }

    /// Puts a session on the list of those to write to, with a buffer to collect in.
    #[inline]
    pub(super) fn mark_dirty(&mut self, id: u32, session: &mut Session) {
        if std::mem::replace(&mut session.is_dirty, true) {
            return;
        }
        self.dirty.push(SessionId(id));
        self.lend_buffer(session);
    }

    /// Gives a session a buffer to collect in, before it is known whether there is anything to collect: see
    /// [`reclaim`](Pending::reclaim).
    #[inline]
    pub(super) fn lend_buffer(&mut self, session: &mut Session) {
        if !session.out.has_buffer()
            && let Some(buffer) = self.spare.pop()
        {
            self.spare_bytes -= buffer.capacity();
            session.out.lend_buffer(buffer);
        }
    }

    /// Counts what was queued for a session that had `before` bytes waiting.
    #[inline]
    pub(super) fn count_produced(&mut self, id: u32, session: &Session, before: usize) {
        let after = session.out.pending_bytes();
        self.produced_bytes += after - before;
        if after > self.congested_bytes {
            self.note_congested(id, after);
        }
    }

    /// Takes the buffer of a session that has nothing to write any more.
    pub(super) fn reclaim(&mut self, session: &mut Session) {
        let Some(buffer) = session.out.take_buffer() else {
            return;
        };
        let bytes = buffer.capacity();
        if bytes <= SPARE_BUFFER_BYTES_MAX
            && self.spare.len() < SPARE_BUFFERS_MAX
            && self.spare_bytes + bytes <= SPARE_BYTES_MAX
        {
            self.spare_bytes += bytes;
            self.spare.push(buffer);
        }
    }

    /// Gives half of the spare buffers back: called now and then, so that what a burst needed does
    /// not stay for good.
    pub(super) fn trim(&mut self) {
        for buffer in self.spare.drain(self.spare.len() / 2..) {
            self.spare_bytes -= buffer.capacity();
        }
    }

    #[cold]
    pub(super) fn note_congested(&mut self, id: u32, bytes: usize) {
        self.overflowed |= bytes > self.overflow_bytes;
        if self.congested.is_none_or(|(_, most)| bytes > most) {
            self.congested = Some((SessionId(id), bytes));
        }
    }

    /// A message as one subscriber gets it, with its headers or without.
    #[cold]
    pub(super) fn trace_delivery(
        &mut self,
        to: &Subscription,
        route: &Route,
        message: &Message<'_>,
        takes_headers: bool,
    ) {
        let whole = &message.body[..message.payload_bytes()];
        let (head, args, body, header_bytes) = match message.header_bytes {
            0 => (message.msg_head(route), Cow::from(message.args), whole, 0),
            n if takes_headers => (message.hmsg_head(route), message.args.into(), whole, n),
            n => (
                message.msg_head(route),
                message.stripped_args().into(),
                &whole[n..],
                0,
            ),
        };
        let line = [head, to.sid_and_space(), &args].concat();
        let id = SessionId(to.session());
        self.trace_sent(id, &line);
        self.trace_message(id, "->>", body, header_bytes);
    }

    /// Headers and payload of a message, as far as they are told.
    #[cold]
    pub(super) fn trace_message(
        &mut self,
        id: SessionId,
        direction: &str,
        body: &[u8],
        header_bytes: usize,
    ) {
        if self.traces_headers_only && header_bytes == 0 {
            return;
        }
        let told = match self.traces_headers_only {
            true => &body[..header_bytes],
            false => body,
        };
        let told = match self.traced_bytes_max {
            Some(max) if told.len() > max => text(&told[..max]) + "...",
            _ => text(told),
        };
        self.trace_lines
            .push((id, format!("{direction} MSG_PAYLOAD: [{told:?}]")));
    }

    /// The first line of something that a client is sent.
    #[cold]
    pub(super) fn trace_sent(&mut self, to: SessionId, bytes: &[u8]) {
        self.trace_lines
            .push((to, format!("->> [{}]", first_line(bytes))));
    }
}
