//! User-defined destructors, clones, and clocks. They may run any code and panic, and must never run while
//! the subject is locked. If one does, its test deadlocks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::{
    AsyncSubject, BehaviorSubject, Clock, Guard, LocalSubject, Observer, Producer, Replay,
    ReplaySubject, Source, Subject, Time,
};

use super::rig::{FORMS, Fault, Flavor, Form, Rig};
use super::script::throw;
use crate::manual_source::locked;

/// Calls a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn recorder() -> (Arc<Mutex<Vec<u32>>>, impl FnMut(&u32) + Send + 'static) {
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let recorded = seen.clone();
    (seen, move |value: &u32| locked(&recorded).push(*value))
}

/// An observer that closes after one value, and owns `D`.
struct Once<D> {
    called: bool,
    panics: bool,
    _owned: D,
}

impl<D> Observer<u32, Fault> for Once<D> {
    fn next(&mut self, _: &u32) {
        self.called = true;
        if self.panics {
            throw();
        }
    }

    fn error(&mut self, _: &Fault) {}

    fn complete(&mut self) {}

    fn is_closed(&self) -> bool {
        self.called
    }
}

/// Regression: during an emission, the drop of a closed observer unsubscribed a second observer. The second
/// observer was still called once.
#[test]
fn dropped_observer_can_unsubscribe_the_next() {
    for form in FORMS {
        for flavor in [Flavor::Publish, Flavor::All, Flavor::Many(3)] {
            for panics in [false, true] {
                let mut rig = Rig::<u32>::new(form, flavor);
                let owned: Arc<Mutex<Option<Guard>>> = Arc::default();
                let held = owned.clone();
                let once = Once {
                    called: false,
                    panics,
                    _owned: OnDrop(move || drop(locked(&held).take())),
                };
                rig.source.subscribe_with(once).detach();
                let (seen, record) = recorder();
                *locked(&owned) = Some(rig.source.subscribe(record));
                let (others, record) = recorder();
                rig.source.subscribe(record).detach();
                let thrown = catch_unwind(AssertUnwindSafe(|| rig.emit.next(1))).is_err();
                assert_eq!(thrown, panics);
                rig.emit.next(2);
                let about = format!("{form:?} {flavor:?} {panics}");
                assert_eq!(*locked(&seen), [0; 0], "{about}");
                assert_eq!(*locked(&others), [1, 2], "{about}");
                assert_eq!(rig.source.observer_count(), 1, "{about}");
            }
        }
    }
}

#[test]
fn dropped_observer_can_emit() {
    for flavor in [Flavor::Publish, Flavor::All, Flavor::Many(3)] {
        let mut rig = Rig::<u32>::new(Form::Shared, flavor);
        let handle = rig.emit.another().expect("shared");
        let emits = |number: u32| {
            let mut emit = handle.another();
            OnDrop(move || emit.iter_mut().for_each(|emit| emit.next(number)))
        };
        let (seen, record) = recorder();
        let once = Once {
            called: false,
            panics: false,
            _owned: emits(10),
        };
        rig.source.subscribe_with(once).detach();
        let _guard = rig.source.subscribe(record);
        let owned = emits(20);
        let guard = rig.source.subscribe(move |_| {
            let _ = &owned;
        });
        rig.emit.next(1);
        drop(guard);
        let owned = emits(30);
        rig.source
            .subscribe(move |_| {
                let _ = &owned;
            })
            .detach();
        // After the end nothing is emitted.
        rig.emit.complete();
        assert_eq!(*locked(&seen), [1, 10, 20], "{flavor:?}");
    }
}

/// A value that calls methods of its subject when it is dropped and when it is cloned.
struct AccessOnDrop {
    source: Option<Source<AccessOnDrop>>,
    accesses: Arc<AtomicUsize>,
}

impl AccessOnDrop {
    fn access(&self) {
        let Some(source) = &self.source else { return };
        let _ = source.has_ended();
        let _ = source.observer_count();
        source.trim();
        drop(source.subscribe(|_| {}));
        self.accesses.fetch_add(1, Ordering::SeqCst);
    }
}

impl Clone for AccessOnDrop {
    fn clone(&self) -> Self {
        self.access();
        Self {
            source: self.source.clone(),
            accesses: self.accesses.clone(),
        }
    }
}

impl Drop for AccessOnDrop {
    fn drop(&mut self) {
        self.access();
    }
}

fn run_accesses(subject: ReplaySubject<AccessOnDrop>, clock: &Arc<SetClock>) -> usize {
    let accesses = Arc::new(AtomicUsize::new(0));
    let source = subject.source();
    let value = || AccessOnDrop {
        source: Some(source.clone()),
        accesses: accesses.clone(),
    };
    subject.subscribe(|_| {}).detach();
    subject.next(value());
    subject.next(value());
    subject.next_slice(&[value(), value()]);
    drop(subject.snapshot());
    clock.set(100);
    subject.trim();
    subject.next(value());
    clock.set(200);
    drop(subject.subscribe(|_| {}));
    subject.next(value());
    subject.complete();
    drop(subject.snapshot());
    subject.dispose();
    subject.next(value());
    accesses.load(Ordering::SeqCst)
}

#[derive(Default)]
struct SetClock {
    nanos: AtomicUsize,
    panics: AtomicBool,
}

impl SetClock {
    fn set(&self, nanos: usize) {
        self.nanos.store(nanos, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Time {
        if self.panics.load(Ordering::SeqCst) {
            throw();
        }
        Time::from_nanos(self.nanos.load(Ordering::SeqCst) as u64)
    }
}

#[test]
fn values_can_access_their_subject_in_drop_and_clone() {
    let clock = Arc::new(SetClock::default());
    let window = Duration::from_nanos(10);
    for subject in [
        ReplaySubject::new(Replay::all()),
        ReplaySubject::new(Replay::one()),
        ReplaySubject::new(Replay::many(0)),
        ReplaySubject::new(Replay::many(2)),
        ReplaySubject::new(Replay::within(window).clock(clock.clone())),
        ReplaySubject::new(Replay::many_within(1, window).clock(clock.clone())),
    ] {
        clock.set(0);
        assert!(run_accesses(subject, &clock) >= 7);
    }
}

/// Regression: `dispose` dropped a stored error while the subject was locked.
#[test]
fn errors_and_panics_can_access_subject_in_drop() {
    struct AccessOnDropError(Source<u32, AccessOnDropError>);
    impl Drop for AccessOnDropError {
        fn drop(&mut self) {
            let _ = self.0.has_ended();
        }
    }
    let subject = Subject::<u32, AccessOnDropError>::with_error();
    let source = subject.source();
    // Three observers panic in one emission. The emission resumes the first panic.
    for number in 0..3 {
        let source = source.clone();
        subject
            .subscribe(move |_| {
                let source = source.clone();
                std::panic::resume_unwind(Box::new((number, AccessOnDropError(source))));
            })
            .detach();
    }
    let thrown = catch_unwind(AssertUnwindSafe(|| subject.next(1))).expect_err("all panic");
    assert_eq!(
        thrown
            .downcast_ref::<(i32, AccessOnDropError)>()
            .map(|t| t.0),
        Some(0)
    );
    drop(thrown);
    assert!(!subject.has_observers());
    subject.error(AccessOnDropError(source));
    subject.dispose();
    assert!(subject.has_ended());
}

/// Regression: values that were cloned before a panic were emitted with the next slice.
#[test]
fn panicking_clone_in_slice_emits_nothing() {
    struct Brittle(u32);
    impl Clone for Brittle {
        fn clone(&self) -> Self {
            if self.0 == 3 {
                throw();
            }
            Self(self.0)
        }
    }
    let numbers = |values: Vec<Brittle>| values.iter().map(|value| value.0).collect::<Vec<_>>();
    let slice = |bound: u32| (1..bound).map(Brittle).collect::<Vec<_>>();
    let (mut tx, source) = fanline::replay::<Brittle>(Replay::all());
    assert!(catch_unwind(AssertUnwindSafe(|| tx.next_slice(&slice(5)))).is_err());
    tx.next_slice(&slice(3));
    assert_eq!(numbers(source.snapshot()), [1, 2]);
    let subject = ReplaySubject::new(Replay::all());
    assert!(catch_unwind(AssertUnwindSafe(|| subject.next_slice(&slice(5)))).is_err());
    subject.next_slice(&slice(3));
    assert_eq!(numbers(subject.snapshot()), [1, 2]);
}

#[test]
fn panicking_observer_destructor_keeps_subject_consistent() {
    for form in FORMS {
        let mut rig = Rig::<u32>::new(form, Flavor::Many(2));
        let (seen, record) = recorder();
        let once = Once {
            called: false,
            panics: false,
            _owned: OnDrop(|| throw()),
        };
        rig.source.subscribe_with(once).detach();
        let idle = OnDrop(|| throw());
        let idle = rig.source.subscribe(move |_| {
            let _ = &idle;
        });
        rig.source.subscribe(record).detach();
        rig.emit.next(1);
        // Without an emission in progress, the panic resumes in the call that unsubscribes.
        assert!(catch_unwind(AssertUnwindSafe(|| drop(idle))).is_err());
        rig.emit.next(2);
        let last = OnDrop(|| throw());
        rig.source
            .subscribe(move |_| {
                let _ = &last;
            })
            .detach();
        let _ = catch_unwind(AssertUnwindSafe(|| rig.emit.complete()));
        assert_eq!(*locked(&seen), [1, 2], "{form:?}");
        assert!(rig.source.has_ended() && !rig.source.has_observers());
        let (seen, record) = recorder();
        assert!(rig.source.subscribe(record).is_closed());
        assert_eq!(*locked(&seen), [1, 2], "{form:?}");
    }
}

#[test]
fn panicking_value_destructor_keeps_subject_consistent() {
    #[derive(Clone)]
    struct Loud(u32);
    impl Drop for Loud {
        fn drop(&mut self) {
            if self.0 == 1 && !std::thread::panicking() {
                throw();
            }
        }
    }
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let record = || {
        let seen = seen.clone();
        move |value: &Loud| locked(&seen).push(value.0)
    };
    let (mut tx, source) = fanline::replay::<Loud>(Replay::one());
    source.subscribe(record()).detach();
    tx.next(Loud(1));
    assert!(catch_unwind(AssertUnwindSafe(|| tx.next(Loud(2)))).is_err());
    tx.next(Loud(3));
    tx.complete();
    let subject = ReplaySubject::new(Replay::one());
    subject.subscribe(record()).detach();
    subject.next(Loud(1));
    assert!(catch_unwind(AssertUnwindSafe(|| subject.next(Loud(2)))).is_err());
    subject.next(Loud(3));
    assert_eq!(*locked(&seen), [1, 2, 3, 1, 2, 3]);
    subject.complete();
}

#[test]
fn panicking_clock_keeps_subject_consistent() {
    let clock = Arc::new(SetClock::default());
    let replay = || Replay::within(Duration::from_nanos(10)).clock(clock.clone());
    let subject = ReplaySubject::new(replay());
    let (mut tx, source) = Producer::<u32, Fault, _>::retaining(replay());
    let token = Arc::new(());
    let held = token.clone();
    source
        .subscribe(move |_| {
            let _ = &held;
        })
        .detach();
    let panics = |action: &mut dyn FnMut()| {
        clock.panics.store(true, Ordering::SeqCst);
        let thrown = catch_unwind(AssertUnwindSafe(action)).is_err();
        clock.panics.store(false, Ordering::SeqCst);
        assert!(thrown);
    };
    panics(&mut || subject.next(1));
    panics(&mut || subject.subscribe(|_| {}).detach());
    panics(&mut || subject.complete());
    subject.next(2);
    assert_eq!(subject.snapshot(), [2]);
    panics(&mut || tx.next(1));
    tx.next(2);
    assert_eq!(source.snapshot(), [2]);
    // A producer is consumed by the first call, so a panic in it disposes of the subject.
    let mut tx = Some(tx);
    panics(&mut || tx.take().into_iter().for_each(Producer::complete));
    assert!(source.has_ended());
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn replayed_values_stay_until_read() {
    for form in FORMS {
        let mut rig = Rig::<u32>::new(form, Flavor::Many(2));
        rig.emit.slice(&[1, 2]);
        let another = rig.emit.another();
        let (seen, mut record) = recorder();
        let emit = Mutex::new(another);
        let _guard = rig.source.subscribe(move |value| {
            record(value);
            if *value == 1
                && let Some(emit) = &mut *locked(&emit)
            {
                (10..200).for_each(|number| emit.next(number));
            }
        });
        rig.emit.next(3);
        let expected: Vec<u32> = match form {
            Form::Exclusive => vec![1, 2, 3],
            Form::Shared => [1, 2].into_iter().chain(10..200).chain([3]).collect(),
            Form::Local => unreachable!(),
        };
        assert_eq!(*locked(&seen), expected);
    }
}

#[test]
fn dropped_last_handle_drops_observers() {
    for form in FORMS {
        for flavor in super::rig::FLAVORS {
            let Rig { emit, source, .. } = Rig::<u32>::new(form, flavor);
            let token = Arc::new(());
            let held = token.clone();
            let guard = source.subscribe(move |_| {
                let _ = &held;
            });
            drop(emit);
            assert_eq!(Arc::strong_count(&token), 1);
            assert!(source.has_ended() && guard.is_closed());
        }
    }
    let (tx, source) = fanline::subject::<u32>();
    let completed = Arc::new(AtomicBool::new(false));
    let flag = completed.clone();
    let observer =
        fanline::observer(|_: &u32| {}).on_complete(move || flag.store(true, Ordering::SeqCst));
    source.subscribe_with(observer).detach();
    drop(tx.complete_on_drop());
    assert!(completed.load(Ordering::SeqCst));
}

#[test]
fn ignored_panics_do_not_resume() {
    let subject = Subject::<u32>::new().on_observer_panic(fanline::OnPanic::Ignore);
    let (tx, source) = fanline::subject::<u32>();
    let mut tx = tx.on_observer_panic(fanline::OnPanic::Ignore);
    let (seen, record) = recorder();
    for source in [subject.source(), source] {
        source.subscribe(|_| throw()).detach();
    }
    subject.subscribe(record).detach();
    subject.next(1);
    subject.next(2);
    tx.next(1);
    assert!(!tx.has_observers());
    assert_eq!(*locked(&seen), [1, 2]);
    let ignored = fanline::OnPanic::Ignore;
    let replay = ReplaySubject::<u32>::new(Replay::many(1)).on_observer_panic(ignored);
    replay.subscribe(|_| throw()).detach();
    replay.next(1);
    assert_eq!((replay.observer_count(), replay.snapshot()), (0, vec![1]));
    let behavior = BehaviorSubject::new(0);
    let handle = behavior.clone();
    let behavior = behavior.on_observer_panic(ignored);
    behavior
        .subscribe(|value| {
            assert_eq!(
                *value, 0,
                "the initial value is delivered inside `subscribe`"
            )
        })
        .detach();
    handle.next(1);
    assert_eq!((handle.observer_count(), handle.value()), (0, Ok(1)));
    let last = AsyncSubject::<u32>::new().on_observer_panic(ignored);
    last.subscribe(|_| throw()).detach();
    last.next(1);
    last.complete();
    let local = LocalSubject::<u32>::new().on_observer_panic(ignored);
    local.subscribe(|_| throw()).detach();
    local.next(1);
    assert!(!local.has_observers());
}
