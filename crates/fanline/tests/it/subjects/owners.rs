//! Who is the last to have a subject, and when: producers, sources and guards go in any order.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use fanline::{Guard, Replay, Subject};

use crate::hand::locked;

/// An observer that owns its own guard keeps nothing in memory: neither after the end, nor when everybody
/// else is gone without one.
#[test]
fn an_observer_owns_its_guard() {
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

/// The producer and the last source go while guards go on other threads, each with a reference of its own.
#[test]
fn owners_and_guards_go_at_once() {
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

/// Threads that are in each other's way, then one that is left in peace for long, and again: giving the turn
/// back has another way in each case, and none loses a value.
#[test]
fn emitters_meet_now_and_then() {
    const EACH: u32 = 400;
    const IN_PEACE: u32 = 3000;
    let s = Subject::<(u32, u32)>::new();
    let seen: Arc<Mutex<[Vec<u32>; 3]>> = Arc::default();
    let record = seen.clone();
    let _guard = s.subscribe(move |(who, value)| {
        locked(&record)[usize::try_from(*who).expect("small")].push(*value);
    });
    for round in 0..6 {
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for who in 0..3 {
                let (s, start) = (&s, &start);
                scope.spawn(move || {
                    start.wait();
                    (0..EACH).for_each(|value| s.next((who, round * EACH + value)));
                });
            }
        });
        // Whoever queued has been served when all are done.
        for values in &*locked(&seen) {
            assert!(values.iter().copied().eq(0..(round + 1) * EACH));
        }
        let alone = seen.clone();
        let before = locked(&alone).clone();
        (0..IN_PEACE).for_each(|value| s.next((0, value)));
        assert_eq!(locked(&seen)[0].len(), before[0].len() + IN_PEACE as usize);
        *locked(&seen) = before;
    }
}
