//! The measured servers, from their installation to the end of their processes.

pub(crate) mod binaries;
pub(crate) mod cpu;
pub(crate) mod process;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum System {
    /// The nats-server version of [`binaries::NATS_SERVER_VERSION`].
    Nats,
    /// The same, which syncs the disk before each acknowledgement.
    NatsSynced,
    Fanline,
    /// The MQTT broker of Debian's package.
    Mosquitto,
}

impl System {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Nats => "nats-server",
            Self::NatsSynced => "nats-server, synced",
            Self::Fanline => "Fanline",
            Self::Mosquitto => "mosquitto",
        }
    }
}

/// A server's binary, and the parameters with which it is started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) system: System,
    pub(crate) path: PathBuf,
    pub(crate) version: String,
    /// Number of Fanline's shards, or `None` for its default.
    pub(crate) shards: Option<usize>,
    /// Further options; empty for default settings.
    pub(crate) options: Vec<String>,
}

/// Whether a configuration file enables JetStream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    None,
    Configured,
}

impl Program {
    pub(crate) fn new(system: System, path: PathBuf, version: &str) -> Self {
        Self {
            system,
            path,
            version: version.to_owned(),
            shards: None,
            options: Vec::new(),
        }
    }

    /// Returns the same program with these options in place of its further options.
    pub(crate) fn with(&self, options: Vec<String>) -> Self {
        Self {
            options,
            ..self.clone()
        }
    }

    /// Returns the same program with a configuration file in `folder`, whose text is `config`.
    pub(crate) fn with_config(&self, folder: &str, config: &str, streams: Streams) -> Result<Self> {
        let file = format!("{folder}/server.conf");
        fs::write(&file, config).with_context(|| file.clone())?;
        let mut options = vec!["-c".to_owned(), file];
        if self.system == System::Fanline && streams == Streams::None {
            // nats-server has no JetStream by default, so disable it in Fanline too.
            options.push("--no-jetstream".to_owned());
        }
        Ok(self.with(options))
    }

    pub(crate) fn arguments(&self, port: &str) -> Vec<String> {
        let is_plain = self.shards.is_none() && self.options.is_empty();
        match self.system {
            // Mosquitto's configuration file contains the port.
            System::Mosquitto => return self.options.clone(),
            System::Fanline if !is_plain => {}
            System::Nats | System::NatsSynced | System::Fanline => {
                let address = ["-a", "127.0.0.1", "-p", port].map(str::to_owned);
                return address.into_iter().chain(self.options.clone()).collect();
            }
        }
        // Use the subcommand `serve`, because it has options that the command line in nats-server's form does
        // not have.
        let address = format!("127.0.0.1:{port}");
        let address = ["serve".to_owned(), "--listen".to_owned(), address];
        let shards = self.shards.map(|count| format!("--shards={count}"));
        // Without options, nats-server has no JetStream, so disable it in Fanline too.
        let is_default = self.options.is_empty();
        let without = is_default.then(|| "--no-jetstream".to_owned());
        let all = address.into_iter().chain(shards).chain(without);
        all.chain(self.options.clone()).collect()
    }

    /// Returns the command line for a report, with the program's name instead of its path.
    pub(crate) fn command_line(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        format!("{} {}", name.display(), self.arguments("PORT").join(" "))
    }
}
