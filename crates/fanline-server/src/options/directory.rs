//! Options of a folder of account tokens.

use std::path::PathBuf;
use std::time::Duration;

/// Options of a folder of account tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// The folder.
    pub dir: PathBuf,
    /// Whether the folder is a cache of recently used accounts, not the set of all accounts.
    pub is_cache: bool,
    /// Whether tokens may be deleted.
    pub allow_delete: bool,
    /// Whether deletion removes the file instead of renaming it.
    pub hard_delete: bool,
    /// Largest number of tokens; unlimited if `None`. A further token is rejected, or replaces the oldest
    /// token of a cache.
    pub tokens_max: Option<usize>,
    /// Lifetime of a token in a cache.
    pub ttl: Option<Duration>,
}
