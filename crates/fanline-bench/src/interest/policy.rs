//! Distribution of interest, and the resulting cost of messages.

use super::random::Random;
use super::world::{Bits, Subject, World};

/// Sample lines of a link. Only their lengths matter.
const OWN_LINE: &str = "LS+ r07.s0417.device.04242.state\r\n";
const SHARED_LINE: &str = "LS+ shared.topic.042424.updates\r\n";
const LEAF_LINE: &str = "LS+ r07.s0417.>\r\n";
const REGION_LINE: &str = "LS+ r07.>\r\n";

/// The interest that a hub sends to its leaf nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Each subject to all leaf nodes, as a leaf link does by default.
    Everything,
    /// No interest: leaf nodes are isolated, and only the hub knows their interest.
    Isolated,
    /// One filter for each leaf's own subjects, whatever their interest; shared subjects one by one.
    Covered,
    /// As `Covered`, with a hub per region, which covers its leaf nodes with one filter.
    Tree,
}

/// Lines over links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Lines {
    fn of(parts: &[(usize, &str)]) -> Self {
        let mut lines = Self::default();
        for (count, line) in parts {
            lines.count += *count as u64;
            lines.bytes += (*count * line.len()) as u64;
        }
        lines
    }

    fn add(&mut self, more: Self) {
        self.count += more.count;
        self.bytes += more.bytes;
    }
}

/// Cost until all interest is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Distribution {
    /// Towards the root.
    pub(super) up: Lines,
    /// Towards the leaf nodes.
    pub(super) down: Lines,
    /// Maximum of one link in one direction.
    pub(super) heaviest: Lines,
    /// Different filters at the hub with the most.
    pub(super) hub_filters: usize,
    /// Different filters at the leaf with the most.
    pub(super) leaf_filters: usize,
}

impl Distribution {
    fn up(&mut self, lines: Lines) {
        self.up.add(lines);
        self.weigh(lines);
    }

    fn down(&mut self, lines: Lines) {
        self.down.add(lines);
        self.weigh(lines);
    }

    fn weigh(&mut self, lines: Lines) {
        if lines.bytes > self.heaviest.bytes {
            self.heaviest = lines;
        }
    }
}

/// Cost of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) up: u64,
    pub(super) down: u64,
}

/// Cost of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FanOut {
    /// Number of messages that crossed a link, counted per link.
    pub(super) crossings: u64,
    /// Number of those that went to a node without interest.
    pub(super) useless: u64,
    /// Number of messages from another leaf that reached a leaf with interest.
    pub(super) delivered: u64,
    /// Number of those that should have arrived.
    pub(super) wanted: u64,
}

/// Number of leaf nodes interested in each shared subject, from every view.
struct Shared {
    /// Number of subjects with any interest.
    wanted: usize,
    /// By leaf: number of subjects with interest there.
    at_leaf: Vec<usize>,
    /// By leaf: number of subjects with interest only there.
    only_at_leaf: Vec<usize>,
    /// By region: number of subjects with interest there.
    in_region: Vec<usize>,
    /// By region: number of subjects with interest only there.
    only_in_region: Vec<usize>,
}

impl Shared {
    fn count(world: &World) -> Self {
        let mut shared = Self {
            wanted: 0,
            at_leaf: vec![0; world.leafs],
            only_at_leaf: vec![0; world.leafs],
            in_region: vec![0; world.regions],
            only_in_region: vec![0; world.regions],
        };
        for holders in world.holders() {
            let (mut leafs, mut regions) = (0, Vec::new());
            let mut last = None;
            for leaf in holders.iter() {
                shared.at_leaf[leaf] += 1;
                leafs += 1;
                last = Some(leaf);
                // Leaf nodes are in order, and so are regions.
                if regions.last() != Some(&world.region(leaf)) {
                    regions.push(world.region(leaf));
                }
            }
            if let (1, Some(leaf)) = (leafs, last) {
                shared.only_at_leaf[leaf] += 1;
            }
            for region in &regions {
                shared.in_region[*region] += 1;
            }
            if let [region] = regions[..] {
                shared.only_in_region[region] += 1;
            }
            shared.wanted += usize::from(leafs > 0);
        }
        shared
    }
}

impl Policy {
    /// All policies, in the order of the tables.
    pub(super) const ALL: [Self; 4] = [Self::Everything, Self::Isolated, Self::Covered, Self::Tree];

    /// Returns the name in tables.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Isolated => "isolated",
            Self::Covered => "covered by prefix",
            Self::Tree => "covered, in a tree",
        }
    }

    /// Counts the distribution of all interest from an empty state.
    pub(super) fn announce(self, world: &World) -> Distribution {
        let shared = Shared::count(world);
        let own = (0..world.leafs).map(|leaf| world.own_wanted(leaf));
        let own = own.collect::<Vec<_>>();
        let mut distribution = Distribution::default();
        for (leaf, own_here) in own.iter().enumerate() {
            let (up, down) = self.leaf_link(world, &shared, &own, leaf);
            distribution.up(up);
            distribution.down(down);
            let from_above = usize::try_from(down.count).unwrap_or(usize::MAX);
            let mut filters = own_here + shared.at_leaf[leaf] + from_above;
            if self != Self::Isolated {
                // With interest here and at other leaf nodes.
                filters -= shared.at_leaf[leaf] - shared.only_at_leaf[leaf];
            }
            distribution.leaf_filters = distribution.leaf_filters.max(filters);
        }
        let all_own: usize = own.iter().sum();
        distribution.hub_filters = shared.wanted
            + match self {
                Self::Everything | Self::Isolated => all_own,
                Self::Covered => world.leafs,
                Self::Tree => world.leafs_of_region() + world.regions - 1,
            };
        if self == Self::Tree {
            for region in 0..world.regions {
                distribution.up(Lines::of(&[
                    (1, REGION_LINE),
                    (shared.in_region[region], SHARED_LINE),
                ]));
                distribution.down(Lines::of(&[
                    (world.regions - 1, REGION_LINE),
                    (shared.wanted - shared.only_in_region[region], SHARED_LINE),
                ]));
            }
        }
        distribution
    }

    /// Counts the lines between one leaf and its hub.
    fn leaf_link(
        self,
        world: &World,
        shared: &Shared,
        own: &[usize],
        leaf: usize,
    ) -> (Lines, Lines) {
        let shared_up = (shared.at_leaf[leaf], SHARED_LINE);
        let shared_down = (shared.wanted - shared.only_at_leaf[leaf], SHARED_LINE);
        let one_by_one = Lines::of(&[(own[leaf], OWN_LINE), shared_up]);
        let covered = Lines::of(&[(1, LEAF_LINE), shared_up]);
        match self {
            Self::Everything => {
                let others = own.iter().sum::<usize>() - own[leaf];
                (one_by_one, Lines::of(&[(others, OWN_LINE), shared_down]))
            }
            Self::Isolated => (one_by_one, Lines::default()),
            Self::Covered => {
                let others = (world.leafs - 1, LEAF_LINE);
                (covered, Lines::of(&[others, shared_down]))
            }
            Self::Tree => {
                let region_lines = (world.leafs_of_region() - 1, LEAF_LINE);
                let beyond = (world.regions - 1, REGION_LINE);
                (covered, Lines::of(&[region_lines, beyond, shared_down]))
            }
        }
    }

    /// Returns the number of lines when a leaf's interest in a subject begins or ends. `holders` are the
    /// other leaf nodes with interest.
    fn lines_of_change(self, world: &World, leaf: usize, holders: &[usize]) -> Changed {
        match self {
            Self::Isolated => Changed { up: 1, down: 0 },
            Self::Everything | Self::Covered => Changed {
                up: 1,
                down: newly_informed(world.leafs, holders),
            },
            Self::Tree => {
                let home = world.region(leaf);
                let mut regions = holders.iter().map(|leaf| world.region(*leaf));
                let first_of_region = regions.all(|region| region != home);
                let mut changed = Changed {
                    up: 1,
                    down: newly_informed(world.leafs, holders),
                };
                if first_of_region {
                    let regions = holders.iter().map(|leaf| world.region(*leaf));
                    let mut regions = regions.collect::<Vec<_>>();
                    regions.dedup();
                    changed.up += 1;
                    changed.down += newly_informed(world.regions, &regions);
                }
                changed
            }
        }
    }

    /// Returns the number of links that a message crosses from one leaf to others.
    fn links(self, world: &World, origin: usize, targets: &[usize]) -> u64 {
        if targets.is_empty() {
            return 0;
        }
        let leaf_links = 1 + targets.len() as u64;
        match self {
            Self::Isolated => 0,
            Self::Everything | Self::Covered => leaf_links,
            Self::Tree => {
                let home = world.region(origin);
                let mut regions = targets
                    .iter()
                    .map(|leaf| world.region(*leaf))
                    .filter(|region| *region != home)
                    .collect::<Vec<_>>();
                regions.dedup();
                let through_root = u64::from(!regions.is_empty());
                leaf_links + through_root + regions.len() as u64
            }
        }
    }

    /// Returns whether the other leaf nodes know a leaf's own subjects as one filter.
    fn covers(self) -> bool {
        matches!(self, Self::Covered | Self::Tree)
    }
}

/// Each of `all` nodes is sent the interest of any *other* node. Returns how many of them are sent new
/// interest if one more node is added to `holders`.
fn newly_informed(all: usize, holders: &[usize]) -> u64 {
    match holders {
        [] => all as u64 - 1,
        // That node knew only its own interest.
        [_] => 1,
        _ => 0,
    }
}

/// Adds and removes subscriptions.
pub(super) fn change(
    world: &mut World,
    changes: u32,
    random: &mut Random,
) -> [Changed; Policy::ALL.len()] {
    let mut sums = [Changed::default(); Policy::ALL.len()];
    for _ in 0..changes {
        let (leaf, subject) = world.draw_change(random);
        let holders = others(world, leaf, subject);
        for (sum, policy) in sums.iter_mut().zip(Policy::ALL) {
            // A leaf's own subjects are covered, whatever their interest.
            if policy.covers() && matches!(subject, Subject::Own { .. }) {
                continue;
            }
            let lines = policy.lines_of_change(world, leaf, &holders);
            sum.up += lines.up;
            sum.down += lines.down;
        }
        world.toggle(leaf, subject);
    }
    sums
}

/// Publishes at leaf nodes.
pub(super) fn publish(
    world: &World,
    publications: u32,
    random: &mut Random,
) -> [FanOut; Policy::ALL.len()] {
    let mut sums = [FanOut::default(); Policy::ALL.len()];
    for _ in 0..publications {
        let (origin, subject) = world.draw_publication(random);
        let wanting = others(world, origin, subject);
        for (sum, policy) in sums.iter_mut().zip(Policy::ALL) {
            let links = policy.links(world, origin, &wanting);
            let taken = match subject {
                Subject::Own { leaf, .. } if policy.covers() && leaf != origin => {
                    policy.links(world, origin, &[leaf])
                }
                _ => links,
            };
            sum.crossings += taken;
            sum.useless += taken - links;
            sum.wanted += wanting.len() as u64;
            if policy != Policy::Isolated {
                sum.delivered += wanting.len() as u64;
            }
        }
    }
    sums
}

/// Returns the leaf nodes with interest in a subject except `leaf`, in order.
fn others(world: &World, leaf: usize, subject: Subject) -> Vec<usize> {
    let holders = match subject {
        Subject::Own { leaf: owner, .. } => {
            let wants = owner != leaf && world.wants(owner, subject);
            return wants.then_some(owner).into_iter().collect();
        }
        Subject::Shared(shared) => &world.holders()[shared],
    };
    Bits::iter(holders).filter(|other| *other != leaf).collect()
}

#[cfg(test)]
mod tests;
