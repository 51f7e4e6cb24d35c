//! Tests of the moment between the emitter's last check of the signal and the end of its emission.
use alloc::vec::Vec;
use core::convert::Infallible;
use std::sync::Mutex;

use super::*;
use crate::subject::list::Boxed;
use crate::subject::owner::Owner;
use crate::subject::policy::{Many, Publish};
use crate::{Replay, observer};

type Subject<P> = Owner<u32, Infallible, P, Boxed<u32, Infallible>>;

fn subscribe<P: Rules>(
    core: &Arc<Core<u32, Infallible, P, Boxed<u32, Infallible>>>,
    name: u32,
    seen: &Arc<Mutex<Vec<u32>>>,
) -> Guard {
    let seen = seen.clone();
    let record = move |_: &u32| seen.lock().expect("whole").push(name);
    core.subscribe(Boxed::new(observer(record)))
}

/// Regression test: an observer unsubscribed at that moment. When another one unsubscribed, the first counted
/// as subscribed again.
#[test]
fn observer_removed_as_emission_ends_is_not_called_again() {
    let owner = Subject::new(Publish, Fences::detect());
    let core = owner.core();
    let seen = Arc::default();
    let guards = [0, 1, 2].map(|name| subscribe(core, name, &seen));
    core.next(0);
    let [first, second, _third] = guards;
    core.gate.call();
    drop(second);
    core.gate.leave();
    drop(first);
    assert_eq!(Arc::strong_count(&seen), 2);
    seen.lock().expect("whole").clear();
    core.next(0);
    assert_eq!(*seen.lock().expect("whole"), [2]);
    assert_eq!(core.observer_count(), 1);
}

/// Regression test: a disposal at that moment left the observers in memory, and a later completion or error
/// replaced the disposal.
#[test]
fn disposal_as_emission_ends_drops_observers_and_stays() {
    let many: Many = Replay::many(2).flavor;
    let owner = Subject::new(many, Fences::detect());
    let core = owner.core();
    let seen = Arc::default();
    let guards = [0, 1, 2].map(|name| subscribe(core, name, &seen));
    core.next(0);
    core.gate.call();
    core.dispose();
    core.gate.leave();
    let [first, ..] = guards;
    drop(first);
    assert_eq!(Arc::strong_count(&seen), 1);
    let owner = Subject::new(many, Fences::detect());
    let core = owner.core();
    let guards = [0, 1, 2].map(|name| subscribe(core, name, &seen));
    core.next(0);
    core.gate.call();
    core.dispose();
    assert!(core.close(&End::Completed, Time::ZERO).is_none());
    assert!(matches!(core.end_so_far(), Some(End::Disposed)));
    let _ = core.leave_tidily();
    assert_eq!(Arc::strong_count(&seen), 1);
    drop(guards);
}
