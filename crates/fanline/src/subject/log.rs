//! The values that a subject retains: an append-only log in chunks.
//!
//! Positions count from the first value ever appended. A value keeps its address from its append until
//! it is given up, which nothing does while the log is pinned: a subscriber can read a range in place,
//! without a lock and without a clone, while later values are appended. Whoever calls the methods has
//! the log to itself (see `gate`); no method runs code of the value's type, values that are given up
//! are handed back as [`GivenUp`], to be dropped where user code may run.
#![expect(
    unsafe_code,
    reason = "values in place: read without a clone while others are appended"
)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::mem::needs_drop;
use std::ptr::NonNull;

/// Values in a chunk where nothing bounds their number: one allocation for so many.
const CHUNK_SLOTS_MAX: usize = 2048;
/// Values in a chunk of a short ring: enough that changing chunks does not count.
const CHUNK_SLOTS_MIN: usize = 64;
/// Large values share no more than this, unless four of them are larger: where nothing bounds their
/// number, and in a short ring.
const CHUNK_BYTES_MAX: usize = 2 << 20;
const RING_CHUNK_BYTES_MAX: usize = 4096;

pub(super) struct Log<T> {
    chunks: VecDeque<Chunk<T>>,
    /// A chunk that is free to be the next.
    spare: Option<Chunk<T>>,
    /// Values in each chunk, a power of two.
    slots: usize,
    /// Position of the first slot of the first chunk.
    base: usize,
    /// The oldest value that is still there. Those before it are gone or moved out.
    kept_from: usize,
    /// The oldest value that is retained for late subscribers.
    first: usize,
    /// The last chunk, position of its first slot, slots in use, and slots that it has.
    tail: NonNull<T>,
    tail_base: usize,
    used: usize,
    room: usize,
    /// Readers that are somewhere in the values without a lock.
    pins: usize,
}

// SAFETY: the log owns its values, as a `Vec` does; the raw pointers are its own allocations.
unsafe impl<T: Send> Send for Log<T> {}

impl<T> Log<T> {
    /// `count_max`: how many values are retained at most, when that is known.
    pub(super) fn new(count_max: Option<usize>) -> Self {
        Self {
            chunks: VecDeque::new(),
            spare: None,
            slots: chunk_slots::<T>(count_max),
            base: 0,
            kept_from: 0,
            first: 0,
            tail: NonNull::dangling(),
            tail_base: 0,
            used: 0,
            room: 0,
            pins: 0,
        }
    }

    /// The position that the next value gets.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.tail_base + self.used
    }

    /// The position of the oldest retained value.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Appends a value and gives its address, which is good until the value is given up.
    #[inline]
    pub(super) fn append(&mut self, value: T) -> NonNull<T> {
        if self.used == self.room {
            self.grow();
        }
        // SAFETY: `used < room`, and `room` slots from `tail` are ours; this one is not in use.
        let slot = unsafe { self.tail.add(self.used) };
        // SAFETY: as above; the slot is aligned, being inside an array of `T`.
        unsafe { slot.write(value) };
        self.used += 1;
        slot
    }

    /// Moves the last `count` values of `values` here.
    pub(super) fn append_last(&mut self, values: &mut Vec<T>, count: usize) {
        let mut left = count;
        let rest = values.len() - count;
        let mut from = values[rest..].as_ptr();
        // SAFETY: shorter than it was; each of the last values has one owner, the log, once it is
        // copied there.
        unsafe { values.set_len(rest) };
        while left > 0 {
            if self.used == self.room {
                self.grow();
            }
            let count = left.min(self.room - self.used);
            // SAFETY: `used + count <= room`; see `append`.
            let slot = unsafe { self.tail.add(self.used) };
            // SAFETY: `from` has `left >= count` values; the vector's memory and the chunk are apart.
            unsafe {
                slot.copy_from_nonoverlapping(NonNull::new_unchecked(from.cast_mut()), count)
            };
            // SAFETY: within the vector's allocation, or one past its end.
            from = unsafe { from.add(count) };
            left -= count;
            self.used += count;
        }
    }

    /// Whether the next append needs a chunk.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.used == self.room
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pins > 0
    }

    /// Retains only values from `position` on. They stay where they are until they are given up.
    pub(super) fn retain_from(&mut self, position: usize) {
        debug_assert!(position <= self.end());
        self.first = self.first.max(position);
    }

    /// Takes out what is no longer retained, unless somebody reads.
    pub(super) fn give_up(&mut self) -> GivenUp<T> {
        if self.pins > 0 || self.kept_from == self.first {
            return GivenUp::Nothing;
        }
        if !needs_drop::<T>() {
            self.kept_from = self.first;
            self.release_chunks();
            return GivenUp::Nothing;
        }
        if self.first - self.kept_from == 1 {
            let slot = self.slot(self.kept_from);
            self.kept_from = self.first;
            // SAFETY: the value was there (`kept_from` pointed at it), and never is again.
            let value = unsafe { slot.read() };
            self.release_chunks();
            return GivenUp::One(value);
        }
        let mut values = Vec::with_capacity(self.first - self.kept_from);
        for position in self.kept_from..self.first {
            // SAFETY: as above, each position once.
            values.push(unsafe { self.slot(position).read() });
        }
        self.kept_from = self.first;
        self.release_chunks();
        GivenUp::Several(values)
    }

    /// Keeps every value that is there where it is, until [`unpin`](Self::unpin).
    pub(super) fn pin(&mut self) {
        self.pins += 1;
    }

    pub(super) fn unpin(&mut self) {
        self.pins -= 1;
    }

    /// The values from `from` to the end, in order, as far as they lie together; none at the end.
    /// Good for as long as the log is pinned, or nobody gives up values.
    pub(super) fn slice_from(&self, from: usize) -> NonNull<[T]> {
        debug_assert!(self.kept_from <= from && from <= self.end());
        let count = (self.end() - from).min(self.slots - (from - self.base) % self.slots);
        if count == 0 {
            return NonNull::slice_from_raw_parts(NonNull::dangling(), 0);
        }
        NonNull::slice_from_raw_parts(self.slot(from), count)
    }

    /// Where a value is that is there.
    fn slot(&self, position: usize) -> NonNull<T> {
        let offset = position - self.base;
        let chunk = &self.chunks[offset / self.slots];
        // SAFETY: the remainder is smaller than the number of slots.
        unsafe { chunk.slots.add(offset % self.slots) }
    }

    /// A next chunk: one that is free, or a new one.
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

    /// Frees chunks all of whose values are gone; the last chunk is still written to.
    fn release_chunks(&mut self) {
        while self.chunks.len() > 1 && self.kept_from - self.base >= self.slots {
            self.spare = self.chunks.pop_front();
            self.base += self.slots;
        }
    }
}

impl<T> Drop for Log<T> {
    fn drop(&mut self) {
        if needs_drop::<T>() {
            for position in self.kept_from..self.end() {
                // SAFETY: the values from `kept_from` to the end are there, and dropped once, here. If
                // one panics, those after it leak, and so do no harm.
                unsafe { self.slot(position).drop_in_place() };
            }
        }
    }
}

/// Memory for so many values; it knows nothing of which slots hold one.
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
            // SAFETY: allocated in `new` with this layout, and not freed before.
            unsafe { dealloc(self.slots.as_ptr().cast(), self.layout) };
        }
    }
}

/// Values that are no longer retained. Dropping it drops them.
#[must_use = "dropping it runs the values' own code: choose where"]
pub(super) enum GivenUp<T> {
    Nothing,
    One(T),
    Several(Vec<T>),
}

impl<T> GivenUp<T> {
    /// Both.
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
    // Rounded down to a power of two, so that dividing is shifting where it matters.
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
        GiveUp,
        Pin,
        Unpin,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (1usize..200).prop_map(Op::Append),
            2 => (0usize..150, 0usize..150)
                .prop_map(|(of, count)| Op::AppendLast { of, count: count.min(of) }),
            3 => (0usize..150).prop_map(Op::RetainNewest),
            4 => Just(Op::GiveUp),
            1 => Just(Op::Pin),
            1 => Just(Op::Unpin),
        ]
    }

    /// A value that has memory of its own and is counted.
    struct Counted(Box<usize>, Rc<Cell<usize>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.set(self.1.get() - 1);
        }
    }

    /// The twin: every value ever, and where what is there and what is retained begins.
    #[derive(Default)]
    struct Twin {
        end: usize,
        kept_from: usize,
        first: usize,
        pins: usize,
    }

    fn read<T>(log: &Log<T>, from: usize, number: impl Fn(&T) -> usize) -> Vec<usize> {
        let mut at = from;
        let mut numbers = Vec::new();
        loop {
            // SAFETY: nothing is given up while this reads.
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
        let mut twin = Twin::default();
        // Values that have not moved since they were appended.
        let mut addresses = Vec::new();
        for op in ops {
            match *op {
                Op::Append(count) => {
                    for _ in 0..count {
                        addresses.push(log.append(value(twin.end)));
                        twin.end += 1;
                    }
                }
                Op::AppendLast { of, count } => {
                    // Those before the last ones stay in the vector.
                    let begin = (twin.end + count).saturating_sub(of);
                    let mut values: Vec<T> = (0..of).map(|index| value(begin + index)).collect();
                    let from = values.len() - count;
                    for (index, value_) in values[from..].iter_mut().enumerate() {
                        *value_ = value(twin.end + index);
                    }
                    log.append_last(&mut values, count);
                    assert_eq!(values.len(), from);
                    for position in twin.end..twin.end + count {
                        addresses.push(log.slot(position));
                    }
                    twin.end += count;
                }
                Op::RetainNewest(count) => {
                    log.retain_from(twin.end.saturating_sub(count));
                    twin.first = twin.first.max(twin.end.saturating_sub(count));
                }
                Op::GiveUp => {
                    let values = log.give_up().into_values();
                    if twin.pins == 0 {
                        if needs_drop::<T>() {
                            let numbers: Vec<usize> = values.iter().map(&number).collect();
                            assert!(numbers.into_iter().eq(twin.kept_from..twin.first));
                        }
                        twin.kept_from = twin.first;
                    } else {
                        assert!(values.is_empty());
                    }
                }
                Op::Pin => {
                    log.pin();
                    twin.pins += 1;
                }
                Op::Unpin if twin.pins > 0 => {
                    log.unpin();
                    twin.pins -= 1;
                }
                Op::Unpin => {}
            }
            assert_eq!((log.first(), log.end()), (twin.first, twin.end));
            assert_eq!(log.is_pinned(), twin.pins > 0);
            let numbers = read(&log, twin.kept_from, &number);
            assert!(numbers.into_iter().eq(twin.kept_from..twin.end));
            if let Some(alive) = alive() {
                assert_eq!(alive, twin.end - twin.kept_from);
            }
            for (position, address) in addresses.iter().enumerate().skip(twin.kept_from) {
                assert_eq!(log.slot(position), *address, "value {position} has moved");
            }
            if twin.pins == 0 && twin.kept_from == twin.first {
                let needed = (twin.end - twin.kept_from) / log.slots + 2;
                assert!(log.chunks.len() <= needed, "chunks that nobody needs");
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
        fn as_a_vector_would(
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
    fn values_of_no_size_and_of_a_large_one() {
        let mut log = Log::new(None);
        let mut units = vec![(); 2000];
        log.append(());
        log.append_last(&mut units, 1500);
        assert_eq!(read(&log, 1, |()| 1).len(), 1500);
        let mut log = Log::new(Some(5));
        for number in 0..50_usize {
            log.append([number; 400]);
            log.retain_from(log.end().saturating_sub(5));
            let _ = log.give_up().into_values();
        }
        assert_eq!(read(&log, 45, |value| value[0]), [45, 46, 47, 48, 49]);
    }

    /// The story: one value of a mebibyte that was kept with all others took two gibibytes.
    #[test]
    fn large_values_do_not_share_a_huge_chunk() {
        assert_eq!(chunk_slots::<u32>(None), CHUNK_SLOTS_MAX);
        assert_eq!(chunk_slots::<[u8; 1024]>(None), CHUNK_SLOTS_MAX);
        assert_eq!(chunk_slots::<[u8; 1 << 20]>(None), 4);
        assert_eq!(chunk_slots::<[u8; 1 << 20]>(Some(5)), 4);
        assert_eq!(chunk_slots::<()>(None), CHUNK_SLOTS_MAX);
    }
}
