//! Input files of commands.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Reads a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::Error(format!("cannot read {}: {error}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    serde_json::from_slice(&text).map_err(|error| wrong(&error))
}
