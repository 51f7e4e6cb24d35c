//! Three servers, which are new processes, and their routes.

use std::net::SocketAddr;

use anyhow::Result;

use crate::comparison::site::Site;
use crate::generator::interest::settle;
use crate::servers::process::{Server, free_address};
use crate::servers::{Program, Streams, System};

/// Number of servers.
pub(crate) const SERVERS: usize = 3;

/// Servers that do not run yet, each with its program.
pub(crate) struct Plan {
    programs: Vec<Program>,
}

impl Plan {
    /// Writes the configurations of servers, without JetStream.
    pub(super) fn new(programs: [&Program; SERVERS], site: &Site) -> Result<Self> {
        Self::configured(programs, site, Streams::None, |_, _| String::new())
    }

    /// Writes the configurations of servers that run the same program, each with JetStream and a folder of its own.
    pub(crate) fn with_streams(program: &Program, site: &Site) -> Result<Self> {
        Self::configured([program; SERVERS], site, Streams::Configured, store)
    }

    fn configured(
        programs: [&Program; SERVERS],
        site: &Site,
        streams: Streams,
        more: impl Fn(System, &str) -> String,
    ) -> Result<Self> {
        let routes: Vec<SocketAddr> = (0..SERVERS)
            .map(|_| free_address())
            .collect::<Result<_>>()?;
        let known: Vec<String> = routes.iter().map(|at| format!("\"nats://{at}\"")).collect();
        let known = known.join(", ");
        let mut configured = Vec::new();
        for (number, (program, at)) in programs.into_iter().zip(&routes).enumerate() {
            let name = name(number);
            let folder = site.empty_for(&name)?;
            let cluster = format!("name: bench, listen: \"{at}\", routes: [{known}]");
            let more = more(program.system, &folder);
            let config = format!("server_name: {name}\ncluster {{ {cluster} }}\n{more}");
            configured.push(program.with_config(&folder, &config, streams)?);
        }
        Ok(Self {
            programs: configured,
        })
    }

    /// Starts some of the servers, and waits until messages pass between each two of them.
    pub(super) fn start(&self, count: usize) -> Result<Mesh> {
        let servers = self.programs.iter().take(count).map(Server::start);
        let mesh = Mesh {
            servers: servers.collect::<Result<_>>()?,
        };
        mesh.settle()?;
        Ok(mesh)
    }

    /// Starts all servers.
    pub(crate) fn start_all(&self) -> Result<Mesh> {
        self.start(SERVERS)
    }

    /// Starts the last server.
    pub(super) fn start_last(&self) -> Result<Server> {
        Server::start(&self.programs[SERVERS - 1])
    }
}

/// Servers that run.
pub(crate) struct Mesh {
    pub(crate) servers: Vec<Server>,
}

impl Mesh {
    /// Waits until each server knows the interest of each other one.
    fn settle(&self) -> Result<()> {
        for (at, from) in self.servers.iter().enumerate() {
            for (_, to) in self.servers.iter().enumerate().filter(|(to, _)| *to != at) {
                settle(from.address(), to.address())?;
            }
        }
        Ok(())
    }

    pub(crate) fn address(&self, number: usize) -> SocketAddr {
        self.servers[number].address()
    }
}

/// Returns the name of a server, as in its configuration.
pub(crate) fn name(number: usize) -> String {
    format!("server-{number}")
}

/// Returns the configuration of a server's JetStream.
pub(crate) fn store(system: System, folder: &str) -> String {
    let sync = match system {
        System::NatsSynced => ", sync_interval: always",
        System::Nats | System::Fanline | System::Mosquitto => "",
    };
    format!("jetstream {{ store_dir: \"{folder}\"{sync} }}\n")
}
