//! The JSON of INFO and CONNECT, as servers send them to each other.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// Parses an object; `None` for other JSON.
pub(super) fn parse_object<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    // Without this check, serde would accept a list of values in the order of the fields.
    let is_object = json.starts_with(b"{");
    is_object.then(|| serde_json::from_slice(json).ok())?
}

/// Returns the whole line of INFO.
pub(super) fn info_line(info: &impl Serialize) -> Vec<u8> {
    line(b"INFO ", info, b" \r\n")
}

/// Returns the whole line of CONNECT.
pub(super) fn connect_line(connect: &impl Serialize) -> Vec<u8> {
    line(b"CONNECT ", connect, b"\r\n")
}

fn line(verb: &[u8], object: &impl Serialize, end: &[u8]) -> Vec<u8> {
    let mut line = verb.to_vec();
    // Strings, numbers, and lists of them always serialize.
    serde_json::to_writer(&mut line, object).unwrap_or_default();
    line.extend_from_slice(end);
    line
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Some servers write an empty list as `null`.
pub(super) fn or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
