//! Pull requests that wait for records, in the order in which they are served.

use std::collections::VecDeque;

use super::request::PullRequest;
use super::status::Remaining;

/// A pull request that waits for records.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) reply: Box<[u8]>,
    /// Number of records that it may still receive.
    remaining: u64,
    /// Number of bytes that it may still receive; `None` means unlimited.
    bytes_remaining: Option<u64>,
    /// Time at which it expires, in nanoseconds since the server's start.
    expires: Option<u64>,
    heartbeat: Option<u64>,
    /// Time of the last message to its reply subject.
    sent: u64,
    no_wait: bool,
    has_expires: bool,
    is_served: bool,
    is_unnumbered: bool,
    min_pending: u64,
    min_ack_pending: u64,
    pub(super) id: String,
    priority: i64,
    /// Number of the last call (`CallContext::number`) in which its reply subject had a subscriber.
    pub(super) seen_in_round: u64,
}

impl Request {
    pub(super) fn new(request: PullRequest, reply: &[u8], now: u64) -> Self {
        let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
        Request {
            reply: reply.into(),
            remaining: unsigned(request.batch),
            bytes_remaining: Some(unsigned(request.max_bytes)).filter(|bytes| *bytes > 0),
            expires: match request.expires {
                0 => None,
                // A negative time means that the request has already expired.
                expires if expires < 0 => Some(now),
                expires => Some(now.saturating_add(unsigned(expires))),
            },
            heartbeat: Some(unsigned(request.idle_heartbeat)).filter(|nanos| *nanos > 0),
            sent: now,
            no_wait: request.no_wait,
            has_expires: request.expires != 0,
            is_served: false,
            is_unnumbered: request.is_unnumbered,
            min_pending: unsigned(request.min_pending),
            min_ack_pending: unsigned(request.min_ack_pending),
            id: request.id,
            priority: request.priority,
            seen_in_round: 0,
        }
    }

    /// Returns how many records and bytes the request has not received.
    pub(super) fn remaining(&self) -> Remaining {
        Remaining {
            messages: match self.is_unnumbered {
                true => 0,
                false => self.remaining,
            },
            bytes: self.bytes_remaining.unwrap_or(0),
        }
    }

    /// Returns whether a record of this size exceeds the request's remaining bytes.
    pub(super) fn is_exceeded_by(&self, bytes: u64) -> bool {
        self.bytes_remaining
            .is_some_and(|remaining| bytes > remaining)
    }

    /// Returns whether the request accepts records, given the numbers of undelivered and unacknowledged
    /// records.
    pub(super) fn accepts(&self, pending: u64, ack_pending: u64) -> bool {
        let always = self.min_pending == 0 && self.min_ack_pending == 0;
        always
            || (self.min_pending > 0 && pending >= self.min_pending)
            || (self.min_ack_pending > 0 && ack_pending >= self.min_ack_pending)
    }

    /// Returns whether the request has expired, even if its timer has not run yet.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Returns whether the request ends when there are no more records.
    fn ends_when_idle(&self) -> bool {
        self.no_wait && (self.is_served || !self.has_expires)
    }

    fn next_heartbeat(&self) -> Option<u64> {
        self.heartbeat.map(|every| self.sent.saturating_add(every))
    }

    fn deadline(&self) -> Option<u64> {
        [self.expires, self.next_heartbeat()]
            .into_iter()
            .flatten()
            .min()
    }
}

/// The event that is due for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A heartbeat is due.
    Heartbeat,
    /// The request has expired and was removed.
    Expired,
    /// The request does not wait for more records and was removed.
    Idle,
}

/// The requests of one consumer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Requests by priority number; those of equal priority in the order in which they were last served.
    waiting: VecDeque<Request>,
    /// Time before which nothing is due for any request. It may be too early, but never too late.
    checked_until: Option<u64>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many records all requests may still receive together.
    pub(super) fn records_requested(&self) -> u64 {
        self.waiting.iter().map(|request| request.remaining).sum()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Request> {
        self.waiting.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Request> {
        self.waiting.get_mut(at)
    }

    /// Adds a request after the other requests of its priority.
    pub(super) fn push(&mut self, request: Request) {
        if let Some(deadline) = request.deadline() {
            self.checked_until = Some(self.checked_until.map_or(deadline, |at| at.min(deadline)));
        }
        let is_last = self
            .waiting
            .back()
            .is_none_or(|last| last.priority <= request.priority);
        if is_last {
            self.waiting.push_back(request);
        } else {
            let at = self
                .waiting
                .partition_point(|other| other.priority <= request.priority);
            self.waiting.insert(at, request);
        }
    }

    pub(super) fn remove(&mut self, at: usize) -> Option<Request> {
        self.waiting.remove(at)
    }

    /// Returns how many records and bytes the only request accepts, whatever else is pending; `None` if there
    /// is not exactly one request, or it must be checked again. `round` is the number of the current call.
    pub(super) fn room_of_only(&self, round: u64, now: u64) -> Option<(u64, u64)> {
        let request = self.waiting.front().filter(|_| self.waiting.len() == 1)?;
        let is_checked = request.seen_in_round == round && !request.is_expired(now);
        let accepts = is_checked && request.accepts(0, 0);
        accepts.then_some((
            request.remaining,
            request.bytes_remaining.unwrap_or(u64::MAX),
        ))
    }

    /// Counts delivered records. The request then ends, or moves after the other requests of its priority.
    pub(super) fn served(&mut self, at: usize, (records, bytes): (u64, u64), now: u64) {
        let Some(request) = self.waiting.get_mut(at) else {
            return;
        };
        request.remaining -= records;
        request.bytes_remaining = request
            .bytes_remaining
            .map(|remaining| remaining.saturating_sub(bytes));
        request.sent = now;
        request.is_served = true;
        // A request that may receive no more bytes is complete, too.
        if request.remaining == 0 || request.bytes_remaining == Some(0) {
            self.waiting.remove(at);
        } else if self.waiting.len() > 1
            && let Some(request) = self.waiting.remove(at)
        {
            self.push(request);
        }
    }

    /// Removes and returns the next request that ends when there are no more records.
    pub(super) fn next_idle(&mut self) -> Option<Request> {
        let at = self.waiting.iter().position(Request::ends_when_idle)?;
        self.waiting.remove(at)
    }

    /// Removes the requests for which `gone` returns `true`.
    pub(super) fn remove_where(&mut self, mut gone: impl FnMut(&Request) -> bool) {
        self.waiting.retain(|request| !gone(request));
    }

    /// Calls `due` for each request for which an event is due.
    pub(super) fn each_due(&mut self, now: u64, due: &mut dyn FnMut(Due, &Request)) {
        if self.checked_until.is_none_or(|at| at > now) {
            return;
        }
        let mut at = 0;
        while let Some(request) = self.waiting.get_mut(at) {
            // A request that does not wait also ends whenever a timer of the consumer is due, even if the
            // consumer only waits for acknowledgements. Otherwise its client would count the request as open.
            let end = match request.is_expired(now) {
                true => Some(Due::Expired),
                false => request.ends_when_idle().then_some(Due::Idle),
            };
            if let Some(end) = end {
                if let Some(ended) = self.waiting.remove(at) {
                    due(end, &ended);
                }
                continue;
            }
            if request.next_heartbeat().is_some_and(|at| at <= now) {
                request.sent = now;
                due(Due::Heartbeat, request);
            }
            at += 1;
        }
        self.checked_until = self.waiting.iter().filter_map(Request::deadline).min();
    }

    /// Returns the earliest time at which an event may be due.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.checked_until.filter(|_| !self.waiting.is_empty())
    }
}
