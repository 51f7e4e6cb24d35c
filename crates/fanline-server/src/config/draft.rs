//! What a configuration adds up to while it is read.

use std::path::PathBuf;
use std::sync::Arc;

use fanline_engine::access::{Access, AccessConfig, GLOBAL_ACCOUNT, User};

use super::error::Fault;
use super::read::{Given, Read};
use super::{JetStreamOptions, Loaded, access};
use crate::{Auth, Cipher, Encryption, Secret, WebSocketOptions};

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
            loaded: base,
        }
    }

    /// A duration; a bare number is taken as seconds, which nats-server deprecates.
    pub(super) fn duration(&mut self, given: &Given<'_>) -> Read<std::time::Duration> {
        let duration = given.duration()?;
        if given.is_number() {
            let key = given.key;
            self.loaded.deprecated.push(Fault {
                place: Some(given.node.place.clone()),
                reason: format!(
                    "invalid use of field \"{key}\": {key} should be converted to a duration"
                ),
            });
        }
        Ok(duration)
    }

    /// Puts together what depends on each other.
    pub(super) fn finish(mut self) -> Result<Loaded, Vec<Fault>> {
        let mut faults = Vec::new();
        self.finish_access(&mut faults);
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
        if faults.is_empty() {
            Ok(self.loaded)
        } else {
            Err(faults)
        }
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
        self.loaded.options.resolver = Some(resolver.0.clone());
    }

    /// Who may connect: one token, one user, or users and accounts.
    fn finish_access(&mut self, faults: &mut Vec<Fault>) {
        let access = &mut self.loaded.access;
        let is_single = self.user.is_some() || self.password.is_some();
        let has_users = access::has_users(access);
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
                None => "",
            },
            _ => "",
        };
        if !reason.is_empty() {
            let reason = reason.into();
            return faults.push(Fault {
                place: None,
                reason,
            });
        }
        if let Some(token) = self.token.take() {
            access.token = Some(token.into());
        } else if is_single {
            let name = self.user.take().unwrap_or_default();
            let user = User::new(name, self.password.take().unwrap_or_default());
            access.account_mut(GLOBAL_ACCOUNT).users.push(user);
        }
        if self.loaded.operator.is_on() {
            return self.finish_operator(faults);
        }
        if self.loaded.operator.resolver.is_some() {
            return faults.push(Fault {
                place: None,
                reason: "a resolver needs an operator or trusted keys".into(),
            });
        }
        let mut config = access.clone();
        match self
            .loaded
            .options
            .websocket
            .as_ref()
            .map(WebSocketOptions::access)
        {
            None => {}
            Some(Ok(websocket)) => config.websocket = websocket,
            Some(Err(reason)) => {
                return faults.push(Fault {
                    place: None,
                    reason,
                });
            }
        }
        if config == AccessConfig::default() {
            return;
        }
        match Access::new(config) {
            Ok(access) => self.loaded.options.auth = Auth::Directory(Arc::new(access)),
            Err(error) => faults.push(Fault {
                place: None,
                reason: error.to_string(),
            }),
        }
    }
}
