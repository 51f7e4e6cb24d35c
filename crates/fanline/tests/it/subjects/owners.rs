//! Owners of a subject: producers, sources, and guards are dropped in any order.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use fanline::{Guard, Replay, Subject};

use crate::manual_source::locked;

/// An observer that owns its own guard causes no leak, neither after the end of the subject, nor when all
/// other owners are dropped without an end.
#[test]
fn observer_owning_its_guard_does_not_leak() {
    for completes in [true, false] {
        let token = Arc::new(());
        let own: Arc<Mutex<Option<Guard>>> = Arc::default();
        let (tx, source) = fanline::subject::<u32>();
        let kept = (token.clone(), own.clone());
        let guard = source.subscribe(move |_| {
            let _ = &kept;
        });
        *locked(&own) = Some(guard);
        drop(own);
        if completes {
            tx.complete();
            drop(source);
        } else {
            drop(source);
            drop(tx);
        }
        assert_eq!(Arc::strong_count(&token), 1, "completes: {completes}");
    }
}

/// One thread drops the producer and the last source while other threads drop guards. Each guard owns a
/// reference to the subject.
#[test]
fn owners_and_guards_dropped_concurrently_do_not_leak() {
    for _ in 0..300 {
        let token = Arc::new(());
        let (mut tx, source) = fanline::replay::<Arc<()>>(Replay::one());
        tx.next(token.clone());
        let start = Barrier::new(3);
        let mut pairs: Vec<[Guard; 2]> = (0..2)
            .map(|_| {
                [(); 2].map(|()| {
                    let kept = token.clone();
                    source.subscribe(move |_| {
                        let _ = &kept;
                    })
                })
            })
            .collect();
        thread::scope(|scope| {
            for pair in pairs.drain(..) {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    drop(pair);
                });
            }
            start.wait();
            drop(tx);
            drop(source);
        });
        assert_eq!(Arc::strong_count(&token), 1);
    }
}

/// Threads contend, then one emits alone for long, and so on. The exclusive access is released in a different
/// way in each case, and no value is lost.
#[test]
fn emitters_with_occasional_contention_lose_no_value() {
    const EACH: u32 = 400;
    const UNCONTENDED: u32 = 3000;
    let s = Subject::<(u32, u32)>::new();
    let seen: Arc<Mutex<[Vec<u32>; 3]>> = Arc::default();
    let record = seen.clone();
    let _guard = s.subscribe(move |(emitter, value)| {
        locked(&record)[usize::try_from(*emitter).expect("small")].push(*value);
    });
    for round in 0..6 {
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for emitter in 0..3 {
                let (s, start) = (&s, &start);
                scope.spawn(move || {
                    start.wait();
                    (0..EACH).for_each(|value| s.next((emitter, round * EACH + value)));
                });
            }
        });
        // When all threads are done, queued values have been delivered.
        for values in &*locked(&seen) {
            assert!(values.iter().copied().eq(0..(round + 1) * EACH));
        }
        let alone = seen.clone();
        let before = locked(&alone).clone();
        (0..UNCONTENDED).for_each(|value| s.next((0, value)));
        assert_eq!(
            locked(&seen)[0].len(),
            before[0].len() + UNCONTENDED as usize
        );
        *locked(&seen) = before;
    }
}
