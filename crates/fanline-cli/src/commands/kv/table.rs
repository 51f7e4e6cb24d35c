//! Entries of a bucket as tables and as JSON.

use fanline_client::jetstream::{Entry, Operation};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::show;
use crate::table::Table;

/// Largest number of characters of a value in a table.
const SHOWN_MAX: usize = 48;

/// Prints entries, one per row.
pub(super) fn print(entries: &[Entry], with_values: bool) -> Result<(), Failure> {
    let mut table = Table::new(["Key", ">Revision", "Operation", "Written", "Value"]);
    for entry in entries {
        table.row([
            entry.key.clone(),
            entry.revision.to_string(),
            entry.operation.word().to_owned(),
            show::time(entry.created),
            match with_values {
                true => shortened(&entry.value),
                false => String::new(),
            },
        ]);
    }
    table.print()
}

/// Returns an entry as JSON. A value that is not UTF-8 is in `bytes` instead of `value`.
pub(super) fn to_json(entry: &Entry) -> Value {
    let mut value = json!({
        "key": entry.key,
        "revision": entry.revision,
        "operation": entry.operation.word(),
        "created": entry.created,
    });
    if entry.operation == Operation::Put {
        match std::str::from_utf8(&entry.value) {
            Ok(text) => value["value"] = text.into(),
            Err(_) => value["bytes"] = entry.value.to_vec().into(),
        }
    }
    value
}

/// Returns a value on one line.
pub(super) fn shortened(value: &[u8]) -> String {
    let text = match std::str::from_utf8(value) {
        Ok(text) => text.escape_debug().to_string(),
        Err(_) => return format!("{} bytes", value.len()),
    };
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
