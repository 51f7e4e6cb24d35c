//! Measurements of the broadcast hub other than the lockstep broadcast.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::channel::{self, Inlet, Outlet};
use super::load::{Load, System};
use super::lockstep::{Check, drive, join, runtime, timed};
use crate::allocations::Allocations;

/// Calls `work` with the function that opens the channel of the given system.
macro_rules! with_channel {
    ($system:expr, $work:ident($($argument:expr),*)) => {
        match $system {
            System::TokioBroadcast => $work(channel::tokio_barrier, $($argument),*),
            System::AsyncBroadcast => $work(channel::async_broadcast, $($argument),*),
            System::Asyncband => $work(channel::asyncband, $($argument),*),
            System::Send => $work(channel::send_each, $($argument),*),
            _ => $work(channel::feed, $($argument),*),
        }
    };
}

/// Calls `work` with a closure that subscribes to the hub of the given system.
macro_rules! with_subscriber {
    ($system:expr, $work:ident($($argument:expr),*)) => {
        match $system {
            System::TokioBroadcast => {
                let (tx, _rx) = tokio::sync::broadcast::channel::<u64>(BUFFER);
                $work($($argument,)* || tx.subscribe())
            }
            System::AsyncBroadcast => {
                let (tx, _rx) = async_broadcast::broadcast::<u64>(BUFFER);
                $work($($argument,)* || tx.new_receiver())
            }
            System::Asyncband => {
                let (tx, _rx) = asyncband::broadcast::mpmc::bounded::<u64>(BUFFER);
                $work($($argument,)* || tx.subscribe())
            }
            _ => {
                let (_tx, hub) = fanline::hub::broadcast::<u64>(BUFFER);
                $work($($argument,)* || hub.subscribe())
            }
        }
    };
}

const BUFFER: usize = 256;

/// Returns the time for a consumer to join and leave, in nanoseconds, while `present` other consumers are
/// subscribed.
pub(super) fn join_leave(system: System, present: usize) -> f64 {
    with_subscriber!(system, come_and_go(present))
}

fn come_and_go<R>(present: usize, subscribe: impl Fn() -> R) -> f64 {
    const PAIRS: u32 = 50_000;
    let present_receivers: Vec<R> = (0..present).map(|_| subscribe()).collect();
    let begin = Instant::now();
    for _ in 0..PAIRS {
        drop(black_box(subscribe()));
    }
    let nanos = begin.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS);
    drop(present_receivers);
    nanos
}

/// Returns the bytes per consumer, including its handle. The memory of a consumer's task is part of the
/// runtime and not counted.
pub(super) fn memory(system: System, consumers: usize) -> f64 {
    with_subscriber!(system, bytes_of(consumers))
}

fn bytes_of<R>(consumers: usize, subscribe: impl Fn() -> R) -> f64 {
    let before = Allocations::of_this_thread();
    let present_receivers: Vec<R> = (0..consumers).map(|_| subscribe()).collect();
    let made = Allocations::of_this_thread().since(before);
    drop(present_receivers);
    made.bytes as f64 / consumers as f64
}

/// Returns the allocations per element after all buffers have grown.
pub(super) fn allocations(system: System, consumers: usize) -> f64 {
    with_channel!(system, allocations_of(consumers))
}

type Open<S, R> = fn(usize, usize) -> (S, Vec<R>);

/// Runs on one thread, because only the allocations of the current thread are counted.
fn allocations_of<S: Inlet, R: Outlet>(open: Open<S, R>, consumers: usize) -> f64 {
    const ELEMENTS: u64 = 100_000;
    runtime(1).block_on(async {
        let (mut tx, receivers) = open(BUFFER, consumers);
        let tasks = receivers.into_iter().map(|mut rx| {
            tokio::spawn(async move {
                while let Some(value) = rx.take().await {
                    black_box(value);
                }
            })
        });
        let tasks = tasks.collect();
        for value in 0..10_000 {
            tx.put(value).await.expect("open");
        }
        let before = Allocations::of_this_thread();
        for value in 0..ELEMENTS {
            tx.put(value).await.expect("open");
        }
        let made = Allocations::of_this_thread().since(before).count;
        drop(tx);
        join(tasks).await;
        made as f64 / ELEMENTS as f64
    })
}

pub(super) const SLOW_WORK: Duration = Duration::from_micros(2);

/// Measures one consumer that works on each element, and `load.peers` consumers that do not.
pub(super) fn slow(system: System, load: Load, elements: u64) -> Duration {
    with_channel!(system, slow_among(load, elements))
}

fn slow_among<S: Inlet, R: Outlet>(open: Open<S, R>, load: Load, elements: u64) -> Duration {
    let consume = move |index, mut rx: R| async move {
        let mut check = Check::default();
        while let Some(value) = rx.take().await {
            check.take(value);
            if index == 0 {
                let begin = Instant::now();
                while begin.elapsed() < SLOW_WORK {}
            }
        }
        check.finish(elements);
    };
    timed(load.threads, async move {
        drive(open(BUFFER, load.peers + 1), elements, consume).await;
    })
}

/// Returns the median time from before a send until the last consumer has the element, in nanoseconds.
/// Between two elements all tasks sleep.
pub(super) fn latency(system: System, load: Load) -> f64 {
    with_channel!(system, latency_of(load))
}

fn latency_of<S: Inlet, R: Outlet>(open: Open<S, R>, load: Load) -> f64 {
    const ELEMENTS: u64 = 200;
    let work = async move {
        let (mut tx, receivers) = open(BUFFER, load.peers);
        let got = Arc::new((AtomicU64::new(0), Notify::new()));
        let all = load.peers as u64;
        for mut rx in receivers {
            let got = got.clone();
            tokio::spawn(async move {
                while rx.take().await.is_some() {
                    if (got.0.fetch_add(1, Ordering::AcqRel) + 1).is_multiple_of(all) {
                        got.1.notify_one();
                    }
                }
            });
        }
        let mut times = Vec::new();
        for value in 0..ELEMENTS {
            tokio::time::sleep(Duration::from_micros(500)).await;
            let begin = Instant::now();
            tx.put(value).await.expect("open");
            got.1.notified().await;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e9
    };
    runtime(load.threads).block_on(async { tokio::spawn(work).await.expect("no panic") })
}
