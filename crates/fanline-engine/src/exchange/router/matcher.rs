//! The matching table on its own.

use super::{Route, RouteMemo, Router, Subscriptions};
use crate::exchange::remote::Remote;
use crate::subject::Filter;

/// Who gets the messages of a subject: the table in which a [`Shard`](crate::Shard) looks each of
/// them up, without sessions. A subscription is named by a client's number and its own sid.
///
/// ```
/// use fanline_engine::{Filter, MatchMemo, Matcher};
///
/// let mut matcher = Matcher::default();
/// assert!(matcher.subscribe(7, b"1", Filter::parse(b"orders.*").unwrap(), b""));
/// assert!(matcher.subscribe(7, b"2", Filter::parse(b"orders.>").unwrap(), b"workers"));
/// let matched = matcher.find(b"orders.new", &mut MatchMemo::default());
/// assert_eq!((matched.subscriptions(), matched.groups(), matched.shards()), (1, 1, 0));
/// assert!(matcher.unsubscribe(7, b"1"));
/// ```
pub struct Matcher {
    router: Router,
    subs: Subscriptions,
}

/// Where a publisher's last subject was found, so that the next message to it costs no look-up. It
/// stays safe to use whatever changes, and with another subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchMemo(RouteMemo);

/// What a subject leads to.
#[derive(Clone, Copy)]
pub struct Matched<'a>(&'a Route);

impl Default for Matcher {
    fn default() -> Self {
        Matcher {
            router: Router::new(),
            subs: Subscriptions::default(),
        }
    }
}

impl Matcher {
    /// Adds a subscription, in a group when `queue` is not empty. False, and nothing happens, when
    /// the client has one with this sid.
    pub fn subscribe(&mut self, client: u32, sid: &[u8], filter: Filter<'_>, queue: &[u8]) -> bool {
        self.router
            .subscribe(&mut self.subs, client, sid, filter, queue)
            .is_some()
    }

    /// Takes a subscription away. False when there is none.
    pub fn unsubscribe(&mut self, client: u32, sid: &[u8]) -> bool {
        let found = self.subs.find(client, sid);
        if let Some(id) = found {
            self.router.unsubscribe(&mut self.subs, id, |_, _, _| {});
        }
        found.is_some()
    }

    /// Notes what another shard wants: how many members it has in a group, or 1 and 0 for
    /// subscriptions without one.
    ///
    /// # Panics
    /// When `shard` is not below [`SHARDS_MAX`](crate::SHARDS_MAX).
    pub fn set_remote(&mut self, shard: u16, filter: Filter<'_>, queue: &[u8], weight: u32) {
        assert!(usize::from(shard) < crate::exchange::SHARDS_MAX);
        self.router
            .set_remote(Remote::Shard(shard), filter.as_bytes(), queue, weight);
    }

    /// What a subject leads to. Nothing, when it has an empty token.
    #[inline]
    pub fn find(&mut self, subject: &[u8], memo: &mut MatchMemo) -> Matched<'_> {
        Matched(self.router.route(subject, &mut memo.0))
    }
}

impl Matched<'_> {
    /// How many subscriptions get each message.
    #[inline]
    pub fn subscriptions(&self) -> usize {
        self.0.plain.len()
    }

    /// How many groups of which one member gets each message.
    #[inline]
    pub fn groups(&self) -> usize {
        self.0.groups().count()
    }

    /// How many other shards have somebody who gets each message.
    #[inline]
    pub fn shards(&self) -> usize {
        self.0.plain_remote.len()
    }
}
