//! Seeds without faults of the harness.

use fanline_sim::{Mode, Sabotage, run_seed, trace_seed};

/// Seeds that every build runs.
const SEEDS: u64 = 300;

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
fn a_seed_repeats_its_steps() {
    for seed in 0..20 {
        let (first, _) = trace_seed(Mode::Server, seed, Sabotage::None);
        let (second, _) = trace_seed(Mode::Server, seed, Sabotage::None);
        let differs = first.iter().zip(&second).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len());
    }
}
