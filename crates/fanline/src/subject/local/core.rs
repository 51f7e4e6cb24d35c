//! The subject behind the handles of one thread.
//!
//! User code runs in two situations: during an *emission*, and during a *read* of retained values, such as
//! the replay to a new subscriber. In both, the retained values are borrowed, and emissions are queued. The
//! queue is emptied, and the values that are no longer retained are dropped, when the outermost of these calls
//! returns. So values are never cloned, appended, or evicted while they are read.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::{Rc, Weak};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::mem::needs_drop;

use super::guards::{ByKey, GuardState};
use crate::clock::Time;
use crate::subject::core::REPLAY_BATCH_MAX;
use crate::subject::end::End;
use crate::subject::list::{Erased, List, NoOp, SlotState, Vacant};
use crate::subject::policy::Rules;
use crate::subject::producer::OnPanic;
use crate::subject::registrations::Registrations;
use crate::subject::store::Store;
use crate::sync::Ordering;
use crate::unwind::{AssertUnwindSafe, Panic, catch_unwind, resume_unwind};
use crate::{Guard, Observer};

pub struct Local<T, E, P: Rules> {
    policy: P,
    /// Borrowed while user code reads values.
    store: RefCell<Store<T, P::Times>>,
    /// Borrowed during an emission.
    list: RefCell<List<Boxed<T, E>>>,
    /// Never borrowed while user code runs.
    state: RefCell<State<T, E>>,
    /// Whether an emission is in progress further up on the stack.
    emitting: Cell<bool>,
    /// Number of reads in progress further up on the stack.
    reads: Cell<usize>,
    /// Whether the state holds work for the emitter.
    signal: Cell<bool>,
    /// The latest time that a read has seen, if values are to be expired at that time.
    expire_at: Cell<Option<Time>>,
    on_panic: Cell<OnPanic>,
    guard_state: Arc<GuardState>,
}

struct State<T, E> {
    registrations: Registrations<Boxed<T, E>>,
    /// Emissions made during another one, or during a read.
    queue: VecDeque<Emission<T, E>>,
    observers: usize,
    end: Option<End<E>>,
}

enum Emission<T, E> {
    Next(T),
    Slice(Vec<T>),
    /// Emits what the function returns for the last value.
    Update(Box<dyn FnOnce(&T) -> T>),
    End(End<E>),
}

/// An observer that need not be `Send`.
pub struct Boxed<T, E>(Box<dyn Erased<T, E>>);

impl<T, E> Boxed<T, E> {
    pub(super) fn new(observer: impl Observer<T, E> + 'static) -> Self {
        Self(Box::new(observer))
    }
}

impl<T, E> Vacant for Boxed<T, E> {
    fn vacant() -> Self {
        // Allocates nothing, because the type has size 0.
        Self(Box::new(NoOp))
    }
}

impl<T: 'static, E: 'static, P: Rules> Local<T, E, P> {
    pub(super) fn new(policy: P) -> Rc<Self> {
        Rc::new_cyclic(|weak: &Weak<Self>| Self {
            store: RefCell::new(Store::new(&policy)),
            policy,
            list: RefCell::new(List::new()),
            state: RefCell::new(State {
                registrations: Registrations::new(),
                queue: VecDeque::new(),
                observers: 0,
                end: None,
            }),
            emitting: Cell::new(false),
            reads: Cell::new(0),
            signal: Cell::new(false),
            expire_at: Cell::new(None),
            on_panic: Cell::default(),
            guard_state: GuardState::register(weak.clone()),
        })
    }
}

impl<T, E, P: Rules> Local<T, E, P> {
    pub(super) fn set_on_panic(&self, on_panic: OnPanic) {
        self.on_panic.set(on_panic);
    }

    pub(super) fn observer_count(&self) -> usize {
        self.remove_abandoned();
        self.state.borrow().observers
    }

    pub(super) fn end_so_far(&self) -> Option<End<E>> {
        self.state.borrow().end.clone()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.borrow().end.is_some()
    }

    // -- Emission

    #[inline]
    pub(super) fn next(&self, value: T) {
        if self.is_busy() {
            self.queue(Emission::Next(value));
        } else {
            self.emit(|local| local.emit_value(value));
        }
    }

    pub(super) fn next_slice(&self, values: &[T])
    where
        T: Clone,
    {
        if self.is_busy() {
            self.queue(Emission::Slice(values.to_vec()));
        } else {
            self.emit(|local| local.emit_slice(values));
        }
    }

    /// Emits what `change` returns for the last value.
    pub(super) fn update(&self, change: impl FnOnce(&T) -> T + 'static) {
        if self.is_busy() {
            self.queue(Emission::Update(Box::new(change)));
        } else {
            self.emit(|local| local.emit_update(change));
        }
    }

    pub(super) fn end(&self, end: End<E>) {
        if self.is_busy() {
            self.queue(Emission::End(end));
        } else {
            self.emit(|local| local.emit_end(&end));
        }
    }

    #[inline]
    fn is_busy(&self) -> bool {
        self.emitting.get() || (P::STORES && self.reads.get() > 0)
    }

    /// Queues an emission for the call in progress.
    #[cold]
    fn queue(&self, emission: Emission<T, E>) {
        self.state.borrow_mut().queue.push_back(emission);
        self.signal.set(true);
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
                Emission::Next(value) => self.emit_value(value),
                Emission::Slice(values) => self.emit_one_by_one(values),
                Emission::Update(change) => self.emit_update(change),
                Emission::End(end) => self.emit_end(&end),
            }));
            panic = panic.or_else(|| thrown.unwrap_or_else(Some));
        }
    }

    #[inline]
    fn emit_value(&self, value: T) -> Option<Panic> {
        if !P::STORES {
            return self.fan_out(|entry| entry.0.next(&value));
        }
        let now = self.policy.now();
        if self.has_ended() {
            return None;
        }
        // The displaced values are dropped at the end of this function, when no value is borrowed.
        let (_, _evicted) = self.store.borrow_mut().append(&self.policy, value, now);
        if P::HOLDS_BACK {
            return None;
        }
        let panic = {
            let store = self.store.borrow();
            let value = store.log.last().expect("appended above");
            self.fan_out(|entry| entry.0.next(value))
        };
        if P::COUNTED && needs_drop::<T>() && self.policy.count_max() == 0 {
            // The policy retains no value, so this one is evicted right after its emission.
            self.evict(|store| store.trim_by_count(&self.policy));
        }
        panic
    }

    fn emit_slice(&self, values: &[T]) -> Option<Panic>
    where
        T: Clone,
    {
        if !P::STORES {
            return self.fan_out(|entry| entry.0.next_slice(values));
        }
        let now = self.policy.now();
        let mut copies = values.to_vec();
        // The clock and `clone` are user code, which may dispose of the subject.
        if self.has_ended() {
            return None;
        }
        // The displaced values are dropped at the end of this function, when no value is borrowed.
        let _evicted = {
            let mut store = self.store.borrow_mut();
            store.append_all(&self.policy, &mut copies, now)
        };
        if P::HOLDS_BACK {
            return None;
        }
        self.fan_out(|entry| entry.0.next_slice(values))
    }

    fn emit_one_by_one(&self, values: Vec<T>) -> Option<Panic> {
        let mut panic = None;
        for value in values {
            let thrown = self.emit_value(value);
            panic = panic.or(thrown);
        }
        panic
    }

    fn emit_update(&self, change: impl FnOnce(&T) -> T) -> Option<Panic> {
        if self.has_ended() {
            return None;
        }
        let changed = self.store.borrow().log.last().map(change);
        self.emit_value(changed?)
    }

    fn emit_end(&self, end: &End<E>) -> Option<Panic> {
        let now = self.policy.now_exact();
        {
            let mut state = self.state.borrow_mut();
            if state.end.is_some() {
                return None;
            }
            state.end = Some(end.clone());
            state.observers = 0;
            self.guard_state.has_ended.store(true, Ordering::Relaxed);
        }
        if P::STORES {
            self.evict(|store| {
                store.trim(&self.policy, now);
                if P::HOLDS_BACK && matches!(end, End::Failed(_)) {
                    store.clear();
                }
            });
        }
        let store = self.store.borrow();
        let held_back = store.log.last().filter(|_| P::HOLDS_BACK);
        self.fan_out(|entry| {
            if held_back.is_some_and(|last| entry.0.next(last)) {
                return true;
            }
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
    fn fan_out(&self, mut call: impl FnMut(&mut Boxed<T, E>) -> bool) -> Option<Panic> {
        let mut list = self.list.borrow_mut();
        if self.remove_abandoned() {
            self.handle_signal(&mut list, None);
        }
        let mut panic = None;
        let mut called = 0;
        while called < list.len() {
            let mut entries = list.iter_mut_from(called);
            // Leaves the loop only if there is other work, so the loop needs little state.
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                entries.find_map(|entry| {
                    let closed = call(entry);
                    if !GuardState::FINDS_SUBJECT {
                        self.remove_abandoned();
                    }
                    (closed | self.signal.get()).then_some(closed)
                })
            }));
            let left = entries.len();
            called = list.len() - left;
            match outcome {
                Ok(None) => {}
                Ok(Some(closed)) => self.handle_signal(&mut list, closed.then(|| called - 1)),
                Err(payload) => {
                    panic.get_or_insert(payload);
                    self.handle_signal(&mut list, Some(called - 1));
                }
            }
        }
        panic
    }

    /// Removes, between two calls, the observer at index `closed` and those that have unsubscribed.
    #[cold]
    fn handle_signal(&self, list: &mut List<Boxed<T, E>>, closed: Option<usize>) {
        let mut slot = closed.and_then(|index| list.slot_at(index));
        loop {
            let mut removed = Vec::new();
            {
                let mut state = self.state.borrow_mut();
                if let Some(slot) = slot.take() {
                    if state.registrations.is_subscribed(slot) && state.end.is_none() {
                        state.observers -= 1;
                    }
                    removed.push(state.registrations.remove_listed(list, slot));
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

    /// Removes, between two emissions, observers that have unsubscribed, adds those that wait, compacts the
    /// list, and drops values that are not retained any more.
    fn tidy(&self) {
        self.signal.set(false);
        let mut removed = Vec::new();
        let disposed = {
            let mut list = self.list.borrow_mut();
            let mut state = self.state.borrow_mut();
            state.remove_leaving(&mut list, &mut removed);
            state.registrations.admit_waiting(&mut list);
            state.registrations.compact(&mut list);
            state.is_disposed()
        };
        if !P::STORES {
            return;
        }
        let expire_at = self.expire_at.take();
        if disposed {
            self.evict(Store::clear);
        } else if let Some(now) = expire_at {
            self.evict(|store| store.trim(&self.policy, now));
        }
    }

    /// Ends the retention of values by `trim`, and drops them.
    fn evict(&self, trim: impl FnOnce(&mut Store<T, P::Times>)) {
        let evicted = {
            let mut store = self.store.borrow_mut();
            trim(&mut store);
            store.log.evict()
        };
        drop(evicted);
    }

    // -- Subscription and reads

    pub(super) fn subscribe(&self, mut entry: Boxed<T, E>) -> Guard {
        if entry.0.is_closed() {
            return Guard::closed();
        }
        if !P::STORES {
            return self.join(entry);
        }
        self.read(|| {
            if self.visit_now(|values| entry.0.next_slice(values)) {
                return Guard::closed();
            }
            self.join(entry)
        })
    }

    /// Adds an entry, or reports the end to it.
    fn join(&self, mut entry: Boxed<T, E>) -> Guard {
        match self.end_so_far() {
            None => {
                let key = self.add(entry);
                return Guard::registered(self.guard_state.clone(), key);
            }
            Some(End::Completed) => entry.0.complete(),
            Some(End::Failed(error)) => entry.0.error(&error),
            Some(End::Disposed) => {}
        }
        Guard::closed()
    }

    /// Adds an entry, and returns the key for its guard.
    fn add(&self, entry: Boxed<T, E>) -> u64 {
        let mut state = self.state.borrow_mut();
        state.observers += 1;
        if self.emitting.get() {
            self.signal.set(true);
            state.registrations.wait(entry)
        } else {
            state.registrations.join(&mut self.list.borrow_mut(), entry)
        }
    }

    /// Calls `visit` with the values that a late subscriber would receive now, in order.
    pub(super) fn visit(&self, mut visit: impl FnMut(&[T])) {
        if P::STORES {
            self.read(|| {
                self.visit_now(|values| {
                    visit(values);
                    false
                })
            });
        }
    }

    /// Calls `visit` with the last value that a late subscriber would receive now, if there is one.
    pub(super) fn visit_latest(&self, visit: impl FnOnce(&T)) {
        if P::STORES {
            self.read(|| {
                self.read_clock();
                let store = self.store.borrow();
                if self.first(&store) < store.log.end() {
                    store.log.last().map(visit);
                }
            });
        }
    }

    /// Calls `visit` with the last retained value, if there is one.
    pub(super) fn visit_last(&self, visit: impl FnOnce(&T)) {
        self.read(|| {
            self.store.borrow().log.last().map(visit);
        });
    }

    /// Removes values that are too old.
    pub(super) fn trim(&self) {
        self.read(|| self.read_clock());
    }

    /// Runs user code that may read retained values. Afterward emits what it has emitted meanwhile.
    fn read<R>(&self, read: impl FnOnce() -> R) -> R {
        self.reads.set(self.reads.get() + 1);
        let outcome = catch_unwind(AssertUnwindSafe(read));
        self.reads.set(self.reads.get() - 1);
        let mut panic = None;
        if !self.is_busy() && self.signal.get() {
            self.emitting.set(true);
            panic = self.emit_queued();
            self.emitting.set(false);
        }
        let result = outcome.unwrap_or_else(|panic| resume_unwind(panic));
        self.on_panic.get().react(panic);
        result
    }

    /// Calls `visit` with batches of the values that a late subscriber receives, until it returns `true`, and
    /// returns whether it did. A disposal ends the visit between two batches.
    fn visit_now(&self, mut visit: impl FnMut(&[T]) -> bool) -> bool {
        self.read_clock();
        let store = self.store.borrow();
        let log = &store.log;
        let mut next = self.first(&store);
        let mut batch_end = next;
        while next < log.end() {
            let values = log.values(next);
            if next >= batch_end {
                if self.state.borrow().is_disposed() {
                    break;
                }
                batch_end = next + REPLAY_BATCH_MAX.max(values.len());
            }
            let count = values.len().min(batch_end - next);
            next += count;
            if visit(&values[..count]) {
                return true;
            }
        }
        false
    }

    /// Makes later reads skip the values that are too old. They are dropped after the read in progress.
    fn read_clock(&self) {
        if P::TIMED && !(self.policy.freezes() && self.has_ended()) {
            let now = self.policy.now_exact();
            let latest = self.expire_at.get().map_or(now, |latest| latest.max(now));
            self.expire_at.set(Some(latest));
            self.signal.set(true);
        }
    }

    /// Returns the position of the first value that a late subscriber receives; the end of the log if there is
    /// none.
    fn first(&self, store: &Store<T, P::Times>) -> usize {
        let replays = match self.state.borrow().end {
            None => P::REPLAYS_LIVE,
            Some(End::Completed) => P::REPLAYS_COMPLETED,
            Some(End::Failed(_)) => P::REPLAYS_FAILED,
            Some(End::Disposed) => false,
        };
        match self.expire_at.get() {
            _ if !replays => store.log.end(),
            Some(now) => store.first_at(&self.policy, now),
            None => store.first_at(&self.policy, Time::ZERO),
        }
    }

    // -- Removal

    pub(super) fn dispose(&self) {
        let (_waiting, _listed, _end) = {
            let mut state = self.state.borrow_mut();
            let end = state.end.replace(End::Disposed);
            state.observers = 0;
            self.guard_state.has_ended.store(true, Ordering::Relaxed);
            self.signal.set(true);
            let waiting = state.registrations.take_waiting();
            let mut listed = Vec::new();
            if !self.emitting.get() {
                let mut list = self.list.borrow_mut();
                listed.extend(state.registrations.take_listed(&mut list));
            }
            (waiting, listed, end)
        };
        // If a call is in progress, it removes the listed observers and the retained values afterward.
        if P::STORES && !self.is_busy() {
            self.evict(Store::clear);
        }
    }

    /// Unsubscribes observers whose guards did not find the subject. Returns whether there were any.
    #[inline]
    fn remove_abandoned(&self) -> bool {
        let any = self.guard_state.has_abandoned();
        if any {
            self.remove_abandoned_now();
        }
        any
    }

    #[cold]
    fn remove_abandoned_now(&self) {
        for key in self.guard_state.take_abandoned() {
            self.remove(key);
        }
    }
}

impl<T, E> State<T, E> {
    fn is_disposed(&self) -> bool {
        matches!(self.end, Some(End::Disposed))
    }

    /// Removes the observers that have unsubscribed, or all observers if the subject is disposed of.
    fn remove_leaving(&mut self, list: &mut List<Boxed<T, E>>, removed: &mut Vec<Boxed<T, E>>) {
        self.registrations.remove_leaving(list, removed);
        if self.is_disposed() {
            self.registrations.remove_all(list, removed);
        }
    }
}

impl<T, E, P: Rules> ByKey for Local<T, E, P> {
    fn remove(&self, key: u64) {
        let _entry = {
            let mut state = self.state.borrow_mut();
            let Some((slot, slot_state)) = state.registrations.find(key) else {
                return;
            };
            let entry = match slot_state {
                SlotState::Free | SlotState::Leaving(_) => return,
                SlotState::Waiting(index) => Some(state.registrations.remove_waiting(slot, index)),
                SlotState::Listed(index) if self.emitting.get() => {
                    state.registrations.leave(slot, index);
                    self.signal.set(true);
                    None
                }
                SlotState::Listed(_) => {
                    let mut list = self.list.borrow_mut();
                    let entry = state.registrations.remove_listed(&mut list, slot);
                    state.registrations.compact(&mut list);
                    Some(entry)
                }
            };
            if state.end.is_none() {
                state.observers -= 1;
            }
            entry
        };
    }

    fn contains(&self, key: u64) -> bool {
        self.state.borrow().registrations.contains(key)
    }
}

impl<T, E, P: Rules> Drop for Local<T, E, P> {
    fn drop(&mut self) {
        self.guard_state.unregister();
    }
}
