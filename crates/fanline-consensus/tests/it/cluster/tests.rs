//! Seeds that must pass, and bugs that must be found.

use super::Bug;
use super::world::{Summary, run};
use crate::seeds;

#[test]
fn clusters_agree_and_lose_nothing() {
    let mut sum = Summary::default();
    for seed in seeds(60) {
        match run(seed, None) {
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
        sum.stuck * 50 <= seeds(60).count().max(50),
        "{} are stuck",
        sum.stuck
    );
    assert!(sum.acknowledged > 0 && sum.reads > 0 && sum.elections > 0);
}

#[test]
fn same_seed_gives_the_same_run() {
    assert_eq!(run(3, None), run(3, None));
}

fn find(bug: Bug) {
    let found = seeds(10_000).find_map(|seed| Some((seed, run(seed, Some(bug)).err()?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("{bug:?} was found by seed {seed}: {violation}");
}

#[test]
fn acknowledgement_before_the_sync_is_found() {
    find(Bug::AcknowledgeBeforeSync);
}

#[test]
fn vote_without_a_sync_is_found() {
    find(Bug::SkipSyncOfVote);
}

#[test]
fn truncation_at_damage_is_found() {
    find(Bug::TruncateAtDamage);
}

#[test]
fn repeated_sync_after_a_failed_one_is_found() {
    find(Bug::RetryFailedSync);
}

#[test]
fn acknowledgement_on_a_full_disk_is_found() {
    find(Bug::IgnoreFullDisk);
}

#[test]
fn returning_member_without_its_votes_is_found() {
    find(Bug::KeepIdAfterLoss);
}

#[test]
fn unlimited_flight_is_found() {
    find(Bug::UnlimitedFlight);
}

#[test]
fn read_without_a_round_is_found() {
    find(Bug::ReadWithoutRound);
}

#[test]
fn waiting_for_a_clock_is_found() {
    find(Bug::WaitForClock);
}

#[test]
fn counted_learner_is_found() {
    find(Bug::CountLearner);
}
