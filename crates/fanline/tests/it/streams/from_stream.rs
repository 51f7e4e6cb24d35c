use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use fanline::scheduler::{CurrentThread, EventLoop, Immediate, NewThread, ThreadPool};
use fanline::stream::Unbounded;
use fanline::{
    Observable, ObservableExt, Observer, from_future, from_stream, try_from_future, try_from_stream,
};
use futures::channel::{mpsc, oneshot};
use futures::stream;

use super::manual::{ManualScheduler, ManualSource};

/// An observer that records its calls.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn text(&self) -> String {
        self.0.lock().unwrap().join(" ")
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn write(&self, text: impl ToString) {
        self.0.lock().unwrap().push(text.to_string());
    }
}

impl<E: std::fmt::Display> Observer<u32, E> for Log {
    fn next(&mut self, value: &u32) {
        self.write(value);
    }

    fn error(&mut self, error: &E) {
        self.write(format!("error:{error}"));
    }

    fn complete(&mut self) {
        self.write("complete");
    }
}

/// Subscribes, runs all actions, and returns the output.
fn run<S>(make: impl FnOnce(ManualScheduler) -> S) -> String
where
    S: Observable<Item = u32, Error: std::fmt::Display>,
{
    let (scheduler, log) = (ManualScheduler::default(), Log::default());
    let source = make(scheduler.clone());
    assert_eq!(
        scheduler.waiting(),
        0,
        "nothing is scheduled before the subscription"
    );
    let guard = source.subscribe_with(log.clone());
    assert_eq!(log.len(), 0, "all calls are on the worker");
    scheduler.run_all();
    assert!(guard.is_closed());
    log.text()
}

#[test]
fn streams_and_futures_emit_items_and_end() {
    type Results = Vec<Result<u32, &'static str>>;
    let results: Results = vec![Ok(1), Err("gone"), Ok(2)];
    assert_eq!(
        run(|scheduler| from_stream(stream::iter([1, 2]), scheduler)),
        "1 2 complete"
    );
    assert_eq!(
        run(|scheduler| from_stream(stream::empty(), scheduler)),
        "complete"
    );
    assert_eq!(
        run(|scheduler| try_from_stream(stream::iter(results), scheduler)),
        "1 error:gone"
    );
    assert_eq!(
        run(|scheduler| try_from_stream(stream::iter(Results::from([Ok(1)])), scheduler)),
        "1 complete"
    );
    assert_eq!(
        run(|scheduler| from_future(async { 1 }, scheduler)),
        "1 complete"
    );
    assert_eq!(
        run(|scheduler| try_from_future(async { Ok::<_, &str>(1) }, scheduler)),
        "1 complete"
    );
    assert_eq!(
        run(|scheduler| try_from_future(async { Err::<u32, _>("gone") }, scheduler)),
        "error:gone"
    );
}

#[test]
fn one_action_emits_a_bounded_number_of_items() {
    let (scheduler, log) = (ManualScheduler::default(), Log::default());
    let guard =
        from_stream(stream::repeat(1), scheduler.clone()).subscribe_with::<Log>(log.clone());
    for actions in 1..=3 {
        assert_eq!(scheduler.waiting(), 1);
        assert!(scheduler.run_one());
        assert_eq!(log.len(), actions * 64);
    }
    drop(guard);
    scheduler.run_all();
    assert_eq!(log.len(), 3 * 64);
}

#[test]
fn waker_schedules_one_action() {
    let (scheduler, log) = (ManualScheduler::default(), Log::default());
    let (sender, receiver) = mpsc::unbounded();
    let guard = from_stream(receiver, scheduler.clone()).subscribe_with::<Log>(log.clone());
    scheduler.run_all();
    for value in 0..3 {
        sender.unbounded_send(value).unwrap();
        assert_eq!(scheduler.waiting(), 1);
    }
    scheduler.run_all();
    assert_eq!(log.text(), "0 1 2");
    assert!(!guard.is_closed());
    drop(sender);
    scheduler.run_all();
    assert_eq!(log.text(), "0 1 2 complete");
    assert!(guard.is_closed());
}

#[test]
fn wake_during_action_is_not_lost() {
    let (scheduler, log) = (ManualScheduler::default(), Log::default());
    let mut left = 3;
    let stream = stream::poll_fn(move |context| {
        context.waker().wake_by_ref();
        left -= 1;
        if left == 0 {
            std::task::Poll::Ready(None::<u32>)
        } else {
            std::task::Poll::Pending
        }
    });
    from_stream(stream, scheduler.clone())
        .subscribe_with::<Log>(log.clone())
        .detach();
    for waiting in [1, 1, 1, 0] {
        assert_eq!(scheduler.waiting(), waiting);
        scheduler.run_one();
    }
    assert_eq!(log.text(), "complete");
}

#[test]
fn unsubscribe_drops_stream_at_once() {
    for actions_before in 0..2 {
        let scheduler = ManualScheduler::default();
        let (sender, receiver) = mpsc::unbounded::<u32>();
        let log = Log::default();
        let guard = from_stream(receiver, scheduler.clone()).subscribe_with::<Log>(log.clone());
        for _ in 0..actions_before {
            scheduler.run_one();
        }
        assert!(!sender.is_closed());
        assert_eq!(Arc::strong_count(&log.0), 2);
        drop(guard);
        assert!(sender.is_closed(), "idle or queued");
        assert_eq!(Arc::strong_count(&log.0), 1);
        scheduler.run_all();
    }
}

#[test]
fn unsubscribe_inside_observer_ends_action() {
    let scheduler = ManualScheduler::default();
    let slot = Arc::new(Mutex::new(None));
    let (guard, seen) = (slot.clone(), Arc::new(Mutex::new(Vec::new())));
    let log = seen.clone();
    let subscribed =
        from_stream(stream::repeat(7), scheduler.clone()).subscribe(move |value: &u32| {
            log.lock().unwrap().push(*value);
            drop(guard.lock().unwrap().take());
        });
    *slot.lock().unwrap() = Some(subscribed);
    scheduler.run_all();
    assert_eq!(*seen.lock().unwrap(), [7]);
}

#[test]
fn closed_observer_drops_stream() {
    let scheduler = ManualScheduler::default();
    let (sender, receiver) = mpsc::unbounded::<u32>();
    let first = from_stream(receiver, scheduler.clone()).first_value();
    scheduler.run_all();
    sender.unbounded_send(1).unwrap();
    sender.unbounded_send(2).unwrap();
    scheduler.run_all();
    assert!(sender.is_closed());
    assert_eq!(first.blocking_wait(), Ok(Some(1)));
}

#[test]
fn immediate_worker_uses_constant_stack() {
    let count = Arc::new(Mutex::new(0));
    let counted = count.clone();
    let guard = from_stream(stream::iter(0..1_000_000), Immediate)
        .subscribe(move |_| *counted.lock().unwrap() += 1);
    assert!(guard.is_closed());
    assert_eq!(*count.lock().unwrap(), 1_000_000);
}

#[test]
fn panic_ends_subscription() {
    for in_observer in [false, true] {
        let scheduler = ManualScheduler::default();
        let (sender, receiver) = mpsc::unbounded::<u32>();
        let stream = futures::StreamExt::map(receiver, move |value| {
            assert!(in_observer, "stream");
            value
        });
        let guard = from_stream(stream, scheduler.clone()).subscribe(|_| panic!("observer"));
        sender.unbounded_send(1).unwrap();
        let run = std::panic::AssertUnwindSafe(|| scheduler.run_all());
        std::panic::catch_unwind(run).unwrap_err();
        assert!(guard.is_closed());
        assert!(sender.is_closed());
        guard.unsubscribe_and_wait();
    }
}

#[test]
fn unsubscribe_and_wait_waits_for_call_in_progress() {
    for _ in 0..100 {
        let running = Arc::new(Mutex::new(()));
        let held = running.clone();
        let (begun, begins) = std::sync::mpsc::channel();
        let guard = from_stream(stream::repeat(1), NewThread).subscribe(move |_: &u32| {
            let _held = held.lock().unwrap();
            begun.send(()).unwrap_or_default();
            std::thread::yield_now();
        });
        begins.recv().unwrap();
        guard.unsubscribe_and_wait();
        assert!(running.try_lock().is_ok(), "a call is still running");
    }
}

/// Checks a stream that another thread feeds with pauses, so that wake-ups coincide with running actions.
fn check_scheduler(scheduler: impl fanline::Scheduler) {
    for _ in 0..20 {
        let (sender, receiver) = mpsc::unbounded();
        let back = from_stream(receiver, scheduler.clone()).into_stream(Unbounded);
        let feeder = std::thread::spawn(move || {
            for value in 0..500 {
                sender.unbounded_send(value).unwrap();
                if value % 50 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        assert!(back.blocking_iter().eq(0..500));
        feeder.join().unwrap();
    }
}

#[test]
fn from_stream_works_on_every_scheduler() {
    check_scheduler(Immediate);
    check_scheduler(CurrentThread);
    check_scheduler(NewThread);
    check_scheduler(EventLoop::new());
    check_scheduler(ThreadPool::new(2));
}

#[test]
fn source_to_stream_to_source_round_trip() {
    for tokio in [false, true] {
        let source = ManualSource::<u32>::new();
        let source_stream = source.clone().into_stream(Unbounded);
        let back = from_stream(source_stream, NewThread)
            .map(|value| value * 2)
            .into_stream(Unbounded);
        let producer = std::thread::spawn(move || {
            for value in 0..20_000 {
                source.next(value);
            }
            source.complete();
        });
        let values: Vec<u32> = if tokio {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
                .block_on(futures::StreamExt::collect(back))
        } else {
            back.blocking_iter().collect()
        };
        assert!(values.into_iter().eq((0..20_000).map(|value| value * 2)));
        producer.join().unwrap();
    }
}

#[test]
fn future_completed_on_another_thread_emits_value() {
    for _ in 0..100 {
        let (sender, receiver) = oneshot::channel::<u32>();
        let value = try_from_future(receiver, NewThread).first_value();
        let producer = std::thread::spawn(move || sender.send(5).unwrap());
        assert_eq!(value.blocking_wait(), Ok(Some(5)));
        producer.join().unwrap();
    }
    let never = from_future(std::future::pending::<Infallible>(), NewThread).last_value();
    drop(never);
}
