//! Exclusive access to the router for one thread at a time, without waiting. The pattern is known as a
//! combiner.
//!
//! A thread that has a change records it and requests access. If another thread has access, the request
//! notifies that thread, which then applies the change before it releases the access. So user code may run
//! for any time while its thread has access, and may request access again.
#![expect(
    unsafe_code,
    reason = "the state that one thread accesses at a time; a lock would cost two more \
              read-modify-writes for each element"
)]

use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicU8, Ordering, SharedCell};

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Like `TAKEN`, but another thread has requested access in the meantime.
const REQUESTED: u8 = 2;

pub(super) struct Combiner<T> {
    state: AtomicU8,
    value: SharedCell<T>,
}

// SAFETY: only the thread with access uses the value. The value moves between threads, which `Send` allows.
unsafe impl<T: Send> Send for Combiner<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Combiner<T> {}

/// Exclusive access. If a panic drops the access, the thread that has access next applies the requested
/// changes.
pub(super) struct Access<'a, T>(&'a Combiner<T>);

impl<T> Combiner<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            state: AtomicU8::new(FREE),
            value: SharedCell::new(value),
        }
    }

    /// Acquires access, unless another thread has it.
    #[inline]
    pub(super) fn take(&self) -> Option<Access<'_, T>> {
        // Acquire: sees the value as the previous access left it.
        let taken = self
            .state
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        // Construct an `Access` only on success, because dropping one releases the access.
        taken.is_ok().then(|| Access(self))
    }

    /// Acquires access, or returns `None` if another thread has access. In that case the other thread sees
    /// the changes that the caller recorded before this call.
    pub(super) fn take_or_notify(&self) -> Option<Access<'_, T>> {
        let mut state = FREE;
        loop {
            let next = if state == FREE { TAKEN } else { REQUESTED };
            // Release: publishes the recorded change to the thread with access. Acquire: as in `take`.
            match self
                .state
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(FREE) => return Some(Access(self)),
                Ok(_) => return None,
                Err(now) => state = now,
            }
        }
    }
}

impl<'a, T> Access<'a, T> {
    /// Releases access and returns `None`. If another thread has requested access, keeps the access and
    /// returns it.
    #[inline]
    pub(super) fn release(self) -> Option<Self> {
        // Release: publishes the value.
        let ended =
            self.0
                .state
                .compare_exchange(TAKEN, FREE, Ordering::Release, Ordering::Relaxed);
        if ended.is_ok() {
            let _ = std::mem::ManuallyDrop::new(self);
            return None;
        }
        // Acquire: sees the recorded changes.
        self.0.state.swap(TAKEN, Ordering::AcqRel);
        Some(self)
    }
}

impl<T> Deref for Access<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: only the thread with access uses the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Access<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: only the thread with access uses the value, and `&mut self` makes the reference unique.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Access<'_, T> {
    fn drop(&mut self) {
        // Release: publishes the value.
        self.0.state.store(FREE, Ordering::Release);
    }
}
