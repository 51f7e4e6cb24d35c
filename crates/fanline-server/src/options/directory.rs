//! Options of a folder that holds tokens of accounts.

use std::path::PathBuf;
use std::time::Duration;

/// How a folder of tokens is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// The folder.
    pub dir: PathBuf,
    /// Whether it holds all accounts, or those that were asked for lately.
    pub is_cache: bool,
    /// Whether tokens may be deleted.
    pub allow_delete: bool,
    /// Whether what is deleted is gone, and not kept beside.
    pub hard_delete: bool,
    /// The most tokens; one more is refused, or in a cache takes the place of the oldest. `None` is any
    /// number.
    pub tokens_max: Option<usize>,
    /// How long a token of a cache is good for.
    pub ttl: Option<Duration>,
}
