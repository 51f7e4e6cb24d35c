//! Tests with many threads. The checks hold in every interleaving, and do not depend on speed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use fanline::{Guard, Observer};

use super::rig::{Emit, Fault, Flavor, Form, Rig, Value};
use crate::manual_source::locked;

/// A value that is counted in memory across all threads.
#[derive(Debug)]
struct Tracked {
    number: u32,
    text: String,
    _token: Arc<()>,
}

static TOKEN: Mutex<Option<Arc<()>>> = Mutex::new(None);

fn token() -> Arc<()> {
    locked(&TOKEN).get_or_insert_with(Arc::default).clone()
}

impl Value for Tracked {
    fn of(number: u32) -> Self {
        Self {
            number,
            text: number.to_string(),
            _token: token(),
        }
    }

    fn number(&self) -> u32 {
        assert_eq!(self.text, self.number.to_string());
        self.number
    }

    fn alive() -> Option<i64> {
        None
    }
}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        Self::of(self.number())
    }
}

/// Checks the order of values, and records the first value and the number of ends.
#[derive(Default)]
struct Record {
    first: Option<u32>,
    count: u32,
    ends: u32,
    wrong: Option<String>,
}

struct Follower {
    record: Arc<Mutex<Record>>,
    /// Number of values after which the observer yields.
    slow: Option<u32>,
    closes_after: Option<u32>,
    busy: AtomicBool,
}

impl<T: Value> Observer<T, Fault> for Follower {
    fn next(&mut self, value: &T) {
        assert!(
            !self.busy.swap(true, Ordering::Relaxed),
            "two calls at once"
        );
        let number = value.number();
        let mut record = locked(&self.record);
        let first = *record.first.get_or_insert(number);
        if number != first + record.count || record.ends > 0 {
            let wrong = format!("{number} after {} from {first}", record.count);
            record.wrong.get_or_insert(wrong);
        }
        record.count += 1;
        let slow = self
            .slow
            .is_some_and(|every| record.count.is_multiple_of(every));
        drop(record);
        if slow {
            thread::yield_now();
        }
        self.busy.store(false, Ordering::Relaxed);
    }

    fn error(&mut self, _: &Fault) {}

    fn complete(&mut self) {
        locked(&self.record).ends += 1;
    }

    fn is_closed(&self) -> bool {
        self.closes_after
            .is_some_and(|count| locked(&self.record).count >= count)
    }
}

/// The values that a subscriber must have received when the subject has completed.
#[derive(Clone, Copy)]
enum Expected {
    /// All values, from 0.
    All,
    /// The subscriber receives all values from its subscription on. Contains the smallest number of values
    /// that it must receive.
    Suffix(u32),
    /// Only the last value.
    Last,
}

// Miri executes a program 1,000 times slower.
const EMITTED: u32 = if cfg!(miri) { 60 } else { 20_000 };
/// Number of values in tests whose values are slow to create and check.
const EMITTED_TRACKED: u32 = if cfg!(miri) { 30 } else { 4_000 };
const SUBSCRIBERS: u32 = if cfg!(miri) { 12 } else { 600 };

/// The record of a subscriber, the number of values after which it closes, and its guard unless the guard was
/// dropped.
type Followed = (Arc<Mutex<Record>>, Option<u32>, Option<Guard>);

#[expect(clippy::too_many_lines, reason = "one sequence of steps")]
fn check_exactly_once<T: Value>(
    form: Form,
    flavor: Flavor,
    expected: Expected,
    emitted: u32,
    slices: bool,
) {
    let Rig {
        mut emit, source, ..
    } = Rig::<T>::new(form, flavor);
    let over = Arc::new(AtomicBool::new(false));
    let emitter = {
        let over = over.clone();
        thread::spawn(move || {
            emit_all(&mut *emit, emitted, slices);
            over.store(true, Ordering::SeqCst);
            emit
        })
    };
    let subscriber = |share: u32| {
        let source = source.clone();
        thread::spawn(move || {
            let mut followed: Vec<Followed> = Vec::new();
            for number in 0..SUBSCRIBERS {
                let record = Arc::new(Mutex::new(Record::default()));
                let closes_after = (number % 7 == share).then_some(number % 50 + 1);
                let follower = Follower {
                    record: record.clone(),
                    slow: (number % 5 == 0).then_some(97),
                    closes_after,
                    busy: AtomicBool::new(false),
                };
                let guard = source.subscribe_with(follower);
                followed.push((record, closes_after, Some(guard)));
                // Some subscribers leave again. This bounds the number of subscribers, and so the time of the
                // test.
                if number % 3 != 0 {
                    let leaving = followed.len() / 2;
                    followed[leaving].2 = None;
                }
                if number % 64 == 0 {
                    thread::yield_now();
                }
            }
            followed
        })
    };
    let subscribers = [subscriber(0), subscriber(3)];
    let followed: Vec<_> = subscribers
        .into_iter()
        .flat_map(|thread| thread.join().expect("subscribers do not panic"))
        .collect();
    let emit = emitter.join().expect("the emitter panicked");
    assert_eq!(source.observer_count(), 0);
    for (record, closes_after, guard) in &followed {
        let record = locked(record);
        let about = format!(
            "{form:?} {flavor:?}: {} from {:?}, {} ends",
            record.count, record.first, record.ends
        );
        assert_eq!(record.wrong, None, "{about}");
        let is_whole = guard.is_some() && closes_after.is_none();
        if let Expected::All = expected {
            assert!(record.first.is_none_or(|first| first == 0), "{about}");
        }
        if !is_whole {
            assert!(
                closes_after.is_none_or(|most| record.count <= most),
                "{about}"
            );
            continue;
        }
        assert_eq!(record.ends, 1, "{about}");
        match expected {
            Expected::All => assert_eq!(record.count, emitted, "{about}"),
            Expected::Last => assert_eq!(
                (record.first, record.count),
                (Some(emitted - 1), 1),
                "{about}"
            ),
            Expected::Suffix(least) => {
                assert!(record.count >= least, "{about}");
                if let Some(first) = record.first {
                    assert_eq!(first + record.count, emitted, "{about}");
                }
            }
        }
    }
    drop((emit, source, followed));
}

fn emit_all<T: Value>(emit: &mut dyn Emit<T>, emitted: u32, slices: bool) {
    let mut number = 0;
    while number < emitted {
        if slices && number % 3 == 1 {
            let until = (number + 1 + number % 17).min(emitted);
            let values: Vec<T> = (number..until).map(T::of).collect();
            emit.slice(&values);
            number = until;
        } else {
            emit.next(T::of(number));
            number += 1;
        }
    }
    emit.complete();
}

const RINGS: [(Flavor, Expected); 8] = [
    (Flavor::Publish, Expected::Suffix(0)),
    (Flavor::Async, Expected::Last),
    (Flavor::All, Expected::All),
    (Flavor::One, Expected::Suffix(1)),
    (Flavor::Many(0), Expected::Suffix(0)),
    (Flavor::Many(5), Expected::Suffix(1)),
    (Flavor::Within(10, false), Expected::All),
    (Flavor::ManyWithin(100, 10, false), Expected::Suffix(1)),
];

fn check_each_flavor<T: Value>(form: Form) {
    for (flavor, expected) in RINGS {
        // With these flavors, even the last subscriber may join before the first value. Then nothing is
        // replayed to it.
        for slices in [false, true] {
            let expected = match expected {
                Expected::Suffix(_) => Expected::Suffix(0),
                other => other,
            };
            check_exactly_once::<T>(form, flavor, expected, EMITTED, slices);
        }
    }
}

#[test]
fn exclusive_subject_delivers_exactly_once() {
    check_each_flavor::<u32>(Form::Exclusive);
}

#[test]
fn shared_subject_delivers_exactly_once() {
    check_each_flavor::<u32>(Form::Shared);
}

#[test]
fn values_with_destructors_are_delivered_and_dropped_exactly_once() {
    for form in super::rig::FORMS {
        for (flavor, expected) in RINGS {
            let expected = match expected {
                Expected::Suffix(_) => Expected::Suffix(0),
                other => other,
            };
            check_exactly_once::<Tracked>(form, flavor, expected, EMITTED_TRACKED, false);
        }
    }
    assert_eq!(Arc::strong_count(&token()), 2, "each value is dropped once");
}

/// With three emitters, the order of each emitter's values is preserved, and all observers see the same
/// order.
fn check_many_emitters(flavor: Flavor) {
    const EACH: u32 = if cfg!(miri) { 60 } else { 8_000 };
    let Rig { emit, source, .. } = Rig::<u32>::new(Form::Shared, flavor);
    let records: Vec<Arc<Mutex<Vec<u32>>>> = (0..3).map(|_| Arc::default()).collect();
    let guards: Vec<Guard> = records
        .iter()
        .map(|record| {
            let record = record.clone();
            source.subscribe(move |number| locked(&record).push(*number))
        })
        .collect();
    let emitters: Vec<_> = (0..3u32)
        .map(|emitter| {
            let mut emit = emit.another().expect("shared");
            thread::spawn(move || {
                for number in 0..EACH {
                    let value = emitter * 1_000_000 + number;
                    if number % 11 == 0 {
                        emit.slice(&[value]);
                    } else {
                        emit.next(value);
                    }
                }
            })
        })
        .collect();
    let late: Arc<Mutex<Vec<u32>>> = Arc::default();
    let recorded = late.clone();
    let late_guard = source.subscribe(move |number| locked(&recorded).push(*number));
    for emitter in emitters {
        emitter.join().expect("an emitter panicked");
    }
    let all = locked(&records[0]).clone();
    assert_eq!(all.len(), 3 * EACH as usize, "{flavor:?}");
    for record in &records {
        assert_eq!(*locked(record), all, "{flavor:?}");
    }
    for emitter in 0..3 {
        let own = all.iter().filter(|number| **number / 1_000_000 == emitter);
        assert!(
            own.map(|number| number % 1_000_000).eq(0..EACH),
            "{flavor:?}"
        );
    }
    assert!(all.ends_with(&locked(&late)), "{flavor:?}");
    drop((guards, late_guard));
}

#[test]
fn observers_see_one_order_of_many_emitters() {
    for flavor in [
        Flavor::Publish,
        Flavor::All,
        Flavor::Many(5),
        Flavor::Within(10, false),
    ] {
        check_many_emitters(flavor);
    }
}

/// An unsubscribed observer gets no later emission, even if many observers are removed at the end of one
/// emission. Regression: such an observer was marked as subscribed again when the next observer left.
#[test]
fn unsubscribed_observer_is_never_called_again() {
    const LEAVERS: usize = 64;
    for form in super::rig::FORMS {
        let Rig {
            mut emit, source, ..
        } = Rig::<u32>::new(form, Flavor::Publish);
        let stop = Arc::new(AtomicBool::new(false));
        let emitted = Arc::new(AtomicUsize::new(0));
        let emitter = {
            let (stop, emitted) = (stop.clone(), emitted.clone());
            thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    emit.next(0);
                    emitted.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        for _ in 0..if cfg!(miri) { 3 } else { 150 } {
            let calls: Vec<Arc<AtomicUsize>> = (0..LEAVERS).map(|_| Arc::default()).collect();
            let mut guards: Vec<Option<Guard>> = calls
                .iter()
                .map(|calls| {
                    let calls = calls.clone();
                    Some(source.subscribe(move |_| {
                        calls.fetch_add(1, Ordering::SeqCst);
                    }))
                })
                .collect();
            // Remove every second observer, so that the others move when the list is compacted.
            let leave = |guards: &mut Vec<Option<Guard>>, from: usize| {
                guards
                    .iter_mut()
                    .skip(from)
                    .step_by(2)
                    .for_each(|guard| *guard = None);
            };
            leave(&mut guards, 0);
            wait_for_two(&emitted);
            let after: Vec<usize> = calls.iter().map(|c| c.load(Ordering::SeqCst)).collect();
            leave(&mut guards, 1);
            wait_for_two(&emitted);
            for index in (0..LEAVERS).step_by(2) {
                assert_eq!(
                    calls[index].load(Ordering::SeqCst),
                    after[index],
                    "{form:?}"
                );
            }
        }
        stop.store(true, Ordering::SeqCst);
        emitter.join().expect("the emitter panicked");
        assert_eq!(source.observer_count(), 0);
    }
}

fn wait_for_two(emitted: &AtomicUsize) {
    let until = emitted.load(Ordering::SeqCst) + 2;
    while emitted.load(Ordering::SeqCst) < until {
        thread::yield_now();
    }
}

/// One thread disposes of the subject while another emits or ends it. After that, no observer is in memory,
/// and none is called.
#[test]
fn dispose_during_emission_drops_all_observers() {
    for round in 0..if cfg!(miri) { 20 } else { 600 } {
        let Rig {
            mut emit, source, ..
        } = Rig::<u32>::new(Form::Shared, Flavor::Many(5));
        let token = Arc::new(());
        for _ in 0..3 {
            let token = token.clone();
            source
                .subscribe(move |_| {
                    let _ = &token;
                })
                .detach();
        }
        let mut other = emit.another().expect("shared");
        let emitter = thread::spawn(move || {
            for number in 0..round % 40 {
                emit.next(number);
            }
            if round % 2 == 0 {
                emit.complete();
            }
            emit
        });
        for _ in 0..round % 7 {
            thread::yield_now();
        }
        other.dispose();
        let mut emit = emitter.join().expect("the emitter panicked");
        emit.next(0);
        assert_eq!(Arc::strong_count(&token), 1, "round {round}");
        assert!(source.has_ended());
        let late = Arc::new(AtomicUsize::new(0));
        let calls = late.clone();
        let observer = fanline::observer(|_: &u32| {}).on_complete(move || {
            calls.fetch_add(1, Ordering::SeqCst);
        });
        let guard = source.subscribe_with(observer);
        assert!(guard.is_closed());
        assert_eq!(late.load(Ordering::SeqCst), 0, "round {round}");
    }
}
