//! The options that a reload changes, and the error if an option needs a restart.

use serde_json::Value as Json;

use super::Loaded;
use super::show::{MASK, masked, values};

/// An option with a changed value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The option's full name, such as `authorization.users`.
    pub key: &'static str,
    /// The new value, secrets masked.
    pub value: Json,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key.replace('.', " ");
        match &self.value {
            // Blocks would fill the log, and secrets must not appear in it.
            Json::Object(_) if is_tls(self.key) => write!(f, "{key} = enabled"),
            Json::Null if is_tls(self.key) => write!(f, "{key} = disabled"),
            Json::Object(_) | Json::Array(_) => f.write_str(&key),
            Json::String(text) if text == MASK => f.write_str(&key),
            value => write!(f, "{key} = {}", plain(value)),
        }
    }
}

/// A change that needs a restart.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "config reload not supported for {}: old={}, new={}",
    field(key),
    plain(old),
    plain(new)
)]
#[non_exhaustive]
pub struct NotReloadable {
    /// The option's full name.
    pub key: &'static str,
    /// The current value, secrets masked.
    pub old: Json,
    /// The requested value, secrets masked.
    pub new: Json,
}

/// Returns the option's name in nats-server's message: `server_name` is `ServerName`.
fn field(key: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    name.split('_')
        .filter_map(|word| {
            let (first, rest) = word.split_at_checked(1)?;
            Some(first.to_ascii_uppercase() + rest)
        })
        .collect()
}

/// Returns whether an option is a TLS block.
fn is_tls(key: &str) -> bool {
    key.rsplit('.').next() == Some("tls")
}

/// Formats a value without quotes. The text is empty if the option is not set.
fn plain(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

impl Loaded {
    /// Returns the options whose values differ in `new`.
    ///
    /// # Errors
    ///
    /// Fails if a changed option needs a restart.
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
