//! Fanline's schedulers under the same loads.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fanline::prelude::*;
use fanline::scheduler::{NewThread, ThreadPool};

pub(super) fn on_new_thread(items: u32) -> u64 {
    // Hide the number of items from the operator that counts.
    let items = (0..items).map(black_box);
    wait_for(fanline::from_iter(items).subscribe_on(NewThread).count())
}

/// Emits a range on this thread and counts it on the pool.
pub(super) fn observed_on_pool(items: u32) -> u64 {
    let pool = ThreadPool::global();
    wait_for(fanline::range(0..items).observe_on(pool).count())
}

/// Subscribes, and parks the thread until the count has arrived.
fn wait_for(count: impl Observable<Item = usize>) -> u64 {
    const PENDING: usize = usize::MAX;
    let result = Arc::new(AtomicUsize::new(PENDING));
    let (written, caller) = (Arc::clone(&result), thread::current());
    let _guard = count.subscribe(move |count| {
        written.store(*count, Ordering::Release);
        caller.unpark();
    });
    loop {
        // Acquire: pairs with the store of the count. No other data is read.
        let count = result.load(Ordering::Acquire);
        if count != PENDING {
            return count as u64;
        }
        thread::park();
    }
}
