//! A hub and a leaf node, which are new processes, and the connection between them.

use std::net::SocketAddr;

use anyhow::Result;

use super::rows::{Direction, Load};
use crate::comparison::site::Site;
use crate::generator::interest::settle;
use crate::servers::process::{Server, free_address};
use crate::servers::{Program, Streams};

/// JetStream domain of the hub. The leaf node accesses the hub's streams through it.
pub(super) const HUB_DOMAIN: &str = "hub";

/// Starts a hub, and returns the address on which it accepts leaf nodes.
pub(super) fn start_hub(hub: &Program, load: &Load, site: &Site) -> Result<(Server, SocketAddr)> {
    let leafs_at = free_address()?;
    let listen = format!("listen: \"{leafs_at}\", compression: {}", load.compression);
    let hub = start(hub, load, HUB_DOMAIN, &listen, &site.empty_for("hub")?)?;
    Ok((hub, leafs_at))
}

pub(super) struct Link {
    pub(super) hub: Server,
    pub(super) leaf: Server,
    /// Address of the server that sends in the load's direction.
    pub(super) source: SocketAddr,
    /// Address of the server that receives in the load's direction.
    pub(super) sink: SocketAddr,
}

impl Link {
    /// Starts both servers, and waits until messages pass in both directions.
    pub(super) fn start(hub: &Program, leaf: &Program, load: &Load, site: &Site) -> Result<Self> {
        let (hub, leafs_at) = start_hub(hub, load, site)?;
        let compression = load.compression;
        let remote = format!("url: \"nats-leaf://{leafs_at}\", compression: {compression}");
        let remotes = format!("remotes: [ {{ {remote} }} ]");
        let leaf = start(leaf, load, "leaf", &remotes, &site.empty(leaf.system)?)?;
        let (source, sink) = match load.direction {
            Direction::Up => (leaf.address(), hub.address()),
            Direction::Down => (hub.address(), leaf.address()),
        };
        settle(source, sink)?;
        settle(sink, source)?;
        Ok(Self {
            hub,
            leaf,
            source,
            sink,
        })
    }
}

/// Starts one of the two servers. Its name is also its JetStream domain.
fn start(program: &Program, load: &Load, name: &str, link: &str, folder: &str) -> Result<Server> {
    let mut config = format!("server_name: {name}\nleafnodes {{ {link} }}\n");
    if load.streams() == Streams::Configured {
        config += &format!("jetstream {{ store_dir: \"{folder}/store\", domain: {name} }}\n");
    }
    let program = program.with_config(folder, &config, load.streams())?;
    Server::start(&program)
}
