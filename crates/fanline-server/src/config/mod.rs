//! Configuration files, in nats-server's grammar.
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
//! [`parse`] reads the grammar (`lexer.rs`, `parser.rs`) and gives values that know their place.
//! What they mean is in one table with an entry for each option, also of blocks (`table.rs`, `options/`,
//! `access/`), from which unknown keys are found, [`Loaded::settings`] is shown, a reload is decided
//! ([`Loaded::changes`]) and `docs/configuration.md` is written ([`reference()`]).

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
pub use reference::reference;
pub use show::Setting;
pub use source::{Machine, Source};
pub use value::{Entry, Map, Node, Value};

/// What a configuration says.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// What a server is told.
    pub options: Options,
    /// Users and accounts, of which [`Options::auth`] is made.
    pub access: AccessConfig,
    /// In operator mode, whom the server believes what accounts there are.
    pub operator: OperatorOptions,
    /// What the block `jetstream` says, whether it is on or not. When there is no folder in it,
    /// [`Options::jetstream`] has none either: streams are in memory then, unless the caller
    /// chooses a folder.
    pub jetstream: JetStreamOptions,
    /// How the process logs.
    pub log: LogOptions,
    /// Whether monitoring is served on the clients' host, because the file names no other.
    pub monitoring_follows_host: bool,
    /// Options and blocks that have no effect.
    pub unsupported: Vec<Fault>,
    /// What should be written otherwise, which nats-server does not let pass with `-t`.
    pub deprecated: Vec<Fault>,
}

impl Loaded {
    /// Everything that should be said loudly at the start.
    pub fn warnings(&self) -> impl Iterator<Item = &Fault> {
        self.unsupported.iter().chain(&self.deprecated)
    }

    /// Listens for clients on another host, with all that follows it.
    pub fn set_host(&mut self, host: impl Into<String>) {
        self.options.host = host.into();
        if let Some((monitoring, _)) = &mut self.options.monitoring
            && self.monitoring_follows_host
        {
            monitoring.clone_from(&self.options.host);
        }
    }

    /// Admits one user in place of all users of the file. What else the file says stays: accounts, permissions,
    /// proxies. In operator mode the user has no effect.
    ///
    /// # Errors
    /// Says what does not go together.
    pub fn set_user(
        &mut self,
        name: impl Into<String>,
        password: impl Into<Password>,
    ) -> Result<(), String> {
        let user = User::new(name, password);
        self.replace_users(|access| access.account_mut(GLOBAL_ACCOUNT).users.push(user))
    }

    /// Admits everybody with one token in place of all users of the file, as [`set_user`](Loaded::set_user).
    ///
    /// # Errors
    /// Says what does not go together.
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

/// How a process logs. A server only emits events; who runs it decides what becomes of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOptions {
    /// A file in place of stderr.
    pub file: Option<PathBuf>,
    /// Bytes after which the file is put aside; 0 is never.
    pub file_bytes_max: u64,
    /// How many log files are kept, the one that is written to included; 0 is all.
    pub files_max: usize,
    /// Lines as JSON in place of nats-server's text (`log_format`).
    pub json: bool,
    /// Log to this machine's syslog.
    pub syslog: bool,
    /// Where another machine's syslog is: `udp://host:514`, `tcp://host:514` or `unix:///path`.
    pub remote_syslog: Option<String>,
    /// Whether lines have a time.
    pub time: bool,
    /// Whether that time is UTC.
    pub utc: bool,
    /// Whether debug lines are written.
    pub debug: bool,
    /// Whether every protocol line is written.
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

/// Reads a file and all that it includes, on top of [`Options::default`].
///
/// # Errors
/// When the file cannot be read, breaks the grammar, or says what makes no sense.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    load_over(path, Loaded::default(), &Machine)
}

/// The same on top of other defaults, with files and environment from elsewhere.
///
/// # Errors
/// As [`load`].
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

/// Reads a file and all that it includes, without asking what it means.
///
/// # Errors
/// When the file cannot be read or breaks the grammar.
pub fn parse(path: &Path, source: &dyn Source) -> Result<Map, ConfigError> {
    parser::parse_file(path, source)
}
