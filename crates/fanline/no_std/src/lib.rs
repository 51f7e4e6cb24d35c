//! A user of `fanline` without the standard library. It is built for a target that has none, and its checks run as
//! tests on the host.
#![no_std]

extern crate alloc;

use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, Ordering};

use fanline::prelude::*;
use fanline::{
    BehaviorSubject, Guard, LocalBehaviorSubject, LocalReplaySubject, LocalSubject, Replay, Subject,
};

/// Subjects for one thread replay values, and queue what observers emit.
#[cfg_attr(test, test)]
pub fn local_subjects() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let lines = LocalReplaySubject::new(Replay::many(2));
    lines.next_slice(&[1, 2, 3]);
    let (sink, again) = (seen.clone(), lines.clone());
    lines
        .subscribe(move |line: &u32| {
            sink.borrow_mut().push(*line);
            if *line == 3 {
                again.next(4);
            }
        })
        .detach();
    assert_eq!(*seen.borrow(), [2, 3, 4]);
    lines.complete();
    assert_eq!(lines.snapshot(), [3, 4]);
    let level = LocalBehaviorSubject::new(1);
    level.update(|level| level + 1);
    assert_eq!(level.value(), Ok(2));
}

/// A guard removes its observer before the next call, although it does not find the subject.
#[cfg_attr(test, test)]
pub fn local_guards() {
    let subject = LocalSubject::<u32>::new();
    let calls = Rc::new(Cell::new(0));
    let count = || {
        let calls = calls.clone();
        move |_: &u32| calls.set(calls.get() + 1)
    };
    let second = Rc::new(RefCell::new(None::<Guard>));
    let removes = second.clone();
    let first = subject.subscribe(move |_| drop(removes.borrow_mut().take()));
    *second.borrow_mut() = Some(subject.subscribe(count()));
    let third = subject.subscribe(count());
    subject.next(1);
    assert_eq!((calls.get(), subject.observer_count()), (1, 2));
    assert!(!third.is_closed());
    drop((first, third));
    assert!(!subject.has_observers());
    subject.next(2);
    assert_eq!((calls.get(), Rc::strong_count(&calls)), (1, 1));
}

/// Shared and exclusive subjects spin instead of sleeping.
#[cfg_attr(test, test)]
pub fn shared_subjects() {
    let sum = Arc::new(AtomicU32::new(0));
    let add = || {
        let sum = sum.clone();
        move |value: &u32| {
            sum.fetch_add(*value, Ordering::Relaxed);
        }
    };
    let subject = Subject::new();
    let echo = subject.clone();
    let guard = subject.subscribe(move |value| {
        if *value < 3 {
            echo.next(value + 1);
        }
    });
    let chain = subject
        .clone()
        .merge(fanline::range(10..=11))
        .filter(|value| value % 2 == 1)
        .scan(0, |total, value| total + value);
    chain.subscribe(add()).detach();
    subject.next(1);
    assert_eq!(sum.load(Ordering::Relaxed), 11 + 12 + 15);
    drop(guard);
    subject.complete();
    let (mut tx, source) = fanline::replay::<u32>(Replay::one());
    tx.next(5);
    source.subscribe(add()).detach();
    assert_eq!(sum.load(Ordering::Relaxed), 43);
    assert_eq!(BehaviorSubject::new(7).value(), Ok(7));
}
