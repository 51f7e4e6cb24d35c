//! What is counted here against sets that are really passed on from link to link.

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

/// What a leaf tells the hub above it.
fn told_up(world: &World, policy: Policy, leaf: usize) -> Filters {
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

/// What a region tells the root: one filter for all of its leafs.
fn told_by_region(world: &World, region: usize) -> Filters {
    let leafs = (0..world.leafs).filter(|leaf| world.region(*leaf) == region);
    let mut filters = union(leafs.map(|leaf| told_up(world, Policy::Tree, leaf)));
    filters.retain(|filter| !filter.ends_with('>'));
    filters.insert(format!("r{region}.>"));
    filters
}

/// Lines up and down, counted on real sets.
fn counted(world: &World, policy: Policy) -> (usize, usize) {
    let up = |leaf| told_up(world, policy, leaf);
    let leafs = 0..world.leafs;
    let mut ups: usize = leafs.clone().map(|leaf| up(leaf).len()).sum();
    let mut downs = 0;
    for leaf in leafs.clone() {
        let beside = leafs.clone().filter(|other| *other != leaf);
        let home = world.region(leaf);
        downs += match policy {
            Policy::Isolated => 0,
            Policy::Everything | Policy::Covered => union(beside.map(up)).len(),
            Policy::Tree => {
                let beside = beside.filter(|other| world.region(*other) == home);
                let beyond = (0..world.regions).filter(|region| *region != home);
                let mut filters = union(beside.map(up));
                filters.extend(union(beyond.map(|region| told_by_region(world, region))));
                filters.len()
            }
        };
    }
    if policy == Policy::Tree {
        for region in 0..world.regions {
            let beyond = (0..world.regions).filter(|other| *other != region);
            ups += told_by_region(world, region).len();
            downs += union(beyond.map(|other| told_by_region(world, other))).len();
        }
    }
    (ups, downs)
}

#[test]
fn lines_are_those_of_sets_that_are_passed_on() {
    for seed in 0..20 {
        let world = World::draw(&small(seed), &mut Random::new(seed));
        for policy in Policy::ALL {
            let told = policy.announce(&world);
            let found = (told.up.count, told.down.count);
            let (up, down) = counted(&world, policy);
            assert_eq!(found, (up as u64, down as u64), "{policy:?}, seed {seed}");
        }
    }
}

#[test]
fn a_change_takes_the_lines_by_which_the_sets_differ() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let mut world = World::draw(&small(seed), &mut random);
        // Toggles one shared subject, and counts what is in one set and not in the other by their sizes:
        // a change only adds, or only takes away.
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
fn a_tree_of_one_region_takes_no_more_links_than_one_hub() {
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
