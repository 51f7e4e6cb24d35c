//! Faults of the harness, each of which violates an invariant.

use std::collections::BTreeSet;

use fanline_sim::{Invariant, Mode, Sabotage, run_seed};

/// Runs seeds of single servers with a fault, and checks that the invariants found include `expected`.
fn check(sabotage: Sabotage, expected: Invariant) {
    check_in(Mode::Server, sabotage, expected);
}

fn check_in(mode: Mode, sabotage: Sabotage, expected: Invariant) {
    let failures = (0..300).filter_map(|seed| run_seed(mode, seed, sabotage).err());
    let mut found = BTreeSet::new();
    for failure in failures {
        found.insert(failure.violation.invariant);
        if failure.violation.invariant == expected {
            println!("{sabotage:?}: {}", failure.summary());
            return;
        }
    }
    panic!("{sabotage:?} violates {found:?}, and not {expected:?}");
}

#[test]
fn dropped_batches_violate_visibility() {
    check(Sabotage::DropBatch, Invariant::Visibility);
}

#[test]
fn repeated_batches_violate_visibility() {
    check(Sabotage::ApplyTwice, Invariant::Visibility);
}

#[test]
fn skipped_syncs_violate_durability() {
    check(Sabotage::SkipSync, Invariant::Durability);
}

#[test]
fn lost_syncs_violate_liveness() {
    check(Sabotage::LoseSyncs, Invariant::Liveness);
}

#[test]
fn remaining_sessions_violate_memory() {
    check(Sabotage::KeepSessions, Invariant::Memory);
}

#[test]
fn dropped_announcements_violate_interest() {
    check_in(
        Mode::Cluster,
        Sabotage::DropAnnouncement,
        Invariant::Interest,
    );
}

#[test]
fn dropped_withdrawals_violate_interest() {
    check_in(Mode::Cluster, Sabotage::DropWithdrawal, Invariant::Interest);
}

#[test]
fn remaining_routes_violate_interest() {
    check_in(Mode::Cluster, Sabotage::KeepRoutes, Invariant::Interest);
}

#[test]
fn dropped_messages_of_routes_violate_hops() {
    check_in(Mode::Cluster, Sabotage::DropRouted, Invariant::Hops);
}

#[test]
fn repeated_messages_of_routes_violate_hops() {
    check_in(Mode::Cluster, Sabotage::RepeatRouted, Invariant::Hops);
}

#[test]
fn second_hops_violate_hops() {
    check_in(Mode::Cluster, Sabotage::ForwardRouted, Invariant::Hops);
}
