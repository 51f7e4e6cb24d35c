//! Faults of the harness, each of which violates an invariant.

use std::collections::BTreeSet;

use fanline_sim::{Invariant, Mode, Sabotage, run_seed};

/// Runs seeds with a fault, and checks that the invariants found include `expected`.
fn check(sabotage: Sabotage, expected: Invariant) {
    let failures = (0..300).filter_map(|seed| run_seed(Mode::Server, seed, sabotage).err());
    let mut found = BTreeSet::new();
    for failure in failures {
        found.insert(failure.violation.invariant);
        if failure.violation.invariant == expected {
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
