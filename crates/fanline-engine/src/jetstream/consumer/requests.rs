//! Pull requests that wait, in the order in which they are served.

use std::collections::VecDeque;

use super::request::PullRequest;
use super::status::Left;

/// A request that waits.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) reply: Box<[u8]>,
    /// Records that it may still be given.
    left: u64,
    /// Bytes that it may still be given, if it said how many.
    bytes_left: Option<u64>,
    /// When its time is over, since the server's start.
    expires: Option<u64>,
    heartbeat: Option<u64>,
    /// When something was last sent to it.
    sent: u64,
    no_wait: bool,
    has_expires: bool,
    is_served: bool,
    is_unnumbered: bool,
    min_pending: u64,
    min_ack_pending: u64,
    pub(super) id: String,
    priority: i64,
    /// The round in which its receiver was last seen to be there.
    pub(super) seen_in_round: u64,
}

impl Request {
    pub(super) fn new(request: PullRequest, reply: &[u8], now: u64) -> Self {
        let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
        Request {
            reply: reply.into(),
            left: unsigned(request.batch),
            bytes_left: Some(unsigned(request.max_bytes)).filter(|bytes| *bytes > 0),
            expires: match request.expires {
                0 => None,
                // One that is over before it begins.
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

    /// What it was not given.
    pub(super) fn left(&self) -> Left {
        Left {
            messages: match self.is_unnumbered {
                true => 0,
                false => self.left,
            },
            bytes: self.bytes_left.unwrap_or(0),
        }
    }

    /// Whether a record of this size is more than it can take.
    pub(super) fn is_exceeded_by(&self, bytes: u64) -> bool {
        self.bytes_left.is_some_and(|left| bytes > left)
    }

    /// Whether it wants records while so many are to come and so many are not acknowledged.
    pub(super) fn accepts(&self, pending: u64, ack_pending: u64) -> bool {
        let always = self.min_pending == 0 && self.min_ack_pending == 0;
        always
            || (self.min_pending > 0 && pending >= self.min_pending)
            || (self.min_ack_pending > 0 && ack_pending >= self.min_ack_pending)
    }

    /// Whether its time is over, though the timer may still have to say so.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Whether it goes once there is nothing more for it.
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

/// What has become due for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// It wants to hear that the consumer is there.
    Heartbeat,
    /// Its time is over. It has been taken away.
    Expired,
    /// It does not wait, and was given what there was. It has been taken away.
    Idle,
}

/// The requests of one consumer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The lowest priority first, and among equals the one that was served longest ago.
    waiting: VecDeque<Request>,
    /// No request has anything due before. It may be too early, never too late.
    checked_until: Option<u64>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many records are asked for in all.
    pub(super) fn records_asked(&self) -> u64 {
        self.waiting.iter().map(|request| request.left).sum()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Request> {
        self.waiting.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Request> {
        self.waiting.get_mut(at)
    }

    /// Puts a request behind those of its priority.
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

    /// Takes note that a request has been given a record: it goes, or behind those of its priority.
    pub(super) fn served(&mut self, at: usize, bytes: u64, now: u64) {
        let Some(request) = self.waiting.get_mut(at) else {
            return;
        };
        request.left -= 1;
        request.bytes_left = request.bytes_left.map(|left| left.saturating_sub(bytes));
        request.sent = now;
        request.is_served = true;
        // What is used up to the byte is as good as answered.
        if request.left == 0 || request.bytes_left == Some(0) {
            self.waiting.remove(at);
        } else if self.waiting.len() > 1
            && let Some(request) = self.waiting.remove(at)
        {
            self.push(request);
        }
    }

    /// Takes away, one after the other, those that do not wait when there is nothing for them.
    pub(super) fn next_idle(&mut self) -> Option<Request> {
        let at = self.waiting.iter().position(Request::ends_when_idle)?;
        self.waiting.remove(at)
    }

    /// Takes away those that `gone` says are to go.
    pub(super) fn remove_where(&mut self, mut gone: impl FnMut(&Request) -> bool) {
        self.waiting.retain(|request| !gone(request));
    }

    /// Hands `due` each request with something due by now.
    pub(super) fn each_due(&mut self, now: u64, due: &mut dyn FnMut(Due, &Request)) {
        if self.checked_until.is_none_or(|at| at > now) {
            return;
        }
        let mut at = 0;
        while let Some(request) = self.waiting.get_mut(at) {
            // A request that does not wait ends with the next timer of any, though the consumer may only be
            // waiting for acknowledgements: clients would otherwise count it as open.
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

    /// When something may be due next.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.checked_until.filter(|_| !self.waiting.is_empty())
    }
}
