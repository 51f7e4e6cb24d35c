//! The other crates, each used as its documentation shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::runs::{Cell, Check};

/// tokio's channel overwrites: it has no send that waits. So the consumers count themselves in after
/// each full buffer, and the last one lets the producer go on.
pub(super) async fn tokio_broadcast(cell: Cell) {
    let (tx, _) = tokio::sync::broadcast::channel::<u64>(cell.buffer);
    let arrived = Arc::new((AtomicUsize::new(0), Notify::new()));
    let batch = cell.buffer as u64;
    let tasks: Vec<_> = (0..cell.consumers)
        .map(|_| {
            let mut rx = tx.subscribe();
            let arrived = arrived.clone();
            tokio::spawn(async move {
                let mut check = Check::default();
                for index in 1..=cell.elements {
                    check.take(rx.recv().await.expect("not overtaken"));
                    if index % batch == 0 {
                        let before = arrived.0.fetch_add(1, Ordering::AcqRel);
                        if before + 1 == cell.consumers {
                            arrived.0.store(0, Ordering::Release);
                            arrived.1.notify_one();
                        }
                    }
                }
                check.finish(cell);
            })
        })
        .collect();
    for value in 0..cell.elements {
        tx.send(value).expect("open");
        if (value + 1) % batch == 0 {
            arrived.1.notified().await;
        }
    }
    for task in tasks {
        task.await.expect("no panic");
    }
}

pub(super) async fn async_broadcast(cell: Cell) {
    let (tx, rx) = async_broadcast::broadcast::<u64>(cell.buffer);
    let tasks: Vec<_> = (0..cell.consumers)
        .map(|_| {
            let mut rx = rx.clone();
            tokio::spawn(async move {
                let mut check = Check::default();
                while let Ok(value) = rx.recv_direct().await {
                    check.take(value);
                }
                check.finish(cell);
            })
        })
        .collect();
    drop(rx);
    for value in 0..cell.elements {
        tx.broadcast_direct(value).await.expect("open");
    }
    drop(tx);
    for task in tasks {
        task.await.expect("no panic");
    }
}

pub(super) async fn asyncband(cell: Cell) {
    let (tx, rx) = asyncband::broadcast::mpmc::bounded::<u64>(cell.buffer);
    let tasks: Vec<_> = (0..cell.consumers)
        .map(|_| {
            let mut rx = tx.subscribe();
            tokio::spawn(async move {
                let mut check = Check::default();
                while let Ok(value) = rx.recv().await {
                    check.take(value);
                }
                check.finish(cell);
            })
        })
        .collect();
    drop(rx);
    for value in 0..cell.elements {
        tx.send(value).await;
    }
    drop(tx);
    for task in tasks {
        task.await.expect("no panic");
    }
}
