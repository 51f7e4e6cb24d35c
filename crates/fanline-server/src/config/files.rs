//! The files that a configuration names, read as a server would read them.

use super::{ConfigError, Fault, Loaded};
use crate::TlsOptions;
use crate::{leaf, tls};

impl Loaded {
    /// Reads what TLS of all listeners is made of, and forgets it: certificates, keys, authorities, and the names
    /// of suites and curves. Of leaf nodes also whether their accounts are there, what proves who they are can be
    /// read, and no remote stands there twice. A server that starts, or reloads, would find the same wrong.
    ///
    /// # Errors
    /// When a file cannot be read, or there is something else in it than there should be.
    pub fn check_files(&self) -> Result<(), ConfigError> {
        let options = &self.options;
        let websocket = options.websocket.as_ref();
        let mqtt = options.mqtt.as_ref();
        let leafs = options.leafnodes.listener.as_ref();
        let all: [(&str, Option<&TlsOptions>); 5] = [
            ("resolver_tls", self.operator.resolver_tls.as_ref()),
            ("tls", options.tls.as_ref()),
            ("websocket tls", websocket.and_then(|own| own.tls.as_ref())),
            ("mqtt tls", mqtt.and_then(|own| own.tls.as_ref())),
            ("leafnodes tls", leafs.and_then(|own| own.tls.as_ref())),
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
        if let Err(reason) = leaf::check(options) {
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
