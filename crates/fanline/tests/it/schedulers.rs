//! The laws that every scheduler keeps, run for each; then what is peculiar to one.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::scheduler::{CurrentThread, EventLoop, Immediate, NewThread, ThreadPool, VirtualTime};
use fanline::{Guard, Scheduler, Time, Worker};

/// Long enough that only a failure waits for it.
const PATIENCE: Duration = Duration::from_secs(20);
const MS: Duration = Duration::from_millis(1);

/// A scheduler under test, and how to let time pass on it.
struct Case<S> {
    scheduler: S,
    settle: fn(&S),
    /// Whether an action runs inside the call that schedules it, whatever else runs.
    nests: bool,
}

fn real<S>(scheduler: S) -> Case<S> {
    Case {
        scheduler,
        settle: |_| {},
        nests: false,
    }
}

impl<S: Scheduler> Case<S> {
    /// Runs `action` on a lane with somewhere to report to, and gives back the first `count` reports.
    fn reports<T: Send + 'static>(
        &self,
        count: usize,
        action: impl FnOnce(Sender<T>, &S::Worker) + Send + 'static,
    ) -> Vec<T> {
        let (tx, rx) = mpsc::channel();
        let worker = self.scheduler.worker();
        worker.schedule(tx, action).detach();
        drop(worker);
        (self.settle)(&self.scheduler);
        receive(&rx, count)
    }
}

fn receive<T>(rx: &Receiver<T>, count: usize) -> Vec<T> {
    (0..count)
        .map(|_| rx.recv_timeout(PATIENCE).expect("a report in time"))
        .collect()
}

fn report<T: Send + 'static, W>(value: T) -> impl FnOnce(Sender<T>, &W) + Send + 'static {
    move |tx, _| tx.send(value).unwrap()
}

/// Counts how often it was dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn runs_each_action_once_in_order<S: Scheduler>(case: &Case<S>) {
    let order = case.reports(100, |tx, worker| {
        for n in 0..100 {
            worker.schedule(tx.clone(), report(n)).detach();
        }
    });
    assert_eq!(order, (0..100).collect::<Vec<_>>());
}

fn runs_by_due_time<S: Scheduler>(case: &Case<S>) {
    let order = case.reports(5, |tx, worker| {
        let now = worker.now();
        for (delay, name) in [(3, "c"), (1, "a"), (2, "b"), (3, "d"), (0, "now")] {
            worker
                .schedule_at(now + delay * MS, tx.clone(), report(name))
                .detach();
        }
    });
    let expected = if case.nests {
        ["c", "a", "b", "d", "now"]
    } else {
        ["now", "a", "b", "c", "d"]
    };
    assert_eq!(order, expected);
}

fn takes_what_is_over_as_now<S: Scheduler>(case: &Case<S>) {
    let order = case.reports(3, |tx, worker| {
        worker.schedule(tx.clone(), report(0)).detach();
        worker
            .schedule_at(Time::ZERO, tx.clone(), report(1))
            .detach();
        worker
            .schedule_after(Duration::ZERO, tx, report(2))
            .detach();
    });
    assert_eq!(order, [0, 1, 2]);
}

fn runs_nested_actions_after_the_outer_one<S: Scheduler>(case: &Case<S>) {
    let order = case.reports(3, |tx, worker| {
        worker
            .schedule(tx.clone(), |tx, worker| {
                worker.schedule(tx.clone(), report("inner")).detach();
                tx.send("outer").unwrap();
            })
            .detach();
        worker.schedule(tx, report("next")).detach();
    });
    let expected = if case.nests {
        ["inner", "outer", "next"]
    } else {
        ["outer", "next", "inner"]
    };
    assert_eq!(order, expected);
}

fn recursion_takes_no_stack<S: Scheduler>(case: &Case<S>) {
    fn again<W: Worker>((left, tx): (u32, Sender<&'static str>), worker: &W) {
        if left == 0 {
            tx.send("done").unwrap();
        } else {
            worker.schedule((left - 1, tx), again).detach();
        }
    }
    let depth = if case.nests { 50 } else { 20_000 };
    let done = case.reports(1, move |tx, worker| again((depth, tx), worker));
    assert_eq!(done, ["done"]);
}

fn a_cancelled_action_never_runs_and_is_dropped_at_once<S: Scheduler>(case: &Case<S>) {
    if case.nests {
        return;
    }
    for delay in [Duration::ZERO, MS, Duration::from_secs(3600)] {
        let drops = Arc::new(AtomicUsize::new(0));
        let (state, captured) = (Counted(drops.clone()), Counted(drops.clone()));
        let seen = case.reports(2, move |tx: Sender<usize>, worker| {
            let guard = worker.schedule_after(delay, (state, tx.clone()), move |state, _| {
                let _captured = &captured;
                state.1.send(99).unwrap();
            });
            assert!(!guard.is_closed());
            drop(guard);
            tx.send(drops.load(Ordering::SeqCst)).unwrap();
            worker.schedule_after(2 * MS, tx, report(7)).detach();
        });
        assert_eq!(seen, [2, 7], "delay {delay:?}");
    }
}

fn drops_the_state_of_an_action_that_ran<S: Scheduler>(case: &Case<S>) {
    let drops = Arc::new(AtomicUsize::new(0));
    let state = Counted(drops.clone());
    let seen = case.reports(1, move |tx, worker| {
        let first = worker.schedule(state, |state, _| drop(state));
        let next = move |tx: Sender<_>, _: &S::Worker| {
            tx.send((drops.load(Ordering::SeqCst), first.is_closed()))
                .unwrap();
        };
        worker.schedule(tx, next).detach();
    });
    assert_eq!(seen, [(1, true)]);
}

fn repeats_with_the_state_it_left<S: Scheduler>(case: &Case<S>) {
    for period in [Duration::ZERO, MS] {
        let seen = case.reports(5, move |tx, worker| {
            worker
                .schedule_periodic(period, (0, tx), |(n, tx), _| {
                    *n += 1;
                    tx.send(*n).unwrap();
                    if *n < 5 {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })
                .detach();
        });
        assert_eq!(seen, [1, 2, 3, 4, 5], "period {period:?}");
    }
}

fn a_periodic_action_can_cancel_itself<S: Scheduler>(case: &Case<S>) {
    if case.nests {
        return;
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = Counted(drops.clone());
    let seen = case.reports(3, move |tx: Sender<usize>, worker| {
        let own = Arc::new(Mutex::new(Guard::closed()));
        let (inner, ran) = (own.clone(), tx.clone());
        let guard = worker.schedule_periodic(MS, 0, move |n, _| {
            let _counted = &counted;
            *n += 1;
            ran.send(*n).unwrap();
            if *n == 2 {
                drop(std::mem::take(&mut *inner.lock().unwrap()));
            }
            ControlFlow::Continue(())
        });
        *own.lock().unwrap() = guard;
        let after = move |tx: Sender<usize>, _: &S::Worker| {
            tx.send(100 + drops.load(Ordering::SeqCst)).unwrap();
        };
        worker.schedule_after(200 * MS, tx, after).detach();
    });
    assert_eq!(seen, [1, 2, 101]);
}

fn a_zero_period_leaves_room_for_others<S: Scheduler>(case: &Case<S>) {
    if case.nests {
        return;
    }
    let seen = case.reports(1, |tx, worker| {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        worker
            .schedule_periodic(Duration::ZERO, (), move |(), _| {
                if stopped.load(Ordering::SeqCst) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .detach();
        let other = move |tx: Sender<_>, _: &S::Worker| {
            stop.store(true, Ordering::SeqCst);
            tx.send("other").unwrap();
        };
        worker.schedule(tx, other).detach();
    });
    assert_eq!(seen, ["other"]);
}

fn what_is_detached_outlives_its_worker<S: Scheduler>(case: &Case<S>) {
    let (tx, rx) = mpsc::channel();
    let worker = case.scheduler.worker();
    worker
        .schedule_after(5 * MS, tx.clone(), report("later"))
        .detach();
    worker.schedule(tx, report("soon")).detach();
    drop(worker);
    (case.settle)(&case.scheduler);
    let mut seen = receive(&rx, 2);
    seen.sort_unstable();
    assert_eq!(seen, ["later", "soon"]);
}

fn the_clock_does_not_go_back<S: Scheduler>(case: &Case<S>) {
    let before = case.scheduler.now();
    let seen = case.reports(1, move |tx, worker| {
        let due = worker.now() + 3 * MS;
        let at = move |tx: Sender<_>, worker: &S::Worker| tx.send(worker.now() >= due).unwrap();
        worker.schedule_at(due, tx, at).detach();
    });
    assert_eq!(seen, [true]);
    assert!(case.scheduler.now() >= before);
}

fn laws<S: Scheduler>(case: &Case<S>) {
    runs_each_action_once_in_order(case);
    runs_by_due_time(case);
    takes_what_is_over_as_now(case);
    runs_nested_actions_after_the_outer_one(case);
    recursion_takes_no_stack(case);
    a_cancelled_action_never_runs_and_is_dropped_at_once(case);
    drops_the_state_of_an_action_that_ran(case);
    repeats_with_the_state_it_left(case);
    a_periodic_action_can_cancel_itself(case);
    a_zero_period_leaves_room_for_others(case);
    what_is_detached_outlives_its_worker(case);
    the_clock_does_not_go_back(case);
}

#[test]
fn immediate_keeps_the_laws() {
    laws(&Case {
        nests: true,
        ..real(Immediate)
    });
}

#[test]
fn current_thread_keeps_the_laws() {
    laws(&real(CurrentThread));
}

#[test]
fn new_thread_keeps_the_laws() {
    laws(&real(NewThread));
}

#[test]
fn event_loop_keeps_the_laws() {
    laws(&real(EventLoop::new()));
    // The thread is gone between any two actions, or nearly.
    let fleeting = EventLoop::options().exit_when_idle(Duration::ZERO).build();
    laws(&real(fleeting));
}

#[test]
fn thread_pool_keeps_the_laws() {
    for threads in [1, 2, 5] {
        laws(&real(ThreadPool::new(threads)));
    }
    laws(&real(ThreadPool::global()));
}

#[test]
fn virtual_time_keeps_the_laws() {
    laws(&Case {
        settle: VirtualTime::run,
        ..real(VirtualTime::new())
    });
}
