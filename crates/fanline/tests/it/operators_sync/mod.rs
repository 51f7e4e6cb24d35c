//! Creators, and operators that do all they do inside the call of their observer.
//!
//! Everything goes through [`check`]: what the source says, the chain, and what must come out. It runs
//! the chain for each way in which a source can hand its values over, and again with observers that
//! have had enough after each number of calls.
#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only by a test that has failed"
)]

mod creating;
mod ending_early;
mod filtering;
mod folding;
mod live;
mod looking_on;
mod models;
mod shapes;
mod transforming;

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use fanline::operators::Notification;
use fanline::prelude::*;

/// The error of scripted sources.
type Failure = &'static str;

/// How a scripted source ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Completes,
    Fails(Failure),
    Never,
}

/// How a scripted source hands its values over.
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

/// A source that says what it is told to, and keeps to the contract of an observer.
#[derive(Clone)]
struct Script<T> {
    values: Vec<T>,
    end: End,
    way: Way,
    /// How many values it got rid of.
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

/// Writes down what it is called with, and panics when a call breaks the grammar.
struct Recorder<T, E> {
    heard: Arc<Mutex<Vec<Notification<T, E>>>>,
    /// After this many calls it wants no more.
    enough: usize,
}

impl<T: Clone, E: Clone> Recorder<T, E> {
    fn record(&self, notification: Notification<T, E>) {
        let mut heard = self.heard.lock().unwrap();
        assert!(heard.len() < self.enough, "called when it had enough");
        assert!(
            matches!(heard.last(), None | Some(Notification::Next(_))),
            "called after the end"
        );
        heard.push(notification);
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
        self.heard.lock().unwrap().len() >= self.enough
    }
}

/// What comes out of a chain for an observer that wants no more after `enough` calls.
fn record<S: Observable>(chain: S, enough: usize) -> Vec<Notification<S::Item, S::Error>>
where
    S::Item: Clone + Send + 'static,
    S::Error: Clone + Send + 'static,
{
    let heard = Arc::default();
    let guard = chain.subscribe_with(Recorder {
        heard: Arc::clone(&heard),
        enough,
    });
    drop(guard);
    let mut heard = heard.lock().unwrap();
    std::mem::take(&mut *heard)
}

/// A source of `values` and `end`, with `chain` behind it, says `expected`.
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
        for enough in (0..=expected.len()).chain([usize::MAX]) {
            let heard = record(chain(script(values, end, way)), enough);
            let part = &expected[..enough.min(expected.len())];
            assert!(
                heard == part,
                "{values:?} {end:?} {way:?}, enough after {enough}: {heard:?}, not {part:?}"
            );
        }
    }
}

/// These values, then completion.
fn completes<T: Clone, E>(values: impl AsRef<[T]>) -> Vec<Notification<T, E>> {
    let mut all = open(values);
    all.push(Notification::Complete);
    all
}

/// These values, then an error.
fn fails<T: Clone, E>(values: impl AsRef<[T]>, error: E) -> Vec<Notification<T, E>> {
    let mut all = open(values);
    all.push(Notification::Error(error));
    all
}

/// These values and no end.
fn open<T: Clone, E>(values: impl AsRef<[T]>) -> Vec<Notification<T, E>> {
    values
        .as_ref()
        .iter()
        .cloned()
        .map(Notification::Next)
        .collect()
}

/// Nothing but an error: what a chain says that drops its values then.
fn only_fails<T: Clone>(error: Failure) -> Vec<Notification<T, Failure>> {
    fails([], error)
}

/// A chain without a scripted source says `expected`.
#[track_caller]
fn check_whole<S>(chain: &S, expected: &[Notification<S::Item, S::Error>])
where
    S: Observable + Clone,
    S::Item: Clone + Debug + PartialEq + Send + 'static,
    S::Error: Clone + Debug + PartialEq + Send + 'static,
{
    for enough in (0..=expected.len()).chain([usize::MAX]) {
        let heard = record(chain.clone(), enough);
        assert_eq!(
            heard,
            expected[..enough.min(expected.len())],
            "enough after {enough}"
        );
    }
}

/// For chains that cannot fail.
fn completes_safely<T: Clone>(values: impl AsRef<[T]>) -> Vec<Notification<T, Infallible>> {
    completes(values)
}
