//! Reads the blocks of users and accounts into an [`AccessConfig`], and returns them as JSON for the
//! effective settings. That JSON includes passwords, which are masked before it is printed.

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

/// Returns a fault with the value's position and the text of an error of the engine.
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

/// Returns the account `$G`, to which users outside of `accounts` belong.
pub(super) fn global(access: &AccessConfig) -> Option<&Account> {
    let mut accounts = access.accounts.iter();
    accounts.find(|account| account.name == GLOBAL_ACCOUNT)
}
