//! Cases of the matcher, which finds the subscriptions of a subject.

use std::hint::black_box;

use fanline_engine::{Filter, MatchMemo, Matcher};

use super::{Case, NO_ALLOCATION, Numbers, Work, case, in_batches};
use crate::report::metric::Metric;
use crate::report::target::Limit;

/// The targets of cases in which the cache contains all subjects.
const CACHED: &[Limit] = &[Limit::at_least(Metric::Rate, 20e6), NO_ALLOCATION];
const UNCACHED: &[Limit] = &[Limit::at_most(Metric::Operation, 2000.0)];

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("match exact, the same subject again", "matches", CACHED, || cached(0, subscribe_exact, 1)),
    case("match exact, 64 subjects in turn", "matches", CACHED, || cached(0, subscribe_exact, SUBJECTS)),
    case("match wildcard, 64 subjects in turn", "matches", CACHED, || cached(0, subscribe_wildcard, SUBJECTS)),
    case("match queue group, 64 subjects in turn", "matches", CACHED, || cached(0, subscribe_group, SUBJECTS)),
    case("match remote interest, 64 subjects in turn", "matches", CACHED, || cached(0, subscribe_remote, SUBJECTS)),
    case("exact among 100,000 filters", "matches", CACHED, || cached(FILTERS, subscribe_exact, SUBJECTS)),
    case("wildcard among 100,000 filters", "matches", CACHED, || cached(FILTERS, subscribe_wildcard, SUBJECTS)),
    case("queue group among 100,000 filters", "matches", CACHED, || cached(FILTERS, subscribe_group, SUBJECTS)),
    case("remote interest among 100,000 filters", "matches", CACHED, || cached(FILTERS, subscribe_remote, SUBJECTS)),
    case("uncached among 100,000 filters", "matches", UNCACHED, uncached),
    case("churn exact among 100,000 filters", "SUB + UNSUB", &[], || churn(|i| format!("_INBOX.aB3dE6gH9.{i}"))),
    case("churn wildcard among 100,000 filters", "SUB + UNSUB", &[], || churn(|i| format!("_INBOX.aB3dE6gH9{i}.*"))),
];

/// Number of subjects that are looked up in turn. They all fit into the cache, but a publisher's memo
/// contains only the last one.
const SUBJECTS: u64 = 64;
const FILTERS: u64 = 100_000;
/// Number of subjects in the case without cache hits. The cache has room for far fewer, so a subject has been
/// evicted before it recurs.
const UNCACHED_SUBJECTS: u64 = 200_000;

/// The client whose subscriptions are measured. A second client has many other subscriptions.
const CLIENT: u32 = 0;
const CROWD: u32 = 1;

fn parsed(filter: &str) -> Filter<'_> {
    Filter::parse(filter.as_bytes()).expect("a benchmark's own filter")
}

fn add(matcher: &mut Matcher, client: u32, sid: u64, filter: &str, queue: &[u8]) {
    let is_new = matcher.subscribe(client, sid.to_string().as_bytes(), parsed(filter), queue);
    assert!(is_new, "a benchmark's own sid");
}

fn subject(i: u64) -> String {
    format!("bench.orders.{i}.created")
}

fn subscribe_exact(matcher: &mut Matcher) {
    for i in 0..SUBJECTS {
        add(matcher, CLIENT, i, &subject(i), b"");
    }
}

fn subscribe_wildcard(matcher: &mut Matcher) {
    add(matcher, CLIENT, 0, "bench.orders.*.created", b"");
    add(matcher, CLIENT, 1, "bench.>", b"");
}

fn subscribe_group(matcher: &mut Matcher) {
    for sid in 0..3 {
        add(matcher, CLIENT, sid, "bench.orders.*.created", b"workers");
    }
}

fn subscribe_remote(matcher: &mut Matcher) {
    add(matcher, CLIENT, 0, "bench.orders.*.created", b"");
    for shard in 1..4 {
        matcher.set_remote(shard, parsed("bench.orders.>"), b"", 1);
        matcher.set_remote(shard, parsed("bench.*.*.created"), b"workers", 2);
    }
}

/// Adds filters as in a large system: most match one subject, some match a group of subjects, and a few match
/// many.
fn add_crowd(matcher: &mut Matcher, count: u64) {
    let mut numbers = Numbers::new();
    for i in 0..count {
        let (region, device) = (numbers.below(100), numbers.below(5000));
        let filter = match numbers.below(100) {
            0..70 => format!("fleet.{region}.{device}.sensor.{i}"),
            70..85 => format!("fleet.{region}.{device}.*.{i}"),
            85..95 => format!("fleet.*.{device}.sensor.{i}"),
            95..99 => format!("fleet.{region}.{device}.>"),
            _ => format!("fleet.{region}.*.alarm.{i}"),
        };
        add(matcher, CROWD, i, &filter, b"");
    }
}

fn cached(crowd: u64, subscribe: fn(&mut Matcher), subjects: u64) -> Box<Work> {
    let mut matcher = Matcher::default();
    add_crowd(&mut matcher, crowd);
    subscribe(&mut matcher);
    let subjects: Vec<Vec<u8>> = (0..subjects).map(|i| subject(i).into_bytes()).collect();
    let mut memo = MatchMemo::default();
    in_batches(subjects.len() as u64, move || {
        for subject in black_box(&subjects) {
            let matched = matcher.find(subject, &mut memo);
            black_box((matched.subscriptions(), matched.groups(), matched.shards()));
        }
    })
}

/// Looks up subjects that are not in the cache. Most of them match a filter.
fn uncached() -> Box<Work> {
    let mut matcher = Matcher::default();
    add_crowd(&mut matcher, FILTERS);
    let mut numbers = Numbers::new();
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for i in 0..UNCACHED_SUBJECTS {
        let (region, device) = (numbers.below(100), numbers.below(5000));
        let _ = numbers.below(100);
        bytes.extend(format!("fleet.{region}.{device}.sensor.{i}").into_bytes());
        ends.push(bytes.len());
    }
    let mut next = 0;
    Box::new(move |operations| {
        for _ in 0..operations {
            let start = if next == 0 { 0 } else { ends[next - 1] };
            let matched = matcher.find(&bytes[start..ends[next]], &mut MatchMemo::default());
            black_box(matched.subscriptions());
            next = (next + 1) % ends.len();
        }
        operations
    })
}

/// Subscribes and unsubscribes while the cache contains subjects that the filter does not match.
fn churn(filter: fn(u64) -> String) -> Box<Work> {
    let mut matcher = Matcher::default();
    add_crowd(&mut matcher, FILTERS);
    for i in 0..2 * SUBJECTS {
        matcher.find(subject(i % SUBJECTS).as_bytes(), &mut MatchMemo::default());
    }
    let filters: Vec<String> = (0..1024).map(filter).collect();
    let sids: Vec<String> = (0..1024).map(|i| (1_000_000 + i).to_string()).collect();
    in_batches(filters.len() as u64, move || {
        for (filter, sid) in filters.iter().zip(&sids) {
            let is_new = matcher.subscribe(CLIENT, sid.as_bytes(), parsed(filter), b"");
            let was_there = matcher.unsubscribe(CLIENT, sid.as_bytes());
            assert!(is_new && was_there);
        }
    })
}
