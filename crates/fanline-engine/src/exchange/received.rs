//! Delivery of messages from other shards that follow each other: the messages of a run, and messages to sibling
//! subjects, such as the acknowledgements of publishes. The subscription and its session are looked up once.

use super::Exchange;
use super::batch::{Batch, BatchCursor};
use super::deliver::{FanOut, Kind};
use super::outputs::PRODUCED_BYTES_MAX;
use super::router::{Route, RouteMemo, Router, SubId};
use crate::auth::AccountId;
use crate::outbox::Outbox;

impl<K: Kind> FanOut<'_, K> {
    /// Queues messages of another shard for one subscription, until output must be written. `append` adds the next
    /// message, for the subscription's sid and a space, and returns the size of its payload; `None` after the last.
    /// Returns whether it queued them: it does not if each message needs its own decision.
    #[inline]
    fn deliver_each(
        &mut self,
        id: SubId,
        mut append: impl FnMut(&mut Outbox, &[u8]) -> Option<usize>,
    ) -> bool {
        let sub = self.subs.get_mut(id);
        let session = &mut self.sessions[sub.session() as usize];
        let is_plain = session.takes_headers && session.restriction.is_none();
        if !is_plain || !self.origin.reaches(sub.session(), session) {
            return false;
        }
        self.outputs.mark_dirty(sub.session(), session);
        loop {
            let before = session.out.pending_bytes();
            let Some(payload_bytes) = append(&mut session.out, sub.sid_and_space()) else {
                break;
            };
            session.out_msgs += 1;
            session.out_bytes += payload_bytes as u64;
            self.outputs.count_produced(sub.session(), session, before);
            if sub.count() {
                self.outputs.spent.push(id);
                break;
            }
            if self.outputs.produced_bytes > PRODUCED_BYTES_MAX || self.outputs.overflowed {
                break;
            }
        }
        true
    }

    /// Queues the remaining messages of another shard's run for the only subscription of their subject. Returns
    /// whether [it did](Self::deliver_each).
    fn deliver_tails(
        &mut self,
        id: SubId,
        route: &Route,
        head: &[u8],
        (batch, cursor): (&Batch, &mut BatchCursor),
    ) -> bool {
        let hmsg_head = if head.is_empty() {
            route.hmsg_head()
        } else {
            head
        };
        self.deliver_each(id, |out, sid| {
            let tail = batch.next_tail(cursor)?;
            let from = usize::from(tail.header_bytes == 0);
            out.append3(&hmsg_head[from..], sid, tail.bytes);
            Some(tail.payload_bytes)
        })
    }

    /// Queues the messages of another shard that follow one to a sibling of their subjects, for the only
    /// subscription of all siblings.
    fn deliver_siblings(
        &mut self,
        id: SubId,
        (router, memo): (&Router, RouteMemo),
        (batch, cursor): (&Batch, &mut BatchCursor),
    ) {
        let account = self.account;
        let is_sibling = |subject: &[u8]| router.is_sibling(memo, subject);
        self.deliver_each(id, |out, sid| {
            let (subject, tail) = batch.next_simple(cursor, account, is_sibling)?;
            let verb = if tail.header_bytes == 0 {
                "MSG "
            } else {
                "HMSG "
            };
            out.append3(verb.as_bytes(), subject, b" ");
            out.append3(sid, b"", tail.bytes);
            Some(tail.payload_bytes)
        });
    }
}

impl<K: Kind> Exchange<K> {
    /// Delivers the messages that follow a message of another shard in its run, with the same subject and head.
    /// Stops early if one of them has another effect than its delivery.
    pub(crate) fn deliver_rest_of_run(
        &mut self,
        (batch, cursor): (&Batch, &mut BatchCursor),
        account: AccountId,
        (subject, head): (&[u8], &[u8]),
        memo: RouteMemo,
    ) {
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            shared,
            ..
        } = self;
        let router = routers.of(account);
        if outputs.traces || !router.still_holds(memo, subject) {
            return;
        }
        let route = router.route_of(memo);
        let is_filtered = |id: &SubId| subs.get(*id).is_filtered();
        if route.has_bridge_targets() || route.plain.iter().any(is_filtered) {
            return;
        }
        let account = (account, subject);
        let mut fan_out = FanOut::<K>::of_others(sessions, subs, outputs, shared, account);
        if let [only] = *route.plain
            && fan_out.deliver_tails(only, route, head, (batch, &mut *cursor))
        {
            return self.settle_if_needed(None);
        }
        while let Some(crossing) = batch.next_of_run(cursor) {
            for id in &route.plain {
                fan_out.deliver(*id, route, &crossing.message);
            }
            let outputs = &fan_out.outputs;
            let is_full = outputs.produced_bytes > PRODUCED_BYTES_MAX || outputs.overflowed;
            if is_full || !outputs.spent.is_empty() {
                break;
            }
        }
        self.settle_if_needed(None);
    }

    /// Delivers the messages that follow a message of another shard to siblings of its subject. `memo` is the
    /// result of that message's delivery. Stops early if a message needs its own decision.
    pub(crate) fn deliver_siblings(
        &mut self,
        run: (&Batch, &mut BatchCursor),
        account: AccountId,
        memo: RouteMemo,
    ) {
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            shared,
            ..
        } = self;
        let router = &*routers.of(account);
        let Some(route) = router.route_of_siblings(memo).filter(|_| !outputs.traces) else {
            return;
        };
        let [only] = *route.plain else {
            return;
        };
        if route.has_groups() || route.has_bridge_targets() || subs.get(only).is_filtered() {
            return;
        }
        let mut fan_out = FanOut::<K>::of_others(sessions, subs, outputs, shared, (account, b""));
        fan_out.deliver_siblings(only, (router, memo), run);
        self.settle_if_needed(None);
    }
}
