//! Unsubscribing, and knowing that the callback is over.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use fanline::Guard;

use super::rig::{FORMS, Flavour, Rig};
use crate::hand::locked;

const FLAVOURS: [Flavour; 3] = [Flavour::Publish, Flavour::All, Flavour::Many(2)];

#[test]
fn waits_for_the_callback_on_another_thread() {
    for form in FORMS {
        for flavour in FLAVOURS {
            let Rig {
                mut emit, source, ..
            } = Rig::<u32>::new(form, flavour);
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
                assert!(
                    over.load(Ordering::SeqCst),
                    "returned in the midst of a call"
                );
            });
            // Another one who leaves without waiting does not wait.
            drop(other);
            assert_eq!(source.observer_count(), usize::from(source.has_observers()));
            leave.wait();
            waiter.join().expect("it has waited");
            emitter.join().expect("nobody panics");
            assert!(others.load(Ordering::SeqCst) <= 1);
        }
    }
}

#[test]
fn returns_at_once_from_inside_and_when_idle() {
    for form in FORMS {
        for flavour in FLAVOURS {
            let mut rig = Rig::<u32>::new(form, flavour);
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
            // Idle: before it is in the list, and after.
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
fn no_call_is_running_afterwards() {
    for form in FORMS {
        let Rig {
            mut emit, source, ..
        } = Rig::<u32>::new(form, Flavour::Many(1));
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
                    let gone = Arc::new(AtomicBool::new(false));
                    let (within, after) = (inside.clone(), gone.clone());
                    let guard = source.subscribe(move |_| {
                        assert!(!after.load(Ordering::SeqCst), "called afterwards");
                        within.store(true, Ordering::SeqCst);
                        std::hint::black_box(&within);
                        within.store(false, Ordering::SeqCst);
                    });
                    guard.unsubscribe_and_wait();
                    assert!(!inside.load(Ordering::SeqCst), "called still");
                    gone.store(true, Ordering::SeqCst);
                }
            })
        };
        let leavers = [leaver(), leaver()];
        for leaver in leavers {
            leaver.join().expect("as promised");
        }
        stop.store(true, Ordering::SeqCst);
        emitter.join().expect("no observer has panicked");
        assert_eq!(source.observer_count(), 0);
    }
}
