//! What leafs want, and what they are told that is wanted here.

use super::super::Exchange;
use super::LeafSession;
use super::told::Key;
use crate::auth::AccountId;
use crate::codec::leaf::{LOOPS, LeafError, write_interest};
use crate::codec::nats::error::ClientError;
use crate::exchange::remote::{LinkSet, Remote};
use crate::exchange::router::SubId;
use crate::exchange::session::SessionId;
use crate::subject::Filter;

/// What every server answers for its own clients; other accounts lead there by themselves.
const OWN_SERVICES: &[u8] = b"$SYS.REQ.";

/// Leaf connections, as others see them.
const REMOTE: Remote = Remote::Links(LinkSet::Leafs);

/// Room that is kept for what a leaf is told in one go.
const LINE_BYTES: usize = 256 * 1024;

impl LeafSession<'_> {
    /// A leaf wants a filter.
    pub(super) fn subscribe(&mut self, filter: &[u8], queue: &[u8], weight: u32) {
        let Ok(parsed) = Filter::parse(filter) else {
            return self.complain(&LeafError::InvalidSubscription);
        };
        let session = &self.broker.exchange.sessions[self.id.index()];
        let account = session.account;
        if !self.link().rules.may_be_wanted(filter, queue)
            || (filter.starts_with(LOOPS) && !self.leads_on(filter))
        {
            return;
        }
        let key = Key::new(filter, queue);
        if let Some(sub) = self.broker.exchange.subs.find(self.id.0, key.as_bytes()) {
            let sub = self.broker.exchange.subs.get_mut(sub);
            if sub.weight() != weight {
                sub.set_weight(weight);
                (self.broker.exchange).note_links_interest(LinkSet::Leafs, account, filter, queue);
            }
            return;
        }
        let session = &self.broker.exchange.sessions[self.id.index()];
        let max = self
            .broker
            .exchange
            .config
            .limits
            .subscriptions_max
            .unwrap_or(usize::MAX);
        if session.subscriptions >= max {
            return self
                .broker
                .send_error(self.id, &ClientError::SubscriptionsExceeded);
        }
        let router = self.broker.exchange.links[LinkSet::Leafs]
            .routers
            .of(account);
        let joined = router.subscribe(
            &mut self.broker.exchange.subs,
            self.id.0,
            key.as_bytes(),
            parsed,
            queue,
        );
        if let Some((sub, _)) = joined {
            self.broker.exchange.subs.get_mut(sub).set_weight(weight);
            self.broker.exchange.sessions[self.id.index()].subscriptions += 1;
            (self.broker.exchange).note_links_interest(LinkSet::Leafs, account, filter, queue);
        }
    }

    /// A leaf wants a filter no more.
    pub(super) fn unsubscribe(&mut self, filter: &[u8], queue: &[u8]) {
        if filter.starts_with(LOOPS) && self.leads_no_more(filter) {
            return;
        }
        let key = Key::new(filter, queue);
        if let Some(sub) = self.broker.exchange.subs.find(self.id.0, key.as_bytes()) {
            let (account, filter) = self
                .broker
                .exchange
                .drop_link_subscription(LinkSet::Leafs, sub);
            if filter.starts_with(LOOPS) {
                self.broker.look_again_at_cycles(account);
            }
        }
    }
}

impl Exchange {
    /// Tells leafs what has changed of what is wanted here.
    #[inline]
    pub(crate) fn tell_leafs(&mut self) {
        if !self.shared.leafs.seats.is_empty() {
            self.tell_leafs_news();
        }
    }

    fn tell_leafs_news(&mut self) {
        let seats = self.shared.leafs.seats.keys().copied();
        let accounts: Vec<AccountId> = seats
            .filter(|account| self.routers[*account].has_news(LinkSet::Leafs))
            .collect();
        for account in accounts {
            let mut news = self.routers.of(account).take_news(LinkSet::Leafs);
            news.sort_unstable();
            news.dedup();
            let keys: Vec<Key> = (news.iter())
                .map(|(filter, queue)| Key::new(filter, queue))
                .collect();
            let ready = self.shared.leafs.seats.get(&account);
            for id in ready.map_or_else(Vec::new, |seat| seat.ready.clone()) {
                self.tell_leaf(id, account, &keys);
            }
        }
    }

    /// Tells one leaf what is wanted here under these filters, as far as that is news to it.
    fn tell_leaf(&mut self, id: SessionId, account: AccountId, keys: &[Key]) {
        let mut lines = std::mem::take(&mut self.shared.leafs.line);
        lines.clear();
        for key in keys {
            let weight = self.weight_for(id, account, key);
            let leaf = self.sessions[id.index()].kind.leaf_mut();
            if leaf.is_some_and(|leaf| leaf.told.note(key, weight)) {
                write_interest(&mut lines, key.filter(), key.queue(), weight);
            }
        }
        if !lines.is_empty() {
            self.outputs.told_bytes += lines.len();
            self.send(id, &lines);
        }
        lines.clear();
        lines.shrink_to(LINE_BYTES);
        self.shared.leafs.line = lines;
    }

    /// Tells a leaf everything, or what has become of it since other rules hold.
    pub(crate) fn tell_leaf_all(&mut self, id: SessionId) {
        let session = &self.sessions[id.index()];
        let account = session.account;
        let Some(leaf) = session.kind.leaf() else {
            return;
        };
        let mut keys: Vec<Key> = leaf.told.keys().cloned().collect();
        let mut note = |filter: &[u8], queue: &[u8]| keys.push(Key::new(filter, queue));
        self.routers[account].each_wanted(&mut note);
        // First what shows the other side that this link closes a cycle, before it has passed anything on.
        keys.sort_by_key(|key| !key.filter().starts_with(LOOPS));
        if let Some(seat) = self.shared.leafs.seats.get(&account) {
            let others = keys.partition_point(|key| key.filter().starts_with(LOOPS));
            keys.insert(others, Key::new(&seat.own_loop, b""));
        }
        self.tell_leaf(id, account, &keys);
    }

    /// How much is wanted under a filter by others than a leaf, as far as that leaf is to know.
    fn weight_for(&self, id: SessionId, account: AccountId, key: &Key) -> u32 {
        let (filter, queue) = (key.filter(), key.queue());
        let Some(leaf) = self.sessions[id.index()].kind.leaf() else {
            return 0;
        };
        let is_loop = filter.starts_with(LOOPS);
        let own_loop = self
            .shared
            .leafs
            .seats
            .get(&account)
            .map(|seat| &*seat.own_loop);
        if is_loop && own_loop == Some(filter) {
            return 1;
        }
        let is_own_service = filter.starts_with(OWN_SERVICES) && account != AccountId::SYSTEM;
        if is_own_service || !leaf.rules.may_be_told(filter) {
            return 0;
        }
        let near = self.routers[account].weight_without(REMOTE, filter, queue);
        if queue.is_empty() && near > 0 {
            return near;
        }
        let is_shared = |sub: &&SubId| {
            let session = self.subs.get(**sub).session();
            let other = self.sessions[session as usize].kind.leaf();
            let is_between_hubs = || leaf.is_spoke() && other.is_some_and(|other| other.is_spoke());
            let is_beside = || other.is_some_and(|other| other.is_beside(leaf));
            session != id.0 && !is_beside() && (is_loop || !(leaf.isolates || is_between_hubs()))
        };
        let members = self.links[LinkSet::Leafs].routers.get(account);
        let members = members.map_or(&[][..], |router| router.members(filter, queue));
        let mut others = members.iter().filter(is_shared);
        match queue {
            [] => u32::from(others.next().is_some()),
            _ => others.fold(near, |sum, sub| {
                sum.saturating_add(self.subs.get(*sub).weight())
            }),
        }
    }
}
