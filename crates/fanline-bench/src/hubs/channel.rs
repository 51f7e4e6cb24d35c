//! Hubs and channels of numbers behind two traits. Each is used as its documentation shows.
//!
//! Where types allow it, the traits return a channel's own future. A future around it would cost up to 28
//! instructions per element, as many as a delivery.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use asyncband::broadcast::mpmc;
use fanline::hub::{BroadcastReceiver, BroadcastSender, SendError, broadcast as hub};
use fanline::hub::{MergeReceiver, MergeSender, PartitionReceiver, PartitionSender};
use tokio::sync::{Notify, broadcast, mpsc};

/// The end of a channel into which numbers are sent.
pub(super) trait Inlet: Send + 'static {
    type Error: Debug + Send;

    fn put(&mut self, value: u64) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// The end of a channel from which numbers are received.
pub(super) trait Outlet: Send + 'static {
    /// Receives the next value. Returns `None` after the sender was dropped and every value was received.
    fn take(&mut self) -> impl Future<Output = Option<u64>> + Send;
}

/// Implements the trait with a method that waits until there is room.
macro_rules! inlet {
    ($type:ty, $method:ident, $error:ty) => {
        impl Inlet for $type {
            type Error = $error;

            fn put(&mut self, value: u64) -> impl Future<Output = Result<(), $error>> + Send {
                self.$method(value)
            }
        }
    };
}

/// Implements the trait with a method that returns an `Option`, or with `ok` a `Result`.
macro_rules! outlet {
    ($type:ty, $method:ident) => {
        impl Outlet for $type {
            fn take(&mut self) -> impl Future<Output = Option<u64>> + Send {
                self.$method()
            }
        }
    };
    ($type:ty, $method:ident, ok) => {
        impl Outlet for $type {
            async fn take(&mut self) -> Option<u64> {
                self.$method().await.ok()
            }
        }
    };
}

inlet!(BroadcastSender<u64>, feed, SendError<u64>);
inlet!(MergeSender<u64>, send, SendError<u64>);
inlet!(PartitionSender<u64>, send, SendError<u64>);
inlet!(mpsc::Sender<u64>, send, mpsc::error::SendError<u64>);

outlet!(BroadcastReceiver<u64>, next);
outlet!(async_broadcast::Receiver<u64>, recv_direct, ok);
outlet!(mpmc::BoundedReceiver<u64>, recv, ok);
outlet!(MergeReceiver<u64>, next);
outlet!(PartitionReceiver<u64>, next);
outlet!(mpsc::Receiver<u64>, recv);

impl Inlet for async_broadcast::Sender<u64> {
    type Error = async_broadcast::SendError<u64>;

    async fn put(&mut self, value: u64) -> Result<(), Self::Error> {
        self.broadcast_direct(value).await.map(|_| ())
    }
}

impl Inlet for mpmc::BoundedSender<u64> {
    type Error = Infallible;

    async fn put(&mut self, value: u64) -> Result<(), Infallible> {
        self.send(value).await;
        Ok(())
    }
}

/// The broadcast hub's sender with `send`, which wakes its consumers for each element. Without this wrapper, it
/// wakes them when the hub is full, with `feed`.
pub(super) struct SendEach(BroadcastSender<u64>);

impl Inlet for SendEach {
    type Error = SendError<u64>;

    fn put(&mut self, value: u64) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.send(value)
    }
}

pub(super) struct Arcs(BroadcastSender<Arc<u64>>);

impl Inlet for Arcs {
    type Error = SendError<Arc<u64>>;

    fn put(&mut self, value: u64) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.feed(Arc::new(value))
    }
}

/// A sender, and receivers that all receive every element.
type Ends<S, R> = (S, Vec<R>);

/// Opens the broadcast hub with any type of element.
pub(super) fn feed<T>(
    buffer: usize,
    receivers: usize,
) -> Ends<BroadcastSender<T>, BroadcastReceiver<T>> {
    let (tx, hub) = hub(buffer);
    (tx, (0..receivers).map(|_| hub.subscribe()).collect())
}

pub(super) fn send_each(buffer: usize, receivers: usize) -> Ends<SendEach, BroadcastReceiver<u64>> {
    let (tx, receivers) = feed(buffer, receivers);
    (SendEach(tx), receivers)
}

pub(super) fn arcs(buffer: usize, receivers: usize) -> Ends<Arcs, BroadcastReceiver<Arc<u64>>> {
    let (tx, receivers) = feed(buffer, receivers);
    (Arcs(tx), receivers)
}

pub(super) fn async_broadcast(
    buffer: usize,
    receivers: usize,
) -> Ends<async_broadcast::Sender<u64>, async_broadcast::Receiver<u64>> {
    let (tx, rx) = async_broadcast::broadcast(buffer);
    (tx, (0..receivers).map(|_| rx.clone()).collect())
}

pub(super) fn asyncband(
    buffer: usize,
    receivers: usize,
) -> Ends<mpmc::BoundedSender<u64>, mpmc::BoundedReceiver<u64>> {
    let (tx, _) = mpmc::bounded(buffer);
    let receivers = (0..receivers).map(|_| tx.subscribe()).collect();
    (tx, receivers)
}

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

/// Opens tokio's channel. It overwrites old values and has no send that waits. So after each full buffer the
/// receivers wait for each other, and the last one wakes the sender.
pub(super) fn tokio_barrier(
    buffer: usize,
    receivers: usize,
) -> Ends<BarrierSender, BarrierReceiver> {
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
    let sent = 0;
    (BarrierSender { tx, barrier, sent }, receivers)
}

impl Inlet for BarrierSender {
    type Error = broadcast::error::SendError<u64>;

    async fn put(&mut self, value: u64) -> Result<(), Self::Error> {
        self.tx.send(value)?;
        self.sent += 1;
        if self.sent == self.barrier.buffer {
            self.sent = 0;
            self.barrier.all.notified().await;
        }
        Ok(())
    }
}

impl Outlet for BarrierReceiver {
    async fn take(&mut self) -> Option<u64> {
        let value = match self.rx.recv().await {
            Ok(value) => value,
            Err(broadcast::error::RecvError::Closed) => return None,
            Err(error) => panic!("overtaken: {error}"),
        };
        self.received += 1;
        let barrier = &self.barrier;
        if self.received == barrier.buffer {
            self.received = 0;
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
