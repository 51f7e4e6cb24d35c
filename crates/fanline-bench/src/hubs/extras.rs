//! What a lockstep broadcast does not show.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fanline::hub::{BroadcastReceiver, broadcast};

use super::runs::runtime;
use crate::allocations::Allocations;

/// Measures and prints all of them.
pub(super) fn run() {
    for present in [0, 100, 10_000, 100_000] {
        let nanos = join_and_leave(present);
        println!("join + leave, {present} present: {nanos:.0} ns");
    }
    println!("memory per consumer: {:.0} bytes", bytes_per_consumer());
    println!("allocations per element: {:.4}", allocations_per_element());
    for threads in [1, 2] {
        let (fast, slow) = one_slow(threads);
        println!("one slow among 256, {threads} thread(s): {fast:.0} elements/s; alone {slow:.0}");
        for consumers in [1, 100, 1000] {
            let micros = latency(threads, consumers);
            println!(
                "send to last receive, {threads} thread(s), {consumers} consumers: {micros:.1} us"
            );
        }
    }
}

fn join_and_leave(present: usize) -> f64 {
    const ROUNDS: u32 = 200_000;
    let (_tx, hub) = broadcast::<u64>(256);
    let here: Vec<_> = (0..present).map(|_| hub.subscribe()).collect();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        drop(black_box(hub.subscribe()));
    }
    let nanos = begin.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS);
    drop(here);
    nanos
}

fn bytes_per_consumer() -> f64 {
    const COUNT: usize = 100_000;
    let (_tx, hub) = broadcast::<u64>(256);
    let mut here: Vec<BroadcastReceiver<u64>> = Vec::with_capacity(COUNT);
    let before = Allocations::of_this_thread();
    here.extend((0..COUNT).map(|_| hub.subscribe()));
    let own = size_of::<BroadcastReceiver<u64>>() as f64;
    let made = Allocations::of_this_thread().since(before);
    made.bytes as f64 / COUNT as f64 + own
}

fn allocations_per_element() -> f64 {
    const ELEMENTS: u64 = 100_000;
    runtime(1).block_on(async {
        let (mut tx, hub) = broadcast::<u64>(64);
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let mut rx = hub.subscribe();
                tokio::spawn(async move {
                    rx.for_each_ref(|value| {
                        black_box(*value);
                    })
                    .await
                })
            })
            .collect();
        for value in 0..1000 {
            tx.send(value).await.expect("open");
        }
        let before = Allocations::of_this_thread();
        for value in 0..ELEMENTS {
            tx.send(value).await.expect("open");
        }
        let made = Allocations::of_this_thread().since(before).count;
        drop(tx);
        for task in tasks {
            task.await.expect("no panic");
        }
        made as f64 / ELEMENTS as f64
    })
}

/// 255 consumers that take what there is, and one that yields after each element; then that one alone.
fn one_slow(threads: usize) -> (f64, f64) {
    const ELEMENTS: u64 = 20_000;
    let rate = |fast: usize| {
        runtime(threads).block_on(async move {
            let (mut tx, hub) = broadcast::<u64>(256);
            let mut slow = hub.subscribe();
            let mut tasks = vec![tokio::spawn(async move {
                while slow.next().await.is_some() {
                    tokio::task::yield_now().await;
                }
            })];
            tasks.extend((0..fast).map(|_| {
                let mut rx = hub.subscribe();
                tokio::spawn(async move { while rx.next().await.is_some() {} })
            }));
            let begin = Instant::now();
            for value in 0..ELEMENTS {
                tx.feed(value).await.expect("open");
            }
            drop(tx);
            for task in tasks {
                task.await.expect("no panic");
            }
            ELEMENTS as f64 / begin.elapsed().as_secs_f64()
        })
    };
    (rate(255), rate(0))
}

/// Median of the time from before a send until the last consumer has it, in microseconds.
fn latency(threads: usize, consumers: usize) -> f64 {
    const ROUNDS: usize = 300;
    runtime(threads).block_on(async move {
        let (mut tx, hub) = broadcast::<u64>(64);
        let got = Arc::new((AtomicU64::new(0), tokio::sync::Notify::new()));
        let all = consumers as u64;
        for _ in 0..consumers {
            let mut rx = hub.subscribe();
            let got = got.clone();
            tokio::spawn(async move {
                while rx.next().await.is_some() {
                    if (got.0.fetch_add(1, Ordering::AcqRel) + 1).is_multiple_of(all) {
                        got.1.notify_one();
                    }
                }
            });
        }
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            tokio::time::sleep(Duration::from_micros(500)).await;
            let begin = Instant::now();
            tx.send(round as u64).await.expect("open");
            got.1.notified().await;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        times[ROUNDS / 2].as_secs_f64() * 1e6
    })
}
