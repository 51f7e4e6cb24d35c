//! Why a server could not start.

use std::io;
use std::path::PathBuf;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is taken, not allowed, or not of this machine.
    #[error("Error listening on port: {host}:{port}, \"{}\"", plain(source))]
    Listen {
        /// The host that was asked for.
        host: String,
        /// The port that was asked for.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// The unix socket cannot be made.
    #[error("Error listening on {}: {}", path.display(), plain(source))]
    UnixSocket {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate, a key or another setting of TLS cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(io::Error),
    /// Another server keeps its streams there.
    #[error("the store folder {} is in use by another server{}", path.display(), of_process(*process))]
    StoreInUse {
        /// Which folder.
        path: PathBuf,
        /// The process that has it, if that can be told.
        process: Option<u32>,
    },
    /// The folder that streams are kept in cannot be made, read or written.
    #[error("the store folder {} cannot be used: {}", path.display(), plain(source))]
    StoreFolder {
        /// Which folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder that streams are kept in is encrypted, and the key to it was not given.
    #[error("the store folder {} cannot be used: {source}", path.display())]
    StoreKey {
        /// Which folder.
        path: PathBuf,
        /// What is wrong with the key.
        source: StoreKeyError,
    },
    /// What accounts are looked for in cannot be used.
    #[error("the resolver of accounts could not start: {}", plain(.0))]
    Resolver(io::Error),
    /// What streams keep could not be taken back.
    #[error("JetStream could not start: {}", plain(.0))]
    JetStream(io::Error),
    /// The file with the process id or the ports could not be written.
    #[error("{path} could not be written: {}", plain(source))]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a store folder is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreKeyError {
    /// It is encrypted, and no secret was given.
    #[error("it is encrypted, and no encryption key was given")]
    Missing,
    /// It is encrypted with another secret.
    #[error("it is encrypted with another encryption key")]
    Wrong,
    /// An empty secret keeps nothing secret.
    #[error("the encryption key is empty")]
    Empty,
    /// Both copies of the store's own key are damaged.
    #[error("both copies of its own key, `key` and `key.copy`, are damaged")]
    Damaged,
    /// The files cannot be read or written, or there are no random numbers.
    #[error("its own key cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

fn of_process(process: Option<u32>) -> String {
    process.map_or_else(String::new, |process| format!(" (process {process})"))
}

/// What the system said, in the form that log readers know: lower case, without the number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}
