//! Three servers, which are new processes, and their routes.

use std::net::SocketAddr;

use anyhow::Result;

use super::rows::Load;
use crate::comparison::site::Site;
use crate::generator::interest::settle;
use crate::servers::process::{Server, free_address};
use crate::servers::{Program, Streams};

/// Number of servers.
const SERVERS: usize = 3;

/// Servers that do not run yet, each with its program.
pub(super) struct Plan {
    programs: Vec<Program>,
}

impl Plan {
    /// Writes the configurations. The first server runs `program`, and so do the others unless the row is mixed.
    pub(super) fn new(
        program: &Program,
        others: &Program,
        load: &Load,
        site: &Site,
    ) -> Result<Self> {
        let routes: Vec<SocketAddr> = (0..SERVERS)
            .map(|_| free_address())
            .collect::<Result<_>>()?;
        let known: Vec<String> = routes.iter().map(|at| format!("\"nats://{at}\"")).collect();
        let known = known.join(", ");
        let mut programs = Vec::new();
        for (number, at) in routes.iter().enumerate() {
            let program = match number > 0 && load.is_mixed {
                true => others,
                false => program,
            };
            let name = format!("server-{number}");
            let folder = site.empty_for(&name)?;
            let cluster = format!("name: bench, listen: \"{at}\", routes: [{known}]");
            let config = format!("server_name: {name}\ncluster {{ {cluster} }}\n");
            programs.push(program.with_config(&folder, &config, Streams::None)?);
        }
        Ok(Self { programs })
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
    pub(super) fn start_all(&self) -> Result<Mesh> {
        self.start(SERVERS)
    }

    /// Starts the last server.
    pub(super) fn start_last(&self) -> Result<Server> {
        Server::start(&self.programs[SERVERS - 1])
    }
}

/// Servers that run.
pub(super) struct Mesh {
    pub(super) servers: Vec<Server>,
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

    pub(super) fn address(&self, number: usize) -> SocketAddr {
        self.servers[number].address()
    }
}
