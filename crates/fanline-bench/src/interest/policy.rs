//! Who is told what, and what a message costs then.

use super::random::Random;
use super::world::{Bits, Subject, World};

/// Lines as they go over a link; what counts is how long they are.
const OWN_LINE: &str = "LS+ r07.s0417.device.04242.state\r\n";
const SHARED_LINE: &str = "LS+ shared.topic.042424.updates\r\n";
const LEAF_LINE: &str = "LS+ r07.s0417.>\r\n";
const REGION_LINE: &str = "LS+ r07.>\r\n";

/// What a hub tells its leafs of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Each subject to everybody, as a leaf link does by default.
    Everything,
    /// Nothing: leafs are isolated, and only the hub knows what they want.
    Isolated,
    /// One filter for each leaf's own subjects, whatever it wants of them; shared subjects one by one.
    Covered,
    /// The same with a hub for each region, which covers its leafs with one filter in turn.
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

/// What it takes until everybody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Towards the root.
    pub(super) up: Lines,
    /// Towards the leafs.
    pub(super) down: Lines,
    /// The most that one link carries one way.
    pub(super) heaviest: Lines,
    /// Different filters at the hub that has most of them.
    pub(super) hub_filters: usize,
    /// The same at the leaf that has most.
    pub(super) leaf_filters: usize,
}

impl Told {
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

/// What changes cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) up: u64,
    pub(super) down: u64,
}

/// What messages cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FanOut {
    /// Messages that went over a link, each link counted.
    pub(super) crossings: u64,
    /// Of those, how many went where nobody wanted them.
    pub(super) useless: u64,
    /// Messages that a leaf got which wanted them, from another leaf.
    pub(super) delivered: u64,
    /// How many of them there should have been.
    pub(super) wanted: u64,
}

/// How often each shared subject is wanted, seen from all sides.
struct Shared {
    /// Wanted by anybody.
    held: usize,
    /// By leaf: wanted there.
    at_leaf: Vec<usize>,
    /// By leaf: wanted there alone.
    only_at_leaf: Vec<usize>,
    /// By region: wanted there.
    in_region: Vec<usize>,
    /// By region: wanted there alone.
    only_in_region: Vec<usize>,
}

impl Shared {
    fn count(world: &World) -> Self {
        let mut shared = Self {
            held: 0,
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
                // Leafs come in order, and regions with them.
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
            shared.held += usize::from(leafs > 0);
        }
        shared
    }
}

impl Policy {
    /// All, in the order of the tables.
    pub(super) const ALL: [Self; 4] = [Self::Everything, Self::Isolated, Self::Covered, Self::Tree];

    /// As tables call it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Isolated => "isolated",
            Self::Covered => "covered by prefix",
            Self::Tree => "covered, in a tree",
        }
    }

    /// From nothing to everybody knowing what he is to know.
    pub(super) fn announce(self, world: &World) -> Told {
        let shared = Shared::count(world);
        let own = (0..world.leafs).map(|leaf| world.own_wanted(leaf));
        let own = own.collect::<Vec<_>>();
        let mut told = Told::default();
        for (leaf, own_here) in own.iter().enumerate() {
            let (up, down) = self.leaf_link(world, &shared, &own, leaf);
            told.up(up);
            told.down(down);
            let from_above = usize::try_from(down.count).unwrap_or(usize::MAX);
            let mut filters = own_here + shared.at_leaf[leaf] + from_above;
            if self != Self::Isolated {
                // Wanted here and told of by others.
                filters -= shared.at_leaf[leaf] - shared.only_at_leaf[leaf];
            }
            told.leaf_filters = told.leaf_filters.max(filters);
        }
        let all_own: usize = own.iter().sum();
        told.hub_filters = shared.held
            + match self {
                Self::Everything | Self::Isolated => all_own,
                Self::Covered => world.leafs,
                Self::Tree => world.leafs_of_region() + world.regions - 1,
            };
        if self == Self::Tree {
            for region in 0..world.regions {
                told.up(Lines::of(&[
                    (1, REGION_LINE),
                    (shared.in_region[region], SHARED_LINE),
                ]));
                told.down(Lines::of(&[
                    (world.regions - 1, REGION_LINE),
                    (shared.held - shared.only_in_region[region], SHARED_LINE),
                ]));
            }
        }
        told
    }

    /// What one leaf and the hub above it tell each other.
    fn leaf_link(
        self,
        world: &World,
        shared: &Shared,
        own: &[usize],
        leaf: usize,
    ) -> (Lines, Lines) {
        let shared_up = (shared.at_leaf[leaf], SHARED_LINE);
        let shared_down = (shared.held - shared.only_at_leaf[leaf], SHARED_LINE);
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
                let beside = (world.leafs_of_region() - 1, LEAF_LINE);
                let beyond = (world.regions - 1, REGION_LINE);
                (covered, Lines::of(&[beside, beyond, shared_down]))
            }
        }
    }

    /// How many lines it takes when the first of a leaf's clients wants a subject, or the last one no
    /// longer does; `holders` are the other leafs that want it.
    fn lines_of_change(self, world: &World, leaf: usize, holders: &[usize]) -> Changed {
        match self {
            Self::Isolated => Changed { up: 1, down: 0 },
            Self::Everything | Self::Covered => Changed {
                up: 1,
                down: newly_told(world.leafs, holders),
            },
            Self::Tree => {
                let home = world.region(leaf);
                let mut regions = holders.iter().map(|leaf| world.region(*leaf));
                let first_of_region = regions.all(|region| region != home);
                let mut changed = Changed {
                    up: 1,
                    down: newly_told(world.leafs, holders),
                };
                if first_of_region {
                    let regions = holders.iter().map(|leaf| world.region(*leaf));
                    let mut regions = regions.collect::<Vec<_>>();
                    regions.dedup();
                    changed.up += 1;
                    changed.down += newly_told(world.regions, &regions);
                }
                changed
            }
        }
    }

    /// How many links a message takes from a leaf to others.
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

    /// Whether a leaf's own subjects are known to the others as one filter.
    fn covers(self) -> bool {
        matches!(self, Self::Covered | Self::Tree)
    }
}

/// Of so many, each of which is told what any *other* one wants: how many are told something new
/// when one more wants it than `holders`.
fn newly_told(all: usize, holders: &[usize]) -> u64 {
    match holders {
        [] => all as u64 - 1,
        // That one knew of nobody but itself.
        [_] => 1,
        _ => 0,
    }
}

/// Lets subscriptions come and go.
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
            // A leaf's own subjects are covered, whatever it wants of them.
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

/// Publishes at leafs.
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

/// Who but `leaf` wants a subject, in order.
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
