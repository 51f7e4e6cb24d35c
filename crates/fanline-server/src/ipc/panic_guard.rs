//! Panic guards: limit the effects of a panic to the state that it may have damaged.
//!
//! A panic in a connection's task closes only that connection ([`catch_panic`]), unless shared state may be
//! half changed. In that case the server stops with a message ([`PanicStop`]), and never uses that state
//! again. A shard is therefore in a [`PoisonCell`], and the JetStream service is behind a mutex whose
//! poisoning is checked.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use tokio::sync::Notify;
use tokio::sync::mpsc::WeakUnboundedSender;
use tracing::error;

use super::Order;
use crate::sync::{AtomicBool, Ordering};

/// Stops the server after a panic that may have damaged shared state.
#[derive(Default)]
pub(crate) struct PanicStop {
    orders: OnceLock<WeakUnboundedSender<Order>>,
    has_panicked: AtomicBool,
}

impl PanicStop {
    /// Sets the channel through which a panic stops the server. If a panic happened earlier, the server stops
    /// now.
    pub(crate) fn set_orders(&self, orders: WeakUnboundedSender<Order>) {
        let _ = self.orders.set(orders);
        // A read-modify-write is ordered with the swap in `stop`. If it comes first, the thread that panics sees
        // `orders`. If it comes second, this thread sees the panic.
        if self.has_panicked.fetch_or(false, Ordering::AcqRel) {
            self.order_stop();
        }
    }

    /// Returns whether the server stops, or has stopped, because of a panic.
    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::Acquire)
    }

    /// Stops the server if the thread panics before the guard is dropped.
    #[inline]
    pub(crate) fn guard(&self) -> PanicGuard<'_> {
        PanicGuard(self)
    }

    /// Logs the panic, once, and stops the server.
    #[cold]
    fn stop(&self) {
        if self.has_panicked.swap(true, Ordering::AcqRel) {
            return;
        }
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        error!("The server stops because thread '{name}' panicked");
        self.order_stop();
    }

    fn order_stop(&self) {
        if let Some(orders) = self.orders.get().and_then(WeakUnboundedSender::upgrade) {
            let _ = orders.send(Order::Stop);
        }
    }
}

/// See [`PanicStop::guard`].
pub(crate) struct PanicGuard<'a>(&'a PanicStop);

impl Drop for PanicGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// A [`RefCell`] that becomes poisoned, and stops the server, if the thread panics during a mutable borrow.
///
/// A poisoned cell stays borrowed forever, so the usual check of the `RefCell` refuses every access. A borrow
/// therefore has no additional cost. The end of a mutable borrow only checks whether the thread panics.
pub(crate) struct PoisonCell<T> {
    contents: RefCell<T>,
    stop: Arc<PanicStop>,
    poisoned: Notify,
}

impl<T> PoisonCell<T> {
    pub(crate) fn new(contents: T, stop: &Arc<PanicStop>) -> Self {
        PoisonCell {
            contents: RefCell::new(contents),
            stop: Arc::clone(stop),
            poisoned: Notify::new(),
        }
    }

    /// Borrows the contents. If they are poisoned, unwinds the calling task without another panic message.
    #[inline]
    pub(crate) fn borrow(&self) -> Ref<'_, T> {
        self.contents.try_borrow().unwrap_or_else(|_| self.refuse())
    }

    /// Borrows the contents mutably. If they are poisoned, unwinds the calling task without another panic
    /// message.
    #[inline]
    pub(crate) fn borrow_mut(&self) -> PoisonRefMut<'_, T> {
        let contents = self.contents.try_borrow_mut();
        PoisonRefMut {
            contents: contents.unwrap_or_else(|_| self.refuse()),
            _guard: self.guard(),
        }
    }

    /// Poisons the contents if the thread panics before the guard is dropped. Used for a change that takes
    /// several borrows.
    #[inline]
    pub(crate) fn guard(&self) -> PoisonGuard<'_, T> {
        PoisonGuard(self)
    }

    /// Waits until the contents are poisoned.
    pub(crate) async fn poisoned(&self) {
        self.poisoned.notified().await;
    }

    /// Leaves the cell borrowed forever. If it is mutably borrowed now, the guard of that borrow calls this
    /// method again when the borrow ends.
    #[cold]
    fn poison(&self) {
        if let Ok(contents) = self.contents.try_borrow_mut() {
            let _ = ManuallyDrop::new(contents);
        }
        self.stop.stop();
        self.poisoned.notify_one();
    }

    #[cold]
    fn refuse(&self) -> ! {
        if self.stop.has_panicked() {
            // The panic hook is not called, because the first panic has been reported.
            resume_unwind(Box::new("the shard's state is poisoned"));
        }
        panic!("the shard is borrowed already");
    }
}

/// A mutable borrow of a [`PoisonCell`].
pub(crate) struct PoisonRefMut<'a, T> {
    contents: RefMut<'a, T>,
    /// Dropped after `contents`. Poisons the cell if the thread panics.
    _guard: PoisonGuard<'a, T>,
}

impl<T> Deref for PoisonRefMut<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.contents
    }
}

impl<T> DerefMut for PoisonRefMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.contents
    }
}

/// See [`PoisonCell::guard`].
pub(crate) struct PoisonGuard<'a, T>(&'a PoisonCell<T>);

impl<T> Drop for PoisonGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison();
        }
    }
}

thread_local! {
    static IS_JETSTREAM_AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Marks the current thread as one that runs the JetStream service, until this value is dropped. The thread
/// is the service's own, or that of a shard that does a small part of the service's work.
///
/// A panic hook can end the process if [`is_here`](JetStreamAtWork::is_here) returns true, as the hook of the
/// `fanline` command does.
#[derive(Debug)]
pub struct JetStreamAtWork {
    was_here: bool,
}

impl JetStreamAtWork {
    /// Marks the current thread.
    #[must_use = "the mark is gone when this is dropped"]
    pub fn begin() -> Self {
        JetStreamAtWork {
            was_here: IS_JETSTREAM_AT_WORK.replace(true),
        }
    }

    /// Returns whether the JetStream service runs on the current thread. A panic hook runs before unwinding,
    /// so the mark is still set in the hook.
    pub fn is_here() -> bool {
        IS_JETSTREAM_AT_WORK.get()
    }
}

impl Drop for JetStreamAtWork {
    fn drop(&mut self) {
        IS_JETSTREAM_AT_WORK.set(self.was_here);
    }
}

/// Runs a future to its end. Returns `None` if the future panics, so that the task can clean up. Takes the
/// future by reference, because a future passed by value would take its memory twice in the caller.
pub(crate) fn catch_panic<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
) -> impl Future<Output = Option<T>> {
    poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    /// Returns a `PanicStop`, and the sender and the receiver of the orders that it sends.
    fn server() -> (
        Arc<PanicStop>,
        UnboundedSender<Order>,
        UnboundedReceiver<Order>,
    ) {
        let stop = Arc::new(PanicStop::default());
        let (to, orders) = unbounded_channel();
        stop.set_orders(to.downgrade());
        (stop, to, orders)
    }

    fn panics(work: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[tokio::test]
    async fn panic_in_a_handshake_ends_it_and_nothing_else() {
        let (stop, _handle, mut orders) = server();
        let guard = stop.guard();
        assert_eq!(catch_panic(pin!(async { 1 })).await, Some(1));
        assert_eq!(
            catch_panic(pin!(async { panic!("in a handshake") })).await,
            None::<()>
        );
        drop(guard);
        assert!(orders.try_recv().is_err());
        assert!(!stop.has_panicked());
    }

    #[test]
    fn panic_under_a_guard_stops_the_server_once() {
        let (stop, _handle, mut orders) = server();
        drop(stop.guard());
        assert!(orders.try_recv().is_err());
        for _ in 0..2 {
            assert!(panics(|| {
                let _guard = stop.guard();
                panic!("a rule is broken");
            }));
        }
        assert_eq!(orders.try_recv(), Ok(Order::Stop));
        assert!(orders.try_recv().is_err());
        assert!(stop.has_panicked());
    }

    #[test]
    fn panic_before_the_server_receives_orders_stops_it_when_it_does() {
        let stop = PanicStop::default();
        assert!(panics(|| {
            let _guard = stop.guard();
            panic!("too early");
        }));
        let (to, mut orders) = unbounded_channel();
        stop.set_orders(to.downgrade());
        assert_eq!(orders.try_recv(), Ok(Order::Stop));
    }

    #[test]
    fn panic_while_mutably_borrowed_poisons_the_cell() {
        let (stop, _handle, mut orders) = server();
        let cell = PoisonCell::new(vec![1], &stop);
        cell.borrow_mut().push(2);
        assert_eq!(*cell.borrow(), [1, 2]);
        // A panic during a shared borrow does not poison the cell, because nothing is half changed.
        assert!(panics(|| {
            let contents = cell.borrow();
            panic!("{contents:?}");
        }));
        assert!(orders.try_recv().is_err());
        cell.borrow_mut().push(3);

        assert!(panics(|| {
            let mut contents = cell.borrow_mut();
            contents.push(4);
            panic!("half changed");
        }));
        assert_eq!(orders.try_recv(), Ok(Order::Stop));
        assert!(panics(|| drop(cell.borrow())));
        assert!(panics(|| drop(cell.borrow_mut())));
    }

    #[test]
    fn panic_between_the_borrows_of_one_change_poisons_the_cell() {
        let (stop, _handle, mut orders) = server();
        let cell = PoisonCell::new(vec![1], &stop);
        assert!(panics(|| {
            let _guard = cell.guard();
            cell.borrow_mut().push(2);
            panic!("only half of it was done");
        }));
        assert_eq!(orders.try_recv(), Ok(Order::Stop));
        assert!(panics(|| drop(cell.borrow())));
    }

    #[test]
    fn a_thread_is_marked_while_jetstream_works_on_it() {
        assert!(!JetStreamAtWork::is_here());
        let outer = JetStreamAtWork::begin();
        drop(JetStreamAtWork::begin());
        assert!(JetStreamAtWork::is_here());
        assert!(!std::thread::spawn(JetStreamAtWork::is_here).join().unwrap());
        drop(outer);
        assert!(!JetStreamAtWork::is_here());
    }
}
