//! What a shard has decided and the runtime has yet to do.

use std::borrow::Cow;
use std::time::Duration;

use super::message::Message;
use super::router::{Route, SubId, Subscription};
use super::session::{Session, SessionId};
use super::text::{first_line, text};
use crate::limits::Limits;

/// Once a batch has queued this much, it is written before more of the input is read, so that a
/// wide fan-out stays in the cache and costs no more memory than this.
pub(crate) const PRODUCED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A subscriber with more than this waiting holds its publishers back for a moment, so that a
/// burst costs time rather than memory and cache.
const CONGESTED_BYTES: usize = 2 * 1024 * 1024;

/// Spare buffers for connections that have something to write, and the largest one of them.
const SPARE_BUFFERS_MAX: usize = 4096;
const SPARE_BUFFER_BYTES_MAX: usize = 256 * 1024;
const SPARE_BYTES_MAX: usize = 2 * PRODUCED_BYTES_MAX;

/// Lines for the log until the runtime takes them; more are dropped, since each was sent to its client
/// as well.
const NOTICES_MAX: usize = 256;

/// What a shard has decided and the runtime has yet to do.
#[derive(Default)]
pub(crate) struct Outputs {
    /// The time of the latest input.
    pub(crate) now: Duration,
    /// Sessions with something to write that the runtime has not polled yet.
    pub(crate) dirty: Vec<SessionId>,
    /// Sessions that have ended and wait to be closed.
    pub(crate) ended: Vec<SessionId>,
    /// Sessions among those that are ending because they have too much waiting: what is theirs has yet to be
    /// given back.
    pub(crate) overrun: Vec<SessionId>,
    /// Subscriptions that have had all they wanted.
    pub(crate) spent: Vec<SubId>,
    /// Whether a session has more waiting than the limit.
    pub(crate) overflowed: bool,
    pub(crate) congested_bytes: usize,
    overflow_bytes: usize,
    /// The subscriber with the most waiting, among those that have too much.
    pub(crate) congested: Option<(SessionId, usize)>,
    /// Bytes queued since the batch began.
    pub(crate) produced_bytes: usize,
    /// Bytes of them that announce interest to leaf nodes.
    pub(crate) told_bytes: usize,
    /// Whether each protocol line is traced.
    pub(crate) traces: bool,
    /// Bytes of a message that are traced; `None` is all.
    traced_bytes_max: Option<usize>,
    /// Whether its headers alone are traced.
    traces_headers_only: bool,
    pub(crate) trace_lines: Vec<(SessionId, String)>,
    /// What the log is to say.
    pub(crate) notices: Vec<(SessionId, String)>,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

impl Outputs {
    pub(crate) fn new(limits: &Limits, traces: bool) -> Self {
        let mut outputs = Outputs::default();
        outputs.set_limits(limits, traces);
        outputs
    }

    pub(crate) fn set_limits(&mut self, limits: &Limits, traces: bool) {
        self.congested_bytes = CONGESTED_BYTES.min(limits.pending_bytes_max / 2);
        self.overflow_bytes = limits.pending_bytes_max;
        self.traces = traces;
        self.traced_bytes_max = limits.traced_bytes_max;
        self.traces_headers_only = limits.traces_headers_only;
    }

    /// Begins to count what one input produces.
    pub(crate) fn begin_batch(&mut self) {
        self.produced_bytes = 0;
        self.told_bytes = 0;
        self.congested = None;
    }

    /// Notes what the log is to say of a session.
    pub(crate) fn notice(&mut self, id: SessionId, line: impl FnOnce() -> String) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push((id, line()));
        }
    }

    /// Puts a session on the list of those to write to, with a buffer to collect in.
    #[inline]
    pub(crate) fn mark_dirty<K>(&mut self, id: u32, session: &mut Session<K>) {
        if std::mem::replace(&mut session.is_dirty, true) {
            return;
        }
        self.dirty.push(SessionId(id));
        self.lend_buffer(session);
    }

    /// Gives a session a buffer to collect in, before it is known whether there is anything to collect: see
    /// [`reclaim`](Outputs::reclaim).
    #[inline]
    pub(crate) fn lend_buffer<K>(&mut self, session: &mut Session<K>) {
        if !session.out.has_buffer()
            && let Some(buffer) = self.spare.pop()
        {
            self.spare_bytes -= buffer.capacity();
            session.out.lend_buffer(buffer);
        }
    }

    /// Counts what was queued for a session that had `before` bytes waiting.
    #[inline]
    pub(crate) fn count_produced<K>(&mut self, id: u32, session: &Session<K>, before: usize) {
        let after = session.out.pending_bytes();
        self.produced_bytes += after - before;
        if after > self.congested_bytes {
            self.note_congested(id, after);
        }
    }

    /// Takes the buffer of a session that has nothing to write any more.
    pub(crate) fn reclaim<K>(&mut self, session: &mut Session<K>) {
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
    pub(crate) fn trim(&mut self) {
        for buffer in self.spare.drain(self.spare.len() / 2..) {
            self.spare_bytes -= buffer.capacity();
        }
    }

    #[cold]
    pub(crate) fn note_congested(&mut self, id: u32, bytes: usize) {
        self.overflowed |= bytes > self.overflow_bytes;
        if self.congested.is_none_or(|(_, most)| bytes > most) {
            self.congested = Some((SessionId(id), bytes));
        }
    }

    /// Traces a message as one subscriber gets it, with its headers or without.
    #[cold]
    pub(crate) fn trace_delivery(
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

    /// Traces headers and payload of a message, as far as configured.
    #[cold]
    pub(crate) fn trace_message(
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

    /// Traces the first line of something that a client is sent.
    #[cold]
    pub(crate) fn trace_sent(&mut self, to: SessionId, bytes: &[u8]) {
        self.trace_lines
            .push((to, format!("->> [{}]", first_line(bytes))));
    }
}
