//! Hand-written reference loops: the minimum costs of moving values to another thread.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

/// **Spawn and join**: the reference loop of all loads on a new thread. The thread does nothing.
pub(super) fn spawn_and_join() {
    let joined = thread::spawn(|| {}).join();
    joined.expect("a thread that does nothing does not panic");
}

/// **A loop on a new thread**: starts and joins a thread that counts the items in a loop.
pub(super) fn counted_on_new_thread(items: u32) -> u64 {
    let counted = thread::spawn(move || count(0..items)).join();
    counted.expect("counting does not panic")
}

/// **One Vec to a parked thread**: the reference loop of `observe_on` with a pool.
///
/// Collects all items, passes them to a parked thread in one `Vec`, and counts them there. The caller parks
/// until it has the count. The loop omits the order of several batches, an end, cancellation, and delivery
/// before the last value exists.
pub(super) fn one_vec_to_parked_thread(items: u32) -> u64 {
    static WORKER: OnceLock<Worker> = OnceLock::new();
    WORKER
        .get_or_init(Worker::start)
        .count((0..items).collect())
}

fn count(items: impl IntoIterator<Item = u32>) -> u64 {
    let mut count = 0;
    for item in items {
        // Prevent the compiler from computing the count from the length.
        black_box(item);
        count += 1;
    }
    count
}

/// A thread that receives one `Vec` at a time, until the end of the program.
struct Worker {
    thread: Thread,
    inbox: Arc<Mutex<Option<Job>>>,
}

struct Job {
    items: Vec<u32>,
    result: Arc<AtomicU64>,
    caller: Thread,
}

/// The value of the result before the items are counted.
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
            // Acquire: pairs with the store of the count. No other data is read.
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
    fn floors_count_all_items() {
        assert_eq!(counted_on_new_thread(1000), 1000);
        assert_eq!(one_vec_to_parked_thread(1000), 1000);
        assert_eq!(one_vec_to_parked_thread(0), 0);
    }
}
