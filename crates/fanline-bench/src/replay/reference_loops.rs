//! Reference loops for the library. For each flavor, a hand-written loop does the minimum work that has the
//! same result as the library. None of the loops is usable as a library; each lists what it omits. They show
//! the speed that the machine allows. So the library's share of that speed shows the cost of its guarantees.
//!
//! All loops omit unsubscribing, completion and errors, observers that panic, and values for a subscriber
//! that joins during an emission. Observers are boxed closures that take the value itself. The library's
//! observers take a reference.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// The observers of all reference loops except those for slices and for observers of one type.
pub(super) type Boxed = Box<dyn FnMut(u32) + Send>;

pub(super) trait Reference {
    fn next(&mut self, value: u32);
}

/// **Boxed fan-out without a lock**: the reference loop of the exclusive subject.
///
/// Calls each observer in sequence. Also omits the check for new subscribers.
pub(super) struct BoxedFanOut(pub(super) Vec<Boxed>);

impl Reference for BoxedFanOut {
    #[inline]
    fn next(&mut self, value: u32) {
        for observer in &mut self.0 {
            observer(value);
        }
    }
}

/// **Static dispatch**: the reference loop of observers of one type.
///
/// The fan-out is that of [`BoxedFanOut`], but the compiler can inline the observers' code into the loop.
pub(super) struct OneTypeFanOut<O>(pub(super) Vec<O>);

impl<O: FnMut(u32)> Reference for OneTypeFanOut<O> {
    #[inline]
    fn next(&mut self, value: u32) {
        for observer in &mut self.0 {
            observer(value);
        }
    }
}

/// **Two read-modify-writes**: the reference loop of every shared handle, around the work of the flavor.
///
/// The first read-modify-write detects that another thread is emitting. The second one detects messages that
/// another thread has queued in the meantime, which a plain store could not detect. The loop omits the queue
/// of such messages.
pub(super) struct TwoRmw<L> {
    emitting: Arc<AtomicUsize>,
    inner: L,
}

impl<L> TwoRmw<L> {
    pub(super) fn new(inner: L) -> Self {
        Self {
            emitting: Arc::default(),
            inner,
        }
    }
}

impl<L: Reference> Reference for TwoRmw<L> {
    #[inline]
    fn next(&mut self, value: u32) {
        // Acquire here and Release below are on the same counter. So the work of one emitter happens before
        // the work of the next emitter, as with a lock.
        if self.emitting.fetch_add(1, Ordering::Acquire) == 0 {
            self.inner.next(value);
            self.emitting.fetch_sub(1, Ordering::Release);
        }
    }
}

/// **Storage, then boxed fan-out**: the reference loop of the exclusive replay flavors.
///
/// Stores the value in such a way that a subscriber can read it from another thread. Detects new subscribers
/// with a plain load, and calls the observers. Omits the work for a new subscriber.
pub(super) struct StoringFanOut<K> {
    storage: K,
    /// Number of subscribers that have joined. It is only read, so it stays in the cache.
    generation: Arc<AtomicU64>,
    generation_seen: u64,
    observers: BoxedFanOut,
}

impl<K> StoringFanOut<K> {
    pub(super) fn new(storage: K, observers: Vec<Boxed>) -> Self {
        Self {
            storage,
            generation: Arc::default(),
            generation_seen: 0,
            observers: BoxedFanOut(observers),
        }
    }
}

impl<K: Storage> Reference for StoringFanOut<K> {
    #[inline]
    fn next(&mut self, value: u32) {
        self.storage.keep(value);
        // Relaxed: no other data depends on the number, because no subscriber ever joins.
        let generation = self.generation.load(Ordering::Relaxed);
        if generation != self.generation_seen {
            self.generation_seen = generation;
        }
        self.observers.next(value);
    }
}

pub(super) trait Storage {
    fn keep(&mut self, value: u32);
}

/// **Slot**: stores the last value with two Release stores, like a seqlock.
///
/// It is the reference loop of behavior, replay one, and async. A subscriber would read again while the
/// sequence is odd or has changed. Such a slot can contain only values that may be copied during a change.
/// The library's slot can contain any value.
#[derive(Default)]
pub(super) struct Slot {
    cells: Arc<SlotCells>,
    sequence: u64,
}

#[derive(Default)]
struct SlotCells {
    sequence: AtomicU64,
    value: AtomicU32,
}

impl Storage for Slot {
    #[inline]
    fn keep(&mut self, value: u32) {
        let cells = &*self.cells;
        cells.sequence.store(self.sequence + 1, Ordering::Release);
        cells.value.store(value, Ordering::Relaxed);
        self.sequence += 2;
        cells.sequence.store(self.sequence, Ordering::Release);
    }
}

/// The smallest power of two that is at least five.
const RING: usize = 8;

/// **Ring of eight**: stores the last five values in a ring without division.
///
/// Publishes the number of stored values with one Release store. Omits the subscriber's check whether a slot
/// was overwritten during the read.
#[derive(Default)]
pub(super) struct Ring {
    cells: Arc<RingCells>,
    length: usize,
}

#[derive(Default)]
struct RingCells {
    values: [AtomicU32; RING],
    length: AtomicUsize,
}

impl Storage for Ring {
    #[inline]
    fn keep(&mut self, value: u32) {
        let cells = &*self.cells;
        cells.values[self.length % RING].store(value, Ordering::Relaxed);
        self.length += 1;
        cells.length.store(self.length, Ordering::Release);
    }
}

/// Number of values in a chunk. It is the library's maximum, so the reference loop has the fewest
/// allocations.
const CHUNK: usize = 4096;

/// **Chunked log**: stores all values in chunks that never move, and publishes the length with a Release
/// store.
///
/// Omits a subscriber's search for the chunks.
#[derive(Default)]
pub(super) struct Log {
    full: VecDeque<Box<[u32]>>,
    /// Number of values in the full chunks.
    full_values: usize,
    chunk: Box<[u32]>,
    /// Number of values in the chunk that is not full.
    filled: usize,
    /// Number of all values, for readers on other threads.
    published: Arc<AtomicUsize>,
}

impl Log {
    #[cold]
    fn start_chunk(&mut self) {
        let full = std::mem::replace(&mut self.chunk, vec![0; CHUNK].into_boxed_slice());
        self.full_values += full.len();
        self.filled = 0;
        if !full.is_empty() {
            self.full.push_back(full);
        }
    }

    fn len(&self) -> usize {
        self.full_values + self.filled
    }

    #[inline]
    fn publish(&mut self) {
        self.published.store(self.len(), Ordering::Release);
    }
}

impl Storage for Log {
    #[inline]
    fn keep(&mut self, value: u32) {
        if self.filled == self.chunk.len() {
            self.start_chunk();
        }
        self.chunk[self.filled] = value;
        self.filled += 1;
        self.publish();
    }
}

/// The window of both flavors that retain values for a time, in ticks of 1 ms.
const WINDOW_TICKS: u64 = 5_000;

/// **Chunked log with run-length ticks**: stores the values of five seconds at nearly the cost of replay all.
///
/// Reads a coarse clock for each value. For each tick, it records the tick and the index of the first value.
/// Frees chunks all of whose values are older than the window.
pub(super) struct TickedLog {
    log: Log,
    clock: Arc<AtomicU64>,
    tick: u64,
    runs: VecDeque<(u64, usize)>,
    /// Number of values in freed chunks.
    dropped: usize,
}

impl TickedLog {
    pub(super) fn new() -> Self {
        Self {
            log: Log::default(),
            clock: coarse_clock(),
            // There is no tick yet, so the first value begins a run.
            tick: u64::MAX,
            runs: VecDeque::new(),
            dropped: 0,
        }
    }

    #[inline]
    fn look_at_clock(&mut self) {
        // Relaxed: no other data depends on a tick.
        let now = self.clock.load(Ordering::Relaxed);
        if now != self.tick {
            self.begin_run(now);
        }
    }

    fn begin_run(&mut self, now: u64) {
        self.tick = now;
        self.runs.push_back((now, self.log.len()));
        while self
            .runs
            .front()
            .is_some_and(|run| now.saturating_sub(run.0) > WINDOW_TICKS)
        {
            self.runs.pop_front();
        }
        let first_kept = self.runs.front().map_or(0, |run| run.1);
        while self.dropped + CHUNK <= first_kept && self.log.full.pop_front().is_some() {
            self.dropped += CHUNK;
        }
    }
}

impl Storage for TickedLog {
    #[inline]
    fn keep(&mut self, value: u32) {
        self.look_at_clock();
        self.log.keep(value);
    }
}

/// **Ring with ticks**: the ring of eight with the coarse tick of each value.
///
/// A reader skips expired values by their tick. Later values overwrite them.
pub(super) struct TickedRing {
    cells: Arc<TickedCells>,
    length: usize,
    clock: Arc<AtomicU64>,
}

#[derive(Default)]
struct TickedCells {
    values: [(AtomicU32, AtomicU64); RING],
    length: AtomicUsize,
}

impl TickedRing {
    pub(super) fn new() -> Self {
        Self {
            cells: Arc::default(),
            length: 0,
            clock: coarse_clock(),
        }
    }
}

impl Storage for TickedRing {
    #[inline]
    fn keep(&mut self, value: u32) {
        let cells = &*self.cells;
        let (slot, tick) = &cells.values[self.length % RING];
        slot.store(value, Ordering::Relaxed);
        tick.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
        self.length += 1;
        cells.length.store(self.length, Ordering::Release);
    }
}

/// Returns a counter of milliseconds. A separate thread increments it from the first use to the end of the
/// program.
fn coarse_clock() -> Arc<AtomicU64> {
    static CLOCK: OnceLock<Arc<AtomicU64>> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| {
        let ticks = Arc::new(AtomicU64::new(0));
        let written = Arc::clone(&ticks);
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(1));
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        ticks
    });
    Arc::clone(clock)
}

pub(super) type BoxedSlice = Box<dyn FnMut(&[u32]) + Send>;

/// **Slices**: stores a whole slice, and calls each observer once per slice.
pub(super) struct Slices<K> {
    storage: K,
    observers: Vec<BoxedSlice>,
}

pub(super) trait SliceStorage {
    fn keep_slice(&mut self, values: &[u32]);
}

impl<K: SliceStorage> Slices<K> {
    pub(super) fn new(storage: K, observers: Vec<BoxedSlice>) -> Self {
        Self { storage, observers }
    }

    #[inline]
    pub(super) fn next_slice(&mut self, values: &[u32]) {
        self.storage.keep_slice(values);
        for observer in &mut self.observers {
            observer(values);
        }
    }
}

/// Storage for flavors that retain only a few values. For slices of 64 its cost is negligible, so it stores
/// nothing.
pub(super) struct Nothing;

impl SliceStorage for Nothing {
    #[inline]
    fn keep_slice(&mut self, _values: &[u32]) {}
}

impl SliceStorage for Log {
    #[inline]
    fn keep_slice(&mut self, mut values: &[u32]) {
        while !values.is_empty() {
            if self.filled == self.chunk.len() {
                self.start_chunk();
            }
            let free = &mut self.chunk[self.filled..];
            let (now, later) = values.split_at(free.len().min(values.len()));
            free[..now.len()].copy_from_slice(now);
            self.filled += now.len();
            values = later;
        }
        self.publish();
    }
}

impl SliceStorage for TickedLog {
    #[inline]
    fn keep_slice(&mut self, values: &[u32]) {
        self.look_at_clock();
        self.log.keep_slice(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_stores_all_values_in_order() {
        let mut log = Log::default();
        let end = 3 * u32::try_from(CHUNK).unwrap() + 5;
        (0..1000).for_each(|value| log.keep(value));
        log.keep_slice(&(1000..end).collect::<Vec<_>>());
        let chunks = log.full.iter().map(|chunk| &chunk[..]);
        let storage = chunks.chain([&log.chunk[..log.filled]]).flatten().copied();
        assert!(storage.eq(0..end));
        assert_eq!(log.published.load(Ordering::Acquire), end as usize);
        assert!(log.full.iter().all(|chunk| chunk.len() == CHUNK));
    }

    #[test]
    fn ticked_log_drops_expired_chunks() {
        let mut storage = TickedLog::new();
        storage.clock = Arc::default();
        let chunk = u32::try_from(CHUNK).unwrap();
        (0..chunk + 1).for_each(|value| storage.keep(value));
        let check = |storage: &mut TickedLog, tick, chunks, runs| {
            storage.clock.store(tick, Ordering::Relaxed);
            storage.keep(7);
            assert_eq!((storage.log.full.len(), storage.runs.len()), (chunks, runs));
        };
        check(&mut storage, 1, 1, 2);
        check(&mut storage, WINDOW_TICKS, 1, 3);
        // The first run is one tick older than the window, so its whole chunk is dropped.
        check(&mut storage, WINDOW_TICKS + 1, 0, 3);
    }
}
