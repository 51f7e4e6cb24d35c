//! Interest of leaf connections, and interest that is announced to them.

use super::super::Exchange;
use super::super::announced::Key;
use super::LeafSession;
use crate::auth::AccountId;
use crate::codec::leaf::{LOOPS, LeafError, write_interest};
use crate::codec::nats::error::ClientError;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::SubId;
use crate::exchange::session::SessionId;
use crate::subject::Filter;

/// Prefix of requests that every server answers itself. Interest in them is announced in the system account
/// only.
const OWN_SERVICES: &[u8] = b"$SYS.REQ.";

/// Capacity in bytes that the buffer for lines retains.
const LINE_BYTES: usize = 256 * 1024;

impl LeafSession<'_> {
    /// Subscribes the other server to a filter.
    pub(super) fn subscribe(&mut self, filter: &[u8], queue: &[u8], weight: u32) {
        let Ok(parsed) = Filter::parse(filter) else {
            return self.send_error(&LeafError::InvalidSubscription);
        };
        let session = &self.broker.exchange.sessions[self.id.index()];
        let account = session.account;
        if !self.state().rules.may_subscribe(filter, queue)
            || (filter.starts_with(LOOPS) && !self.handle_loop_interest(filter))
        {
            return;
        }
        let key = Key::new(filter, queue);
        if let Some(sub) = self.broker.exchange.subs.find(self.id.0, key.as_bytes()) {
            let sub = self.broker.exchange.subs.get_mut(sub);
            if sub.weight() != weight {
                sub.set_weight(weight);
                (self.broker.exchange).announce_links_interest(
                    LinkSet::Leafs,
                    account,
                    filter,
                    queue,
                    None,
                );
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
        let (sub, count) = router.join(
            &mut self.broker.exchange.subs,
            self.id.0,
            key.as_bytes(),
            parsed,
            queue,
        );
        let exchange = &mut self.broker.exchange;
        exchange.subs.get_mut(sub).set_weight(weight);
        exchange.sessions[self.id.index()].count_subscription(queue);
        exchange.announce_links_interest(LinkSet::Leafs, account, filter, queue, count);
    }

    /// Unsubscribes the other server from a filter.
    pub(super) fn unsubscribe(&mut self, filter: &[u8], queue: &[u8]) {
        if filter.starts_with(LOOPS) && self.withdraw_loop_interest(filter) {
            return;
        }
        let key = Key::new(filter, queue);
        if let Some(sub) = self.broker.exchange.subs.find(self.id.0, key.as_bytes()) {
            let (account, filter) = self
                .broker
                .exchange
                .drop_link_subscription(LinkSet::Leafs, sub);
            if filter.starts_with(LOOPS) {
                self.broker.check_paused_connections(account);
            }
        }
    }
}

impl Exchange {
    /// Announces changes of interest to other servers.
    #[inline]
    pub(crate) fn announce_to_links(&mut self) {
        self.announce_to_leafs();
        self.announce_to_routes();
        self.announce_to_gateways();
    }

    /// Announces changes of interest to leaf connections.
    #[inline]
    pub(crate) fn announce_to_leafs(&mut self) {
        if !self.shared.leafs.accounts.is_empty() {
            self.announce_changes();
        }
    }

    fn announce_changes(&mut self) {
        let seats = self.shared.leafs.accounts.keys().copied();
        let accounts: Vec<AccountId> = seats
            .filter(|account| self.routers[*account].has_news(LinkSet::Leafs))
            .collect();
        for account in accounts {
            let mut news = self.routers.of(account).take_news(LinkSet::Leafs);
            let keys: Vec<Key> = (news.sorted())
                .map(|(filter, queue)| Key::new(filter, queue))
                .collect();
            let ready = self.shared.leafs.accounts.get(&account);
            for id in ready.map_or_else(Vec::new, |in_account| in_account.ready.clone()) {
                self.announce_to_leaf(id, account, &keys);
            }
        }
    }

    /// Announces the weights of these filters with queue groups to one connection, unless the other side
    /// already knows them.
    fn announce_to_leaf(&mut self, id: SessionId, account: AccountId, keys: &[Key]) {
        let mut lines = std::mem::take(&mut self.shared.leafs.line);
        lines.clear();
        for key in keys {
            let weight = self.weight_for(id, account, key);
            let leaf = self.sessions[id.index()].kind.leaf_mut();
            if leaf.is_some_and(|leaf| leaf.announced.record(key, weight)) {
                write_interest(&mut lines, key.filter(), key.queue(), weight);
            }
        }
        if !lines.is_empty() {
            self.outputs.announced_bytes += lines.len();
            self.send(id, &lines);
        }
        lines.clear();
        lines.shrink_to(LINE_BYTES);
        self.shared.leafs.line = lines;
    }

    /// Announces all interest to one connection. If the rules of the connection have changed, announces only
    /// the differences.
    pub(crate) fn announce_all_to_leaf(&mut self, id: SessionId) {
        let session = &self.sessions[id.index()];
        let account = session.account;
        let Some(leaf) = session.kind.leaf() else {
            return;
        };
        let mut keys: Vec<Key> = leaf.announced.keys().cloned().collect();
        let mut note = |filter: &[u8], queue: &[u8]| keys.push(Key::new(filter, queue));
        self.routers[account].each_interest(&mut note);
        // Loop subjects come first, so that the other side detects a cycle before it forwards other interest.
        keys.sort_by_key(|key| !key.filter().starts_with(LOOPS));
        if let Some(in_account) = self.shared.leafs.accounts.get(&account) {
            let others = keys.partition_point(|key| key.filter().starts_with(LOOPS));
            keys.insert(others, Key::new(&in_account.own_loop, b""));
        }
        self.announce_to_leaf(id, account, &keys);
    }

    /// Returns the weight of a filter to announce to a connection: that of all other interest. Returns 0 if
    /// there is none, or if the connection's rules do not allow the announcement.
    fn weight_for(&self, id: SessionId, account: AccountId, key: &Key) -> u32 {
        let (filter, queue) = (key.filter(), key.queue());
        let Some(leaf) = self.sessions[id.index()].kind.leaf() else {
            return 0;
        };
        let is_loop = filter.starts_with(LOOPS);
        let own_loop = self
            .shared
            .leafs
            .accounts
            .get(&account)
            .map(|in_account| &*in_account.own_loop);
        if is_loop && own_loop == Some(filter) {
            return 1;
        }
        let is_own_service = filter.starts_with(OWN_SERVICES) && account != AccountId::SYSTEM;
        if is_own_service || !leaf.rules.may_announce(filter) {
            return 0;
        }
        let near = self.weight_for_cluster(account, (filter, queue), leaf.cluster.as_bytes());
        if queue.is_empty() && near > 0 {
            return near;
        }
        let is_shared = |sub: &&SubId| {
            let session = self.subs.get(**sub).session();
            let other = self.sessions[session as usize].kind.leaf();
            let is_between_hubs = || leaf.is_spoke() && other.is_some_and(|other| other.is_spoke());
            let is_same_cluster = || other.is_some_and(|other| other.is_same_cluster(leaf));
            session != id.0
                && !is_same_cluster()
                && (is_loop || !(leaf.isolates || is_between_hubs()))
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
