//! What is wrong with a configuration, and where.

use std::fmt;
use std::sync::Arc;

/// Where in a configuration something is: file, line and column, both counted from 1.
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

/// Why a configuration cannot be used. Its text begins with the place, when there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("open {path}: {reason}")]
    Read {
        /// Which file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// There is nothing in it.
    #[error("{0}: config has no values or is empty")]
    Empty(String),
    /// The text breaks the grammar.
    #[error("{place}: {reason}")]
    Syntax {
        /// Where.
        place: Place,
        /// What was expected.
        reason: String,
    },
    /// Values that make no sense, each with its place; there is at least one.
    #[error("{}", lines(.0))]
    Values(Vec<Fault>),
}

/// One value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where; `None` for what comes of several values together.
    pub place: Option<Place>,
    /// What is wrong.
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
