//! Remotes, the destinations outside of a shard: other shards, and links to other servers.
//!
//! One shard serves all links of a set. To every other shard, these links are a single remote with their
//! combined interest. The serving shard receives each message for them once. That shard's own routers for
//! links (`links`) then select the links that receive the message. A new protocol needs a new [`LinkSet`].

use crate::codec::{leaf, route};
use crate::exchange::route_settings::Lane;
use crate::trace::{GATEWAY, LEAF, ROUTER};

/// A destination outside of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remote {
    Shard(u16),
    Links(LinkSet),
}

/// All links to other servers that use one protocol. Routes are divided into lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkSet {
    Leafs,
    Routes(Lane),
    /// The dialed connections to other clusters.
    Gateways,
    /// The same connections, for responses to requests that came from other clusters. A connection wants such a
    /// response although its cluster has not announced interest in the reply subject.
    Replies,
}

/// The shard that serves all gateways.
pub(crate) const GATEWAY_SHARD: u16 = 0;

/// The first line of a message in a link's protocol.
pub(super) struct LinkHead<'a> {
    /// Cluster of the leaf node that the message comes from, for links that understand it; otherwise empty.
    pub(super) cluster: &'a [u8],
    /// Name of the account, for links that carry several accounts; otherwise empty.
    pub(super) account: &'a [u8],
    pub(super) subject: &'a [u8],
    pub(super) reply: &'a [u8],
    /// Names of groups, each followed by a space. One member of each group behind the link receives the
    /// message.
    pub(super) groups: &'a [u8],
    pub(super) header_bytes: usize,
    pub(super) total_bytes: usize,
}

impl LinkSet {
    pub(crate) const ALL: [LinkSet; 3 + Lane::ALL.len()] = [
        LinkSet::Leafs,
        LinkSet::Routes(Lane::ALL[0]),
        LinkSet::Routes(Lane::ALL[1]),
        LinkSet::Routes(Lane::ALL[2]),
        LinkSet::Routes(Lane::ALL[3]),
        LinkSet::Gateways,
        LinkSet::Replies,
    ];

    /// Returns the shard that serves the links. `lane_shards` is the number of shards that serve lanes.
    pub(crate) fn shard(self, lane_shards: u16) -> u16 {
        match self {
            LinkSet::Leafs => leaf::LEAF_SHARD,
            LinkSet::Routes(lane) => lane.shard(lane_shards),
            LinkSet::Gateways | LinkSet::Replies => GATEWAY_SHARD,
        }
    }

    /// Returns whether the other sides learn of interest of a remote. Within a cluster, each server announces its own
    /// interest and that of its leaf nodes, not that of other servers and clusters.
    pub(super) const fn announces(self, from: Remote) -> bool {
        let is_beyond = match from {
            Remote::Shard(_) | Remote::Links(LinkSet::Leafs) => false,
            Remote::Links(LinkSet::Routes(_) | LinkSet::Gateways | LinkSet::Replies) => true,
        };
        !(is_beyond && matches!(self, LinkSet::Routes(_)))
    }

    /// Returns the number of the connection kind in traces.
    pub(super) fn trace_kind(self) -> u8 {
        match self {
            LinkSet::Leafs => LEAF,
            LinkSet::Routes(_) => ROUTER,
            LinkSet::Gateways | LinkSet::Replies => GATEWAY,
        }
    }

    /// Appends the start of a message's first line, up to the arguments that the protocol shares with
    /// clients.
    pub(super) fn write_start(self, line: &mut Vec<u8>, head: &LinkHead<'_>) {
        match self {
            LinkSet::Leafs => leaf::write_start(line, head.subject, head.header_bytes),
            LinkSet::Routes(_) | LinkSet::Gateways | LinkSet::Replies => {
                route::write_start(line, head.account, head.subject, head.header_bytes);
            }
        }
    }

    /// Appends a message's first line.
    pub(super) fn write_head(self, line: &mut Vec<u8>, head: &LinkHead<'_>) {
        let (header_bytes, total) = (head.header_bytes, head.total_bytes);
        match self {
            LinkSet::Leafs => {
                leaf::write_head(
                    line,
                    head.subject,
                    head.reply,
                    head.groups,
                    header_bytes,
                    total,
                );
            }
            LinkSet::Routes(_) if !head.cluster.is_empty() => {
                route::write_leaf_head(
                    line,
                    head.cluster,
                    head.account,
                    (head.subject, head.reply),
                    head.groups,
                    header_bytes,
                    total,
                );
            }
            LinkSet::Routes(_) | LinkSet::Gateways | LinkSet::Replies => {
                route::write_head(
                    line,
                    head.account,
                    head.subject,
                    head.reply,
                    head.groups,
                    header_bytes,
                    total,
                );
            }
        }
    }

    #[inline]
    pub(in crate::exchange) const fn index(self) -> usize {
        match self {
            LinkSet::Leafs => 0,
            LinkSet::Routes(lane) => 1 + lane.index(),
            LinkSet::Gateways => 1 + Lane::ALL.len(),
            LinkSet::Replies => 2 + Lane::ALL.len(),
        }
    }
}

/// Largest number of remotes in a [`RemoteSet`].
const REMOTES_MAX: usize = 64;

/// Largest number of shards of one server. The remaining bits are for link sets.
pub const SHARDS_MAX: usize = REMOTES_MAX - LinkSet::ALL.len();

impl Remote {
    /// Returns the remote's bit number in a [`RemoteSet`]. Link sets come after shards.
    pub(super) const fn bit_index(self) -> usize {
        match self {
            Remote::Shard(shard) => shard as usize,
            Remote::Links(set) => SHARDS_MAX + set.index(),
        }
    }

    fn at(bit_index: usize) -> Option<Remote> {
        match bit_index.checked_sub(SHARDS_MAX) {
            None => Some(Remote::Shard(u16::try_from(bit_index).ok()?)),
            Some(at) => Some(Remote::Links(*LinkSet::ALL.get(at)?)),
        }
    }

    /// Returns the link set, if the remote is one.
    pub(crate) const fn links(self) -> Option<LinkSet> {
        match self {
            Remote::Shard(_) => None,
            Remote::Links(set) => Some(set),
        }
    }

    /// Returns the remote's rank among the members of a queue group. Members of a higher rank are used only if
    /// there are none of a lower one, except that members of the whole cluster are equal.
    pub(super) const fn rank(self) -> MemberRank {
        match self {
            Remote::Shard(_) => MemberRank::Server,
            Remote::Links(LinkSet::Routes(_)) => MemberRank::Cluster,
            Remote::Links(LinkSet::Leafs) => MemberRank::Leaf,
            Remote::Links(LinkSet::Gateways | LinkSet::Replies) => MemberRank::Beyond,
        }
    }

    /// Returns the shard that messages for this remote are posted to. `lane_shards` is as in
    /// [`LinkSet::shard`].
    pub(crate) fn shard(self, lane_shards: u16) -> u16 {
        match self {
            Remote::Shard(shard) => shard,
            Remote::Links(set) => set.shard(lane_shards),
        }
    }
}

/// Where a member of a queue group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemberRank {
    /// On this shard.
    Shard,
    /// On another shard of this server.
    Server,
    /// On another server of this cluster.
    Cluster,
    /// At a leaf node.
    Leaf,
    /// In another cluster.
    Beyond,
}

/// A set of remotes, with one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteSet(u64);

impl RemoteSet {
    /// The empty set.
    pub(super) const NONE: RemoteSet = RemoteSet(0);

    /// The set with all routes.
    pub(super) const ROUTES: RemoteSet = {
        let first = Remote::Links(LinkSet::Routes(Lane::ALL[0])).bit_index();
        RemoteSet(((1 << Lane::ALL.len()) - 1) << first)
    };

    /// The set with the leaf connections.
    pub(super) const LEAFS: RemoteSet = RemoteSet(1 << Remote::Links(LinkSet::Leafs).bit_index());

    /// The set with the gateways, but not with the responses over them.
    pub(super) const GATEWAYS: RemoteSet =
        RemoteSet(1 << Remote::Links(LinkSet::Gateways).bit_index());

    /// The set with the responses over gateways.
    pub(super) const REPLIES: RemoteSet =
        RemoteSet(1 << Remote::Links(LinkSet::Replies).bit_index());

    /// The set with all shards.
    const SHARDS: RemoteSet = RemoteSet((1 << SHARDS_MAX) - 1);

    /// Returns the set without the members of another set.
    pub(super) const fn without(self, other: RemoteSet) -> RemoteSet {
        RemoteSet(self.0 & !other.0)
    }

    /// Returns the members of both sets.
    pub(super) const fn with(self, other: RemoteSet) -> RemoteSet {
        RemoteSet(self.0 | other.0)
    }

    /// Returns the remotes that receive a message, of those that want it. A response goes to the requester's
    /// cluster alone.
    #[inline]
    pub(super) const fn reached(self, excluded: RemoteSet) -> RemoteSet {
        let reached = self.without(excluded);
        match reached.0 & RemoteSet::REPLIES.0 {
            0 => reached,
            _ => reached.without(RemoteSet::GATEWAYS),
        }
    }

    /// Returns the shards of the set.
    pub(super) const fn shards(self) -> RemoteSet {
        RemoteSet(self.0 & RemoteSet::SHARDS.0)
    }

    pub(crate) fn set(&mut self, remote: Remote, present: bool) {
        let bit = 1 << remote.bit_index();
        if present {
            self.0 |= bit;
        } else {
            self.0 &= !bit;
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn add(&mut self, other: RemoteSet) {
        self.0 |= other.0;
    }

    pub(crate) fn contains(self, remote: Remote) -> bool {
        self.0 & (1 << remote.bit_index()) != 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the remote if it is the only one of the set.
    pub(super) fn only(self) -> Option<Remote> {
        match self.0.is_power_of_two() {
            true => Remote::at(self.0.trailing_zeros() as usize),
            false => None,
        }
    }

    /// Returns the remotes from the lowest bit up, so shards come first.
    pub(crate) fn iter(self) -> impl Iterator<Item = Remote> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let bit_index = left.trailing_zeros() as usize;
            left &= left - 1;
            Remote::at(bit_index)
        })
    }
}
