//! A subject for one thread: no atomics and no `Send`.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::thread::ThreadId;

use super::core::{End, Panic};
use super::list::{List, Place, Places, Vacant};
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
    state: RefCell<State<T, E>>,
    /// Whether somebody emits, further up on the stack.
    emitting: Cell<bool>,
    /// What was emitted meanwhile.
    queue: RefCell<VecDeque<Emission<T, E>>>,
    remote: Arc<Remote>,
}

struct State<T, E> {
    list: List<Slot<T, E>>,
    places: Places,
    observers: usize,
    end: Option<End<E>>,
}

enum Emission<T, E> {
    Next(T),
    Slice(Vec<T>),
    End(End<E>),
}

type LocalObserver<T, E> = Box<dyn Observer<T, E>>;

/// Empty while its observer is called, and once that has left.
struct Slot<T, E>(Option<LocalObserver<T, E>>);

impl<T, E> Vacant for Slot<T, E> {
    fn vacant() -> Self {
        Self(None)
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
            state: RefCell::new(State {
                list: List::new(),
                places: Places::new(),
                observers: 0,
                end: None,
            }),
            emitting: Cell::new(false),
            queue: RefCell::new(VecDeque::new()),
            remote: Remote::register(weak.clone()),
        });
        Self { local }
    }

    /// Passes a value on to everybody who is subscribed. From inside an observer: after the value that
    /// is being passed on.
    ///
    /// # Panics
    ///
    /// When an observer did, after everybody else has got the value.
    pub fn next(&self, value: T) {
        self.local.emit(Emission::Next(value));
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
        self.local.emit(Emission::Slice(values.to_vec()));
    }

    /// Ends the subject well.
    ///
    /// # Panics
    ///
    /// When an observer did, after everybody else has been told.
    pub fn complete(&self) {
        self.local.emit(Emission::End(End::Completed));
    }

    /// Ends the subject with a failure.
    ///
    /// # Panics
    ///
    /// When an observer did, after everybody else has been told.
    pub fn error(&self, error: E) {
        self.local.emit(Emission::End(End::Failed(Arc::new(error))));
    }

    /// Ends the subject without a word and at once.
    pub fn dispose(&self) {
        let everybody: Vec<_> = {
            let mut state = self.local.state.borrow_mut();
            state.end = Some(End::Disposed);
            state.observers = 0;
            state.places.release_all();
            state.list.take().collect()
        };
        drop(everybody);
    }

    /// Calls `next` with each value.
    pub fn subscribe(&self, next: impl FnMut(&T) + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer. Its guard may go to another thread; dropped there, it takes effect with
    /// the next emission.
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
        let observer: LocalObserver<T, E> = Box::new(observer);
        let mut state = self.local.state.borrow_mut();
        let (place, key) = state.places.reserve();
        let index = state.list.push(Slot(Some(observer)), place);
        state.places.set(place, Place::Listed(index));
        state.observers += 1;
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
    /// Passes on an emission, and those that observers make meanwhile; or leaves it to whoever emits.
    fn emit(&self, emission: Emission<T, E>) {
        if self.emitting.replace(true) {
            self.queue.borrow_mut().push_back(emission);
            return;
        }
        let mut panic = self.pass_on(emission);
        loop {
            let next = self.queue.borrow_mut().pop_front();
            let Some(emission) = next else { break };
            let thrown = self.pass_on(emission);
            panic = panic.or(thrown);
        }
        self.emitting.set(false);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn pass_on(&self, emission: Emission<T, E>) -> Option<Panic> {
        // Whatever is thrown, by destructors too, must not end the emission of others.
        catch_unwind(AssertUnwindSafe(|| {
            self.remove_abandoned();
            if self.state.borrow().end.is_some() {
                return None;
            }
            match emission {
                Emission::Next(value) => self.fan_out(|observer| {
                    observer.next(&value);
                    observer.is_closed()
                }),
                Emission::Slice(values) => self.fan_out(|observer| {
                    observer.next_slice(&values);
                    observer.is_closed()
                }),
                Emission::End(end) => {
                    {
                        let mut state = self.state.borrow_mut();
                        state.end = Some(end.clone());
                        state.observers = 0;
                    }
                    self.fan_out(|observer| {
                        match &end {
                            End::Completed => observer.complete(),
                            End::Failed(error) => observer.error(error),
                            End::Disposed => {}
                        }
                        true
                    })
                }
            }
        }))
        .unwrap_or_else(Some)
    }

    /// Calls each observer that was there when it began, unless it has left meanwhile. Nothing is
    /// borrowed while one is called: it is out of its slot.
    fn fan_out(&self, mut call: impl FnMut(&mut dyn Observer<T, E>) -> bool) -> Option<Panic> {
        let count = self.state.borrow().list.len();
        let mut panic = None;
        let mut index = 0;
        while index < count {
            let taken = {
                let mut state = self.state.borrow_mut();
                // After a disposal the list is empty.
                if index >= state.list.len() {
                    break;
                }
                let place = state.list.place_at(index);
                let observer = state.list.get_mut(index).0.take();
                place.zip(observer)
            };
            if let Some((place, mut observer)) = taken {
                let outcome = catch_unwind(AssertUnwindSafe(|| call(&mut *observer)));
                let closed = match outcome {
                    Ok(closed) => closed,
                    Err(payload) => {
                        panic.get_or_insert(payload);
                        true
                    }
                };
                let gone = self.put_back(index, place, observer, closed);
                drop(gone);
            }
            index += 1;
        }
        let mut state = self.state.borrow_mut();
        let State { list, places, .. } = &mut *state;
        list.compact(|place, index| places.set(place, Place::Listed(index)));
        panic
    }

    /// Puts an observer back into its slot after a call, or gives it back when it has left.
    fn put_back(
        &self,
        index: usize,
        place: u32,
        observer: LocalObserver<T, E>,
        closed: bool,
    ) -> Option<LocalObserver<T, E>> {
        let mut state = self.state.borrow_mut();
        let still = index < state.list.len() && state.list.place_at(index) == Some(place);
        if still && !closed {
            state.list.get_mut(index).0 = Some(observer);
            return None;
        }
        if still {
            state.leave(place);
        }
        Some(observer)
    }

    /// Takes out those whose guards were dropped on other threads.
    fn remove_abandoned(&self) {
        // Relaxed: what it announces is behind the lock; seen late, it is done with the next emission.
        if self.remote.any_abandoned.load(Ordering::Relaxed) {
            let abandoned = self.remote.take_abandoned();
            for key in abandoned {
                self.remove(key);
            }
        }
    }
}

impl<T, E> State<T, E> {
    /// Takes one out of the list; nobody else moves.
    fn leave(&mut self, place: u32) -> Slot<T, E> {
        let Place::Listed(index) = self.places.get(place) else {
            return Slot(None);
        };
        self.places.release(place);
        if self.end.is_none() {
            self.observers -= 1;
        }
        self.list.vacate(index)
    }
}

/// What a guard can do to a subject that it cannot name, on the subject's own thread.
trait Removes {
    fn remove(&self, key: u64);
    fn contains(&self, key: u64) -> bool;
}

impl<T, E> Removes for Local<T, E> {
    fn remove(&self, key: u64) {
        let slot = {
            let mut state = self.state.borrow_mut();
            let Some((place, _)) = state.places.find(key) else {
                return;
            };
            let slot = state.leave(place);
            if !self.emitting.get() {
                let State { list, places, .. } = &mut *state;
                list.compact(|place, index| places.set(place, Place::Listed(index)));
            }
            slot
        };
        drop(slot);
    }

    fn contains(&self, key: u64) -> bool {
        self.state.borrow().places.find(key).is_some()
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
            None => !lock(&self.abandoned).contains(&key),
        }
    }
}

impl<T, E> Drop for Local<T, E> {
    fn drop(&mut self) {
        // Nothing to do when the thread is ending and its table is gone.
        let _ = SUBJECTS.try_with(|subjects| subjects.borrow_mut().remove(&self.remote.number));
    }
}
