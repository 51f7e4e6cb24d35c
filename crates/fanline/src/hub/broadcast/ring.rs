//! The slots that a hub's elements lie in.
//!
//! Positions count elements and wrap around at the end of `usize`; the number of slots is a power of
//! two, so that a position's slot follows from its lower bits, across the wrap too. The ring itself
//! knows nothing of who may read: a slot is written by the producer alone, and only when every
//! consumer's published position is past what lies there (see `shared`).
#![expect(
    unsafe_code,
    reason = "elements in place: written by one, read by many, and never both"
)]

use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, needs_drop};

pub(super) struct Ring<T> {
    slots: Box<[Slot<T>]>,
    mask: usize,
    /// loom knows nothing of the slots themselves; this stands beside them.
    #[cfg(all(test, fanline_loom))]
    checks: Vec<loom::cell::UnsafeCell<()>>,
}

#[repr(transparent)]
struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: consumers on any thread look at one element at the same time, hence `Sync`; the last owner of
// the ring drops elements that came from another thread, hence `Send`.
unsafe impl<T: Send + Sync> Sync for Ring<T> {}
// SAFETY: as a `Vec<T>`.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    /// Room for at least so many. Nothing when there is no memory for them.
    pub(super) fn new(capacity: usize) -> Option<Self> {
        let count = capacity.checked_next_power_of_two()?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).ok()?;
        slots.extend((0..count).map(|_| Slot(UnsafeCell::new(MaybeUninit::uninit()))));
        Some(Self {
            slots: slots.into_boxed_slice(),
            mask: count - 1,
            #[cfg(all(test, fanline_loom))]
            checks: (0..count)
                .map(|_| loom::cell::UnsafeCell::new(()))
                .collect(),
        })
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    #[inline(always)]
    fn slot(&self, position: usize) -> *mut T {
        // The mask keeps it within; written as an index, it would be checked all the same.
        // SAFETY: `position & mask` is smaller than the number of slots.
        let slot = unsafe { self.slots.get_unchecked(position & self.mask) };
        slot.0.get().cast::<T>()
    }

    /// Puts an element at a position.
    ///
    /// # Safety
    ///
    /// The caller is the producer; nobody reads that slot, and no element that must be dropped is there.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: usize, value: T) {
        #[cfg(all(test, fanline_loom))]
        self.checks[position & self.mask].with_mut(|_| ());
        // SAFETY: the caller has the slot to itself.
        unsafe { self.slot(position).write(value) };
    }

    /// Takes the element at a position out.
    ///
    /// # Safety
    ///
    /// The caller is the producer, or has the ring to itself; an element is there, nobody reads it, and
    /// nobody does again before the next write.
    pub(super) unsafe fn take(&self, position: usize) -> T {
        #[cfg(all(test, fanline_loom))]
        self.checks[position & self.mask].with_mut(|_| ());
        // SAFETY: initialised, and not looked at again, says the caller.
        unsafe { self.slot(position).read() }
    }

    /// Drops what lies in `[from, to)`.
    ///
    /// # Safety
    ///
    /// As for [`take`](Self::take), for each of them.
    pub(super) unsafe fn drop_range(&self, from: usize, to: usize) {
        if !needs_drop::<T>() {
            return;
        }
        let mut position = from;
        while position != to {
            // SAFETY: says the caller. When the drop of one panics, those after it leak.
            drop(unsafe { self.take(position) });
            position = position.wrapping_add(1);
        }
    }

    /// The element at a position.
    ///
    /// # Safety
    ///
    /// It was published to the caller, whose own published position keeps the producer from the slot
    /// for as long as the reference lives.
    #[cfg(all(test, fanline_loom))]
    pub(super) unsafe fn get(&self, position: usize) -> &T {
        self.checks[position & self.mask].with(|_| ());
        // SAFETY: initialised and not written to, says the caller.
        unsafe { &*self.slot(position) }
    }

    /// The lap that a position is in.
    pub(super) fn lap(&self, position: usize) -> Lap<T> {
        let slot = self.slots.as_ptr().wrapping_add(position & self.mask);
        // Where position 0 would be: never looked at, so it may be anywhere.
        Lap(slot.cast::<T>().wrapping_sub(position))
    }

    /// How many positions follow in the lap of that one, itself included.
    pub(super) fn left_in_lap(&self, position: usize) -> usize {
        self.slots.len() - (position & self.mask)
    }

    /// The elements of `[from, to)`, as far as they lie together.
    ///
    /// # Safety
    ///
    /// As for [`Lap::get`], for each of them.
    #[inline]
    pub(super) unsafe fn slice(&self, from: usize, to: usize) -> &[T] {
        let count = to.wrapping_sub(from).min(self.left_in_lap(from));
        #[cfg(all(test, fanline_loom))]
        for offset in 0..count {
            self.checks[(from & self.mask) + offset].with(|_| ());
        }
        // SAFETY: `count` slots from there on are within the ring, initialised and not written to.
        unsafe { std::slice::from_raw_parts(self.slot(from), count) }
    }
}

/// Positions whose slots follow each other: their elements are found without asking the ring.
pub(super) struct Lap<T>(*const T);

impl<T> Lap<T> {
    /// The element at a position of this lap.
    ///
    /// # Safety
    ///
    /// The position is in the lap, whose ring is still there. An element was published there to the
    /// caller, whose own published position keeps the producer from the slot for as long as the reference
    /// lives (hazard 5).
    #[inline(always)]
    #[cfg(not(all(test, fanline_loom)))]
    pub(super) unsafe fn get<'a>(&self, position: usize) -> &'a T {
        // SAFETY: in the lap, so this is its slot; initialised and not written to, says the caller.
        unsafe { &*self.0.wrapping_add(position) }
    }
}

// SAFETY: as a `&[T]`.
unsafe impl<T: Sync> Send for Lap<T> {}
// SAFETY: as a `&[T]`.
unsafe impl<T: Sync> Sync for Lap<T> {}
