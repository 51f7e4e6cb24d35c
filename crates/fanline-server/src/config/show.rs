//! The effective settings, with secrets masked.

use serde_json::Value as Json;

use super::Loaded;
use super::draft::Draft;
use super::table::{Node, TREE};

/// The text that replaces a secret.
pub(super) const MASK: &str = "********";
/// Keys within values whose text is a secret.
const SECRET_KEYS: &[&str] = &["password", "token", "seed"];

/// An option with its effective value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// The option's full name, such as `jetstream.max_file_store`.
    pub key: &'static str,
    /// The value, secrets masked.
    pub value: Json,
}

impl Loaded {
    /// Returns all effective settings, in the order of the reference page.
    pub fn settings(&self) -> Vec<Setting> {
        let shown = values(self).into_iter().map(|(node, value)| Setting {
            key: &node.key,
            value: masked(node, value),
        });
        shown.collect()
    }
}

/// Returns all settings with their effective values, secrets included.
pub(super) fn values(loaded: &Loaded) -> Vec<(&'static Node, Json)> {
    let mut values = Vec::new();
    add(&TREE, &mut Draft::new(loaded.clone()), &mut values);
    values
}

fn add(nodes: &'static [Node], draft: &mut Draft, values: &mut Vec<(&'static Node, Json)>) {
    for node in nodes.iter().filter(|node| node.is_setting()) {
        let Some(entry) = node.entry else {
            continue;
        };
        let mut value = entry.show(draft);
        let mut apart = Vec::new();
        take_apart(&node.within, Some(&mut value), &mut apart);
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty && !apart.is_empty() {
            value = Json::Null;
        }
        values.push((node, value));
        values.append(&mut apart);
        add(&node.within, draft, values);
    }
}

/// Moves the values of options that are separate settings (`About::is_apart`) out of the value of their
/// block.
fn take_apart(
    nodes: &'static [Node],
    mut block: Option<&mut Json>,
    apart: &mut Vec<(&'static Node, Json)>,
) {
    for node in nodes {
        let fields = block.as_mut().and_then(|block| block.as_object_mut());
        if node.about.is_apart {
            let value = fields.and_then(|fields| fields.remove(node.shown_as()));
            apart.push((node, value.unwrap_or_default()));
        } else {
            let value = fields.and_then(|fields| fields.get_mut(node.shown_as()));
            take_apart(&node.within, value, apart);
        }
    }
}

/// Returns a value with its secrets masked.
pub(super) fn masked(node: &Node, value: Json) -> Json {
    match value {
        Json::Null => Json::Null,
        _ if node.about.is_secret => MASK.into(),
        mut value => {
            mask(&mut value);
            value
        }
    }
}

fn mask(value: &mut Json) {
    match value {
        Json::Array(values) => values.iter_mut().for_each(mask),
        Json::Object(fields) => {
            for (key, value) in fields {
                if SECRET_KEYS.contains(&key.as_str()) && !value.is_null() {
                    *value = MASK.into();
                } else {
                    mask(value);
                }
            }
        }
        _ => {}
    }
}
