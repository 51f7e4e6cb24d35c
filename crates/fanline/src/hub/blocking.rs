//! Blocking waits on plain threads.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

#[cfg(not(all(test, fanline_loom)))]
use crate::sync::thread;

/// Polls until the result is ready, and parks the thread between polls. Each thread has one waker, which is
/// created once, so waiting allocates nothing.
#[cfg(not(all(test, fanline_loom)))]
pub(crate) fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = thread_waker();
    let mut context = Context::from_waker(&waker);
    loop {
        match poll(&mut context) {
            Poll::Ready(value) => return value,
            // `park` may return spuriously or for another wake-up. Then the next poll is pending again.
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(not(all(test, fanline_loom)))]
fn thread_waker() -> Waker {
    thread_local! {
        static WAKER: Waker = new_waker();
    }
    // While a thread ends and runs destructors, its thread locals may already be gone.
    WAKER.try_with(Waker::clone).unwrap_or_else(|_| new_waker())
}

#[cfg(not(all(test, fanline_loom)))]
fn new_waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

#[cfg(not(all(test, fanline_loom)))]
struct Unpark(thread::Thread);

#[cfg(not(all(test, fanline_loom)))]
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// The variant of `block_on` for loom models. It does not park, because loom's `unpark` loses the wake-up of
/// a thread that waits for a lock.
#[cfg(all(test, fanline_loom))]
pub(crate) fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    struct Notified(loom::sync::Notify);

    impl Wake for Notified {
        fn wake(self: Arc<Self>) {
            self.0.notify();
        }
    }

    let notified = Arc::new(Notified(loom::sync::Notify::new()));
    let waker = Waker::from(notified.clone());
    loop {
        match poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => notified.0.wait(),
        }
    }
}
