//! The short programs that documentation pages and comparisons show.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::{AsyncSubject, BehaviorSubject, Observer, Precise, Replay, ReplaySubject};

#[derive(Clone, Default)]
struct Sum(Arc<Mutex<u32>>);

impl Observer<u32> for Sum {
    fn next(&mut self, value: &u32) {
        *self.0.lock().unwrap() += value;
    }

    fn error(&mut self, error: &std::convert::Infallible) {
        match *error {}
    }

    fn complete(&mut self) {
        *self.0.lock().unwrap() += 100;
    }
}

#[test]
fn exclusive_form_example_works() {
    let sum = Sum::default();
    let (mut tx, source) = fanline::subject::<u32>();
    let observer = sum.clone();
    let guard = source.subscribe(|v: &u32| assert!(*v < 4));
    source.subscribe_with(observer).detach();
    tx.next(1);
    tx.next_slice(&[2, 3]);
    tx.complete();
    assert_eq!(*sum.0.lock().unwrap(), 106);
    assert!(guard.is_closed());

    let (mut tx, source) = fanline::replay::<u32>(Replay::many(5));
    (0..9).for_each(|v| tx.next(v));
    assert_eq!(source.snapshot(), [4, 5, 6, 7, 8]);
}

#[test]
fn shared_form_example_works() {
    let s = fanline::Subject::<u32>::new();
    s.next(1);
    s.complete();
    assert!(!s.has_observers());
    assert_eq!(s.observer_count(), 0);

    let s = ReplaySubject::new(Replay::all());
    s.next(1);
    assert_eq!(s.snapshot(), [1]);
    s.dispose();
    assert!(s.has_ended());
    assert_eq!(BehaviorSubject::new(0).value(), Ok(0));
    let s = AsyncSubject::new();
    s.next("last");
    s.complete();
    assert_eq!(s.snapshot(), ["last"]);
}

#[test]
fn all_flavors_can_be_created() {
    let second = Duration::from_secs(1);
    ReplaySubject::new(Replay::one()).next(1);
    ReplaySubject::new(Replay::within(second)).next(1);
    ReplaySubject::new(Replay::within(second).clock(Precise)).next(1);
    ReplaySubject::new(Replay::many_within(5, second)).next(1);
    ReplaySubject::new(Replay::many_within(5, second).freeze_on_terminal()).next(1);
    let _: (fanline::Producer<u32>, fanline::Source<u32>) = fanline::subject();
    let s: ReplaySubject<u32, String> = ReplaySubject::with_error(Replay::many(0));
    s.error("over".to_owned());
    assert!(s.has_ended());
}

#[test]
fn subjects_and_sources_are_send_and_sync() {
    fn check<T: Clone + Send + Sync + 'static>(_: &T) {}
    check(&fanline::subject::<u32>().1);
    check(&fanline::Subject::<u32>::new());
    check(&ReplaySubject::<u32>::new(Replay::all()));
    check(&BehaviorSubject::new(0));
    check(&AsyncSubject::<u32>::new());
}
