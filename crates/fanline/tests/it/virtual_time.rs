//! The virtual clock, and observables on it.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::scheduler::{CurrentThread, Immediate, NewThread, VirtualTime};
use fanline::testing::{Recorder, cold, complete, hot, next};
use fanline::{Clock, Coarse, Observable, Precise, Scheduler, Time, Worker};

const fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(u64, &'static str)>>>);

impl Log {
    fn schedule(&self, time: &VirtualTime, due: u64, name: &'static str) {
        let log = self.clone();
        let clock = time.clone();
        time.schedule_at(at(due), move || log.push(&clock, name))
            .detach();
    }

    fn push(&self, time: &VirtualTime, name: &'static str) {
        self.0.lock().unwrap().push((time.now().as_nanos(), name));
    }

    fn take(&self) -> Vec<(u64, &'static str)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn time_advances_only_on_request() {
    let (time, log) = (VirtualTime::new(), Log::default());
    for (due, name) in [(30, "c"), (10, "a"), (20, "b"), (10, "a2")] {
        log.schedule(&time, due, name);
    }
    assert_eq!((time.now(), time.queued()), (Time::ZERO, 4));
    time.advance_to(at(9));
    assert_eq!(log.take(), []);
    time.advance_to(at(20));
    assert_eq!(log.take(), [(10, "a"), (10, "a2"), (20, "b")]);
    time.advance_by(Duration::from_nanos(9));
    assert_eq!((log.take(), time.next_due()), (vec![], Some(at(30))));
    time.run();
    assert_eq!((log.take(), time.now()), (vec![(30, "c")], at(30)));
}

#[test]
fn past_due_action_runs_at_current_time() {
    let (time, log) = (VirtualTime::starting_at(at(100)), Log::default());
    log.schedule(&time, 7, "late");
    time.advance_by(Duration::ZERO);
    assert_eq!(log.take(), [(100, "late")]);
}

#[test]
fn stop_ends_advance_at_current_action() {
    let (time, log) = (VirtualTime::new(), Log::default());
    log.schedule(&time, 1, "first");
    let clock = time.clone();
    time.schedule_at(at(2), move || clock.stop()).detach();
    log.schedule(&time, 3, "last");
    time.advance_to(at(10));
    assert_eq!((log.take(), time.now()), (vec![(1, "first")], at(2)));
    time.stop();
    time.advance_to(at(10));
    assert_eq!((log.take(), time.now()), (vec![(3, "last")], at(10)));
}

#[test]
fn sleep_moves_clock_without_running_actions() {
    let (time, log) = (VirtualTime::new(), Log::default());
    log.schedule(&time, 5, "due");
    time.sleep(Duration::from_nanos(50));
    assert_eq!((log.take(), time.now()), (vec![], at(50)));
    time.advance_by(Duration::ZERO);
    assert_eq!(log.take(), [(50, "due")]);
}

#[test]
fn nested_advance_panics() {
    for nested in [
        (|time| time.advance_by(Duration::ZERO)) as fn(&VirtualTime),
        |time| time.advance_to(Time::from_nanos(9)),
        VirtualTime::run,
    ] {
        let time = VirtualTime::new();
        let clock = time.clone();
        time.schedule(move || nested(&clock)).detach();
        let panic = catch_unwind(AssertUnwindSafe(|| time.run())).unwrap_err();
        let message = panic.downcast_ref::<&str>().unwrap();
        assert!(message.contains("already being advanced"), "{message}");
        // The state of the failed advance does not affect the next one.
        time.advance_to(at(20));
    }
}

#[test]
#[should_panic(expected = "`time` must not be earlier")]
fn advance_to_past_time_panics() {
    let time = VirtualTime::starting_at(at(10));
    time.advance_to(at(9));
}

#[test]
fn panic_leaves_other_actions_queued() {
    let (time, log) = (VirtualTime::new(), Log::default());
    time.schedule_at(at(1), || panic!("on purpose")).detach();
    log.schedule(&time, 2, "after");
    assert!(catch_unwind(AssertUnwindSafe(|| time.run())).is_err());
    assert_eq!((log.take(), time.now()), (vec![], at(1)));
    time.run();
    assert_eq!(log.take(), [(2, "after")]);
}

#[test]
fn periodic_action_does_not_drift() {
    let (time, log) = (VirtualTime::new(), Log::default());
    let inner = log.clone();
    let worker = time.worker();
    let guard = worker.schedule_periodic(Duration::from_nanos(10), 0, move |runs, worker| {
        inner.push(worker.time(), "run");
        *runs += 1;
        if *runs == 2 {
            worker.time().sleep(Duration::from_nanos(25));
        }
        ControlFlow::Continue(())
    });
    time.advance_to(at(60));
    let times: Vec<_> = log.take().into_iter().map(|(at, _)| at).collect();
    // The second run lasts until 45. The missed runs of 30 and 40 follow at once, and the run of 50 is on
    // time.
    assert_eq!(times, [10, 20, 45, 45, 50, 60]);
    drop(guard);
    assert_eq!(time.queued(), 0);
}

#[test]
fn cold_observable_starts_at_subscription() {
    let time = VirtualTime::new();
    let source = cold::<_, std::convert::Infallible>(&time, [next(10, 'x'), complete(20)]);
    let recorder = Recorder::new(&time);
    time.advance_to(at(100));
    source.clone().subscribe_with(recorder.clone()).detach();
    let early = source.clone().subscribe(|_| {});
    time.advance_to(at(105));
    drop(early);
    time.run();
    assert_eq!(recorder.events(), [next(110, 'x'), complete(120)]);
    assert_eq!(recorder.values(), ['x']);
    assert_eq!(
        source.subscriptions(),
        [(at(100), Some(at(120))), (at(100), Some(at(105)))]
    );
}

#[test]
fn late_subscriber_misses_earlier_events_of_hot_observable() {
    let time = VirtualTime::new();
    let source = hot::<_, std::convert::Infallible>(&time, [next(10, 1), next(20, 2), next(30, 3)]);
    let recorder = Recorder::new(&time);
    time.advance_to(at(10));
    let guard = source.clone().subscribe_with(recorder.clone());
    time.advance_to(at(20));
    drop(guard);
    time.run();
    assert_eq!(recorder.events(), [next(20, 2)]);
    assert_eq!(source.subscriptions(), [(at(10), Some(at(20)))]);
}

#[test]
fn real_clocks_share_origin_and_are_monotonic() {
    let coarse = Coarse::new();
    let before = Precise.now();
    let reading = coarse.now();
    assert!(reading <= Precise.now());
    assert!(coarse.now_exact() >= before);
    assert_eq!(coarse.granularity(), Duration::from_millis(1));
    for scheduler_now in [
        Scheduler::now(&CurrentThread),
        Scheduler::now(&NewThread),
        Scheduler::now(&Immediate),
    ] {
        assert!(scheduler_now >= before && scheduler_now <= Precise.now());
    }
    drop(coarse);
    // A new handle is created after a time without handles. Its first reading must be fresh.
    std::thread::sleep(Duration::from_millis(5));
    let before = Precise.now();
    let again = Coarse::new();
    let copy = again.clone();
    assert!(again.now() >= reading);
    drop(again);
    while copy.now() < before {
        std::thread::yield_now();
    }
}
