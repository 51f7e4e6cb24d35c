//! Where the parser gets files and the environment from.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest configuration, with everything that it includes. More is refused: every process that
/// can write the file could otherwise take all memory.
pub(super) const BYTES_MAX: usize = 64 * 1024 * 1024;

/// What is outside of a configuration.
pub trait Source {
    /// The content of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
}

/// The machine's own files and environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Source for Machine {
    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One more than may be: the parser sees that it is too much.
        let bytes_max = BYTES_MAX as u64 + 1;
        File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn variable(&self, name: &str) -> Option<String> {
        // The system's call does not know what to do with these.
        if name.is_empty() || name.contains(['=', '\0']) {
            return None;
        }
        std::env::var(name).ok()
    }
}
