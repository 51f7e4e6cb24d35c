//! Options while a configuration is read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::{ANYBODY, Access, AccessConfig, GLOBAL_ACCOUNT, SYSTEM_ACCOUNT, User};

use super::error::{Fault, Place};
use super::read::Given;
use super::{JetStreamOptions, Loaded, access};
use crate::{Auth, Cipher, Encryption, ResolverOptions, Secret, TlsOptions};

/// Largest value of `max_payload`. Byte counts in the protocol have at most nine digits.
const PAYLOAD_BYTES_MAX: usize = 999_999_999;

/// Settings while a configuration is read. `finish` combines them into options.
pub(super) struct Draft {
    pub(super) loaded: Loaded,
    pub(super) monitor_host: Option<String>,
    pub(super) http_port: Option<u16>,
    pub(super) https_port: Option<u16>,
    pub(super) has_jetstream: bool,
    pub(super) jetstream: JetStreamOptions,
    pub(super) store_dir: Option<PathBuf>,
    pub(super) store_key: Option<String>,
    pub(super) previous_store_key: Option<String>,
    pub(super) cipher: Cipher,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) token: Option<String>,
    /// Whether there is an `authorization` block.
    pub(super) has_authorization: bool,
    pub(super) auth_timeout: Option<Duration>,
    pub(super) no_system_account: bool,
    /// The default host of the WebSocket, MQTT, and leaf node listeners.
    pub(super) listener_host: String,
    /// The position of `max_payload: -1`.
    pub(super) payload_without_limit: Option<Place>,
}

impl Draft {
    pub(super) fn new(base: Loaded) -> Self {
        Draft {
            monitor_host: None,
            http_port: None,
            https_port: None,
            has_jetstream: base.options.jetstream.is_some(),
            jetstream: base.jetstream.clone(),
            store_dir: None,
            store_key: None,
            previous_store_key: None,
            cipher: Cipher::default(),
            user: None,
            password: None,
            token: None,
            has_authorization: false,
            auth_timeout: None,
            no_system_account: base.options.no_system_account,
            listener_host: base.options.host.clone(),
            payload_without_limit: None,
            loaded: base,
        }
    }

    /// Adds a warning for the server's log.
    pub(super) fn warn(&mut self, place: &Place, reason: impl Into<String>) {
        self.loaded.unsupported.push(Fault {
            place: Some(place.clone()),
            reason: reason.into(),
        });
    }

    /// Like nats-server, adds a deprecation warning if a duration has no unit.
    pub(super) fn note_number(&mut self, given: &Given<'_>) {
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

    /// Combines settings that depend on each other.
    pub(super) fn finish(mut self) -> Result<Loaded, Vec<Fault>> {
        let mut faults = Vec::new();
        self.finish_access(&mut faults);
        self.finish_system_account();
        self.finish_monitoring(&mut faults);
        self.finish_payload();
        let mut fault = |reason: &str| {
            faults.push(Fault {
                place: None,
                reason: reason.into(),
            });
        };
        let options = &mut self.loaded.options;
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

    /// Sets the address of monitoring, and whether it uses HTTP or HTTPS.
    fn finish_monitoring(&mut self, faults: &mut Vec<Fault>) {
        let port = match (self.http_port, self.https_port) {
            (None, None) => return,
            (Some(http), Some(https)) => {
                return faults.push(Fault {
                    place: None,
                    reason: format!("can't specify both HTTP ({http}) and HTTPs ({https}) ports"),
                });
            }
            (Some(port), None) | (None, Some(port)) => port,
        };
        self.loaded.monitoring_follows_host = self.monitor_host.is_none();
        let options = &mut self.loaded.options;
        let host = self.monitor_host.take();
        options.monitoring = Some((host.unwrap_or_else(|| options.host.clone()), port));
        options.monitoring_tls = self.https_port.is_some();
    }

    /// Sets the largest possible payload for `max_payload: -1`.
    fn finish_payload(&mut self) {
        let limits = &mut self.loaded.options.limits;
        let most = limits.pending_bytes_max.min(PAYLOAD_BYTES_MAX);
        let Some(place) = self.payload_without_limit.take() else {
            return;
        };
        limits.payload_bytes_max = most;
        self.warn(
            &place,
            format!("max_payload: taken as {most} bytes: a message has to fit into max_pending"),
        );
    }

    /// Applies `no_system_account`, unless the configuration names or defines a system account.
    fn finish_system_account(&mut self) {
        let access = &self.loaded.access;
        let mut accounts = access.accounts.iter();
        let is_meant = access.system_account.is_some()
            || accounts.any(|account| account.name == SYSTEM_ACCOUNT);
        self.loaded.options.no_system_account = self.no_system_account && !is_meant;
    }

    /// Sets up operator mode: users of accounts that an operator has signed.
    fn finish_operator(&mut self, faults: &mut Vec<Fault>) {
        let has_operators = !self.loaded.operator.operators.is_empty();
        if !has_operators {
            self.ignore_users();
        }
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
        let resolver = match &operator.resolver {
            Some(resolver) => resolver.0.clone(),
            None if has_operators => {
                return fault("operators require an account resolver to be configured".into());
            }
            // With trusted keys alone, the preloaded accounts are the only ones.
            None => ResolverOptions::Memory,
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
        let mut resolver = resolver;
        if let ResolverOptions::Url(own) = &mut resolver {
            own.tls.clone_from(&operator.resolver_tls);
        }
        self.loaded.options.resolver = Some(resolver);
    }

    /// Removes users and a token that are configured next to `trusted_keys`, with a warning. Then, as in
    /// nats-server, only JWTs authenticate clients.
    fn ignore_users(&mut self) {
        let access = &mut self.loaded.access;
        if access.token.is_none() && !access::has_users(access) {
            return;
        }
        access.token = None;
        for account in &mut access.accounts {
            account.users.clear();
        }
        self.loaded.unsupported.push(Fault {
            place: None,
            reason: "users and a token are ignored because trusted_keys is set".into(),
        });
    }

    /// Sets up authentication by one token, one user, or users and accounts.
    fn finish_access(&mut self, faults: &mut Vec<Fault>) {
        let mut done = self.check_credentials();
        if done.is_ok() {
            self.apply_credentials();
            if self.loaded.operator.is_on() {
                return self.finish_operator(faults);
            }
            self.admit_to_global_account();
            done = self.finish_directory();
        }
        if let Err(reason) = done {
            faults.push(Fault {
                place: None,
                reason,
            });
        }
    }

    /// Checks that a token, a single user, and a list of users are not combined.
    fn check_credentials(&self) -> Result<(), String> {
        let is_single = self.user.is_some() || self.password.is_some();
        let has_users = access::has_users(&self.loaded.access);
        let reason = match (&self.token, is_single, has_users) {
            (Some(_), true, _) => "Cannot have a user/pass and token",
            (Some(_), _, true) => "Can not have a token and a users array",
            (_, true, true) => "Can not have a single user/pass and a users array",
            (_, _, true) => return self.check_listeners(),
            _ => return self.check_no_auth_users(),
        };
        Err(reason.into())
    }

    /// Like nats-server, rejects a listener's own user or token if the server has a list of users.
    fn check_listeners(&self) -> Result<(), String> {
        let options = &self.loaded.options;
        let websocket = options.websocket.as_ref().and_then(|own| own.auth.as_ref());
        let mqtt = options.mqtt.as_ref().and_then(|own| own.auth.as_ref());
        for (listener, auth) in [("websocket", websocket), ("mqtt", mqtt)] {
            let what = match auth {
                Some(Auth::Token(_)) => "token",
                Some(_) => "username",
                None => continue,
            };
            return Err(format!(
                "{listener} authentication {what} not compatible with presence of users/nkeys"
            ));
        }
        Ok(())
    }

    /// Rejects `no_auth_user` without users.
    fn check_no_auth_users(&self) -> Result<(), String> {
        let options = &self.loaded.options;
        let websocket = options.websocket.as_ref();
        let mqtt = options.mqtt.as_ref();
        let named = [
            self.loaded.access.no_auth_user.as_ref(),
            websocket.and_then(|own| own.no_auth_user.as_ref()),
            mqtt.and_then(|own| own.no_auth_user.as_ref()),
        ];
        match named.into_iter().flatten().next() {
            Some(name) if !self.loaded.operator.is_on() => Err(format!(
                "no_auth_user: {name:?} present, but users/nkeys are not defined"
            )),
            _ => Ok(()),
        }
    }

    /// Adds the single token or user to the access configuration.
    fn apply_credentials(&mut self) {
        let access = &mut self.loaded.access;
        if let Some(token) = self.token.take() {
            access.token = Some(token.into());
        } else if self.user.is_some() || self.password.is_some() {
            let name = self.user.take().unwrap_or_default();
            let user = User::new(name, self.password.take().unwrap_or_default());
            access.account_mut(GLOBAL_ACCOUNT).users.push(user);
        }
    }

    /// Like nats-server, admits clients without credentials to `$G` if the system account is the only
    /// configured account.
    fn admit_to_global_account(&mut self) {
        let access = &mut self.loaded.access;
        let system = access.system_account.as_deref().unwrap_or(SYSTEM_ACCOUNT);
        let is_system_alone = matches!(&access.accounts[..], [only] if only.name == system);
        let is_decided = self.has_authorization || access.token.is_some();
        if is_system_alone && !is_decided && access.no_auth_user.is_none() {
            let user = User::new(ANYBODY, String::new());
            access.account_mut(GLOBAL_ACCOUNT).users.push(user);
            access.no_auth_user = Some(ANYBODY.into());
        }
    }

    /// Builds [`Auth::Directory`] from the configured users and accounts.
    fn finish_directory(&mut self) -> Result<(), String> {
        let websocket = self.loaded.options.websocket.as_ref();
        if let Some(cookie) = websocket.and_then(|websocket| websocket.jwt_cookie.as_ref()) {
            return Err(format!(
                "trusted operators or trusted keys configuration is required for JWT authentication via cookie {cookie:?}"
            ));
        }
        if self.loaded.operator.resolver.is_some() {
            self.loaded.unsupported.push(Fault {
                place: None,
                reason: "resolver: without effect: it needs an operator or trusted keys".into(),
            });
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
