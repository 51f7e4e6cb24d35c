use std::sync::Arc;

use super::End::{Completes, Fails, Never};
use super::*;

/// The events of several observers, in order.
#[derive(Clone, Default)]
struct EventLog(Arc<Mutex<Vec<String>>>);

impl EventLog {
    fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    #[track_caller]
    fn check(&self, expected: &[&str]) {
        assert_eq!(*self.0.lock().unwrap(), expected);
    }
}

#[test]
fn tap_changes_nothing() {
    for end in [Completes, Fails("no"), Never] {
        let expected = match end {
            Completes => completes([1, 2]),
            Fails(error) => fails([1, 2], error),
            Never => open([1, 2]),
        };
        check(&[1, 2], end, |source| source.tap(|_| {}), &expected);
        check(
            &[1, 2],
            end,
            |source| source.tap_with(observer(|_: &i32| {})),
            &expected,
        );
        check(&[1, 2], end, |source| source.finalize(|| {}), &expected);
    }
}

#[test]
fn tap_runs_before_observer_and_sees_end() {
    for (end, last) in [
        (Completes, ["tap done", "done"]),
        (Fails("no"), ["tap no", "no"]),
    ] {
        for way in [Way::Borrowed, Way::Owned] {
            let events = EventLog::default();
            let tapped = |prefix: &'static str| {
                let (next, error, done) = (events.clone(), events.clone(), events.clone());
                observer(move |n: &i32| next.push(format!("{prefix}{n}")))
                    .on_error(move |e: &Failure| error.push(format!("{prefix}{e}")))
                    .on_complete(move || done.push(format!("{prefix}done")))
            };
            script(&[1, 2], end, way)
                .tap_with(tapped("tap "))
                .subscribe_with(tapped(""))
                .detach();
            events.check(&["tap 1", "1", "tap 2", "2", last[0], last[1]]);
        }
    }
}

#[test]
fn closed_tap_observer_is_not_called() {
    let received = Arc::default();
    let tapped = Recorder {
        received: Arc::clone(&received),
        limit: 2,
    };
    let got = record(
        script(&[1, 2, 3], Completes, Way::Slices(2)).tap_with(tapped),
        usize::MAX,
    );
    assert_eq!(got, completes([1, 2, 3]));
    assert_eq!(*received.lock().unwrap(), open([1, 2]));
}

#[test]
fn finalize_runs_after_end() {
    for (end, last) in [(Completes, "done"), (Fails("no"), "no")] {
        let events = EventLog::default();
        let (action, next, error, done) = (
            events.clone(),
            events.clone(),
            events.clone(),
            events.clone(),
        );
        let guard = script(&[1], end, Way::Owned)
            .finalize(move || action.push("over"))
            .subscribe_with(
                observer(move |n: &i32| next.push(n.to_string()))
                    .on_error(move |e: &Failure| error.push(*e))
                    .on_complete(move || done.push("done")),
            );
        events.check(&["1", last, "over"]);
        assert!(guard.is_closed());
        drop(guard);
        events.check(&["1", last, "over"]);
    }
}

#[test]
fn finalize_runs_once_on_unsubscription() {
    let events = EventLog::default();
    let (upstream, action) = (events.clone(), events.clone());
    let guard = script(&[1], Never, Way::Owned)
        .finalize(move || upstream.push("upper"))
        .map(|n| *n)
        .finalize(move || action.push("lower"))
        .subscribe(|_| {});
    assert!(!guard.is_closed());
    events.check(&[]);
    drop(guard);
    let mut seen = events.0.lock().unwrap().clone();
    seen.sort();
    assert_eq!(seen, ["lower", "upper"]);
}

#[test]
fn finalize_runs_when_take_ends() {
    let events = EventLog::default();
    let (action, next) = (events.clone(), events.clone());
    fanline::from_iter(1..)
        .finalize(move || action.push("over"))
        .take(2)
        .subscribe(move |n: &i32| next.push(n.to_string()))
        .detach();
    events.check(&["1", "2", "over"]);
}

#[test]
fn finalize_runs_when_closure_panics() {
    let events = EventLog::default();
    let action = events.clone();
    let chain = fanline::of(1)
        .finalize(move || action.push("over"))
        .map(|_| panic!("on purpose"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        chain.subscribe(|(): &()| {}).detach();
    }));
    assert!(panicked.is_err());
    events.check(&["over"]);
}
