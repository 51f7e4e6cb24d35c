//! What becomes of a server in which something is broken: it stops, rather than serve half. A panic of one
//! connection costs that connection.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use tokio::sync::mpsc::WeakUnboundedSender;
use tracing::error;

use crate::control::Order;

/// Stops the server when the task that holds it panics. The runtime ends that task alone, and what its shard or
/// the keeper was in the middle of would be gone on with.
pub(crate) struct StopOnPanic(Arc<OnceLock<WeakUnboundedSender<Order>>>);

impl StopOnPanic {
    /// The orders may be set later, before there is anything to serve.
    pub(crate) fn new(orders: &Arc<OnceLock<WeakUnboundedSender<Order>>>) -> Self {
        StopOnPanic(Arc::clone(orders))
    }
}

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        error!("The server is broken and stops: thread '{name}' panicked");
        if let Some(orders) = self.0.get().and_then(WeakUnboundedSender::upgrade) {
            let _ = orders.send(Order::Stop);
        }
    }
}

/// Shakes hands; nothing when that panics. So what follows a handshake that failed is done all the same.
pub(crate) async fn at_the_door<T>(handshake: impl Future<Output = T>) -> Option<T> {
    let mut handshake = pin!(handshake);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| handshake.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn who_is_at_the_door_takes_nobody_along() {
        let known = Arc::new(OnceLock::new());
        let (to, mut orders) = unbounded_channel();
        assert!(known.set(to.downgrade()).is_ok());
        let watch = StopOnPanic::new(&known);
        assert_eq!(at_the_door(async { 1 }).await, Some(1));
        assert_eq!(
            at_the_door(async { panic!("at the door") }).await,
            None::<()>
        );
        drop(watch);
        assert!(orders.try_recv().is_err());
    }

    #[test]
    fn a_panic_stops_the_server_and_an_end_does_not() {
        let known = Arc::new(OnceLock::new());
        let watch = StopOnPanic::new(&known);
        let (to, mut orders) = unbounded_channel();
        assert!(known.set(to.downgrade()).is_ok());
        drop(watch);
        assert!(orders.try_recv().is_err());
        let watch = StopOnPanic::new(&known);
        let broken = catch_unwind(AssertUnwindSafe(|| break_a_rule(watch)));
        assert!(broken.is_err());
        assert_eq!(orders.try_recv(), Ok(Order::Stop));
    }

    fn break_a_rule(_watch: StopOnPanic) {
        panic!("a rule is broken");
    }
}
