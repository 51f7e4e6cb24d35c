//! Blocking waits on a plain thread, for futures.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::sync::thread;

/// Polls until the result is ready, and parks the thread in between.
pub(super) fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match poll(&mut context) {
            Poll::Ready(value) => return value,
            // `park` may return spuriously. Then another poll returns `Pending` again.
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
