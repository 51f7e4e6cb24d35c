//! Configuration files in nats-server's grammar.
//!
//! ```no_run
//! let loaded = fanline_server::config::load("/etc/fanline.conf".as_ref())?;
//! for warning in loaded.warnings() {
//!     eprintln!("{warning}");
//! }
//! let server = fanline_server::Server::start(loaded.options)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`parse`] reads the grammar (`lexer.rs`, `parser.rs`) and returns values with their positions. One table
//! has an entry for each option, including options in blocks (`table.rs`, `options/`, `access/`). It detects
//! unknown keys, and serves [`Loaded::settings`], reloads ([`Loaded::changes`]), and `docs/configuration.md`
//! ([`reference()`]).

mod access;
mod changes;
#[cfg(test)]
mod compatibility_tests;
mod digest;
mod draft;
mod error;
mod files;
mod lexer;
mod operator;
mod options;
mod parser;
mod read;
mod reference;
mod show;
mod source;
mod table;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use std::path::{Path, PathBuf};

use fanline_engine::auth::{Access, AccessConfig, GLOBAL_ACCOUNT, Password, User};

use crate::{Auth, JetStreamOptions, Options, Origin};

pub(crate) use access::pattern_texts;
pub use changes::{Change, NotReloadable};
pub use error::{ConfigError, Fault, Place};
pub use operator::OperatorOptions;
pub(crate) use options::FEATURE_FLAGS;
pub use reference::reference;
pub use show::Setting;
pub use source::{Machine, Source};
pub use value::{Entry, Map, Node, Value};

/// A loaded configuration.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The server's options.
    pub options: Options,
    /// Users and accounts, from which [`Options::auth`] is built.
    pub access: AccessConfig,
    /// Operators and accounts of operator mode.
    pub operator: OperatorOptions,
    /// The `jetstream` block, even if JetStream is off. If the block names no folder, [`Options::jetstream`]
    /// has none either. Streams are then in memory, unless the caller sets a folder.
    pub jetstream: JetStreamOptions,
    /// Options of the process's log.
    pub log: LogOptions,
    /// Whether monitoring listens on the host of the client listener, because the file names no other host.
    pub monitoring_follows_host: bool,
    /// Options and blocks without effect.
    pub unsupported: Vec<Fault>,
    /// Deprecated notation, which nats-server rejects with `-t`.
    pub deprecated: Vec<Fault>,
}

impl Loaded {
    /// Returns all warnings for the start.
    pub fn warnings(&self) -> impl Iterator<Item = &Fault> {
        self.unsupported.iter().chain(&self.deprecated)
    }

    /// Sets the host of the client listener, and of monitoring if [`Loaded::monitoring_follows_host`] is set.
    pub fn set_host(&mut self, host: impl Into<String>) {
        self.options.host = host.into();
        if let Some((monitoring, _)) = &mut self.options.monitoring
            && self.monitoring_follows_host
        {
            monitoring.clone_from(&self.options.host);
        }
    }

    /// Replaces all users of the file by one. Accounts, permissions, and proxies stay. In operator mode the
    /// user has no effect.
    ///
    /// # Errors
    ///
    /// Fails if the file has options that conflict with a single user.
    pub fn set_user(
        &mut self,
        name: impl Into<String>,
        password: impl Into<Password>,
    ) -> Result<(), String> {
        let user = User::new(name, password);
        self.replace_users(|access| access.account_mut(GLOBAL_ACCOUNT).users.push(user))
    }

    /// Replaces all users of the file by one token. See [`set_user`](Loaded::set_user).
    ///
    /// # Errors
    ///
    /// Fails if the file has options that conflict with a token.
    pub fn set_token(&mut self, token: impl Into<Password>) -> Result<(), String> {
        let token = token.into();
        self.replace_users(|access| access.token = Some(token))
    }

    fn replace_users(&mut self, add: impl FnOnce(&mut AccessConfig)) -> Result<(), String> {
        if self.operator.is_on() {
            self.unsupported.push(Fault {
                place: None,
                reason: "a user or a token has no effect in operator mode".into(),
            });
            return Ok(());
        }
        let access = &mut self.access;
        for account in &mut access.accounts {
            account.users.clear();
        }
        (access.token, access.no_auth_user, access.callout) = (None, None, None);
        add(access);
        let directory = Access::new(access.clone()).map_err(|error| error.to_string())?;
        self.options.auth = Auth::Directory(directory.into());
        Ok(())
    }
}

/// Options of the log. A server only emits events. The program that runs the server writes the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOptions {
    /// The log file; stderr if `None`.
    pub file: Option<PathBuf>,
    /// Size in bytes at which the log file is rotated; 0 means never.
    pub file_bytes_max: u64,
    /// Largest number of log files, including the current one; 0 means unlimited.
    pub files_max: usize,
    /// Whether lines are JSON instead of nats-server's text (`log_format`).
    pub json: bool,
    /// Whether to log to the local syslog.
    pub syslog: bool,
    /// Address of a remote syslog: `udp://host:514`, `tcp://host:514`, or `unix:///path`.
    pub remote_syslog: Option<String>,
    /// Whether lines have a timestamp.
    pub time: bool,
    /// Whether timestamps are in UTC.
    pub utc: bool,
    /// Whether to write debug lines.
    pub debug: bool,
    /// Whether to write every protocol line.
    pub trace: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            file: None,
            file_bytes_max: 0,
            files_max: 0,
            json: false,
            syslog: false,
            remote_syslog: None,
            time: true,
            utc: false,
            debug: false,
            trace: false,
        }
    }
}

/// Loads a file and its includes. Options that the file does not set have the values of [`Options::default`].
///
/// # Errors
///
/// Fails if a file cannot be read, violates the grammar, or has invalid values.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    load_over(path, Loaded::default(), &Machine)
}

/// Loads a file with other defaults. `source` provides files and environment variables.
///
/// # Errors
///
/// Fails like [`load`].
pub fn load_over(
    path: &Path,
    defaults: Loaded,
    source: &dyn Source,
) -> Result<Loaded, ConfigError> {
    let map = parse(path, source)?;
    let mut draft = draft::Draft::new(defaults);
    draft.loaded.options.origin = Some(Origin {
        path: path.to_owned(),
        digest: digest::of(&map),
    });
    let faults = walk::apply(&mut draft, &map);
    if !faults.is_empty() {
        return Err(ConfigError::Values(faults));
    }
    draft.finish().map_err(ConfigError::Values)
}

/// Parses a file and its includes, without interpreting the values.
///
/// # Errors
///
/// Fails if a file cannot be read or violates the grammar.
pub fn parse(path: &Path, source: &dyn Source) -> Result<Map, ConfigError> {
    parser::parse_file(path, source)
}
