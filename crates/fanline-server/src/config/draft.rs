//! What a configuration adds up to while it is read.

use std::path::PathBuf;

use super::error::Fault;
use super::read::{Given, Read};
use super::{Auth, JetStreamOptions, Loaded};

/// Settings that become options only together.
pub(super) struct Draft {
    pub(super) loaded: Loaded,
    pub(super) monitor_host: Option<String>,
    pub(super) monitor_port: Option<u16>,
    pub(super) has_jetstream: bool,
    pub(super) jetstream: JetStreamOptions,
    pub(super) store_dir: Option<PathBuf>,
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
        options.auth = match (self.user, self.password, self.token) {
            (None, None, None) => options.auth.clone(),
            (None, None, Some(token)) => Auth::Token(token),
            (name, password, None) => Auth::User {
                name: name.unwrap_or_default(),
                password: password.unwrap_or_default(),
            },
            (_, _, Some(_)) => {
                fault("Cannot have a user/pass and token");
                Auth::Open
            }
        };
        if self.store_dir.is_some() {
            self.jetstream.store_dir = self.store_dir;
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
}
