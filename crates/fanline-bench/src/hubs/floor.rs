//! A hand-written reference loop with the minimum cost of a bounded broadcast to tasks: the runtime's cost
//! for waking and polling, and one read per delivery.
//!
//! Consumers read a full buffer and wait. The last of them wakes the producer, which fills the buffer and
//! wakes all consumers. The loop omits what a hub needs in addition: the search for the slowest consumer,
//! elements of any type, a producer that continues when only a part of the buffer is free, consumers that
//! join and leave, a failure that overtakes buffered elements, and fences for several threads.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::load::Load;
use super::lockstep::{Check, join, timed};

/// The state of the reference loop. It is used on one thread, so it needs no memory ordering. Relaxed atomics
/// cost nothing extra there.
struct Floor {
    slots: Vec<AtomicU64>,
    sent: AtomicU64,
    /// Number of consumers that have read everything.
    idle: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
    producer: Mutex<Option<Waker>>,
}

/// Returns the duration of a run on one thread.
pub(super) fn run(load: Load, elements: u64) -> Duration {
    timed(1, async move {
        let consumers = load.peers as u64;
        let floor = Arc::new(Floor {
            slots: (0..load.buffer).map(|_| AtomicU64::new(0)).collect(),
            sent: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            waiting: Mutex::new(Vec::with_capacity(load.peers)),
            producer: Mutex::new(None),
        });
        let tasks = (0..consumers).map(|_| {
            let floor = floor.clone();
            tokio::spawn(async move { floor.consume(consumers, elements).await })
        });
        let tasks = tasks.collect();
        floor.produce(consumers, elements).await;
        join(tasks).await;
    })
}

impl Floor {
    async fn produce(&self, consumers: u64, elements: u64) {
        let mut wakers = Vec::new();
        let mut sent = 0;
        while sent < elements {
            poll_fn(|context| {
                if self.idle.load(Ordering::Relaxed) == consumers {
                    return Poll::Ready(());
                }
                *lock(&self.producer) = Some(context.waker().clone());
                Poll::Pending
            })
            .await;
            self.idle.store(0, Ordering::Relaxed);
            for (slot, value) in self.slots.iter().zip(sent..elements) {
                slot.store(value, Ordering::Relaxed);
                sent = value + 1;
            }
            self.sent.store(sent, Ordering::Relaxed);
            std::mem::swap(&mut *lock(&self.waiting), &mut wakers);
            wakers.drain(..).for_each(Waker::wake);
        }
    }

    async fn consume(&self, consumers: u64, elements: u64) {
        let mut check = Check::default();
        let mut received = 0;
        while received < elements {
            let sent = poll_fn(|context| {
                let sent = self.sent.load(Ordering::Relaxed);
                if sent > received {
                    return Poll::Ready(sent);
                }
                lock(&self.waiting).push(context.waker().clone());
                if self.idle.fetch_add(1, Ordering::Relaxed) + 1 == consumers
                    && let Some(producer) = lock(&self.producer).take()
                {
                    producer.wake();
                }
                Poll::Pending
            })
            .await;
            let new = usize::try_from(sent - received).unwrap_or(usize::MAX);
            for slot in self.slots.iter().take(new) {
                check.take(slot.load(Ordering::Relaxed));
            }
            received = sent;
        }
        check.finish(elements);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
