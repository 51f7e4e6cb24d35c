//! The registered routes of a shard by lane, and events about them for the runtime.

use hashbrown::HashMap;

use super::imports::{Imports, Place};
use crate::auth::AccountId;
use crate::codec::nats::info::ClientUrls;
use crate::codec::route::{Carries, GossipMode};
use crate::exchange::links::ClusterWeights;
use crate::exchange::route_settings::Lane;
use crate::exchange::session::SessionId;
use crate::session::announced::{Announced, Key};

/// Largest number of servers that the server has learned of by gossip and the runtime has not taken. Further
/// ones are ignored.
const EVENTS_MAX: usize = 4096;

/// State that routes share on one shard.
#[derive(Default)]
pub(crate) struct RouteConnections {
    lanes: [LaneRoutes; Lane::ALL.len()],
    /// Number of registered routes in all lanes.
    pub(super) count: usize,
    /// Weights of filters at leaf nodes that another shard serves.
    pub(super) below: HashMap<Place, ClusterWeights>,
    /// Reused buffer for lines of interest.
    pub(super) lines: Vec<u8>,
    /// Reused buffer for the sid of a peer's subscription.
    pub(super) sid: Vec<u8>,
    events: Vec<RouteEvent>,
}

/// The registered routes of one lane, and the interest that was announced to them.
#[derive(Default)]
pub(super) struct LaneRoutes {
    /// The routes in the order of registration.
    pub(super) ready: Vec<Registered>,
    /// The interest that was announced in each account that one of the routes carries.
    pub(super) announced: HashMap<AccountId, AnnouncedIn>,
    pub(super) imports: Imports,
}

/// A registered route.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) id: SessionId,
    /// The peer's id.
    pub(super) peer: String,
    /// The hash of that id, which is part of marks of reply subjects between clusters.
    pub(super) hash: [u8; 6],
    pub(super) load: Load,
}

/// The accounts that a registered route carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Load {
    All,
    Slot(u32),
    Account(AccountId),
}

impl Load {
    /// Returns whether the route carries an account with this slot. The slot of an account with a dedicated
    /// route is `None`.
    pub(super) fn has(self, account: AccountId, slot: Option<u32>) -> bool {
        match self {
            Load::All => true,
            Load::Slot(own) => slot == Some(own),
            Load::Account(own) => own == account,
        }
    }
}

/// The interest in one account that was announced to all routes that carry it.
pub(in crate::session) struct AnnouncedIn {
    /// Name of the account. A removed account has no other name, and its interest must be withdrawn.
    pub(in crate::session) name: Box<[u8]>,
    pub(in crate::session) weights: Announced,
    /// Weights at leaf nodes for which this server is the hub.
    pub(in crate::session) below: HashMap<Key, ClusterWeights>,
}

impl AnnouncedIn {
    pub(in crate::session) fn new(name: Box<[u8]>) -> Self {
        AnnouncedIn {
            name,
            weights: Announced::default(),
            below: HashMap::new(),
        }
    }
}

/// An event that concerns the whole server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteEvent {
    /// A route was registered.
    Joined {
        /// The peer's id.
        id: String,
        /// The peer's name.
        name: String,
        /// What the route carries.
        carries: Carries,
        /// The peer's addresses for clients.
        client_urls: ClientUrls,
    },
    /// A registered route has ended.
    Left {
        /// The peer's id.
        id: String,
        /// What the route carried.
        carries: Carries,
    },
    /// The server has taken over the name of a peer's cluster, instead of its own, which was generated. The
    /// runtime passes it to [`Shard::adopt_cluster_name`](crate::Shard::adopt_cluster_name) of all shards.
    ClusterNamed {
        /// The new name.
        name: String,
        /// Whether the new name was generated.
        is_generated: bool,
    },
    /// A peer is in lame duck mode, and accepts no more clients.
    LeavesSoon {
        /// The peer's id.
        id: String,
    },
    /// The peer of a dialed route has accepted this server's credentials, and also has a pool. The runtime now
    /// dials the other slots, and the dedicated routes.
    Proven {
        /// [`RouteDial::id`](super::RouteDial::id) of the route.
        dial: u64,
        /// Number of slots.
        pool_size: u32,
        /// The accounts with a dedicated route.
        accounts: Vec<String>,
    },
    /// A peer has announced another server, or a dedicated route of one. The runtime dials it, unless it has this
    /// route, or the server is among the configured routes.
    Discovered {
        /// The other server's id.
        id: String,
        /// Its address, as `nats-route://host:port/`.
        url: String,
        /// The mode of the gossip.
        gossip_mode: GossipMode,
        /// What the route carries.
        carries: Carries,
    },
}

impl RouteConnections {
    pub(super) fn lane(&self, lane: Lane) -> &LaneRoutes {
        &self.lanes[lane.index()]
    }

    pub(super) fn lane_mut(&mut self, lane: Lane) -> &mut LaneRoutes {
        &mut self.lanes[lane.index()]
    }

    /// Returns the lanes with a registered route.
    pub(super) fn used_lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        let is_used = Lane::ALL.map(|lane| !self.lane(lane).ready.is_empty());
        Lane::ALL
            .into_iter()
            .filter(move |lane| is_used[lane.index()])
    }

    /// Returns a route of a lane that leads to the server with this hash of its id, preferably one that carries the
    /// account.
    pub(crate) fn link_to(&self, lane: Lane, hash: &[u8], account: AccountId) -> Option<SessionId> {
        let ready = &self.lane(lane).ready;
        let to_server = || ready.iter().filter(|route| route.hash == hash);
        // A route of a slot carries any account without a dedicated one.
        let is_shared = |route: &&Registered| !matches!(route.load, Load::Account(_));
        let own = to_server().find(|route| route.load == Load::Account(account));
        own.or_else(|| to_server().find(is_shared))
            .map(|route| route.id)
    }

    pub(super) fn push_event(&mut self, event: RouteEvent) {
        let is_discovery = matches!(event, RouteEvent::Discovered { .. });
        if !is_discovery || self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }

    /// Returns whether there are events.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the events.
    pub(crate) fn take_events(&mut self) -> Vec<RouteEvent> {
        std::mem::take(&mut self.events)
    }
}
