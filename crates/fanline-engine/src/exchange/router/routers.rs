//! The routers of a shard, one for each account. A router does not refer to other routers.

use std::ops::{Index, IndexMut};

use super::{BridgeTarget, Member, RouteMemo, Router};
use crate::auth::AccountId;
use crate::exchange::remote::LinkSet;

/// One router for each account in use.
#[derive(Default)]
pub(crate) struct Routers {
    all: Vec<Router>,
    /// For each link set, whether changes of interest are recorded in all accounts, also in those of later
    /// routers.
    watched: [bool; LinkSet::ALL.len()],
    /// For each such link set, the accounts with interest changes that were not taken yet; some may have none.
    changed: [Vec<AccountId>; LinkSet::ALL.len()],
}

impl Routers {
    /// Returns the router of an account, and creates it on first use.
    pub(crate) fn of(&mut self, account: AccountId) -> &mut Router {
        self.ensure(account);
        &mut self.all[account.index()]
    }

    /// Returns the router of an account for a change of its interest, and creates it on first use.
    pub(crate) fn changing(&mut self, account: AccountId) -> &mut Router {
        self.ensure(account);
        let router = &mut self.all[account.index()];
        for set in LinkSet::ALL {
            let changed = &mut self.changed[set.index()];
            let is_watched = self.watched[set.index()];
            if is_watched && !router.has_news(set) && changed.last() != Some(&account) {
                changed.push(account);
            }
        }
        router
    }

    /// Returns the router of an account, if it was created.
    pub(crate) fn get(&self, account: AccountId) -> Option<&Router> {
        self.all.get(account.index())
    }

    /// Creates the router of an account if necessary. Indexing requires that the router exists.
    pub(crate) fn ensure(&mut self, account: AccountId) {
        let at = account.index();
        while self.all.len() <= at {
            let mut router = Router::new();
            for set in LinkSet::ALL {
                if self.watched[set.index()] {
                    router.watch(set, true);
                }
            }
            self.all.push(router);
        }
    }

    /// Starts or stops recording changes of interest for a link set in all accounts.
    pub(crate) fn watch_all(&mut self, set: LinkSet, is_watched: bool) {
        self.watched[set.index()] = is_watched;
        self.changed[set.index()].clear();
        for router in &mut self.all {
            router.watch(set, is_watched);
        }
    }

    /// Takes the accounts with interest changes that were not taken for a link set, since the last call. All
    /// accounts must be watched for the set.
    pub(crate) fn take_changed(&mut self, set: LinkSet) -> Vec<AccountId> {
        let mut changed = std::mem::take(&mut self.changed[set.index()]);
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Releases capacity that is no longer needed after many filters were removed.
    pub(crate) fn trim(&mut self) {
        self.all.iter_mut().for_each(Router::trim);
    }

    /// Returns whether all destinations of a route in other accounts are known to have no subscriber.
    pub(crate) fn has_no_bridged_subscriber(&self, account: AccountId, memo: RouteMemo) -> bool {
        let mut targets = self[account].route_of(memo).bridge_targets().iter();
        targets.all(|target| target.no_subscriber_at == self[target.account].changes())
    }

    /// If a destination in another account has no subscriber, records this.
    pub(crate) fn record_no_subscriber(&mut self, target: &mut BridgeTarget) {
        let router = self.of(target.account);
        if router.route(&target.subject, &mut target.memo).is_empty() {
            target.no_subscriber_at = router.changes();
        }
    }

    /// Returns the weight of a queue group at a destination in another account.
    pub(crate) fn weight_of(&mut self, target: &mut BridgeTarget, group: &[u8]) -> u32 {
        let route = self
            .of(target.account)
            .route(&target.subject, &mut target.memo);
        let same = route.groups().filter(|(g, _)| g.name.as_slice() == group);
        // The other servers of a cluster import their messages themselves.
        same.map(|(_, members)| Member::weight_near(members)).sum()
    }

    /// Returns the queue groups that receive the messages of a subject.
    pub(crate) fn groups_of(
        &mut self,
        account: AccountId,
        subject: &[u8],
        memo: &mut RouteMemo,
    ) -> Vec<Vec<u8>> {
        let groups = self.of(account).route(subject, memo).groups();
        groups.map(|(g, _)| g.name.as_slice().to_vec()).collect()
    }

    /// Returns the accounts with a router.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = AccountId> + use<> {
        let count = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        (0..count).map(AccountId)
    }

    /// Returns the number of accounts with a router.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Router> {
        self.all.iter()
    }
}

impl Index<AccountId> for Routers {
    type Output = Router;

    #[inline]
    fn index(&self, account: AccountId) -> &Router {
        &self.all[account.index()]
    }
}

impl IndexMut<AccountId> for Routers {
    #[inline]
    fn index_mut(&mut self, account: AccountId) -> &mut Router {
        &mut self.all[account.index()]
    }
}
