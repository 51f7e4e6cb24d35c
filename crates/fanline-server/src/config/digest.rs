//! The digest of a configuration: SHA-256 of its values as JSON. The digest must equal that of nats-server,
//! so the JSON is the same byte for byte.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

use super::value::{Map, Node, Value};

/// Returns the digest as `sha256:` and 64 hexadecimal digits.
pub(super) fn of(map: &Map) -> String {
    let mut json = String::new();
    write_map(&mut json, map);
    json.push('\n');
    let mut text = String::from("sha256:");
    for byte in digest(&SHA256, json.as_bytes()).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn write_map(json: &mut String, map: &Map) {
    let mut entries: Vec<_> = map.entries().iter().collect();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    json.push('{');
    for (i, entry) in entries.into_iter().enumerate() {
        if i > 0 {
            json.push(',');
        }
        write_text(json, &entry.key);
        json.push(':');
        write_node(json, &entry.node);
    }
    json.push('}');
}

fn write_node(json: &mut String, node: &Node) {
    // Writing to a String cannot fail.
    let _ = match &node.value {
        Value::Bool(value) => write!(json, "{value}"),
        Value::Integer(value) => write!(json, "{value}"),
        Value::Float(value) => write!(json, "{value}"),
        Value::Date(value) => write!(json, "\"{value}\""),
        Value::Text(value) => {
            write_text(json, value);
            Ok(())
        }
        Value::List(nodes) => {
            json.push('[');
            for (i, node) in nodes.iter().enumerate() {
                if i > 0 {
                    json.push(',');
                }
                write_node(json, node);
            }
            json.push(']');
            Ok(())
        }
        Value::Map(map) => {
            write_map(json, map);
            Ok(())
        }
    };
}

/// Writes a JSON string. Like Go's encoder, it also escapes characters with a meaning in HTML or JavaScript.
fn write_text(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
}
