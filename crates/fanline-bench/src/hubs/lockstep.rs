//! A broadcast in which each consumer receives and checks every element.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanline::hub::{BroadcastHub, BroadcastReceiver, BroadcastSender, broadcast};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::channel::{AsyncBroadcast, Asyncband, Channel, Feed, SendEach, TokioBarrier};
use super::floor;
use super::load::{Cell, System};

/// Returns the duration of a run, from before the hub is created until the last consumer has ended. Returns
/// `None` for systems that do not run in this process.
pub(super) fn run(system: System, cell: Cell, elements: u64) -> Option<Duration> {
    Some(match system {
        System::Stream => channel::<Feed>(cell, elements),
        System::Send => channel::<SendEach>(cell, elements),
        System::TokioBroadcast => channel::<TokioBarrier>(cell, elements),
        System::AsyncBroadcast => channel::<AsyncBroadcast>(cell, elements),
        System::Asyncband => channel::<Asyncband>(cell, elements),
        System::Ref => timed(cell.threads, by_ref(cell, elements)),
        System::Each => timed(cell.threads, each(cell, elements)),
        System::Slice => timed(cell.threads, by_slice(cell, elements)),
        System::OwnedArc => timed(cell.threads, owned_arc(cell, elements)),
        System::Relay => relayed(cell, elements),
        System::Floor => floor::run(cell, elements),
        System::Fanline | System::Pekko | System::TokioMpsc => return None,
    })
}

/// Returns a runtime with one thread if `threads` is 1, otherwise a work-stealing runtime.
pub(super) fn runtime(threads: usize) -> Runtime {
    if threads == 1 {
        Builder::new_current_thread().enable_time().build()
    } else {
        Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_time()
            .build()
    }
    .expect("a runtime")
}

/// Runs `work`, which contains the producer, as a task, and returns its duration. So the producer runs as a
/// task like its consumers. The calling thread only waits.
pub(super) fn timed(threads: usize, work: impl Future<Output = ()> + Send + 'static) -> Duration {
    let runtime = runtime(threads);
    let begin = Instant::now();
    runtime.block_on(async { tokio::spawn(work).await.expect("no panic") });
    begin.elapsed()
}

/// Waits for tasks. Panics if a task panicked.
pub(super) async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// A check that elements are 0, 1, 2, and so on.
#[derive(Default)]
pub(super) struct Check {
    next: u64,
}

impl Check {
    #[inline(always)]
    pub(super) fn take(&mut self, value: u64) {
        assert_eq!(value, self.next);
        self.next += 1;
    }

    /// Checks that the consumer has received `elements` elements.
    pub(super) fn finish(&self, elements: u64) {
        assert_eq!(self.next, elements);
    }
}

fn channel<C: Channel>(cell: Cell, elements: u64) -> Duration {
    timed(cell.threads, async move {
        let (mut tx, receivers) = C::open(cell.buffer, cell.consumers);
        let tasks = receivers.into_iter().map(|mut rx| {
            tokio::spawn(async move {
                let mut check = Check::default();
                while let Some(value) = C::recv(&mut rx).await {
                    check.take(value);
                }
                check.finish(elements);
            })
        });
        let tasks = tasks.collect();
        for value in 0..elements {
            C::send(&mut tx, value).await;
        }
        drop(tx);
        join(tasks).await;
    })
}

/// Runs the hub with any element type and any kind of consumer.
async fn feed<T, F>(
    cell: Cell,
    elements: u64,
    make: impl Fn(u64) -> T,
    consume: impl Fn(BroadcastReceiver<T>) -> F,
) where
    F: Future<Output = Check> + Send + 'static,
{
    let (mut tx, hub) = broadcast(cell.buffer);
    let tasks = (0..cell.consumers).map(|_| {
        let consumer = consume(hub.subscribe());
        tokio::spawn(async move { consumer.await.finish(elements) })
    });
    let tasks = tasks.collect();
    for value in 0..elements {
        tx.feed(make(value)).await.expect("open");
    }
    drop(tx);
    join(tasks).await;
}

async fn by_ref(cell: Cell, elements: u64) {
    let consume = |mut rx: BroadcastReceiver<u64>| async move {
        let mut check = Check::default();
        while let Some(value) = rx.next_ref().await {
            check.take(*value);
        }
        check
    };
    feed(cell, elements, |value| value, consume).await;
}

async fn each(cell: Cell, elements: u64) {
    let consume = |mut rx: BroadcastReceiver<u64>| async move {
        let mut check = Check::default();
        rx.for_each_ref(|value| check.take(*value)).await;
        check
    };
    feed(cell, elements, |value| value, consume).await;
}

async fn by_slice(cell: Cell, elements: u64) {
    let consume = |mut rx: BroadcastReceiver<u64>| async move {
        let mut check = Check::default();
        while let Some(values) = rx.next_slice().await {
            for value in values {
                check.take(*value);
            }
        }
        check
    };
    feed(cell, elements, |value| value, consume).await;
}

async fn owned_arc(cell: Cell, elements: u64) {
    let consume = |mut rx: BroadcastReceiver<Arc<u64>>| async move {
        let mut check = Check::default();
        while let Some(value) = rx.next().await {
            check.take(*value);
        }
        check
    };
    feed(cell, elements, Arc::new, consume).await;
}

/// Runs the hub with a relay and a single-threaded runtime for each thread. The first thread also runs the
/// producer.
fn relayed(cell: Cell, elements: u64) -> Duration {
    let begin = Instant::now();
    let (tx, hub) = broadcast(cell.buffer);
    let mut producer = Some(tx);
    let threads: Vec<_> = (0..cell.threads)
        .map(|index| {
            let (relay, shard) = hub.relay(BroadcastHub::options().capacity(cell.buffer));
            let consumers = (index..cell.consumers).step_by(cell.threads);
            let consumers: Vec<_> = consumers.map(|_| shard.subscribe()).collect();
            let producer = producer.take();
            std::thread::spawn(move || {
                runtime(1).block_on(async {
                    let mut tasks: Vec<_> = consumers
                        .into_iter()
                        .map(|rx| tokio::spawn(check_all(rx, elements)))
                        .collect();
                    tasks.extend(producer.map(|tx| tokio::spawn(feed_all(tx, elements))));
                    assert_eq!(relay.await, 0);
                    join(tasks).await;
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    begin.elapsed()
}

async fn check_all(mut rx: BroadcastReceiver<u64>, elements: u64) {
    let mut check = Check::default();
    while let Some(value) = rx.next().await {
        check.take(value);
    }
    check.finish(elements);
}

async fn feed_all(mut tx: BroadcastSender<u64>, elements: u64) {
    for value in 0..elements {
        tx.feed(value).await.expect("open");
    }
}
