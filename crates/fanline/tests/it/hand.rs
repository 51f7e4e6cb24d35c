//! Sources worked by hand, and scripts for them: what the operators' tables go through.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanline::{BoxObservable, BoxObserver, Guard, Observable, Observer};

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hot source that says what it is told to, to all who have subscribed. Drops an observer that is
/// unsubscribed, that is closed, that has panicked, and at the end.
pub(crate) struct Hand<T, E = &'static str> {
    shared: Arc<Shared<T, E>>,
}

struct Shared<T, E> {
    seats: Mutex<Vec<Seat<T, E>>>,
    next_id: AtomicU64,
    subscriptions: AtomicUsize,
}

struct Seat<T, E> {
    id: u64,
    /// Not there while it is called.
    observer: Option<BoxObserver<T, E>>,
}

impl<T, E> Clone for Hand<T, E> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: 'static, E: 'static> Hand<T, E> {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                seats: Mutex::new(Vec::new()),
                next_id: AtomicU64::new(0),
                subscriptions: AtomicUsize::new(0),
            }),
        }
    }

    pub(crate) fn observers(&self) -> usize {
        locked(&self.shared.seats).len()
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.shared.subscriptions.load(Ordering::SeqCst)
    }

    fn each(&self, ends: bool, mut call: impl FnMut(&mut BoxObserver<T, E>)) {
        let ids: Vec<u64> = locked(&self.shared.seats).iter().map(|s| s.id).collect();
        for id in ids {
            let taken = locked(&self.shared.seats)
                .iter_mut()
                .find(|seat| seat.id == id)
                .and_then(|seat| seat.observer.take());
            let Some(observer) = taken else { continue };
            let mut back = PutBack {
                hand: self,
                id,
                observer: Some(observer),
                keep: false,
            };
            if let Some(observer) = &mut back.observer {
                call(observer);
                back.keep = !ends && !observer.is_closed();
            }
        }
    }

    pub(crate) fn next(&self, value: T) {
        self.each(false, |observer| observer.next(&value));
    }

    pub(crate) fn error(&self, error: E) {
        self.each(true, |observer| observer.error(&error));
    }

    pub(crate) fn complete(&self) {
        self.each(true, |observer| observer.complete());
    }

    pub(crate) fn go(&self) {
        self.each(true, |_| {});
    }
}

struct PutBack<'a, T, E> {
    hand: &'a Hand<T, E>,
    id: u64,
    observer: Option<BoxObserver<T, E>>,
    keep: bool,
}

impl<T, E> Drop for PutBack<'_, T, E> {
    fn drop(&mut self) {
        let mut seats = locked(&self.hand.shared.seats);
        if let Some(at) = seats.iter().position(|seat| seat.id == self.id) {
            if self.keep {
                seats[at].observer = self.observer.take();
            } else {
                seats.remove(at);
            }
        }
        drop(seats);
        drop(self.observer.take());
    }
}

impl<T: 'static, E: 'static> Observable for Hand<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        let id = self.shared.next_id.fetch_add(1, Ordering::SeqCst);
        self.shared.subscriptions.fetch_add(1, Ordering::SeqCst);
        locked(&self.shared.seats).push(Seat {
            id,
            observer: Some(Box::new(observer)),
        });
        let shared = Arc::downgrade(&self.shared);
        Guard::new(move || {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let seat = {
                let mut seats = locked(&shared.seats);
                let at = seats.iter().position(|seat| seat.id == id);
                at.map(|at| seats.remove(at))
            };
            drop(seat);
        })
    }
}

/// Says its piece inside each subscription: values, then its end, if any.
#[derive(Clone)]
pub(crate) struct Cold<T, E = &'static str> {
    pub(crate) values: Vec<T>,
    pub(crate) end: Option<Result<(), E>>,
    pub(crate) subscriptions: Arc<AtomicUsize>,
    pub(crate) emitted: Arc<AtomicUsize>,
}

impl<T, E> Cold<T, E> {
    pub(crate) fn new(values: impl IntoIterator<Item = T>, end: Option<Result<(), E>>) -> Self {
        Self {
            values: values.into_iter().collect(),
            end,
            subscriptions: Arc::default(),
            emitted: Arc::default(),
        }
    }
}

impl<T: Send + 'static, E: Send + 'static> Observable for Cold<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        self.subscriptions.fetch_add(1, Ordering::SeqCst);
        for value in &self.values {
            if observer.is_closed() {
                return Guard::closed();
            }
            self.emitted.fetch_add(1, Ordering::SeqCst);
            observer.next(value);
        }
        if !observer.is_closed() {
            match &self.end {
                Some(Ok(())) => observer.complete(),
                Some(Err(error)) => observer.error(error),
                None => {}
            }
        }
        Guard::closed()
    }
}

/// Writes down what it hears: values, then `|` for completion or `#` and the error. Complains about a
/// call after the end and about calls that overlap.
#[derive(Clone, Default)]
pub(crate) struct Log {
    shared: Arc<LogShared>,
}

#[derive(Default)]
struct LogShared {
    words: Mutex<Vec<String>>,
    ended: AtomicUsize,
    inside: AtomicUsize,
}

impl Log {
    pub(crate) fn text(&self) -> String {
        locked(&self.shared.words).join(" ")
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.shared.ended.load(Ordering::SeqCst) > 0
    }

    /// How many handles there are, the observer included: 1 when it has been dropped.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.shared)
    }

    fn hear(&self, word: String, end: bool) {
        assert_eq!(
            self.shared.inside.fetch_add(1, Ordering::SeqCst),
            0,
            "calls overlap"
        );
        assert!(!self.has_ended(), "{word} after the end");
        locked(&self.shared.words).push(word);
        if end {
            self.shared.ended.fetch_add(1, Ordering::SeqCst);
        }
        self.shared.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<T: Debug, E: Debug> Observer<T, E> for Log {
    fn next(&mut self, value: &T) {
        self.hear(format!("{value:?}").replace(' ', ""), false);
    }

    fn error(&mut self, error: &E) {
        self.hear(format!("#{error:?}").replace('"', ""), true);
    }

    fn complete(&mut self) {
        self.hear("|".to_owned(), true);
    }
}

/// Four sources, called `a` to `d`.
pub(crate) type Hands = [Hand<u32>; 4];

pub(crate) fn hands() -> Hands {
    std::array::from_fn(|_| Hand::new())
}

/// One line of a table: what the sources say, and what is heard.
///
/// Words of a script: `a1` a value of `a`, `a|` its completion, `a#` its error, `a-` its going away
/// without an end, `!` unsubscribes. Where nothing more can be heard for that reason, `.` stands at
/// the end of what is.
pub(crate) type Line = (&'static str, &'static str);

pub(crate) fn act(hands: &Hands, word: &str) {
    let (name, what) = word.split_at(1);
    let at = usize::from(name.as_bytes()[0] - b'a');
    match what {
        "|" => hands[at].complete(),
        "#" => hands[at].error(["a", "b", "c", "d"][at]),
        "-" => hands[at].go(),
        value => hands[at].next(value.parse().expect("a number")),
    }
}

/// What is heard, and whether a dot says that nothing can follow.
pub(crate) fn without_dot(expected: &str) -> (&str, bool) {
    match expected.strip_suffix('.') {
        Some(heard) => (heard.trim_end(), true),
        None => (expected, false),
    }
}

/// Plays each line and compares. After an end or `!` nothing may be subscribed any more and the
/// observer must be gone.
#[track_caller]
pub(crate) fn check<T: Debug + 'static>(
    build: impl Fn(Hands) -> BoxObservable<T, &'static str>,
    table: &[Line],
) {
    for (script, expected) in table {
        let hands = hands();
        let log = Log::default();
        let mut guard = Some(build(hands.clone()).subscribe_with(log.clone()));
        for word in script.split_whitespace() {
            if word == "!" {
                guard = None;
            } else {
                act(&hands, word);
            }
        }
        let (expected, is_lost) = without_dot(expected);
        assert_eq!(log.text(), expected, "{script}");
        if log.has_ended() || guard.is_none() || is_lost {
            let left: Vec<usize> = hands.iter().map(Hand::observers).collect();
            assert_eq!(left, [0; 4], "observers left after {script}");
            assert_eq!(log.handles(), 1, "the observer is kept after {script}");
        }
        if let Some(guard) = guard {
            assert_eq!(guard.is_closed(), log.has_ended() || is_lost, "{script}");
        }
    }
}
