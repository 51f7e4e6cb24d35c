//! Errors of a configuration, with their positions.

use std::fmt;
use std::sync::Arc;

/// A position in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The reason why a configuration cannot be used. Its text begins with the position, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("open {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// The configuration is empty.
    #[error("{0}: config has no values or is empty")]
    Empty(String),
    /// The text violates the grammar.
    #[error("{place}: {reason}")]
    Syntax {
        /// The position.
        place: Place,
        /// The expected text.
        reason: String,
    },
    /// At least one value is invalid.
    #[error("{}", lines(.0))]
    Values(Vec<Fault>),
}

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The position; `None` if several values conflict.
    pub place: Option<Place>,
    /// The error.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

fn lines(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("\n")
}
