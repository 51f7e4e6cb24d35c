//! Emission from many threads, and from inside observers, one at a time.
//!
//! Whoever comes while a value is being emitted leaves his own in a queue and goes on; who is emitting
//! takes it from there. So the order is the same for all observers, a value emitted by an observer
//! comes after the one that it was given (breadth first), and nobody waits for anybody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::core::{Core, End, Panic};
use super::list::Boxed;
use super::owner::Owner;
use super::policy::Rules;
use super::producer::OnPanic;
use super::source::Live;
use super::turn::Turn;
use crate::fence::Fences;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// A subject that can be emitted from by reference. Dropping it disposes of the subject.
pub(super) struct Shared<T, E, P: Rules> {
    core: Arc<Core<T, E, P, Boxed<T, E>>>,
    owner: Arc<Owner<T, E, P, Boxed<T, E>>>,
    turn: Turn,
    queue: Mutex<Vec<Emission<T, E>>>,
    /// Whether something is in the queue; written under its lock. The turn may be free for a moment all the
    /// same (see [`Turn`]), and nobody may overtake what he has queued himself.
    has_queued: AtomicBool,
    /// Empty between slices, kept for its memory.
    scratch: Mutex<Vec<T>>,
    /// Looked at when an observer has panicked.
    on_panic: Mutex<OnPanic>,
}

/// What a handle was asked for.
pub(super) enum Emission<T, E> {
    Next(T),
    Slice(Vec<T>),
    End(End<E>),
}

impl<T, E, P> Shared<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Rules,
{
    pub(super) fn new(policy: P) -> Self {
        Self::with_fences(policy, Fences::detect())
    }

    pub(super) fn with_fences(policy: P, fences: Fences) -> Self {
        let owner = Owner::new(policy, fences);
        Self {
            core: owner.core().clone(),
            owner,
            turn: Turn::new(fences),
            queue: Mutex::new(Vec::new()),
            has_queued: AtomicBool::new(false),
            scratch: Mutex::new(Vec::new()),
            on_panic: Mutex::new(OnPanic::default()),
        }
    }

    pub(super) fn set_on_panic(&self, on_panic: OnPanic) {
        *lock(&self.on_panic) = on_panic;
    }

    fn settle(&self, panic: Option<Panic>) {
        if panic.is_some() {
            let on_panic = *lock(&self.on_panic);
            on_panic.settle(panic);
        }
    }

    pub(super) fn core(&self) -> &Arc<Core<T, E, P, Boxed<T, E>>> {
        &self.core
    }

    pub(super) fn live(&self) -> Arc<dyn Live<T, E, Boxed<T, E>>> {
        self.owner.clone()
    }

    /// Whether somebody is subscribed, or can subscribe without a handle.
    pub(super) fn is_reachable(&self) -> bool {
        // Sources share the owner; guards, and what observers own, have the core alone.
        Arc::strong_count(&self.owner) > 1 || self.core.observer_count() > 0
    }

    #[inline]
    pub(super) fn next(&self, value: T) {
        // Read before the turn is taken: what is read after that waits for it.
        let core = &*self.core;
        let ours = self.turn.take();
        if ours && self.is_next() {
            let panic = guarded(|| core.next(value));
            self.pass_turn(panic);
        } else {
            self.queue(Emission::Next(value), ours);
        }
    }

    pub(super) fn next_slice(&self, values: &[T])
    where
        T: Clone,
    {
        let ours = self.turn.take();
        if ours && self.is_next() {
            let panic = guarded(|| {
                let mut scratch = std::mem::take(&mut *lock(&self.scratch));
                let panic = self.core.next_slice(values, &mut scratch);
                *lock(&self.scratch) = scratch;
                panic
            });
            self.pass_turn(panic);
        } else {
            // The user's code, which must not keep the turn.
            match catch_unwind(AssertUnwindSafe(|| values.to_vec())) {
                Ok(values) => self.queue(Emission::Slice(values), ours),
                Err(panic) => self.pass_turn_slowly(!ours, Some(panic)),
            }
        }
    }

    pub(super) fn end(&self, end: End<E>) {
        let ours = self.turn.take();
        if ours && self.is_next() {
            let panic = guarded(|| self.core.end(end));
            self.pass_turn(panic);
        } else {
            self.queue(Emission::End(end), ours);
        }
    }

    /// Whether nothing is in the queue that would be overtaken.
    #[inline(always)]
    fn is_next(&self) -> bool {
        // Relaxed: who has queued something, or has heard of it from who has, sees that, or what came
        // of it.
        !self.has_queued.load(Ordering::Relaxed)
    }

    /// Gives the turn back, after what was queued meanwhile.
    #[inline(always)]
    fn pass_turn(&self, panic: Option<Panic>) {
        let free = self.turn.give_back();
        if !free || panic.is_some() {
            self.pass_turn_slowly(free, panic);
        }
    }

    #[cold]
    fn pass_turn_slowly(&self, free: bool, mut panic: Option<Panic>) {
        if !free {
            let thrown = self.drain();
            panic = panic.or(thrown);
        }
        self.settle(panic);
    }

    /// Emits what is queued until nothing is, and gives the turn back.
    fn drain(&self) -> Option<Panic> {
        let mut panic = None;
        let mut batch = Vec::new();
        loop {
            self.turn.begin_round();
            {
                let mut queue = lock(&self.queue);
                std::mem::swap(&mut *queue, &mut batch);
                self.has_queued.store(false, Ordering::Relaxed);
            }
            for emission in batch.drain(..) {
                let thrown = guarded(|| match emission {
                    Emission::Next(value) => self.core.next(value),
                    // A slice that was queued is a copy already.
                    Emission::Slice(values) => self.core.next_owned_slice(values),
                    Emission::End(end) => self.core.end(end),
                });
                panic = panic.or(thrown);
            }
            if self.turn.give_back_unless_queued() {
                return panic;
            }
        }
    }

    /// Leaves an emission to whoever has the turn; or takes the turn, unless it is `ours`, and emits all.
    #[cold]
    fn queue(&self, emission: Emission<T, E>, ours: bool) {
        {
            let mut queue = lock(&self.queue);
            queue.push(emission);
            self.has_queued.store(true, Ordering::Relaxed);
        }
        if !ours && self.core.is_calling_here() {
            self.turn.announce_own();
        } else if ours || self.turn.announce() {
            let panic = self.drain();
            self.settle(panic);
        }
    }
}

/// Whatever is thrown, also by the user's clocks and destructors, must not keep the turn.
#[inline(always)]
fn guarded(emit: impl FnOnce() -> Option<Panic>) -> Option<Panic> {
    match catch_unwind(AssertUnwindSafe(emit)) {
        Ok(panic) => panic,
        Err(panic) => Some(panic),
    }
}

impl<T, E, P: Rules> Drop for Shared<T, E, P> {
    fn drop(&mut self) {
        if self.core.end_so_far().is_none() {
            self.core.dispose();
        }
    }
}
