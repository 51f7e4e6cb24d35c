//! What a running server can be told to go by: other options, other users, certificates that are new.

use std::sync::Arc;

use fanline_engine::auth::{AccessConfig, AccessError, ListenerAccess};
use fanline_engine::{Access, Limits, SHARDS_MAX, ServerInfo, ShardConfig};

use super::{Handle, server_info, settings, warn_of_passwords};
use crate::clock::unix_seconds;
use crate::error::StartError;
use crate::ipc::{Command, Reload};
use crate::options::{LeafnodeOptions, MqttOptions, Options, WebSocketOptions};
use crate::shared::{Shared, newer_tokens};
use crate::tls::{self, ListenersTls};
use crate::{leaf, ports_file};

impl Handle {
    /// Goes on with other options: limits, credentials, TLS, the lame duck mode's times, the file with
    /// the process id, tracing. Connections stay open, except those whose credentials do not hold
    /// any more; what TLS is from now on, and whether there is any, is for those that come later. A
    /// listener for WebSocket keeps its TLS, or that it has none, and goes on with what the new TLS
    /// says. What takes a restart, as the addresses, stays as it is;
    /// [`Loaded::changes`](crate::config::Loaded::changes) tells for a file whether there is such.
    ///
    /// # Errors
    /// When an option makes no sense or a file cannot be written. Everything stays as it was then.
    pub fn reload(&self, options: Options) -> Result<(), StartError> {
        let shared = &self.shared;
        // First, so that of two reloads at once the second goes on from what the first has brought about.
        let mut current = shared.lock_access();
        let before = shared.options();
        let options = reloaded(&before, options);
        let options = Options {
            auth: settings::auth(&options)?,
            ..options
        };
        settings::check(&options, SHARDS_MAX)?;
        let access = Arc::new(shared.access_after(&current, &options)?);
        let tls = settings::tls(&options)?;
        warn_of_passwords(&options);
        // Last of what may fail, since it leaves something behind.
        if let Some(path) = &options.pid_file
            && before.pid_file.as_ref() != Some(path)
        {
            let failed = |source| StartError::File {
                path: path.clone(),
                source,
            };
            ports_file::write_pid(path).map_err(failed)?;
        }
        let config = Arc::new(ShardConfig {
            limits: settings::limits(&options),
            auth: options.auth.clone(),
            traces: options.trace_protocol,
            ..ShardConfig::clone(&shared.common.config)
        });
        let told = server_info(&options, &shared.addresses, shared.info.server_id.clone());
        let info = ServerInfo {
            host: told.host,
            port: told.port,
            ip: told.ip,
            auth_required: options.auth.is_required(),
            max_payload: options.limits.payload_bytes_max,
            tls: tls::told(options.tls.as_ref(), options.allow_non_tls),
            websocket: told.websocket,
            leafs: leaf::listener_info_reloaded(&shared.info, &options.leafnodes),
            ..shared.info.clone()
        };
        let remotes = options.leafnodes.remotes.clone();
        let connections_max = options.limits.connections_max;
        *shared.options.lock() = Arc::new(options);
        *current = Arc::clone(&access);
        shared.set_tls(&tls);
        // Under the lock, so that all hear of several in the same order.
        shared.send_accounts_to_jetstream(&access);
        let new = Reload {
            config,
            info,
            access,
            tls,
        };
        shared.send_to_all(|| Command::Reload(Box::new(new.clone())));
        if connections_max != before.limits.connections_max {
            shared.close_excess(connections_max);
        }
        shared.remotes.send_replace(remotes);
        Ok(())
    }

    /// Has the server admit clients by other users, accounts and permissions from now on. Clients whose
    /// user is gone or has other credentials are sent away with `Authorization Violation`; the others
    /// stay, and what they are subscribed to and may not be any more is dropped. What WebSocket clients
    /// show in place of others stays as it is, unless `config` says something else.
    ///
    /// # Errors
    /// When something is wrong with them: then everything stays as it is.
    pub fn replace_access(&self, mut config: AccessConfig) -> Result<(), AccessError> {
        let mut current = self.shared.lock_access();
        if config.websocket == ListenerAccess::default() {
            config.websocket = current.websocket_access();
        }
        if config.mqtt == ListenerAccess::default() {
            config.mqtt = current.mqtt_access();
        }
        // The listeners' TLS decides them, not the caller.
        config.certificate_kinds = current.certificate_kinds().to_vec();
        let next = current.successor(config)?;
        self.shared.replace_access(&mut current, next);
        Ok(())
    }

    /// Reads the certificates, keys and authorities of all listeners and of all remotes again, for the
    /// connections that come or are dialled from now on. Those that are open stay as they are.
    ///
    /// # Errors
    /// When a file cannot be read or does not fit. Everything stays as it was then.
    pub fn reload_tls(&self) -> Result<(), StartError> {
        // As for a reload, one after the other.
        let _current = self.shared.lock_access();
        let options = self.shared.options();
        leaf::check(&options).map_err(StartError::Option)?;
        let tls = settings::tls(&options)?;
        self.shared.set_tls(&tls);
        self.shared
            .send_to_all(|| Command::ReplaceTls(Arc::clone(&tls)));
        let remotes = options.leafnodes.remotes.clone();
        self.shared.remotes.send_replace(remotes);
        Ok(())
    }
}

impl Shared {
    fn set_tls(&self, tls: &Arc<ListenersTls>) {
        *self.tls.lock() = Arc::clone(tls);
    }

    /// Who may connect by these options, and what they may do, where it was `current` before.
    fn access_after(&self, current: &Access, options: &Options) -> Result<Access, StartError> {
        let wrong = |error: &dyn std::fmt::Display| StartError::Option(error.to_string());
        let access = options.auth.directory().in_place_of(current);
        let access = access.map_err(|error| wrong(&error))?;
        if access.operators().is_none() {
            return Ok(access);
        }
        // What accounts import may be of those that were found since the start, and of others newer
        // tokens may have come since.
        let resolver = self.common.resolver.get();
        let is_kept = resolver.is_some_and(|resolver| resolver.directory().is_some());
        let newer = if is_kept {
            newer_tokens(current, &access)
        } else {
            Vec::new()
        };
        let settled = access.with_accounts(&newer, unix_seconds());
        settled.map_err(|error| wrong(&error))
    }
}

/// What is of consequence for MQTT clients that come later, and for what they subscribe to then.
fn mqtt_reloaded(before: Option<MqttOptions>, new: Option<MqttOptions>) -> Option<MqttOptions> {
    let (before, new) = match (before, new) {
        (Some(before), Some(new)) => (before, new),
        (before, _) => return before,
    };
    Some(MqttOptions {
        tls: new.tls,
        ack_wait: new.ack_wait,
        max_ack_pending: new.max_ack_pending,
        max_keep_alive: new.max_keep_alive,
        obscure_not_authorized: new.obscure_not_authorized,
        ..before
    })
}

/// What a server goes by after a reload: the new where that can be changed, the old elsewhere.
fn reloaded(before: &Options, new: Options) -> Options {
    Options {
        tls: new.tls,
        allow_non_tls: new.allow_non_tls,
        websocket: before.websocket.clone().map(|listener| WebSocketOptions {
            // Its rules say whether there is some.
            tls: (listener.tls).map(|tls| new.websocket.and_then(|new| new.tls).unwrap_or(tls)),
            ..listener
        }),
        mqtt: mqtt_reloaded(before.mqtt.clone(), new.mqtt),
        client_advertise: new.client_advertise,
        limits: Limits {
            // Connections know from the start whether there are headers.
            headers: before.limits.headers,
            ..new.limits
        },
        auth: new.auth,
        lame_duck_duration: new.lame_duck_duration,
        lame_duck_grace_period: new.lame_duck_grace_period,
        pid_file: new.pid_file,
        server_tags: new.server_tags,
        server_metadata: new.server_metadata,
        origin: new.origin,
        trace_protocol: new.trace_protocol,
        leafnodes: LeafnodeOptions {
            listener: leaf::listener_reloaded(&before.leafnodes, new.leafnodes.listener),
            remotes: new.leafnodes.remotes,
            connect_error_reports: new.leafnodes.connect_error_reports,
            reconnect_error_reports: new.leafnodes.reconnect_error_reports,
            ..before.leafnodes.clone()
        },
        ..before.clone()
    }
}
