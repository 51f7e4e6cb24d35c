//! Changes of accounts in operator mode.

use std::sync::Arc;

use fanline_engine::Access;
use fanline_engine::auth::OperatorError;
use fanline_engine::auth::jwt::{AccountClaims, Unverified};

use super::Shared;
use crate::clock::unix_seconds;
use crate::ipc::Command;

impl Shared {
    /// Adds an account, or replaces its token by a newer one.
    pub(crate) fn add_account(&self, account: &str, token: &str) -> Result<(), OperatorError> {
        let claims = Unverified::<AccountClaims>::read(token)?;
        let subject = &claims.peek().subject;
        if subject != account {
            return Err(OperatorError::Other(subject.clone(), account.into()));
        }
        let mut current = self.lock_access();
        let next = current.with_account(token, unix_seconds())?;
        self.replace_access(&mut current, next);
        Ok(())
    }

    /// Removes accounts. Their clients are disconnected.
    pub(crate) fn remove_accounts(&self, accounts: &[String]) -> Result<(), OperatorError> {
        let mut current = self.lock_access();
        let next = current.without_accounts(accounts, unix_seconds())?;
        self.replace_access(&mut current, next);
        Ok(())
    }

    /// Replaces the access rules on all threads. `current` is locked, so all threads receive changes in the
    /// same order.
    pub(crate) fn replace_access(&self, current: &mut Arc<Access>, next: Access) {
        let next = Arc::new(next);
        *current = Arc::clone(&next);
        self.send_accounts_to_jetstream(&next);
        self.send_to_all(|| Command::ReplaceAccess(Arc::clone(&next)));
        self.access_changed.notify_one();
    }
}

/// Returns the tokens in `known` that are newer than the same account's token in `than`.
pub(crate) fn newer_tokens<'a>(known: &'a Access, than: &Access) -> Vec<&'a str> {
    let issued_at = |name: &str| {
        let account = than.account_id(name).and_then(|id| than.account(id))?;
        Some(account.authority.as_ref()?.issued_at())
    };
    let known = known.accounts().iter();
    let known = known.filter_map(|account| Some((&account.name, account.authority.as_ref()?)));
    let newer =
        known.filter(|(name, token)| issued_at(name).is_some_and(|at| token.issued_at() > at));
    newer.map(|(_, authority)| authority.token()).collect()
}
