use std::sync::Arc;

use super::End::{Completes, Fails, Never};
use super::*;

/// What was seen, in order, by several who look.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: impl Into<String>) {
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
fn tap_looks_first_and_sees_the_end() {
    for (end, last) in [
        (Completes, ["look done", "done"]),
        (Fails("no"), ["look no", "no"]),
    ] {
        for way in [Way::Borrowed, Way::Owned] {
            let diary = Diary::default();
            let looker = |prefix: &'static str| {
                let (next, error, done) = (diary.clone(), diary.clone(), diary.clone());
                observer(move |n: &i32| next.note(format!("{prefix}{n}")))
                    .on_error(move |e: &Failure| error.note(format!("{prefix}{e}")))
                    .on_complete(move || done.note(format!("{prefix}done")))
            };
            script(&[1, 2], end, way)
                .tap_with(looker("look "))
                .subscribe_with(looker(""))
                .detach();
            diary.check(&["look 1", "1", "look 2", "2", last[0], last[1]]);
        }
    }
}

#[test]
fn a_looker_that_has_enough_is_left_alone() {
    let heard = Arc::default();
    let looker = Recorder {
        heard: Arc::clone(&heard),
        enough: 2,
    };
    let got = record(
        script(&[1, 2, 3], Completes, Way::Slices(2)).tap_with(looker),
        usize::MAX,
    );
    assert_eq!(got, completes([1, 2, 3]));
    assert_eq!(*heard.lock().unwrap(), open([1, 2]));
}

#[test]
fn finalize_comes_after_the_end() {
    for (end, last) in [(Completes, "done"), (Fails("no"), "no")] {
        let diary = Diary::default();
        let (action, next, error, done) =
            (diary.clone(), diary.clone(), diary.clone(), diary.clone());
        let guard = script(&[1], end, Way::Owned)
            .finalize(move || action.note("over"))
            .subscribe_with(
                observer(move |n: &i32| next.note(n.to_string()))
                    .on_error(move |e: &Failure| error.note(*e))
                    .on_complete(move || done.note("done")),
            );
        diary.check(&["1", last, "over"]);
        assert!(guard.is_closed());
        drop(guard);
        diary.check(&["1", last, "over"]);
    }
}

#[test]
fn finalize_runs_once_on_unsubscription() {
    let diary = Diary::default();
    let (upstream, action) = (diary.clone(), diary.clone());
    let guard = script(&[1], Never, Way::Owned)
        .finalize(move || upstream.note("upper"))
        .map(|n| *n)
        .finalize(move || action.note("lower"))
        .subscribe(|_| {});
    assert!(!guard.is_closed());
    diary.check(&[]);
    drop(guard);
    let mut seen = diary.0.lock().unwrap().clone();
    seen.sort();
    assert_eq!(seen, ["lower", "upper"]);
}

#[test]
fn finalize_runs_when_enough_was_taken() {
    let diary = Diary::default();
    let (action, next) = (diary.clone(), diary.clone());
    fanline::from_iter(1..)
        .finalize(move || action.note("over"))
        .take(2)
        .subscribe(move |n: &i32| next.note(n.to_string()))
        .detach();
    diary.check(&["1", "2", "over"]);
}

#[test]
fn finalize_runs_when_a_closure_panics() {
    let diary = Diary::default();
    let action = diary.clone();
    let chain = fanline::of(1)
        .finalize(move || action.note("over"))
        .map(|_| panic!("on purpose"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        chain.subscribe(|(): &()| {}).detach();
    }));
    assert!(panicked.is_err());
    diary.check(&["over"]);
}
