//! Requests to other accounts that wait for an answer.
//!
//! A request that leaves its account has a reply of this shard's own, which leads back to here. It ends
//! with the answer, with the time, or when the requester does not listen for the answer any more.

use std::time::Duration;

use slab::Slab;

use super::latency::{Measure, Outcome};
use crate::auth::{AccountId, ResponseKind};
use crate::exchange::router::{REPLIES, RouteMemo, Terms};
use crate::timers::Timers;

/// Requests of one shard that wait for an answer. One more, and the one is dropped whose time is
/// over first.
const WAITING_MAX: usize = 256 * 1024;
/// How soon after a subscription has ended the requesters are checked for whether they still listen.
const SWEEP_AFTER: Duration = Duration::from_secs(1);
/// Digits of the secret number.
const KEY_DIGITS: usize = 16;

/// A request that waits.
pub(crate) struct Waiting {
    key: u64,
    /// The account that answers.
    exporter: AccountId,
    /// The account of the requester.
    pub(crate) importer: AccountId,
    /// Where the answer goes.
    pub(crate) reply: Vec<u8>,
    pub(crate) memo: RouteMemo,
    terms: Terms,
    /// An answer has come since its time was set.
    is_used: bool,
    /// What its first answer, or its end without one, is reported with.
    pub(crate) measure: Option<Box<Measure>>,
}

impl Waiting {
    /// Whether nothing follows an answer of so many bytes.
    pub(crate) fn ends_with(&self, bytes: usize) -> bool {
        self.terms.response == ResponseKind::Single || bytes == 0
    }
}

/// A request as it leaves its account.
pub(crate) struct Request<'a> {
    pub(crate) importer: AccountId,
    pub(crate) exporter: AccountId,
    pub(crate) reply: &'a [u8],
    pub(crate) terms: Terms,
}

/// All that wait on one shard.
#[derive(Default)]
pub(crate) struct Requests {
    waiting: Slab<Waiting>,
    due: Timers<usize>,
    /// Those to be reported that have ended without an answer, with the account that owes it.
    unanswered: Vec<(AccountId, Box<Measure>, Outcome)>,
}

impl Requests {
    /// Adds a request. `key` is a secret number.
    pub(crate) fn expect(
        &mut self,
        request: Request<'_>,
        measure: Option<Box<Measure>>,
        key: u64,
        now: Duration,
    ) -> usize {
        if self.waiting.len() >= WAITING_MAX
            && let Some(first) = self.due.first().copied()
        {
            self.forget(first);
        }
        let due = now.saturating_add(request.terms.patience);
        let at = self.waiting.insert(Waiting {
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

    /// Writes the subject of the answer to one of this shard's requests.
    pub(crate) fn write_subject(&self, at: usize, shard: u16, subject: &mut Vec<u8>) {
        let key = self.waiting.get(at).map_or(0, |waiting| waiting.key);
        subject
            .extend_from_slice(format!("{REPLIES}.{shard}.{at:x}{key:0KEY_DIGITS$x}").as_bytes());
    }

    /// The request that this is an answer to, if an account may give it.
    pub(crate) fn find(&self, subject: &[u8], exporter: AccountId) -> Option<usize> {
        let token = subject.rsplit(|b| *b == b'.').next()?;
        let token = std::str::from_utf8(token).ok()?;
        let split = token.len().checked_sub(KEY_DIGITS)?;
        let (at, key) = token.split_at_checked(split)?;
        let at = usize::from_str_radix(at, 16).ok()?;
        let key = u64::from_str_radix(key, 16).ok()?;
        let waiting = self.waiting.get(at)?;
        (waiting.key == key && waiting.exporter == exporter).then_some(at)
    }

    /// One that [`find`](Self::find) has found; it has been answered.
    pub(crate) fn answered(&mut self, at: usize) -> Option<&mut Waiting> {
        let waiting = self.waiting.get_mut(at)?;
        waiting.is_used = true;
        Some(waiting)
    }

    /// Drops a request.
    pub(crate) fn forget(&mut self, at: usize) -> Option<Waiting> {
        let waiting = self.waiting.try_remove(at)?;
        self.due.set(at, None);
        Some(waiting)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When [`expire`](Self::expire) is to be called next. At `unsubscribed_at` a subscription ended, perhaps
    /// one for an answer.
    pub(crate) fn next_timeout(&self, unsubscribed_at: Option<Duration>) -> Option<Duration> {
        let first = self.due.next()?;
        let sweep = unsubscribed_at.map(|at| at.saturating_add(SWEEP_AFTER));
        sweep.into_iter().chain([first]).min()
    }

    /// Drops those whose time is over, and those whose requesters do not listen any more. The latter are looked for only
    /// some time after a subscription has ended at `unsubscribed_at`, which is taken then.
    pub(crate) fn expire(
        &mut self,
        now: Duration,
        unsubscribed_at: &mut Option<Duration>,
        mut listens: impl FnMut(AccountId, &[u8]) -> bool,
    ) {
        while let Some(at) = self.due.pop(now) {
            let waiting = &mut self.waiting[at];
            if std::mem::take(&mut waiting.is_used) {
                // A responder that answers once may answer again.
                let due = now.saturating_add(waiting.terms.patience);
                self.due.set(at, Some(due));
            } else if let Some(waiting) = self.forget(at)
                && let Some(measure) = waiting.measure
            {
                let ended = (waiting.exporter, measure, Outcome::Late);
                self.unanswered.push(ended);
            }
        }
        if unsubscribed_at.is_some_and(|at| at.saturating_add(SWEEP_AFTER) <= now) {
            *unsubscribed_at = None;
            let Requests {
                waiting,
                due,
                unanswered,
                ..
            } = self;
            waiting.retain(|at, waiting| {
                let is_wanted = listens(waiting.importer, &waiting.reply);
                if !is_wanted {
                    due.set(at, None);
                    if let Some(measure) = waiting.measure.take() {
                        unanswered.push((waiting.exporter, measure, Outcome::Abandoned));
                    }
                }
                is_wanted
            });
        }
    }

    /// What has to be reported since the last call.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(AccountId, Box<Measure>, Outcome)> {
        std::mem::take(&mut self.unanswered)
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
