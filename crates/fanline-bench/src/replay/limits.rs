//! What the library is measured against: for each flavour the least work that has the shape of it,
//! written by hand. None of these could be offered to anybody; what they leave out is said at each.
//! They tell what the machine allows, so that a share of it says how much the library's guarantees
//! cost.
//!
//! Left out by all of them: unsubscribing, completion and errors, an observer that panics, and the
//! hand-over to a subscriber that arrives during emission. Observers are boxed closures that take
//! the value itself; the library's take a reference.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// The observers of every limit but those of one type and of slices.
pub(super) type Boxed = Box<dyn FnMut(u32) + Send>;

/// Something that messages are put into.
pub(super) trait Limit {
    fn next(&mut self, value: u32);
}

/// **Boxed fan-out without a lock**: the limit of the exclusive subject.
///
/// Calls each observer in turn. Leaves out, besides the rest, even the question whether somebody new
/// has subscribed.
pub(super) struct BoxedFanOut(pub(super) Vec<Boxed>);

impl Limit for BoxedFanOut {
    #[inline]
    fn next(&mut self, value: u32) {
        for observer in &mut self.0 {
            observer(value);
        }
    }
}

/// **Static dispatch**: the limit of observers of one type.
///
/// The same fan-out, with the observers' code in the loop.
pub(super) struct OneTypeFanOut<O>(pub(super) Vec<O>);

impl<O: FnMut(u32)> Limit for OneTypeFanOut<O> {
    #[inline]
    fn next(&mut self, value: u32) {
        for observer in &mut self.0 {
            observer(value);
        }
    }
}

/// **Two read-modify-writes**: the limit of every shared handle, around what the flavour does.
///
/// One on entry, which tells whether somebody else is emitting, and one on exit, which tells whether
/// somebody has left a message meanwhile. A plain store could not tell that. Leaves out the queue in
/// which such a message would be left.
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

impl<L: Limit> Limit for TwoRmw<L> {
    #[inline]
    fn next(&mut self, value: u32) {
        // The pair orders one emitter's work before the next one's, as a lock would.
        if self.emitting.fetch_add(1, Ordering::Acquire) == 0 {
            self.inner.next(value);
            self.emitting.fetch_sub(1, Ordering::Release);
        }
    }
}

/// **What is kept, then boxed fan-out**: the limit of the exclusive replay flavours.
///
/// Keeps the value so that a subscriber could read it from another thread, looks with a plain load
/// whether one has come, and calls the observers. Leaves out what would follow if one had.
pub(super) struct Keeping<K> {
    kept: K,
    /// Subscribers that came; read only, so it stays in the cache.
    generation: Arc<AtomicU64>,
    generation_seen: u64,
    observers: BoxedFanOut,
}

impl<K> Keeping<K> {
    pub(super) fn new(kept: K, observers: Vec<Boxed>) -> Self {
        Self {
            kept,
            generation: Arc::default(),
            generation_seen: 0,
            observers: BoxedFanOut(observers),
        }
    }
}

impl<K: Keep> Limit for Keeping<K> {
    #[inline]
    fn next(&mut self, value: u32) {
        self.kept.keep(value);
        // Nothing is read that it would have to be ordered with: nobody ever comes.
        let generation = self.generation.load(Ordering::Relaxed);
        if generation != self.generation_seen {
            self.generation_seen = generation;
        }
        self.observers.next(value);
    }
}

/// How a flavour keeps values.
pub(super) trait Keep {
    fn keep(&mut self, value: u32);
}

/// **Slot**: keeps the last value, as a seqlock does, with two Release stores.
///
/// Behind behavior, replay one and async. A subscriber would read it again while the sequence is odd
/// or has moved. Such a slot suits values that can be copied while they change; the library's suits
/// all.
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

impl Keep for Slot {
    #[inline]
    fn keep(&mut self, value: u32) {
        let cells = &*self.cells;
        cells.sequence.store(self.sequence + 1, Ordering::Release);
        cells.value.store(value, Ordering::Relaxed);
        self.sequence += 2;
        cells.sequence.store(self.sequence, Ordering::Release);
    }
}

/// The least power of two that holds five values.
const RING: usize = 8;

/// **Ring of eight**: keeps the last five values in a ring that needs no division.
///
/// Publishes how many there were with one Release store. Leaves out how a subscriber would notice
/// that a slot was overwritten while it read.
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

impl Keep for Ring {
    #[inline]
    fn keep(&mut self, value: u32) {
        let cells = &*self.cells;
        cells.values[self.length % RING].store(value, Ordering::Relaxed);
        self.length += 1;
        cells.length.store(self.length, Ordering::Release);
    }
}

/// Values in a chunk: the most that the library may take, so that the limit allocates least.
const CHUNK: usize = 4096;

/// **Chunked log**: keeps everything, in chunks that never move, and publishes the length with a
/// Release store.
///
/// Leaves out how a subscriber would find the chunks.
#[derive(Default)]
pub(super) struct Log {
    full: VecDeque<Box<[u32]>>,
    /// Values in those.
    full_values: usize,
    chunk: Box<[u32]>,
    /// Values in the chunk that is not full.
    filled: usize,
    /// All values, for readers on other threads.
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

    /// How many values there are.
    fn len(&self) -> usize {
        self.full_values + self.filled
    }

    #[inline]
    fn publish(&mut self) {
        self.published.store(self.len(), Ordering::Release);
    }
}

impl Keep for Log {
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

/// The window of both timed flavours, in ticks of a millisecond.
const WINDOW_TICKS: u64 = 5_000;

/// **Chunked log with run-length ticks**: keeps five seconds, at the cost of replay all.
///
/// Reads a coarse clock per value and notes one pair of tick and first index per tick; whole chunks
/// that are older than the window are let go.
pub(super) struct TickedLog {
    log: Log,
    clock: Arc<AtomicU64>,
    tick: u64,
    runs: VecDeque<(u64, usize)>,
    /// Values in chunks that are gone.
    dropped: usize,
}

impl TickedLog {
    pub(super) fn new() -> Self {
        Self {
            log: Log::default(),
            clock: coarse_clock(),
            // No tick yet, so that the first value begins a run.
            tick: u64::MAX,
            runs: VecDeque::new(),
            dropped: 0,
        }
    }

    #[inline]
    fn look_at_clock(&mut self) {
        // A tick carries nothing with it that would have to be ordered.
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

impl Keep for TickedLog {
    #[inline]
    fn keep(&mut self, value: u32) {
        self.look_at_clock();
        self.log.keep(value);
    }
}

/// **Ring with ticks**: the ring of eight, with the coarse tick of each value beside it.
///
/// Old values are told by their tick when they are read, and overwritten when there are more.
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

impl Keep for TickedRing {
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

/// Milliseconds, written by a thread of their own from the first use to the end of the program.
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

/// An observer that gets slices.
pub(super) type BoxedSlice = Box<dyn FnMut(&[u32]) + Send>;

/// **Slice limit**: what is kept is kept at once, and each observer is called once per slice.
pub(super) struct Slices<K> {
    kept: K,
    observers: Vec<BoxedSlice>,
}

/// How a flavour keeps a slice.
pub(super) trait KeepSlice {
    fn keep_slice(&mut self, values: &[u32]);
}

impl<K: KeepSlice> Slices<K> {
    pub(super) fn new(kept: K, observers: Vec<BoxedSlice>) -> Self {
        Self { kept, observers }
    }

    #[inline]
    pub(super) fn next_slice(&mut self, values: &[u32]) {
        self.kept.keep_slice(values);
        for observer in &mut self.observers {
            observer(values);
        }
    }
}

/// Of the flavours that keep a few values, which is nothing beside 64.
pub(super) struct Nothing;

impl KeepSlice for Nothing {
    #[inline]
    fn keep_slice(&mut self, _values: &[u32]) {}
}

impl KeepSlice for Log {
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

impl KeepSlice for TickedLog {
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
    fn the_log_keeps_everything_in_order() {
        let mut log = Log::default();
        let end = 3 * u32::try_from(CHUNK).unwrap() + 5;
        (0..1000).for_each(|value| log.keep(value));
        log.keep_slice(&(1000..end).collect::<Vec<_>>());
        let chunks = log.full.iter().map(|chunk| &chunk[..]);
        let kept = chunks.chain([&log.chunk[..log.filled]]).flatten().copied();
        assert!(kept.eq(0..end));
        assert_eq!(log.published.load(Ordering::Acquire), end as usize);
        assert!(log.full.iter().all(|chunk| chunk.len() == CHUNK));
    }

    #[test]
    fn the_ticked_log_drops_whole_chunks_older_than_the_window() {
        let mut kept = TickedLog::new();
        kept.clock = Arc::default();
        let chunk = u32::try_from(CHUNK).unwrap();
        (0..chunk + 1).for_each(|value| kept.keep(value));
        let check = |kept: &mut TickedLog, tick, chunks, runs| {
            kept.clock.store(tick, Ordering::Relaxed);
            kept.keep(7);
            assert_eq!((kept.log.full.len(), kept.runs.len()), (chunks, runs));
        };
        check(&mut kept, 1, 1, 2);
        check(&mut kept, WINDOW_TICKS, 1, 3);
        // The first run is as old as the window and one tick; its whole chunk goes.
        check(&mut kept, WINDOW_TICKS + 1, 0, 3);
    }
}
