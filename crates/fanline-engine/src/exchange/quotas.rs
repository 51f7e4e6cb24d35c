//! Limits on the clients of an account, which apply to all shards together.
//!
//! Each shard announces its usage of limited accounts to the other shards, and passes on the announcement
//! before it writes a response to the client. So, when a client has received a response, all shards count
//! this client. If two clients connect to two shards at the same moment, both may be admitted although only
//! one more is allowed.

use hashbrown::HashMap;

use super::Exchange;
use super::batch::AccountUsage;
use super::deliver::Kind;
use super::session::SessionId;
use crate::auth::{Access, AccountId, ClientLimits};

/// Takes the place of a shard's index for the usage of the other servers of a cluster.
const OTHER_SERVERS: u16 = u16::MAX;

/// The accounts with limits. Most accounts have none.
#[derive(Default)]
pub(crate) struct Quotas(HashMap<AccountId, Quota>);

#[derive(Default)]
struct Quota {
    limits: ClientLimits,
    own: AccountUsage,
    elsewhere: HashMap<u16, AccountUsage>,
    /// Leaf connections to the other servers of a cluster.
    remote_leafnodes: u32,
}

impl Quota {
    fn has_room_for(&self, limit: Option<u64>, count: impl Fn(&AccountUsage) -> u32) -> bool {
        let elsewhere: u64 = self
            .elsewhere
            .values()
            .map(|usage| u64::from(count(usage)))
            .sum();
        limit.is_none_or(|limit| u64::from(count(&self.own)) + elsewhere < limit)
    }
}

impl Quotas {
    /// Records another shard's usage of an account.
    pub(crate) fn record(&mut self, from: u16, account: AccountId, usage: AccountUsage) {
        let quota = self.0.entry(account).or_default();
        quota.elsewhere.insert(from, usage);
    }

    /// Records an account's connections to the other servers of a cluster.
    pub(crate) fn record_remote(&mut self, account: AccountId, clients: u32, leafnodes: u32) {
        let usage = AccountUsage {
            connections: clients,
            ..AccountUsage::default()
        };
        self.record(OTHER_SERVERS, account, usage);
        self.0.entry(account).or_default().remote_leafnodes = leafnodes;
    }

    /// Returns whether an account with this many leaf connections to this server may have another one.
    pub(crate) fn allow_leafnode(&self, account: AccountId, own: usize) -> bool {
        let allows = |quota: &Quota| {
            let all = own as u64 + u64::from(quota.remote_leafnodes);
            (quota.limits.leafnodes_max).is_none_or(|max| all < max)
        };
        self.0.get(&account).is_none_or(allows)
    }

    /// Returns the largest size in bytes of an account's messages, if it is limited.
    pub(crate) fn payload_bytes_max(&self, account: AccountId) -> Option<usize> {
        let max = self.0.get(&account)?.limits.payload_bytes_max?;
        usize::try_from(max).ok()
    }

    /// Returns whether an account may have another subscription.
    pub(crate) fn allow_subscription(&self, account: AccountId) -> bool {
        let allows = |quota: &Quota| {
            quota.has_room_for(quota.limits.subscriptions_max, |usage| usage.subscriptions)
        };
        self.0.get(&account).is_none_or(allows)
    }

    /// Returns whether an account may have another client. Its leaf connections to this server count, too, but those to
    /// other servers do not, as in nats-server.
    fn allow_connection(&self, account: AccountId) -> bool {
        let allows = |quota: &Quota| {
            let count = |usage: &AccountUsage| usage.connections.saturating_add(usage.leafnodes);
            quota.has_room_for(quota.limits.connections_max, count)
        };
        self.0.get(&account).is_none_or(allows)
    }
}

impl<K: Kind> Exchange<K> {
    /// Applies the limits of all accounts, and counts current usage.
    pub(crate) fn set_quotas(&mut self, access: &Access) {
        let mut quotas = Quotas::default();
        for (id, account) in (0..).map(AccountId).zip(access.accounts()) {
            let before = self.quotas.0.remove(&id).unwrap_or_default();
            if account.limits == ClientLimits::default() && before.elsewhere.is_empty() {
                continue;
            }
            let counted = self.sessions.iter();
            let counted = counted.filter(|(_, s)| s.is_counted && s.account == id);
            let (leafnodes, clients): (Vec<_>, Vec<_>) =
                counted.partition(|(_, s)| s.kind.links().is_some());
            let system_clients = self.sessions.iter();
            let system_clients =
                system_clients.filter(|(_, s)| s.is_system_client && s.account == id);
            let system_subscriptions: usize = system_clients.map(|(_, s)| s.subscriptions).sum();
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let own = AccountUsage {
                connections: count(clients.len()),
                leafnodes: count(leafnodes.len()),
                subscriptions: count(
                    self.routers
                        .of(id)
                        .len()
                        .saturating_sub(system_subscriptions),
                ),
            };
            let quota = Quota {
                limits: account.limits,
                own,
                elsewhere: before.elsewhere,
                remote_leafnodes: before.remote_leafnodes,
            };
            quotas.0.insert(id, quota);
            self.announce_usage(id, own);
        }
        self.quotas = quotas;
    }

    /// Counts a session in its account, and applies the account's limits to the session. Returns false if the
    /// account has reached its connection limit.
    pub(crate) fn count_connection(&mut self, id: SessionId) -> bool {
        let session = &mut self.sessions[id.index()];
        let account = session.account;
        if !session.is_counted && !self.quotas.allow_connection(account) {
            return false;
        }
        if let Some(max) = self.quotas.payload_bytes_max(account) {
            let limits = &mut session.parse_limits;
            limits.payload_bytes_max = limits.payload_bytes_max.min(max);
        }
        if !std::mem::replace(&mut session.is_counted, true) {
            self.count(account, |own| own.connections += 1);
        }
        true
    }

    /// Counts a leaf connection in its account.
    pub(crate) fn count_leafnode(&mut self, id: SessionId) {
        let session = &mut self.sessions[id.index()];
        let account = session.account;
        if !std::mem::replace(&mut session.is_counted, true) {
            self.count(account, |own| own.leafnodes += 1);
        }
    }

    /// Stops counting a session in its account.
    pub(crate) fn uncount_connection(&mut self, id: SessionId) {
        let session = &mut self.sessions[id.index()];
        let account = session.account;
        let is_leafnode = session.kind.links().is_some();
        if std::mem::take(&mut session.is_counted) {
            self.count(account, |own| {
                let number = match is_leafnode {
                    true => &mut own.leafnodes,
                    false => &mut own.connections,
                };
                *number = number.saturating_sub(1);
            });
        }
    }

    /// Changes this shard's usage of an account, and announces it if the account has limits.
    pub(crate) fn count(&mut self, account: AccountId, change: impl FnOnce(&mut AccountUsage)) {
        if let Some(quota) = self.quotas.0.get_mut(&account) {
            change(&mut quota.own);
            let own = quota.own;
            self.announce_usage(account, own);
        }
    }

    fn announce_usage(&mut self, account: AccountId, usage: AccountUsage) {
        let from = self.index;
        for (shard, batch) in self.outgoing.iter_mut().enumerate() {
            if shard != usize::from(from) {
                batch.push_usage(from, account, usage);
            }
        }
    }
}
