//! Errors of starting a server.

use std::io;
use std::path::PathBuf;

/// The reason why a server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is in use, not permitted, or not an address of this machine.
    #[error(
        "Error listening on port: {host}:{port}, \"{}\"",
        os_error_text(source)
    )]
    Listen {
        /// The configured host.
        host: String,
        /// The configured port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// An option is invalid.
    #[error("{0}")]
    Option(String),
    /// The unix socket cannot be created.
    #[error("Error listening on {}: {}", path.display(), os_error_text(source))]
    UnixSocket {
        /// The socket's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A certificate, key, or other TLS setting is invalid.
    #[error("TLS: {0}")]
    Tls(String),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(io::Error),
    /// Another server uses the store folder.
    #[error("the store folder {} is in use by another server{}", path.display(), of_process(*process))]
    StoreInUse {
        /// The folder.
        path: PathBuf,
        /// The other server's process id, if known.
        process: Option<u32>,
    },
    /// The store folder cannot be created, read, or written.
    #[error("the store folder {} cannot be used: {}", path.display(), os_error_text(source))]
    StoreFolder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The store folder is encrypted and cannot be opened.
    #[error("the store folder {} cannot be used: {source}", path.display())]
    StoreKey {
        /// The folder.
        path: PathBuf,
        /// The problem with the key.
        source: StoreKeyError,
    },
    /// The account resolver cannot be used.
    #[error("the resolver of accounts could not start: {}", os_error_text(.0))]
    Resolver(io::Error),
    /// Stored streams could not be recovered.
    #[error("JetStream could not start: {}", os_error_text(.0))]
    JetStream(io::Error),
    /// The PID or ports file could not be written.
    #[error("{path} could not be written: {}", os_error_text(source))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The reason why an encrypted store folder cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreKeyError {
    /// The folder is encrypted, and no secret is configured.
    #[error("it is encrypted, and no encryption key was given")]
    Missing,
    /// The folder is encrypted with another secret.
    #[error("it is encrypted with another encryption key")]
    Wrong,
    /// The secret is empty.
    #[error("the encryption key is empty")]
    Empty,
    /// Both copies of the store's own key are damaged.
    #[error("both copies of its own key, `key` and `key.copy`, are damaged")]
    Damaged,
    /// The key files cannot be read or written, or the system provides no random bytes.
    #[error("its own key cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

fn of_process(process: Option<u32>) -> String {
    process.map_or_else(String::new, |process| format!(" (process {process})"))
}

/// Returns an error's text as nats-server logs it: in lower case, without the error number.
pub fn os_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}
