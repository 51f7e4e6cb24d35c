//! The core of a subject: emission, subscription, and the steps between them.
//!
//! [`Core::next`] and its siblings emit; only one thread at a time may call them. A producer exists only
//! once, and the handles of a shared subject take turns. The other methods take the lock. User code never
//! runs under the lock, nor while the emitter stores a value. Entries and values that are removed under the
//! lock are returned as [`Removed`] and dropped afterward.
#![expect(
    unsafe_code,
    reason = "store and list are reached by the rules of the gate"
)]

#[cfg(all(test, not(fanline_loom)))]
mod between;
mod control;
mod removals;
mod replaying;
mod unsubscribe;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::needs_drop;
use core::ops::Range;
use core::ptr::NonNull;

use super::end::End;
use super::gate::{Gate, Halted};
use super::list::Entry;
use super::log::Evicted;
use super::policy::Rules;
use super::store::Store;
use crate::clock::Time;
use crate::fence::Fences;
use crate::guard::{Guard, Registry};
#[cfg(all(test, fanline_loom))]
use crate::spin_lock::ModelLock as SpinLock;
#[cfg(not(all(test, fanline_loom)))]
use crate::spin_lock::SpinLock;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::unwind::{AssertUnwindSafe, Panic, catch_unwind};
use control::Control;
use removals::Removals;
pub(super) use replaying::REPLAY_BATCH_MAX;
use replaying::Replaying;

/// Marks a branch as unlikely, as `std::hint::cold_path` does since Rust 1.95.
#[inline]
#[cold]
fn cold_path() {}

pub(super) struct Core<T, E, P: Rules, L> {
    gate: Gate<Store<T, P::Times>, L>,
    policy: P,
    /// Whether the emitter must [`tidy`](Core::tidy) after the calls, because the signal was raised or an
    /// observer closed meanwhile.
    needs_tidying: AtomicBool,
    /// Number of current observers, readable without the lock.
    observers: AtomicUsize,
    control: SpinLock<Control<E, L>>,
    removals: Removals,
}

/// Aligns the code that follows to a cache line. A loop of a few instructions around an indirect call takes
/// up to 25 % longer if it spans two cache lines. Without alignment this depends on the layout of the
/// program. Call it before the loop; inside, each iteration would execute the padding.
#[inline(always)]
fn begin_on_a_cache_line() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: an assembler directive; the inserted padding does nothing.
    unsafe {
        core::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags));
    }
}

/// Drops a user's value, and ignores a panic of its destructor.
fn discard<D>(removed: D) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(removed)));
}

/// Entries and values removed under the lock, to be dropped where user code may run.
#[must_use = "it is dropped after the lock is released"]
struct Removed<T, L> {
    _entries: Vec<L>,
    _values: Evicted<T>,
}

/// The entries and values of a disposed subject, and its former end, which may contain a user's error.
#[must_use = "it is dropped after the lock is released"]
struct Disposed<T, E, L> {
    _removed: Removed<T, L>,
    _end: Option<End<E>>,
}

impl<T, E, P: Rules, L: Entry<T, E>> Core<T, E, P, L> {
    pub(super) fn new(policy: P, fences: Fences) -> Arc<Self> {
        Arc::new(Self {
            gate: Gate::new(Store::new(&policy), fences),
            policy,
            needs_tidying: AtomicBool::new(false),
            observers: AtomicUsize::new(0),
            control: SpinLock::new(Control::new()),
            removals: Removals::new(),
        })
    }

    pub(super) fn observer_count(&self) -> usize {
        // Relaxed: the number may be outdated when it is read.
        self.observers.load(Ordering::Relaxed)
    }

    /// Adds `change` to the number of observers. The caller holds the lock, so no read-modify-write is
    /// needed.
    fn count(&self, change: isize) {
        let observers = self.observers.load(Ordering::Relaxed);
        self.observers
            .store(observers.wrapping_add_signed(change), Ordering::Relaxed);
    }

    pub(super) fn end_so_far(&self) -> Option<End<E>> {
        self.control.lock().end.clone()
    }

    /// Returns whether the subject has ended. Takes the lock only if the signal of the [`Gate`] is raised.
    pub(super) fn has_ended(&self) -> bool {
        // The signal stays raised after the subject has ended.
        self.gate.is_signalled() && self.control.lock().end.is_some()
    }

    /// Returns whether this thread is calling observers, further up on its stack.
    pub(super) fn is_calling_here(&self) -> bool {
        self.gate.is_calling_here()
    }

    // -- The emitter

    /// Emits a value, and returns the panic of an observer. Only one thread at a time may emit; after the
    /// end of the subject this does nothing.
    // Always inlined: in some programs the compiler would make it a call, which costs 25 % of the rate with
    // one observer.
    #[inline(always)]
    pub(super) fn next(&self, value: T) -> Option<Panic> {
        let now = self.now();
        // Two calls of `pass_on` on purpose: inlined, each skips the checks that only the other needs.
        let alone = self.enter();
        if alone.is_some() {
            self.pass_on(value, now, alone)
        } else if self.gate.may_continue() {
            self.pass_on(value, now, None)
        } else {
            self.next_slowly(value, now)
        }
    }

    #[cold]
    fn next_slowly(&self, value: T, now: Time) -> Option<Panic> {
        // The removed entries and values are dropped after the emission, because destructors are user code.
        let _removed = self.enter_slowly(|core| core.enter())?;
        self.pass_on(value, now, None)
    }

    /// Emits a value after the gate has been entered. `alone` is the result of [`enter`](Self::enter).
    #[inline(always)]
    fn pass_on(&self, value: T, now: Time, alone: Option<NonNull<L>>) -> Option<Panic> {
        if !P::STORES {
            return self.call_all(alone, |entry| entry.next(&value));
        }
        // SAFETY: the emitter is storing.
        let store = unsafe { &mut *self.gate.store() };
        // `_evicted` is dropped at the end of this function, when the emitter is idle.
        let (slot, _evicted) = store.append(&self.policy, value, now);
        if P::HOLDS_BACK {
            self.gate.leave();
            return None;
        }
        self.gate.call();
        // SAFETY: the value stays in place until the emitter has left: values are not evicted while
        // observers are called.
        let call = |entry: &mut L| entry.next(unsafe { slot.as_ref() });
        if P::COUNTED && needs_drop::<T>() && self.policy.count_max() == 0 {
            // The policy retains no value, so this one is evicted right after its emission.
            self.fan_out(call);
            self.control.lock().must_evict = true;
            return self.leave_tidily();
        }
        self.call_all(alone, call)
    }

    /// Emits values in order, with one call per observer. `scratch` is empty before and after.
    pub(super) fn next_slice(&self, values: &[T], scratch: &mut Vec<T>) -> Option<Panic>
    where
        T: Clone,
    {
        let now = self.now();
        if P::STORES {
            // Cloned before the emission begins: cloning runs user code.
            scratch.extend_from_slice(values);
        }
        let panic = self.pass_on_slice(values, scratch, now);
        // Values that would not be retained are still in `scratch`.
        scratch.clear();
        panic
    }

    fn pass_on_slice(&self, values: &[T], scratch: &mut Vec<T>, now: Time) -> Option<Panic> {
        let alone = self.enter();
        let _removed = if alone.is_some() || self.gate.may_continue() {
            None
        } else {
            Some(self.enter_slowly(|core| core.enter())?)
        };
        if !P::STORES {
            return self.call_all(alone, |entry| entry.next_slice(values));
        }
        // SAFETY: the emitter is storing.
        let store = unsafe { &mut *self.gate.store() };
        // Dropped at the end of this function, when the emitter is idle.
        let _evicted = store.append_all(&self.policy, scratch, now);
        if P::HOLDS_BACK {
            self.gate.leave();
            return None;
        }
        self.gate.call();
        self.call_all(alone, |entry| entry.next_slice(values))
    }

    /// Emits values of a vector one by one.
    pub(super) fn next_owned_slice(&self, values: Vec<T>) -> Option<Panic> {
        let mut panic = None;
        for value in values {
            let thrown = self.next(value);
            panic = panic.or(thrown);
        }
        panic
    }

    /// Ends the subject, and returns the panic of an observer. Only one thread at a time may emit.
    pub(super) fn end(&self, end: End<E>) -> Option<Panic> {
        let now = self.policy.now_exact();
        let _removed = self.enter_slowly(|core| core.gate.enter_calling())?;
        let Some(last) = self.close(&end, now) else {
            return self.leave_tidily();
        };
        self.fan_out(|entry| {
            if let Some(last) = last {
                // SAFETY: values are not evicted while observers are called.
                if entry.next(unsafe { &last.as_ref()[0] }) {
                    return true;
                }
            }
            match &end {
                End::Completed => entry.complete(),
                End::Failed(error) => entry.error(error),
                End::Disposed => {}
            }
            true
        });
        self.leave_tidily()
    }

    /// Marks the subject as ended: later subscribers receive the completion or error at once. Returns `None`
    /// if the subject had ended before, for example by a concurrent disposal. Otherwise returns the value
    /// that the policy has held back until completion, if there is one.
    fn close(&self, end: &End<E>, now: Time) -> Option<Option<NonNull<[T]>>> {
        let mut control = self.control.lock();
        if control.end.is_some() {
            return None;
        }
        // SAFETY: the emitter is calling, so it owns the list.
        control
            .registrations
            .admit_waiting(unsafe { &mut *self.gate.list() });
        control.end = Some(end.clone());
        control.must_evict = P::STORES;
        // The signal stays raised, so that every later emission finds that the subject has ended.
        self.gate.signal();
        self.observers.store(0, Ordering::Relaxed);
        if !P::STORES {
            return Some(None);
        }
        // SAFETY: with the lock held, no other thread accesses the store while the emitter is calling.
        let store = unsafe { &mut *self.gate.store() };
        store.trim(&self.policy, now);
        if !P::HOLDS_BACK {
            return Some(None);
        }
        if matches!(end, End::Failed(_)) {
            store.clear();
        }
        let held_back = store.log.first() < store.log.end();
        Some(held_back.then(|| store.log.slice_from(store.log.end() - 1)))
    }

    #[inline(always)]
    fn now(&self) -> Time {
        if P::TIMED {
            self.policy.now()
        } else {
            Time::ZERO
        }
    }

    /// Begins an emission; see [`Gate::enter_storing`].
    #[inline(always)]
    fn enter(&self) -> Option<NonNull<L>> {
        if P::STORES {
            self.gate.enter_storing()
        } else {
            self.gate.enter_calling()
        }
    }

    /// Performs the pending work of other threads, and begins an emission. Returns `None` if the subject has
    /// ended. Otherwise returns the removed entries and values, to be dropped after the emission.
    #[cold]
    fn enter_slowly(
        &self,
        enter: impl Fn(&Self) -> Option<NonNull<L>>,
    ) -> Option<Vec<Removed<T, L>>> {
        let mut all = Vec::new();
        loop {
            let (removed, ended) = {
                let mut control = self.control.lock();
                let removed = self.tidy(&mut control);
                (removed, control.end.is_some())
            };
            all.push(removed);
            if ended {
                return None;
            }
            enter(self);
            if self.gate.may_continue() {
                return Some(all);
            }
        }
    }

    /// Calls all observers, and makes the emitter idle.
    #[inline(always)]
    fn call_all(
        &self,
        alone: Option<NonNull<L>>,
        call: impl FnMut(&mut L) -> bool,
    ) -> Option<Panic> {
        if let Some(alone) = alone {
            return self.call_alone(alone.as_ptr(), call);
        }
        self.fan_out(call);
        self.leave()
    }

    /// Calls the only observer, and makes the emitter idle. Skips most checks of the loop over many
    /// observers, which halves the work.
    #[inline(always)]
    fn call_alone(&self, alone: *mut L, call: impl FnOnce(&mut L) -> bool) -> Option<Panic> {
        // SAFETY: the only entry of the list, which the emitter owns while it is calling; no other
        // reference to it is alive.
        match catch_unwind(AssertUnwindSafe(|| call(unsafe { &mut *alone }))) {
            Ok(closed) if u8::from(closed) | self.gate.signal_byte() == 0 => {
                self.gate.leave();
                return None;
            }
            Ok(closed) => {
                cold_path();
                self.handle_signal_at(alone, closed);
            }
            Err(panic) => self.handle_panic(panic, alone),
        }
        self.leave_tidily()
    }

    /// Calls each observer that was present at the start, unless it has left in the meantime. Removes
    /// observers that report that they are closed, and those that panic.
    // The rare paths compute the index again and set a flag in memory. So the loop needs registers only for
    // its position and its end.
    #[inline(always)]
    fn fan_out(&self, mut call: impl FnMut(&mut L) -> bool) {
        let list = self.gate.list();
        // SAFETY: the emitter is calling, so it owns the list. No entry is added meanwhile, so the entries
        // stay in place.
        let Range { start, end } = unsafe { (*list).as_mut_ptr_range() };
        let mut entry = start;
        while entry != end {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                begin_on_a_cache_line();
                loop {
                    // SAFETY: `entry` is before `end`, and no other reference to it is alive.
                    let closed = call(unsafe { &mut *entry });
                    if u8::from(closed) | self.gate.signal_byte() != 0 {
                        self.handle_signal_at(entry, closed);
                    }
                    // SAFETY: `entry` is before `end`.
                    entry = unsafe { entry.add(1) };
                    if entry == end {
                        return;
                    }
                }
            }));
            if let Err(panic) = outcome {
                self.handle_panic(panic, entry);
                entry = entry.wrapping_add(1);
            }
        }
    }

    /// Removes an observer that has panicked, and stores the panic until all observers have been called.
    #[cold]
    fn handle_panic(&self, panic: Panic, entry: *mut L) {
        let mut control = self.control.lock();
        // Only the first panic is reported. A later one is dropped without the lock, because its payload is
        // user data.
        let another = match control.panic {
            None => {
                control.panic = Some(panic);
                None
            }
            Some(_) => Some(panic),
        };
        drop(control);
        discard(another);
        self.handle_signal_at(entry, true);
    }

    /// Calls [`handle_signal`](Self::handle_signal) with the index of the entry that was called last.
    #[cold]
    #[inline(never)]
    fn handle_signal_at(&self, entry: *mut L, closed: bool) {
        // SAFETY: the emitter is calling, so it owns the list.
        let entries = unsafe { (*self.gate.list()).as_mut_ptr_range().start };
        // SAFETY: `entry` points into the same entries. They have not moved, because during the calls none is
        // added and the list is not compacted.
        let index = unsafe { entry.offset_from_unsigned(entries) };
        self.handle_signal(closed.then_some(index));
        // Relaxed: only the emitter uses it.
        self.needs_tidying.store(true, Ordering::Relaxed);
    }

    /// Removes, between two calls, the observer at index `closed` and those that have unsubscribed. New
    /// subscribers are admitted after the calls, so they do not receive the value that is being emitted.
    #[cold]
    fn handle_signal(&self, mut closed: Option<usize>) {
        loop {
            let mut removed = Vec::new();
            self.remove_between_calls(closed.take(), &mut removed);
            if removed.is_empty() {
                return;
            }
            // Dropping an observer runs user code that may unsubscribe others, so the loop repeats. `discard`
            // ignores a panic of a destructor. If that panic unwound from here, the observer that was just
            // called would be removed, although it did not panic.
            removed.into_iter().for_each(discard);
        }
    }

    fn remove_between_calls(&self, closed: Option<usize>, removed: &mut Vec<L>) {
        let mut control = self.control.lock();
        // SAFETY: the emitter is calling, so it owns the list.
        let list = unsafe { &mut *self.gate.list() };
        if let Some(slot) = closed.and_then(|index| list.slot_at(index)) {
            if control.registrations.is_subscribed(slot) && control.end.is_none() {
                self.count(-1);
            }
            removed.push(control.registrations.remove_listed(list, slot));
        }
        control.remove_leaving(list, removed);
        if control.end.is_none() {
            self.gate.lower_signal(&mut control.fenced);
        }
        if control.waiters > 0 {
            self.removals.announce();
        }
    }

    /// Makes the emitter idle. Before that, performs the work that other threads have left to it.
    #[inline(always)]
    fn leave(&self) -> Option<Panic> {
        // Relaxed: only the emitter uses it.
        if self.needs_tidying.load(Ordering::Relaxed) {
            cold_path();
            return self.leave_tidily();
        }
        self.gate.leave();
        None
    }

    #[cold]
    fn leave_tidily(&self) -> Option<Panic> {
        let mut control = self.control.lock();
        let removed = self.tidy(&mut control);
        let panic = control.panic.take();
        self.needs_tidying.store(false, Ordering::Relaxed);
        self.gate.leave();
        drop(control);
        drop(removed);
        panic
    }

    /// Performs, between emissions and with the lock held, the work that other threads have left to the
    /// emitter.
    fn tidy(&self, control: &mut Control<E, L>) -> Removed<T, L> {
        // SAFETY: the emitter is idle or about to be, so it owns the list.
        let list = unsafe { &mut *self.gate.list() };
        let mut entries = Vec::new();
        control.remove_leaving(list, &mut entries);
        control.registrations.admit_waiting(list);
        control.registrations.compact(list);
        if control.end.is_none() {
            self.gate.lower_signal(&mut control.fenced);
        }
        if control.waiters > 0 {
            self.removals.announce();
        }
        let mut values = Evicted::Nothing;
        if P::STORES && core::mem::take(&mut control.must_evict) {
            // SAFETY: with the lock held, no other thread accesses the store while the emitter is not
            // storing.
            let store = unsafe { &mut *self.gate.store() };
            store.trim_by_count(&self.policy);
            values = store.log.evict();
        }
        Removed {
            _entries: entries,
            _values: values,
        }
    }

    // -- All other threads

    /// Subscribes an entry. First delivers the retained values to it, on this thread. Then adds it to the
    /// list without missing a value.
    pub(super) fn subscribe(self: &Arc<Self>, mut entry: L) -> Guard
    where
        Self: Registry + 'static,
    {
        if entry.is_closed() {
            return Guard::closed();
        }
        let mut replay = Replaying::new(self);
        let mut now = self.now();
        let mut exact = !P::TIMED;
        loop {
            let mut control = self.control.lock();
            if matches!(control.end, Some(End::Disposed)) && !replay.is_in_batch() {
                break;
            }
            let mut halted = Halted::Calling;
            if P::STORES {
                halted = self.gate.halt(&mut control.fenced);
                if !exact && self.may_expire(now) {
                    drop(control);
                    // The lock is released first, because a clock is user code.
                    now = self.policy.now_exact();
                    exact = true;
                    continue;
                }
                exact = true;
                if let Some(values) = replay.advance(&mut control, halted, now) {
                    drop(control);
                    // SAFETY: the log is pinned, so the values stay; no unique reference to them exists.
                    if entry.next_slice(unsafe { values.as_ref() }) {
                        break;
                    }
                    continue;
                }
            }
            if let Some(end) = control.end.clone() {
                drop(control);
                match end {
                    End::Completed => entry.complete(),
                    End::Failed(error) => entry.error(&error),
                    End::Disposed => {}
                }
                break;
            }
            let key = if halted == Halted::Idle {
                // SAFETY: the emitter is idle and cannot begin.
                let list = unsafe { &mut *self.gate.list() };
                control.registrations.join(list, entry)
            } else {
                self.gate.signal();
                control.registrations.wait(entry)
            };
            self.count(1);
            let removed = replay.finish(&mut control, halted);
            let reference = self.reference(&mut control);
            drop(control);
            drop(removed);
            return Guard::joined(reference, key);
        }
        Guard::closed()
    }

    /// Returns whether a value may have expired by the exact time although it has not expired by `now`. The
    /// emitter must be halted.
    fn may_expire(&self, now: Time) -> bool {
        // SAFETY: the emitter is halted and the lock is held.
        let store = unsafe { &mut *self.gate.store() };
        store.has_expired(&self.policy, now.plus_nanos(self.policy.late_nanos_max()))
    }

    /// Calls `visit` with the values that are retained now, in order.
    pub(super) fn visit(&self, mut visit: impl FnMut(&[T])) {
        if !P::STORES {
            return;
        }
        let mut replay = Replaying::new(self);
        let mut until = None;
        let now = self.policy.now_exact();
        loop {
            let mut control = self.control.lock();
            let halted = self.gate.halt(&mut control.fenced);
            let Some(values) = replay.advance(&mut control, halted, now) else {
                break;
            };
            // SAFETY: the lock is held and the emitter halted.
            let end = *until.get_or_insert_with(|| unsafe { (*self.gate.store()).log.end() });
            drop(control);
            // SAFETY: the log is pinned, so the values stay.
            let values = unsafe { values.as_ref() };
            let beyond = replay.next.map_or(0, |next| next.saturating_sub(end));
            visit(&values[..values.len() - beyond]);
            if replay.next >= Some(end) {
                break;
            }
        }
    }

    /// Calls `visit` with the last retained value, if there is one.
    pub(super) fn visit_last(&self, visit: impl FnOnce(&T)) {
        self.visit_pinned(|replay, control| replay.pin_last(control), visit);
    }

    /// Calls `visit` with the last value that a late subscriber would receive now, if there is one.
    pub(super) fn visit_latest(&self, visit: impl FnOnce(&T)) {
        if P::STORES {
            let now = self.policy.now_exact();
            self.visit_pinned(|replay, control| replay.pin_latest(control, now), visit);
        }
    }

    /// Calls `visit` with the value that `pin` selects and pins under the lock.
    fn visit_pinned<'a>(
        &'a self,
        pin: impl FnOnce(&mut Replaying<'a, T, E, P, L>, &mut Control<E, L>) -> Option<NonNull<T>>,
        visit: impl FnOnce(&T),
    ) {
        let mut replay = Replaying::new(self);
        let value = pin(&mut replay, &mut self.control.lock());
        if let Some(value) = value {
            // SAFETY: the log is pinned, so the value stays.
            visit(unsafe { value.as_ref() });
        }
    }

    /// Returns the number of values that a late subscriber would receive now.
    pub(super) fn retained(&self) -> usize {
        if !P::STORES {
            return 0;
        }
        let now = self.policy.now_exact();
        let mut replay = Replaying::new(self);
        let mut control = self.control.lock();
        replay.count(&mut control, now)
    }

    /// Removes values that are too old.
    pub(super) fn trim(&self) {
        if !P::STORES {
            return;
        }
        let now = self.policy.now_exact();
        let mut control = self.control.lock();
        let halted = self.gate.halt(&mut control.fenced);
        let values = self.trim_halted(&mut control, halted, now);
        drop(control);
        drop(values);
    }

    /// Disposes of the subject: drops observers and values without notifying them; later calls have no
    /// effect.
    pub(super) fn dispose(&self) {
        let mut control = self.control.lock();
        let halted = self.gate.halt(&mut control.fenced);
        let removed = self.clear(&mut control, halted);
        drop(control);
        drop(removed);
    }

    /// Drops all user values, when the last producer, handle, and source are gone.
    pub(super) fn abandon(self: &Arc<Self>) {
        let mut control = self.control.lock();
        self.gate.signal();
        let removed = self.clear(&mut control, Halted::Idle);
        control.abandoned = true;
        let spare = core::mem::take(&mut control.spare);
        drop(control);
        drop(removed);
        for _ in 0..spare {
            // SAFETY: a dropped guard left this reference behind without releasing it, so the count still
            // includes the reference. It is released only once, here.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(self)) };
        }
    }

    /// Marks the subject as disposed, and returns what is removed. The lock is held and the emitter halted.
    fn clear(&self, control: &mut Control<E, L>, halted: Halted) -> Disposed<T, E, L> {
        let end = control.end.replace(End::Disposed);
        self.observers.store(0, Ordering::Relaxed);
        let mut entries = control.registrations.take_waiting();
        let mut values = Evicted::Nothing;
        if P::STORES {
            // SAFETY: the emitter is halted and the lock is held.
            let store = unsafe { &mut *self.gate.store() };
            store.clear();
            control.must_evict = true;
            if halted == Halted::Idle {
                values = store.log.evict();
            }
        }
        if halted == Halted::Idle {
            // SAFETY: the emitter is idle and cannot begin.
            let list = unsafe { &mut *self.gate.list() };
            entries.extend(control.registrations.take_listed(list));
        }
        if control.waiters > 0 {
            self.removals.announce();
        }
        Disposed {
            _removed: Removed {
                _entries: entries,
                _values: values,
            },
            _end: end,
        }
    }

    /// Returns a reference for a guard: one that a dropped guard has left behind, or a new one.
    fn reference(self: &Arc<Self>, control: &mut Control<E, L>) -> Arc<Self> {
        if control.spare == 0 {
            return self.clone();
        }
        control.spare -= 1;
        // SAFETY: `remove_last` has left this reference behind; it is taken once.
        unsafe { Arc::from_raw(Arc::as_ptr(self)) }
    }

    /// Applies the limits of age and count. The emitter must be halted.
    fn trim_halted(&self, control: &mut Control<E, L>, halted: Halted, now: Time) -> Evicted<T> {
        // SAFETY: the emitter is halted and the lock is held.
        let store = unsafe { &mut *self.gate.store() };
        if control.end.is_none() || !self.policy.freezes() {
            store.trim(&self.policy, now);
        }
        if halted == Halted::Calling {
            // The emitter evicts the values after its calls, because one of the values may be the current
            // one.
            control.must_evict = true;
            return Evicted::Nothing;
        }
        store.log.evict()
    }
}
