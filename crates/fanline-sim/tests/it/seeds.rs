//! Seeds without faults of the harness.

use fanline_sim::{Mode, Sabotage, run_seed, trace_seed};

/// Seeds of single servers that every build runs.
const SEEDS: u64 = 300;

/// Seeds of clusters that every build runs.
const CLUSTERS: u64 = 60;

/// Further seeds of clusters. In them, the last member of a group leaves a shard, or a server, while a message for it
/// arrives; or servers restart together.
const FURTHER_CLUSTERS: [u64; 7] = [88, 153, 161, 202, 203, 247, 514];

#[test]
fn seeds_hold_all_invariants() {
    let (mut messages, mut reads) = (0, 0);
    for seed in 0..SEEDS {
        match run_seed(Mode::Server, seed, Sabotage::None) {
            Ok(covered) => {
                messages += covered.messages;
                reads += covered.reads;
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(
        messages > SEEDS * 5,
        "only {messages} messages were checked"
    );
    assert!(reads > SEEDS, "only {reads} reads were checked");
}

#[test]
fn clusters_hold_all_invariants() {
    let (mut messages, mut crossings, mut cuts, mut restarts) = (0, 0, 0, 0);
    for seed in (0..CLUSTERS).chain(FURTHER_CLUSTERS) {
        match run_seed(Mode::Cluster, seed, Sabotage::None) {
            Ok(covered) => {
                messages += covered.messages;
                crossings += covered.crossings;
                cuts += covered.cuts;
                restarts += covered.restarts;
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(
        messages > CLUSTERS * 100 && crossings > CLUSTERS * 20,
        "only {messages} messages were checked, and {crossings} crossed"
    );
    assert!(
        cuts > CLUSTERS && restarts > CLUSTERS / 4,
        "only {cuts} cuts and {restarts} restarts"
    );
}

#[test]
fn a_seed_repeats_its_steps() {
    for (mode, seed) in (0..20).flat_map(|seed| [(Mode::Server, seed), (Mode::Cluster, seed)]) {
        let (first, _) = trace_seed(mode, seed, Sabotage::None);
        let (second, _) = trace_seed(mode, seed, Sabotage::None);
        let differs = first.iter().zip(&second).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed} of {mode:?}");
        assert_eq!(first.len(), second.len());
    }
}
