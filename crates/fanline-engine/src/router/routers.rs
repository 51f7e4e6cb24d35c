//! The routers of a shard, one for each account: nothing of one is reached from another.

use std::ops::{Index, IndexMut};

use super::Router;
use crate::access::AccountId;

/// One router for each account that was heard of.
#[derive(Default)]
pub(crate) struct Routers(Vec<Router>);

impl Routers {
    /// The router of an account, made when it is wanted for the first time.
    pub(crate) fn of(&mut self, account: AccountId) -> &mut Router {
        self.ensure(account);
        &mut self.0[account.index()]
    }

    /// Sees to it that an account has a router, as indexing asks for.
    pub(crate) fn ensure(&mut self, account: AccountId) {
        let at = account.index();
        if self.0.len() <= at {
            self.0.resize_with(at + 1, Router::new);
        }
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
