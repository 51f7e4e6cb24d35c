//! What a configuration adds up to while it is read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::access::{Access, AccessConfig, GLOBAL_ACCOUNT, SYSTEM_ACCOUNT, User};

use super::error::Fault;
use super::read::{Given, Read};
use super::{JetStreamOptions, Loaded, access};
use crate::{Auth, Cipher, Encryption, ResolverOptions, Secret, TlsOptions};

/// Settings that become options only together.
pub(super) struct Draft {
    pub(super) loaded: Loaded,
    pub(super) monitor_host: Option<String>,
    pub(super) monitor_port: Option<u16>,
    pub(super) has_jetstream: bool,
    pub(super) jetstream: JetStreamOptions,
    pub(super) store_dir: Option<PathBuf>,
    pub(super) store_key: Option<String>,
    pub(super) previous_store_key: Option<String>,
    pub(super) cipher: Cipher,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) token: Option<String>,
    pub(super) auth_timeout: Option<Duration>,
    pub(super) no_system_account: bool,
}

impl Draft {
    pub(super) fn new(base: Loaded) -> Self {
        Draft {
            monitor_host: None,
            monitor_port: None,
            has_jetstream: base.options.jetstream.is_some(),
            jetstream: base.jetstream.clone(),
            store_dir: None,
            store_key: None,
            previous_store_key: None,
            cipher: Cipher::default(),
            user: None,
            password: None,
            token: None,
            auth_timeout: None,
            no_system_account: base.options.no_system_account,
            loaded: base,
        }
    }

    /// A duration; a bare number is taken as seconds, which nats-server deprecates.
    pub(super) fn duration(&mut self, given: &Given<'_>) -> Read<Duration> {
        let duration = given.duration()?;
        self.note_number(given);
        Ok(duration)
    }

    /// The same for these durations of a block that is read as a whole.
    pub(super) fn note_numbers(&mut self, block: &Given<'_>, durations: &[&str]) -> Read<()> {
        for field in block.fields()? {
            let mut known = durations.iter();
            if known.any(|key| key.eq_ignore_ascii_case(field.key)) {
                self.note_number(&field);
            }
        }
        Ok(())
    }

    fn note_number(&mut self, given: &Given<'_>) {
        if !given.is_number() {
            return;
        }
        let key = given.key;
        self.loaded.deprecated.push(Fault {
            place: Some(given.node.place.clone()),
            reason: format!(
                "invalid use of field \"{key}\": {key} should be converted to a duration"
            ),
        });
    }

    /// Puts together what depends on each other.
    pub(super) fn finish(mut self) -> Result<Loaded, Vec<Fault>> {
        let mut faults = Vec::new();
        self.finish_access(&mut faults);
        self.finish_system_account();
        let mut fault = |reason: &str| {
            faults.push(Fault {
                place: None,
                reason: reason.into(),
            });
        };
        let options = &mut self.loaded.options;
        if let Some(port) = self.monitor_port {
            let host = self.monitor_host.unwrap_or_else(|| options.host.clone());
            options.monitoring = Some((host, port));
        }
        if options.lame_duck_grace_period >= options.lame_duck_duration {
            fault("lame duck grace period must be shorter than the lame duck duration");
        }
        if self.store_dir.is_some() {
            self.jetstream.store_dir = self.store_dir;
        }
        if let Some(key) = self.store_key {
            self.jetstream.encryption = Some(Encryption {
                secret: Secret::new(key),
                previous_secret: self.previous_store_key.map(Secret::new),
                cipher: self.cipher,
            });
        }
        options.jetstream = self.has_jetstream.then(|| self.jetstream.clone());
        self.loaded.jetstream = self.jetstream;
        options.trace_protocol = self.loaded.log.trace;
        let of_tls = options.tls.as_ref().map(TlsOptions::auth_timeout);
        if let Some(timeout) = self.auth_timeout.or(of_tls) {
            options.limits.auth_timeout = timeout;
        }
        if faults.is_empty() {
            Ok(self.loaded)
        } else {
            Err(faults)
        }
    }

    /// Whether there is a system account: there is, where one is named or has anything in it.
    fn finish_system_account(&mut self) {
        let access = &self.loaded.access;
        let mut accounts = access.accounts.iter();
        let is_meant = access.system_account.is_some()
            || accounts.any(|account| account.name == SYSTEM_ACCOUNT);
        self.loaded.options.no_system_account = self.no_system_account && !is_meant;
    }

    /// Who may connect in operator mode: users of accounts that an operator vouches for.
    fn finish_operator(&mut self, faults: &mut Vec<Fault>) {
        let operator = &self.loaded.operator;
        let access = &mut self.loaded.access;
        let mut fault = |reason: String| {
            faults.push(Fault {
                place: None,
                reason,
            });
        };
        if access.token.is_some() || access::has_users(access) {
            return fault("operators do not allow authorization by users or a token".into());
        }
        let Some(resolver) = &operator.resolver else {
            return fault("operators require an account resolver to be configured".into());
        };
        let trusted = match operator.trusted() {
            Ok(trusted) => trusted,
            Err(error) => return fault(error.to_string()),
        };
        if access.system_account.is_none() {
            access.system_account = trusted.system_account().map(String::from);
        }
        access.operators = Some(trusted);
        match operator.access(access.clone()) {
            Ok(made) => self.loaded.options.auth = Auth::Directory(Arc::new(made)),
            Err(error) => return fault(error.to_string()),
        }
        let mut resolver = resolver.0.clone();
        if let ResolverOptions::Url(own) = &mut resolver {
            own.tls.clone_from(&operator.resolver_tls);
        }
        self.loaded.options.resolver = Some(resolver);
    }

    /// Who may connect: one token, one user, or users and accounts.
    fn finish_access(&mut self, faults: &mut Vec<Fault>) {
        let mut done = self.check_ways_in();
        if done.is_ok() {
            self.take_way_in();
            if self.loaded.operator.is_on() {
                return self.finish_operator(faults);
            }
            done = self.finish_directory();
        }
        if let Err(reason) = done {
            faults.push(Fault {
                place: None,
                reason,
            });
        }
    }

    /// Whether there is one way to come in, and not several that exclude each other.
    fn check_ways_in(&self) -> Result<(), String> {
        let is_single = self.user.is_some() || self.password.is_some();
        let has_users = access::has_users(&self.loaded.access);
        let websocket = self.loaded.options.websocket.as_ref();
        let reason = match (&self.token, is_single, has_users) {
            (Some(_), true, _) => "Cannot have a user/pass and token",
            (Some(_), _, true) => "Can not have a token and a users array",
            (_, true, true) => "Can not have a single user/pass and a users array",
            (_, _, true) => match websocket.and_then(|websocket| websocket.auth.as_ref()) {
                Some(Auth::Token(_)) => {
                    "websocket authentication token not compatible with presence of users/nkeys"
                }
                Some(_) => {
                    "websocket authentication username not compatible with presence of users/nkeys"
                }
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        Err(reason.into())
    }

    /// Puts the one token or the one user where users are.
    fn take_way_in(&mut self) {
        let access = &mut self.loaded.access;
        if let Some(token) = self.token.take() {
            access.token = Some(token.into());
        } else if self.user.is_some() || self.password.is_some() {
            let name = self.user.take().unwrap_or_default();
            let user = User::new(name, self.password.take().unwrap_or_default());
            access.account_mut(GLOBAL_ACCOUNT).users.push(user);
        }
    }

    /// Users and accounts of the configuration itself.
    fn finish_directory(&mut self) -> Result<(), String> {
        let websocket = self.loaded.options.websocket.as_ref();
        if let Some(cookie) = websocket.and_then(|websocket| websocket.jwt_cookie.as_ref()) {
            return Err(format!(
                "trusted operators or trusted keys configuration is required for JWT authentication via cookie {cookie:?}"
            ));
        }
        if self.loaded.operator.resolver.is_some() {
            return Err("a resolver needs an operator or trusted keys".into());
        }
        let mut config = self.loaded.access.clone();
        if let Some(websocket) = websocket {
            config.websocket = websocket.access()?;
        }
        if config != AccessConfig::default() {
            let access = Access::new(config).map_err(|error| error.to_string())?;
            self.loaded.options.auth = Auth::Directory(Arc::new(access));
        }
        Ok(())
    }
}
