//! The least that another thread costs, written by hand.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

/// **Spawn and join**: the floor of everything on a new thread. The thread does nothing.
pub(super) fn spawn_and_join() {
    let joined = thread::spawn(|| {}).join();
    joined.expect("a thread that does nothing does not panic");
}

/// **A loop on a new thread**: the same, and the items are counted in the thread, without anything
/// between the loop and the counter.
pub(super) fn counted_on_new_thread(items: u32) -> u64 {
    let counted = thread::spawn(move || count(0..items)).join();
    counted.expect("counting does not panic")
}

/// **One Vec to a parked thread**: the floor of `observe_on` a pool.
///
/// All items are collected, handed over at once, and counted by a thread that was parked; the caller
/// parks until the count is there. Leaves out order among several hand-overs, an end, cancelling,
/// and that values would be on their way before the last is there.
pub(super) fn one_vec_to_parked_thread(items: u32) -> u64 {
    static WORKER: OnceLock<Worker> = OnceLock::new();
    WORKER
        .get_or_init(Worker::start)
        .count((0..items).collect())
}

fn count(items: impl IntoIterator<Item = u32>) -> u64 {
    let mut count = 0;
    for item in items {
        // Else the compiler would take the length.
        black_box(item);
        count += 1;
    }
    count
}

/// A thread that waits for one Vec at a time, to the end of the program.
struct Worker {
    thread: Thread,
    inbox: Arc<Mutex<Option<Job>>>,
}

struct Job {
    items: Vec<u32>,
    result: Arc<AtomicU64>,
    caller: Thread,
}

/// Instead of a count: there is none yet.
const PENDING: u64 = u64::MAX;

impl Worker {
    fn start() -> Self {
        let inbox = Arc::new(Mutex::new(None::<Job>));
        let own = Arc::clone(&inbox);
        let (ready, is_ready) = mpsc::channel();
        thread::spawn(move || {
            let _ = ready.send(thread::current());
            loop {
                let job = own.lock().unwrap_or_else(PoisonError::into_inner).take();
                match job {
                    Some(job) => job.run(),
                    None => thread::park(),
                }
            }
        });
        let thread = is_ready.recv().expect("the thread sends before it parks");
        Self { thread, inbox }
    }

    fn count(&self, items: Vec<u32>) -> u64 {
        let result = Arc::new(AtomicU64::new(PENDING));
        let job = Job {
            items,
            result: Arc::clone(&result),
            caller: thread::current(),
        };
        *self.inbox.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
        self.thread.unpark();
        loop {
            // Pairs with the store of the count, which is all that is read.
            let count = result.load(Ordering::Acquire);
            if count != PENDING {
                return count;
            }
            thread::park();
        }
    }
}

impl Job {
    fn run(self) {
        self.result.store(count(self.items), Ordering::Release);
        self.caller.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_floor_counts_every_item() {
        assert_eq!(counted_on_new_thread(1000), 1000);
        assert_eq!(one_vec_to_parked_thread(1000), 1000);
        assert_eq!(one_vec_to_parked_thread(0), 0);
    }
}
