//! Accounts: `{ A { users: [ … ], exports: [ … ] }, B { … } }`, or a list of their names.

use fanline_engine::AccountLimits;
use fanline_engine::auth::{Account, ClientLimits, GLOBAL_ACCOUNT, Permissions, TraceTo};
use serde_json::{Value as Json, json};

use super::exports::{self, ExportBlock, export};
use super::imports::{self, ImportBlock, import};
use super::jetstream::jetstream;
use super::mappings::{Mappings, mappings, show_mappings};
use super::permissions::{permissions, show_permissions};
use super::users::{UserBlock, show_user, users};
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Any, Block, Blocks, Integer, Size};
use crate::config::table::{self, Entry, set};
use crate::config::value::Value;

/// The block `accounts`.
#[derive(Default)]
pub(in crate::config) struct Accounts(Vec<Account>);

impl table::Block for Accounts {
    const OPTIONS: &'static [Entry<Self>] =
        &[Entry::<Self>::unshown("*", Block, |accounts, given| {
            accounts.0.push(account(given)?);
            Ok(())
        })
        .block::<Account>()
        .help("An account.")];
}

impl table::Block for Account {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("nkey", |account| &mut account.nkey).help("Public key of the account."),
        Entry::<Self>::new(
            "users",
            Blocks,
            |account, given| set(&mut account.users, users(given)),
            |account| account.users.iter().map(show_user).collect(),
        )
        .block::<UserBlock>()
        .like("authorization.users")
        .help("Users of the account."),
        Entry::<Self>::new(
            "default_permissions",
            Block,
            |account, given| {
                set(
                    &mut account.default_permissions,
                    permissions(given).map(Some),
                )
            },
            |account| {
                let own = account.default_permissions.as_ref();
                own.map_or(Json::Null, show_permissions)
            },
        )
        .block::<Permissions>()
        .like("authorization.default_permissions")
        .help("Permissions of users without their own."),
        Entry::<Self>::new(
            "jetstream",
            Any,
            |account, given| set(&mut account.jetstream, jetstream(given)),
            |account| account.jetstream.clone().map_or(Json::Null, table::show),
        )
        .block::<AccountLimits>()
        .help("JetStream of the account: `enabled`, or a block of limits."),
        Entry::<Self>::new(
            "limits",
            Block,
            |account, given| {
                set(
                    &mut account.limits,
                    table::read(ClientLimits::default(), given),
                )
            },
            |account| table::show(account.limits),
        )
        .block::<ClientLimits>()
        .help("Limits of the account's clients together; -1 means unlimited."),
        Entry::<Self>::new(
            "exports",
            Blocks,
            |account, given| {
                set(
                    &mut account.exports,
                    given.items()?.iter().map(export).collect(),
                )
            },
            |account| account.exports.iter().map(exports::show).collect(),
        )
        .block::<ExportBlock>()
        .help("Exports to other accounts."),
        Entry::<Self>::new(
            "imports",
            Blocks,
            |account, given| {
                set(
                    &mut account.imports,
                    given.items()?.iter().map(import).collect(),
                )
            },
            |account| account.imports.iter().map(imports::show).collect(),
        )
        .block::<ImportBlock>()
        .help("Imports from other accounts."),
        Entry::<Self>::new(
            "mappings",
            Block,
            |account, given| set(&mut account.mappings, mappings(given)),
            |account| show_mappings(&account.mappings),
        )
        .block::<Mappings>()
        .alias(&["maps"])
        .like("mappings")
        .help("Subject mappings."),
        Entry::<Self>::new(
            "msg_trace",
            Any,
            |account, given| set(&mut account.trace, trace(given)),
            |account| account.trace.clone().map_or(Json::Null, Trace::show),
        )
        .block::<Trace>()
        .alias(&["trace_dest"])
        .help("The subject of message traces."),
    ];
}

/// Reads the accounts.
pub(in crate::config) fn accounts(given: &Given<'_>) -> Read<Vec<Account>> {
    match given.node.value {
        Value::List(_) => {
            let names = given.texts()?;
            names.iter().map(|name| named(given, name)).collect()
        }
        _ => Ok(table::read(Accounts::default(), given)?.0),
    }
}

/// Returns accounts by name as JSON.
pub(in crate::config) fn show_accounts<'a>(accounts: impl Iterator<Item = &'a Account>) -> Json {
    let shown = accounts.map(|account| (account.name.clone(), table::show(account.clone())));
    Json::Object(shown.collect())
}

fn named(given: &Given<'_>, name: &str) -> Read<Account> {
    if name == GLOBAL_ACCOUNT {
        return Err(given.fault(format!("\"{name}\" is a Reserved Account")));
    }
    Ok(Account::new(name))
}

/// Reads an account. Its name is the key.
fn account(given: &Given<'_>) -> Read<Account> {
    let account = named(given, given.key)?;
    match given.node.value {
        Value::Map(_) => table::read(account, given),
        _ => Err(given.fault("Expected map entries for accounts")),
    }
}

/// The destination of message traces: `"subject"`, or `{ dest: "subject", sampling: 10% }`.
struct Trace {
    dest: Option<String>,
    percent: u8,
}

impl table::Block for Trace {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("dest", |trace| &mut trace.dest).help("Subject of the traces."),
        Entry::<Self>::new(
            "sampling",
            Any,
            |trace, given| set(&mut trace.percent, sampling(given)),
            |trace| json!(trace.percent),
        )
        .help("Percentage of traced messages."),
    ];
}

impl Trace {
    fn show(to: TraceTo) -> Json {
        table::show(Trace {
            dest: Some(to.dest),
            percent: to.percent,
        })
    }
}

fn trace(given: &Given<'_>) -> Read<Option<TraceTo>> {
    if let Value::Text(_) = given.node.value {
        return Ok(given.some_text()?.map(TraceTo::all));
    }
    let trace = Trace {
        dest: None,
        percent: 100,
    };
    let Trace { dest, percent } = table::read(trace, given)?;
    Ok(dest.map(|dest| TraceTo { dest, percent }))
}

/// Reads a percentage such as `25` or `"25%"`. 0 means 100 percent.
fn sampling(given: &Given<'_>) -> Read<u8> {
    let number = match &given.node.value {
        Value::Text(text) => text.trim().trim_end_matches('%').trim().parse().ok(),
        _ => Some(given.integer()?),
    };
    match number {
        Some(0) => Ok(100),
        Some(percent @ 1..=100) => Ok(u8::try_from(percent).unwrap_or(100)),
        _ => Err(given.fault("sampling must be between 1 and 100")),
    }
}

impl table::Block for ClientLimits {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "max_connections",
            Integer,
            |limits, given| set(&mut limits.connections_max, limit(given)),
            |limits| json!(limits.connections_max),
        )
        .alias(&["max_conn"])
        .help("Number of clients. The leaf connections to this server take the place of clients."),
        Entry::<Self>::new(
            "max_subscriptions",
            Integer,
            |limits, given| set(&mut limits.subscriptions_max, limit(given)),
            |limits| json!(limits.subscriptions_max),
        )
        .alias(&["max_subs"])
        .help("Number of subscriptions."),
        Entry::<Self>::new(
            "max_payload",
            Size,
            |limits, given| set(&mut limits.payload_bytes_max, limit(given)),
            |limits| json!(limits.payload_bytes_max),
        )
        .alias(&["max_pay"])
        .help("Bytes per message."),
        Entry::<Self>::new(
            "max_leafnodes",
            Integer,
            |limits, given| set(&mut limits.leafnodes_max, limit(given)),
            |limits| json!(limits.leafnodes_max),
        )
        .alias(&["max_leafs"])
        .help("Number of leaf nodes."),
    ];
}

/// Reads a limit. A negative number means no limit.
fn limit(given: &Given<'_>) -> Read<Option<u64>> {
    Ok(u64::try_from(given.integer()?).ok())
}
