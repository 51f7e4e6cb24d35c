//! Operators that combine several sources.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use fanline::operators::{self, Serialized};
use fanline::{CombineExt, Guard, Observable, ObservableExt, Observer};

use crate::manual_source::{Cold, Log, ManualSource, Sources, check, sources};

#[test]
fn merge() {
    check(
        |[a, b, ..]| a.merge(b).boxed(),
        &[
            ("a1 b2 a3", "1 2 3"),
            ("a1 a| b2 b|", "1 2 |"),
            ("a| b|", "|"),
            ("a1 b# a2 a|", "1 #b"),
            ("b1 ! a2", "1"),
        ],
    );
    check(
        |sources| operators::merge(sources).boxed(),
        &[
            ("a1 b2 c3 d4 a| b| c| d5 d|", "1 2 3 4 5 |"),
            ("a| b1 c# b2", "1 #c"),
            ("a1 !", "1"),
        ],
    );
}

#[test]
fn concat() {
    check(
        |[a, b, ..]| a.concat(b).boxed(),
        &[
            ("a1 b2 a| b3 a4 b|", "1 3 |"),
            ("a# b1", "#a"),
            ("a| b1 b#", "1 #b"),
            ("a1 ! a|", "1"),
            ("a1 a| b2 ! b3", "1 2"),
        ],
    );
    check(
        |sources| operators::concat(sources).boxed(),
        &[("a1 a| b2 b| c| d3 d|", "1 2 3 |"), ("a| b| c#", "#c")],
    );
}

#[test]
fn zip() {
    check(
        |[a, b, ..]| a.zip(b).boxed(),
        &[
            ("a1 b2 a3 a4 b5 b6", "(1,2) (3,5) (4,6)"),
            ("a1 a2 a| b3 b4 b5", "(1,3) (2,4) |"),
            ("a1 a| b2", "(1,2) |"),
            ("a|", "|"),
            ("b|", "|"),
            ("a1 b|", "|"),
            ("a1 a2 b3 b|", "(1,3) |"),
            ("a1 b#", "#b"),
            ("a1 a2 !", ""),
        ],
    );
}

#[test]
fn combine_latest() {
    check(
        |[a, b, ..]| a.combine_latest(b).boxed(),
        &[
            ("a1 a2 b3 b4 a5", "(2,3) (2,4) (5,4)"),
            ("a1 b2 a| b3 b|", "(1,2) (1,3) |"),
            ("a|", "|"),
            ("b1 a|", "|"),
            ("a1 a| b|", "|"),
            ("a1 b2 a# b3", "(1,2) #a"),
            ("a1 b2 !", "(1,2)"),
        ],
    );
    check(
        |[a, b, ..]| a.combine_latest_with(b, |a, b| a + b).boxed(),
        &[("a1 b2 a3", "3 5")],
    );
}

#[test]
fn with_latest_from() {
    check(
        |[a, b, ..]| a.with_latest_from(b).boxed(),
        &[
            ("a1 b2 a3 b4 b5 a6", "(3,2) (6,5)"),
            ("b1 b| a2 a|", "(2,1) |"),
            ("b| a1 a|", "|"),
            ("b1 a2 b# a3", "(2,1) #b"),
            ("a#", "#a"),
            ("b1 a2 !", "(2,1)"),
        ],
    );
}

#[test]
fn race() {
    check(
        |[a, b, ..]| a.race(b).boxed(),
        &[
            ("a1 b2 a3 b| a|", "1 3 |"),
            ("b1 a2 a# b#", "1 #b"),
            ("a|", "|"),
            ("b#", "#b"),
            ("! a1", ""),
            ("b1 ! b2", "1"),
        ],
    );
    check(
        |sources| operators::race(sources).boxed(),
        &[("c1 a2 c|", "1 |"), ("d#", "#d")],
    );
    let [a, b, ..] = sources();
    let _guard = a.clone().race(b.clone()).subscribe(|_| ());
    b.next(1);
    assert_eq!(
        (a.observers(), b.observers()),
        (0, 1),
        "the slower source is unsubscribed"
    );
}

#[test]
fn take_until() {
    check(
        |[a, b, ..]| a.take_until(b).boxed(),
        &[
            ("a1 b9 a2", "1 |"),
            ("a1 b| a2 a|", "1 2 |"),
            ("a1 b#", "1 #b"),
            ("a#", "#a"),
            ("a1 !", "1"),
        ],
    );
    let source = ManualSource::<u32>::new();
    let log = Log::default();
    let stop = Cold::new([1], Some(Ok(())));
    let guard = source.clone().take_until(stop).subscribe_with(log.clone());
    assert_eq!((log.text().as_str(), source.subscriptions()), ("|", 0));
    drop(guard);
}

#[test]
fn skip_until() {
    check(
        |[a, b, ..]| a.skip_until(b).boxed(),
        &[
            ("a1 b9 a2 b9 a3 a|", "2 3 |"),
            ("a1 b| a2 a|", "|"),
            ("a1 b#", "#b"),
            ("b1 a2 !", "2"),
        ],
    );
}

#[test]
fn sample_when() {
    check(
        |[a, b, ..]| a.sample_when(b).boxed(),
        &[
            ("b0 a1 a2 b0 b0 a3 b0", "2 3"),
            ("a1 a|", "|"),
            ("a1 b|", "|"),
            ("a1 b#", "#b"),
            ("a1 b0 !", "1"),
        ],
    );
}

/// Regression: `take_until(stop)` was used on a connection's values, and the connection's producer was
/// dropped, yet the observer stayed subscribed to `stop` until the server ended.
#[test]
fn dropped_source_unsubscribes_the_other() {
    check(
        |[a, b, ..]| a.take_until(b).boxed(),
        &[("a1 a-", "1 ."), ("b- a1 a|", "1 |"), ("b| a1 a-", "1 .")],
    );
    check(
        |[a, b, ..]| a.skip_until(b).boxed(),
        &[("a-", "."), ("b1 a2 a-", "2 ."), ("b- a1 a|", "|")],
    );
    check(
        |[a, b, ..]| a.with_latest_from(b).boxed(),
        &[("b1 a2 a-", "(2,1) ."), ("b1 b- a2 a|", "(2,1) |")],
    );
    check(
        |[a, b, ..]| a.sample_when(b).boxed(),
        &[("a1 a-", "."), ("a1 b0 b-", "1 .")],
    );
    check(
        |[a, b, ..]| a.zip(b).boxed(),
        &[
            ("a-", "."),
            ("a1 a2 a- b3", "(1,3)"),
            ("a1 a2 a- b3 b4", "(1,3) (2,4) ."),
            ("b1 b- a2", "(2,1) ."),
            ("b1 b- a| ", "|"),
        ],
    );
    check(
        |[a, b, ..]| a.combine_latest(b).boxed(),
        &[
            ("a-", "."),
            ("a1 a- b2 b3", "(1,2) (1,3)"),
            ("a1 b-", "."),
            ("a1 b2 a- b-", "(1,2) ."),
        ],
    );
}

fn inner(sources: &Sources, at: u32) -> ManualSource<u32> {
    sources[usize::try_from(at).expect("0 to 3")].clone()
}

// In the tables of the next four tests, the value 1 of `a` stands for the inner observable `b`, the value 2
// for `c`, and the value 3 for `d`.

#[test]
fn flat_map() {
    let build = |most| {
        move |sources: Sources| {
            let source = sources[0].clone();
            source
                .flat_map_with(most, move |&at| inner(&sources, at))
                .boxed()
        }
    };
    check(
        build(usize::MAX),
        &[
            ("b9 a1 b1 a2 b2 c3 a| b| c4 c|", "1 2 3 4 |"),
            ("a1 b| a|", "|"),
            ("a|", "|"),
            ("a1 b1 a2 c# b2", "1 #c"),
            ("a1 a2 a#", "#a"),
            ("a1 a1 b5", "5 5"),
            ("a1 a2 b1 !", "1"),
        ],
    );
    check(
        build(2),
        &[
            ("a1 a2 a3 b1 c2 d3 b| d4 a| c| d|", "1 2 4 |"),
            ("a1 a2 a3 a| b| c| d5", "5"),
            ("a1 a2 a3 ! d1", ""),
        ],
    );
}

#[test]
fn concat_map() {
    check(
        |sources| {
            let source = sources[0].clone();
            source.concat_map(move |&at| inner(&sources, at)).boxed()
        },
        &[
            ("a1 a2 b1 c2 b| c3 a| c|", "1 3 |"),
            ("a1 a2 b#", "#b"),
            ("a1 a2 a3 b| !", ""),
        ],
    );
}

#[test]
fn switch_map() {
    check(
        |sources| {
            let source = sources[0].clone();
            source.switch_map(move |&at| inner(&sources, at)).boxed()
        },
        &[
            ("a1 b1 a2 b2 c3 a| c4 c|", "1 3 4 |"),
            ("a1 b| a|", "|"),
            ("a1 a| b1 b|", "1 |"),
            ("a1 a2 b# c1", "1"),
            ("a1 b#", "#b"),
            ("a1 a#", "#a"),
            ("a1 b1 a2 !", "1"),
        ],
    );
    let sources = sources();
    let inners = sources.clone();
    let _guard = sources[0]
        .clone()
        .switch_map(move |&at| inner(&inners, at))
        .subscribe(|_| ());
    sources[0].next(1);
    sources[0].next(2);
    assert_eq!((sources[1].observers(), sources[2].observers()), (0, 1));
}

#[test]
fn exhaust_map() {
    check(
        |sources| {
            let source = sources[0].clone();
            source.exhaust_map(move |&at| inner(&sources, at)).boxed()
        },
        &[
            ("a1 a2 b1 c2 b| a2 c3 a| c|", "1 3 |"),
            ("a1 b| a|", "|"),
            ("a1 b#", "#b"),
            ("a1 !", ""),
        ],
    );
}

#[test]
fn switch_all() {
    let channels = ManualSource::<ManualSource<u32>>::new();
    let [a, b, ..] = sources();
    let log = Log::default();
    let guard = channels.clone().switch_all().subscribe_with(log.clone());
    channels.next(a.clone());
    a.next(1);
    channels.next(b.clone());
    a.next(2);
    b.next(3);
    drop(guard);
    assert_eq!(log.text(), "1 3");
    assert_eq!(
        (a.observers(), b.observers(), channels.observers()),
        (0, 0, 0)
    );
}

#[test]
fn many_immediate_inner_sources_use_constant_stack() {
    let source = ManualSource::<u32>::new();
    let last = ManualSource::<u32>::new();
    let blocker = last.clone();
    let log = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&log);
    let guard = source
        .clone()
        .concat_map(move |&n| match n {
            0 => blocker.clone().boxed(),
            _ => Cold::new([n], Some(Ok(()))).boxed(),
        })
        .subscribe(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    for n in 0..100_000 {
        source.next(n);
    }
    last.complete();
    assert_eq!(log.load(Ordering::Relaxed), 99_999);
    drop(guard);
}

/// A source that emits until its observer is closed.
#[derive(Clone)]
struct Endless;
impl Observable for Endless {
    type Item = u32;
    type Error = &'static str;
    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<u32, &'static str> + Send + 'static,
    {
        while !observer.is_closed() {
            observer.next(&7);
        }
        Guard::closed()
    }
}
/// An observer that accepts a number of values, and then completes.
struct Few(usize, Log);
impl<T: std::fmt::Debug> Observer<T, &'static str> for Few {
    fn next(&mut self, value: &T) {
        self.0 -= 1;
        Observer::<T, &'static str>::next(&mut self.1, value);
        if self.0 == 0 {
            Observer::<T, &'static str>::complete(&mut self.1);
        }
    }
    fn error(&mut self, error: &&'static str) {
        Observer::<T, &'static str>::error(&mut self.1, error);
    }
    fn complete(&mut self) {
        Observer::<T, &'static str>::complete(&mut self.1);
    }
    fn is_closed(&self) -> bool {
        self.0 == 0
    }
}

#[test]
fn endless_sources_stop_when_observer_is_closed() {
    let hot = ManualSource::new;
    let chains = [
        Endless.merge(hot()).boxed(),
        Endless.concat(hot()).boxed(),
        hot().race(Endless).boxed(),
        Cold::new([1], None)
            .combine_latest_with(Endless, |a, b| a + b)
            .boxed(),
        Endless
            .with_latest_from_with(Cold::new([1], None), |a, b| a + b)
            .boxed(),
        Endless.take_until(hot()).boxed(),
        Endless.serialize().boxed(),
        Cold::new([1], None).flat_map_with(1, |_| Endless).boxed(),
        Endless.flat_map(|_| Cold::new([1, 2], None)).boxed(),
        Endless
            .concat_map(|_| Cold::new([1, 2], Some(Ok(()))))
            .boxed(),
        Endless
            .switch_map(|_| Cold::new([1, 2], Some(Ok(()))))
            .boxed(),
        Cold::new([1], None).exhaust_map(|_| Endless).boxed(),
        Endless.repeat(2).boxed(),
        Endless.retry(2).boxed(),
        Endless.catch(|_| Endless).boxed(),
        Endless.merge_delay_error(hot()).boxed(),
        Endless.switch_if_empty(hot()).boxed(),
        Cold::new([], Some(Ok(()))).switch_if_empty(Endless).boxed(),
        Cold::new([1], None).concat_map_eager(|_| Endless).boxed(),
        Endless
            .concat_map_eager(|_| Cold::new([1], Some(Ok(()))))
            .boxed(),
        Endless.expand(|_| Cold::new([], Some(Ok(())))).boxed(),
        Cold::new([1], None).expand(|_| Endless).boxed(),
        Endless.throttle_with(|_| Cold::new([1], None)).boxed(),
        Endless.debounce_with(|_| Endless).boxed(),
        Endless.delay_with(|_| Endless).boxed(),
        Endless.retry_when(move |_| hot()).boxed(),
        Endless.repeat_when(move |_| hot()).boxed(),
        Endless.do_while(|| true).boxed(),
    ];
    for (at, chain) in chains.into_iter().enumerate() {
        let log = Log::default();
        let guard = chain.subscribe_with(Few(3, log.clone()));
        assert_eq!(
            log.text().split(' ').count(),
            4,
            "chain {at}: {}",
            log.text()
        );
        assert!(log.text().ends_with('|'), "chain {at}: {}", log.text());
        drop(guard);
        assert_eq!(log.handles(), 1, "chain {at}");
    }
}

#[test]
fn reentrant_values_follow_value_in_progress() {
    let [a, b, ..] = sources();
    let log = Log::default();
    let mut inside = log.clone();
    let again = b.clone();
    let guard = a.clone().merge(b.clone()).subscribe_with(
        fanline::observer(move |value: &u32| {
            if *value == 1 {
                again.next(2);
                again.next(3);
                again.complete();
            }
            Observer::<u32, &str>::next(&mut inside, value);
        })
        .on_complete(|| ()),
    );
    a.next(1);
    a.next(4);
    assert_eq!(log.text(), "1 2 3 4");
    drop(guard);
}

#[test]
fn panic_ends_operator_and_unsubscribes_all_sources() {
    type Build =
        fn(ManualSource<u32>, ManualSource<u32>) -> fanline::BoxObservable<u32, &'static str>;
    let builds: [Build; 5] = [
        |a, b| {
            a.zip_with(b, |_, _| -> u32 { panic!("on purpose") })
                .boxed()
        },
        |a, b| {
            a.combine_latest_with(b, |_, _| -> u32 { panic!("on purpose") })
                .boxed()
        },
        |a, b| a.merge(b).map(|_| -> u32 { panic!("on purpose") }).boxed(),
        |a, b| {
            a.merge(b)
                .flat_map_with(1, |_| -> ManualSource<u32> { panic!("on purpose") })
                .boxed()
        },
        |a, b| {
            a.merge(b)
                .switch_map(|_| -> ManualSource<u32> { panic!("on purpose") })
                .boxed()
        },
    ];
    for (at, build) in builds.into_iter().enumerate() {
        let [a, b, ..] = sources();
        let log = Log::default();
        let guard = build(a.clone(), b.clone()).subscribe_with(log.clone());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            a.next(1);
            b.next(1);
        }));
        assert!(caught.is_err(), "{at}");
        assert_eq!((a.observers(), b.observers()), (0, 0), "{at}");
        a.next(2);
        b.next(2);
        assert_eq!(log.text(), "", "{at}");
        assert_eq!(log.handles(), 1, "{at}: the observer is kept");
        assert!(guard.is_closed());
    }
}

/// An observer that counts values and ends.
#[derive(Clone, Default)]
struct Tally {
    log: Arc<TallyShared>,
}

#[derive(Default)]
struct TallyShared {
    values: AtomicUsize,
    ends: AtomicUsize,
    inside: AtomicUsize,
}

impl Tally {
    fn enter(&self, count: &AtomicUsize) {
        assert_eq!(self.log.inside.fetch_add(1, Ordering::SeqCst), 0, "overlap");
        assert_eq!(self.log.ends.load(Ordering::SeqCst), 0, "after the end");
        count.fetch_add(1, Ordering::SeqCst);
        self.log.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<T> Observer<T, &'static str> for Tally {
    fn next(&mut self, _value: &T) {
        self.enter(&self.log.values);
    }
    fn error(&mut self, _error: &&'static str) {
        self.enter(&self.log.ends);
    }
    fn complete(&mut self) {
        self.enter(&self.log.ends);
    }
}

/// Number of values of each thread.
const EACH: u32 = 5_000;

type BuildFromTwo =
    fn(ManualSource<u32>, ManualSource<u32>) -> fanline::BoxObservable<u32, &'static str>;

/// Chains of two sources that emit `EACH` values. The two numbers of each case are the smallest and the
/// largest number of values that may arrive.
const CASES_FOR_TWO_THREADS: [(&str, BuildFromTwo, u32, u32); 13] = [
    ("merge", |a, b| a.merge(b).boxed(), 2 * EACH, 2 * EACH),
    ("zip", |a, b| a.zip_with(b, |a, _| a).boxed(), EACH, EACH),
    (
        "combine_latest",
        |a, b| a.combine_latest_with(b, |a, _| *a).boxed(),
        EACH,
        2 * EACH - 1,
    ),
    (
        "flat_map",
        |a, b| {
            Cold::new([a, b], Some(Ok(())))
                .flat_map_with(2, Clone::clone)
                .boxed()
        },
        2 * EACH,
        2 * EACH,
    ),
    (
        "flat_map of both",
        |a, b| {
            a.merge(b)
                .flat_map_with(3, |&n| Cold::new([n], Some(Ok(()))))
                .boxed()
        },
        2 * EACH,
        2 * EACH,
    ),
    (
        "with_latest_from",
        |a, b| a.with_latest_from_with(b, |a, _| *a).boxed(),
        0,
        EACH,
    ),
    (
        "merge_delay_error",
        |a, b| a.merge_delay_error(b).boxed(),
        2 * EACH,
        2 * EACH,
    ),
    (
        "concat_map_eager",
        |a, b| {
            Cold::new([a, b], Some(Ok(())))
                .concat_map_eager(Clone::clone)
                .boxed()
        },
        2 * EACH,
        2 * EACH,
    ),
    (
        "expand",
        |a, b| a.merge(b).expand(|_| Cold::new([], Some(Ok(())))).boxed(),
        2 * EACH,
        2 * EACH,
    ),
    (
        "delay_with",
        |a, b| {
            a.merge(b)
                .delay_with(|_| Cold::new([1], Some(Ok(()))))
                .boxed()
        },
        2 * EACH,
        2 * EACH,
    ),
    (
        "buffer_when",
        |a, b| a.buffer_when(b).flat_map_iter(Clone::clone).boxed(),
        0,
        EACH,
    ),
    (
        "window_when",
        |a, b| a.window_when(b).flat_map(Clone::clone).boxed(),
        0,
        EACH,
    ),
    (
        "join",
        |a, b| {
            let ended = |_: &u32| Cold::<u32>::new([], Some(Ok(())));
            a.join(b, ended, ended, |a, _| *a).boxed()
        },
        0,
        EACH * EACH,
    ),
];

#[test]
fn two_threads_lose_no_value_and_calls_never_overlap() {
    for (name, build, least, most) in CASES_FOR_TWO_THREADS {
        for _ in 0..10 {
            let [a, b, ..] = sources();
            let tally = Tally::default();
            let guard = build(a.clone(), b.clone()).subscribe_with(tally.clone());
            let start = Arc::new(Barrier::new(2));
            let threads = [a, b].map(|source| {
                let start = Arc::clone(&start);
                thread::spawn(move || {
                    start.wait();
                    (0..EACH).for_each(|n| source.next(n));
                    source.complete();
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            let values = u32::try_from(tally.log.values.load(Ordering::SeqCst)).unwrap();
            assert!((least..=most).contains(&values), "{name}: {values}");
            assert_eq!(tally.log.ends.load(Ordering::SeqCst), 1, "{name}");
            assert!(guard.is_closed(), "{name}");
            assert_eq!(Arc::strong_count(&tally.log), 1, "{name}");
        }
    }
}

#[test]
fn serialized_observer_is_called_by_one_thread_at_a_time() {
    let tally = Tally::default();
    let shared = Serialized::<u32, &'static str>::new(tally.clone());
    let threads = [0, 1].map(|_| {
        let mut mine = shared.clone();
        thread::spawn(move || (0..5_000).for_each(|n| mine.next(&n)))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(tally.log.values.load(Ordering::SeqCst), 10_000);
    let (mut one, mut other) = (shared.clone(), shared);
    one.complete();
    other.error(&"late");
    other.next(&1);
    assert!(other.is_closed());
    assert_eq!(tally.log.ends.load(Ordering::SeqCst), 1);
}

#[test]
fn stored_values_are_dropped_with_subscription() {
    let token = Arc::new(());
    let (a, b) = (
        ManualSource::<Arc<()>>::new(),
        ManualSource::<Arc<()>>::new(),
    );
    let chains = [
        a.clone().zip_with(b.clone(), |a, _| a).boxed(),
        a.clone()
            .combine_latest_with(b.clone(), |a, _| Arc::clone(a))
            .boxed(),
        a.clone().sample_when(b.clone()).boxed(),
        {
            let b = b.clone();
            a.clone()
                .concat_map(move |value| {
                    let value = Arc::clone(value);
                    b.clone().map(move |_| Arc::clone(&value))
                })
                .boxed()
        },
    ];
    for (at, chain) in chains.into_iter().enumerate() {
        let guard = chain.subscribe(|_| ());
        (0..3).for_each(|_| a.next(Arc::clone(&token)));
        assert!(Arc::strong_count(&token) > 1, "{at}: no value was stored");
        drop(guard);
        assert_eq!(Arc::strong_count(&token), 1, "{at}");
        assert_eq!((a.observers(), b.observers()), (0, 0), "{at}");
    }
}
