//! What the clients of an account may have together, on all shards.
//!
//! Each shard tells the others what it has of the accounts that are limited, in the order in which it
//! decides. Whoever was answered is counted everywhere; two that come at the same moment on two shards
//! may both get the last place.

use hashbrown::HashMap;

use super::session::SessionId;
use super::{Batch, Shard};
use crate::auth::{Access, AccountId, ClientLimits};
use crate::codec::nats::error::{ClientError, CloseReason};

/// What one shard has of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Had {
    pub(super) connections: u32,
    pub(super) subscriptions: u32,
}

/// The accounts that are limited; most are not.
#[derive(Default)]
pub(super) struct Quotas(HashMap<AccountId, Quota>);

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
    pub(super) fn note(&mut self, from: u16, account: AccountId, had: Had) {
        let quota = self.0.entry(account).or_default();
        quota.elsewhere.insert(from, had);
    }

    /// The largest message of an account, if that is limited.
    pub(super) fn payload_bytes_max(&self, account: AccountId) -> Option<usize> {
        let max = self.0.get(&account)?.limits.payload_bytes_max?;
        usize::try_from(max).ok()
    }

    /// Whether one more subscription may be in an account.
    pub(super) fn allow_subscription(&self, account: AccountId) -> bool {
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

impl Shard {
    /// Takes note of the limits of all accounts, and of what there is.
    pub(super) fn set_quotas(&mut self, access: &Access) {
        let mut quotas = Quotas::default();
        for (id, account) in (0..).map(AccountId).zip(access.accounts()) {
            let before = self.exchange.quotas.0.remove(&id).unwrap_or_default();
            if account.limits == ClientLimits::default() && before.elsewhere.is_empty() {
                continue;
            }
            let counted = self.exchange.sessions.iter();
            let counted = counted.filter(|(_, s)| s.is_counted && s.account == id);
            let insiders = self.exchange.sessions.iter();
            let insiders = insiders.filter(|(_, s)| s.is_insider && s.account == id);
            let served: usize = insiders.map(|(_, s)| s.subscriptions).sum();
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let own = Had {
                connections: count(counted.count()),
                subscriptions: count(self.exchange.routers.of(id).len().saturating_sub(served)),
            };
            let quota = Quota {
                limits: account.limits,
                own,
                elsewhere: before.elsewhere,
            };
            quotas.0.insert(id, quota);
            announce(&mut self.exchange.outgoing, self.exchange.index, id, own);
        }
        self.exchange.quotas = quotas;
    }

    /// Counts a session in its account. When that has all that it may have, the session is sent away.
    pub(super) fn count_connection(&mut self, id: SessionId) {
        let session = &mut self.exchange.sessions[id.index()];
        let account = session.account;
        if !session.is_counted && !self.exchange.quotas.allow_connection(account) {
            let error = Some(ClientError::AccountConnectionsExceeded);
            return self.refuse(id, error, CloseReason::MaximumAccountConnectionsExceeded);
        }
        if let Some(max) = self.exchange.quotas.payload_bytes_max(account) {
            let limits = &mut session.parse_limits;
            limits.payload_bytes_max = limits.payload_bytes_max.min(max);
        }
        if !std::mem::replace(&mut session.is_counted, true) {
            self.count(account, |own| own.connections += 1);
        }
    }

    /// Counts a session in its account no more.
    pub(super) fn uncount_connection(&mut self, id: SessionId) {
        let session = &mut self.exchange.sessions[id.index()];
        let account = session.account;
        if std::mem::take(&mut session.is_counted) {
            self.count(account, |own| {
                own.connections = own.connections.saturating_sub(1)
            });
        }
    }

    /// Changes what this shard has of an account, for all shards to know if they must.
    pub(super) fn count(&mut self, account: AccountId, change: impl FnOnce(&mut Had)) {
        if let Some(quota) = self.exchange.quotas.0.get_mut(&account) {
            change(&mut quota.own);
            announce(
                &mut self.exchange.outgoing,
                self.exchange.index,
                account,
                quota.own,
            );
        }
    }
}

fn announce(outgoing: &mut [Batch], from: u16, account: AccountId, had: Had) {
    for (shard, batch) in outgoing.iter_mut().enumerate() {
        if shard != usize::from(from) {
            batch.push_had(from, account, had);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::World;
    use crate::auth::{Access, AccessConfig, Auth, ClientLimits, GLOBAL_ACCOUNT};
    use crate::limits::Limits;

    fn world(shards: usize, limits: ClientLimits) -> World {
        let mut config = AccessConfig::default();
        config.account_mut(GLOBAL_ACCOUNT).limits = limits;
        let access = Access::new(config).unwrap();
        World::with(shards, Limits::default(), Auth::Directory(access.into()))
    }

    /// Once only those counted that said CONNECT, and an open server asks nobody to.
    #[test]
    fn who_says_nothing_takes_a_place_too() {
        for shards in [1, 2] {
            let limits = ClientLimits {
                connections_max: Some(2),
                ..ClientLimits::default()
            };
            let mut world = world(shards, limits);
            let first = world.open(0);
            world.say(first, "PING\r\n");
            assert!(world.read(first).ends_with("PONG\r\n"));
            let second = world.client(shards - 1);
            world.say(second, "PING\r\n");
            assert_eq!(world.read(second), "PONG\r\n");
            let third = world.open(0);
            let told = world.read(third);
            let refusal = "-ERR 'maximum account active connections exceeded'\r\n";
            assert!(
                told.starts_with("INFO ") && told.ends_with(refusal),
                "{told}"
            );
            // What has a place keeps it, whatever it says.
            world.say(second, "CONNECT {\"verbose\":false}\r\nPING\r\n");
            assert_eq!(world.read(second), "PONG\r\n");
        }
    }

    #[test]
    fn an_account_tells_how_large_its_messages_may_be() {
        let limits = ClientLimits {
            payload_bytes_max: Some(10),
            ..ClientLimits::default()
        };
        let mut world = world(1, limits);
        for shard in &mut world.shards {
            shard.exchange.info.max_payload = 1000;
        }
        let client = world.open(0);
        assert!(world.read(client).contains("\"max_payload\":10,"));
        world.say(
            client,
            "CONNECT {\"verbose\":false,\"protocol\":1}\r\nPING\r\n",
        );
        let told = world.read(client);
        assert!(told.contains("\"max_payload\":10,"), "{told}");
    }
}
