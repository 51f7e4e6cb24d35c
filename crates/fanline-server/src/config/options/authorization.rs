//! Users, permissions, and accounts.

use fanline_engine::auth::{Account, GLOBAL_ACCOUNT, Permissions};
use serde_json::{Value as Json, json};

use super::{Entry, duration_text};
use crate::config::access::{self, Accounts, CalloutBlock, Mappings, Proxies, UserBlock};
use crate::config::draft::Draft;
use crate::config::table::Kind::{Any, Block, Blocks, Text};
use crate::config::table::{self, set};
use crate::config::value::Value;

pub(super) const OPTIONS: &[Entry] = &[
    Entry::new(
        "authorization",
        Block,
        |draft, given| {
            draft.has_authorization = true;
            given.map().map(drop)
        },
        |_| Json::Null,
    )
    .section(SECTION)
    .reloads()
    .help("Who may connect."),
    Entry::new(
        "proxies",
        Block,
        |draft, given| set(&mut draft.loaded.access.proxies, access::proxies(given)),
        |draft| match &draft.loaded.access.proxies[..] {
            [] => Json::Null,
            keys => table::show(Proxies(keys.to_vec())),
        },
    )
    .block::<Proxies>()
    .reloads()
    .help("Proxies that are believed when they sign the nonce for a client (`proxy_sig`)."),
    Entry::text("no_auth_user", |d| &mut d.loaded.access.no_auth_user)
        .reloads()
        .help("The user that those are who show nothing."),
    Entry::text("system_account", |d| &mut d.loaded.access.system_account)
        .alias(&["system"])
        .default("$SYS")
        .help("The account of the server itself."),
    Entry::flag("no_system_account", |d| &mut d.no_system_account)
        .alias(&["no_system", "no_sys_acc"])
        .default("false")
        .help("Nothing is told or answered in the system account, unless the configuration names one or has users for it."),
    Entry::new(
        "mappings",
        Block,
        |draft, given| {
            let mappings = access::mappings(given);
            set(&mut draft.loaded.access.account_mut(GLOBAL_ACCOUNT).mappings, mappings)
        },
        |draft| global(draft, |account| access::show_mappings(&account.mappings)),
    )
    .block::<Mappings>()
    .alias(&["maps"])
    .reloads()
    .help("Other names for what is published outside of accounts."),
    Entry::new(
        "accounts",
        Any,
        |draft, given| {
            match given.node.value {
                Value::Map(_) | Value::List(_) => {}
                // nats-server treats it as missing.
                _ => return Ok(()),
            }
            draft.loaded.access.accounts.extend(access::accounts(given)?);
            Ok(())
        },
        |draft| {
            // Users outside of accounts belong to the global account.
            let accounts = draft.loaded.access.accounts.iter();
            access::show_accounts(accounts.filter(|account| account.name != GLOBAL_ACCOUNT))
        },
    )
    .block::<Accounts>()
    .reloads()
    .help("Accounts: spaces of subjects that know nothing of each other. A block of blocks, or names."),
];

const SECTION: &[Entry] = &[
    Entry::unshown("user", Text, |draft, given| {
        set(&mut draft.user, given.some_text())
    })
    .alias(&["username"])
    .flags("--user")
    .reloads()
    .help("The one user."),
    Entry::unshown("password", Text, |draft, given| {
        set(&mut draft.password, given.some_text())
    })
    .alias(&["pass"])
    .flags("--pass")
    .secret()
    .reloads()
    .help("Its password, in clear or as bcrypt writes it."),
    Entry::new(
        "token",
        Text,
        |draft, given| set(&mut draft.token, given.some_text()),
        |draft| {
            json!(
                draft
                    .loaded
                    .access
                    .token
                    .as_ref()
                    .map(access::show_password)
            )
        },
    )
    .flags("--auth")
    .secret()
    .reloads()
    .help("One token for all, in clear or as bcrypt writes it."),
    Entry::new(
        "timeout",
        Any,
        |draft, given| {
            // Zero means the default, as in nats-server.
            draft.auth_timeout = Some(super::tls::timeout(given)?).filter(|time| !time.is_zero());
            Ok(())
        },
        |draft| duration_text(draft.loaded.options.limits.auth_timeout),
    )
    .default("2s; with TLS `tls.timeout` and a second")
    .reloads()
    .help("How long a client may take to say who it is: seconds or a duration."),
    Entry::new(
        "users",
        Blocks,
        |draft, given| {
            let users = access::users(given)?;
            let global = draft.loaded.access.account_mut(GLOBAL_ACCOUNT);
            global.users.extend(users);
            Ok(())
        },
        |draft| {
            global(draft, |account| {
                account.users.iter().map(access::show_user).collect()
            })
        },
    )
    .block::<UserBlock>()
    .reloads()
    .help("Several users."),
    Entry::new(
        "default_permissions",
        Block,
        |draft, given| {
            let permissions = access::permissions(given)?;
            let global = draft.loaded.access.account_mut(GLOBAL_ACCOUNT);
            global.default_permissions = Some(permissions);
            Ok(())
        },
        |draft| {
            global(draft, |account| {
                let own = account.default_permissions.as_ref();
                own.map_or(Json::Null, access::show_permissions)
            })
        },
    )
    .block::<Permissions>()
    .alias(&["default_permission", "permissions"])
    .reloads()
    .help("What users without permissions of their own may do."),
    Entry::new(
        "auth_callout",
        Block,
        |draft, given| {
            set(
                &mut draft.loaded.access.callout,
                access::callout(given).map(Some),
            )
        },
        |draft| {
            draft
                .loaded
                .access
                .callout
                .as_ref()
                .map_or(Json::Null, access::show_callout)
        },
    )
    .block::<CalloutBlock>()
    .alias(&["auth_hook"])
    .reloads()
    .help("A service that decides who may connect."),
    Entry::flag("proxy_required", |d| &mut d.loaded.access.proxy_required)
        .default("false")
        .reloads()
        .help("Everybody has to come through a trusted proxy; see `proxies`."),
];

/// Shows options outside of accounts, which belong to `$G`.
fn global(draft: &Draft, show: impl Fn(&Account) -> Json) -> Json {
    access::global(&draft.loaded.access).map_or(Json::Null, show)
}
