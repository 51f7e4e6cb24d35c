//! What a configuration says, before anybody asks what it means.

use std::collections::HashMap;

use jiff::Timestamp;

use super::error::Place;

/// A value of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true`, `yes`, `on` and their opposites, without quotes.
    Bool(bool),
    /// A whole number, its unit applied.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `2026-01-31T08:30:00Z`.
    Date(Timestamp),
    /// Text, quoted or not.
    Text(String),
    /// `[a, b]`.
    List(Vec<Node>),
    /// `{ a: b }`.
    Map(Map),
}

impl Value {
    /// What kind of value this is, for messages.
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

/// A value, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it begins; of a variable, where it is used.
    pub place: Place,
}

impl Node {
    /// How many values this is, with all that are in it.
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
    /// The key as it was written, without quotes.
    pub key: String,
    /// Where the key begins.
    pub place: Place,
    /// Its value.
    pub node: Node,
    /// Whether a `$name` referred to it, which excuses a key that no option has.
    pub is_variable: bool,
}

/// Keys with values, in the order in which they were first written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    entries: Vec<Entry>,
    index: HashMap<String, usize>,
}

impl Map {
    /// All entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key, written exactly so.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.index.get(key).map(|at| &self.entries[*at].node)
    }

    /// Sets a key; a later value takes the place of an earlier one.
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

    /// The value of a key that a variable refers to.
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
