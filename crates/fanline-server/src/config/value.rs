//! Parsed values of a configuration.

use std::collections::HashMap;

use jiff::Timestamp;

use super::error::Place;

/// A value of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true`, `yes`, `on`, and their opposites, without quotes.
    Bool(bool),
    /// An integer with its unit applied.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `2026-01-31T08:30:00Z`.
    Date(Timestamp),
    /// A text, quoted or not.
    Text(String),
    /// `[a, b]`.
    List(Vec<Node>),
    /// `{ a: b }`.
    Map(Map),
}

impl Value {
    /// Returns the name of the value's kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "a number",
            Value::Float(_) => "a number with a fraction",
            Value::Date(_) => "a date",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a block",
        }
    }
}

/// A value with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The beginning of the value; for a variable, the position of its use.
    pub place: Place,
}

impl Node {
    /// Returns the number of values, including values inside this one.
    pub(super) fn count(&self) -> usize {
        1 + match &self.value {
            Value::List(nodes) => nodes.iter().map(Node::count).sum(),
            Value::Map(map) => map.entries.iter().map(|entry| entry.node.count()).sum(),
            _ => 0,
        }
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as written, without quotes.
    pub key: String,
    /// The beginning of the key.
    pub place: Place,
    /// The value.
    pub node: Node,
    /// Whether a `$name` refers to the key. Such a key need not be an option.
    pub is_variable: bool,
}

/// Keys with values, in the order of their first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    entries: Vec<Entry>,
    index: HashMap<String, usize>,
}

impl Map {
    /// Returns all entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value of a key, which has to match exactly.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.index.get(key).map(|at| &self.entries[*at].node)
    }

    /// Sets a key. A later value replaces an earlier one.
    pub(super) fn insert(&mut self, entry: Entry) {
        match self.index.get(&entry.key) {
            Some(at) => {
                let is_variable = self.entries[*at].is_variable || entry.is_variable;
                self.entries[*at] = Entry {
                    is_variable,
                    ..entry
                };
            }
            None => {
                self.index.insert(entry.key.clone(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    /// Returns the value of a key, and marks it as a variable.
    pub(super) fn refer(&mut self, key: &str) -> Option<&Node> {
        let at = *self.index.get(key)?;
        let entry = &mut self.entries[at];
        entry.is_variable = true;
        Some(&entry.node)
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}
