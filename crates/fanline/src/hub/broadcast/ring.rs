//! The slots of a hub's elements.
//!
//! Positions count elements and wrap around at the end of `usize`. The number of slots is a power of two, so
//! the lower bits of a position are the index of its slot, even after positions have wrapped around. The ring
//! does not know which consumers may read. Only the producer writes a slot, and only after every consumer's
//! published position has passed the element in it (see `shared`).
#![expect(
    unsafe_code,
    reason = "elements in place: one writer, many readers, never both at once"
)]

use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, needs_drop};

pub(super) struct Ring<T> {
    slots: Box<[Slot<T>]>,
    mask: usize,
    /// One cell for each slot. loom checks these, because it cannot see accesses to the slots themselves.
    #[cfg(all(test, fanline_loom))]
    checks: Vec<loom::cell::UnsafeCell<()>>,
}

#[repr(transparent)]
struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: consumers on any thread read one element at the same time, so elements must be `Sync`. The last
// owner of the ring drops elements that came from another thread, so elements must be `Send`.
unsafe impl<T: Send + Sync> Sync for Ring<T> {}
// SAFETY: as for a `Vec<T>`.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    /// Allocates at least `capacity` slots. Returns `None` if there is not enough memory.
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
        // The compiler does not see that the mask keeps the index in bounds, so a checked access would cost
        // time.
        // SAFETY: `position & mask` is smaller than the number of slots.
        let slot = unsafe { self.slots.get_unchecked(position & self.mask) };
        slot.0.get().cast::<T>()
    }

    /// Writes an element to a position.
    ///
    /// # Safety
    ///
    /// The caller is the producer, no consumer reads that slot, and the slot holds no element that must be
    /// dropped.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: usize, value: T) {
        #[cfg(all(test, fanline_loom))]
        self.checks[position & self.mask].with_mut(|_| ());
        // SAFETY: the caller has exclusive access to the slot.
        unsafe { self.slot(position).write(value) };
    }

    /// Takes an element out of a position.
    ///
    /// # Safety
    ///
    /// The caller is the producer or has exclusive access to the ring. The slot holds an element, and no
    /// thread reads it before the next write.
    pub(super) unsafe fn take(&self, position: usize) -> T {
        #[cfg(all(test, fanline_loom))]
        self.checks[position & self.mask].with_mut(|_| ());
        // SAFETY: the caller guarantees that the slot is initialized and is not read again.
        unsafe { self.slot(position).read() }
    }

    /// Drops the elements in `[from, to)`.
    ///
    /// # Safety
    ///
    /// For each element, the requirements of [`take`](Self::take) hold.
    pub(super) unsafe fn drop_range(&self, from: usize, to: usize) {
        if !needs_drop::<T>() {
            return;
        }
        let mut position = from;
        while position != to {
            // SAFETY: guaranteed by the caller. If one drop panics, the elements after it leak.
            drop(unsafe { self.take(position) });
            position = position.wrapping_add(1);
        }
    }

    /// Returns the element at a position.
    ///
    /// # Safety
    ///
    /// The element was published to the caller. While the reference lives, the caller publishes no position
    /// past the element, so the producer does not write to its slot.
    #[cfg(all(test, fanline_loom))]
    pub(super) unsafe fn get(&self, position: usize) -> &T {
        self.checks[position & self.mask].with(|_| ());
        // SAFETY: the caller guarantees that the slot is initialized and not written to.
        unsafe { &*self.slot(position) }
    }

    /// Returns the lap (the pass over the ring) that contains a position.
    pub(super) fn lap(&self, position: usize) -> Lap<T> {
        let slot = self.slots.as_ptr().wrapping_add(position & self.mask);
        // The address that position 0 would have if the lap extended back to it. The address is never read,
        // so it may be out of bounds.
        Lap(slot.cast::<T>().wrapping_sub(position))
    }

    /// Returns the number of positions from this one to the end of its lap. This position is included.
    pub(super) fn left_in_lap(&self, position: usize) -> usize {
        self.slots.len() - (position & self.mask)
    }

    /// Returns the elements of `[from, to)` that are contiguous.
    ///
    /// # Safety
    ///
    /// For each element, the requirements of [`Lap::get`] hold.
    #[inline]
    pub(super) unsafe fn slice(&self, from: usize, to: usize) -> &[T] {
        let count = to.wrapping_sub(from).min(self.left_in_lap(from));
        #[cfg(all(test, fanline_loom))]
        for offset in 0..count {
            self.checks[(from & self.mask) + offset].with(|_| ());
        }
        // SAFETY: the `count` slots that begin at `from` are within the ring, initialized, and not written
        // to.
        unsafe { std::slice::from_raw_parts(self.slot(from), count) }
    }
}

/// One pass over the ring: positions whose slots are contiguous. With it, a consumer finds elements without
/// access to the ring.
pub(super) struct Lap<T>(*const T);

impl<T> Lap<T> {
    /// Returns the element at a position of this lap.
    ///
    /// # Safety
    ///
    /// The position is in the lap, the ring is alive, and the element was published to the caller. While the
    /// reference lives, the caller publishes no position past the element, so the producer does not write to
    /// its slot.
    #[inline(always)]
    #[cfg(not(all(test, fanline_loom)))]
    pub(super) unsafe fn get<'a>(&self, position: usize) -> &'a T {
        // SAFETY: the position is in the lap, so this is its slot. The caller guarantees that the slot is
        // initialized and not written to.
        unsafe { &*self.0.wrapping_add(position) }
    }
}

// SAFETY: as for a `&[T]`.
unsafe impl<T: Sync> Send for Lap<T> {}
// SAFETY: as for a `&[T]`.
unsafe impl<T: Sync> Sync for Lap<T> {}
