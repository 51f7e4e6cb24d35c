//! The laws that every scheduler keeps, run for each; then what is peculiar to one.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::Time;
use fanline::prelude::*;
use fanline::scheduler::{
    CurrentThread, CurrentThreadWorker, EventLoop, Immediate, NewThread, ThreadPool, VirtualTime,
};

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

/// By the names that a program uses, on the scheduler itself.
fn runs_what_is_scheduled_on_it_directly<S: Scheduler>(case: &Case<S>) {
    let (tx, rx) = mpsc::channel();
    let scheduler = &case.scheduler;
    let send = |value: &'static str| {
        let tx = tx.clone();
        move || tx.send(value).unwrap()
    };
    scheduler.schedule(send("now")).detach();
    scheduler.schedule_after(MS, send("after")).detach();
    let due = scheduler.now() + MS;
    scheduler.schedule_at(due, send("at")).detach();
    let mut runs = 0;
    let again = send("again");
    scheduler
        .schedule_periodic(MS, move || {
            again();
            runs += 1;
            if runs == 2 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .detach();
    (case.settle)(scheduler);
    let mut seen = receive(&rx, 5);
    seen.sort_unstable();
    assert_eq!(seen, ["after", "again", "again", "at", "now"]);
}

fn laws<S: Scheduler>(case: &Case<S>) {
    runs_what_is_scheduled_on_it_directly(case);
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

/// With the prelude in scope a call finds one method on each concrete type, which generic code cannot
/// show.
#[test]
fn methods_are_found_on_each_scheduler_by_name() {
    macro_rules! check {
        ($scheduler:expr, $settle:expr) => {{
            let scheduler = $scheduler;
            let (tx, rx) = mpsc::channel();
            let (a, b, c, d) = (tx.clone(), tx.clone(), tx.clone(), tx.clone());
            scheduler.schedule(move || a.send(1).unwrap()).detach();
            scheduler
                .schedule_after(MS, move || b.send(2).unwrap())
                .detach();
            scheduler
                .schedule_at(scheduler.now(), move || c.send(3).unwrap())
                .detach();
            let periodic = move || {
                d.send(4).unwrap();
                ControlFlow::Break(())
            };
            scheduler.schedule_periodic(MS, periodic).detach();
            let worker = scheduler.worker();
            worker
                .schedule(tx.clone(), |tx, worker| {
                    worker.schedule(tx, |tx, _| tx.send(5).unwrap()).detach();
                })
                .detach();
            worker
                .schedule_after(MS, tx.clone(), |tx, _| tx.send(6).unwrap())
                .detach();
            worker
                .schedule_at(worker.now(), tx.clone(), |tx, _| tx.send(7).unwrap())
                .detach();
            worker
                .schedule_periodic(MS, tx, |tx, _| {
                    tx.send(8).unwrap();
                    ControlFlow::Break(())
                })
                .detach();
            $settle(&scheduler);
            let mut seen = receive(&rx, 8);
            seen.sort_unstable();
            assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8]);
        }};
    }
    check!(Immediate, |_: &Immediate| ());
    check!(CurrentThread, |_: &CurrentThread| ());
    check!(NewThread, |_: &NewThread| ());
    check!(EventLoop::new(), |_: &EventLoop| ());
    check!(ThreadPool::new(1), |_: &ThreadPool| ());
    check!(VirtualTime::new(), VirtualTime::run);
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

#[cfg(feature = "tokio")]
#[test]
fn a_tokio_runtime_keeps_the_laws() {
    use fanline::scheduler::TokioScheduler;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    laws(&real(TokioScheduler::new(runtime.handle().clone())));

    // What waits when the runtime ends is dropped.
    let drops = Arc::new(AtomicUsize::new(0));
    let state = Counted(drops.clone());
    let scheduler = TokioScheduler::new(runtime.handle().clone());
    let guard = scheduler
        .worker()
        .schedule_after(Duration::from_secs(3600), state, |_, _| {});
    drop(runtime);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    drop(guard);
}

/// A panic of one action costs no other, and no thread.
#[test]
fn panics_go_to_the_hook_and_threads_go_on() {
    fn check<S: Scheduler>(scheduler: &S, panics: &Receiver<String>) {
        for n in 0..10 {
            scheduler.schedule(move || panic!("number {n}")).detach();
        }
        let mut seen = receive(panics, 10);
        seen.sort_unstable();
        let expected: Vec<_> = (0..10).map(|n| format!("number {n}")).collect();
        assert_eq!(seen, expected);
        runs_each_action_once_in_order(&real(scheduler.clone()));
    }
    fn hook(tx: Sender<String>) -> impl Fn(Box<dyn std::any::Any + Send>) + Send + Sync + 'static {
        let tx = Mutex::new(tx);
        move |payload| {
            let message = payload.downcast::<String>().unwrap();
            tx.lock().unwrap().send(*message).unwrap();
        }
    }
    let (tx, panics) = mpsc::channel();
    check(
        &ThreadPool::options().threads(2).on_panic(hook(tx)).build(),
        &panics,
    );
    let (tx, panics) = mpsc::channel();
    check(&EventLoop::options().on_panic(hook(tx)).build(), &panics);
}

/// A periodic action that panics is over, and its lane goes on.
#[test]
fn a_periodic_action_that_panics_ends() {
    fn check<S: Scheduler>(scheduler: &S) {
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = Counted(drops.clone());
        let worker = scheduler.worker();
        let runs = Arc::new(AtomicUsize::new(0));
        let ran = runs.clone();
        let guard = worker.schedule_periodic(MS, counted, move |_, _| {
            assert_eq!(ran.fetch_add(1, Ordering::SeqCst), 0, "it runs once");
            panic!("as arranged");
        });
        let (tx, rx) = mpsc::channel();
        worker
            .schedule_after(10 * MS, tx, |tx, _| tx.send(()).unwrap())
            .detach();
        receive(&rx, 1);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        assert!(guard.is_closed());
    }
    check(&NewThread);
    check(&EventLoop::new());
    check(&ThreadPool::new(2));
}

#[test]
fn threads_are_named() {
    fn check<S: Scheduler>(scheduler: &S, expected: &str) {
        let (tx, rx) = mpsc::channel();
        let name = move || {
            let name = std::thread::current().name().map(str::to_owned);
            tx.send(name).unwrap();
        };
        scheduler.schedule(name).detach();
        assert_eq!(receive(&rx, 1)[0].as_deref(), Some(expected));
    }
    check(&NewThread, "fanline-worker");
    check(&EventLoop::new(), "fanline-loop");
    check(&ThreadPool::new(2), "fanline-pool");
    check(&ThreadPool::global(), "fanline-pool");
    check(
        &ThreadPool::options().threads(1).name("crew").build(),
        "crew",
    );
    check(&EventLoop::options().name("ring").build(), "ring");
}

/// An action that blocks in `unsubscribe_and_wait` occupies one thread and leaves the others to work.
#[test]
fn an_action_that_waits_to_unsubscribe_starves_nobody() {
    let pool = ThreadPool::new(2);
    let (began, begun) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let held = pool.schedule(move || {
        began.send(()).unwrap();
        gate.recv_timeout(PATIENCE).unwrap();
    });
    receive(&begun, 1);
    let (tx, rx) = mpsc::channel();
    let waited = tx.clone();
    pool.schedule(move || {
        tx.send("waits").unwrap();
        held.unsubscribe_and_wait();
        waited.send("has waited").unwrap();
    })
    .detach();
    assert_eq!(receive(&rx, 1), ["waits"]);
    open.send(()).unwrap();
    assert_eq!(receive(&rx, 1), ["has waited"]);
}

/// Cancelled from one thread while another is about to run it: it runs or it is dropped unrun, once.
#[test]
fn an_action_that_is_cancelled_as_it_begins_is_dropped_once() {
    let pool = ThreadPool::new(1);
    for turn in 0..2000_u32 {
        let drops = Arc::new(AtomicUsize::new(0));
        let state = Counted(drops.clone());
        let ran = Arc::new(AtomicBool::new(false));
        let flag = ran.clone();
        let guard = pool.worker().schedule(state, move |state, _| {
            flag.store(true, Ordering::SeqCst);
            drop(state);
        });
        for _ in 0..turn % 50 {
            std::hint::spin_loop();
        }
        guard.unsubscribe_and_wait();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        let before = ran.load(Ordering::SeqCst);
        std::thread::yield_now();
        assert_eq!(ran.load(Ordering::SeqCst), before);
    }
}

#[test]
fn a_trampoline_is_emptied_before_a_panic_goes_on() {
    let (tx, rx) = mpsc::channel();
    let run = std::panic::AssertUnwindSafe(|| {
        let outer = move |tx: Sender<_>, worker: &CurrentThreadWorker| {
            worker.schedule(tx, report("queued")).detach();
            panic!("first");
        };
        CurrentThread.worker().schedule(tx, outer).detach();
    });
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"first"));
    assert_eq!(rx.try_recv(), Ok("queued"));
    laws(&real(CurrentThread));
}

/// Says when its thread ends.
struct Farewell(Sender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

thread_local! {
    static FAREWELL: std::cell::RefCell<Option<Farewell>> = const { std::cell::RefCell::new(None) };
}

fn threads_end<S: Scheduler>(scheduler: S) {
    let worker = scheduler.worker();
    drop(scheduler);
    let (tx, rx) = mpsc::channel();
    let farewell = Farewell(tx);
    worker
        .schedule(farewell, |farewell, _| FAREWELL.set(Some(farewell)))
        .detach();
    // What is cancelled keeps no thread.
    drop(worker.schedule_after(Duration::from_secs(3600), (), |(), _| {}));
    let later = worker.schedule_after(Duration::from_secs(3600), (), |(), _| {});
    drop(worker);
    drop(later);
    receive(&rx, 1);
}

#[test]
fn threads_end_when_nothing_is_left_for_them() {
    threads_end(NewThread);
    threads_end(EventLoop::new());
    threads_end(ThreadPool::new(1));
    threads_end(ThreadPool::new(3));
}

#[test]
fn workers_of_a_pool_run_side_by_side_and_each_in_order() {
    let pool = ThreadPool::new(2);
    let barrier = Arc::new(std::sync::Barrier::new(2));
    let (tx, rx) = mpsc::channel();
    for _ in 0..2 {
        let (barrier, tx) = (barrier.clone(), tx.clone());
        pool.schedule(move || {
            barrier.wait();
            tx.send(()).unwrap();
        })
        .detach();
    }
    receive(&rx, 2);

    let (tx, rx) = mpsc::channel();
    let lanes: Vec<_> = (0..8).map(|_| pool.worker()).collect();
    let busy: Vec<_> = (0..8).map(|_| Arc::new(AtomicBool::new(false))).collect();
    for n in 0..1000 {
        for (lane, (worker, busy)) in lanes.iter().zip(&busy).enumerate() {
            let busy = busy.clone();
            worker
                .schedule(tx.clone(), move |tx, _| {
                    assert!(!busy.swap(true, Ordering::SeqCst), "one at a time");
                    tx.send((lane, n)).unwrap();
                    busy.store(false, Ordering::SeqCst);
                })
                .detach();
        }
    }
    let mut next = [0; 8];
    for (lane, n) in receive(&rx, 8000) {
        assert_eq!(n, next[lane]);
        next[lane] += 1;
    }
}

#[test]
fn one_busy_lane_does_not_starve_another() {
    let pool = ThreadPool::new(1);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let endless = pool
        .worker()
        .schedule_periodic(Duration::ZERO, (), move |(), _| {
            if stopped.load(Ordering::SeqCst) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    let (tx, rx) = mpsc::channel();
    let delayed = tx.clone();
    pool.schedule(move || tx.send("soon").unwrap()).detach();
    pool.worker()
        .schedule_after(MS, delayed, report("later"))
        .detach();
    receive(&rx, 2);
    stop.store(true, Ordering::SeqCst);
    endless.detach();
}

#[test]
fn what_is_shut_down_drops_what_it_has_and_takes_no_more() {
    fn check<S: Scheduler>(scheduler: &S, shut_down: impl Fn(&S)) {
        let drops = Arc::new(AtomicUsize::new(0));
        let worker = scheduler.worker();
        let queued =
            worker.schedule_after(Duration::from_secs(3600), Counted(drops.clone()), |_, _| {
                panic!("it never runs")
            });
        shut_down(scheduler);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        let refused = worker.schedule(Counted(drops.clone()), |_, _| panic!("nor does this"));
        assert_eq!(drops.load(Ordering::SeqCst), 2);
        assert!(refused.is_closed());
        drop(queued);
    }
    check(&EventLoop::new(), EventLoop::shut_down);
    check(&ThreadPool::new(2), ThreadPool::shut_down);
}

#[test]
fn a_loop_that_went_idle_keeps_the_order() {
    let fleeting = EventLoop::options().exit_when_idle(Duration::ZERO).build();
    let (tx, rx) = mpsc::channel();
    for n in 0..5000 {
        let tx = tx.clone();
        fleeting.schedule(move || tx.send(n).unwrap()).detach();
        if n % 64 == 0 {
            std::thread::yield_now();
        }
    }
    assert_eq!(receive(&rx, 5000), (0..5000).collect::<Vec<_>>());
}

#[test]
fn a_manual_loop_runs_where_it_is_driven() {
    let pokes = Arc::new(AtomicUsize::new(0));
    let poked = pokes.clone();
    let (event_loop, mut driver) = EventLoop::manual(move || {
        poked.fetch_add(1, Ordering::SeqCst);
    });
    let (tx, rx) = mpsc::channel();
    let worker = event_loop.worker();
    worker
        .schedule(tx.clone(), |tx, worker| {
            worker.schedule(tx.clone(), report("nested")).detach();
            tx.send("first").unwrap();
        })
        .detach();
    assert_eq!(pokes.load(Ordering::SeqCst), 1);
    assert!(driver.run_pending().is_some(), "the nested one is left");
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), ["first"]);
    assert_eq!(driver.run_pending(), None);
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), ["nested"]);

    worker
        .schedule(tx.clone(), report("from elsewhere"))
        .detach();
    assert_eq!(pokes.load(Ordering::SeqCst), 2);
    worker.schedule_after(MS, tx, report("last")).detach();
    drop((event_loop, worker));
    // Ends, since no handle is left.
    driver.run();
    assert_eq!(rx.iter().collect::<Vec<_>>(), ["from elsewhere", "last"]);
}

#[test]
fn a_guard_can_wait_for_the_action_that_runs() {
    let (began, begun) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    let flag = over.clone();
    let guard = NewThread.schedule(move || {
        began.send(()).unwrap();
        std::thread::sleep(20 * MS);
        flag.store(true, Ordering::SeqCst);
    });
    begun.recv_timeout(PATIENCE).unwrap();
    guard.unsubscribe_and_wait();
    assert!(over.load(Ordering::SeqCst));
}

#[test]
#[should_panic(expected = "`threads` must be at least 1")]
fn a_pool_has_a_thread() {
    let _ = ThreadPool::new(0);
}
