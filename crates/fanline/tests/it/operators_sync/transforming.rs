use std::sync::Mutex;
use std::time::Duration;

use fanline::operators::{Notification, TimeInterval, Timestamped};
use fanline::{Clock, Time};

use super::End::{Completes, Fails, Never};
use super::*;

#[test]
fn buffer_count() {
    let five = [1, 2, 3, 4, 5];
    let pairs = |source: Script<i32>| source.buffer_count(2);
    check(
        &five,
        Completes,
        pairs,
        &completes([vec![1, 2], vec![3, 4], vec![5]]),
    );
    check(
        &five[..4],
        Completes,
        pairs,
        &completes([vec![1, 2], vec![3, 4]]),
    );
    check(&[], Completes, pairs, &completes([]));
    // An error drops the last part, because that part may be incomplete.
    check(
        &five,
        Fails("no"),
        pairs,
        &fails([vec![1, 2], vec![3, 4]], "no"),
    );
    check(&five, Never, pairs, &open([vec![1, 2], vec![3, 4]]));
    check(
        &five,
        Completes,
        |source| source.buffer_count(1),
        &completes(five.map(|n| vec![n])),
    );
    check(
        &five,
        Completes,
        |source| source.buffer_count(usize::MAX),
        &completes([five.to_vec()]),
    );
}

#[test]
fn buffer_count_every_overlaps_or_skips() {
    let five = [1, 2, 3, 4, 5];
    check(
        &five,
        Completes,
        |source| source.buffer_count_every(3, 1),
        &completes([
            vec![1, 2, 3],
            vec![2, 3, 4],
            vec![3, 4, 5],
            vec![4, 5],
            vec![5],
        ]),
    );
    check(
        &five,
        Completes,
        |source| source.buffer_count_every(1, 2),
        &completes([vec![1], vec![3], vec![5]]),
    );
    check(
        &five[..4],
        Completes,
        |source| source.buffer_count_every(2, 3),
        &completes([vec![1, 2], vec![4]]),
    );
    check(
        &five,
        Fails("no"),
        |source| source.buffer_count_every(4, 1),
        &fails([vec![1, 2, 3, 4], vec![2, 3, 4, 5]], "no"),
    );
}

#[test]
#[should_panic(expected = "`count` must be at least 1")]
fn buffer_count_zero_panics() {
    let _ = fanline::of(1).buffer_count(0);
}

#[test]
#[should_panic(expected = "`every` must be at least 1")]
fn buffer_count_every_zero_panics() {
    let _ = fanline::of(1).buffer_count_every(1, 0);
}

#[test]
fn map_filter_map_scan_and_pairwise() {
    check(
        &[1, 2, 3],
        Completes,
        |source| source.map(|n| n * 10),
        &completes([10, 20, 30]),
    );
    check(
        &[1, 2],
        Fails("no"),
        |source| source.map(|n| n * 10),
        &fails([10, 20], "no"),
    );
    check(
        &["1", "x", "3"],
        Completes,
        |source| source.filter_map(|text| text.parse().ok()),
        &completes([1, 3]),
    );
    check(
        &["x"],
        Fails("no"),
        |source| source.filter_map(|text| text.parse::<u8>().ok()),
        &only_fails("no"),
    );
    check(
        &[1, 2],
        Completes,
        |source| source.map_to('x'),
        &completes(['x', 'x']),
    );
    check(
        &['a', 'b'],
        Completes,
        |source| source.enumerate(),
        &completes([(0, 'a'), (1, 'b')]),
    );
    check(
        &[1, 4, 9],
        Completes,
        |source| source.pairwise(),
        &completes([(1, 4), (4, 9)]),
    );
    check(&[1], Completes, |source| source.pairwise(), &completes([]));
    check(
        &[1, 2],
        Fails("no"),
        |source| source.pairwise(),
        &fails([(1, 2)], "no"),
    );
    check(
        &[1, 2, 3],
        Completes,
        |source| source.scan(10, |sum, n| sum + n),
        &completes([11, 13, 16]),
    );
    check(
        &[1, 2],
        Fails("no"),
        |source| source.scan(0, |sum, n| sum + n),
        &fails([1, 3], "no"),
    );
    check(
        &[],
        Completes,
        |source: Script<i32>| source.scan(0, |sum, n| sum + n),
        &completes([]),
    );
}

#[test]
fn scan_state_need_not_be_clone() {
    struct Once(u32);
    check(
        &[1, 2],
        Completes,
        |source| {
            source
                .scan(Once(0), |state, n| Once(state.0 + n))
                .map(|state| state.0)
        },
        &completes([1, 3]),
    );
}

#[test]
fn materialize_and_dematerialize() {
    use Notification::{Complete, Error, Next};

    let materialize = |source: Script<i32>| source.materialize();
    check(
        &[1, 2],
        Completes,
        materialize,
        &completes_safely([Next(1), Next(2), Complete]),
    );
    check(
        &[1],
        Fails("no"),
        materialize,
        &completes_safely([Next(1), Error("no")]),
    );
    check(&[1], Never, materialize, &open([Next(1)]));

    let round_trip = |source: Script<i32>| source.materialize().dematerialize();
    check(&[1, 2], Completes, round_trip, &completes([1, 2]));
    check(&[1], Fails("no"), round_trip, &fails([1], "no"));
    check(&[1], Never, round_trip, &open([1]));

    // The first end counts, whatever follows it. If there is no end among the values, the source's own end
    // counts.
    let dematerialized =
        |all: &[Notification<i32, Failure>]| fanline::from_iter(all.to_vec()).dematerialize();
    check_whole(
        &dematerialized(&[Next(1), Complete, Next(2)]),
        &completes([1]),
    );
    check_whole(
        &dematerialized(&[Next(1), Error("no"), Complete]),
        &fails([1], "no"),
    );
    check_whole(&dematerialized(&[Next(1)]), &completes([1]));
}

/// A clock with a prepared list of readings.
struct Readings(Mutex<Vec<u64>>);

impl Clock for Readings {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.lock().unwrap().remove(0))
    }
}

fn readings(nanos: &[u64]) -> Readings {
    Readings(Mutex::new(nanos.to_vec()))
}

#[test]
fn timestamp_and_time_interval() {
    let at = |value, nanos| Timestamped::new(value, Time::from_nanos(nanos));
    let after = |value, nanos| TimeInterval::new(value, Duration::from_nanos(nanos));
    check(
        &['a', 'b'],
        Fails("no"),
        |source| source.timestamp(readings(&[5, 7])),
        &fails([at('a', 5), at('b', 7)], "no"),
    );
    // The first reading is taken at the subscription.
    check(
        &['a', 'b'],
        Completes,
        |source| source.time_interval(readings(&[5, 7, 17])),
        &completes([after('a', 2), after('b', 10)]),
    );
}

#[test]
fn clock_going_back_counts_as_standing_still() {
    let nanos = |stamped: &Timestamped<i32>| stamped.at.as_nanos();
    check(
        &[1, 2, 3],
        Completes,
        |source| source.timestamp(readings(&[9, 3, 10])).map(nanos),
        &completes([9, 9, 10]),
    );
    check(
        &[1, 2, 3],
        Completes,
        |source| {
            source
                .time_interval(readings(&[9, 3, 10, 11]))
                .map(|v| v.interval.as_nanos())
        },
        &completes([0, 1, 1]),
    );
}
