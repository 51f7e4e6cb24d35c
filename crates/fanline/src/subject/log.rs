//! The retained values of a subject: an append-only log in chunks.
//!
//! Positions count from the first value ever appended. A value has a fixed address from its append until it
//! is evicted, and nothing is evicted while a reader has pinned the log. So a subscriber can read a range in
//! place, without a lock or a clone, while later values are appended. The caller of a method has exclusive
//! access to the log (see `gate`). No method runs code of the value's type: evicted values are returned as
//! [`Evicted`], to be dropped where user code may run.
#![expect(
    unsafe_code,
    reason = "values in place: read without a clone while others are appended"
)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::mem::needs_drop;
use std::ptr::NonNull;

/// Values per chunk, and so per allocation, if the number of values is unbounded.
const CHUNK_SLOTS_MAX: usize = 2048;
/// Minimum number of values per chunk if the number of values is bounded. With fewer, the log would often
/// change chunks.
const CHUNK_SLOTS_MIN: usize = 64;
/// Maximum size of a chunk in bytes if the number of values is unbounded. A chunk is larger only if four
/// values need more.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Maximum size of a chunk in bytes if the number of values is bounded. A chunk is larger only if four values
/// need more.
const RING_CHUNK_BYTES_MAX: usize = 4096;

pub(super) struct Log<T> {
    chunks: VecDeque<Chunk<T>>,
    /// A free chunk, to be used next.
    spare: Option<Chunk<T>>,
    /// Values per chunk, a power of two.
    slots: usize,
    /// Position of the first slot of the first chunk.
    base: usize,
    /// Position of the oldest value in memory. Earlier values are dropped or moved out.
    memory_from: usize,
    /// Position of the oldest value that is retained for late subscribers.
    first: usize,
    /// Address of the slots of the last chunk.
    tail: NonNull<T>,
    /// Position of the first slot of the last chunk.
    tail_base: usize,
    /// Number of slots of the last chunk that are in use.
    used: usize,
    /// Number of all slots of the last chunk.
    room: usize,
    /// Number of readers that read values without a lock.
    pins: usize,
}

// SAFETY: the log owns its values, as a `Vec` does; the raw pointers are its own allocations.
unsafe impl<T: Send> Send for Log<T> {}

impl<T> Log<T> {
    /// Creates a log for at most `count_max` retained values, if that is known.
    pub(super) fn new(count_max: Option<usize>) -> Self {
        Self {
            chunks: VecDeque::new(),
            spare: None,
            slots: chunk_slots::<T>(count_max),
            base: 0,
            memory_from: 0,
            first: 0,
            tail: NonNull::dangling(),
            tail_base: 0,
            used: 0,
            room: 0,
            pins: 0,
        }
    }

    /// Returns the position that the next value gets.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.tail_base + self.used
    }

    /// Returns the position of the oldest retained value.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Appends a value, and returns its address, which is valid until the value is evicted.
    #[inline]
    pub(super) fn append(&mut self, value: T) -> NonNull<T> {
        if self.used == self.room {
            self.grow();
        }
        // SAFETY: `used < room`, and the log owns `room` slots from `tail`; this one is not in use.
        let slot = unsafe { self.tail.add(self.used) };
        // SAFETY: the log owns this unused slot. It is aligned, because it is inside an array of `T`.
        unsafe { slot.write(value) };
        self.used += 1;
        slot
    }

    /// Moves the last `count` values of `values` to the log.
    pub(super) fn append_last(&mut self, values: &mut Vec<T>, count: usize) {
        let mut left = count;
        let rest = values.len() - count;
        let mut from = values[rest..].as_ptr();
        // SAFETY: the new length is shorter. The values behind it are copied to the log below, which becomes
        // their only owner.
        unsafe { values.set_len(rest) };
        while left > 0 {
            if self.used == self.room {
                self.grow();
            }
            let count = left.min(self.room - self.used);
            // SAFETY: `used + count <= room`; see `append`.
            let slot = unsafe { self.tail.add(self.used) };
            // SAFETY: `from` has `left >= count` values; the vector's memory and the chunk do not overlap.
            unsafe {
                slot.copy_from_nonoverlapping(NonNull::new_unchecked(from.cast_mut()), count)
            };
            // SAFETY: the result is within the vector's allocation, or directly behind it.
            from = unsafe { from.add(count) };
            left -= count;
            self.used += count;
        }
    }

    /// Returns whether the next append needs a new chunk.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.used == self.room
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pins > 0
    }

    /// Retains only values from `position` on. The others stay in memory until they are evicted.
    pub(super) fn retain_from(&mut self, position: usize) {
        debug_assert!(position <= self.end());
        self.first = self.first.max(position);
    }

    /// Removes the values that are no longer retained from memory, and returns them. Does nothing while the
    /// log is pinned.
    pub(super) fn evict(&mut self) -> Evicted<T> {
        if self.pins > 0 || self.memory_from == self.first {
            return Evicted::Nothing;
        }
        if !needs_drop::<T>() {
            self.memory_from = self.first;
            self.release_chunks();
            return Evicted::Nothing;
        }
        if self.first - self.memory_from == 1 {
            let slot = self.slot(self.memory_from);
            self.memory_from = self.first;
            // SAFETY: the value was present (`memory_from` was its position), and is not read again.
            let value = unsafe { slot.read() };
            self.release_chunks();
            return Evicted::One(value);
        }
        let mut values = Vec::with_capacity(self.first - self.memory_from);
        for position in self.memory_from..self.first {
            // SAFETY: the value was present, and each value is read only once.
            values.push(unsafe { self.slot(position).read() });
        }
        self.memory_from = self.first;
        self.release_chunks();
        Evicted::Several(values)
    }

    /// Prevents all eviction until the matching [`unpin`](Self::unpin).
    pub(super) fn pin(&mut self) {
        self.pins += 1;
    }

    pub(super) fn unpin(&mut self) {
        self.pins -= 1;
    }

    /// Returns the contiguous values from `from` on, in order. If `from` is the end of the log, the slice is
    /// empty. The slice is valid until values are evicted, which pinning the log prevents.
    pub(super) fn slice_from(&self, from: usize) -> NonNull<[T]> {
        debug_assert!(self.memory_from <= from && from <= self.end());
        let count = (self.end() - from).min(self.slots - (from - self.base) % self.slots);
        if count == 0 {
            return NonNull::slice_from_raw_parts(NonNull::dangling(), 0);
        }
        NonNull::slice_from_raw_parts(self.slot(from), count)
    }

    /// Returns the address of a value in memory.
    fn slot(&self, position: usize) -> NonNull<T> {
        let offset = position - self.base;
        let chunk = &self.chunks[offset / self.slots];
        // SAFETY: the remainder is less than the number of slots.
        unsafe { chunk.slots.add(offset % self.slots) }
    }

    /// Appends a chunk: the spare one, or a new one.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.tail_base = self.end();
        let chunk = self.spare.take().unwrap_or_else(|| Chunk::new(self.slots));
        self.tail = chunk.slots;
        self.used = 0;
        self.room = self.slots;
        self.chunks.push_back(chunk);
    }

    /// Frees chunks without values, except the last one, which is still written to.
    fn release_chunks(&mut self) {
        while self.chunks.len() > 1 && self.memory_from - self.base >= self.slots {
            self.spare = self.chunks.pop_front();
            self.base += self.slots;
        }
    }
}

impl<T> Drop for Log<T> {
    fn drop(&mut self) {
        if needs_drop::<T>() {
            for position in self.memory_from..self.end() {
                // SAFETY: the values from `memory_from` to the end exist, and are dropped once, here. If a
                // destructor panics, the later values leak, which is sound.
                unsafe { self.slot(position).drop_in_place() };
            }
        }
    }
}

/// Memory for a fixed number of values. The log knows which slots hold a value.
struct Chunk<T> {
    slots: NonNull<T>,
    layout: Layout,
}

impl<T> Chunk<T> {
    fn new(slots: usize) -> Self {
        let layout = Layout::array::<T>(slots).expect("a chunk is far smaller than memory");
        if layout.size() == 0 {
            return Self {
                slots: NonNull::dangling(),
                layout,
            };
        }
        // SAFETY: the layout's size is not zero.
        let memory = unsafe { alloc(layout) };
        let Some(slots) = NonNull::new(memory.cast::<T>()) else {
            handle_alloc_error(layout)
        };
        Self { slots, layout }
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: the memory was allocated in `new` with this layout, and was not freed before.
            unsafe { dealloc(self.slots.as_ptr().cast(), self.layout) };
        }
    }
}

/// Values that have been removed from the log. Dropping it drops them.
#[must_use = "dropping it runs user code: choose where"]
pub(super) enum Evicted<T> {
    Nothing,
    One(T),
    Several(Vec<T>),
}

impl<T> Evicted<T> {
    /// Returns the values of both.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, some) | (some, Self::Nothing) => some,
            (one, other) => {
                let mut values = one.into_values();
                values.append(&mut other.into_values());
                Self::Several(values)
            }
        }
    }

    fn into_values(self) -> Vec<T> {
        match self {
            Self::Nothing => Vec::new(),
            Self::One(value) => vec![value],
            Self::Several(values) => values,
        }
    }
}

fn chunk_slots<T>(count_max: Option<usize>) -> usize {
    let (by_count, bytes_max) = match count_max {
        Some(count_max) => (
            count_max.clamp(CHUNK_SLOTS_MIN, CHUNK_SLOTS_MAX),
            RING_CHUNK_BYTES_MAX,
        ),
        None => (CHUNK_SLOTS_MAX, CHUNK_BYTES_MAX),
    };
    let by_size = (bytes_max / size_of::<T>().max(1)).clamp(4, CHUNK_SLOTS_MAX);
    let by_both = by_count.min(by_size);
    // Rounded down to a power of two.
    1 << by_both.ilog2()
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Append(usize),
        AppendLast { of: usize, count: usize },
        RetainNewest(usize),
        Evict,
        Pin,
        Unpin,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (1usize..200).prop_map(Op::Append),
            2 => (0usize..150, 0usize..150)
                .prop_map(|(of, count)| Op::AppendLast { of, count: count.min(of) }),
            3 => (0usize..150).prop_map(Op::RetainNewest),
            4 => Just(Op::Evict),
            1 => Just(Op::Pin),
            1 => Just(Op::Unpin),
        ]
    }

    /// A value with its own memory that counts its instances.
    struct Counted(Box<usize>, Rc<Cell<usize>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.set(self.1.get() - 1);
        }
    }

    /// The model of a log: three positions. `end` is behind the last value; the others are those of the first
    /// value in memory and of the first retained value.
    #[derive(Default)]
    struct Model {
        end: usize,
        memory_from: usize,
        first: usize,
        pins: usize,
    }

    fn read<T>(log: &Log<T>, from: usize, number: impl Fn(&T) -> usize) -> Vec<usize> {
        let mut at = from;
        let mut numbers = Vec::new();
        loop {
            // SAFETY: nothing is evicted during this read.
            let values = unsafe { log.slice_from(at).as_ref() };
            if values.is_empty() {
                return numbers;
            }
            at += values.len();
            numbers.extend(values.iter().map(&number));
        }
    }

    fn check<T>(
        count_max: Option<usize>,
        ops: &[Op],
        value: impl Fn(usize) -> T,
        number: impl Fn(&T) -> usize,
        alive: impl Fn() -> Option<usize>,
    ) {
        let mut log = Log::new(count_max);
        let mut model = Model::default();
        // Addresses of the values, which must not change.
        let mut addresses = Vec::new();
        for op in ops {
            match *op {
                Op::Append(count) => {
                    for _ in 0..count {
                        addresses.push(log.append(value(model.end)));
                        model.end += 1;
                    }
                }
                Op::AppendLast { of, count } => {
                    // `append_last` leaves these earlier values in the vector.
                    let begin = (model.end + count).saturating_sub(of);
                    let mut values: Vec<T> = (0..of).map(|index| value(begin + index)).collect();
                    let from = values.len() - count;
                    for (index, value_) in values[from..].iter_mut().enumerate() {
                        *value_ = value(model.end + index);
                    }
                    log.append_last(&mut values, count);
                    assert_eq!(values.len(), from);
                    for position in model.end..model.end + count {
                        addresses.push(log.slot(position));
                    }
                    model.end += count;
                }
                Op::RetainNewest(count) => {
                    log.retain_from(model.end.saturating_sub(count));
                    model.first = model.first.max(model.end.saturating_sub(count));
                }
                Op::Evict => {
                    let values = log.evict().into_values();
                    if model.pins == 0 {
                        if needs_drop::<T>() {
                            let numbers: Vec<usize> = values.iter().map(&number).collect();
                            assert!(numbers.into_iter().eq(model.memory_from..model.first));
                        }
                        model.memory_from = model.first;
                    } else {
                        assert!(values.is_empty());
                    }
                }
                Op::Pin => {
                    log.pin();
                    model.pins += 1;
                }
                Op::Unpin if model.pins > 0 => {
                    log.unpin();
                    model.pins -= 1;
                }
                Op::Unpin => {}
            }
            assert_eq!((log.first(), log.end()), (model.first, model.end));
            assert_eq!(log.is_pinned(), model.pins > 0);
            let numbers = read(&log, model.memory_from, &number);
            assert!(numbers.into_iter().eq(model.memory_from..model.end));
            if let Some(alive) = alive() {
                assert_eq!(alive, model.end - model.memory_from);
            }
            for (position, address) in addresses.iter().enumerate().skip(model.memory_from) {
                assert_eq!(log.slot(position), *address, "value {position} has moved");
            }
            if model.pins == 0 && model.memory_from == model.first {
                let needed = (model.end - model.memory_from) / log.slots + 2;
                assert!(log.chunks.len() <= needed, "unused chunks remain");
            }
        }
        drop(log);
        assert_eq!(alive().unwrap_or(0), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn behaves_like_a_vector(
            count_max in prop_oneof![Just(None), (0usize..300).prop_map(Some)],
            ops in prop::collection::vec(op(), 1..if cfg!(miri) { 12 } else { 60 }),
        ) {
            check(count_max, &ops, |number| number, |number| *number, || None);
            let count = Rc::new(Cell::new(0));
            let value = |number| {
                count.set(count.get() + 1);
                Counted(Box::new(number), count.clone())
            };
            check(count_max, &ops, value, |value| *value.0, || Some(count.get()));
        }
    }

    #[test]
    fn zero_sized_and_large_values() {
        let mut log = Log::new(None);
        let mut units = vec![(); 2000];
        log.append(());
        log.append_last(&mut units, 1500);
        assert_eq!(read(&log, 1, |()| 1).len(), 1500);
        let mut log = Log::new(Some(5));
        for number in 0..50_usize {
            log.append([number; 400]);
            log.retain_from(log.end().saturating_sub(5));
            let _ = log.evict().into_values();
        }
        assert_eq!(read(&log, 45, |value| value[0]), [45, 46, 47, 48, 49]);
    }

    /// Regression test: a log of all values allocated 2 GiB for one value of 1 MiB.
    #[test]
    fn large_values_do_not_share_a_huge_chunk() {
        assert_eq!(chunk_slots::<u32>(None), CHUNK_SLOTS_MAX);
        assert_eq!(chunk_slots::<[u8; 1024]>(None), CHUNK_SLOTS_MAX);
        assert_eq!(chunk_slots::<[u8; 1 << 20]>(None), 4);
        assert_eq!(chunk_slots::<[u8; 1 << 20]>(Some(5)), 4);
        assert_eq!(chunk_slots::<()>(None), CHUNK_SLOTS_MAX);
    }
}
