//! The users and accounts of a simulated server.

use std::sync::Arc;

use fanline_engine::AccountLimits;
use fanline_engine::auth::{Access, AccessConfig, AccountId, User};

/// The accounts. Each has one user, whose name is the account's in lower case.
pub(crate) const ACCOUNTS: [&str; 2] = ["A", "B"];

/// Password of all users.
pub(crate) const PASSWORD: &str = "secret";

/// Returns the directory. `spare` is the number of accounts that no client uses, which a reload may change.
pub(crate) fn directory(before: Option<&Access>, spare: usize) -> Arc<Access> {
    let mut config = AccessConfig::default();
    for name in ACCOUNTS {
        let account = config.account_mut(name);
        account.users.push(User::new(name.to_lowercase(), PASSWORD));
        account.jetstream = Some(AccountLimits::default());
    }
    for number in 0..spare {
        config.account_mut(&format!("SPARE{number}"));
    }
    let access = match before {
        Some(before) => before.successor(config),
        None => Access::new(config),
    };
    access.expect("the configuration is valid").into()
}

/// Returns the id of an account.
pub(crate) fn account_id(access: &Access, account: usize) -> AccountId {
    let name = ACCOUNTS[account];
    let at = access.accounts().iter().position(|it| it.name == name);
    let at = at.and_then(|at| u32::try_from(at).ok());
    AccountId(at.expect("the directory has the account"))
}
