//! The routers of a shard, one for each account: nothing of one is reached from another.

use std::ops::{Index, IndexMut};

use super::{Exit, RouteMemo, Router};
use crate::auth::AccountId;

/// One router for each account that was heard of.
#[derive(Default)]
pub(crate) struct Routers(Vec<Router>);

impl Routers {
    /// The router of an account, made when it is wanted for the first time.
    pub(crate) fn of(&mut self, account: AccountId) -> &mut Router {
        self.ensure(account);
        &mut self.0[account.index()]
    }

    /// The router of an account, if it was heard of.
    pub(crate) fn get(&self, account: AccountId) -> Option<&Router> {
        self.0.get(account.index())
    }

    /// Sees to it that an account has a router, as indexing asks for.
    pub(crate) fn ensure(&mut self, account: AccountId) {
        let at = account.index();
        if self.0.len() <= at {
            self.0.resize_with(at + 1, Router::new);
        }
    }

    /// Gives room back that a great many filters have needed.
    pub(crate) fn trim(&mut self) {
        self.0.iter_mut().for_each(Router::trim);
    }

    /// Whether there is no subscriber beyond the bridges of a route, as far as was found out before.
    pub(crate) fn is_dead_end(&self, account: AccountId, memo: RouteMemo) -> bool {
        let mut exits = self[account].held_route(memo).exits().iter();
        exits.all(|exit| exit.unheard_at == self[exit.account].changes())
    }

    /// Notes an exit behind which there may be no subscriber.
    pub(crate) fn note_unheard(&mut self, exit: &mut Exit) {
        let router = self.of(exit.account);
        if router.route(&exit.subject, &mut exit.memo).is_empty() {
            exit.unheard_at = router.changes();
        }
    }

    /// How many members a group has behind an exit.
    pub(crate) fn weight_of(&mut self, exit: &mut Exit, group: &[u8]) -> u32 {
        let route = self.of(exit.account).route(&exit.subject, &mut exit.memo);
        let same = route.groups().filter(|(g, _)| g.name.as_slice() == group);
        same.map(|(g, _)| g.weight).sum()
    }

    /// The groups that get the messages of a subject.
    pub(crate) fn groups_of(
        &mut self,
        account: AccountId,
        subject: &[u8],
        memo: &mut RouteMemo,
    ) -> Vec<Vec<u8>> {
        let groups = self.of(account).route(subject, memo).groups();
        groups.map(|(g, _)| g.name.as_slice().to_vec()).collect()
    }

    /// How many accounts were heard of.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Router> {
        self.0.iter()
    }
}

impl Index<AccountId> for Routers {
    type Output = Router;

    #[inline]
    fn index(&self, account: AccountId) -> &Router {
        &self.0[account.index()]
    }
}

impl IndexMut<AccountId> for Routers {
    #[inline]
    fn index_mut(&mut self, account: AccountId) -> &mut Router {
        &mut self.0[account.index()]
    }
}
