//! Seeds that must pass, and bugs that must be found.

use fanline_consensus::port::Group;

use super::Bug;
use super::world::{Summary, run};
use crate::seeds;

/// Makes a module of tests for an implementation.
macro_rules! tests_of {
    ($name:ident, $group:ty, [$($test:ident),* $(,)?]) => {
        mod $name {
            $(
                #[test]
                fn $test() {
                    super::$test::<$group>();
                }
            )*
        }
    };
}

tests_of!(
    noraft,
    fanline_consensus::noraft_group::NoraftGroup,
    [
        clusters_agree_and_lose_nothing,
        same_seed_gives_the_same_run,
        acknowledgement_before_the_sync_is_found,
        vote_without_a_sync_is_found,
        truncation_at_damage_is_found,
        repeated_sync_after_a_failed_one_is_found,
        acknowledgement_on_a_full_disk_is_found,
        returning_member_without_its_votes_is_found,
        unlimited_flight_is_found,
        read_without_a_round_is_found,
        waiting_for_a_clock_is_found,
        counted_learner_is_found,
    ]
);
// A learner's answer belongs to a request that only the learner received, so it cannot count as that of a voter.
#[cfg(feature = "openraft")]
tests_of!(
    openraft,
    fanline_consensus::openraft_group::OpenraftGroup,
    [
        clusters_agree_and_lose_nothing,
        same_seed_gives_the_same_run,
        acknowledgement_before_the_sync_is_found,
        vote_without_a_sync_is_found,
        truncation_at_damage_is_found,
        repeated_sync_after_a_failed_one_is_found,
        acknowledgement_on_a_full_disk_is_found,
        returning_member_without_its_votes_is_found,
        unlimited_flight_is_found,
        read_without_a_round_is_found,
        waiting_for_a_clock_is_found,
    ]
);

fn clusters_agree_and_lose_nothing<G: Group>() {
    let mut sum = Summary::default();
    for seed in seeds(20) {
        match run::<G>(seed, None) {
            Ok(summary) => {
                sum.acknowledged += summary.acknowledged;
                sum.elections += summary.elections;
                sum.committed += summary.committed;
                sum.reads += summary.reads;
                sum.stuck += summary.stuck;
                sum.bytes_max = sum.bytes_max.max(summary.bytes_max);
            }
            Err(violation) => panic!("seed {seed}: {violation}"),
        }
    }
    println!("{sum:?}");
    assert!(
        sum.stuck * 50 <= seeds(20).count().max(50),
        "{} are stuck",
        sum.stuck
    );
    assert!(sum.acknowledged > 0 && sum.reads > 0 && sum.elections > 0);
}

fn same_seed_gives_the_same_run<G: Group>() {
    assert_eq!(run::<G>(3, None), run::<G>(3, None));
}

fn find<G: Group>(bug: Bug) {
    let found = seeds(10_000).find_map(|seed| {
        // openraft panics when a node contradicts what it has confirmed.
        let result = std::panic::catch_unwind(|| run::<G>(seed, Some(bug)));
        let violation = result.map_or_else(|_| Some("a panic".to_owned()), Result::err);
        Some((seed, violation?))
    });
    let (seed, violation) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("{bug:?} was found by seed {seed}: {violation}");
}

fn acknowledgement_before_the_sync_is_found<G: Group>() {
    find::<G>(Bug::AcknowledgeBeforeSync);
}

fn vote_without_a_sync_is_found<G: Group>() {
    find::<G>(Bug::SkipSyncOfVote);
}

fn truncation_at_damage_is_found<G: Group>() {
    find::<G>(Bug::TruncateAtDamage);
}

fn repeated_sync_after_a_failed_one_is_found<G: Group>() {
    find::<G>(Bug::RetryFailedSync);
}

fn acknowledgement_on_a_full_disk_is_found<G: Group>() {
    find::<G>(Bug::IgnoreFullDisk);
}

fn returning_member_without_its_votes_is_found<G: Group>() {
    find::<G>(Bug::KeepIdAfterLoss);
}

fn unlimited_flight_is_found<G: Group>() {
    find::<G>(Bug::UnlimitedFlight);
}

fn read_without_a_round_is_found<G: Group>() {
    find::<G>(Bug::ReadWithoutRound);
}

fn waiting_for_a_clock_is_found<G: Group>() {
    find::<G>(Bug::WaitForClock);
}

fn counted_learner_is_found<G: Group>() {
    find::<G>(Bug::CountLearner);
}
