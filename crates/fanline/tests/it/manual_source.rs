//! Sources that a test drives manually, and the scripts for them that tables of operator tests contain.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanline::{BoxObservable, BoxObserver, Guard, Observable, Observer};

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hot source that emits to all its observers on request. It drops an observer that has unsubscribed, is
/// closed, or has panicked. At the end it drops all observers.
pub(crate) struct ManualSource<T, E = &'static str> {
    shared: Arc<Shared<T, E>>,
}

struct Shared<T, E> {
    entries: Mutex<Vec<Subscription<T, E>>>,
    next_id: AtomicU64,
    subscriptions: AtomicUsize,
}

struct Subscription<T, E> {
    id: u64,
    /// `None` while the observer is being called.
    observer: Option<BoxObserver<T, E>>,
}

impl<T, E> Clone for ManualSource<T, E> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: 'static, E: 'static> ManualSource<T, E> {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                entries: Mutex::new(Vec::new()),
                next_id: AtomicU64::new(0),
                subscriptions: AtomicUsize::new(0),
            }),
        }
    }

    pub(crate) fn observers(&self) -> usize {
        locked(&self.shared.entries).len()
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.shared.subscriptions.load(Ordering::SeqCst)
    }

    fn each(&self, ends: bool, mut call: impl FnMut(&mut BoxObserver<T, E>)) {
        let ids: Vec<u64> = locked(&self.shared.entries).iter().map(|s| s.id).collect();
        for id in ids {
            let taken = locked(&self.shared.entries)
                .iter_mut()
                .find(|subscription| subscription.id == id)
                .and_then(|subscription| subscription.observer.take());
            let Some(observer) = taken else { continue };
            let mut put_back = PutBack {
                source: self,
                id,
                observer: Some(observer),
                keep: false,
            };
            if let Some(observer) = &mut put_back.observer {
                call(observer);
                put_back.keep = !ends && !observer.is_closed();
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

    pub(crate) fn drop_observers(&self) {
        self.each(true, |_| {});
    }
}

struct PutBack<'a, T, E> {
    source: &'a ManualSource<T, E>,
    id: u64,
    observer: Option<BoxObserver<T, E>>,
    keep: bool,
}

impl<T, E> Drop for PutBack<'_, T, E> {
    fn drop(&mut self) {
        let mut entries = locked(&self.source.shared.entries);
        if let Some(at) = entries
            .iter()
            .position(|subscription| subscription.id == self.id)
        {
            if self.keep {
                entries[at].observer = self.observer.take();
            } else {
                entries.remove(at);
            }
        }
        drop(entries);
        drop(self.observer.take());
    }
}

impl<T: 'static, E: 'static> Observable for ManualSource<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        let id = self.shared.next_id.fetch_add(1, Ordering::SeqCst);
        self.shared.subscriptions.fetch_add(1, Ordering::SeqCst);
        locked(&self.shared.entries).push(Subscription {
            id,
            observer: Some(Box::new(observer)),
        });
        let shared = Arc::downgrade(&self.shared);
        Guard::new(move || {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let subscription = {
                let mut entries = locked(&shared.entries);
                let at = entries
                    .iter()
                    .position(|subscription| subscription.id == id);
                at.map(|at| entries.remove(at))
            };
            drop(subscription);
        })
    }
}

/// A cold source. In each subscription it emits its values, and then its end if it has one.
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

/// An observer that logs its calls: values, `|` for completion, and `#` with the text of an error. It panics
/// on a call after the end and on overlapping calls.
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

    /// Returns the number of handles of the log, including the observer. It is 1 after the observer was
    /// dropped.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.shared)
    }

    fn record(&self, word: String, end: bool) {
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
        self.record(format!("{value:?}").replace(' ', ""), false);
    }

    fn error(&mut self, error: &E) {
        self.record(format!("#{error:?}").replace('"', ""), true);
    }

    fn complete(&mut self) {
        self.record("|".to_owned(), true);
    }
}

/// Four sources, called `a` to `d`.
pub(crate) type Sources = [ManualSource<u32>; 4];

pub(crate) fn sources() -> Sources {
    std::array::from_fn(|_| ManualSource::new())
}

/// A line of a table: the script of the sources, and the expected log.
///
/// Words of a script: `a1` is a value of `a`, `a|` its completion, and `a#` its error. `a-` drops `a` without
/// an end, and `!` unsubscribes. A `.` at the end of the expected log means that all sources have lost their
/// observers although the log has no end.
pub(crate) type Line = (&'static str, &'static str);

pub(crate) fn act(sources: &Sources, word: &str) {
    let (name, what) = word.split_at(1);
    let at = usize::from(name.as_bytes()[0] - b'a');
    match what {
        "|" => sources[at].complete(),
        "#" => sources[at].error(["a", "b", "c", "d"][at]),
        "-" => sources[at].drop_observers(),
        value => sources[at].next(value.parse().expect("a number")),
    }
}

/// Returns the expected log without its dot, and whether there was a dot.
pub(crate) fn without_dot(expected: &str) -> (&str, bool) {
    match expected.strip_suffix('.') {
        Some(logged) => (logged.trim_end(), true),
        None => (expected, false),
    }
}

/// Runs each script and compares the log. After an end or `!`, no source may have an observer, and the
/// observer must have been dropped.
#[track_caller]
pub(crate) fn check<T: Debug + 'static>(
    build: impl Fn(Sources) -> BoxObservable<T, &'static str>,
    table: &[Line],
) {
    for (script, expected) in table {
        let sources = sources();
        let log = Log::default();
        let mut guard = Some(build(sources.clone()).subscribe_with(log.clone()));
        for word in script.split_whitespace() {
            if word == "!" {
                guard = None;
            } else {
                act(&sources, word);
            }
        }
        let (expected, is_lost) = without_dot(expected);
        assert_eq!(log.text(), expected, "{script}");
        if log.has_ended() || guard.is_none() || is_lost {
            let left: Vec<usize> = sources.iter().map(ManualSource::observers).collect();
            assert_eq!(left, [0; 4], "observers left after {script}");
            assert_eq!(
                log.handles(),
                1,
                "the observer was not dropped after {script}"
            );
        }
        if let Some(guard) = guard {
            assert_eq!(guard.is_closed(), log.has_ended() || is_lost, "{script}");
        }
    }
}
