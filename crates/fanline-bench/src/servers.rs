//! The servers under test: how each is got, started, measured and ended.

pub(crate) mod binaries;
pub(crate) mod cpu;
pub(crate) mod descriptors;
pub(crate) mod process;

use std::path::PathBuf;

use serde::Serialize;

/// A system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum System {
    /// The pinned nats-server.
    Nats,
    /// Ours.
    Fanline,
    /// The broker of Debian's package, for MQTT.
    Mosquitto,
}

impl System {
    /// Those that every comparison has, in the order of the columns.
    pub(crate) const USUAL: [Self; 2] = [Self::Nats, Self::Fanline];

    /// As columns and messages call it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Nats => "nats-server",
            Self::Fanline => "Fanline",
            Self::Mosquitto => "mosquitto",
        }
    }
}

/// A binary that was found, and how to start it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) system: System,
    pub(crate) path: PathBuf,
    /// What it says of itself.
    pub(crate) version: String,
    /// Fanline's shards; its own default when unset.
    pub(crate) shards: Option<usize>,
    /// Further options; none for default settings.
    pub(crate) options: Vec<String>,
}

impl Program {
    /// The same with further options, of its own command line.
    pub(crate) fn with(&self, options: Vec<String>) -> Self {
        Self {
            options,
            ..self.clone()
        }
    }

    /// The arguments for a server on a loopback `port`.
    pub(crate) fn arguments(&self, port: &str) -> Vec<String> {
        let is_plain = self.shards.is_none() && self.options.is_empty();
        match self.system {
            // Its file says where.
            System::Mosquitto => return self.options.clone(),
            System::Fanline if !is_plain => {}
            System::Nats | System::Fanline => {
                let address = ["-a", "127.0.0.1", "-p", port].map(str::to_owned);
                return address.into_iter().chain(self.options.clone()).collect();
            }
        }
        // Its own command takes options that nats-server's command line does not have.
        let address = format!("127.0.0.1:{port}");
        let address = ["serve".to_owned(), "--listen".to_owned(), address];
        let shards = self.shards.map(|count| format!("--shards={count}"));
        // As the other one is by default.
        let is_default = self.options.is_empty();
        let without = is_default.then(|| "--no-jetstream".to_owned());
        let all = address.into_iter().chain(shards).chain(without);
        all.chain(self.options.clone()).collect()
    }

    /// The command line for a report: the program's name without the folder it happens to be in.
    pub(crate) fn command_line(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        format!("{} {}", name.display(), self.arguments("PORT").join(" "))
    }
}
