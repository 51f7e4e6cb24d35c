//! What the clients of an account may have together, on all shards.
//!
//! Each shard announces to the others what it has of the accounts with limits, in the order in which it
//! decides. A client that was answered is counted everywhere; two that come at the same moment on two shards
//! may both get the last place.

use hashbrown::HashMap;

use super::Exchange;
use super::batch::Had;
use super::deliver::Kind;
use super::session::SessionId;
use crate::auth::{Access, AccountId, ClientLimits};

/// The accounts that are limited; most are not.
#[derive(Default)]
pub(crate) struct Quotas(HashMap<AccountId, Quota>);

#[derive(Default)]
struct Quota {
    limits: ClientLimits,
    own: Had,
    elsewhere: HashMap<u16, Had>,
}

impl Quota {
    fn has_room_for(&self, limit: Option<u64>, count: impl Fn(&Had) -> u32) -> bool {
        let elsewhere: u64 = self
            .elsewhere
            .values()
            .map(|had| u64::from(count(had)))
            .sum();
        limit.is_none_or(|limit| u64::from(count(&self.own)) + elsewhere < limit)
    }
}

impl Quotas {
    /// What another shard has of an account.
    pub(crate) fn note(&mut self, from: u16, account: AccountId, had: Had) {
        let quota = self.0.entry(account).or_default();
        quota.elsewhere.insert(from, had);
    }

    /// The largest message of an account, if that is limited.
    pub(crate) fn payload_bytes_max(&self, account: AccountId) -> Option<usize> {
        let max = self.0.get(&account)?.limits.payload_bytes_max?;
        usize::try_from(max).ok()
    }

    /// Whether one more subscription may be in an account.
    pub(crate) fn allow_subscription(&self, account: AccountId) -> bool {
        let allows = |quota: &Quota| {
            quota.has_room_for(quota.limits.subscriptions_max, |had| had.subscriptions)
        };
        self.0.get(&account).is_none_or(allows)
    }

    fn allow_connection(&self, account: AccountId) -> bool {
        let allows =
            |quota: &Quota| quota.has_room_for(quota.limits.connections_max, |had| had.connections);
        self.0.get(&account).is_none_or(allows)
    }
}

impl<K: Kind> Exchange<K> {
    /// Takes the limits of all accounts, and counts what there is.
    pub(crate) fn set_quotas(&mut self, access: &Access) {
        let mut quotas = Quotas::default();
        for (id, account) in (0..).map(AccountId).zip(access.accounts()) {
            let before = self.quotas.0.remove(&id).unwrap_or_default();
            if account.limits == ClientLimits::default() && before.elsewhere.is_empty() {
                continue;
            }
            let counted = self.sessions.iter();
            let counted = counted.filter(|(_, s)| s.is_counted && s.account == id);
            let insiders = self.sessions.iter();
            let insiders = insiders.filter(|(_, s)| s.is_insider && s.account == id);
            let served: usize = insiders.map(|(_, s)| s.subscriptions).sum();
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let own = Had {
                connections: count(counted.count()),
                subscriptions: count(self.routers.of(id).len().saturating_sub(served)),
            };
            let quota = Quota {
                limits: account.limits,
                own,
                elsewhere: before.elsewhere,
            };
            quotas.0.insert(id, quota);
            self.announce_had(id, own);
        }
        self.quotas = quotas;
    }

    /// Counts a session in its account, and gives it the account's limits. False when the account has all the
    /// connections that it may have.
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

    /// Counts a session in its account no more.
    pub(crate) fn uncount_connection(&mut self, id: SessionId) {
        let session = &mut self.sessions[id.index()];
        let account = session.account;
        if std::mem::take(&mut session.is_counted) {
            self.count(account, |own| {
                own.connections = own.connections.saturating_sub(1)
            });
        }
    }

    /// Changes what this shard has of an account, and announces it if the account has limits.
    pub(crate) fn count(&mut self, account: AccountId, change: impl FnOnce(&mut Had)) {
        if let Some(quota) = self.quotas.0.get_mut(&account) {
            change(&mut quota.own);
            let own = quota.own;
            self.announce_had(account, own);
        }
    }

    fn announce_had(&mut self, account: AccountId, had: Had) {
        let from = self.index;
        for (shard, batch) in self.outgoing.iter_mut().enumerate() {
            if shard != usize::from(from) {
                batch.push_had(from, account, had);
            }
        }
    }
}
