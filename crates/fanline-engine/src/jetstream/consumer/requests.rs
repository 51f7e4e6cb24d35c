//! Waiting pull requests, in the order in which they are served.

use std::collections::VecDeque;

use super::request::PullRequest;
use super::status::Remaining;

/// A waiting request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) reply: Box<[u8]>,
    /// Number of records that it may still receive.
    remaining: u64,
    /// Bytes that it may still receive, if it has a limit.
    bytes_remaining: Option<u64>,
    /// Time at which it expires, since the server's start.
    expires: Option<u64>,
    heartbeat: Option<u64>,
    /// Time of the last message to it.
    sent: u64,
    no_wait: bool,
    has_expires: bool,
    is_served: bool,
    is_unnumbered: bool,
    min_pending: u64,
    min_ack_pending: u64,
    pub(super) id: String,
    priority: i64,
    /// The round in which its reply subject last had a subscriber.
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
                // Expired before it begins.
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

    /// Returns what it has not received.
    pub(super) fn remaining(&self) -> Remaining {
        Remaining {
            messages: match self.is_unnumbered {
                true => 0,
                false => self.remaining,
            },
            bytes: self.bytes_remaining.unwrap_or(0),
        }
    }

    /// Whether a record of this size exceeds its remaining bytes.
    pub(super) fn is_exceeded_by(&self, bytes: u64) -> bool {
        self.bytes_remaining
            .is_some_and(|remaining| bytes > remaining)
    }

    /// Whether it accepts records with this backlog and this number of unacknowledged records.
    pub(super) fn accepts(&self, pending: u64, ack_pending: u64) -> bool {
        let always = self.min_pending == 0 && self.min_ack_pending == 0;
        always
            || (self.min_pending > 0 && pending >= self.min_pending)
            || (self.min_ack_pending > 0 && ack_pending >= self.min_ack_pending)
    }

    /// Whether it has expired, although its timer may still be pending.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Whether it ends once there are no more records.
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

/// The next step for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A heartbeat.
    Heartbeat,
    /// It has expired and was removed.
    Expired,
    /// It does not wait, received what there was, and was removed.
    Idle,
}

/// The requests of one consumer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// In order of priority number, then of the time since which they were served.
    waiting: VecDeque<Request>,
    /// Time before which no request has anything due. May be too early, never too late.
    checked_until: Option<u64>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many records all requests together may still receive.
    pub(super) fn records_requested(&self) -> u64 {
        self.waiting.iter().map(|request| request.remaining).sum()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Request> {
        self.waiting.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Request> {
        self.waiting.get_mut(at)
    }

    /// Adds a request behind those of its priority.
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

    /// Accounts for a delivered record: the request ends, or moves behind those of its priority.
    pub(super) fn served(&mut self, at: usize, bytes: u64, now: u64) {
        let Some(request) = self.waiting.get_mut(at) else {
            return;
        };
        request.remaining -= 1;
        request.bytes_remaining = request
            .bytes_remaining
            .map(|remaining| remaining.saturating_sub(bytes));
        request.sent = now;
        request.is_served = true;
        // A request without remaining bytes is complete, too.
        if request.remaining == 0 || request.bytes_remaining == Some(0) {
            self.waiting.remove(at);
        } else if self.waiting.len() > 1
            && let Some(request) = self.waiting.remove(at)
        {
            self.push(request);
        }
    }

    /// Removes and returns the next request that does not wait.
    pub(super) fn next_idle(&mut self) -> Option<Request> {
        let at = self.waiting.iter().position(Request::ends_when_idle)?;
        self.waiting.remove(at)
    }

    /// Removes the requests for which `gone` is true.
    pub(super) fn remove_where(&mut self, mut gone: impl FnMut(&Request) -> bool) {
        self.waiting.retain(|request| !gone(request));
    }

    /// Passes each request with something due to `due`.
    pub(super) fn each_due(&mut self, now: u64, due: &mut dyn FnMut(Due, &Request)) {
        if self.checked_until.is_none_or(|at| at > now) {
            return;
        }
        let mut at = 0;
        while let Some(request) = self.waiting.get_mut(at) {
            // A request that does not wait also ends with any timer of the consumer, even if the consumer
            // only waits for acknowledgements. Clients would otherwise count it as open.
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

    /// Returns when something may be due next.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.checked_until.filter(|_| !self.waiting.is_empty())
    }
}
