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
    .help("Users and credentials."),
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
    .help("Trusted proxies, which sign the nonce of clients (`proxy_sig`)."),
    Entry::text("no_auth_user", |d| &mut d.loaded.access.no_auth_user)
        .reloads()
        .help("The user of clients without credentials."),
    Entry::text("system_account", |d| &mut d.loaded.access.system_account)
        .alias(&["system"])
        .default("$SYS")
        .help("The system account."),
    Entry::flag("no_system_account", |d| &mut d.no_system_account)
        .alias(&["no_system", "no_sys_acc"])
        .default("false")
        .help("No events and no services in the system account, unless the configuration names it or has users for it."),
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
    .help("Subject mappings of the global account."),
    Entry::new(
        "accounts",
        Any,
        |draft, given| {
            match given.node.value {
                Value::Map(_) | Value::List(_) => {}
                // nats-server ignores the option if its value is of another type.
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
    .help("Accounts: isolated subject spaces. A block of blocks, or names."),
];

const SECTION: &[Entry] = &[
    Entry::unshown("user", Text, |draft, given| {
        set(&mut draft.user, given.some_text())
    })
    .alias(&["username"])
    .flags("--user")
    .reloads()
    .help("The single user."),
    Entry::unshown("password", Text, |draft, given| {
        set(&mut draft.password, given.some_text())
    })
    .alias(&["pass"])
    .flags("--pass")
    .secret()
    .reloads()
    .help("Its password, in clear or as a bcrypt hash."),
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
    .help("A token for all clients, in clear or as a bcrypt hash."),
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
    .default("2s; with TLS, `tls.timeout` and 1s more")
    .reloads()
    .help("Time limit of authentication: seconds or a duration."),
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
    .help("Permissions of users without their own."),
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
    .help("Auth callout: a service that authenticates clients."),
    Entry::flag("proxy_required", |d| &mut d.loaded.access.proxy_required)
        .default("false")
        .reloads()
        .help("All clients must connect through a trusted proxy; see `proxies`."),
];

/// Returns an option of the account `$G` as JSON. Options outside of the block `accounts` belong to this
/// account.
fn global(draft: &Draft, show: impl Fn(&Account) -> Json) -> Json {
    access::global(&draft.loaded.access).map_or(Json::Null, show)
}
