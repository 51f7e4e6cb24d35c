//! Blocks of users and accounts, read into an [`AccessConfig`] and shown. Shown values include passwords, which
//! are masked when they are printed.

mod accounts;
mod callout;
mod exports;
mod imports;
mod jetstream;
mod mappings;
mod permissions;
mod proxies;
mod users;

use fanline_engine::auth::{AccessConfig, Account, GLOBAL_ACCOUNT};

pub(super) use accounts::{Accounts, accounts, show_accounts};
pub(super) use callout::{CalloutBlock, callout, show_callout};
pub(super) use mappings::{Mappings, mappings, show_mappings};
pub(crate) use permissions::pattern_texts;
pub(super) use permissions::{permissions, show_permissions};
pub(super) use proxies::{Proxies, proxies};
pub(super) use users::{UserBlock, show_password, show_user, users};

use super::error::Fault;
use super::read::Given;

/// Returns an error at a value, with the engine's text.
fn fault(given: &Given<'_>, error: impl std::fmt::Display) -> Fault {
    given.fault(error.to_string())
}

/// Returns whether any client has to authenticate.
pub(super) fn has_users(access: &AccessConfig) -> bool {
    access
        .accounts
        .iter()
        .any(|account| !account.users.is_empty())
}

/// Returns the account of everything that is configured outside of accounts.
pub(super) fn global(access: &AccessConfig) -> Option<&Account> {
    let mut accounts = access.accounts.iter();
    accounts.find(|account| account.name == GLOBAL_ACCOUNT)
}
