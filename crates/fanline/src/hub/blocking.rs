//! Waiting on a plain thread for what is otherwise awaited.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::sync::thread;

/// Polls until it is ready, and parks the thread in between. The waker is the thread's own and made
/// once, so that waiting allocates nothing.
pub(crate) fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = thread_waker();
    let mut context = Context::from_waker(&waker);
    loop {
        match poll(&mut context) {
            Poll::Ready(value) => return value,
            // May return for no reason, or for another's; asked again, it is pending again.
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(not(all(test, fanline_loom)))]
fn thread_waker() -> Waker {
    thread_local! {
        static WAKER: Waker = new_waker();
    }
    // A thread that is about to end, and waits in a destructor of its own, has no locals any more.
    WAKER.try_with(Waker::clone).unwrap_or_else(|_| new_waker())
}

#[cfg(all(test, fanline_loom))]
fn thread_waker() -> Waker {
    new_waker()
}

fn new_waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
