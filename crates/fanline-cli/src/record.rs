//! Output of stored messages.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write, stdout};

use fanline_client::Headers;
use fanline_client::jetstream::StoredMessage;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::show;
use crate::terminal::{Colour, stdout_is_colourful};

/// Prints a message with its sequence, headers, and payload, or its payload only.
pub(crate) fn print(message: &StoredMessage, raw: bool) -> Result<(), Failure> {
    let mut out = BufWriter::new(stdout().lock());
    if !raw {
        let colourful = stdout_is_colourful();
        writeln!(
            out,
            "[{}] {} stored {}",
            message.sequence,
            Colour::Cyan.paint(&message.subject, colourful),
            Colour::Dim.paint(&show::time(message.time), colourful),
        )?;
        for (name, value) in message.headers.iter() {
            writeln!(out, "{}: {value}", Colour::Green.paint(name, colourful))?;
        }
        writeln!(out)?;
    }
    out.write_all(&message.payload)?;
    out.write_all(if raw { b"\n" } else { b"\n\n" })?;
    out.flush()?;
    Ok(())
}

/// Returns a message as JSON. A payload that is not UTF-8 is in `bytes` instead of `data`.
pub(crate) fn to_json(message: &StoredMessage) -> Value {
    let mut value = json!({
        "subject": message.subject,
        "seq": message.sequence,
        "time": message.time,
        "headers": headers_to_json(&message.headers),
    });
    match std::str::from_utf8(&message.payload) {
        Ok(text) => value["data"] = text.into(),
        Err(_) => value["bytes"] = message.payload.to_vec().into(),
    }
    value
}

fn headers_to_json(headers: &Headers) -> BTreeMap<&str, Vec<&str>> {
    let mut all = BTreeMap::<&str, Vec<&str>>::new();
    for (name, value) in headers.iter() {
        all.entry(name).or_default().push(value);
    }
    all
}
