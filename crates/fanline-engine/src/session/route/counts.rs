//! Numbers of subscriptions that were announced to peers, which monitoring compares with those that peers have counted.

use hashbrown::HashMap;

use super::super::Exchange;
use super::connections::{AnnouncedIn, Load};
use crate::exchange::route_settings::Lane;
use crate::exchange::session::SessionId;

/// Numbers of lines that announce the interest of some accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    /// For peers that distinguish the clusters of leaf nodes.
    by_cluster: usize,
    /// For other peers.
    merged: usize,
    /// Those of both numbers that a server with JetStream ignores.
    delegates: usize,
}

impl Lines {
    fn add(&mut self, announced: &AnnouncedIn) {
        let own = announced.weights.len();
        let below = announced.below.values().map(Vec::len).sum::<usize>();
        let is_only_below = |key| announced.weights.weight(key) == 0;
        let only_below = announced.below.keys().filter(|key| is_only_below(key));
        self.by_cluster += own + below;
        self.merged += own + only_below.count();
        self.delegates += announced.weights.delegates();
    }
}

impl Exchange {
    /// Returns the number of subscriptions that each registered route of this shard has announced to its peer, without
    /// those that a peer ignores because it has JetStream itself.
    pub(crate) fn announced_to_routes(&self) -> HashMap<SessionId, usize> {
        let mut counts = HashMap::new();
        for lane in self.shared.routes.used_lanes() {
            let lines = self.announced_in(lane);
            for route in &self.shared.routes.lane(lane).ready {
                let Some(session) = self.sessions.get(route.id.index()) else {
                    continue;
                };
                let Some(state) = session.kind.route() else {
                    continue;
                };
                let lines = lines.get(&route.load).copied().unwrap_or_default();
                let sent = match state.takes_clusters() {
                    true => lines.by_cluster,
                    false => lines.merged,
                };
                let ignored = match state.info.jetstream {
                    true => lines.delegates,
                    false => 0,
                };
                counts.insert(route.id, sent - ignored);
            }
        }
        counts
    }

    /// Returns the lines that were announced to routes of a lane, by what the routes carry.
    fn announced_in(&self, lane: Lane) -> HashMap<Load, Lines> {
        let mut lines: HashMap<Load, Lines> = HashMap::new();
        for (account, announced) in &self.shared.routes.lane(lane).announced {
            let mut add = |load| lines.entry(load).or_default().add(announced);
            add(Load::All);
            add(Load::Account(*account));
            if let Some(slot) = self.slot_of(&announced.name) {
                add(Load::Slot(slot));
            }
        }
        lines
    }
}
