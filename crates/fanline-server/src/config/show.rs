//! The settings in effect, with secrets masked.

use std::time::Duration;

use fanline_engine::time::Nanos;
use serde_json::Value as Json;

use super::Loaded;
use super::table::{self, Entry, Standing};

/// What is shown of a secret.
pub(super) const MASK: &str = "********";
/// Keys within values whose text is a secret.
const SECRET_KEYS: &[&str] = &["password", "token", "seed"];

/// An option with its value in effect.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// Where it stands, as in `jetstream.max_file_store`.
    pub key: &'static str,
    /// Its value, secrets masked.
    pub value: Json,
}

impl Loaded {
    /// All settings in effect, in the order of the reference page.
    pub fn settings(&self) -> Vec<Setting> {
        let shown = table::all().filter_map(|entry| {
            Some(Setting {
                key: entry.key,
                value: masked(entry, value(entry, self)?),
            })
        });
        shown.collect()
    }
}

/// An option's value in effect; `None` when it stands for nothing of its own.
pub(super) fn value(entry: &Entry, loaded: &Loaded) -> Option<Json> {
    match entry.standing {
        Standing::Works { show, .. } => Some(show(loaded)),
        _ => None,
    }
}

/// A value as it may be shown.
pub(super) fn masked(entry: &Entry, value: Json) -> Json {
    match value {
        Json::Null => Json::Null,
        _ if entry.is_secret => MASK.into(),
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

/// A duration as Go writes it: `2m0s`, `1.5s`, `100ms`.
pub(super) fn duration(duration: Duration) -> String {
    Nanos::from(duration).to_string()
}
