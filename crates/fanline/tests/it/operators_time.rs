//! Operators that wait, tested on virtual time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use fanline::operators::{Backoff, Edge, interval_on, timer_on};
use fanline::scheduler::{NewThread, VirtualTime};
use fanline::{BoxObservable, CombineExt, Guard, Observable, ObservableExt, TimeExt};

use crate::manual_source::{Cold, Log, ManualSource, Sources, act, sources, without_dot};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs scripts like `manual_source::check`. In a script, `+5` advances the clock by 5 ms. The log contains
/// the time of each value: `7@5` is the value 7 after 5 ms.
#[track_caller]
pub(crate) fn check<T: std::fmt::Debug + Send + 'static>(
    build: impl Fn(Sources, VirtualTime) -> BoxObservable<T, &'static str>,
    table: &[(&str, &str)],
) {
    for (script, expected) in table {
        let sources = sources();
        let time = VirtualTime::new();
        let log = Log::default();
        let clock = time.clone();
        let stamped = build(sources.clone(), time.clone()).map(move |value| {
            let value = format!("{value:?}").replace(' ', "");
            Verbatim(format!("{value}@{}", clock.now().as_nanos() / 1_000_000))
        });
        let mut guard = Some(stamped.subscribe_with(log.clone()));
        for word in script.split_whitespace() {
            if word == "!" {
                guard = None;
            } else if let Some(millis) = word.strip_prefix('+') {
                time.advance_by(ms(millis.parse().expect("a number")));
            } else {
                act(&sources, word);
            }
        }
        let (expected, is_lost) = without_dot(expected);
        assert_eq!(log.text(), expected, "{script}");
        if log.has_ended() || guard.is_none() || is_lost {
            let left: Vec<usize> = sources.iter().map(ManualSource::observers).collect();
            assert_eq!(left, [0; 4], "observers left after {script}");
            assert_eq!(time.queued(), 0, "an action is scheduled after {script}");
            assert_eq!(
                log.handles(),
                1,
                "the observer was not dropped after {script}"
            );
        }
    }
}

/// A string whose `Debug` output has no quotes.
struct Verbatim(String);

impl std::fmt::Debug for Verbatim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[test]
fn delay() {
    check(
        |[a, ..], time| a.delay_on(ms(10), time).boxed(),
        &[
            ("a1 +4 a2 +5 +1 +4", "1@10 2@14"),
            ("a1 a2 a| +9 +1", "1@10 2@10 |"),
            ("a1 +5 a| +5 +5", "1@10 |"),
            ("a1 a# +10", "#a"),
            ("a1 +5 ! +5", ""),
            ("a1 +10 a2 +10 a3 +3 !", "1@10 2@20"),
        ],
    );
}

#[test]
fn debounce() {
    check(
        |[a, ..], time| a.debounce_on(ms(10), time).boxed(),
        &[
            ("a1 +10 a2 +9 a3 +9 +1 +20", "1@10 3@29"),
            ("a1 +5 a|", "1@5 |"),
            ("a|", "|"),
            ("a1 +5 a#", "#a"),
            ("a1 +5 ! +5", ""),
        ],
    );
}

#[test]
fn throttle() {
    check(
        |[a, ..], time| a.throttle_on(ms(10), Edge::Leading, time).boxed(),
        &[
            ("a1 a2 +9 a3 +1 a4 +10 +5 a5", "1@0 4@10 5@25"),
            ("a1 a2 a|", "1@0 |"),
            ("a1 a#", "1@0 #a"),
            ("a1 !", "1@0"),
        ],
    );
    check(
        |[a, ..], time| a.throttle_on(ms(10), Edge::Trailing, time).boxed(),
        &[
            ("a1 a2 +9 a3 +1 a4 +10 +5 a5 +10", "3@10 4@20 5@35"),
            ("a1 a2 +5 a|", "2@5 |"),
            ("a1 a#", "#a"),
            ("a1 ! +10", ""),
        ],
    );
    check(
        |[a, ..], time| a.throttle_on(ms(10), Edge::Both, time).boxed(),
        &[
            (
                "a1 a2 a3 +10 a4 +10 +10 a5 +10 a6",
                "1@0 3@10 4@20 5@30 6@40",
            ),
            ("a1 +10 +1 a2 +10 a3 a4 a|", "1@0 2@11 3@21 4@21 |"),
            ("a1 a2 a|", "1@0 2@0 |"),
        ],
    );
}

#[test]
fn timeout() {
    check(
        |[a, ..], time| a.timeout_on(ms(10), time, || "late").boxed(),
        &[
            ("+9 a1 +9 a2 +9 +1 a3", "1@9 2@18 #late"),
            ("+10", "#late"),
            ("+9 a| +9", "|"),
            ("a# +10", "#a"),
            ("a1 ! +20", "1@0"),
        ],
    );
    check(
        |[a, b, ..], time| {
            a.timeout_on(ms(10), time, || "late")
                .catch(move |_| b)
                .boxed()
        },
        &[("a1 +10 b2 b|", "1@0 2@10 |")],
    );
}

#[test]
fn sample() {
    check(
        |[a, ..], time| a.sample_on(ms(10), time).boxed(),
        &[
            ("a1 +5 a2 +5 +10 a3 +10", "2@10 3@30"),
            ("a1 a|", "|"),
            ("a1 +10 a2 a#", "1@10 #a"),
            ("a1 ! +10", ""),
        ],
    );
}

/// Regression: the producer was dropped, but the timer of `sample` repeated forever. It had nothing to emit,
/// and kept the observer alive.
#[test]
fn dropped_source_stops_repeating_timers() {
    check(
        |[a, ..], time| a.sample_on(ms(10), time).boxed(),
        &[("a1 +10 a2 a-", "1@10 .")],
    );
    check(
        |[a, ..], time| a.buffer_time_on(ms(10), time).boxed(),
        &[("a1 +10 +10 a2 a-", "[1]@10 []@20 .")],
    );
    check(
        |[a, ..], time| a.buffer_time_or_count_on(ms(10), 2, time).boxed(),
        &[("a1 a2 a3 a-", "[1,2]@0 .")],
    );
    check(
        |[a, ..], time| {
            a.window_time_on(ms(10), time)
                .concat_map(Clone::clone)
                .boxed()
        },
        &[("a1 +10 a2 a-", "1@0 2@10 .")],
    );
    // Delayed values are still delivered.
    check(
        |[a, ..], time| a.delay_on(ms(10), time).boxed(),
        &[("a1 a- +10", "1@10 .")],
    );
    check(
        |[a, ..], time| a.debounce_on(ms(10), time).boxed(),
        &[("a1 a- +10", "1@10 .")],
    );
    check(
        |[a, ..], time| a.throttle_on(ms(10), Edge::Trailing, time).boxed(),
        &[("a1 a2 a- +10", "2@10 .")],
    );
    check(
        |[a, ..], time| a.timeout_on(ms(10), time, || "late").boxed(),
        &[("a1 a- +10", "1@0 #late")],
    );
}

#[test]
fn delay_subscription() {
    check(
        |[a, ..], time| a.delay_subscription_on(ms(10), time).boxed(),
        &[
            ("a1 +10 a2 a|", "2@10 |"),
            ("+10 a#", "#a"),
            ("+5 ! +5", ""),
            ("+10 a1 ! a2", "1@10"),
        ],
    );
}

#[test]
fn retry_with() {
    let backoff = Backoff::exponential(ms(10))
        .max_delay(ms(30))
        .max_attempts(3);
    check(
        move |[a, ..], time| a.retry_with_on(backoff, time).boxed(),
        &[
            ("a# +9 a1 +1 a2 a# +20 a3 a# +30 a4 a#", "2@10 3@30 4@60 #a"),
            ("a1 a# +10 a|", "1@0 |"),
            ("a# ! +10", ""),
        ],
    );
    let backoff = Backoff::constant(ms(10)).max_attempts(1).reset_on_value();
    check(
        move |[a, ..], time| a.retry_with_on(backoff, time).boxed(),
        &[("a# +10 a1 a# +10 a2 a# +10 a#", "1@10 2@20 #a")],
    );
    let time = VirtualTime::new();
    let failing = Cold::<u32>::new([], Some(Err("no")));
    let log = Log::default();
    let guard = failing
        .retry_with_on(Backoff::constant(ms(0)).max_attempts(10_000), time.clone())
        .subscribe_with(log.clone());
    for _ in 0..10_000 {
        time.advance_by(ms(0));
    }
    assert_eq!(log.text(), "#no");
    drop(guard);
}

#[test]
fn interval_repeats_and_timer_emits_once() {
    check(
        |_, time| interval_on(ms(10), time).with_error_type().boxed(),
        &[("+9 +1 +20 ! +10", "0@10 1@20 2@30")],
    );
    check(
        |_, time| interval_on(ms(10), time).take(2).with_error_type().boxed(),
        &[("+30", "0@10 1@20 |")],
    );
    check(
        |_, time| timer_on(ms(10), time).with_error_type().boxed(),
        &[("+9 +1", "0@10 |"), ("+5 ! +5", "")],
    );
}

#[test]
fn moving_deadline_uses_one_action() {
    let time = VirtualTime::new();
    let [a, ..] = sources();
    let guard = a
        .clone()
        .debounce_on(ms(10), time.clone())
        .subscribe(|_| ());
    for value in 0..100 {
        a.next(value);
    }
    assert_eq!(time.queued(), 1);
    drop(guard);
    assert_eq!(time.queued(), 0);
}

#[test]
fn delayed_values_are_dropped_with_subscription() {
    type Build = fn(ManualSource<Arc<()>>, VirtualTime) -> BoxObservable<Arc<()>, &'static str>;
    let table: [Build; 4] = [
        |a, time| a.delay_on(ms(5), time).boxed(),
        |a, time| a.debounce_on(ms(5), time).boxed(),
        |a, time| a.throttle_on(ms(5), Edge::Trailing, time).boxed(),
        |a, time| a.sample_on(ms(5), time).boxed(),
    ];
    for (at, build) in table.into_iter().enumerate() {
        let token = Arc::new(());
        let time = VirtualTime::new();
        let source = ManualSource::new();
        let guard: Guard = build(source.clone(), time.clone()).subscribe(|_| ());
        source.next(Arc::clone(&token));
        assert_eq!(Arc::strong_count(&token), 2, "{at}");
        drop(guard);
        assert_eq!(Arc::strong_count(&token), 1, "{at}");
        assert_eq!(time.queued(), 0, "{at}");
    }
}

#[test]
fn flat_map_on_subscribes_inners_on_scheduler() {
    let time = VirtualTime::new();
    let sources = sources();
    let log = Log::default();
    let (inners, scheduler) = (sources.clone(), time.clone());
    let guard = sources[0]
        .clone()
        .flat_map_on(scheduler, 2, move |&at| {
            inners[usize::try_from(at).expect("0 to 3")].clone()
        })
        .subscribe_with(log.clone());
    (1..4).for_each(|at| sources[0].next(at));
    assert_eq!(time.queued(), 2, "two at a time, on the scheduler");
    time.advance_by(ms(0));
    let subscribed =
        |sources: &Sources| -> Vec<usize> { sources.iter().map(ManualSource::observers).collect() };
    assert_eq!(subscribed(&sources), [1, 1, 1, 0]);
    sources[1].next(10);
    sources[1].complete();
    time.advance_by(ms(0));
    sources[3].next(30);
    assert_eq!(subscribed(&sources), [1, 0, 1, 1]);
    sources[0].next(1);
    drop(guard);
    assert_eq!(subscribed(&sources), [0; 4]);
    assert_eq!(log.text(), "10 30");
    assert_eq!(log.handles(), 1);
}

/// `unsubscribe_and_wait` must also wait for an emission that a timer caused, although no source is emitting.
/// So the scheduled action must stay registered until it has returned.
#[test]
fn unsubscribe_and_wait_waits_for_alarm_emission() {
    let (entered, inside) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let done = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&done);
    let subject = fanline::Subject::<u32>::new();
    let guard = subject
        .clone()
        .debounce_on(ms(1), NewThread)
        .subscribe(move |_| {
            entered.send(()).unwrap();
            released.recv().unwrap();
            over.store(true, Ordering::SeqCst);
        });
    // If the timer goes off before `next` returns, the emitting thread calls the observer, so that is another thread.
    let emitter = subject.clone();
    let emitter = std::thread::spawn(move || emitter.next(1));
    inside.recv().unwrap();
    let waiter = std::thread::spawn(move || {
        guard.unsubscribe_and_wait();
        done.load(Ordering::SeqCst)
    });
    // Give the waiting thread a chance to return too early.
    while subject.has_observers() {
        std::thread::yield_now();
    }
    release.send(()).unwrap();
    assert!(
        waiter.join().unwrap(),
        "returned while the observer was called"
    );
    emitter.join().unwrap();
}
