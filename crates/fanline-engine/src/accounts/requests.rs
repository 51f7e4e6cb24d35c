//! Pending requests to other accounts.
//!
//! A request that leaves its account gets a reply subject of this shard, so that the response returns to this
//! shard. The request ends with its response, after a timeout, or when the requester has unsubscribed from
//! its reply subject.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use slab::Slab;

use super::latency::{Measure, Outcome};
use super::responder_half::Half;
use crate::auth::{AccountId, ResponseKind};
use crate::exchange::router::{MEASURED, REPLIES, RouteMemo, Terms};
use crate::timers::Timers;

/// Largest number of pending requests of a shard. Beyond that, the request with the earliest deadline is
/// dropped.
const PENDING_MAX: usize = 256 * 1024;
/// Time from the end of a subscription to the check whether requesters are still subscribed.
const SWEEP_AFTER: Duration = Duration::from_secs(1);
/// Time in which the responder's server sends its half of a service latency, after the response. Then the latency is
/// reported without it.
const HALF_WITHIN: Duration = Duration::from_secs(2);
/// Number of digits of the secret number in a reply subject.
const KEY_DIGITS: usize = 16;

/// A pending request.
pub(crate) struct PendingRequest {
    key: u64,
    /// The responder's account.
    exporter: AccountId,
    /// The requester's account.
    pub(crate) importer: AccountId,
    /// The requester's reply subject.
    pub(crate) reply: Vec<u8>,
    pub(crate) memo: RouteMemo,
    terms: Terms,
    /// Whether a response has arrived since the deadline was set.
    is_used: bool,
    /// Data for the latency report. The report is sent at the first response, or when the request ends
    /// without a response.
    pub(crate) measure: Option<Box<Measure>>,
}

impl PendingRequest {
    /// Returns the secret number in the reply subject.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Returns whether the request ends with a response of this payload size in bytes.
    pub(crate) fn ends_with(&self, bytes: usize) -> bool {
        self.terms.response == ResponseKind::Single || bytes == 0
    }
}

/// A request that leaves its account.
pub(crate) struct Request<'a> {
    pub(crate) importer: AccountId,
    pub(crate) exporter: AccountId,
    pub(crate) reply: &'a [u8],
    pub(crate) terms: Terms,
}

/// All pending requests of one shard.
#[derive(Default)]
pub(crate) struct Requests {
    pending: Slab<PendingRequest>,
    due: Timers<usize>,
    /// Requests with a response that wait for the responder's half of the latency, by the secret numbers in their reply
    /// subjects, and with the responder's account.
    halved: HashMap<u64, (AccountId, Box<Measure>)>,
    /// The time until which each of these requests waits. Some do not wait any more.
    halved_until: VecDeque<(Duration, u64)>,
    /// Requests that ended without a response, or without the responder's half, and must be reported, each with the
    /// responder's account.
    unanswered: Vec<(AccountId, Box<Measure>, Outcome)>,
}

impl Requests {
    /// Adds a request. `key` is the secret number in its reply subject.
    pub(crate) fn expect(
        &mut self,
        request: Request<'_>,
        measure: Option<Box<Measure>>,
        key: u64,
        now: Duration,
    ) -> usize {
        if self.pending.len() >= PENDING_MAX
            && let Some(first) = self.due.first().copied()
        {
            self.remove(first);
        }
        let due = now.saturating_add(request.terms.response_time);
        let at = self.pending.insert(PendingRequest {
            key,
            exporter: request.exporter,
            importer: request.importer,
            reply: request.reply.into(),
            memo: RouteMemo::default(),
            terms: request.terms,
            is_used: false,
            measure,
        });
        self.due.set(at, Some(due));
        at
    }

    /// Writes the reply subject of one of this shard's requests. `token` distinguishes the servers of a
    /// cluster.
    pub(crate) fn write_subject(
        &self,
        at: usize,
        (token, shard): (&str, u16),
        subject: &mut Vec<u8>,
    ) {
        let pending = self.pending.get(at);
        let key = pending.map_or(0, |pending| pending.key);
        let text = format!("{REPLIES}.{token}{shard}.{at:x}{key:0KEY_DIGITS$x}");
        subject.extend_from_slice(text.as_bytes());
        if !token.is_empty() && pending.is_some_and(|pending| pending.measure.is_some()) {
            let text = format!(".{token}{shard}{MEASURED}");
            subject.extend_from_slice(text.as_bytes());
        }
    }

    /// Returns the request that a subject responds to, if `exporter` is the responder's account.
    pub(crate) fn find(&self, subject: &[u8], exporter: AccountId) -> Option<usize> {
        let (at, key) = numbers_in(subject)?;
        let pending = self.pending.get(at)?;
        (pending.key == key && pending.exporter == exporter).then_some(at)
    }

    /// Waits for the responder's half of the latency of an answered request. Returns the request's data if too many
    /// requests wait already.
    pub(crate) fn await_half(
        &mut self,
        key: u64,
        exporter: AccountId,
        measure: Box<Measure>,
        now: Duration,
    ) -> Option<Box<Measure>> {
        if self.halved_until.len() >= PENDING_MAX {
            return Some(measure);
        }
        self.halved.insert(key, (exporter, measure));
        let until = now.saturating_add(HALF_WITHIN);
        self.halved_until.push_back((until, key));
        None
    }

    /// Takes the responder's half of the latency of the request with this reply subject. Returns whether there is such a
    /// request, and its data if its response has arrived.
    pub(super) fn take_half(
        &mut self,
        reply: &[u8],
        exporter: AccountId,
        half: Half,
    ) -> (bool, Option<Box<Measure>>) {
        let Some((at, key)) = numbers_in(reply) else {
            return (false, None);
        };
        let awaits = |(account, _): &(AccountId, Box<Measure>)| *account == exporter;
        if self.halved.get(&key).is_some_and(awaits) {
            let mut measure = self.halved.remove(&key).map(|(_, measure)| measure);
            if let Some(measure) = &mut measure {
                measure.half = Some(half);
            }
            return (true, measure);
        }
        let pending = self.pending.get_mut(at);
        let measure = pending
            .filter(|pending| pending.key == key && pending.exporter == exporter)
            .and_then(|pending| pending.measure.as_mut());
        let Some(measure) = measure else {
            return (false, None);
        };
        measure.half = Some(half);
        (true, None)
    }

    /// Marks a request from [`find`](Self::find) as answered, and returns it.
    pub(crate) fn answered(&mut self, at: usize) -> Option<&mut PendingRequest> {
        let pending = self.pending.get_mut(at)?;
        pending.is_used = true;
        Some(pending)
    }

    /// Removes a request.
    pub(crate) fn remove(&mut self, at: usize) -> Option<PendingRequest> {
        let pending = self.pending.try_remove(at)?;
        self.due.set(at, None);
        Some(pending)
    }

    /// Returns whether there are no requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the time at which the caller must call [`expire`](Self::expire) next. `unsubscribed_at` is the
    /// time at which a subscription ended; a requester may have used that subscription to wait for a reply.
    pub(crate) fn next_timeout(&self, unsubscribed_at: Option<Duration>) -> Option<Duration> {
        let half = self.halved_until.front().map(|(until, _)| *until);
        let Some(first) = self.due.next() else {
            return half;
        };
        let sweep = unsubscribed_at.map(|at| at.saturating_add(SWEEP_AFTER));
        sweep.into_iter().chain(half).chain([first]).min()
    }

    /// Removes requests that have timed out. Some time after `unsubscribed_at`, also removes requests whose
    /// requester has unsubscribed, and clears `unsubscribed_at`.
    pub(crate) fn expire(
        &mut self,
        now: Duration,
        unsubscribed_at: &mut Option<Duration>,
        mut listens: impl FnMut(AccountId, &[u8]) -> bool,
    ) {
        while let Some(at) = self.due.pop(now) {
            let pending = &mut self.pending[at];
            if std::mem::take(&mut pending.is_used) {
                // A responder that has responded once may respond again.
                let due = now.saturating_add(pending.terms.response_time);
                self.due.set(at, Some(due));
            } else if let Some(pending) = self.remove(at)
                && let Some(measure) = pending.measure
            {
                let ended = (pending.exporter, measure, Outcome::Late);
                self.unanswered.push(ended);
            }
        }
        while let Some((until, key)) = self.halved_until.front().copied()
            && until <= now
        {
            self.halved_until.pop_front();
            if let Some((exporter, measure)) = self.halved.remove(&key) {
                self.unanswered.push((exporter, measure, Outcome::Answered));
            }
        }
        if unsubscribed_at.is_some_and(|at| at.saturating_add(SWEEP_AFTER) <= now) {
            *unsubscribed_at = None;
            let Requests {
                pending,
                due,
                unanswered,
                ..
            } = self;
            pending.retain(|at, pending| {
                let is_wanted = listens(pending.importer, &pending.reply);
                if !is_wanted {
                    due.set(at, None);
                    if let Some(measure) = pending.measure.take() {
                        unanswered.push((pending.exporter, measure, Outcome::Abandoned));
                    }
                }
                is_wanted
            });
        }
    }

    /// Takes the requests that ended without a response, or without the responder's half, since the last call.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(AccountId, Box<Measure>, Outcome)> {
        std::mem::take(&mut self.unanswered)
    }

    /// Returns the number of pending requests.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }
}

/// Returns the position and the secret number of a request in its reply subject.
fn numbers_in(reply: &[u8]) -> Option<(usize, u64)> {
    let mut tokens = reply.rsplit(|b| *b == b'.');
    let last = tokens.next()?;
    let token = match last == &MEASURED.as_bytes()[1..] {
        true => tokens.nth(1)?,
        false => last,
    };
    let token = std::str::from_utf8(token).ok()?;
    let split = token.len().checked_sub(KEY_DIGITS)?;
    let (at, key) = token.split_at_checked(split)?;
    let at = usize::from_str_radix(at, 16).ok()?;
    let key = u64::from_str_radix(key, 16).ok()?;
    Some((at, key))
}
