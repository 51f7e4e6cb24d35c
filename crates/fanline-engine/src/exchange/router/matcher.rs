//! The router's matching table as a separate type.

use super::{Route, RouteMemo, Router, Subscriptions};
use crate::exchange::remote::Remote;
use crate::subject::Filter;

/// The matching table of a [`Shard`](crate::Shard), without sessions. A subscription is identified by its
/// client's number and its sid.
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

/// The route of a publisher's last subject. It saves the lookup for the next message to the same subject. A
/// memo may be passed with any subject, and after any change.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchMemo(RouteMemo);

/// The matches of a subject.
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
    /// Adds a subscription, to a group if `queue` is not empty. If the client has a subscription with this
    /// sid, returns false without an effect.
    pub fn subscribe(&mut self, client: u32, sid: &[u8], filter: Filter<'_>, queue: &[u8]) -> bool {
        self.router
            .subscribe(&mut self.subs, client, sid, filter, queue)
            .is_some()
    }

    /// Removes a subscription. Returns false if there is none.
    pub fn unsubscribe(&mut self, client: u32, sid: &[u8]) -> bool {
        let found = self.subs.find(client, sid);
        if let Some(id) = found {
            self.router.unsubscribe(&mut self.subs, id, |_, _, _| {});
        }
        found.is_some()
    }

    /// Sets another shard's interest: the number of its members in a group. Without a group, 1 means that the
    /// shard has interest, and 0 that it has none.
    ///
    /// # Panics
    ///
    /// If `shard` is not below [`SHARDS_MAX`](crate::SHARDS_MAX).
    pub fn set_remote(&mut self, shard: u16, filter: Filter<'_>, queue: &[u8], weight: u32) {
        assert!(usize::from(shard) < crate::exchange::SHARDS_MAX);
        self.router
            .set_remote(Remote::Shard(shard), filter.as_bytes(), queue, weight);
    }

    /// Returns the matches of a subject. A subject with an empty token has no matches.
    #[inline]
    pub fn find(&mut self, subject: &[u8], memo: &mut MatchMemo) -> Matched<'_> {
        Matched(self.router.route(subject, &mut memo.0))
    }
}

impl Matched<'_> {
    /// Returns the number of subscriptions that receive each message.
    #[inline]
    pub fn subscriptions(&self) -> usize {
        self.0.plain.len()
    }

    /// Returns the number of groups of which one member receives each message.
    #[inline]
    pub fn groups(&self) -> usize {
        self.0.groups().count()
    }

    /// Returns the number of other shards with subscribers that receive each message.
    #[inline]
    pub fn shards(&self) -> usize {
        self.0.plain_remote.len()
    }
}
