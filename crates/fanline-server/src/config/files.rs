//! Checks of files that a configuration names.

use super::{ConfigError, Fault, Loaded};
use crate::TlsOptions;
use crate::{cluster, gateway, leaf, tls};

impl Loaded {
    /// Reads the TLS files of all listeners: certificates, keys, and authorities, and checks the names of
    /// suites and curves. For leaf nodes, it also checks accounts, credentials, and duplicate remotes. A start
    /// or reload would report the same errors.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or is invalid.
    pub fn check_files(&self) -> Result<(), ConfigError> {
        let options = &self.options;
        let websocket = options.websocket.as_ref();
        let mqtt = options.mqtt.as_ref();
        let leafs = options.leafnodes.listener.as_ref();
        let routes = options.cluster.as_ref();
        let gateway = options.gateway.as_ref();
        let all: [(&str, Option<&TlsOptions>); 7] = [
            ("resolver_tls", self.operator.resolver_tls.as_ref()),
            ("tls", options.tls.as_ref()),
            ("websocket tls", websocket.and_then(|own| own.tls.as_ref())),
            ("mqtt tls", mqtt.and_then(|own| own.tls.as_ref())),
            ("leafnodes tls", leafs.and_then(|own| own.tls.as_ref())),
            ("cluster tls", routes.and_then(|own| own.tls.as_ref())),
            ("gateway tls", gateway.and_then(|own| own.tls.as_ref())),
        ];
        let mut faults = Vec::new();
        for (block, tls) in all {
            if let Some(Err(error)) = tls.map(tls::check) {
                faults.push(Fault {
                    place: None,
                    reason: format!("{block}: {error}"),
                });
            }
        }
        let checked = leaf::check(options)
            .and_then(|()| cluster::check(options))
            .and_then(|()| gateway::check(options));
        if let Err(reason) = checked {
            faults.push(Fault {
                place: None,
                reason,
            });
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(ConfigError::Values(faults)),
        }
    }
}
