//! Outputs of a shard, which the runtime processes.

use std::borrow::Cow;
use std::time::Duration;

use super::message::Message;
use super::router::{Route, SubId, Subscription};
use super::session::{Session, SessionId};
use super::text::{first_line, text};
use crate::limits::Limits;

/// Largest number of output bytes that one batch of input may queue. Above it, the output is written before
/// more input is read. The output of a wide fan-out then stays in the processor's cache, and its memory is
/// bounded.
pub(crate) const PRODUCED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Size of a subscriber's pending output in bytes above which its publishers are briefly delayed. A burst
/// then costs time rather than memory and cache.
const CONGESTED_BYTES: usize = 2 * 1024 * 1024;

/// Limits of spare buffers for connections with pending output: number, largest size, and total size.
const SPARE_BUFFERS_MAX: usize = 4096;
const SPARE_BUFFER_BYTES_MAX: usize = 256 * 1024;
const SPARE_BYTES_MAX: usize = 2 * PRODUCED_BYTES_MAX;

/// Largest number of log lines that wait for the runtime. Further lines are dropped. No error is lost by
/// this, because the client receives each error too.
const NOTICES_MAX: usize = 256;

/// Outputs of a shard, which the runtime processes.
#[derive(Default)]
pub(crate) struct Outputs {
    /// Time of the latest input.
    pub(crate) now: Duration,
    /// Sessions with pending output that the runtime has not taken yet.
    pub(crate) dirty: Vec<SessionId>,
    /// Ended sessions that the runtime has not closed yet.
    pub(crate) ended: Vec<SessionId>,
    /// Sessions that are ending because of too many pending bytes, and whose other state is not released yet.
    pub(crate) overrun: Vec<SessionId>,
    /// Subscriptions that reached their limit.
    pub(crate) spent: Vec<SubId>,
    /// Whether a session has more pending bytes than allowed.
    pub(crate) overflowed: bool,
    pub(crate) congested_bytes: usize,
    overflow_bytes: usize,
    /// The congested subscriber with the most pending bytes.
    pub(crate) congested: Option<(SessionId, usize)>,
    /// Bytes queued since the batch began.
    pub(crate) produced_bytes: usize,
    /// The part of `produced_bytes` that announces interest to leaf nodes.
    pub(crate) announced_bytes: usize,
    /// Whether each protocol line is traced.
    pub(crate) traces: bool,
    /// Largest number of bytes traced per message; `None` means all bytes.
    traced_bytes_max: Option<usize>,
    /// Whether only headers of messages are traced.
    traces_headers_only: bool,
    pub(crate) trace_lines: Vec<(SessionId, String)>,
    /// Pending log lines.
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

    /// Resets the counters of one input.
    pub(crate) fn begin_batch(&mut self) {
        self.produced_bytes = 0;
        self.announced_bytes = 0;
        self.congested = None;
    }

    /// Queues a log line about a session.
    pub(crate) fn notice(&mut self, id: SessionId, line: impl FnOnce() -> String) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push((id, line()));
        }
    }

    /// Adds a session to the list of sessions with pending output (`dirty`), and lends it a buffer.
    #[inline]
    pub(crate) fn mark_dirty<K>(&mut self, id: u32, session: &mut Session<K>) {
        if std::mem::replace(&mut session.is_dirty, true) {
            return;
        }
        self.dirty.push(SessionId(id));
        self.lend_buffer(session);
    }

    /// Lends a buffer to a session that may or may not produce output. [`reclaim`](Outputs::reclaim) takes it
    /// back.
    #[inline]
    pub(crate) fn lend_buffer<K>(&mut self, session: &mut Session<K>) {
        if !session.out.has_buffer()
            && let Some(buffer) = self.spare.pop()
        {
            self.spare_bytes -= buffer.capacity();
            session.out.lend_buffer(buffer);
        }
    }

    /// Counts bytes queued for a session that had `before` bytes pending.
    #[inline]
    pub(crate) fn count_produced<K>(&mut self, id: u32, session: &Session<K>, before: usize) {
        let after = session.out.pending_bytes();
        self.produced_bytes += after - before;
        if after > self.congested_bytes {
            self.record_congested(id, after);
        }
    }

    /// Takes the buffer back from a session, if no output is pending.
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

    /// Frees half of the spare buffers. Periodic calls release the memory of a burst.
    pub(crate) fn trim(&mut self) {
        for buffer in self.spare.drain(self.spare.len() / 2..) {
            self.spare_bytes -= buffer.capacity();
        }
    }

    #[cold]
    pub(crate) fn record_congested(&mut self, id: u32, bytes: usize) {
        self.overflowed |= bytes > self.overflow_bytes;
        if self.congested.is_none_or(|(_, most)| bytes > most) {
            self.congested = Some((SessionId(id), bytes));
        }
    }

    /// Traces a message in the form that one subscriber receives, with or without headers.
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

    /// Traces headers and payload of a message, within the configured limits.
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
        let payload = match self.traces_headers_only {
            true => &body[..header_bytes],
            false => body,
        };
        let payload = match self.traced_bytes_max {
            Some(max) if payload.len() > max => text(&payload[..max]) + "...",
            _ => text(payload),
        };
        self.trace_lines
            .push((id, format!("{direction} MSG_PAYLOAD: [{payload:?}]")));
    }

    /// Traces the first line of bytes sent to a client.
    #[cold]
    pub(crate) fn trace_sent(&mut self, to: SessionId, bytes: &[u8]) {
        self.trace_lines
            .push((to, format!("->> [{}]", first_line(bytes))));
    }
}
