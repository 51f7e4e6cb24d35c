//! A broadcast in which each consumer receives and checks every element.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanline::hub::{BroadcastHub, BroadcastReceiver, broadcast};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::channel::{self, Inlet, Outlet};
use super::floor;
use super::load::{Load, System};

/// Returns the duration of a run, from before the hub is created until the last consumer has ended. Returns
/// `None` for systems that do not run in this process.
pub(super) fn run(system: System, load: Load, elements: u64) -> Option<Duration> {
    Some(match system {
        System::Stream => lockstep(load, elements, channel::feed, check_all),
        System::Send => lockstep(load, elements, channel::send_each, check_all),
        System::TokioBroadcast => lockstep(load, elements, channel::tokio_barrier, check_all),
        System::AsyncBroadcast => lockstep(load, elements, channel::async_broadcast, check_all),
        System::Asyncband => lockstep(load, elements, channel::asyncband, check_all),
        System::Ref => lockstep(load, elements, channel::feed, by_ref),
        System::Each => lockstep(load, elements, channel::feed, each),
        System::Slice => lockstep(load, elements, channel::feed, by_slice),
        System::OwnedArc => lockstep(load, elements, channel::arcs, owned_arc),
        System::Relay => relayed(load, elements),
        System::Floor => floor::run(load, elements),
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

/// Runs a hub that `open` creates, with consumers of any kind.
fn lockstep<S: Inlet, R: Send + 'static, F>(
    load: Load,
    elements: u64,
    open: fn(usize, usize) -> (S, Vec<R>),
    consume: impl Fn(R, u64) -> F + Send + 'static,
) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    timed(load.threads, async move {
        let ends = open(load.buffer, load.peers);
        drive(ends, elements, move |_, rx| consume(rx, elements)).await;
    })
}

/// Starts a task for each receiver, sends all elements, and waits for the tasks. `consume` also receives the index
/// of the task.
pub(super) async fn drive<S: Inlet, R, F>(
    (tx, receivers): (S, Vec<R>),
    elements: u64,
    consume: impl Fn(usize, R) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let tasks = receivers.into_iter().enumerate();
    let tasks = tasks.map(|(index, rx)| tokio::spawn(consume(index, rx)));
    let tasks = tasks.collect();
    put_all(tx, elements).await;
    join(tasks).await;
}

async fn put_all(mut tx: impl Inlet, elements: u64) {
    for value in 0..elements {
        tx.put(value).await.expect("open");
    }
}

async fn check_all(mut rx: impl Outlet, elements: u64) {
    let mut check = Check::default();
    while let Some(value) = rx.take().await {
        check.take(value);
    }
    check.finish(elements);
}

async fn by_ref(mut rx: BroadcastReceiver<u64>, elements: u64) {
    let mut check = Check::default();
    while let Some(value) = rx.next_ref().await {
        check.take(*value);
    }
    check.finish(elements);
}

async fn each(mut rx: BroadcastReceiver<u64>, elements: u64) {
    let mut check = Check::default();
    rx.for_each_ref(|value| check.take(*value)).await;
    check.finish(elements);
}

async fn by_slice(mut rx: BroadcastReceiver<u64>, elements: u64) {
    let mut check = Check::default();
    while let Some(values) = rx.next_slice().await {
        for value in values {
            check.take(*value);
        }
    }
    check.finish(elements);
}

async fn owned_arc(mut rx: BroadcastReceiver<Arc<u64>>, elements: u64) {
    let mut check = Check::default();
    while let Some(value) = rx.next().await {
        check.take(*value);
    }
    check.finish(elements);
}

/// Runs the hub with a relay and a single-threaded runtime for each thread. The first thread also runs the
/// producer.
fn relayed(load: Load, elements: u64) -> Duration {
    let begin = Instant::now();
    let (tx, hub) = broadcast(load.buffer);
    let mut producer = Some(tx);
    let threads: Vec<_> = (0..load.threads)
        .map(|index| {
            let (relay, shard) = hub.relay(BroadcastHub::options().capacity(load.buffer));
            let consumers = (index..load.peers).step_by(load.threads);
            let consumers: Vec<_> = consumers.map(|_| shard.subscribe()).collect();
            let producer = producer.take();
            std::thread::spawn(move || {
                runtime(1).block_on(async {
                    let mut tasks: Vec<_> = consumers
                        .into_iter()
                        .map(|rx| tokio::spawn(check_all(rx, elements)))
                        .collect();
                    tasks.extend(producer.map(|tx| tokio::spawn(put_all(tx, elements))));
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
