//! A subject for one thread: no atomics and no `Send`.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::thread::ThreadId;

use super::core::{End, Panic};
use super::list::{Erased, List, Nobody, Place, Places, Vacant};
use super::producer::OnPanic;
use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{Guard, IntoObservable, Observable, Observer, observer};

/// A plain subject that stays on its thread: neither it nor its observers need be [`Send`], so that an
/// observer can hold an `Rc`, or a widget. Otherwise it is a [`Subject`](crate::Subject): the same
/// order for all, values that observers emit come after the one that they were given, who panics is
/// removed.
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
///
/// let seen = Rc::new(RefCell::new(Vec::new()));
/// let s = fanline::LocalSubject::new();
/// let sink = seen.clone();
/// let guard = s.subscribe(move |value: &u32| sink.borrow_mut().push(*value));
/// s.next(1);
/// drop(guard);
/// s.next(2);
/// assert_eq!(*seen.borrow(), [1]);
/// ```
///
/// Operators work on it too; their closures must be `Send`, since an operator does not know that it
/// stays on a thread. For the observer at the end there is
/// [`subscribe_local`](crate::ObservableExt::subscribe_local).
pub struct LocalSubject<T, E = Infallible> {
    local: Rc<Local<T, E>>,
}

struct Local<T, E> {
    /// Borrowed for as long as somebody emits.
    list: RefCell<List<Entry<T, E>>>,
    /// Never borrowed while the user's code runs.
    state: RefCell<State<T, E>>,
    /// Whether somebody emits, further up on the stack.
    emitting: Cell<bool>,
    /// Whether there is something in the state for whoever emits.
    signal: Cell<bool>,
    on_panic: Cell<OnPanic>,
    remote: Arc<Remote>,
}

struct State<T, E> {
    places: Places,
    /// Who subscribed while somebody emits.
    waiting: List<Entry<T, E>>,
    /// Who left meanwhile, and is in the list still.
    leaving: Vec<u32>,
    /// What was emitted meanwhile.
    queue: VecDeque<Emission<T, E>>,
    observers: usize,
    end: Option<End<E>>,
}

enum Emission<T, E> {
    Next(T),
    Slice(Vec<T>),
    End(End<E>),
}

struct Entry<T, E>(Box<dyn Erased<T, E>>);

impl<T, E> Vacant for Entry<T, E> {
    fn vacant() -> Self {
        // Takes no memory, having no size.
        Self(Box::new(Nobody))
    }
}

impl<T: 'static> LocalSubject<T> {
    /// A subject that does not fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T: 'static, E: 'static> LocalSubject<T, E> {
    /// A subject that can fail with `E`.
    pub fn with_error() -> Self {
        let local = Rc::new_cyclic(|weak: &Weak<Local<T, E>>| Local {
            list: RefCell::new(List::new()),
            state: RefCell::new(State {
                places: Places::new(),
                waiting: List::new(),
                leaving: Vec::new(),
                queue: VecDeque::new(),
                observers: 0,
                end: None,
            }),
            emitting: Cell::new(false),
            signal: Cell::new(false),
            on_panic: Cell::default(),
            remote: Remote::register(weak.clone()),
        });
        Self { local }
    }

    /// Chooses what happens when an observer panics, for all handles of the subject.
    #[must_use]
    pub fn on_observer_panic(self, on_panic: OnPanic) -> Self {
        self.local.on_panic.set(on_panic);
        self
    }

    /// Passes a value on to everybody who is subscribed. From inside an observer: after the value that
    /// is being passed on.
    ///
    /// # Panics
    ///
    /// When an observer did, after everybody else has got the value.
    #[inline]
    pub fn next(&self, value: T) {
        let local = &*self.local;
        if local.emitting.get() {
            local.queue(Emission::Next(value));
        } else {
            local.emit(|local| local.next(&value));
        }
    }

    /// Passes on values in one go: each observer gets all of them before the next observer does.
    ///
    /// # Panics
    ///
    /// When an observer did, after everybody else has got the values.
    pub fn next_slice(&self, values: &[T])
    where
        T: Clone,
    {
        let local = &*self.local;
        if local.emitting.get() {
            local.queue(Emission::Slice(values.to_vec()));
        } else {
            local.emit(|local| local.next_slice(values));
        }
    }

    /// Ends the subject well.
    ///
    /// # Panics
    ///
    /// When an observer did, after everybody else has been told.
    pub fn complete(&self) {
        self.local.end(End::Completed);
    }

    /// Ends the subject with a failure.
    ///
    /// # Panics
    ///
    /// When an observer did, after everybody else has been told.
    pub fn error(&self, error: E) {
        self.local.end(End::Failed(Arc::new(error)));
    }

    /// Ends the subject without a word and at once.
    pub fn dispose(&self) {
        self.local.dispose();
    }

    /// Calls `next` with each value.
    pub fn subscribe(&self, next: impl FnMut(&T) + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer. Its guard may go to another thread; dropped there, it takes effect with
    /// the next emission. What it says there of whether it is closed leaves out observers that have
    /// left by themselves.
    pub fn subscribe_with(&self, mut observer: impl Observer<T, E> + 'static) -> Guard {
        if observer.is_closed() {
            return Guard::closed();
        }
        let end = self.local.state.borrow().end.clone();
        match end {
            None => {}
            Some(End::Completed) => {
                observer.complete();
                return Guard::closed();
            }
            Some(End::Failed(error)) => {
                observer.error(&error);
                return Guard::closed();
            }
            Some(End::Disposed) => return Guard::closed(),
        }
        let key = self.local.add(Entry(Box::new(observer)));
        Guard::registered(self.local.remote.clone(), key)
    }

    /// Whether anybody is subscribed. False after the end.
    pub fn has_observers(&self) -> bool {
        self.observer_count() > 0
    }

    /// How many are subscribed. None after the end.
    pub fn observer_count(&self) -> usize {
        self.local.state.borrow().observers
    }

    /// Whether the subject has completed, failed or been disposed of.
    pub fn has_ended(&self) -> bool {
        self.local.state.borrow().end.is_some()
    }
}

impl<T: 'static, E: 'static> Default for LocalSubject<T, E> {
    fn default() -> Self {
        Self::with_error()
    }
}

impl<T, E> Clone for LocalSubject<T, E> {
    fn clone(&self) -> Self {
        Self {
            local: self.local.clone(),
        }
    }
}

impl<T, E> fmt::Debug for LocalSubject<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSubject")
            .field("observer_count", &self.local.state.borrow().observers)
            .finish_non_exhaustive()
    }
}

impl<T: 'static, E: 'static> IntoObservable for LocalSubject<T, E> {
    type Item = T;
    type Error = E;
    type Observable = FromLocal<T, E>;

    fn into_observable(self) -> FromLocal<T, E> {
        FromLocal { subject: self }
    }
}

/// A [`LocalSubject`] at the head of a chain of operators.
pub struct FromLocal<T, E = Infallible> {
    subject: LocalSubject<T, E>,
}

impl<T, E> Clone for FromLocal<T, E> {
    fn clone(&self) -> Self {
        Self {
            subject: self.subject.clone(),
        }
    }
}

impl<T, E> fmt::Debug for FromLocal<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(f)
    }
}

impl<T: 'static, E: 'static> Observable for FromLocal<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        self.subject.subscribe_with(observer)
    }
}

impl<T, E> Local<T, E> {
    /// Leaves an emission to whoever emits.
    #[cold]
    fn queue(&self, emission: Emission<T, E>) {
        self.state.borrow_mut().queue.push_back(emission);
        self.signal.set(true);
    }

    fn end(&self, end: End<E>) {
        if self.emitting.get() {
            self.queue(Emission::End(end));
        } else {
            self.emit(|local| local.pass_on_end(&end));
        }
    }

    /// Runs an emission, and those that observers make meanwhile.
    #[inline]
    fn emit(&self, emission: impl FnOnce(&Self) -> Option<Panic>) {
        self.emitting.set(true);
        // Whatever is thrown, by destructors too, must not end the emission of others.
        let mut panic = catch_unwind(AssertUnwindSafe(|| emission(self))).unwrap_or_else(Some);
        if self.signal.get() {
            let thrown = self.emit_queued();
            panic = panic.or(thrown);
        }
        self.emitting.set(false);
        self.on_panic.get().settle(panic);
    }

    #[cold]
    fn emit_queued(&self) -> Option<Panic> {
        let mut panic = None;
        loop {
            let thrown = catch_unwind(AssertUnwindSafe(|| self.tidy()));
            panic = panic.or_else(|| thrown.err());
            let Some(emission) = self.state.borrow_mut().queue.pop_front() else {
                // A destructor may have left something.
                if self.signal.get() {
                    continue;
                }
                return panic;
            };
            let thrown = catch_unwind(AssertUnwindSafe(|| match emission {
                Emission::Next(value) => self.next(&value),
                Emission::Slice(values) => self.next_slice(&values),
                Emission::End(end) => self.pass_on_end(&end),
            }));
            panic = panic.or_else(|| thrown.unwrap_or_else(Some));
        }
    }

    #[inline]
    fn next(&self, value: &T) -> Option<Panic> {
        self.fan_out(|entry| entry.0.next(value))
    }

    fn next_slice(&self, values: &[T]) -> Option<Panic> {
        self.fan_out(|entry| entry.0.next_slice(values))
    }

    fn pass_on_end(&self, end: &End<E>) -> Option<Panic> {
        {
            let mut state = self.state.borrow_mut();
            if state.end.is_some() {
                return None;
            }
            state.end = Some(end.clone());
            state.observers = 0;
            self.remote.has_ended.store(true, Ordering::Relaxed);
        }
        self.fan_out(|entry| {
            match end {
                End::Completed => entry.0.complete(),
                End::Failed(error) => entry.0.error(error),
                End::Disposed => {}
            }
            true
        })
    }

    /// Calls each observer that was there when it began, unless it has left meanwhile. One that says it
    /// is closed, and one that panics, is taken out.
    #[inline]
    fn fan_out(&self, mut call: impl FnMut(&mut Entry<T, E>) -> bool) -> Option<Panic> {
        // Relaxed: what it announces is behind the lock; seen late, it is done with the next emission.
        if self.remote.any_abandoned.load(Ordering::Relaxed) {
            self.remove_abandoned();
        }
        let mut list = self.list.borrow_mut();
        let mut panic = None;
        let mut next = 0;
        while next < list.len() {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                while next < list.len() {
                    let index = next;
                    next += 1;
                    let closed = call(list.get_mut(index));
                    if closed | self.signal.get() {
                        self.stir(&mut list, closed.then_some(index));
                    }
                }
            }));
            if let Err(payload) = outcome {
                panic.get_or_insert(payload);
                self.stir(&mut list, Some(next - 1));
            }
        }
        panic
    }

    /// Between two calls: takes out the observer at `closed`, and those who have left.
    #[cold]
    fn stir(&self, list: &mut List<Entry<T, E>>, closed: Option<usize>) {
        let mut place = closed.and_then(|index| list.place_at(index));
        loop {
            let mut gone = Vec::new();
            {
                let mut state = self.state.borrow_mut();
                if let Some(place) = place.take() {
                    if matches!(state.places.get(place), Place::Listed(_)) && state.end.is_none() {
                        state.observers -= 1;
                    }
                    gone.push(state.expel(list, place));
                }
                state.let_go(list, &mut gone);
            }
            // The list is tidied up when the calls are over.
            self.signal.set(true);
            if gone.is_empty() {
                return;
            }
            // Again, because dropping an observer may unsubscribe the one to be called next. A
            // destructor that panics must not be taken for the observer that was called.
            for entry in gone {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(entry)));
            }
        }
    }

    /// Between two emissions: lets those go who have left, lets those in who wait, and closes up.
    fn tidy(&self) {
        self.signal.set(false);
        let mut gone = Vec::new();
        {
            let mut list = self.list.borrow_mut();
            let mut state = self.state.borrow_mut();
            state.let_go(&mut list, &mut gone);
            for (entry, place) in state.waiting.take() {
                let index = list.push(entry, place);
                state.places.set(place, Place::Listed(index));
            }
            state.close_up(&mut list);
        }
        drop(gone);
    }

    /// Subscribes; the key of the guard.
    fn add(&self, entry: Entry<T, E>) -> u64 {
        let mut state = self.state.borrow_mut();
        let (place, key) = state.places.reserve();
        let at = if self.emitting.get() {
            self.signal.set(true);
            Place::Waiting(state.waiting.push(entry, place))
        } else {
            Place::Listed(self.list.borrow_mut().push(entry, place))
        };
        state.places.set(place, at);
        state.observers += 1;
        key
    }

    fn dispose(&self) {
        let (waiting, listed, _end): (Vec<_>, Vec<_>, _) = {
            let mut state = self.state.borrow_mut();
            let end = state.end.replace(End::Disposed);
            state.observers = 0;
            self.remote.has_ended.store(true, Ordering::Relaxed);
            let waiting: Vec<_> = state.waiting.take().collect();
            for (_, place) in &waiting {
                state.places.release(*place);
            }
            self.signal.set(true);
            if self.emitting.get() {
                // Whoever emits takes everybody out.
                (waiting, Vec::new(), end)
            } else {
                state.leaving.clear();
                state.places.release_all();
                (waiting, self.list.borrow_mut().take().collect(), end)
            }
        };
        drop((waiting, listed));
    }

    /// Takes those out whose guards were dropped on other threads.
    #[cold]
    fn remove_abandoned(&self) {
        for key in self.remote.take_abandoned() {
            self.remove(key);
        }
        let mut list = self.list.borrow_mut();
        self.stir(&mut list, None);
    }
}

impl<T, E> State<T, E> {
    /// Takes those out of the list who have left; when the subject was disposed of, everybody.
    fn let_go(&mut self, list: &mut List<Entry<T, E>>, gone: &mut Vec<Entry<T, E>>) {
        while let Some(place) = self.leaving.pop() {
            if matches!(self.places.get(place), Place::Leaving(_)) {
                gone.push(self.expel(list, place));
            }
        }
        if matches!(self.end, Some(End::Disposed)) {
            for index in 0..list.len() {
                if let Some(place) = list.place_at(index) {
                    gone.push(self.expel(list, place));
                }
            }
        }
    }

    /// Takes one out of the list; nobody else moves.
    fn expel(&mut self, list: &mut List<Entry<T, E>>, place: u32) -> Entry<T, E> {
        let (Place::Listed(index) | Place::Leaving(index)) = self.places.get(place) else {
            unreachable!("only those in the list are taken out of it");
        };
        self.places.release(place);
        list.vacate(index)
    }

    fn close_up(&mut self, list: &mut List<Entry<T, E>>) {
        let places = &mut self.places;
        list.compact(|place, index| places.set(place, Place::Listed(index)));
    }
}

/// What a guard can do to a subject that it cannot name, on the subject's own thread.
trait Removes {
    fn remove(&self, key: u64);
    fn contains(&self, key: u64) -> bool;
}

impl<T, E> Removes for Local<T, E> {
    fn remove(&self, key: u64) {
        let entry = {
            let mut state = self.state.borrow_mut();
            let Some((place, at)) = state.places.find(key) else {
                return;
            };
            let entry = match at {
                Place::Free | Place::Leaving(_) => return,
                Place::Waiting(index) => {
                    state.places.release(place);
                    let entry = state.waiting.vacate(index);
                    let State {
                        places, waiting, ..
                    } = &mut *state;
                    waiting.compact(|place, index| places.set(place, Place::Waiting(index)));
                    Some(entry)
                }
                Place::Listed(index) if self.emitting.get() => {
                    state.places.set(place, Place::Leaving(index));
                    state.leaving.push(place);
                    self.signal.set(true);
                    None
                }
                Place::Listed(_) => {
                    let mut list = self.list.borrow_mut();
                    let entry = state.expel(&mut list, place);
                    state.close_up(&mut list);
                    Some(entry)
                }
            };
            if state.end.is_none() {
                state.observers -= 1;
            }
            entry
        };
        drop(entry);
    }

    fn contains(&self, key: u64) -> bool {
        matches!(
            self.state.borrow().places.find(key),
            Some((_, Place::Waiting(_) | Place::Listed(_)))
        )
    }
}

thread_local! {
    /// The subjects of this thread, by number: guards can go anywhere, and find them from here.
    static SUBJECTS: RefCell<HashMap<u64, Weak<dyn Removes>>> = RefCell::default();
}

/// The part of a local subject that can be reached from other threads.
struct Remote {
    thread: ThreadId,
    number: u64,
    any_abandoned: AtomicBool,
    /// For guards that ask elsewhere. Relaxed: an answer that may be old when it comes.
    has_ended: AtomicBool,
    abandoned: Mutex<Vec<u64>>,
}

impl Remote {
    fn register(subject: Weak<dyn Removes>) -> Arc<Self> {
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        // Relaxed: only that it differs matters.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        SUBJECTS.with_borrow_mut(|subjects| subjects.insert(number, subject));
        Arc::new(Self {
            thread: std::thread::current().id(),
            number,
            any_abandoned: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            abandoned: Mutex::new(Vec::new()),
        })
    }

    /// The subject, on its own thread while it lives.
    fn find(&self) -> Option<Rc<dyn Removes>> {
        if std::thread::current().id() != self.thread {
            return None;
        }
        SUBJECTS
            .try_with(|subjects| subjects.borrow().get(&self.number).and_then(Weak::upgrade))
            .ok()
            .flatten()
    }

    fn take_abandoned(&self) -> Vec<u64> {
        let mut abandoned = lock(&self.abandoned);
        self.any_abandoned.store(false, Ordering::Relaxed);
        std::mem::take(&mut *abandoned)
    }
}

impl Registry for Remote {
    fn remove(&self, key: u64) {
        if let Some(subject) = self.find() {
            subject.remove(key);
        } else {
            let mut abandoned = lock(&self.abandoned);
            abandoned.push(key);
            self.any_abandoned.store(true, Ordering::Relaxed);
        }
    }

    fn contains(&self, key: u64) -> bool {
        match self.find() {
            Some(subject) => subject.contains(key),
            None => {
                !self.has_ended.load(Ordering::Relaxed) && !lock(&self.abandoned).contains(&key)
            }
        }
    }
}

impl<T, E> Drop for Local<T, E> {
    fn drop(&mut self) {
        // Nothing to do when the thread is ending and its table is gone.
        let _ = SUBJECTS.try_with(|subjects| subjects.borrow_mut().remove(&self.remote.number));
    }
}
