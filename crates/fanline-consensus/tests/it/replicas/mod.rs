//! Three nodes that replicate a folder, in one thread. The leader runs a program on it through a journaled disk: a bare
//! store, or JetStream of an account. The others execute its writes. A seed determines crashes with power cuts,
//! partitions, lost messages, compactions, and copies of the folder.

mod app;
mod node;
mod store;
mod streams;
mod world;

use fanline_engine::store::simulated_disk::Dice;

use app::{App, Clients};
use store::{Publisher, StoreApp};
use streams::{JetStreamApp, Users};
use world::run;

/// A bug that the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A sync ends when its entry is recorded.
    AcknowledgeBeforeCommit,
    /// Deliveries and answers show what is not committed.
    ReplyBeforeCommit,
    /// The leader changes its own files before the commit.
    ApplyBeforeCommit,
    /// The log is compacted before the files are synced.
    CompactBeforeSync,
    /// A copy of the folder counts from its end, not from its beginning.
    CopyFromItsEnd,
    /// A restarted node does not execute entries again.
    SkipRepetition,
}

fn run_all<A: App, C: Clients<A>>(count: u64) {
    let (mut acknowledged, mut leaders, mut copies) = (0, 0, 0);
    for seed in crate::seeds(count) {
        match run::<A, C>(seed, None) {
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

#[test]
fn acknowledged_records_survive() {
    run_all::<StoreApp, Publisher>(60);
}

#[test]
fn streams_and_consumers_survive() {
    run_all::<JetStreamApp, Users>(30);
}

fn find<A: App, C: Clients<A>>(bug: Bug) {
    let found = (0..10_000).find_map(|seed| Some((seed, run::<A, C>(seed, Some(bug)).err()?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("{bug:?} was found by seed {seed}: {violation}");
}

#[test]
fn acknowledgement_before_the_commit_is_found() {
    find::<StoreApp, Publisher>(Bug::AcknowledgeBeforeCommit);
}

#[test]
fn changes_before_the_commit_are_found() {
    find::<StoreApp, Publisher>(Bug::ApplyBeforeCommit);
}

#[test]
fn compaction_before_the_sync_is_found() {
    find::<StoreApp, Publisher>(Bug::CompactBeforeSync);
}

#[test]
fn copy_from_its_end_is_found() {
    find::<StoreApp, Publisher>(Bug::CopyFromItsEnd);
}

#[test]
fn skipped_repetition_is_found() {
    find::<StoreApp, Publisher>(Bug::SkipRepetition);
}

#[test]
fn replies_before_the_commit_are_found() {
    find::<JetStreamApp, Users>(Bug::ReplyBeforeCommit);
}
