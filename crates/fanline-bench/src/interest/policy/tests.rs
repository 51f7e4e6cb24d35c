//! Compares the counts with sets that are actually passed from link to link.

use std::collections::BTreeSet;

use super::super::Arguments;
use super::*;

type Filters = BTreeSet<String>;

fn small(seed: u64) -> Arguments {
    Arguments {
        seed,
        leafs: 12,
        regions: 3,
        own: 5,
        own_wanted_percent: 60,
        shared: 20,
        shared_drawn: 6,
        changes: 0,
        publications: 1,
        markdown: None,
    }
}

/// Returns the filters that a leaf sends to its hub.
fn sent_up(world: &World, policy: Policy, leaf: usize) -> Filters {
    let region = world.region(leaf);
    let shared = (0..world.holders().len()).map(Subject::Shared);
    let mut filters = shared
        .filter(|subject| world.wants(leaf, *subject))
        .map(|subject| format!("{subject:?}"))
        .collect::<Filters>();
    if policy.covers() {
        filters.insert(format!("r{region}.s{leaf}.>"));
    } else {
        let own = (0..5).map(|index| Subject::Own { leaf, index });
        let own = own.filter(|subject| world.wants(leaf, *subject));
        filters.extend(own.map(|subject| format!("{subject:?}")));
    }
    filters
}

fn union(parts: impl Iterator<Item = Filters>) -> Filters {
    parts.flatten().collect()
}

/// Returns the filters that a region sends to the root: one filter for all of its leaf nodes.
fn sent_by_region(world: &World, region: usize) -> Filters {
    let leafs = (0..world.leafs).filter(|leaf| world.region(*leaf) == region);
    let mut filters = union(leafs.map(|leaf| sent_up(world, Policy::Tree, leaf)));
    filters.retain(|filter| !filter.ends_with('>'));
    filters.insert(format!("r{region}.>"));
    filters
}

/// Returns lines up and down, counted with real sets.
fn counted(world: &World, policy: Policy) -> (usize, usize) {
    let up = |leaf| sent_up(world, policy, leaf);
    let leafs = 0..world.leafs;
    let mut ups: usize = leafs.clone().map(|leaf| up(leaf).len()).sum();
    let mut downs = 0;
    for leaf in leafs.clone() {
        let peers = leafs.clone().filter(|other| *other != leaf);
        let home = world.region(leaf);
        downs += match policy {
            Policy::Isolated => 0,
            Policy::Everything | Policy::Covered => union(peers.map(up)).len(),
            Policy::Tree => {
                let peers = peers.filter(|other| world.region(*other) == home);
                let beyond = (0..world.regions).filter(|region| *region != home);
                let mut filters = union(peers.map(up));
                filters.extend(union(beyond.map(|region| sent_by_region(world, region))));
                filters.len()
            }
        };
    }
    if policy == Policy::Tree {
        for region in 0..world.regions {
            let beyond = (0..world.regions).filter(|other| *other != region);
            ups += sent_by_region(world, region).len();
            downs += union(beyond.map(|other| sent_by_region(world, other))).len();
        }
    }
    (ups, downs)
}

#[test]
fn lines_match_propagated_sets() {
    for seed in 0..20 {
        let world = World::draw(&small(seed), &mut Random::new(seed));
        for policy in Policy::ALL {
            let distribution = policy.announce(&world);
            let found = (distribution.up.count, distribution.down.count);
            let (up, down) = counted(&world, policy);
            assert_eq!(found, (up as u64, down as u64), "{policy:?}, seed {seed}");
        }
    }
}

#[test]
fn change_costs_difference_of_sets() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let mut world = World::draw(&small(seed), &mut random);
        // Toggles one shared subject, and counts the difference of two sets by their sizes: a change only
        // adds or only removes.
        for _ in 0..20 {
            let leaf = random.below(world.leafs);
            let subject = Subject::Shared(random.below(20));
            let before = Policy::ALL.map(|policy| counted(&world, policy));
            let holders = others(&world, leaf, subject);
            let lines = Policy::ALL.map(|policy| policy.lines_of_change(&world, leaf, &holders));
            world.toggle(leaf, subject);
            for ((policy, before), lines) in Policy::ALL.into_iter().zip(before).zip(lines) {
                let after = counted(&world, policy);
                let differ = (before.0.abs_diff(after.0), before.1.abs_diff(after.1));
                let found = (lines.up, lines.down);
                assert_eq!(found, (differ.0 as u64, differ.1 as u64), "{policy:?}");
            }
        }
    }
}

#[test]
fn tree_of_one_region_uses_no_more_links_than_one_hub() {
    let arguments = Arguments {
        regions: 1,
        ..small(3)
    };
    let world = World::draw(&arguments, &mut Random::new(3));
    let fan_out = publish(&world, 1000, &mut Random::new(4));
    assert_eq!(fan_out[2], fan_out[3]);
    assert_eq!(fan_out[0].delivered, fan_out[0].wanted);
    assert!(fan_out[0].useless == 0 && fan_out[2].useless > 0);
}
