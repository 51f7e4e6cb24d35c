//! What a reload changes, and whether it may.

use serde_json::Value as Json;

use super::Loaded;
use super::show::{MASK, masked, values};

/// An option that has another value than before.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// Where it stands, as in `authorization.users`.
    pub key: &'static str,
    /// The new value, secrets masked.
    pub value: Json,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key.replace('.', " ");
        match &self.value {
            // Blocks would fill the log, and a secret says nothing.
            Json::Object(_) if is_tls(self.key) => write!(f, "{key} = enabled"),
            Json::Null if is_tls(self.key) => write!(f, "{key} = disabled"),
            Json::Object(_) | Json::Array(_) => f.write_str(&key),
            Json::String(text) if text == MASK => f.write_str(&key),
            value => write!(f, "{key} = {}", plain(value)),
        }
    }
}

/// An option that only a restart can change.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "config reload not supported for {}: old={}, new={}",
    field(key),
    plain(old),
    plain(new)
)]
#[non_exhaustive]
pub struct NotReloadable {
    /// Which one.
    pub key: &'static str,
    /// Its value, secrets masked.
    pub old: Json,
    /// The value that was asked for, secrets masked.
    pub new: Json,
}

/// The option as nats-server calls it in this message: `server_name` is `ServerName`.
fn field(key: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    name.split('_')
        .filter_map(|word| {
            let (first, rest) = word.split_at_checked(1)?;
            Some(first.to_ascii_uppercase() + rest)
        })
        .collect()
}

/// Whether it is a block that is there or not.
fn is_tls(key: &str) -> bool {
    key.rsplit('.').next() == Some("tls")
}

/// A value without quotes; nothing for what is not set.
fn plain(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

impl Loaded {
    /// What is different in `new`, if all of it can change while the server runs.
    ///
    /// # Errors
    /// When something in it cannot.
    pub fn changes(&self, new: &Loaded) -> Result<Vec<Change>, NotReloadable> {
        let mut changes = Vec::new();
        for ((node, before), (_, after)) in values(self).into_iter().zip(values(new)) {
            if before == after {
                continue;
            }
            if !node.about.reloads {
                return Err(NotReloadable {
                    key: &node.key,
                    old: masked(node, before),
                    new: masked(node, after),
                });
            }
            changes.push(Change {
                key: &node.key,
                value: masked(node, after),
            });
        }
        Ok(changes)
    }
}
