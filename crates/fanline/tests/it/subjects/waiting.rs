//! `unsubscribe_and_wait`, on several threads and inside calls of observers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use fanline::Guard;

use super::rig::{FORMS, Flavor, Rig};
use crate::manual_source::locked;

const FLAVORS: [Flavor; 3] = [Flavor::Publish, Flavor::All, Flavor::Many(2)];

#[test]
fn unsubscribe_and_wait_waits_for_call_on_another_thread() {
    for form in FORMS {
        for flavor in FLAVORS {
            let Rig {
                mut emit, source, ..
            } = Rig::<u32>::new(form, flavor);
            let entered = Arc::new(Barrier::new(2));
            let leave = Arc::new(Barrier::new(2));
            let over = Arc::new(AtomicBool::new(false));
            let guard = {
                let (entered, leave, over) = (entered.clone(), leave.clone(), over.clone());
                source.subscribe(move |_| {
                    entered.wait();
                    leave.wait();
                    over.store(true, Ordering::SeqCst);
                })
            };
            let others = Arc::new(AtomicUsize::new(0));
            let calls = others.clone();
            let other = source.subscribe(move |_| {
                calls.fetch_add(1, Ordering::SeqCst);
            });
            let emitter = thread::spawn(move || emit.next(1));
            entered.wait();
            let waiter = thread::spawn(move || {
                guard.unsubscribe_and_wait();
                assert!(over.load(Ordering::SeqCst), "returned during a call");
            });
            // Unsubscribing another observer without waiting does not block.
            drop(other);
            assert_eq!(source.observer_count(), usize::from(source.has_observers()));
            leave.wait();
            waiter.join().expect("the waiting thread panicked");
            emitter.join().expect("the emitter panicked");
            assert!(others.load(Ordering::SeqCst) <= 1);
        }
    }
}

#[test]
fn unsubscribe_and_wait_returns_at_once_inside_and_when_idle() {
    for form in FORMS {
        for flavor in FLAVORS {
            let mut rig = Rig::<u32>::new(form, flavor);
            let own: Arc<Mutex<Option<Guard>>> = Arc::default();
            let calls = Arc::new(AtomicUsize::new(0));
            let guard = {
                let (own, calls) = (own.clone(), calls.clone());
                rig.source.subscribe(move |_| {
                    calls.fetch_add(1, Ordering::SeqCst);
                    let guard = locked(&own).take();
                    guard.into_iter().for_each(Guard::unsubscribe_and_wait);
                })
            };
            *locked(&own) = Some(guard);
            rig.emit.next(1);
            rig.emit.next(2);
            assert_eq!(calls.load(Ordering::SeqCst), 1);
            // No emission is in progress. One observer unsubscribes before an emission has added it to the
            // list, and one after.
            rig.source.subscribe(|_| {}).unsubscribe_and_wait();
            let guard = rig.source.subscribe(|_| {});
            rig.emit.next(3);
            guard.unsubscribe_and_wait();
            let guard = rig.source.subscribe(|_| {});
            rig.emit.complete();
            guard.unsubscribe_and_wait();
            assert!(!rig.source.has_observers());
        }
    }
}

#[test]
fn no_call_runs_after_unsubscribe_and_wait() {
    for form in FORMS {
        let Rig {
            mut emit, source, ..
        } = Rig::<u32>::new(form, Flavor::Many(1));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let emitter = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                emit.next(0);
            }
        });
        let leaver = || {
            let source = source.clone();
            thread::spawn(move || {
                for _ in 0..400 {
                    let inside = Arc::new(AtomicBool::new(false));
                    let unsubscribed = Arc::new(AtomicBool::new(false));
                    let (within, after) = (inside.clone(), unsubscribed.clone());
                    let guard = source.subscribe(move |_| {
                        assert!(!after.load(Ordering::SeqCst), "called after unsubscribing");
                        within.store(true, Ordering::SeqCst);
                        std::hint::black_box(&within);
                        within.store(false, Ordering::SeqCst);
                    });
                    guard.unsubscribe_and_wait();
                    assert!(!inside.load(Ordering::SeqCst), "a call is still running");
                    unsubscribed.store(true, Ordering::SeqCst);
                }
            })
        };
        let leavers = [leaver(), leaver()];
        for leaver in leavers {
            leaver.join().expect("a leaving thread panicked");
        }
        stop.store(true, Ordering::SeqCst);
        emitter.join().expect("the emitter panicked");
        assert_eq!(source.observer_count(), 0);
    }
}
