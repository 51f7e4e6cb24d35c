//! A subject for one thread: no atomics and no `Send`.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::thread::ThreadId;

use super::core::Panic;
use super::end::End;
use super::list::{Erased, List, NoOp, SlotState, Slots, Vacant};
use super::producer::OnPanic;
use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{Guard, IntoObservable, Observable, Observer, observer};

/// A plain subject that stays on its thread. Neither it nor its observers need be [`Send`], so an observer
/// can hold an `Rc` or a widget. Otherwise it behaves as a [`Subject`](crate::Subject): all observers see the
/// values in the same order, values emitted by an observer come after the current one, and an observer that
/// panics is removed.
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
/// Operators work on a local subject too. Their closures must be `Send`, because the same operators also work
/// on subjects that are used from several threads. The last observer may be local; see
/// [`subscribe_local`](crate::ObservableExt::subscribe_local).
pub struct LocalSubject<T, E = Infallible> {
    local: Rc<Local<T, E>>,
}

struct Local<T, E> {
    /// Borrowed during an emission.
    list: RefCell<List<Entry<T, E>>>,
    /// Never borrowed while user code runs.
    state: RefCell<State<T, E>>,
    /// Whether an emission is in progress further up on the stack.
    emitting: Cell<bool>,
    /// Whether the state holds work for the emitter.
    signal: Cell<bool>,
    on_panic: Cell<OnPanic>,
    guard_state: Arc<GuardState>,
}

struct State<T, E> {
    slots: Slots,
    /// Observers that have subscribed during an emission.
    waiting: List<Entry<T, E>>,
    /// Slots of observers in the list that have unsubscribed during an emission.
    leaving: Vec<u32>,
    /// Emissions made during another one.
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
        // Allocates nothing, because the type has size 0.
        Self(Box::new(NoOp))
    }
}

impl<T: 'static> LocalSubject<T> {
    /// Creates a subject that cannot fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T: 'static, E: 'static> LocalSubject<T, E> {
    /// Creates a subject that can fail with `E`.
    pub fn with_error() -> Self {
        let local = Rc::new_cyclic(|weak: &Weak<Local<T, E>>| Local {
            list: RefCell::new(List::new()),
            state: RefCell::new(State {
                slots: Slots::new(),
                waiting: List::new(),
                leaving: Vec::new(),
                queue: VecDeque::new(),
                observers: 0,
                end: None,
            }),
            emitting: Cell::new(false),
            signal: Cell::new(false),
            on_panic: Cell::default(),
            guard_state: GuardState::register(weak.clone()),
        });
        Self { local }
    }

    /// Chooses what happens when an observer panics, for all handles of the subject.
    #[must_use]
    pub fn on_observer_panic(self, on_panic: OnPanic) -> Self {
        self.local.on_panic.set(on_panic);
        self
    }

    /// Emits a value to all observers. If an observer calls this, the value is emitted after the current one.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the value.
    #[inline]
    pub fn next(&self, value: T) {
        let local = &*self.local;
        if local.emitting.get() {
            local.queue(Emission::Next(value));
        } else {
            local.emit(|local| local.next(&value));
        }
    }

    /// Emits several values: each observer receives all of them before the next observer does.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the values.
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

    /// Completes the subject.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have been called.
    pub fn complete(&self) {
        self.local.end(End::Completed);
    }

    /// Ends the subject with an error.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have been called.
    pub fn error(&self, error: E) {
        self.local.end(End::Failed(Arc::new(error)));
    }

    /// Ends the subject at once, without notifying observers.
    pub fn dispose(&self) {
        self.local.dispose();
    }

    /// Calls `next` with each value.
    pub fn subscribe(&self, next: impl FnMut(&T) + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer. The guard may move to another thread. If it is dropped there, the observer is
    /// removed before the next emission. On another thread, `is_closed` of the guard returns `false` even if
    /// the observer has closed itself.
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
        Guard::registered(self.local.guard_state.clone(), key)
    }

    /// Returns whether the subject has observers. `false` after the subject has ended.
    pub fn has_observers(&self) -> bool {
        self.observer_count() > 0
    }

    /// Returns the number of observers. 0 after the subject has ended.
    pub fn observer_count(&self) -> usize {
        self.local.state.borrow().observers
    }

    /// Returns whether the subject has completed, failed, or been disposed of.
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
    /// Queues an emission for the emitter.
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
        // A panic, even of a destructor, must not prevent the other emissions.
        let mut panic = catch_unwind(AssertUnwindSafe(|| emission(self))).unwrap_or_else(Some);
        if self.signal.get() {
            let thrown = self.emit_queued();
            panic = panic.or(thrown);
        }
        self.emitting.set(false);
        self.on_panic.get().react(panic);
    }

    #[cold]
    fn emit_queued(&self) -> Option<Panic> {
        let mut panic = None;
        loop {
            let thrown = catch_unwind(AssertUnwindSafe(|| self.tidy()));
            panic = panic.or_else(|| thrown.err());
            let Some(emission) = self.state.borrow_mut().queue.pop_front() else {
                // A destructor may have queued an emission.
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
            self.guard_state.has_ended.store(true, Ordering::Relaxed);
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

    /// Calls each observer that was present at the start, unless it has left in the meantime. Removes
    /// observers that report that they are closed, and those that panic.
    #[inline]
    fn fan_out(&self, mut call: impl FnMut(&mut Entry<T, E>) -> bool) -> Option<Panic> {
        // Relaxed: the keys themselves are read under the lock. If this load misses the flag, the next
        // emission removes those observers.
        if self.guard_state.any_abandoned.load(Ordering::Relaxed) {
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
                        self.handle_signal(&mut list, closed.then_some(index));
                    }
                }
            }));
            if let Err(payload) = outcome {
                panic.get_or_insert(payload);
                self.handle_signal(&mut list, Some(next - 1));
            }
        }
        panic
    }

    /// Removes, between two calls, the observer at index `closed` and those that have unsubscribed.
    #[cold]
    fn handle_signal(&self, list: &mut List<Entry<T, E>>, closed: Option<usize>) {
        let mut slot = closed.and_then(|index| list.slot_at(index));
        loop {
            let mut removed = Vec::new();
            {
                let mut state = self.state.borrow_mut();
                if let Some(slot) = slot.take() {
                    if matches!(state.slots.get(slot), SlotState::Listed(_)) && state.end.is_none()
                    {
                        state.observers -= 1;
                    }
                    removed.push(state.remove_listed(list, slot));
                }
                state.remove_leaving(list, &mut removed);
            }
            // The list is compacted after the calls.
            self.signal.set(true);
            if removed.is_empty() {
                return;
            }
            // Dropping an observer runs user code that may unsubscribe others, so the loop repeats. A panic
            // of a destructor is ignored. If that panic unwound from here, the observer that was just called
            // would be removed, although it did not panic.
            for entry in removed {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(entry)));
            }
        }
    }

    /// Removes, between two emissions, observers that have unsubscribed, adds those that wait, and compacts
    /// the list.
    fn tidy(&self) {
        self.signal.set(false);
        let mut removed = Vec::new();
        {
            let mut list = self.list.borrow_mut();
            let mut state = self.state.borrow_mut();
            state.remove_leaving(&mut list, &mut removed);
            for (entry, slot) in state.waiting.take() {
                let index = list.push(entry, slot);
                state.slots.set(slot, SlotState::Listed(index));
            }
            state.compact(&mut list);
        }
        drop(removed);
    }

    /// Adds an entry, and returns the key for its guard.
    fn add(&self, entry: Entry<T, E>) -> u64 {
        let mut state = self.state.borrow_mut();
        let (slot, key) = state.slots.reserve();
        let slot_state = if self.emitting.get() {
            self.signal.set(true);
            SlotState::Waiting(state.waiting.push(entry, slot))
        } else {
            SlotState::Listed(self.list.borrow_mut().push(entry, slot))
        };
        state.slots.set(slot, slot_state);
        state.observers += 1;
        key
    }

    fn dispose(&self) {
        let (waiting, listed, _end): (Vec<_>, Vec<_>, _) = {
            let mut state = self.state.borrow_mut();
            let end = state.end.replace(End::Disposed);
            state.observers = 0;
            self.guard_state.has_ended.store(true, Ordering::Relaxed);
            let waiting: Vec<_> = state.waiting.take().collect();
            for (_, slot) in &waiting {
                state.slots.release(*slot);
            }
            self.signal.set(true);
            if self.emitting.get() {
                // The emitter removes the listed observers.
                (waiting, Vec::new(), end)
            } else {
                state.leaving.clear();
                state.slots.release_all();
                (waiting, self.list.borrow_mut().take().collect(), end)
            }
        };
        drop((waiting, listed));
    }

    /// Removes observers whose guards were dropped on other threads.
    #[cold]
    fn remove_abandoned(&self) {
        for key in self.guard_state.take_abandoned() {
            self.remove(key);
        }
        let mut list = self.list.borrow_mut();
        self.handle_signal(&mut list, None);
    }
}

impl<T, E> State<T, E> {
    /// Removes the observers that have unsubscribed, or all observers if the subject is disposed of.
    fn remove_leaving(&mut self, list: &mut List<Entry<T, E>>, removed: &mut Vec<Entry<T, E>>) {
        while let Some(slot) = self.leaving.pop() {
            if matches!(self.slots.get(slot), SlotState::Leaving(_)) {
                removed.push(self.remove_listed(list, slot));
            }
        }
        if matches!(self.end, Some(End::Disposed)) {
            for index in 0..list.len() {
                if let Some(slot) = list.slot_at(index) {
                    removed.push(self.remove_listed(list, slot));
                }
            }
        }
    }

    /// Removes an entry from the list; the others do not move.
    fn remove_listed(&mut self, list: &mut List<Entry<T, E>>, slot: u32) -> Entry<T, E> {
        let (SlotState::Listed(index) | SlotState::Leaving(index)) = self.slots.get(slot) else {
            unreachable!("only listed observers are removed from the list");
        };
        self.slots.release(slot);
        list.vacate(index)
    }

    fn compact(&mut self, list: &mut List<Entry<T, E>>) {
        let slots = &mut self.slots;
        list.compact(|slot, index| slots.set(slot, SlotState::Listed(index)));
    }
}

/// The operations of a guard on a subject of unknown type, on the subject's own thread.
trait ByKey {
    fn remove(&self, key: u64);
    fn contains(&self, key: u64) -> bool;
}

impl<T, E> ByKey for Local<T, E> {
    fn remove(&self, key: u64) {
        let entry = {
            let mut state = self.state.borrow_mut();
            let Some((slot, slot_state)) = state.slots.find(key) else {
                return;
            };
            let entry = match slot_state {
                SlotState::Free | SlotState::Leaving(_) => return,
                SlotState::Waiting(index) => {
                    state.slots.release(slot);
                    let entry = state.waiting.vacate(index);
                    let State { slots, waiting, .. } = &mut *state;
                    waiting.compact(|slot, index| slots.set(slot, SlotState::Waiting(index)));
                    Some(entry)
                }
                SlotState::Listed(index) if self.emitting.get() => {
                    state.slots.set(slot, SlotState::Leaving(index));
                    state.leaving.push(slot);
                    self.signal.set(true);
                    None
                }
                SlotState::Listed(_) => {
                    let mut list = self.list.borrow_mut();
                    let entry = state.remove_listed(&mut list, slot);
                    state.compact(&mut list);
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
            self.state.borrow().slots.find(key),
            Some((_, SlotState::Waiting(_) | SlotState::Listed(_)))
        )
    }
}

thread_local! {
    /// The subjects of this thread by number, so that a guard that returns to this thread finds its
    /// subject.
    static SUBJECTS: RefCell<HashMap<u64, Weak<dyn ByKey>>> = RefCell::default();
}

/// The state that the guards of a local subject reach, also on other threads.
struct GuardState {
    thread: ThreadId,
    number: u64,
    any_abandoned: AtomicBool,
    /// Read by guards on other threads. Relaxed: the result may be outdated when the guard uses it.
    has_ended: AtomicBool,
    abandoned: Mutex<Vec<u64>>,
}

impl GuardState {
    fn register(subject: Weak<dyn ByKey>) -> Arc<Self> {
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        // Relaxed: the number only has to be unique.
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

    /// Returns the subject, if this is its thread and it still exists.
    fn find(&self) -> Option<Rc<dyn ByKey>> {
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

impl Registry for GuardState {
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
        // Fails only if the thread is ending and has dropped `SUBJECTS`.
        let _ =
            SUBJECTS.try_with(|subjects| subjects.borrow_mut().remove(&self.guard_state.number));
    }
}
