//! A hub and a leaf node, which are new processes, and the connection between them.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use super::rows::{Direction, Row};
use crate::comparison::site::Site;
use crate::generator::interest::settle;
use crate::servers::process::{Server, free_address};
use crate::servers::{Program, System};

/// JetStream domain of the hub. The leaf node accesses the hub's streams through it.
pub(super) const HUB_DOMAIN: &str = "hub";

/// A hub without a leaf node, and the address on which it accepts leaf nodes.
pub(super) struct Alone {
    pub(super) hub: Server,
    pub(super) leafs_at: SocketAddr,
}

impl Alone {
    /// Starts the hub.
    pub(super) fn start(hub: &Program, row: &Row, site: &Site) -> Result<Self> {
        let leafs_at = free_address()?;
        let folder = site.empty_for("hub")?;
        let hub = start(hub, row, HUB_DOMAIN, &listen(leafs_at, row), &folder)?;
        Ok(Self { hub, leafs_at })
    }
}

/// A hub and a leaf node that are connected.
pub(super) struct Link {
    pub(super) hub: Server,
    pub(super) leaf: Server,
}

impl Link {
    /// Starts both servers, and waits until messages pass in both directions.
    pub(super) fn start(hub: &Program, leaf: &Program, row: &Row, site: &Site) -> Result<Self> {
        let leafs_at = free_address()?;
        let (hub_folder, leaf_folder) = (site.empty_for("hub")?, site.empty(leaf.system)?);
        let compression = row.compression;
        let remote = format!("url: \"nats-leaf://{leafs_at}\", compression: {compression}");
        let remotes = format!("remotes: [ {{ {remote} }} ]");
        let hub = start(hub, row, HUB_DOMAIN, &listen(leafs_at, row), &hub_folder)?;
        let leaf = start(leaf, row, "leaf", &remotes, &leaf_folder)?;
        settle(hub.address(), leaf.address())?;
        settle(leaf.address(), hub.address())?;
        Ok(Self { hub, leaf })
    }

    /// Returns the address of the server that sends in a direction.
    pub(super) fn source(&self, direction: Direction) -> SocketAddr {
        match direction {
            Direction::Up => self.leaf.address(),
            Direction::Down => self.hub.address(),
        }
    }

    /// Returns the address of the server that receives in a direction.
    pub(super) fn sink(&self, direction: Direction) -> SocketAddr {
        match direction {
            Direction::Up => self.hub.address(),
            Direction::Down => self.leaf.address(),
        }
    }
}

/// Returns the hub's configuration of leaf nodes.
fn listen(leafs_at: SocketAddr, row: &Row) -> String {
    format!("listen: \"{leafs_at}\", compression: {}", row.compression)
}

/// Starts one of the two servers. Its name is also its JetStream domain.
fn start(program: &Program, row: &Row, name: &str, link: &str, folder: &str) -> Result<Server> {
    let mut config = format!("server_name: {name}\nleafnodes {{ {link} }}\n");
    if row.has_streams() {
        config += &format!("jetstream {{ store_dir: \"{folder}/store\", domain: {name} }}\n");
    }
    let file = Path::new(folder).join("server.conf");
    std::fs::write(&file, config)?;
    let file = file.display().to_string();
    let is_fanline = program.system == System::Fanline;
    let flag = if is_fanline { "--config" } else { "-c" };
    let mut options = vec![flag.to_owned(), file];
    if is_fanline && !row.has_streams() {
        // nats-server has no JetStream by default, so disable it in Fanline too.
        options.push("--no-jetstream".to_owned());
    }
    Server::start(&program.with(options))
}
