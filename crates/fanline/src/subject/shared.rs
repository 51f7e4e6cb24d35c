//! Emission from many threads and from inside observers, one at a time.
//!
//! A thread that emits during another emission queues its value and continues; the emitting thread takes it
//! from the queue. So all observers see the values in the same order, a value emitted by an observer comes
//! after the current one (breadth first), and no thread waits.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::combiner::Combiner;
use super::core::Core;
use super::end::End;
use super::list::Boxed;
use super::owner::Owner;
use super::policy::Rules;
use super::producer::OnPanic;
use super::source::Live;
use crate::fence::Fences;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::unwind::{AssertUnwindSafe, Panic, catch_unwind};

/// A subject that emits by reference. Dropping it disposes of the subject.
pub struct Shared<T, E, P: Rules> {
    core: Arc<Core<T, E, P, Boxed<T, E>>>,
    owner: Arc<Owner<T, E, P, Boxed<T, E>>>,
    combiner: Combiner,
    queue: Mutex<Vec<Emission<T, E>>>,
    /// Whether the queue has emissions; written under its lock. Access to emission may be free for a moment
    /// although the queue has emissions (see [`Combiner`]). A thread that acquires access at that moment must
    /// emit its own queued emission first.
    has_queued: AtomicBool,
    /// Empty between slices; its memory is reused.
    scratch: Mutex<Vec<T>>,
    /// Read when an observer has panicked.
    on_panic: Mutex<OnPanic>,
}

/// An emission by a handle.
pub(super) enum Emission<T, E> {
    Next(T),
    Slice(Vec<T>),
    /// Emits what the function returns for the last value.
    Update(Box<dyn FnOnce(&T) -> T + Send>),
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
            combiner: Combiner::new(fences),
            queue: Mutex::new(Vec::new()),
            has_queued: AtomicBool::new(false),
            scratch: Mutex::new(Vec::new()),
            on_panic: Mutex::new(OnPanic::default()),
        }
    }

    pub(super) fn set_on_panic(&self, on_panic: OnPanic) {
        *lock(&self.on_panic) = on_panic;
    }

    fn react(&self, panic: Option<Panic>) {
        if panic.is_some() {
            let on_panic = *lock(&self.on_panic);
            on_panic.react(panic);
        }
    }

    pub(super) fn core(&self) -> &Arc<Core<T, E, P, Boxed<T, E>>> {
        &self.core
    }

    pub(super) fn live(&self) -> Arc<dyn Live<T, E, Boxed<T, E>>> {
        self.owner.clone()
    }

    /// Returns whether the subject has an observer, or a source through which an observer can subscribe.
    pub(super) fn is_reachable(&self) -> bool {
        // Sources share the owner; guards, and operators inside observers, hold only the core.
        Arc::strong_count(&self.owner) > 1 || self.core.observer_count() > 0
    }

    #[inline]
    pub(super) fn next(&self, value: T) {
        // `core` is loaded before access is acquired, because the processor delays loads that come after the
        // acquisition.
        let core = &*self.core;
        let acquired = self.combiner.try_acquire();
        if acquired && self.is_next() {
            let panic = guarded(|| core.next(value));
            self.release(panic);
        } else {
            self.queue(Emission::Next(value), acquired);
        }
    }

    pub(super) fn next_slice(&self, values: &[T])
    where
        T: Clone,
    {
        let acquired = self.combiner.try_acquire();
        if acquired && self.is_next() {
            let panic = guarded(|| {
                let mut scratch = core::mem::take(&mut *lock(&self.scratch));
                let panic = self.core.next_slice(values, &mut scratch);
                *lock(&self.scratch) = scratch;
                panic
            });
            self.release(panic);
        } else {
            // `clone` is user code, and its panic must not prevent the release of access.
            match catch_unwind(AssertUnwindSafe(|| values.to_vec())) {
                Ok(values) => self.queue(Emission::Slice(values), acquired),
                Err(panic) => self.release_slowly(!acquired, Some(panic)),
            }
        }
    }

    /// Emits what `change` returns for the last value.
    pub(super) fn update(&self, change: impl FnOnce(&T) -> T + Send + 'static) {
        let acquired = self.combiner.try_acquire();
        if acquired && self.is_next() {
            let panic = guarded(|| self.emit_update(change));
            self.release(panic);
        } else {
            self.queue(Emission::Update(Box::new(change)), acquired);
        }
    }

    fn emit_update(&self, change: impl FnOnce(&T) -> T) -> Option<Panic> {
        if self.core.has_ended() {
            return None;
        }
        let mut changed = None;
        self.core.visit_last(|last| changed = Some(change(last)));
        self.core.next(changed?)
    }

    pub(super) fn end(&self, end: End<E>) {
        let acquired = self.combiner.try_acquire();
        if acquired && self.is_next() {
            let panic = guarded(|| self.core.end(end));
            self.release(panic);
        } else {
            self.queue(Emission::End(end), acquired);
        }
    }

    /// Returns whether no queued emission has to come before a new one.
    #[inline(always)]
    fn is_next(&self) -> bool {
        // Relaxed: if this thread has queued an emission, or if another thread's queuing happened before this
        // call, this load sees the flag as it was set then, or a later value. It never sees an older value.
        !self.has_queued.load(Ordering::Relaxed)
    }

    /// Emits the emissions that were queued meanwhile, and releases access.
    #[inline(always)]
    fn release(&self, panic: Option<Panic>) {
        let free = self.combiner.release();
        if !free || panic.is_some() {
            self.release_slowly(free, panic);
        }
    }

    #[cold]
    fn release_slowly(&self, free: bool, mut panic: Option<Panic>) {
        if !free {
            let thrown = self.emit_queued();
            panic = panic.or(thrown);
        }
        self.react(panic);
    }

    /// Emits until the queue is empty, and releases access.
    fn emit_queued(&self) -> Option<Panic> {
        let mut panic = None;
        let mut batch = Vec::new();
        loop {
            self.combiner.mark_taken();
            {
                let mut queue = lock(&self.queue);
                core::mem::swap(&mut *queue, &mut batch);
                self.has_queued.store(false, Ordering::Relaxed);
            }
            for emission in batch.drain(..) {
                let thrown = guarded(|| match emission {
                    Emission::Next(value) => self.core.next(value),
                    // A queued slice is already a copy.
                    Emission::Slice(values) => self.core.next_owned_slice(values),
                    Emission::Update(change) => self.emit_update(change),
                    Emission::End(end) => self.core.end(end),
                });
                panic = panic.or(thrown);
            }
            if self.combiner.release_unless_queued() {
                return panic;
            }
        }
    }

    /// Queues an emission for the holder. If access is free, or the caller has `acquired` it, empties the
    /// queue.
    #[cold]
    fn queue(&self, emission: Emission<T, E>, acquired: bool) {
        {
            let mut queue = lock(&self.queue);
            queue.push(emission);
            self.has_queued.store(true, Ordering::Relaxed);
        }
        if !acquired && self.core.is_calling_here() {
            self.combiner.announce_from_holder();
        } else if acquired || self.combiner.announce() {
            let panic = self.emit_queued();
            self.react(panic);
        }
    }
}

/// Runs an emission and catches its panic, including one in a user's clock or destructor, because access must
/// be released.
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
