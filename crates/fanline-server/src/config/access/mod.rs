//! Reads the blocks about users and accounts into an [`AccessConfig`], and shows one.

mod accounts;
mod callout;
mod exports;
mod mappings;
mod permissions;
mod proxies;
mod show;
mod users;

use fanline_engine::auth::AccessConfig;

pub(super) use accounts::accounts;
pub(super) use callout::callout;
pub(super) use mappings::mappings;
pub(super) use permissions::permissions;
pub(super) use proxies::proxies;
pub(super) use show::{show, show_user};
pub(super) use users::users;

use super::error::Fault;
use super::read::Given;

/// What is wrong with a value, in the words of the engine.
fn fault(given: &Given<'_>, error: impl std::fmt::Display) -> Fault {
    given.fault(error.to_string())
}

/// Whether there is anybody who has to show something.
pub(super) fn has_users(access: &AccessConfig) -> bool {
    access
        .accounts
        .iter()
        .any(|account| !account.users.is_empty())
}
