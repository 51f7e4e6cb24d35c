//! Emission allocates nothing, in every form and flavor. Flavors that retain values without a bound allocate
//! one chunk per 2,048 values. A subject takes little more memory than the values that it retains.
//!
//! This is a separate test binary, because it replaces the global allocator.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use fanline::hub::{MergeHub, PartitionHub, Partitioner};
use fanline::policy::Policy;
use fanline::scheduler::VirtualTime;
use fanline::{
    AsyncSubject, BehaviorSubject, Observer, Producer, Replay, ReplaySubject, Source, Subject,
};
use futures::Stream;

thread_local! {
    /// Number of allocations of this thread. The test harness and the clock have other threads, which do not
    /// count.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Number of bytes that this thread has allocated and not freed.
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count_one() {
    // The access fails only while a thread ends, and then no test counts.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

/// Counts the bytes of a new block and those of a freed one. The result may wrap, because another thread may
/// have allocated the freed block.
fn count_bytes(allocated: usize, freed: usize) {
    let _ =
        BYTES.try_with(|bytes| bytes.set(bytes.get().wrapping_add(allocated).wrapping_sub(freed)));
}

// SAFETY: all work is delegated to `System`. Counting uses a thread-local that needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        count_bytes(layout.size(), 0);
        // SAFETY: the caller fulfills the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count_one();
        count_bytes(bytes, layout.size());
        // SAFETY: the caller fulfills the contract.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_bytes(0, layout.size());
        // SAFETY: the caller fulfills the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MESSAGES: u32 = 102_400;
const SLICE: usize = 64;
const OBSERVERS: [usize; 3] = [0, 1, 16];

/// The number of allocations that a check allows.
#[derive(Clone, Copy, Debug)]
enum Allowed {
    Nothing,
    /// One chunk per 2,048 values, and rarely a longer list of the chunks or of the times of values.
    Chunks,
}

/// A common interface to subjects: emits one value or a slice.
trait Emit {
    fn next(&mut self, value: u32);
    fn slice(&mut self, values: &[u32]);
}

impl<P: Policy> Emit for Producer<u32, std::convert::Infallible, P> {
    fn next(&mut self, value: u32) {
        self.next(value);
    }

    fn slice(&mut self, values: &[u32]) {
        self.next_slice(values);
    }
}

macro_rules! emit {
    ($($name:ident),*) => {
        $(
            impl Emit for $name<u32> {
                fn next(&mut self, value: u32) {
                    $name::next(self, value);
                }

                fn slice(&mut self, values: &[u32]) {
                    self.next_slice(values);
                }
            }
        )*
    };
}

emit!(Subject, BehaviorSubject, AsyncSubject, ReplaySubject);

fn allocations_of(action: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    action();
    ALLOCATIONS.get() - before
}

#[track_caller]
fn check<E: Emit>(name: &str, allowed: Allowed, make: impl Fn() -> (E, Source<u32>)) {
    for observers in OBSERVERS {
        let (mut emit, source) = make();
        for _ in 0..observers {
            source
                .subscribe(|value| {
                    black_box(value);
                })
                .detach();
        }
        let values: Vec<u32> = (0..).take(SLICE).collect();
        // Warm up: lists reach their capacity, and ring buffers are filled.
        (0..4096).for_each(|value| emit.next(value));
        let by_value = allocations_of(|| (0..MESSAGES).for_each(|value| emit.next(value)));
        (0..64).for_each(|_| emit.slice(&values));
        let by_slice = allocations_of(|| {
            (0..MESSAGES as usize / SLICE).for_each(|_| emit.slice(&values));
        });
        let most = match allowed {
            Allowed::Nothing => 0,
            Allowed::Chunks => u64::from(MESSAGES / 2048) + 20,
        };
        assert!(
            by_value <= most && by_slice <= most,
            "{name}, {observers} observers: {by_value} by value, {by_slice} by slice"
        );
    }
}

fn shared<E: Emit>(emit: E, source: impl Fn(&E) -> Source<u32>) -> (E, Source<u32>) {
    let source = source(&emit);
    (emit, source)
}

#[test]
fn exclusive_emission_allocates_nothing() {
    let long = Duration::from_secs(3600);
    check("subject", Allowed::Nothing, fanline::subject::<u32>);
    check("behavior", Allowed::Nothing, || fanline::behavior(0));
    check("last value", Allowed::Nothing, fanline::last_value::<u32>);
    check("one", Allowed::Nothing, || {
        Producer::retaining(Replay::one())
    });
    for count in [0, 1, 5, 64, 1000, 3000] {
        check("many", Allowed::Nothing, || {
            Producer::retaining(Replay::many(count))
        });
    }
    check(
        "all",
        Allowed::Chunks,
        || Producer::retaining(Replay::all()),
    );
    check("within", Allowed::Chunks, || {
        Producer::retaining(Replay::within(long))
    });
    check("a short window", Allowed::Chunks, || {
        Producer::retaining(Replay::within(Duration::from_millis(1)))
    });
    check("many within", Allowed::Nothing, || {
        Producer::retaining(Replay::many_within(5, Duration::from_secs(5)))
    });
}

#[test]
fn shared_emission_allocates_nothing() {
    let long = Duration::from_secs(3600);
    check("subject", Allowed::Nothing, || {
        shared(Subject::new(), Subject::source)
    });
    check("behavior", Allowed::Nothing, || {
        shared(BehaviorSubject::new(0), BehaviorSubject::source)
    });
    check("async", Allowed::Nothing, || {
        shared(AsyncSubject::new(), AsyncSubject::source)
    });
    type Make = fn() -> ReplaySubject<u32>;
    let replays: [(&str, Allowed, Make); 5] = [
        (
            "one",
            Allowed::Nothing,
            || ReplaySubject::new(Replay::one()),
        ),
        ("many", Allowed::Nothing, || {
            ReplaySubject::new(Replay::many(5))
        }),
        ("many 3000", Allowed::Nothing, || {
            ReplaySubject::new(Replay::many(3000))
        }),
        ("all", Allowed::Chunks, || ReplaySubject::new(Replay::all())),
        ("many within", Allowed::Nothing, || {
            ReplaySubject::new(Replay::many_within(5, Duration::from_secs(5)))
        }),
    ];
    for (name, allowed, make) in replays {
        check(name, allowed, || shared(make(), ReplaySubject::source));
    }
    check("within", Allowed::Chunks, || {
        shared(
            ReplaySubject::new(Replay::within(long)),
            ReplaySubject::source,
        )
    });
}

/// A ring of many chunks frees all but two when its values expire, and allocates them again when it fills up.
#[test]
fn ring_allocates_chunks_again_after_values_expired() {
    for (count, allowed) in [(5, 0..=0), (1000, 0..=0), (2000, 1..=1), (10_000, 1..=10)] {
        let time = VirtualTime::new();
        let window = Duration::from_secs(1);
        let replay = Replay::many_within(count, window).clock(time.clone());
        let (mut tx, _source) = fanline::replay::<u32>(replay);
        let mut fill = || {
            for value in (0..).take(2 * count) {
                time.advance_by(Duration::from_nanos(1));
                tx.next(value);
            }
        };
        fill();
        fill();
        assert_eq!(allocations_of(&mut fill), 0, "{count} values, none expired");
        time.advance_by(2 * window);
        let again = allocations_of(&mut fill);
        assert!(allowed.contains(&again), "{count} values: {again}");
    }
}

/// A value without a destructor.
type Tick = [u8; 64];

/// Checks the size of a subject and its handles in bytes, after many more values than it retains.
#[track_caller]
fn check_bytes<E, S>(name: &str, most: usize, make: impl Fn() -> (E, S), emit: impl Fn(&mut E)) {
    let measure = || {
        let before = BYTES.get();
        let (mut tx, source) = make();
        (0..100).for_each(|_| emit(&mut tx));
        let heap = BYTES.get().wrapping_sub(before);
        heap + size_of_val(&tx) + size_of_val(&source)
    };
    // The first subject of a process may allocate memory that all subjects share.
    measure();
    let bytes = measure();
    assert!(bytes <= most, "{name}: {bytes} bytes, at most {most}");
}

/// Regression test: a subject with one value of 64 bytes took 9,000 bytes.
#[test]
fn subject_takes_little_more_than_its_values() {
    fn check<P: Policy>(name: &str, most: usize, replay: &Replay<P>)
    where
        Replay<P>: Clone,
    {
        let make = || Producer::<Tick, std::convert::Infallible, P>::retaining(replay.clone());
        check_bytes(name, most, make, |tx| tx.next(black_box([0; 64])));
    }
    let hour = Duration::from_secs(3600);
    let next = black_box([0; 64]);
    check_bytes("subject", 600, fanline::subject::<Tick>, |tx| tx.next(next));
    check_bytes(
        "behavior",
        650,
        || fanline::behavior(next),
        |tx| tx.next(next),
    );
    check_bytes("last value", 650, fanline::last_value::<Tick>, |tx| {
        tx.next(next)
    });
    check("one", 650, &Replay::one());
    check("many", 1_060, &Replay::many(5));
    check("many within", 1_250, &Replay::many_within(5, hour));
    // 100 values take up to 128 slots.
    check("all", 9_200, &Replay::all());
    check("within", 9_400, &Replay::within(hour));
    let shared = || (BehaviorSubject::new(next), ());
    check_bytes("shared behavior", 800, shared, |s| {
        BehaviorSubject::next(s, next)
    });
    let shared = || (ReplaySubject::new(Replay::many(5)), ());
    check_bytes("shared many", 1_200, shared, |s| {
        ReplaySubject::next(s, next)
    });
    // A value with a destructor takes a second slot, because it is appended before the old one is dropped.
    let text = || fanline::behavior(String::from("0123456789"));
    check_bytes("text", 650, text, |tx| tx.next(String::from("0123456789")));
}

/// Subjects with observers of one type, which are called directly.
#[test]
fn emission_to_observers_of_one_type_allocates_nothing() {
    struct Count(u64);
    impl Observer<u32> for Count {
        fn next(&mut self, _: &u32) {
            self.0 += 1;
        }
        fn error(&mut self, _: &std::convert::Infallible) {}
        fn complete(&mut self) {}
    }
    let (mut tx, source) = fanline::subject_of::<u32, Count>();
    for _ in 0..16 {
        source.subscribe_with(Count(0)).detach();
    }
    tx.next(0);
    assert_eq!(
        allocations_of(|| (0..MESSAGES).for_each(|value| tx.next(value))),
        0
    );
}

/// The subject itself allocates nothing for values with destructors. A ring buffer drops replaced values one
/// by one.
#[test]
fn emission_of_values_with_destructors_allocates_nothing() {
    let (mut tx, source) = fanline::replay::<std::sync::Arc<u32>>(Replay::many(5));
    source
        .subscribe(|value| {
            black_box(value);
        })
        .detach();
    let value = std::sync::Arc::new(1);
    (0..1000).for_each(|_| tx.next(value.clone()));
    assert_eq!(
        allocations_of(|| (0..MESSAGES).for_each(|_| tx.next(value.clone()))),
        0
    );
    drop(tx);
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
}

/// Sends bursts of up to 63 elements through a hub, and receives each burst completely.
#[track_caller]
fn check_hub(name: &str, mut round: impl FnMut(u32)) {
    let mut rounds = || (0..200).for_each(|burst| round(burst % 64));
    // Warm up: after this call, the hub has stored as many elements at once as it ever will.
    rounds();
    assert_eq!(allocations_of(rounds), 0, "{name}");
}

/// Polls a receiver without elements, which registers its waker.
fn poll_pending(rx: &mut (impl Stream + Unpin)) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(rx).poll_next(&mut context).is_pending());
}

#[test]
fn merge_and_partition_hubs_allocate_nothing_for_an_element() {
    let options = MergeHub::<u32>::options().per_producer(64);
    for options in [options.clone(), options.total(100)] {
        let (hub, mut rx) = options.build();
        let (mut a, mut b) = (hub.producer(), hub.producer());
        check_hub("merge", |burst| {
            for value in 0..burst {
                let tx = if value % 3 == 0 { &mut a } else { &mut b };
                tx.try_send(black_box(value)).expect("the hub has room");
            }
            while rx.try_recv().is_ok() {}
            poll_pending(&mut rx);
        });
    }
    let options = PartitionHub::<u32>::options();
    for options in [options.clone(), options.per_consumer(40)] {
        let (mut tx, hub) = options.build(Partitioner::round_robin());
        let mut consumers = [hub.subscribe(), hub.subscribe()];
        check_hub("partition", |burst| {
            for value in 0..burst {
                tx.try_send(black_box(value)).expect("the hub has room");
            }
            for rx in &mut consumers {
                while rx.try_recv().is_ok() {}
                poll_pending(rx);
            }
        });
    }
}
