//! Fanline's schedulers under the same loads.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fanline::prelude::*;
use fanline::scheduler::{NewThread, ThreadPool};

/// An iterator on a thread of its own, counted there.
pub(super) fn on_new_thread(items: u32) -> u64 {
    // Else what counts them could be told how many there are.
    let items = (0..items).map(black_box);
    wait_for(fanline::from_iter(items).subscribe_on(NewThread).count())
}

/// A range on this thread, counted on the pool.
pub(super) fn observed_on_pool(items: u32) -> u64 {
    let pool = ThreadPool::global();
    wait_for(fanline::range(0..items).observe_on(pool).count())
}

/// Subscribes, and parks until the count has come.
fn wait_for(count: impl Observable<Item = usize>) -> u64 {
    const PENDING: usize = usize::MAX;
    let result = Arc::new(AtomicUsize::new(PENDING));
    let (written, caller) = (Arc::clone(&result), thread::current());
    let _guard = count.subscribe(move |count| {
        written.store(*count, Ordering::Release);
        caller.unpark();
    });
    loop {
        // Pairs with the store of the count, which is all that is read.
        let count = result.load(Ordering::Acquire);
        if count != PENDING {
            return count as u64;
        }
        thread::park();
    }
}
