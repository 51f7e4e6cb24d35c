//! Features of single subjects: the current value, observers of one type, and virtual time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::scheduler::VirtualTime;
use fanline::testing::{Recorder, complete, next};
use fanline::{
    AsyncSubject, BehaviorSubject, Clock, NoValue, Observer, Producer, Replay, ReplaySubject,
    Subject, Time, replay_of, subject_of,
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
    let thrown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tx.next(2)));
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
