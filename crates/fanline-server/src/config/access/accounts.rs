//! Accounts: `{ A { users: [ … ], exports: [ … ] }, B { … } }`, or only their names in a list.

use fanline_engine::auth::{Account, GLOBAL_ACCOUNT, TraceTo};
use fanline_engine::jetstream::AccountLimits;

use super::exports::{exports, imports};
use super::mappings::mappings;
use super::permissions::permissions;
use super::users::users;
use crate::config::read::{Given, Read};
use crate::config::value::Value;

/// Reads the block of accounts.
pub(in crate::config) fn accounts(given: &Given<'_>) -> Read<Vec<Account>> {
    match given.node.value {
        Value::List(_) => given
            .texts()?
            .iter()
            .map(|name| named(given, name))
            .collect(),
        _ => given.fields()?.iter().map(account).collect(),
    }
}

fn named(given: &Given<'_>, name: &str) -> Read<Account> {
    if name == GLOBAL_ACCOUNT {
        return Err(given.fault(format!("\"{name}\" is a Reserved Account")));
    }
    Ok(Account::new(name))
}

/// Reads one account, whose name is the key.
fn account(given: &Given<'_>) -> Read<Account> {
    let mut account = named(given, given.key)?;
    let Value::Map(_) = given.node.value else {
        return Err(given.fault("Expected map entries for accounts"));
    };
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "nkey" => account.nkey = field.some_text()?,
            "users" => account.users = users(&field)?,
            "default_permissions" => account.default_permissions = Some(permissions(&field)?),
            "jetstream" => account.jetstream = jetstream(&field)?,
            "limits" => limits(&field, &mut account)?,
            "exports" => account.exports = exports(&field)?,
            "imports" => account.imports = imports(&field)?,
            "mappings" | "maps" => account.mappings = mappings(&field)?,
            _ => account.trace = trace(&field)?,
        }
    }
    Ok(account)
}

/// `"topic"` or `{ dest: "topic", sampling: 10% }`.
fn trace(given: &Given<'_>) -> Read<Option<TraceTo>> {
    if let Value::Text(_) = given.node.value {
        return Ok(given.some_text()?.map(TraceTo::all));
    }
    let (mut dest, mut percent) = (None, 100);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "dest" => dest = field.some_text()?,
            _ => percent = sampling(&field)?,
        }
    }
    Ok(dest.map(|dest| TraceTo { dest, percent }))
}

/// `25` or `"25%"`; 0 is all.
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

fn limits(given: &Given<'_>, account: &mut Account) -> Read<()> {
    let limits = &mut account.limits;
    for field in given.fields()? {
        // A negative number is no limit.
        let max = u64::try_from(field.integer()?).ok();
        match field.key.to_ascii_lowercase().as_str() {
            "max_connections" | "max_conn" => limits.connections_max = max,
            "max_subscriptions" | "max_subs" => limits.subscriptions_max = max,
            "max_payload" | "max_pay" => limits.payload_bytes_max = max,
            _ => limits.leafnodes_max = max,
        }
    }
    Ok(())
}

fn jetstream(given: &Given<'_>) -> Read<Option<AccountLimits>> {
    let mut limits = AccountLimits::default();
    match &given.node.value {
        Value::Bool(is_on) => return Ok(is_on.then_some(limits)),
        Value::Text(text) => {
            return match text.to_ascii_lowercase().as_str() {
                "enabled" | "enable" => Ok(Some(limits)),
                "disabled" | "disable" => Ok(None),
                _ => Err(given.fault(format!(
                    "Expected 'enabled' or 'disabled' for string value, got '{text}'"
                ))),
            };
        }
        _ => {}
    }
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "max_memory" | "max_mem" | "mem" | "memory" => limits.max_memory = bytes(&field)?,
            "max_store" | "max_file" | "max_disk" | "store" | "disk" => {
                limits.max_storage = bytes(&field)?;
            }
            "max_streams" | "streams" => limits.max_streams = field.integer()?,
            "max_consumers" | "consumers" => limits.max_consumers = field.integer()?,
            "max_bytes_required" | "max_stream_bytes" | "max_bytes" => {
                limits.max_bytes_required = field.boolean()?;
            }
            "mem_max_stream_bytes" | "memory_max_stream_bytes" => {
                limits.memory_max_stream_bytes = bytes(&field)?;
            }
            "disk_max_stream_bytes" | "store_max_stream_bytes" => {
                limits.storage_max_stream_bytes = bytes(&field)?;
            }
            "max_ack_pending" => limits.max_ack_pending = field.integer()?,
            // Where an account's traffic flows in a cluster, of which there is none.
            _ => {}
        }
    }
    Ok(Some(limits))
}

/// -1 is no limit.
fn bytes(field: &Given<'_>) -> Read<i64> {
    let bytes = field.storage()?;
    Ok(bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)))
}
