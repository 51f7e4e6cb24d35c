//! The users and accounts of a simulated server.

use std::sync::Arc;

use fanline_engine::AccountLimits;
use fanline_engine::auth::{
    Access, AccessConfig, AccountId, Export, ExportKind, Import, ImportKind, User,
};

/// The accounts. Each has one user, whose name is the account's name in lower case.
pub(crate) const ACCOUNTS: [&str; 2] = ["A", "B"];

/// Password of all users.
pub(crate) const PASSWORD: &str = "secret";

/// Prefix of the subjects that the first account exports.
pub(crate) const EXPORTED: &str = "ex.";

/// What a reload may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    /// Accounts that no client uses.
    pub(crate) spare: usize,
    /// Whether the second account imports what the first one exports.
    pub(crate) has_import: bool,
}

/// Returns the directory.
pub(crate) fn directory(before: Option<&Access>, variant: Variant) -> Arc<Access> {
    let mut config = AccessConfig::default();
    for name in ACCOUNTS {
        let account = config.account_mut(name);
        account.users.push(User::new(name.to_lowercase(), PASSWORD));
        account.jetstream = Some(AccountLimits::default());
    }
    let subject = format!("{EXPORTED}>");
    config.account_mut(ACCOUNTS[0]).exports.push(Export {
        kind: ExportKind::Stream,
        subject: subject.clone(),
        accounts: None,
        account_token_position: None,
        allow_trace: false,
    });
    if variant.has_import {
        config.account_mut(ACCOUNTS[1]).imports.push(Import {
            kind: ImportKind::Stream,
            account: ACCOUNTS[0].into(),
            subject,
            to: None,
            allow_trace: false,
        });
    }
    for number in 0..variant.spare {
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
