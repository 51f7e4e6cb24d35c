//! Whose turn it is to route: one at a time, and nobody waits for it.
//!
//! Whoever has something to be done writes it down and asks for the turn. If another has it, that one is
//! told by the same exchange, and does it before it is through. So what runs in a turn may be the user's
//! code, for as long as it likes, and may come back in.
#![expect(
    unsafe_code,
    reason = "the state that one of them has at a time; a lock and what goes with it would be two more \
              read-modify-writes for each element"
)]

use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicU8, Ordering, SharedCell};

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Taken, and another has asked since.
const ASKED: u8 = 2;

pub(super) struct Turns<T> {
    state: AtomicU8,
    value: SharedCell<T>,
}

// SAFETY: the value is used by whoever has the turn, one at a time, and goes from thread to thread.
unsafe impl<T: Send> Send for Turns<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Turns<T> {}

/// The turn. When it is dropped by a panic, what others have asked for waits for who comes next.
pub(super) struct Turn<'a, T>(&'a Turns<T>);

impl<T> Turns<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            state: AtomicU8::new(FREE),
            value: SharedCell::new(value),
        }
    }

    /// The turn, if nobody has it.
    #[inline]
    pub(super) fn take(&self) -> Option<Turn<'_, T>> {
        // Acquire: the value as the one before left it.
        let taken = self
            .state
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        // Not before it is known: a turn that is dropped is given back.
        taken.is_ok().then(|| Turn(self))
    }

    /// The turn; or whoever has it sees what the caller has written down before this.
    pub(super) fn ask(&self) -> Option<Turn<'_, T>> {
        let mut state = FREE;
        loop {
            let next = if state == FREE { TAKEN } else { ASKED };
            // Release: what was written down, for the one who has the turn. Acquire: as in `take`.
            match self
                .state
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(FREE) => return Some(Turn(self)),
                Ok(_) => return None,
                Err(now) => state = now,
            }
        }
    }
}

impl<'a, T> Turn<'a, T> {
    /// Ends the turn, unless another has asked: then it goes on.
    #[inline]
    pub(super) fn end(self) -> Option<Self> {
        // Release: the value, for the next.
        let ended =
            self.0
                .state
                .compare_exchange(TAKEN, FREE, Ordering::Release, Ordering::Relaxed);
        if ended.is_ok() {
            let _ = std::mem::ManuallyDrop::new(self);
            return None;
        }
        // Acquire: what the others have written down.
        self.0.state.swap(TAKEN, Ordering::AcqRel);
        Some(self)
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: only who has the turn touches the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Turn<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the turn is borrowed alone.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        // Release: the value, for the next.
        self.0.state.store(FREE, Ordering::Release);
    }
}
