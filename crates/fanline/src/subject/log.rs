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

use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::needs_drop;
use core::ptr::NonNull;

/// Values per chunk, and so per allocation, if the number of values is unbounded and large.
const CHUNK_SLOTS_MAX: usize = 2048;
/// Minimum number of values per chunk if the number of values is bounded and too large for a ring. With
/// fewer, the log would often change chunks.
const CHUNK_SLOTS_MIN: usize = 64;
/// Maximum size of a chunk in bytes if the number of values is unbounded. A chunk is larger only if four
/// values need more.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Maximum size of a chunk in bytes if the number of values is bounded. A chunk is larger only if four values
/// need more, or a ring of [`RING_SLOTS_ALWAYS`].
const BOUNDED_CHUNK_BYTES_MAX: usize = 4096;
/// Size in bytes of the first chunk if the number of values is unbounded. Later chunks are larger.
const FIRST_CHUNK_BYTES: usize = 256;
/// A ring of this many slots is used for values of any size.
const RING_SLOTS_ALWAYS: usize = 8;

/// The chunks contain consecutive ranges of positions. If the number of values is bounded and small, one chunk
/// is enough: a *ring*, whose slots are used again. While a reader has pinned a ring, new values go to more
/// chunks. After that, later appends free these chunks and return to one ring.
pub(super) struct Log<T> {
    /// The chunk that is written to; without slots before the first append.
    tail: Chunk<T>,
    /// Position that the next value gets.
    end: usize,
    /// Position at which an append takes the slow path, because `tail` has no unused slot for it. It is
    /// `usize::MAX` in a ring of values without destructors that is not pinned: there, appends overwrite the
    /// oldest values.
    limit: usize,
    /// Position of the oldest value in memory. Earlier values are dropped, moved out, or overwritten. Not
    /// maintained while `limit` is `usize::MAX`.
    memory_from: usize,
    /// Position of the oldest value that is retained for late subscribers.
    first: usize,
    /// Number of readers that read values without a lock.
    pins: usize,
    sizes: Sizes,
    /// The chunks before `tail`, if there were any.
    older: Option<Box<Older<T>>>,
}

struct Older<T> {
    chunks: VecDeque<Chunk<T>>,
    /// A free chunk, to be used next.
    spare: Option<Chunk<T>>,
}

// SAFETY: the log owns its values, as a `Vec` does; the raw pointers are its own allocations.
unsafe impl<T: Send> Send for Log<T> {}

impl<T> Log<T> {
    /// Creates a log. With a `count_max`, an append may overwrite values without destructors, unless they are
    /// among the newest `count_max` values, or the log is pinned. The newest value always stays. Values with
    /// destructors are never overwritten; the caller evicts them after each append.
    pub(super) fn new(count_max: Option<usize>) -> Self {
        Self {
            tail: Chunk::EMPTY,
            end: 0,
            limit: 0,
            memory_from: 0,
            first: 0,
            pins: 0,
            sizes: Sizes::of::<T>(count_max),
            older: None,
        }
    }

    /// Returns the position that the next value gets.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Returns the position of the oldest retained value.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Appends a value, and returns its address, which is valid until the value is evicted.
    #[inline]
    pub(super) fn append(&mut self, value: T) -> NonNull<T> {
        if self.end == self.limit {
            self.grow();
        }
        let slot = self.tail.slot(self.end);
        // SAFETY: the log owns this slot. It is aligned, because it is inside an array of `T`. It is unused,
        // because `end` is below the limit, or it holds a value without a destructor that no reader can reach.
        unsafe { slot.write(value) };
        self.end += 1;
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
            if self.end == self.limit {
                self.grow();
            }
            let room = self.tail.contiguous(self.end).min(self.limit - self.end);
            let count = left.min(room);
            let slot = self.tail.slot(self.end);
            // SAFETY: `from` has `left >= count` values, and the chunk has `count` contiguous slots for them;
            // see `append`. The vector's memory and the chunk do not overlap.
            unsafe {
                slot.copy_from_nonoverlapping(NonNull::new_unchecked(from.cast_mut()), count)
            };
            // Within the vector's allocation, or directly behind it.
            from = from.wrapping_add(count);
            left -= count;
            self.end += count;
        }
    }

    /// Returns whether the next append needs a new chunk.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.end == self.limit
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pins > 0
    }

    /// Retains only values from `position` on. The others stay in memory until they are evicted.
    #[inline]
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
        let from = core::mem::replace(&mut self.memory_from, self.first);
        if !needs_drop::<T>() {
            self.release_chunks();
            return Evicted::Nothing;
        }
        // SAFETY: the values from the former `memory_from` on were present, and each is read only once.
        let take = |position| unsafe { self.slot(position).read() };
        let evicted = if self.first - from == 1 {
            Evicted::One(take(from))
        } else {
            Evicted::Several((from..self.first).map(take).collect())
        };
        self.release_chunks();
        evicted
    }

    /// Prevents all eviction until the matching [`unpin`](Self::unpin). The caller has applied the limit of
    /// count.
    pub(super) fn pin(&mut self) {
        self.pins += 1;
        if self.limit == usize::MAX {
            // The ring may have overwritten all values but the newest.
            let slots = self.tail.slots();
            self.first = self.first.max(self.end.saturating_sub(slots));
            self.memory_from = self.first;
            self.tail.from = self.first;
            self.limit = self.first + slots;
        }
    }

    pub(super) fn unpin(&mut self) {
        self.pins -= 1;
        self.use_as_ring();
    }

    /// Returns the contiguous values from `from` on, in order. If `from` is the end of the log, the slice is
    /// empty. The slice is valid until values are evicted, which pinning the log prevents.
    pub(super) fn slice_from(&self, from: usize) -> NonNull<[T]> {
        let (chunk, until) = self.chunk(from);
        debug_assert!(self.memory_from <= from && from <= until);
        let count = (until - from).min(chunk.contiguous(from));
        NonNull::slice_from_raw_parts(chunk.slot(from), count)
    }

    /// Returns the contiguous values from `from` on, like [`slice_from`](Self::slice_from). Nothing is appended
    /// or evicted while they are borrowed.
    pub(super) fn values(&self, from: usize) -> &[T] {
        let memory_from = if self.limit == usize::MAX {
            // Appends have overwritten all values but the newest.
            let oldest = self.end.saturating_sub(self.tail.slots());
            self.memory_from.max(oldest)
        } else {
            self.memory_from
        };
        assert!(memory_from <= from && from <= self.end, "not in memory");
        // SAFETY: the values from `from` on are in memory, and the borrow prevents changes.
        unsafe { self.slice_from(from).as_ref() }
    }

    /// Returns the last value, if it is retained.
    #[inline]
    pub(super) fn last(&self) -> Option<&T> {
        // SAFETY: a retained value is in memory, and the last one is in `tail`. The borrow prevents changes.
        (self.first < self.end).then(|| unsafe { self.tail.slot(self.end - 1).as_ref() })
    }

    /// Returns the address of a value in memory.
    fn slot(&self, position: usize) -> NonNull<T> {
        self.chunk(position).0.slot(position)
    }

    /// Returns the chunk of a value in memory, and the position behind the chunk's last value.
    #[inline]
    fn chunk(&self, position: usize) -> (&Chunk<T>, usize) {
        match &self.older {
            Some(older) if position < self.tail.from => older.chunk(position, self.tail.from),
            _ => (&self.tail, self.end),
        }
    }

    /// Appends a chunk: the spare one, or a new one.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let in_memory = self.end - self.memory_from;
        let slots = self
            .sizes
            .next(self.tail.slots(), in_memory, self.is_pinned());
        let spare = self.older.as_mut().and_then(|older| older.spare.take());
        let chunk = match spare.filter(|spare| spare.slots() == slots) {
            Some(spare) => spare.begin_at(self.end),
            None => Chunk::new(slots, self.end),
        };
        self.limit = self.end + slots;
        let full = core::mem::replace(&mut self.tail, chunk);
        if full.slots() > 0 {
            let older = self.older.get_or_insert_with(|| Box::new(Older::new()));
            older.chunks.push_back(full);
        }
        self.release_chunks();
    }

    /// Frees chunks without values, except the last one, which is still written to.
    #[inline]
    fn release_chunks(&mut self) {
        if let Some(older) = &mut self.older {
            older.release(self.memory_from, self.tail.from);
            if self.sizes.is_ring && older.chunks.is_empty() {
                self.older = None;
            }
        }
        self.use_as_ring();
    }

    /// Lets appends use the slots of evicted values again, if the log is a ring, is not pinned, and has all
    /// its values in one chunk of the right size.
    #[inline]
    fn use_as_ring(&mut self) {
        let slots = self.tail.slots();
        if self.older.is_none() && self.pins == 0 && self.sizes.is_ring_of(slots) {
            self.tail.from = self.memory_from;
            self.limit = if needs_drop::<T>() {
                self.memory_from + slots
            } else {
                usize::MAX
            };
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

impl<T> Older<T> {
    fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            spare: None,
        }
    }

    /// Returns the chunk of a value, and the position behind the chunk's last value. `end` is the position
    /// behind the last chunk.
    fn chunk(&self, position: usize, end: usize) -> (&Chunk<T>, usize) {
        let next = self.chunks.partition_point(|chunk| chunk.from <= position);
        let until = self.chunks.get(next).map_or(end, |next| next.from);
        (&self.chunks[next - 1], until)
    }

    /// Frees chunks without values from `memory_from` on. `end` is the position behind the last chunk.
    fn release(&mut self, memory_from: usize, end: usize) {
        while !self.chunks.is_empty() {
            let until = self.chunks.get(1).map_or(end, |next| next.from);
            if memory_from < until {
                return;
            }
            self.spare = self.chunks.pop_front();
        }
    }
}

/// Memory for a fixed number of values, a power of two. The log knows which slots hold a value. The slot of a
/// value is its position modulo the number of slots.
struct Chunk<T> {
    slots: NonNull<T>,
    /// Position of the first value.
    from: usize,
    /// The number of slots minus 1.
    mask: u32,
    /// Whether the chunk has slots.
    allocated: bool,
}

impl<T> Chunk<T> {
    const EMPTY: Self = Self {
        slots: NonNull::dangling(),
        from: 0,
        mask: 0,
        allocated: false,
    };

    /// Allocates a chunk for the values from `from` on.
    fn new(slots: usize, from: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        let mask = u32::try_from(slots - 1).expect("a chunk has few slots");
        let layout = Layout::array::<T>(slots).expect("a chunk is far smaller than memory");
        let slots = if layout.size() == 0 {
            NonNull::dangling()
        } else {
            // SAFETY: the layout's size is not zero.
            let memory = unsafe { alloc(layout) };
            NonNull::new(memory.cast::<T>()).unwrap_or_else(|| handle_alloc_error(layout))
        };
        Self {
            slots,
            from,
            mask,
            allocated: true,
        }
    }

    /// Uses a free chunk for the values from `from` on.
    fn begin_at(mut self, from: usize) -> Self {
        self.from = from;
        self
    }

    /// Returns the number of slots.
    #[inline]
    fn slots(&self) -> usize {
        if self.allocated {
            self.mask as usize + 1
        } else {
            0
        }
    }

    /// Returns the slot for the value at a position.
    #[inline(always)]
    fn slot(&self, position: usize) -> NonNull<T> {
        // SAFETY: the offset is less than the number of slots, or 0.
        unsafe { self.slots.add(position & self.mask as usize) }
    }

    /// Returns the number of slots from that of a position to the last one.
    fn contiguous(&self, position: usize) -> usize {
        self.slots() - (position & self.mask as usize)
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        let layout = Layout::array::<T>(self.slots()).expect("as when it was allocated");
        if layout.size() > 0 {
            // SAFETY: the memory was allocated in `new` with this layout, and was not freed before.
            unsafe { dealloc(self.slots.as_ptr().cast(), layout) };
        }
    }
}

/// The numbers of slots of a log's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    slots_min: u32,
    slots_max: u32,
    /// Whether one chunk of `slots_min` is enough, unless values are pinned.
    is_ring: bool,
}

impl Sizes {
    fn of<T>(count_max: Option<usize>) -> Self {
        let size = size_of::<T>().max(1);
        let Some(count_max) = count_max else {
            let slots_max = (CHUNK_BYTES_MAX / size).clamp(4, CHUNK_SLOTS_MAX);
            let slots_min = (FIRST_CHUNK_BYTES / size).clamp(4, CHUNK_SLOTS_MIN);
            return Self::new(slots_min, slots_max, false);
        };
        let by_size = (BOUNDED_CHUNK_BYTES_MAX / size).clamp(4, CHUNK_SLOTS_MAX);
        let slots_max = count_max
            .clamp(CHUNK_SLOTS_MIN, CHUNK_SLOTS_MAX)
            .min(by_size);
        // A value with a destructor is appended before the value that it displaces is moved out.
        let needed = count_max
            .max(1)
            .saturating_add(usize::from(needs_drop::<T>()));
        if needed <= slots_max.max(RING_SLOTS_ALWAYS) {
            let slots = needed.next_power_of_two();
            return Self::new(slots, slots_max.max(slots), true);
        }
        Self::new(slots_max, slots_max, false)
    }

    /// Rounds down to powers of two.
    fn new(slots_min: usize, slots_max: usize, is_ring: bool) -> Self {
        Self {
            slots_min: 1 << slots_min.ilog2(),
            slots_max: 1 << slots_max.ilog2(),
            is_ring,
        }
    }

    #[inline]
    fn is_ring_of(self, slots: usize) -> bool {
        self.is_ring && self.slots_min as usize == slots
    }

    /// Returns the number of slots of the chunk after one with `slots`, when `in_memory` values are in memory.
    /// Chunks grow with the number of values, so that a subject with few values needs little memory.
    fn next(self, slots: usize, in_memory: usize, is_pinned: bool) -> usize {
        if self.is_ring && !is_pinned {
            return self.slots_min as usize;
        }
        let at_least = slots.max(self.slots_min as usize);
        let at_most = self.slots_max as usize;
        in_memory.clamp(at_least, at_most).next_power_of_two()
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

    impl Model {
        fn retain_newest<T>(&mut self, log: &mut Log<T>, count: usize) {
            let first = self.end.saturating_sub(count);
            log.retain_from(first);
            self.first = self.first.max(first);
        }
    }

    /// Evicts values with destructors from a bounded log, which its users do with each append.
    fn evict_if_bounded<T>(log: &mut Log<T>, model: &mut Model) {
        if log.sizes.is_ring && needs_drop::<T>() && model.pins == 0 {
            drop(log.evict());
            model.memory_from = model.first;
        }
    }

    fn read<T>(log: &Log<T>, from: usize, number: impl Fn(&T) -> usize) -> Vec<usize> {
        let mut at = from;
        let mut numbers = Vec::new();
        loop {
            let values = log.values(at);
            if values.is_empty() {
                return numbers;
            }
            at += values.len();
            numbers.extend(values.iter().map(&number));
        }
    }

    fn compare<T>(
        log: &Log<T>,
        model: &Model,
        addresses: &[NonNull<T>],
        number: impl Fn(&T) -> usize,
        alive: Option<usize>,
    ) {
        assert_eq!((log.first(), log.end()), (model.first, model.end));
        assert_eq!(log.is_pinned(), model.pins > 0);
        let numbers = read(log, model.memory_from, number);
        assert!(numbers.into_iter().eq(model.memory_from..model.end));
        if let Some(alive) = alive {
            assert_eq!(alive, model.end - model.memory_from);
        }
        for (position, address) in addresses.iter().enumerate().skip(model.memory_from) {
            assert_eq!(log.slot(position), *address, "value {position} has moved");
        }
        if let Some(older) = &log.older {
            let tail = &log.tail;
            let second = older.chunks.get(1).unwrap_or(tail).from;
            let unused = !older.chunks.is_empty() && second <= log.memory_from;
            assert!(!unused, "unused chunks remain");
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
        let retained_max = count_max.map_or(usize::MAX, |count_max| count_max.max(1));
        // Addresses of the values, which must not change.
        let mut addresses = Vec::new();
        for op in ops {
            match *op {
                Op::Append(count) => {
                    for _ in 0..count {
                        addresses.push(log.append(value(model.end)));
                        model.end += 1;
                        model.retain_newest(&mut log, retained_max);
                        evict_if_bounded(&mut log, &mut model);
                    }
                }
                Op::AppendLast { of, count } => {
                    let count = if model.pins > 0 {
                        count
                    } else {
                        count.min(retained_max)
                    };
                    let of = of.max(count);
                    model.retain_newest(&mut log, retained_max.saturating_sub(count));
                    evict_if_bounded(&mut log, &mut model);
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
                    model.retain_newest(&mut log, retained_max);
                }
                Op::RetainNewest(count) => model.retain_newest(&mut log, count),
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
            if count_max.is_some() && model.pins == 0 && !needs_drop::<T>() {
                // Values that are no longer retained may have been overwritten.
                model.memory_from = model.first;
            }
            compare(&log, &model, &addresses, &number, alive());
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
        let unbounded = |slots_min, slots_max| Sizes::new(slots_min, slots_max, false);
        assert_eq!(Sizes::of::<u32>(None), unbounded(64, CHUNK_SLOTS_MAX));
        assert_eq!(Sizes::of::<[u8; 1024]>(None), unbounded(4, CHUNK_SLOTS_MAX));
        assert_eq!(Sizes::of::<[u8; 1 << 20]>(None), unbounded(4, 4));
        assert_eq!(Sizes::of::<()>(None), unbounded(64, CHUNK_SLOTS_MAX));
        let large = Sizes::of::<[u8; 1 << 20]>(Some(20));
        assert_eq!(large, Sizes::new(4, 4, false));
    }

    /// Regression test: one retained value took two chunks of 64 slots.
    #[test]
    fn few_values_take_a_ring() {
        let ring_slots = |sizes: Sizes| sizes.is_ring.then_some(sizes.slots_min);
        let cases = [(0, 1, 2), (1, 1, 2), (2, 2, 4), (5, 8, 8), (8, 8, 16)];
        for (count_max, plain, with_destructor) in cases {
            let count_max = Some(count_max);
            assert_eq!(ring_slots(Sizes::of::<u64>(count_max)), Some(plain));
            let sizes = Sizes::of::<Box<u64>>(count_max);
            assert_eq!(ring_slots(sizes), Some(with_destructor));
        }
        assert_eq!(ring_slots(Sizes::of::<[u8; 1 << 20]>(Some(5))), Some(8));
        assert_eq!(ring_slots(Sizes::of::<u64>(Some(10_000))), None);
    }

    /// A pinned ring allocates chunks, because its values must stay; later it is a ring again.
    #[test]
    fn ring_returns_to_its_size_after_a_pin() {
        let mut log = Log::new(Some(1));
        let emit = |log: &mut Log<u32>, count: u32| {
            for number in 0..count {
                if log.is_full() {
                    log.retain_from(log.end().saturating_sub(1));
                    drop(log.evict());
                }
                log.append(number);
            }
            log.retain_from(log.end() - 1);
        };
        emit(&mut log, 10);
        assert!(log.tail.slots() == 1 && log.older.is_none());
        log.pin();
        emit(&mut log, 1000);
        assert_eq!(read(&log, 9, |number| *number as usize).len(), 1001);
        log.unpin();
        emit(&mut log, 100);
        assert!(log.tail.slots() == 1 && log.older.is_none());
        assert_eq!(read(&log, log.first(), |number| *number as usize), [99]);
    }
}
