use std::sync::Mutex;
use std::time::Duration;

use fanline::operators::{Notification, TimeInterval, Timestamped};
use fanline::{Clock, Time};

use super::End::{Completes, Fails, Never};
use super::*;

#[test]
fn buffers_by_count() {
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
    // The rest is dropped: after a failure it is not known to be whole.
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
fn buffers_by_count_that_overlap_or_leave_out() {
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
fn a_buffer_of_none_is_refused() {
    let _ = fanline::of(1).buffer_count(0);
}

#[test]
#[should_panic(expected = "`every` must be at least 1")]
fn a_buffer_every_none_is_refused() {
    let _ = fanline::of(1).buffer_count_every(1, 0);
}

#[test]
fn value_by_value() {
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
fn a_state_need_not_be_cloned() {
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
fn notifications_as_values_and_back() {
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

    let there_and_back = |source: Script<i32>| source.materialize().dematerialize();
    check(&[1, 2], Completes, there_and_back, &completes([1, 2]));
    check(&[1], Fails("no"), there_and_back, &fails([1], "no"));
    check(&[1], Never, there_and_back, &open([1]));

    // The first end counts, whatever stands behind it; without one, the source's own does.
    let told =
        |all: &[Notification<i32, Failure>]| fanline::from_iter(all.to_vec()).dematerialize();
    check_whole(&told(&[Next(1), Complete, Next(2)]), &completes([1]));
    check_whole(&told(&[Next(1), Error("no"), Complete]), &fails([1], "no"));
    check_whole(&told(&[Next(1)]), &completes([1]));
}

/// Gives readings that were laid down for it.
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
fn times_and_intervals() {
    let at = |value, nanos| Timestamped {
        value,
        at: Time::from_nanos(nanos),
    };
    let after = |value, nanos| TimeInterval {
        value,
        interval: Duration::from_nanos(nanos),
    };
    check(
        &['a', 'b'],
        Fails("no"),
        |source| source.timestamp(readings(&[5, 7])),
        &fails([at('a', 5), at('b', 7)], "no"),
    );
    // The first reading is that of the subscription.
    check(
        &['a', 'b'],
        Completes,
        |source| source.time_interval(readings(&[5, 7, 17])),
        &completes([after('a', 2), after('b', 10)]),
    );
}

#[test]
fn a_clock_that_goes_back_is_taken_to_stand_still() {
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
