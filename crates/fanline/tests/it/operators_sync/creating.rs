use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fanline::Emitter;

use super::*;

#[test]
fn creation_functions_emit_values_and_end() {
    check_whole(&fanline::of(7), &completes([7]));
    check_whole(&fanline::from_iter([1, 2, 3]), &completes([1, 2, 3]));
    check_whole(&fanline::from_iter(Vec::<u8>::new()), &completes([]));
    check_whole(&fanline::range(1..4), &completes([1, 2, 3]));
    check_whole(&fanline::range(1..=3), &completes([1, 2, 3]));
    check_whole(&fanline::range(1..).take(2), &completes([1, 2]));
    check_whole(&fanline::repeat_value('x').take(2), &completes(['x', 'x']));
    check_whole(
        &fanline::generate(1, |n| (*n < 3).then_some(n + 1)),
        &completes([1, 2, 3]),
    );
    check_whole(&fanline::empty::<u8>(), &completes([]));
    check_whole(&fanline::throw::<u8, _>("no"), &fails([], "no"));
    check_whole(&fanline::never::<u8>(), &[]);
    check_whole(
        &fanline::try_from_iter([Ok(1), Ok(2)]).map_err(|e: &Failure| *e),
        &completes([1, 2]),
    );
    check_whole(
        &fanline::try_from_iter([Ok(1), Err("no"), Ok(2)]),
        &fails([1], "no"),
    );
    check_whole(
        &fanline::defer(|| {
            let mut n = 0;
            fanline::from_fn(move || {
                n += 1;
                (n < 3).then_some(n)
            })
        }),
        &completes([1, 2]),
    );
}

#[test]
fn defer_calls_factory_for_each_subscription() {
    let made = Arc::new(AtomicU32::new(0));
    let counter = made.clone();
    let chain = fanline::defer(move || fanline::of(counter.fetch_add(1, Ordering::Relaxed)));
    assert_eq!(made.load(Ordering::Relaxed), 0);
    assert_eq!(record(chain.clone(), usize::MAX), completes([0]));
    assert_eq!(record(chain, usize::MAX), completes([1]));
}

#[test]
fn never_holds_observer_until_unsubscribed() {
    let token = Arc::new(());
    let held = token.clone();
    let guard = fanline::never::<u8>().subscribe(move |_| drop(held.clone()));
    assert!(!guard.is_closed());
    assert_eq!(Arc::strong_count(&token), 2);
    drop(guard);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn create_emits_from_closure() {
    let whole = fanline::create(|mut emitter: Emitter<i32, Failure>| {
        emitter.next(1);
        emitter.next_slice(&[2, 3]);
        emitter.complete();
    });
    check_whole(&whole, &completes([1, 2, 3]));
    let failing = fanline::create(|mut emitter: Emitter<i32, Failure>| {
        emitter.next(1);
        emitter.error("no");
    });
    check_whole(&failing, &fails([1], "no"));
    let lost = fanline::create(|mut emitter: Emitter<i32, Failure>| emitter.next(1));
    check_whole(&lost, &open([1]));
    let endless = fanline::create(|mut emitter: Emitter<i32>| {
        while !emitter.is_closed() {
            emitter.next(1);
        }
        emitter.next(2);
        emitter.complete();
    });
    check_whole(&endless.take(3), &completes([1, 1, 1]));
}

/// An emitter that was moved out of its closure, and the number of calls of the closure's cleanup.
struct EscapedEmitter {
    emitter: Emitter<i32>,
    guard: Guard,
    cleanups: Arc<AtomicU32>,
    received: Arc<Mutex<Vec<Notification<i32, Infallible>>>>,
}

fn escaped_emitter(limit: usize) -> EscapedEmitter {
    let cleanups = Arc::new(AtomicU32::new(0));
    let received = Arc::default();
    let slot = Arc::new(Mutex::new(None));
    let (count, out) = (cleanups.clone(), slot.clone());
    let guard = fanline::create(move |emitter: Emitter<i32>| {
        *out.lock().unwrap() = Some(emitter);
        Guard::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })
    })
    .subscribe_with(Recorder {
        received: Arc::clone(&received),
        limit,
    });
    let emitter = slot.lock().unwrap().take().unwrap();
    EscapedEmitter {
        emitter,
        guard,
        cleanups,
        received,
    }
}

/// Checks that after `act` the cleanup has run once, and the observer was dropped.
#[track_caller]
fn check_cleanup(
    limit: usize,
    act: impl FnOnce(Emitter<i32>, Guard) -> Option<Emitter<i32>>,
    expected: &[Notification<i32, Infallible>],
) {
    let EscapedEmitter {
        mut emitter,
        guard,
        cleanups,
        received,
    } = escaped_emitter(limit);
    emitter.next(1);
    assert_eq!(cleanups.load(Ordering::Relaxed), 0);
    assert!(!guard.is_closed());
    let emitter = act(emitter, guard);
    assert_eq!(cleanups.load(Ordering::Relaxed), 1);
    if let Some(mut emitter) = emitter {
        assert!(emitter.is_closed());
        emitter.next(9);
        assert_eq!(
            Arc::strong_count(&received),
            1,
            "the observer was not dropped"
        );
        emitter.complete();
    }
    assert_eq!(cleanups.load(Ordering::Relaxed), 1);
    assert_eq!(
        Arc::strong_count(&received),
        1,
        "the observer was not dropped"
    );
    assert_eq!(*received.lock().unwrap(), expected);
}

#[test]
fn create_runs_cleanup_once_at_end() {
    let any = usize::MAX;
    check_cleanup(
        any,
        |emitter, guard| {
            emitter.complete();
            assert!(guard.is_closed());
            None
        },
        &completes([1]),
    );
    check_cleanup(
        any,
        |emitter, guard| {
            guard.detach();
            drop(emitter);
            None
        },
        &open([1]),
    );
    check_cleanup(
        any,
        |emitter, guard| {
            drop(guard);
            Some(emitter)
        },
        &open([1]),
    );
    check_cleanup(
        any,
        |emitter, guard| {
            guard.unsubscribe_and_wait();
            Some(emitter)
        },
        &open([1]),
    );
    check_cleanup(
        2,
        |mut emitter, guard| {
            emitter.next(2);
            guard.detach();
            Some(emitter)
        },
        &open([1, 2]),
    );
}

#[test]
fn emitter_can_move_to_another_thread() {
    let (done, wait) = std::sync::mpsc::channel();
    let guard = fanline::create(|mut emitter: Emitter<u32>| {
        std::thread::spawn(move || {
            for n in 0..100 {
                emitter.next(n);
            }
            emitter.complete();
        });
    })
    .sum()
    .subscribe(move |sum| done.send(*sum).unwrap());
    assert_eq!(wait.recv().unwrap(), 4950);
    drop(guard);
}
