//! The contract of all schedulers, checked for each scheduler, and tests of single schedulers.

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

/// A timeout that only a failing test reaches.
const TIMEOUT: Duration = Duration::from_secs(20);
const MS: Duration = Duration::from_millis(1);

/// A scheduler under test, and a function that advances its time.
struct Case<S> {
    scheduler: S,
    run_all: fn(&S),
    /// Whether an action always runs inside the call that schedules it.
    nests: bool,
}

fn real<S>(scheduler: S) -> Case<S> {
    Case {
        scheduler,
        run_all: |_| {},
        nests: false,
    }
}

impl<S: Scheduler> Case<S> {
    /// Runs `action` on a worker with a channel for reports, and returns the first `count` reports.
    fn reports<T: Send + 'static>(
        &self,
        count: usize,
        action: impl FnOnce(Sender<T>, &S::Worker) + Send + 'static,
    ) -> Vec<T> {
        let (tx, rx) = mpsc::channel();
        let worker = self.scheduler.worker();
        worker.schedule(tx, action).detach();
        drop(worker);
        (self.run_all)(&self.scheduler);
        receive(&rx, count)
    }
}

fn receive<T>(rx: &Receiver<T>, count: usize) -> Vec<T> {
    (0..count)
        .map(|_| rx.recv_timeout(TIMEOUT).expect("a report in time"))
        .collect()
}

fn report<T: Send + 'static, W>(value: T) -> impl FnOnce(Sender<T>, &W) + Send + 'static {
    move |tx, _| tx.send(value).unwrap()
}

/// Counts its drops.
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
        // Much longer than the calls take, also under an emulator.
        let unit = 100 * MS;
        let now = worker.now();
        for (delay, name) in [(3, "c"), (1, "a"), (2, "b"), (3, "d"), (0, "now")] {
            worker
                .schedule_at(now + delay * unit, tx.clone(), report(name))
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

fn past_due_time_runs_at_once<S: Scheduler>(case: &Case<S>) {
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

fn recursion_uses_constant_stack<S: Scheduler>(case: &Case<S>) {
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

fn cancelled_action_never_runs_and_is_dropped_at_once<S: Scheduler>(case: &Case<S>) {
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

fn periodic_action_keeps_its_state<S: Scheduler>(case: &Case<S>) {
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

fn periodic_action_can_cancel_itself<S: Scheduler>(case: &Case<S>) {
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

fn zero_period_does_not_starve_others<S: Scheduler>(case: &Case<S>) {
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

fn detached_action_outlives_its_worker<S: Scheduler>(case: &Case<S>) {
    let (tx, rx) = mpsc::channel();
    let worker = case.scheduler.worker();
    worker
        .schedule_after(5 * MS, tx.clone(), report("later"))
        .detach();
    worker.schedule(tx, report("soon")).detach();
    drop(worker);
    (case.run_all)(&case.scheduler);
    let mut seen = receive(&rx, 2);
    seen.sort_unstable();
    assert_eq!(seen, ["later", "soon"]);
}

fn clock_does_not_go_back<S: Scheduler>(case: &Case<S>) {
    let before = case.scheduler.now();
    let seen = case.reports(1, move |tx, worker| {
        let due = worker.now() + 3 * MS;
        let at = move |tx: Sender<_>, worker: &S::Worker| tx.send(worker.now() >= due).unwrap();
        worker.schedule_at(due, tx, at).detach();
    });
    assert_eq!(seen, [true]);
    assert!(case.scheduler.now() >= before);
}

/// Calls the methods of the scheduler itself, with the names that a program uses.
fn scheduler_methods_run_actions<S: Scheduler>(case: &Case<S>) {
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
    (case.run_all)(scheduler);
    let mut seen = receive(&rx, 5);
    seen.sort_unstable();
    assert_eq!(seen, ["after", "again", "again", "at", "now"]);
}

fn check_contract<S: Scheduler>(case: &Case<S>) {
    scheduler_methods_run_actions(case);
    runs_each_action_once_in_order(case);
    runs_by_due_time(case);
    past_due_time_runs_at_once(case);
    runs_nested_actions_after_the_outer_one(case);
    recursion_uses_constant_stack(case);
    cancelled_action_never_runs_and_is_dropped_at_once(case);
    drops_the_state_of_an_action_that_ran(case);
    periodic_action_keeps_its_state(case);
    periodic_action_can_cancel_itself(case);
    zero_period_does_not_starve_others(case);
    detached_action_outlives_its_worker(case);
    clock_does_not_go_back(case);
}

/// With the prelude in scope, each method name must be unambiguous on each concrete type. Generic code cannot
/// check this.
#[test]
fn methods_resolve_on_each_scheduler() {
    macro_rules! check {
        ($scheduler:expr, $run_all:expr) => {{
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
            $run_all(&scheduler);
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
fn immediate_fulfills_contract() {
    check_contract(&Case {
        nests: true,
        ..real(Immediate)
    });
}

#[test]
fn current_thread_fulfills_contract() {
    check_contract(&real(CurrentThread));
}

#[test]
fn new_thread_fulfills_contract() {
    check_contract(&real(NewThread));
}

#[test]
fn event_loop_fulfills_contract() {
    check_contract(&real(EventLoop::new()));
    // The thread ends between almost any two actions.
    let idle_exit_loop = EventLoop::options().exit_when_idle(Duration::ZERO).build();
    check_contract(&real(idle_exit_loop));
}

#[test]
fn thread_pool_fulfills_contract() {
    for threads in [1, 2, 5] {
        check_contract(&real(ThreadPool::new(threads)));
    }
    check_contract(&real(ThreadPool::global()));
}

#[test]
fn virtual_time_fulfills_contract() {
    check_contract(&Case {
        run_all: VirtualTime::run,
        ..real(VirtualTime::new())
    });
}

#[cfg(feature = "tokio")]
#[test]
fn tokio_scheduler_fulfills_contract() {
    use fanline::scheduler::TokioScheduler;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    check_contract(&real(TokioScheduler::new(runtime.handle().clone())));

    // Actions that are queued when the runtime ends are dropped.
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

/// A panic of one action stops no other action and no thread.
#[test]
fn panics_reach_hook_and_threads_continue() {
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

/// A periodic action that panics ends, and its worker continues.
#[test]
fn panicking_periodic_action_ends() {
    fn check<S: Scheduler>(scheduler: &S) {
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = Counted(drops.clone());
        let worker = scheduler.worker();
        let runs = Arc::new(AtomicUsize::new(0));
        let ran = runs.clone();
        let guard = worker.schedule_periodic(MS, counted, move |_, _| {
            assert_eq!(ran.fetch_add(1, Ordering::SeqCst), 0, "runs once");
            panic!("on purpose");
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
fn threads_have_documented_names() {
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

/// An action that blocks in `unsubscribe_and_wait` occupies only one thread.
#[test]
fn blocking_unsubscribe_occupies_one_pool_thread() {
    let pool = ThreadPool::new(2);
    let (began, begun) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let held = pool.schedule(move || {
        began.send(()).unwrap();
        gate.recv_timeout(TIMEOUT).unwrap();
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

/// One thread cancels an action while another thread is about to run it. The action either runs or is
/// dropped, exactly once.
#[test]
fn action_cancelled_at_its_start_is_dropped_once() {
    let pool = ThreadPool::new(1);
    for round in 0..2000_u32 {
        let drops = Arc::new(AtomicUsize::new(0));
        let state = Counted(drops.clone());
        let ran = Arc::new(AtomicBool::new(false));
        let flag = ran.clone();
        let guard = pool.worker().schedule(state, move |state, _| {
            flag.store(true, Ordering::SeqCst);
            drop(state);
        });
        for _ in 0..round % 50 {
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
fn current_thread_runs_queue_before_panic_resumes() {
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
    check_contract(&real(CurrentThread));
}

/// Sends a signal when its thread ends.
struct ThreadEndSignal(Sender<()>);

impl Drop for ThreadEndSignal {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

thread_local! {
    static THREAD_END_SIGNAL: std::cell::RefCell<Option<ThreadEndSignal>> = const { std::cell::RefCell::new(None) };
}

fn check_threads_end<S: Scheduler>(scheduler: S) {
    let worker = scheduler.worker();
    drop(scheduler);
    let (tx, rx) = mpsc::channel();
    let signal = ThreadEndSignal(tx);
    worker
        .schedule(signal, |signal, _| THREAD_END_SIGNAL.set(Some(signal)))
        .detach();
    // A cancelled action keeps no thread alive.
    drop(worker.schedule_after(Duration::from_secs(3600), (), |(), _| {}));
    let later = worker.schedule_after(Duration::from_secs(3600), (), |(), _| {});
    drop(worker);
    drop(later);
    receive(&rx, 1);
}

#[test]
fn threads_end_without_handles_and_actions() {
    check_threads_end(NewThread);
    check_threads_end(EventLoop::new());
    check_threads_end(ThreadPool::new(1));
    check_threads_end(ThreadPool::new(3));
}

#[test]
fn pool_workers_run_in_parallel_and_each_in_order() {
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
    let workers: Vec<_> = (0..8).map(|_| pool.worker()).collect();
    let busy: Vec<_> = (0..8).map(|_| Arc::new(AtomicBool::new(false))).collect();
    for n in 0..1000 {
        for (index, (worker, busy)) in workers.iter().zip(&busy).enumerate() {
            let busy = busy.clone();
            worker
                .schedule(tx.clone(), move |tx, _| {
                    assert!(!busy.swap(true, Ordering::SeqCst), "one at a time");
                    tx.send((index, n)).unwrap();
                    busy.store(false, Ordering::SeqCst);
                })
                .detach();
        }
    }
    let mut next = [0; 8];
    for (index, n) in receive(&rx, 8000) {
        assert_eq!(n, next[index]);
        next[index] += 1;
    }
}

#[test]
fn busy_worker_does_not_starve_another() {
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
fn shut_down_drops_queued_and_later_actions() {
    fn check<S: Scheduler>(scheduler: &S, shut_down: impl Fn(&S)) {
        let drops = Arc::new(AtomicUsize::new(0));
        let worker = scheduler.worker();
        let queued =
            worker.schedule_after(Duration::from_secs(3600), Counted(drops.clone()), |_, _| {
                panic!("a queued action ran after the shutdown")
            });
        shut_down(scheduler);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        let rejected = worker.schedule(Counted(drops.clone()), |_, _| {
            panic!("an action scheduled after the shutdown ran")
        });
        assert_eq!(drops.load(Ordering::SeqCst), 2);
        assert!(rejected.is_closed());
        drop(queued);
    }
    check(&EventLoop::new(), EventLoop::shut_down);
    check(&ThreadPool::new(2), ThreadPool::shut_down);
}

#[test]
fn event_loop_keeps_order_across_idle_exits() {
    let idle_exit_loop = EventLoop::options().exit_when_idle(Duration::ZERO).build();
    let (tx, rx) = mpsc::channel();
    for n in 0..5000 {
        let tx = tx.clone();
        idle_exit_loop
            .schedule(move || tx.send(n).unwrap())
            .detach();
        if n % 64 == 0 {
            std::thread::yield_now();
        }
    }
    assert_eq!(receive(&rx, 5000), (0..5000).collect::<Vec<_>>());
}

#[test]
fn manual_loop_runs_on_driving_thread() {
    let wakes = Arc::new(AtomicUsize::new(0));
    let woken = wakes.clone();
    let (event_loop, mut driver) = EventLoop::manual(move || {
        woken.fetch_add(1, Ordering::SeqCst);
    });
    let (tx, rx) = mpsc::channel();
    let worker = event_loop.worker();
    worker
        .schedule(tx.clone(), |tx, worker| {
            worker.schedule(tx.clone(), report("nested")).detach();
            tx.send("first").unwrap();
        })
        .detach();
    assert_eq!(wakes.load(Ordering::SeqCst), 1);
    assert!(driver.run_pending().is_some(), "the nested action is left");
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), ["first"]);
    assert_eq!(driver.run_pending(), None);
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), ["nested"]);

    worker.schedule(tx.clone(), report("from outside")).detach();
    assert_eq!(wakes.load(Ordering::SeqCst), 2);
    worker.schedule_after(MS, tx, report("last")).detach();
    drop((event_loop, worker));
    // The driver returns because no handle of the loop is left.
    driver.run();
    assert_eq!(rx.iter().collect::<Vec<_>>(), ["from outside", "last"]);
}

#[test]
fn unsubscribe_and_wait_waits_for_running_action() {
    let (began, begun) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    let flag = over.clone();
    let guard = NewThread.schedule(move || {
        began.send(()).unwrap();
        std::thread::sleep(20 * MS);
        flag.store(true, Ordering::SeqCst);
    });
    begun.recv_timeout(TIMEOUT).unwrap();
    guard.unsubscribe_and_wait();
    assert!(over.load(Ordering::SeqCst));
}

#[test]
#[should_panic(expected = "`threads` must be at least 1")]
fn thread_pool_with_zero_threads_panics() {
    let _ = ThreadPool::new(0);
}
