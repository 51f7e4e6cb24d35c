//! Features of single subjects: the current value, observers of one type, and virtual time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::policy::Policy;
use fanline::scheduler::VirtualTime;
use fanline::testing::{Recorder, complete, next};
use fanline::{
    AsyncSubject, BehaviorSubject, Clock, End, NoValue, Observer, Producer, Replay, ReplaySubject,
    Source, Subject, Time, replay_of, subject_of,
};

use super::rig::{FAULT, Fault};
use crate::manual_source::locked;

#[test]
fn behavior_subject_value_tracks_state() {
    let make = || BehaviorSubject::<u32, Fault>::with_error(7);
    let subject = make();
    assert_eq!(subject.value(), Ok(7));
    subject.next(8);
    assert_eq!(subject.value(), Ok(8));
    subject.next_slice(&[9, 10]);
    assert_eq!(subject.value(), Ok(10));
    // Inside an observer, the value that is being delivered is current.
    let inside: Arc<Mutex<Vec<u32>>> = Arc::default();
    let (record, handle) = (inside.clone(), subject.clone());
    let guard = subject.subscribe(move |value| {
        assert_eq!(handle.value(), Ok(*value));
        locked(&record).push(*value);
    });
    subject.next(11);
    drop(guard);
    assert_eq!(*locked(&inside), [10, 11]);
    // After completion the current value remains. After an error or `dispose` there is no current value.
    subject.complete();
    subject.next(12);
    assert_eq!(subject.value(), Ok(11));
    subject.dispose();
    assert_eq!(subject.value(), Err(NoValue::Disposed));
    let failed = make();
    failed.error(FAULT);
    assert_eq!(failed.value(), Err(NoValue::Failed(Arc::new(FAULT))));
    failed.next(1);
    assert_eq!(failed.value(), Err(NoValue::Failed(Arc::new(FAULT))));
    let disposed = make();
    disposed.dispose();
    assert_eq!(disposed.value(), Err(NoValue::Disposed));
}

#[test]
fn latest_and_len_agree_with_snapshot() {
    #[track_caller]
    fn check<P: Policy>(replay: Replay<P>, expected: usize) {
        let (mut tx, source) = Producer::<u32, Fault, P>::retaining(replay);
        let agree = |source: &Source<u32, Fault>| {
            let snapshot = source.snapshot();
            assert_eq!(source.len(), snapshot.len());
            assert_eq!(source.latest(), snapshot.last().copied());
            assert_eq!(
                source.with_latest(|value| value + 1),
                snapshot.last().map(|value| value + 1)
            );
            snapshot.len()
        };
        assert_eq!(agree(&source), 0);
        (0..10).for_each(|value| tx.next(value));
        assert_eq!(agree(&source), expected);
        let inside = source.clone();
        let guard = source.subscribe(move |_| {
            agree(&inside);
        });
        tx.next_slice(&[10, 11, 12]);
        drop(guard);
        tx.complete();
        agree(&source);
    }
    let hour = Duration::from_secs(3600);
    check(Replay::one(), 1);
    for count in [0, 1, 2, 5, 8] {
        check(Replay::many(count), count);
    }
    check(Replay::all(), 10);
    check(Replay::within(hour), 10);
    check(Replay::many_within(3, hour), 3);
}

#[test]
fn latest_of_other_subjects_and_expired_values() {
    let (mut tx, plain) = fanline::subject::<u32>();
    tx.next(1);
    assert_eq!((plain.latest(), plain.len()), (None, 0));
    let (mut tx, level) = fanline::behavior(1);
    tx.next(2);
    assert_eq!((level.latest(), level.len()), (Some(2), 1));
    tx.complete();
    assert_eq!((level.latest(), level.len()), (None, 0));
    let (mut tx, answer) = fanline::last_value();
    tx.next(1);
    assert_eq!((answer.latest(), answer.len()), (None, 0));
    tx.complete();
    assert_eq!((answer.latest(), answer.len()), (Some(1), 1));
    let time = VirtualTime::new();
    let minute = Duration::from_secs(60);
    let (mut tx, recent) = fanline::replay::<u32>(Replay::within(minute).clock(time.clone()));
    tx.next(1);
    time.advance_by(minute);
    assert_eq!((recent.latest(), recent.len()), (Some(1), 1));
    time.advance_by(minute);
    assert_eq!((recent.latest(), recent.len()), (None, 0));
}

/// A value that is being read stays in place, although later values would replace it.
#[test]
fn value_stays_while_with_latest_reads_it() {
    let (mut tx, text) = fanline::behavior("first".to_owned());
    let read = text.with_latest(|first| {
        (0..100).for_each(|number| tx.next(number.to_string()));
        (first.clone(), text.latest())
    });
    assert_eq!(read, Some(("first".to_owned(), Some("99".to_owned()))));
    let (mut tx, number) = fanline::behavior(1_u64);
    let read = number.with_latest(|first| {
        (2..100).for_each(|number| tx.next(number));
        *first
    });
    assert_eq!(
        (read, number.latest(), number.len()),
        (Some(1), Some(99), 1)
    );
}

#[test]
fn end_names_the_way_a_subject_ended() {
    let make = fanline::subject_with_error::<u32, Fault>;
    let (tx, source) = make();
    assert_eq!(source.end(), None);
    tx.complete();
    assert_eq!(source.end(), Some(End::Completed));
    let (tx, source) = make();
    tx.error(FAULT);
    assert_eq!(source.end(), Some(End::Failed(Arc::new(FAULT))));
    let (tx, source) = make();
    drop(tx);
    assert_eq!(source.end(), Some(End::Disposed));
}

#[test]
fn updates_of_all_threads_are_applied() {
    let sum = BehaviorSubject::new(0_u32);
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let record = seen.clone();
    sum.subscribe(move |value| locked(&record).push(*value))
        .detach();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..300).for_each(|_| sum.update(|sum| sum + 1)));
        }
    });
    assert_eq!(sum.value(), Ok(900));
    assert!(locked(&seen).iter().copied().eq(0..=900));
}

#[test]
fn update_by_an_observer_is_queued_and_after_the_end_does_nothing() {
    let level = BehaviorSubject::new(100);
    let again = level.clone();
    level
        .subscribe(move |value| {
            if *value < 10 {
                again.update(|value| value * 2);
            }
        })
        .detach();
    level.next(3);
    assert_eq!(level.value(), Ok(12));
    level.complete();
    level.update(|_| unreachable!("the subject has completed"));
    assert_eq!(level.value(), Ok(12));
}

#[test]
fn panic_of_an_update_emits_nothing() {
    let level = BehaviorSubject::new(1);
    let thrown = catch_unwind(AssertUnwindSafe(|| level.update(|_| panic!("no value"))));
    assert!(thrown.is_err());
    assert_eq!(level.with_value(|value| *value), Ok(1));
    level.update(|value| value + 1);
    assert_eq!(level.value(), Ok(2));
}

/// A clock whose cheap reading can be late by up to one tick, like that of the coarse clock.
#[derive(Clone)]
struct Ticking {
    time: VirtualTime,
    late: Arc<AtomicU64>,
}

impl Clock for Ticking {
    fn now(&self) -> Time {
        Time::from_nanos(self.late.load(Ordering::SeqCst))
    }

    fn now_exact(&self) -> Time {
        self.time.now()
    }

    fn granularity(&self) -> Duration {
        Duration::from_nanos(10)
    }
}

/// A value stays retained for the window plus at most one tick, however late the clock's reading is.
#[test]
fn late_clock_extends_window_by_at_most_one_tick() {
    for (age, retained) in [(100, true), (101, true), (109, true), (111, false)] {
        let time = VirtualTime::new();
        let late = Arc::new(AtomicU64::new(40));
        let clock = Ticking {
            time: time.clone(),
            late: late.clone(),
        };
        let subject = ReplaySubject::new(Replay::within(Duration::from_nanos(100)).clock(clock));
        time.advance_to(Time::from_nanos(49));
        // `trim` reads the exact time, here between two values of the same tick.
        subject.trim();
        subject.next(1);
        time.advance_to(Time::from_nanos(49 + age));
        assert_eq!(subject.snapshot() == [1], retained, "{age}");
    }
}

#[test]
fn windows_follow_virtual_time() {
    for (age, expected) in [(9, vec![1, 2]), (10, vec![1, 2]), (11, vec![2])] {
        let time = VirtualTime::new();
        let window = Duration::from_nanos(10);
        for subject in [
            ReplaySubject::new(Replay::within(window).clock(time.clone())),
            ReplaySubject::new(Replay::many_within(5, window).clock(time.clone())),
        ] {
            let begin = time.now();
            subject.next(1);
            time.advance_by(Duration::from_nanos(1));
            subject.next(2);
            time.advance_to(begin + Duration::from_nanos(age));
            let recorder = Recorder::new(&time);
            subject.subscribe_with(recorder.clone()).detach();
            assert_eq!(recorder.values(), expected);
            time.advance_to(begin + Duration::from_nanos(20));
            subject.complete();
            let late = Recorder::new(&time);
            subject.subscribe_with(late.clone()).detach();
            assert_eq!(late.events(), [complete(time.now().as_nanos())]);
            let seen = recorder.events();
            let replayed = begin.as_nanos() + age;
            assert_eq!(seen[0], next(replayed, expected[0]));
        }
    }
}

/// Subjects with observers of one type follow the same rules.
#[test]
fn observers_of_one_type_follow_the_rules() {
    struct Member {
        seen: Arc<Mutex<Vec<String>>>,
        name: char,
        calls_left: usize,
        panics_at: Option<u32>,
    }
    impl Observer<u32> for Member {
        fn next(&mut self, value: &u32) {
            locked(&self.seen).push(format!("{}{value}", self.name));
            self.calls_left -= 1;
            if self.panics_at == Some(*value) {
                super::script::throw();
            }
        }
        fn error(&mut self, error: &std::convert::Infallible) {
            match *error {}
        }
        fn complete(&mut self) {
            locked(&self.seen).push(format!("{}.", self.name));
        }
        fn is_closed(&self) -> bool {
            self.calls_left == 0
        }
    }
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let member = |name, calls_left, panics_at| Member {
        seen: seen.clone(),
        name,
        calls_left,
        panics_at,
    };
    let take = || std::mem::take(&mut *locked(&seen)).join(" ");
    let (mut tx, source) = subject_of::<u32, Member>();
    source.subscribe_with(member('A', 2, None)).detach();
    let guard = source.subscribe_with(member('B', 9, None));
    source.subscribe_with(member('C', 9, Some(2))).detach();
    assert_eq!(source.observer_count(), 3);
    tx.next(1);
    let thrown = catch_unwind(AssertUnwindSafe(|| tx.next(2)));
    assert!(thrown.is_err());
    assert_eq!(take(), "A1 B1 C1 A2 B2 C2");
    assert_eq!(source.observer_count(), 1);
    drop(guard);
    tx.next_slice(&[3, 4]);
    source.subscribe_with(member('D', 1, None)).detach();
    source.subscribe_with(member('E', 9, None)).detach();
    tx.next_slice(&[5, 6]);
    tx.complete();
    assert_eq!(take(), "D5 E5 E6 E.");
    source.subscribe_with(member('F', 9, None)).detach();
    assert_eq!(take(), "F.");
    let (mut tx, source) = replay_of::<u32, Member>(Replay::many(2));
    tx.next_slice(&[1, 2, 3]);
    source.subscribe_with(member('A', 1, None)).detach();
    source.subscribe_with(member('B', 9, None)).detach();
    tx.next(4);
    tx.complete();
    source.subscribe_with(member('C', 9, None)).detach();
    assert_eq!(take(), "A2 B2 B3 B4 B. C3 C4 C.");
    assert_eq!(Arc::strong_count(&seen), 1);
}

/// Rx users expect that `source.subscribe(subject)` works.
#[test]
fn subject_can_observe_another_source() {
    let history = ReplaySubject::with_error(Replay::all());
    let current = BehaviorSubject::with_error(0);
    let last = AsyncSubject::with_error();
    let (relay, relayed) = Producer::<u32, Fault, _>::retaining(Replay::many(2));
    let s = Subject::<u32, Fault>::with_error();
    s.subscribe_with(history.clone()).detach();
    s.subscribe_with(current.clone()).detach();
    s.subscribe_with(last.clone()).detach();
    s.subscribe_with(relay).detach();
    s.next(1);
    s.next_slice(&[2, 3]);
    assert_eq!(history.snapshot(), [1, 2, 3]);
    assert_eq!(current.value(), Ok(3));
    assert_eq!(relayed.snapshot(), [2, 3]);
    // An observer that has ended is removed with the next value.
    current.dispose();
    s.next(4);
    assert_eq!(s.observer_count(), 3);
    s.error(FAULT);
    assert!(history.has_ended() && relayed.has_ended());
    assert_eq!(last.blocking_wait(), Err(FAULT));
    let completed = AsyncSubject::new();
    let s = Subject::<u32>::new();
    s.subscribe_with(completed.clone()).detach();
    s.next(5);
    s.complete();
    assert_eq!(completed.snapshot(), [5]);
}
