//! Three nodes that replicate the folder of a real store, in one thread. The leader opens the store through a
//! journaled disk, and the others execute its writes. A seed determines crashes with power cuts, partitions, lost
//! messages, compactions, and copies of the folder.

mod node;
mod world;

use world::run;

/// A bug that the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A record is acknowledged when its entry is proposed.
    AcknowledgeBeforeCommit,
    /// The leader changes its own files before the commit.
    ApplyBeforeCommit,
    /// The log is compacted before the files are synced.
    CompactBeforeSync,
    /// A copy of the folder counts from its end, not from its beginning.
    CopyFromItsEnd,
    /// A restarted node does not execute entries again.
    SkipRepetition,
}

#[test]
fn acknowledged_records_survive() {
    let (mut acknowledged, mut leaders, mut copies) = (0, 0, 0);
    for seed in crate::seeds(60) {
        match run(seed, None) {
            Ok(summary) => {
                acknowledged += summary.acknowledged;
                leaders += summary.leaders;
                copies += summary.copies;
            }
            Err(violation) => panic!("seed {seed}: {violation}"),
        }
    }
    println!("{acknowledged} records, {leaders} leaders, {copies} copies");
    assert!(acknowledged > 0 && leaders > 0 && copies > 0);
}

fn find(bug: Bug) {
    let found = (0..10_000).find_map(|seed| Some((seed, run(seed, Some(bug)).err()?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("{bug:?} was found by seed {seed}: {violation}");
}

#[test]
fn acknowledgement_before_the_commit_is_found() {
    find(Bug::AcknowledgeBeforeCommit);
}

#[test]
fn changes_before_the_commit_are_found() {
    find(Bug::ApplyBeforeCommit);
}

#[test]
fn compaction_before_the_sync_is_found() {
    find(Bug::CompactBeforeSync);
}

#[test]
fn copy_from_its_end_is_found() {
    find(Bug::CopyFromItsEnd);
}

#[test]
fn skipped_repetition_is_found() {
    find(Bug::SkipRepetition);
}
