//! One run of one system.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanline::hub::broadcast;
use tokio::runtime::{Builder, Runtime};

use super::rivals;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) threads: usize,
    pub(super) buffer: usize,
    pub(super) consumers: usize,
    pub(super) elements: u64,
}

/// Who is measured, and by which of its ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Stream,
    Ref,
    Slice,
    OwnedArc,
    Send,
    TokioBroadcast,
    AsyncBroadcast,
    Asyncband,
}

impl System {
    pub(super) const ALL: [Self; 8] = [
        Self::Stream,
        Self::Ref,
        Self::Slice,
        Self::OwnedArc,
        Self::Send,
        Self::TokioBroadcast,
        Self::AsyncBroadcast,
        Self::Asyncband,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Ref => "ref",
            Self::Slice => "slice",
            Self::OwnedArc => "arc",
            Self::Send => "send",
            Self::TokioBroadcast => "tokio (barrier)",
            Self::AsyncBroadcast => "async-broadcast",
            Self::Asyncband => "asyncband",
        }
    }

    pub(super) fn is_rival(self) -> bool {
        matches!(
            self,
            Self::TokioBroadcast | Self::AsyncBroadcast | Self::Asyncband
        )
    }

    pub(super) fn run(self, cell: Cell) -> Duration {
        let runtime = runtime(cell.threads);
        let begin = Instant::now();
        match self {
            Self::Stream => runtime.block_on(on_task(stream(cell, false))),
            Self::Send => runtime.block_on(on_task(stream(cell, true))),
            Self::Ref => runtime.block_on(on_task(by_ref(cell))),
            Self::Slice => runtime.block_on(on_task(by_slice(cell))),
            Self::OwnedArc => runtime.block_on(on_task(owned_arc(cell))),
            Self::TokioBroadcast => runtime.block_on(on_task(rivals::tokio_broadcast(cell))),
            Self::AsyncBroadcast => runtime.block_on(on_task(rivals::async_broadcast(cell))),
            Self::Asyncband => runtime.block_on(on_task(rivals::asyncband(cell))),
        }
        begin.elapsed()
    }
}

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

/// The producer is a task like its consumers, not the thread that waits for the end.
async fn on_task(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work).await.expect("no panic");
}

/// The sum of all elements, each one looked at.
#[derive(Default)]
pub(super) struct Check {
    next: u64,
}

impl Check {
    #[inline(always)]
    pub(super) fn take(&mut self, value: u64) {
        assert_eq!(black_box(value), self.next);
        self.next += 1;
    }

    pub(super) fn finish(&self, cell: Cell) {
        assert_eq!(self.next, cell.elements);
    }
}

async fn stream(cell: Cell, each: bool) {
    let (mut tx, hub) = broadcast::<u64>(cell.buffer);
    let tasks: Vec<_> = (0..cell.consumers)
        .map(|_| {
            let mut rx = hub.subscribe();
            tokio::spawn(async move {
                let mut check = Check::default();
                while let Some(value) = rx.next().await {
                    check.take(value);
                }
                check.finish(cell);
            })
        })
        .collect();
    for value in 0..cell.elements {
        if each {
            tx.send(value).await.expect("open");
        } else {
            tx.feed(value).await.expect("open");
        }
    }
    drop(tx);
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn by_ref(cell: Cell) {
    let (mut tx, hub) = broadcast::<u64>(cell.buffer);
    let tasks: Vec<_> = (0..cell.consumers)
        .map(|_| {
            let mut rx = hub.subscribe();
            tokio::spawn(async move {
                let mut check = Check::default();
                while let Some(value) = rx.next_ref().await {
                    check.take(*value);
                }
                check.finish(cell);
            })
        })
        .collect();
    for value in 0..cell.elements {
        tx.feed(value).await.expect("open");
    }
    drop(tx);
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn by_slice(cell: Cell) {
    let (mut tx, hub) = broadcast::<u64>(cell.buffer);
    let tasks: Vec<_> = (0..cell.consumers)
        .map(|_| {
            let mut rx = hub.subscribe();
            tokio::spawn(async move {
                let mut check = Check::default();
                while let Some(values) = rx.next_slice().await {
                    for value in values {
                        check.take(*value);
                    }
                }
                check.finish(cell);
            })
        })
        .collect();
    for value in 0..cell.elements {
        tx.feed(value).await.expect("open");
    }
    drop(tx);
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn owned_arc(cell: Cell) {
    let (mut tx, hub) = broadcast::<Arc<u64>>(cell.buffer);
    let tasks: Vec<_> = (0..cell.consumers)
        .map(|_| {
            let mut rx = hub.subscribe();
            tokio::spawn(async move {
                let mut check = Check::default();
                while let Some(value) = rx.next().await {
                    check.take(*value);
                }
                check.finish(cell);
            })
        })
        .collect();
    for value in 0..cell.elements {
        tx.feed(Arc::new(value)).await.expect("open");
    }
    drop(tx);
    for task in tasks {
        task.await.expect("no panic");
    }
}
