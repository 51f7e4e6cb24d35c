//! loom models: all interleavings of two threads. The models are tiny on purpose: a third message would
//! multiply the number of schedules by ten.

use alloc::vec::Vec;
use core::convert::Infallible;
use std::sync::{Arc, Mutex};

use super::end::End;
use super::list::Boxed;
use super::owner::Owner;
use super::policy::{All, One, Publish, Rules};
use super::shared::Shared;
use crate::fence::Fences;
use crate::{Guard, Observer};

type Subject<P> = Owner<u32, Infallible, P, Boxed<u32, Infallible>>;

/// The notifications of one observer; 0 stands for the completion.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<u32>>>);

impl Seen {
    fn all(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer<u32> for Seen {
    fn next(&mut self, value: &u32) {
        self.0.lock().unwrap().push(*value);
    }

    fn error(&mut self, error: &Infallible) {
        match *error {}
    }

    fn complete(&mut self) {
        self.0.lock().unwrap().push(0);
    }
}

fn subject<P: Rules>(policy: P, fences: Fences) -> Arc<Subject<P>> {
    Owner::new(policy, fences)
}

fn subscribe<P: Rules>(subject: &Arc<Subject<P>>) -> (Seen, Guard) {
    let seen = Seen::default();
    let guard = subject.core().subscribe(Boxed::new(seen.clone()));
    (seen, guard)
}

/// Explores a model with each kind of fences, because the code differs between them.
fn explore(model: impl Fn(Fences) + Copy + Sync + Send + 'static) {
    for fences in [Fences::Symmetric, Fences::Asymmetric] {
        crate::sync::model(3).check(move || model(fences));
    }
}

#[test]
fn loom_late_subscriber_receives_all_values_once_in_order() {
    explore(|fences| {
        let subject = subject(All, fences);
        let emitter = {
            let subject = subject.clone();
            loom::thread::spawn(move || {
                for value in 1..=3 {
                    subject.core().next(value);
                }
            })
        };
        let (seen, _guard) = subscribe(&subject);
        emitter.join().unwrap();
        assert_eq!(seen.all(), [1, 2, 3]);
    });
}

#[test]
fn loom_late_subscriber_receives_retained_and_later_values() {
    explore(|fences| {
        let subject = subject(One, fences);
        subject.core().next(1);
        let emitter = {
            let subject = subject.clone();
            loom::thread::spawn(move || {
                subject.core().next(2);
                subject.core().next(3);
                subject.core().end(End::Completed);
            })
        };
        let (seen, _guard) = subscribe(&subject);
        emitter.join().unwrap();
        let all = [1, 2, 3, 0];
        let seen = seen.all();
        assert!(seen.len() >= 2 && all.ends_with(&seen), "{seen:?}");
    });
}

#[test]
fn loom_subscriber_receives_every_value_emitted_afterwards() {
    explore(|fences| {
        let subject = subject(Publish, fences);
        let (first, _first) = subscribe(&subject);
        let emitter = {
            let subject = subject.clone();
            loom::thread::spawn(move || {
                subject.core().next(1);
                subject.core().next(2);
            })
        };
        let (second, _second) = subscribe(&subject);
        emitter.join().unwrap();
        subject.core().next(3);
        assert_eq!(first.all(), [1, 2, 3]);
        assert!([1, 2, 3].ends_with(&second.all()) && !second.all().is_empty());
    });
}

#[test]
fn loom_unsubscribe_and_wait_ends_calls_and_drops_observer() {
    explore(|fences| {
        let subject = subject(Publish, fences);
        let (seen, guard) = subscribe(&subject);
        subject.core().next(1);
        let emitter = {
            let subject = subject.clone();
            loom::thread::spawn(move || {
                subject.core().next(2);
                subject.core().next(3);
            })
        };
        guard.unsubscribe_and_wait();
        let before = seen.all();
        emitter.join().unwrap();
        assert_eq!(seen.all(), before);
        assert_eq!(Arc::strong_count(&seen.0), 1, "the observer is dropped");
        assert!([1, 2, 3].starts_with(&before));
    });
}

#[test]
fn loom_shared_handles_leave_nothing_queued() {
    explore(|fences| {
        let shared = Arc::new(Shared::with_fences(Publish, fences));
        let seen = Seen::default();
        let _guard = shared.live().subscribe(Boxed::new(seen.clone()));
        let other = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                shared.next(1);
                shared.next(2);
            })
        };
        shared.next(3);
        other.join().unwrap();
        let seen = seen.all();
        assert_eq!(seen.len(), 3, "{seen:?}");
        let own: Vec<u32> = seen.into_iter().filter(|value| *value != 3).collect();
        assert_eq!(own, [1, 2]);
    });
}

#[test]
fn loom_value_in_a_ring_is_not_overwritten_while_it_is_read() {
    explore(|fences| {
        let subject = subject(One, fences);
        subject.core().next(1);
        let emitter = {
            let subject = subject.clone();
            loom::thread::spawn(move || {
                subject.core().next(2);
                subject.core().next(3);
            })
        };
        subject.core().visit(|values| {
            let before = values.to_vec();
            loom::thread::yield_now();
            assert_eq!(core::hint::black_box(values), before);
        });
        emitter.join().unwrap();
        let mut last = Vec::new();
        subject
            .core()
            .visit(|values| last.extend_from_slice(values));
        assert_eq!(last, [3]);
    });
}
