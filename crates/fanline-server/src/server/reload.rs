//! Reload: other options, users, and certificates for a running server.

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
use crate::{cluster, leaf, ports_file};

impl Handle {
    /// Applies other options: limits, credentials, TLS, lame duck times, the PID file, and protocol traces.
    /// Connections stay open unless their credentials are no longer valid. New TLS settings apply to new
    /// connections. The WebSocket listener's TLS can be changed, but not turned on or off. Options that need
    /// a restart, such as addresses, keep their values. [`Loaded::changes`](crate::config::Loaded::changes)
    /// reports whether a file changes such an option.
    ///
    /// # Errors
    ///
    /// Fails if an option is invalid or a file cannot be written. Nothing has changed then.
    pub fn reload(&self, options: Options) -> Result<(), StartError> {
        let shared = &self.shared;
        // The lock is taken first, so that of two concurrent reloads the second starts from the result of the
        // first.
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
        // This is the last step that may fail. If it came earlier, a failed reload could leave a file behind.
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
            routes: (shared.common.config.routes.as_ref())
                .map(|before| Arc::new(cluster::settings_reloaded(before, &options))),
            leafs: leaf::listener_info_reloaded(&shared.common.config, &options.leafnodes),
            ..ShardConfig::clone(&shared.common.config)
        });
        let info_fields = server_info(&options, &shared.addresses, shared.info.server_id.clone());
        let info = ServerInfo {
            host: info_fields.host,
            port: info_fields.port,
            ip: info_fields.ip,
            auth_required: options.auth.is_required(),
            max_payload: options.limits.payload_bytes_max,
            tls: tls::info_of(options.tls.as_ref(), options.allow_non_tls),
            websocket: info_fields.websocket,
            ..shared.info.clone()
        };
        let remotes = options.leafnodes.remotes.clone();
        let cluster = options.cluster.clone();
        let connections_max = options.limits.connections_max;
        *shared.options.lock() = Arc::new(options);
        *current = Arc::clone(&access);
        shared.set_tls(&tls);
        // The lock on the access rules (`current`) is still held. So all threads receive the changes of
        // concurrent reloads in the same order.
        shared.send_accounts_to_jetstream(&access);
        let new = Reload {
            config,
            info,
            access,
            tls,
        };
        shared.send_to_all(|| Command::Reload(Box::new(new.clone())));
        shared.access_changed.notify_one();
        if connections_max != before.limits.connections_max {
            shared.close_excess(connections_max);
        }
        shared.remotes.send_replace(remotes);
        shared.cluster.send_replace(cluster);
        Ok(())
    }

    /// Replaces users, accounts, and permissions. Clients whose user was removed or has other credentials are
    /// disconnected with `Authorization Violation`. Other clients stay connected and lose subscriptions that
    /// are no longer permitted. The credentials of WebSocket and MQTT clients do not change, unless `config`
    /// has its own for them.
    ///
    /// # Errors
    ///
    /// Fails if the configuration is invalid. Nothing has changed then.
    pub fn replace_access(&self, mut config: AccessConfig) -> Result<(), AccessError> {
        let mut current = self.shared.lock_access();
        if config.websocket == ListenerAccess::default() {
            config.websocket = current.websocket_access();
        }
        if config.mqtt == ListenerAccess::default() {
            config.mqtt = current.mqtt_access();
        }
        // The listeners' TLS options determine the certificate kinds, not the caller.
        config.certificate_kinds = current.certificate_kinds().to_vec();
        let next = current.successor(config)?;
        self.shared.replace_access(&mut current, next);
        Ok(())
    }

    /// Reads the certificates, keys, and authorities of all listeners and remotes again, for new connections.
    /// Open connections are not affected.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or is invalid. Nothing has changed then.
    pub fn reload_tls(&self) -> Result<(), StartError> {
        // Reloads run one after the other.
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

    /// Returns the access rules of these options, based on the current access rules.
    fn access_after(&self, current: &Access, options: &Options) -> Result<Access, StartError> {
        let wrong = |error: &dyn std::fmt::Display| StartError::Option(error.to_string());
        let access = options.auth.directory().in_place_of(current);
        let access = access.map_err(|error| wrong(&error))?;
        if access.operators().is_none() {
            return Ok(access);
        }
        // Imports may refer to accounts that the resolver has found after the start. Some accounts may also
        // have newer tokens now.
        let resolver = self.common.resolver.get();
        let has_directory = resolver.is_some_and(|resolver| resolver.directory().is_some());
        let newer = if has_directory {
            newer_tokens(current, &access)
        } else {
            Vec::new()
        };
        let settled = access.with_accounts(&newer, unix_seconds());
        settled.map_err(|error| wrong(&error))
    }
}

/// Applies MQTT options that take effect for new clients and new subscriptions.
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

/// Returns the options after a reload. Options that a reload may change have their new values, others their
/// old values.
fn reloaded(before: &Options, new: Options) -> Options {
    Options {
        tls: new.tls,
        allow_non_tls: new.allow_non_tls,
        websocket: before.websocket.clone().map(|listener| WebSocketOptions {
            // The listener's TLS can be changed, but not turned on or off.
            tls: (listener.tls).map(|tls| new.websocket.and_then(|new| new.tls).unwrap_or(tls)),
            ..listener
        }),
        mqtt: mqtt_reloaded(before.mqtt.clone(), new.mqtt),
        client_advertise: new.client_advertise,
        limits: Limits {
            // Connections learn only in their first INFO whether headers are supported, so a reload cannot
            // change it.
            headers: before.limits.headers,
            ..new.limits
        },
        auth: new.auth,
        lame_duck_duration: new.lame_duck_duration,
        lame_duck_grace_period: new.lame_duck_grace_period,
        pid_file: new.pid_file,
        server_tags: new.server_tags,
        server_metadata: new.server_metadata,
        cluster: cluster::reloaded(before.cluster.clone(), new.cluster),
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
