//! A subject's inside: emission, subscription and everything in between.
//!
//! Whoever emits goes through [`Core::next`] and its siblings, one thread at a time: a producer owns
//! that right, a shared subject hands it round. Everybody else takes the lock. No code of the user's
//! runs under the lock, or while the emitter stores: what falls off is handed out as [`Debris`] and
//! dropped afterwards.
#![expect(
    unsafe_code,
    reason = "store and list are reached by the rules of the gate"
)]

#[cfg(all(test, not(fanline_loom)))]
mod between;
mod control;
mod departures;
mod leaving;
mod replaying;

use std::any::Any;
use std::hint::cold_path;
use std::mem::needs_drop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use super::gate::{Gate, Halted};
#[cfg(not(all(test, fanline_loom)))]
use super::latch::Latch;
#[cfg(all(test, fanline_loom))]
use super::latch::Modelled as Latch;
use super::list::{Entry, Place};
use super::log::GivenUp;
use super::policy::Rules;
use super::store::Store;
use crate::clock::Time;
use crate::fence::Fences;
use crate::guard::{Guard, Registry};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use control::Control;
use departures::Departures;
use replaying::Replaying;

/// What a panicking observer threw.
pub(super) type Panic = Box<dyn Any + Send>;

/// How a subject ended.
#[derive(Debug)]
pub(super) enum End<E> {
    Completed,
    Failed(Arc<E>),
    Disposed,
}

impl<E> Clone for End<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Completed => Self::Completed,
            Self::Failed(error) => Self::Failed(error.clone()),
            Self::Disposed => Self::Disposed,
        }
    }
}

pub(super) struct Core<T, E, P, L> {
    gate: Gate<Store<T>, L>,
    policy: P,
    /// Whether something happened while observers were called, so that the emitter has to tidy up.
    stirred: AtomicBool,
    /// Observers that have not left, for whoever asks without the lock.
    observers: AtomicUsize,
    control: Latch<Control<E, L>>,
    departures: Departures,
}

/// Has the code that follows begin a cache line. A loop of a few instructions around an indirect call
/// takes up to a quarter longer when it lies across two of them, and where it lies is chance. It belongs
/// before a loop: within one, what fills the line up would be run each time.
#[inline(always)]
fn begin_on_a_cache_line() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a directive to the assembler; what it inserts does nothing.
    unsafe {
        std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags));
    }
}

/// Drops something of the user's whose destructor may panic, where that must not unwind.
fn discard<D>(fallen: D) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(fallen)));
}

/// What fell off under the lock, to be dropped where the user's code may run.
#[must_use = "it is dropped after the lock is released"]
struct Debris<T, L> {
    _entries: Vec<L>,
    _values: GivenUp<T>,
}

/// The same, of a subject that is disposed of. An error is the user's, too.
#[must_use = "it is dropped after the lock is released"]
struct Cleared<T, E, L> {
    _debris: Debris<T, L>,
    _end: Option<End<E>>,
}

impl<T, E, P: Rules, L: Entry<T, E>> Core<T, E, P, L> {
    pub(super) fn new(policy: P, fences: Fences) -> Arc<Self> {
        Arc::new(Self {
            gate: Gate::new(Store::new(&policy), fences),
            policy,
            stirred: AtomicBool::new(false),
            observers: AtomicUsize::new(0),
            control: Latch::new(Control::new()),
            departures: Departures::new(),
        })
    }

    pub(super) fn observer_count(&self) -> usize {
        // Relaxed: a number that may be old when it is read.
        self.observers.load(Ordering::Relaxed)
    }

    /// With the lock held, so that adding needs no read-modify-write.
    fn count(&self, change: isize) {
        let observers = self.observers.load(Ordering::Relaxed);
        self.observers
            .store(observers.wrapping_add_signed(change), Ordering::Relaxed);
    }

    pub(super) fn end_so_far(&self) -> Option<End<E>> {
        self.control.hold().end.clone()
    }

    /// Whether it has ended; without the lock as long as it has not.
    pub(super) fn has_ended(&self) -> bool {
        // The signal stays up after the end.
        self.gate.is_signalled() && self.control.hold().end.is_some()
    }

    /// Whether this thread is the one that calls observers, further up on its stack.
    pub(super) fn is_calling_here(&self) -> bool {
        self.gate.is_calling_here()
    }

    // -- The emitter

    /// Emits a value. Only one thread at a time may emit; once the subject has ended nothing happens.
    /// What an observer threw comes back.
    // Always inlined: left to the compiler it is a call in some programs, which costs a quarter of the
    // rate with one observer.
    #[inline(always)]
    pub(super) fn next(&self, value: T) -> Option<Panic> {
        let now = self.now();
        // Written out for each case, as neither has need of the other's questions.
        let alone = self.enter();
        if alone.is_some() {
            self.pass_on(value, now, alone)
        } else if self.gate.may_go_on() {
            self.pass_on(value, now, None)
        } else {
            self.next_slowly(value, now)
        }
    }

    #[cold]
    fn next_slowly(&self, value: T, now: Time) -> Option<Panic> {
        // Dropped after the emission, being the user's.
        let _debris = self.enter_slowly(|core| core.enter())?;
        self.pass_on(value, now, None)
    }

    /// Having entered. `alone`: as the gate said.
    #[inline(always)]
    fn pass_on(&self, value: T, now: Time, alone: Option<NonNull<L>>) -> Option<Panic> {
        if !P::STORES {
            return self.call_all(alone, |entry| entry.next(&value));
        }
        // SAFETY: the emitter is storing.
        let store = unsafe { &mut *self.gate.store() };
        // Dropped when the emitter has left.
        let (slot, _given_up) = store.append(&self.policy, value, now);
        if P::HOLDS_BACK {
            self.gate.leave();
            return None;
        }
        self.gate.call();
        // SAFETY: the value stays where it is until the emitter has left: nobody gives up values while
        // observers are called.
        let call = |entry: &mut L| entry.next(unsafe { slot.as_ref() });
        if P::COUNTED && needs_drop::<T>() && self.policy.count_max() == 0 {
            // It goes as soon as it has been passed on.
            self.fan_out(call);
            self.control.hold().to_give_up = true;
            return self.leave_tidily();
        }
        self.call_all(alone, call)
    }

    /// Emits values in order, in one go. `scratch` is empty, and is left so.
    pub(super) fn next_slice(&self, values: &[T], scratch: &mut Vec<T>) -> Option<Panic>
    where
        T: Clone,
    {
        let now = self.now();
        if P::STORES {
            // Cloned before anything is begun: it is the user's code that clones.
            scratch.extend_from_slice(values);
        }
        let panic = self.pass_on_slice(values, scratch, now);
        // What was not worth appending is still there.
        scratch.clear();
        panic
    }

    fn pass_on_slice(&self, values: &[T], scratch: &mut Vec<T>, now: Time) -> Option<Panic> {
        let alone = self.enter();
        let _debris = if alone.is_some() || self.gate.may_go_on() {
            None
        } else {
            Some(self.enter_slowly(|core| core.enter())?)
        };
        if !P::STORES {
            return self.call_all(alone, |entry| entry.next_slice(values));
        }
        // SAFETY: the emitter is storing.
        let store = unsafe { &mut *self.gate.store() };
        // Dropped when the emitter has left.
        let _given_up = store.append_all(&self.policy, scratch, now);
        if P::HOLDS_BACK {
            self.gate.leave();
            return None;
        }
        self.gate.call();
        self.call_all(alone, |entry| entry.next_slice(values))
    }

    /// Emits values that nobody else has.
    pub(super) fn next_owned_slice(&self, values: Vec<T>) -> Option<Panic> {
        let mut panic = None;
        for value in values {
            let thrown = self.next(value);
            panic = panic.or(thrown);
        }
        panic
    }

    /// Ends the subject. Only one thread at a time may emit.
    pub(super) fn end(&self, end: End<E>) -> Option<Panic> {
        let now = self.policy.now_exact();
        let _debris = self.enter_slowly(|core| core.gate.enter_calling())?;
        let Some(last) = self.close(&end, now) else {
            return self.leave_tidily();
        };
        self.fan_out(|entry| {
            if let Some(last) = last {
                // SAFETY: nobody gives up values while observers are called.
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

    /// From now on the subject has ended; who comes gets the end at once. None when it was disposed of
    /// just before; else the value that was held back until now, if there is one.
    fn close(&self, end: &End<E>, now: Time) -> Option<Option<NonNull<[T]>>> {
        let mut control = self.control.hold();
        if control.end.is_some() {
            return None;
        }
        // SAFETY: the emitter is calling, so the list is its own.
        control.admit(unsafe { &mut *self.gate.list() });
        control.end = Some(end.clone());
        control.to_give_up = P::STORES;
        // Stays up, so that every later emission finds the end.
        self.gate.signal();
        self.observers.store(0, Ordering::Relaxed);
        if !P::STORES {
            return Some(None);
        }
        // SAFETY: with the lock held nobody else reaches the store while the emitter is calling.
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

    /// Begins an emission, after all that waits for it is done; none when the subject has ended. What
    /// fell off comes back, to be dropped after the emission.
    #[cold]
    fn enter_slowly(
        &self,
        enter: impl Fn(&Self) -> Option<NonNull<L>>,
    ) -> Option<Vec<Debris<T, L>>> {
        let mut all = Vec::new();
        loop {
            let (debris, ended) = {
                let mut control = self.control.hold();
                let debris = self.tidy(&mut control);
                (debris, control.end.is_some())
            };
            all.push(debris);
            if ended {
                return None;
            }
            enter(self);
            if self.gate.may_go_on() {
                return Some(all);
            }
        }
    }

    /// Calls all observers, and leaves.
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

    /// Calls the only observer, and leaves. Most of what the loop over many looks at needs no look here: there is
    /// half as much to do.
    #[inline(always)]
    fn call_alone(&self, alone: *mut L, call: impl FnOnce(&mut L) -> bool) -> Option<Panic> {
        // SAFETY: the only entry of the list, which is the emitter's own while it is calling; no other
        // reference to it is alive.
        match catch_unwind(AssertUnwindSafe(|| call(unsafe { &mut *alone }))) {
            Ok(closed) if u8::from(closed) | self.gate.signal_byte() == 0 => {
                self.gate.leave();
                return None;
            }
            Ok(closed) => {
                cold_path();
                self.stir_at(alone, closed);
            }
            Err(panic) => self.stir_after(panic, alone),
        }
        self.leave_tidily()
    }

    /// Calls each observer that was there when it began, unless it has left meanwhile. One that says it
    /// is closed, and one that panics, is taken out.
    // What is rare finds out by itself what it needs to know, and says with a flag in memory that it was
    // there: all that the loop keeps in registers is where it is and where it ends.
    #[inline(always)]
    fn fan_out(&self, mut call: impl FnMut(&mut L) -> bool) {
        let list = self.gate.list();
        // SAFETY: the emitter is calling, so the list is its own; nothing joins it meanwhile, so the
        // entries stay where they are.
        let Range { start, end } = unsafe { (*list).as_mut_ptr_range() };
        let mut entry = start;
        while entry != end {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                begin_on_a_cache_line();
                loop {
                    // SAFETY: before the end, and no other reference to an entry is alive.
                    let closed = call(unsafe { &mut *entry });
                    if u8::from(closed) | self.gate.signal_byte() != 0 {
                        self.stir_at(entry, closed);
                    }
                    // SAFETY: before the end.
                    entry = unsafe { entry.add(1) };
                    if entry == end {
                        return;
                    }
                }
            }));
            if let Err(panic) = outcome {
                self.stir_after(panic, entry);
                // SAFETY: before the end.
                entry = unsafe { entry.add(1) };
            }
        }
    }

    /// An observer has panicked: it is taken out, and the panic kept until all have been called.
    #[cold]
    fn stir_after(&self, panic: Panic, entry: *mut L) {
        let mut control = self.control.hold();
        // The first counts. Another is dropped without the lock: what was thrown is the user's.
        let another = match control.panic {
            None => {
                control.panic = Some(panic);
                None
            }
            Some(_) => Some(panic),
        };
        drop(control);
        discard(another);
        self.stir_at(entry, true);
    }

    /// [`stir`](Self::stir), knowing where the observer lies that was called last.
    #[cold]
    #[inline(never)]
    fn stir_at(&self, entry: *mut L, closed: bool) {
        // SAFETY: the emitter is calling, so the list is its own.
        let entries = unsafe { (*self.gate.list()).as_mut_ptr_range().start };
        // SAFETY: of the same entries, which have not moved: nothing joins or is closed up meanwhile.
        let index = unsafe { entry.offset_from_unsigned(entries) };
        self.stir(closed.then_some(index));
        // Relaxed: the emitter's own.
        self.stirred.store(true, Ordering::Relaxed);
    }

    /// Between two calls: takes out the observer at `closed` and those who have left. Who has come is
    /// let in when the calls are over, and so does not get the value that is being passed on.
    #[cold]
    fn stir(&self, mut closed: Option<usize>) {
        loop {
            let mut gone = Vec::new();
            self.let_go_between_calls(closed.take(), &mut gone);
            if gone.is_empty() {
                return;
            }
            // Again, because dropping an observer may unsubscribe the one to be called next. A
            // destructor that panics must not be taken for the observer that was called.
            gone.into_iter().for_each(discard);
        }
    }

    fn let_go_between_calls(&self, closed: Option<usize>, gone: &mut Vec<L>) {
        let mut control = self.control.hold();
        // SAFETY: the emitter is calling, so the list is its own.
        let list = unsafe { &mut *self.gate.list() };
        if let Some(place) = closed.and_then(|index| list.place_at(index)) {
            if matches!(control.places.get(place), Place::Listed(_)) && control.end.is_none() {
                self.count(-1);
            }
            gone.push(control.expel(list, place));
        }
        control.let_go(list, gone);
        if control.end.is_none() {
            self.gate.lower_signal(&mut control.fenced);
        }
        if control.waiters > 0 {
            self.departures.announce();
        }
    }

    /// The emitter is done calling.
    #[inline(always)]
    fn leave(&self) -> Option<Panic> {
        // Relaxed: the emitter's own.
        if self.stirred.load(Ordering::Relaxed) {
            cold_path();
            return self.leave_tidily();
        }
        self.gate.leave();
        None
    }

    #[cold]
    fn leave_tidily(&self) -> Option<Panic> {
        let mut control = self.control.hold();
        let debris = self.tidy(&mut control);
        let panic = control.panic.take();
        self.stirred.store(false, Ordering::Relaxed);
        self.gate.leave();
        drop(control);
        drop(debris);
        panic
    }

    /// The emitter, between emissions and with the lock, does what others have left for it.
    fn tidy(&self, control: &mut Control<E, L>) -> Debris<T, L> {
        // SAFETY: the emitter is idle, or about to be: the list is its own.
        let list = unsafe { &mut *self.gate.list() };
        let mut entries = Vec::new();
        control.let_go(list, &mut entries);
        control.admit(list);
        control.close_up(list);
        if control.end.is_none() {
            self.gate.lower_signal(&mut control.fenced);
        }
        if control.waiters > 0 {
            self.departures.announce();
        }
        let mut values = GivenUp::Nothing;
        if P::STORES && std::mem::take(&mut control.to_give_up) {
            // SAFETY: with the lock held nobody else reaches the store while the emitter does not store.
            let store = unsafe { &mut *self.gate.store() };
            store.trim_by_count(&self.policy);
            values = store.log.give_up();
        }
        Debris {
            _entries: entries,
            _values: values,
        }
    }

    // -- Everybody else

    /// Subscribes: what is retained is passed on here and now, on this thread, and the entry joins
    /// behind the last value that it was given, without a gap.
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
            let mut control = self.control.hold();
            if let Some(End::Disposed) = control.end {
                break;
            }
            let mut halted = Halted::Calling;
            if P::STORES {
                halted = self.gate.halt(&mut control.fenced);
                if !exact && self.may_expire(now) {
                    drop(control);
                    // Without the lock: a clock is the user's code.
                    now = self.policy.now_exact();
                    exact = true;
                    continue;
                }
                exact = true;
                if let Some(values) = replay.advance(&mut control, halted, now) {
                    drop(control);
                    // SAFETY: pinned, so the values stay; nobody has a unique reference to one.
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
                control.join(unsafe { &mut *self.gate.list() }, entry)
            } else {
                self.gate.signal();
                control.wait(entry)
            };
            self.count(1);
            let debris = replay.finish(&mut control, halted);
            let reference = self.reference(&mut control);
            drop(control);
            drop(debris);
            return Guard::joined(reference, key);
        }
        Guard::closed()
    }

    /// Whether a reading that is late could keep a value that an exact one would let go. With the emitter
    /// halted.
    fn may_expire(&self, now: Time) -> bool {
        // SAFETY: halted, with the lock held.
        let store = unsafe { &*self.gate.store() };
        store.has_expired(&self.policy, now.plus_nanos(self.policy.late_nanos_max()))
    }

    /// Shows what is retained at this moment to `visit`, in order.
    pub(super) fn visit(&self, mut visit: impl FnMut(&[T])) {
        if !P::STORES {
            return;
        }
        let mut replay = Replaying::new(self);
        let mut until = None;
        let now = self.policy.now_exact();
        loop {
            let mut control = self.control.hold();
            let halted = self.gate.halt(&mut control.fenced);
            let Some(values) = replay.advance(&mut control, halted, now) else {
                break;
            };
            // SAFETY: the lock is held and the emitter halted, by `advance`.
            let end = *until.get_or_insert_with(|| unsafe { (*self.gate.store()).log.end() });
            drop(control);
            // SAFETY: pinned, so the values stay.
            let values = unsafe { values.as_ref() };
            let beyond = replay.next.map_or(0, |next| next.saturating_sub(end));
            visit(&values[..values.len() - beyond]);
            if replay.next >= Some(end) {
                break;
            }
        }
    }

    /// Shows the last value that is retained to `visit`, if there is one.
    pub(super) fn visit_last(&self, visit: impl FnOnce(&T)) {
        let mut replay = Replaying::new(self);
        let last = replay.pin_last(&mut self.control.hold());
        if let Some(last) = last {
            // SAFETY: pinned, so the value stays.
            visit(unsafe { last.as_ref() });
        }
    }

    /// Lets go of what is too old by now.
    pub(super) fn trim(&self) {
        if !P::STORES {
            return;
        }
        let now = self.policy.now_exact();
        let mut control = self.control.hold();
        let halted = self.gate.halt(&mut control.fenced);
        let values = self.trim_halted(&mut control, halted, now);
        drop(control);
        drop(values);
    }

    /// Drops observers and values without a word, and whatever comes later.
    pub(super) fn dispose(&self) {
        let mut control = self.control.hold();
        let halted = self.gate.halt(&mut control.fenced);
        let fallen = self.clear(&mut control, halted);
        drop(control);
        drop(fallen);
    }

    /// Nobody emits or subscribes any more, and nobody will: all that is the user's goes.
    pub(super) fn abandon(self: &Arc<Self>) {
        let mut control = self.control.hold();
        self.gate.signal();
        let fallen = self.clear(&mut control, Halted::Idle);
        control.abandoned = true;
        let spare = std::mem::take(&mut control.spare);
        drop(control);
        drop(fallen);
        for _ in 0..spare {
            // SAFETY: a reference that was left behind, and is counted no more.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(self)) };
        }
    }

    /// Disposed of; what falls off comes back. With the lock held and the emitter halted.
    fn clear(&self, control: &mut Control<E, L>, halted: Halted) -> Cleared<T, E, L> {
        let end = control.end.replace(End::Disposed);
        self.observers.store(0, Ordering::Relaxed);
        let mut entries: Vec<L> = Vec::new();
        for (entry, place) in control.waiting.take() {
            control.places.release(place);
            entries.push(entry);
        }
        let mut values = GivenUp::Nothing;
        if P::STORES {
            // SAFETY: halted, with the lock held.
            let store = unsafe { &mut *self.gate.store() };
            store.clear();
            control.to_give_up = true;
            if halted == Halted::Idle {
                values = store.log.give_up();
            }
        }
        if halted == Halted::Idle {
            // SAFETY: the emitter is idle and cannot begin.
            let list = unsafe { &mut *self.gate.list() };
            entries.extend(list.take().map(|(entry, _)| entry));
            control.leaving.clear();
            control.places.release_all();
        }
        if control.waiters > 0 {
            self.departures.announce();
        }
        Cleared {
            _debris: Debris {
                _entries: entries,
                _values: values,
            },
            _end: end,
        }
    }

    /// A reference for a guard: one that another has left behind, or a new one.
    fn reference(self: &Arc<Self>, control: &mut Control<E, L>) -> Arc<Self> {
        if control.spare == 0 {
            return self.clone();
        }
        control.spare -= 1;
        // SAFETY: it was left behind by `remove_last`, and is counted no more.
        unsafe { Arc::from_raw(Arc::as_ptr(self)) }
    }

    /// With the emitter halted: applies the rules of age and number.
    fn trim_halted(&self, control: &mut Control<E, L>, halted: Halted, now: Time) -> GivenUp<T> {
        // SAFETY: halted, with the lock held.
        let store = unsafe { &mut *self.gate.store() };
        if control.end.is_none() || !self.policy.freezes() {
            store.trim(&self.policy, now);
        }
        if halted == Halted::Calling {
            // The value that is being passed on may be among them.
            control.to_give_up = true;
            return GivenUp::Nothing;
        }
        store.log.give_up()
    }
}
