//! Creation functions, and operators that work only inside the calls of their observer.
//!
//! All tests call [`check`] with the source's events, the chain, and the expected output. It runs the chain
//! for each way in which a source can deliver its values, and again with observers that close after each
//! possible number of calls.
#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only by a test that has failed"
)]

mod creating;
mod ending_early;
mod filtering;
mod folding;
mod hooks;
mod live;
mod models;
mod shapes;
mod tap_and_finalize;
mod transforming;

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use fanline::operators::Notification;
use fanline::prelude::*;

/// The error of scripted sources.
type Failure = &'static str;

/// The end of a scripted source.
#[derive(Clone, Copy, Debug)]
enum End {
    Completes,
    Fails(Failure),
    Never,
}

/// The way in which a scripted source delivers its values.
#[derive(Clone, Copy, Debug)]
enum Way {
    Borrowed,
    Owned,
    Slices(usize),
}

const WAYS: [Way; 5] = [
    Way::Borrowed,
    Way::Owned,
    Way::Slices(1),
    Way::Slices(2),
    Way::Slices(1000),
];

/// A source that follows a script and fulfills the observer contract.
#[derive(Clone)]
struct Script<T> {
    values: Vec<T>,
    end: End,
    way: Way,
    /// Number of values that the source has delivered.
    sent: Arc<Mutex<usize>>,
}

fn script<T: Clone>(values: &[T], end: End, way: Way) -> Script<T> {
    Script {
        values: values.to_vec(),
        end,
        way,
        sent: Arc::default(),
    }
}

impl<T: Clone + Send + 'static> Observable for Script<T> {
    type Item = T;
    type Error = Failure;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<T, Failure> + Send + 'static,
    {
        let size = match self.way {
            Way::Slices(size) => size,
            Way::Borrowed | Way::Owned => 1,
        };
        for values in self.values.chunks(size) {
            if observer.is_closed() {
                return Guard::closed();
            }
            *self.sent.lock().unwrap() += values.len();
            match self.way {
                Way::Borrowed => observer.next(&values[0]),
                Way::Owned => observer.next_owned(values[0].clone()),
                Way::Slices(_) => observer.next_slice(values),
            }
        }
        if observer.is_closed() {
            return Guard::closed();
        }
        match self.end {
            End::Completes => observer.complete(),
            End::Fails(error) => observer.error(&error),
            End::Never => {
                let observer = Mutex::new(Some(observer));
                return Guard::new(move || drop(observer.lock().unwrap().take()));
            }
        }
        Guard::closed()
    }
}

/// An observer that records its calls, and panics on a call that violates the contract.
struct Recorder<T, E> {
    received: Arc<Mutex<Vec<Notification<T, E>>>>,
    /// Number of calls after which the observer is closed.
    limit: usize,
}

impl<T: Clone, E: Clone> Recorder<T, E> {
    fn record(&self, notification: Notification<T, E>) {
        let mut received = self.received.lock().unwrap();
        assert!(received.len() < self.limit, "called after it was closed");
        assert!(
            matches!(received.last(), None | Some(Notification::Next(_))),
            "called after the end"
        );
        received.push(notification);
    }
}

impl<T: Clone, E: Clone> Observer<T, E> for Recorder<T, E> {
    fn next(&mut self, value: &T) {
        self.record(Notification::Next(value.clone()));
    }

    fn error(&mut self, error: &E) {
        self.record(Notification::Error(error.clone()));
    }

    fn complete(&mut self) {
        self.record(Notification::Complete);
    }

    fn is_closed(&self) -> bool {
        self.received.lock().unwrap().len() >= self.limit
    }
}

/// Returns the output of a chain for an observer that is closed after `limit` calls.
fn record<S: Observable>(chain: S, limit: usize) -> Vec<Notification<S::Item, S::Error>>
where
    S::Item: Clone + Send + 'static,
    S::Error: Clone + Send + 'static,
{
    let received = Arc::default();
    let guard = chain.subscribe_with(Recorder {
        received: Arc::clone(&received),
        limit,
    });
    drop(guard);
    let mut received = received.lock().unwrap();
    std::mem::take(&mut *received)
}

/// Checks that `chain` turns a source of `values` and `end` into `expected`.
#[track_caller]
fn check<T, S>(
    values: &[T],
    end: End,
    chain: impl Fn(Script<T>) -> S,
    expected: &[Notification<S::Item, S::Error>],
) where
    T: Clone + Debug + Send + 'static,
    S: Observable,
    S::Item: Clone + Debug + PartialEq + Send + 'static,
    S::Error: Clone + Debug + PartialEq + Send + 'static,
{
    for way in WAYS {
        for limit in (0..=expected.len()).chain([usize::MAX]) {
            let received = record(chain(script(values, end, way)), limit);
            let part = &expected[..limit.min(expected.len())];
            assert!(
                received == part,
                "{values:?} {end:?} {way:?}, closed after {limit} notifications: {received:?}, not {part:?}"
            );
        }
    }
}

/// Returns these values, then completion.
fn completes<T: Clone, E>(values: impl AsRef<[T]>) -> Vec<Notification<T, E>> {
    let mut all = open(values);
    all.push(Notification::Complete);
    all
}

/// Returns these values, then an error.
fn fails<T: Clone, E>(values: impl AsRef<[T]>, error: E) -> Vec<Notification<T, E>> {
    let mut all = open(values);
    all.push(Notification::Error(error));
    all
}

/// Returns these values, without an end.
fn open<T: Clone, E>(values: impl AsRef<[T]>) -> Vec<Notification<T, E>> {
    values
        .as_ref()
        .iter()
        .cloned()
        .map(Notification::Next)
        .collect()
}

/// Returns only an error, for chains that drop their values when the source fails.
fn only_fails<T: Clone>(error: Failure) -> Vec<Notification<T, Failure>> {
    fails([], error)
}

/// Checks the output of a chain that has no scripted source.
#[track_caller]
fn check_whole<S>(chain: &S, expected: &[Notification<S::Item, S::Error>])
where
    S: Observable + Clone,
    S::Item: Clone + Debug + PartialEq + Send + 'static,
    S::Error: Clone + Debug + PartialEq + Send + 'static,
{
    for limit in (0..=expected.len()).chain([usize::MAX]) {
        let received = record(chain.clone(), limit);
        assert_eq!(
            received,
            expected[..limit.min(expected.len())],
            "closed after {limit} notifications"
        );
    }
}

/// Like `completes`, for chains that cannot fail.
fn completes_safely<T: Clone>(values: impl AsRef<[T]>) -> Vec<Notification<T, Infallible>> {
    completes(values)
}
