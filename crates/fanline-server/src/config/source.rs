//! Source of files and environment variables for the parser.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest size of a configuration with its includes, in bytes. Without this limit, a process that can write
/// the file could exhaust the memory.
pub(super) const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A source of files and environment variables for a configuration.
pub trait Source {
    /// Returns the content of a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns the value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
}

/// The machine's files and environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Source for Machine {
    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Reads one byte more than allowed, so that the parser detects a file that is too large.
        let bytes_max = BYTES_MAX as u64 + 1;
        File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn variable(&self, name: &str) -> Option<String> {
        // The system call does not accept such names.
        if name.is_empty() || name.contains(['=', '\0']) {
            return None;
        }
        std::env::var(name).ok()
    }
}
