//! A hub and a leaf node, which are new processes, and the connection between them.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use super::rows::{Direction, Load};
use crate::comparison::site::Site;
use crate::generator::interest::settle;
use crate::servers::process::{Server, free_address};
use crate::servers::{Program, Streams};

/// JetStream domain of the hub. The leaf node accesses the hub's streams through it.
pub(super) const HUB_DOMAIN: &str = "hub";

/// A hub without a leaf node, and the address on which it accepts leaf nodes.
pub(super) struct Alone {
    pub(super) hub: Server,
    pub(super) leafs_at: SocketAddr,
}

impl Alone {
    /// Starts the hub.
    pub(super) fn start(hub: &Program, load: &Load, site: &Site) -> Result<Self> {
        let leafs_at = free_address()?;
        let folder = site.empty_for("hub")?;
        let hub = start(hub, load, HUB_DOMAIN, &listen(leafs_at, load), &folder)?;
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
    pub(super) fn start(hub: &Program, leaf: &Program, load: &Load, site: &Site) -> Result<Self> {
        let leafs_at = free_address()?;
        let (hub_folder, leaf_folder) = (site.empty_for("hub")?, site.empty(leaf.system)?);
        let compression = load.compression;
        let remote = format!("url: \"nats-leaf://{leafs_at}\", compression: {compression}");
        let remotes = format!("remotes: [ {{ {remote} }} ]");
        let hub = start(hub, load, HUB_DOMAIN, &listen(leafs_at, load), &hub_folder)?;
        let leaf = start(leaf, load, "leaf", &remotes, &leaf_folder)?;
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
fn listen(leafs_at: SocketAddr, load: &Load) -> String {
    format!("listen: \"{leafs_at}\", compression: {}", load.compression)
}

/// Starts one of the two servers. Its name is also its JetStream domain.
fn start(program: &Program, load: &Load, name: &str, link: &str, folder: &str) -> Result<Server> {
    let mut config = format!("server_name: {name}\nleafnodes {{ {link} }}\n");
    if load.streams() == Streams::Configured {
        config += &format!("jetstream {{ store_dir: \"{folder}/store\", domain: {name} }}\n");
    }
    let program = program.with_config(Path::new(folder), &config, load.streams())?;
    Server::start(&program)
}
