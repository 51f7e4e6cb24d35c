//! The accounts, settings, and addresses of the servers of a cluster, as a seed chooses them.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::{Access, AccessConfig, AccountId, User};
use fanline_engine::route::RouteSettings;
use fanline_engine::store::simulated_disk::Dice;

use crate::accounts::PASSWORD;

/// The accounts with clients. Each has one user, whose name is the account's name. The system account has dedicated
/// routes, as on each server, and so has the third account in some clusters.
pub(super) const ACCOUNTS: [&str; 4] = ["A", "B", "P", SYSTEM];

const SYSTEM: &str = "$SYS";

/// The most servers of a cluster.
pub(super) const NODES_MAX: usize = 4;

/// Failures after which a server gives up an address that it has learned by gossip. The default of servers is none.
const RETRIES: [u64; 2] = [0, 1000];

/// What a seed chooses for a cluster.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The settings of each server.
    pub(super) nodes: Vec<NodeSetup>,
}

/// The servers whose addresses are in the configuration of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All others.
    All,
    /// The first one.
    First,
    /// The one with the previous number.
    Previous,
}

/// What a seed chooses for one server.
#[derive(Clone, Debug)]
pub(super) struct NodeSetup {
    pub(super) shards: usize,
    /// Number of shards that serve routes.
    pub(super) route_shards: u16,
    pub(super) pool_size: u32,
    /// Accounts with dedicated routes.
    pub(super) dedicated: Vec<String>,
    /// The servers whose addresses are configured.
    pub(super) configured: Vec<usize>,
    /// Failures after which an address that was learned by gossip is abandoned.
    pub(super) retries: u64,
}

impl Setup {
    pub(super) fn new(dice: &mut Dice) -> Self {
        let count = 2 + dice.below(NODES_MAX - 1);
        let pool_size = [0, 1, 3][dice.below(3)];
        let has_mixed_pools = dice.one_in(4);
        let mut dedicated = vec![SYSTEM.to_owned()];
        if dice.one_in(2) {
            dedicated.push("P".into());
        }
        let retries = RETRIES[dice.below(RETRIES.len())];
        let way = [Way::All, Way::First, Way::Previous][dice.below(3)];
        let nodes = (0..count).map(|node| {
            let shards = 1 + dice.below(3);
            let route_shards = 1 + dice.below(shards);
            NodeSetup {
                shards,
                route_shards: u16::try_from(route_shards).unwrap_or(1),
                pool_size: match has_mixed_pools {
                    true => [0, 1, 2, 3][dice.below(4)],
                    false => pool_size,
                },
                dedicated: dedicated.clone(),
                configured: configured(way, node, count),
                retries,
            }
        });
        Setup {
            nodes: nodes.collect(),
        }
    }

    /// Returns the number of routes between two servers.
    pub(super) fn routes_between(&self, one: usize, other: usize) -> usize {
        let [one, other] = [&self.nodes[one], &self.nodes[other]];
        match one.pool_size.min(other.pool_size) {
            0 => 1,
            _ => one.pool_size.max(other.pool_size) as usize + one.dedicated.len(),
        }
    }

    /// Returns the settings of a server's routes.
    pub(super) fn routes_of(&self, node: usize) -> RouteSettings {
        let setup = &self.nodes[node];
        RouteSettings {
            host: ip_of(node),
            port: 6222,
            auth_timeout: Duration::from_secs(2),
            pool_size: setup.pool_size,
            accounts: setup.dedicated.clone(),
            shards: setup.route_shards,
            ..RouteSettings::default()
        }
    }
}

fn configured(way: Way, node: usize, count: usize) -> Vec<usize> {
    match way {
        Way::All => (0..count).filter(|other| *other != node).collect(),
        Way::First => (0..node.min(1)).collect(),
        Way::Previous => (node.saturating_sub(1)..node).collect(),
    }
}

/// Returns the address of a server.
pub(super) fn ip_of(node: usize) -> String {
    format!("10.0.0.{}", node + 1)
}

/// Returns the server with a URL such as `nats-route://10.0.0.2:6222/`.
pub(super) fn node_of(url: &str) -> usize {
    let all = 0..NODES_MAX;
    let mut found = all.filter(|node| url.contains(&format!("//{}:", ip_of(*node))));
    found.next().expect("servers announce addresses of servers")
}

/// Returns the directory of all servers.
pub(super) fn directory() -> Arc<Access> {
    let mut config = AccessConfig::default();
    for name in ACCOUNTS {
        let account = config.account_mut(name);
        account.users.push(User::new(name, PASSWORD));
    }
    let access = Access::new(config);
    access.expect("the configuration is valid").into()
}

/// Returns the id of an account.
pub(super) fn account_id(access: &Access, name: &str) -> AccountId {
    let at = access.accounts().iter().position(|it| it.name == name);
    let at = at.and_then(|at| u32::try_from(at).ok());
    AccountId(at.expect("the directory has the account"))
}
