//! Broadcast channels behind a common interface. Each has one sender, and receivers that all receive every
//! element. Each channel is used as its documentation shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanline::hub::{BroadcastReceiver, BroadcastSender};
use tokio::sync::{Notify, broadcast};

/// A lossless broadcast of numbers.
pub(super) trait Channel: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn open(buffer: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>);

    /// Sends a value and waits until there is room.
    fn send(tx: &mut Self::Sender, value: u64) -> impl Future<Output = ()> + Send;

    /// Receives the next value. Returns `None` after the sender was dropped and every value was received.
    fn recv(rx: &mut Self::Receiver) -> impl Future<Output = Option<u64>> + Send;
}

/// The broadcast hub with `feed`, which wakes its consumers when the hub is full.
pub(super) struct Feed;

impl Channel for Feed {
    type Sender = BroadcastSender<u64>;
    type Receiver = BroadcastReceiver<u64>;

    fn open(buffer: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        let (tx, hub) = fanline::hub::broadcast(buffer);
        (tx, (0..receivers).map(|_| hub.subscribe()).collect())
    }

    async fn send(tx: &mut Self::Sender, value: u64) {
        tx.feed(value).await.expect("open");
    }

    fn recv(rx: &mut Self::Receiver) -> impl Future<Output = Option<u64>> + Send {
        rx.next()
    }
}

/// The broadcast hub with `send`, which wakes its consumers for each element.
pub(super) struct SendEach;

impl Channel for SendEach {
    type Sender = BroadcastSender<u64>;
    type Receiver = BroadcastReceiver<u64>;

    fn open(buffer: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        Feed::open(buffer, receivers)
    }

    async fn send(tx: &mut Self::Sender, value: u64) {
        tx.send(value).await.expect("open");
    }

    fn recv(rx: &mut Self::Receiver) -> impl Future<Output = Option<u64>> + Send {
        rx.next()
    }
}

/// tokio's channel. It overwrites old values and has no send that waits. So after each full buffer the
/// receivers wait for each other, and the last one wakes the sender.
pub(super) struct TokioBarrier;

pub(super) struct BarrierSender {
    tx: broadcast::Sender<u64>,
    barrier: Arc<Barrier>,
    sent: usize,
}

pub(super) struct BarrierReceiver {
    rx: broadcast::Receiver<u64>,
    barrier: Arc<Barrier>,
    received: usize,
}

struct Barrier {
    buffer: usize,
    receivers: usize,
    arrived: AtomicUsize,
    all: Notify,
}

impl Channel for TokioBarrier {
    type Sender = BarrierSender;
    type Receiver = BarrierReceiver;

    fn open(buffer: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        let (tx, _) = broadcast::channel(buffer);
        let barrier = Arc::new(Barrier {
            buffer,
            receivers,
            arrived: AtomicUsize::new(0),
            all: Notify::new(),
        });
        let receivers = (0..receivers).map(|_| BarrierReceiver {
            rx: tx.subscribe(),
            barrier: barrier.clone(),
            received: 0,
        });
        let receivers = receivers.collect();
        let sender = BarrierSender {
            tx,
            barrier,
            sent: 0,
        };
        (sender, receivers)
    }

    async fn send(tx: &mut Self::Sender, value: u64) {
        tx.tx.send(value).expect("open");
        tx.sent += 1;
        if tx.sent == tx.barrier.buffer {
            tx.sent = 0;
            tx.barrier.all.notified().await;
        }
    }

    async fn recv(rx: &mut Self::Receiver) -> Option<u64> {
        let value = match rx.rx.recv().await {
            Ok(value) => value,
            Err(broadcast::error::RecvError::Closed) => return None,
            Err(error) => panic!("overtaken: {error}"),
        };
        rx.received += 1;
        let barrier = &rx.barrier;
        if rx.received == barrier.buffer {
            rx.received = 0;
            // AcqRel: the last receiver that arrives sees everything that the others wrote before they
            // arrived.
            if barrier.arrived.fetch_add(1, Ordering::AcqRel) + 1 == barrier.receivers {
                // Relaxed: no receiver arrives again before the sender is notified.
                barrier.arrived.store(0, Ordering::Relaxed);
                barrier.all.notify_one();
            }
        }
        Some(value)
    }
}

pub(super) struct AsyncBroadcast;

impl Channel for AsyncBroadcast {
    type Sender = async_broadcast::Sender<u64>;
    type Receiver = async_broadcast::Receiver<u64>;

    fn open(buffer: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        let (tx, rx) = async_broadcast::broadcast(buffer);
        (tx, (0..receivers).map(|_| rx.clone()).collect())
    }

    async fn send(tx: &mut Self::Sender, value: u64) {
        tx.broadcast_direct(value).await.expect("open");
    }

    async fn recv(rx: &mut Self::Receiver) -> Option<u64> {
        rx.recv_direct().await.ok()
    }
}

pub(super) struct Asyncband;

impl Channel for Asyncband {
    type Sender = asyncband::broadcast::mpmc::BoundedSender<u64>;
    type Receiver = asyncband::broadcast::mpmc::BoundedReceiver<u64>;

    fn open(buffer: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        let (tx, _) = asyncband::broadcast::mpmc::bounded(buffer);
        let receivers = (0..receivers).map(|_| tx.subscribe()).collect();
        (tx, receivers)
    }

    async fn send(tx: &mut Self::Sender, value: u64) {
        tx.send(value).await;
    }

    async fn recv(rx: &mut Self::Receiver) -> Option<u64> {
        rx.recv().await.ok()
    }
}
