//! Subjects for one thread, and observers that stay on their thread.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fanline::prelude::*;
use fanline::{
    Clock, LocalAsyncSubject, LocalBehaviorSubject, LocalReplaySubject, LocalSubject, NoValue,
    Replay, Time, observer,
};

/// The calls of all observers, in order; 0 stands for completion.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<(char, u32)>>>);

impl Log {
    fn push(&self, observer_name: char, value: u32) {
        self.0.borrow_mut().push((observer_name, value));
    }

    fn text(&self) -> String {
        let log = self.0.borrow();
        let words: Vec<String> = log
            .iter()
            .map(|(observer_name, value)| format!("{observer_name}{value}"))
            .collect();
        words.join(" ")
    }

    fn watch(&self, subject: &LocalSubject<u32>, observer_name: char) -> Guard {
        let (values, end) = (self.clone(), self.clone());
        subject.subscribe_with(
            observer(move |value: &u32| values.push(observer_name, *value))
                .on_complete(move || end.push(observer_name, 0)),
        )
    }
}

#[test]
fn nested_emission_is_delivered_after_current_value_to_all() {
    let (subject, log) = (LocalSubject::new(), Log::default());
    let (again, first) = (subject.clone(), log.clone());
    let _a = subject.subscribe(move |value: &u32| {
        first.push('A', *value);
        match value {
            1 => again.next(2),
            2 => again.complete(),
            _ => {}
        }
    });
    let _b = log.watch(&subject, 'B');
    subject.next(1);
    subject.next(9);
    assert_eq!(log.text(), "A1 B1 A2 B2 B0");
    assert!(subject.has_ended() && !subject.has_observers());
    let late = log.watch(&subject, 'C');
    assert!(late.is_closed());
    assert_eq!(log.text(), "A1 B1 A2 B2 B0 C0");
}

#[test]
fn leaving_during_emission_stops_calls_and_joining_starts_with_next_value() {
    let (subject, log) = (LocalSubject::<u32>::new(), Log::default());
    let later = Rc::new(RefCell::new(None));
    let (own, leaving, joining) = (log.clone(), later.clone(), subject.clone());
    let late_guards = Rc::new(RefCell::new(Vec::new()));
    let keep = late_guards.clone();
    let _a = subject.subscribe(move |value: &u32| {
        own.push('A', *value);
        drop(leaving.borrow_mut().take());
        if *value == 1 {
            keep.borrow_mut().push(own.watch(&joining, 'N'));
        }
    });
    *later.borrow_mut() = Some(log.watch(&subject, 'B'));
    let _c = log.watch(&subject, 'C');
    subject.next(1);
    assert_eq!(subject.observer_count(), 3);
    subject.next(2);
    assert_eq!(log.text(), "A1 C1 A2 C2 N2");
}

#[test]
fn closures_are_dropped_with_guard_or_subject() {
    let held = Rc::new(());
    let subject = LocalSubject::<u32>::new();
    let guards: Vec<Guard> = (0..100)
        .map(|_| {
            let held = held.clone();
            subject.subscribe(move |_| drop(held.clone()))
        })
        .collect();
    subject.next(1);
    assert_eq!(Rc::strong_count(&held), 101);
    let mut guards = guards;
    guards.truncate(30);
    assert_eq!(Rc::strong_count(&held), 31);
    drop(subject);
    assert_eq!(Rc::strong_count(&held), 1);
    assert!(guards.iter().all(Guard::is_closed));
}

#[test]
fn observer_that_unsubscribes_itself_is_dropped_by_emission() {
    let held = Rc::new(Cell::new(0));
    let subject = LocalSubject::<u32>::new();
    let own = Rc::new(RefCell::new(None));
    let (count, leaving) = (held.clone(), own.clone());
    *own.borrow_mut() = Some(subject.subscribe(move |_| {
        count.set(count.get() + 1);
        drop(leaving.borrow_mut().take());
    }));
    subject.next(1);
    subject.next(2);
    assert_eq!(held.get(), 1);
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn panicking_observer_is_removed_and_others_get_all_values() {
    let (subject, log) = (LocalSubject::<u32>::new(), Log::default());
    let _a = log.watch(&subject, 'A');
    let bad = subject.subscribe(|value| assert!(*value != 2, "two"));
    let _c = log.watch(&subject, 'C');
    subject.next(1);
    let thrown = catch_unwind(AssertUnwindSafe(|| subject.next_slice(&[2, 3])));
    assert!(thrown.is_err() && bad.is_closed());
    subject.next(4);
    assert_eq!(log.text(), "A1 C1 A2 A3 C2 C3 A4 C4");
}

#[test]
fn dispose_inside_observer_stops_emission() {
    let (subject, log) = (LocalSubject::<u32>::new(), Log::default());
    let disposing = subject.clone();
    let _a = subject.subscribe(move |_| disposing.dispose());
    let b = log.watch(&subject, 'B');
    subject.next(1);
    subject.next(2);
    assert_eq!(log.text(), "");
    assert!(b.is_closed() && subject.has_ended());
}

#[test]
fn subscription_in_destructor_gets_next_value() {
    struct ResubscribeOnDrop(LocalSubject<u32>, Log, Rc<RefCell<Vec<Guard>>>);
    impl Drop for ResubscribeOnDrop {
        fn drop(&mut self) {
            self.2.borrow_mut().push(self.1.watch(&self.0, 'R'));
        }
    }
    let (subject, log) = (LocalSubject::new(), Log::default());
    let kept = Rc::new(RefCell::new(Vec::new()));
    let resubscribes = ResubscribeOnDrop(subject.clone(), log.clone(), kept.clone());
    subject
        .clone()
        .into_observable()
        .subscribe_local(|_| {})
        .detach();
    let own = Rc::new(RefCell::new(None));
    let leaving = own.clone();
    *own.borrow_mut() = Some(subject.subscribe(move |_| {
        let _ = &resubscribes;
        drop(leaving.borrow_mut().take());
    }));
    subject.next(1);
    subject.next(2);
    assert_eq!(log.text(), "R2");
}

#[test]
fn guard_dropped_on_another_thread_takes_effect_at_next_emission() {
    let (subject, log) = (LocalSubject::<u32>::new(), Log::default());
    let guard = log.watch(&subject, 'A');
    let _b = log.watch(&subject, 'B');
    subject.next(1);
    std::thread::spawn(move || drop(guard)).join().unwrap();
    subject.next(2);
    assert_eq!(log.text(), "A1 B1 B2");
    assert_eq!(subject.observer_count(), 1);
}

/// Regression: on another thread, `is_closed` of a guard returned false forever, even after the subject had
/// ended.
#[test]
fn guard_on_another_thread_is_closed_after_end() {
    let is_closed = |guard: Guard| std::thread::spawn(move || guard.is_closed()).join();
    let ends: [fn(&LocalSubject<u32>); 3] = [
        |subject| subject.complete(),
        |subject| subject.dispose(),
        |subject| subject.next(1),
    ];
    for (end, closed) in ends.into_iter().zip([true, true, false]) {
        let subject = LocalSubject::new();
        let guard = subject.subscribe(|_| {});
        end(&subject);
        assert_eq!(is_closed(guard).unwrap(), closed);
    }
}

#[test]
fn flavors_take_values_and_observers_that_are_not_send() {
    let values = [1, 2, 3].map(Rc::new);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sink = || {
        let seen = seen.clone();
        move |value: &Rc<u32>| seen.borrow_mut().push(**value)
    };
    let behavior = LocalBehaviorSubject::new(values[0].clone());
    let last = LocalAsyncSubject::new();
    let replay = LocalReplaySubject::new(Replay::many(2));
    for value in &values {
        behavior.next(value.clone());
        last.next(value.clone());
        replay.next(value.clone());
    }
    last.complete();
    // The array, the current value, the last value, and the newest two values.
    assert_eq!(values.each_ref().map(Rc::strong_count), [1, 2, 4]);
    let mut expected = Vec::new();
    for (guard, delivered) in [
        (behavior.subscribe(sink()), &[3][..]),
        (last.subscribe(sink()), &[3]),
        (replay.subscribe(sink()), &[2, 3]),
    ] {
        guard.detach();
        expected.extend(delivered);
    }
    assert_eq!(*seen.borrow(), expected);
    drop((behavior, last, replay));
    assert_eq!(values.each_ref().map(Rc::strong_count), [1, 1, 1]);
    assert_eq!(Rc::strong_count(&seen), 1);
}

#[test]
fn current_value_tracks_state() {
    let level = LocalBehaviorSubject::<u32, &str>::with_error(7);
    assert_eq!((level.value(), level.latest()), (Ok(7), Some(7)));
    let (own, inside) = (level.clone(), Rc::new(RefCell::new(Vec::new())));
    let record = inside.clone();
    let guard = level.subscribe(move |value| {
        assert_eq!(own.value(), Ok(*value));
        record.borrow_mut().push(*value);
        if *value < 10 {
            own.update(|value| value + 1);
        }
    });
    assert_eq!(*inside.borrow(), [7, 8, 9, 10]);
    drop(guard);
    level.complete();
    level.next(11);
    assert_eq!((level.value(), level.latest()), (Ok(10), None));
    level.dispose();
    assert_eq!(level.value(), Err(NoValue::Disposed));
    let failed = LocalBehaviorSubject::<u32, &str>::with_error(1);
    failed.error("fault");
    assert_eq!(failed.value(), Err(NoValue::Failed(Arc::new("fault"))));
}

#[test]
fn panicking_update_emits_nothing() {
    let level = LocalBehaviorSubject::new(1);
    let thrown = catch_unwind(AssertUnwindSafe(|| level.update(|_| panic!("update"))));
    assert!(thrown.is_err());
    level.update(|value| value + 1);
    assert_eq!(level.value(), Ok(2));
}

#[test]
fn values_emitted_and_disposals_while_values_are_read_come_afterward() {
    let history = LocalReplaySubject::<String>::new(Replay::all());
    history.next("one".to_owned());
    let again = history.clone();
    let seen = history.with_latest(|value| {
        again.next("two".to_owned());
        assert_eq!(again.snapshot(), ["one"]);
        value.clone()
    });
    assert_eq!(seen.as_deref(), Some("one"));
    assert_eq!(history.snapshot(), ["one", "two"]);
    let disposed = history.with_latest(|value| {
        again.dispose();
        value.clone()
    });
    assert_eq!(disposed.as_deref(), Some("two"));
    assert!(history.has_ended() && history.snapshot().is_empty());
}

/// A clock that disposes of the subject whose window it measures.
#[test]
fn disposal_by_the_clock_stops_the_emission() {
    thread_local! {
        static SUBJECT: RefCell<Option<LocalReplaySubject<Rc<u32>>>> = const { RefCell::new(None) };
    }
    struct Disposes;
    impl Clock for Disposes {
        fn now(&self) -> Time {
            let subject = SUBJECT.take();
            if let Some(subject) = subject {
                subject.dispose();
            }
            Time::ZERO
        }
    }
    let subject = LocalReplaySubject::new(Replay::within(Duration::MAX).clock(Disposes));
    let value = Rc::new(1);
    subject.next(value.clone());
    assert_eq!(Rc::strong_count(&value), 2);
    SUBJECT.set(Some(subject.clone()));
    subject.next(value.clone());
    assert_eq!(Rc::strong_count(&value), 1);
    assert!(subject.has_ended());
}

#[test]
fn chain_from_a_replay_subject_gets_retained_values() {
    let (subject, sum) = (
        LocalReplaySubject::new(Replay::many(2)),
        Rc::new(Cell::new(0)),
    );
    subject.next_slice(&[1, 2, 3]);
    let total = sum.clone();
    let guard = subject
        .clone()
        .map(|value: &u32| value * 10)
        .subscribe_local(move |value| total.set(total.get() + value));
    assert_eq!(sum.get(), 50);
    subject.next(4);
    assert_eq!(sum.get(), 90);
    drop(guard);
    assert!(!subject.has_observers());
}
