use std::sync::{Mutex, PoisonError};
use std::time::Duration;

// The standard library's types, because statics need `const` constructors, which loom's types do not have. No
// loom model uses this clock.
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Clock, Precise, Time};

const TICK: Duration = Duration::from_millis(1);

/// The last reading, in nanoseconds. It protects no other data, so relaxed loads and stores suffice.
/// `fetch_max` prevents it from going back when two threads write it.
static READING: AtomicU64 = AtomicU64::new(0);

static TICKER: Mutex<Ticker> = Mutex::new(Ticker {
    handles: 0,
    running: false,
});

struct Ticker {
    handles: usize,
    running: bool,
}

/// A clock that one thread reads once a millisecond for the whole process. [`now`](Clock::now) is a load from
/// memory, about 80 times cheaper than a system call.
///
/// One background thread updates the reading while at least one `Coarse` exists. The thread ends a
/// millisecond or two after the last `Coarse` is dropped. A reading is normally at most about 1 ms late. It
/// may be later if the machine is too busy to run the thread. Readings have the same origin as those of
/// [`Precise`] and may be compared with them.
///
/// ```
/// use fanline::{Clock, Coarse};
///
/// let clock = Coarse::new();
/// let earlier = clock.now();
/// assert!(clock.now() >= earlier);
/// assert!(clock.now_exact() >= earlier);
/// ```
#[derive(Debug)]
pub struct Coarse {
    /// Private, so that only `new` makes a handle and each handle is counted.
    _counted: (),
}

impl Coarse {
    /// Returns a handle of the process's coarse clock. The first handle starts the clock's thread.
    ///
    /// # Panics
    ///
    /// Panics if the system cannot start the thread.
    pub fn new() -> Self {
        let mut ticker = ticker();
        if !ticker.running {
            // The last reading may be old. Refresh it before a second handle can see it.
            refresh();
            std::thread::Builder::new()
                .name("fanline-clock".to_owned())
                .spawn(tick)
                .expect("failed to start the clock's thread");
            ticker.running = true;
        }
        ticker.handles += 1;
        Self { _counted: () }
    }
}

impl Default for Coarse {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Coarse {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Drop for Coarse {
    fn drop(&mut self) {
        ticker().handles -= 1;
    }
}

impl Clock for Coarse {
    #[inline]
    fn now(&self) -> Time {
        Time::from_nanos(READING.load(Ordering::Relaxed))
    }

    fn now_exact(&self) -> Time {
        Precise.now()
    }

    fn granularity(&self) -> Duration {
        TICK
    }
}

fn ticker() -> std::sync::MutexGuard<'static, Ticker> {
    TICKER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refresh() {
    READING.fetch_max(Precise.now().as_nanos(), Ordering::Relaxed);
}

/// Runs the clock's thread. The thread's decision to end, and the decision of `new` to start a thread, are
/// made under the same lock. So a thread runs whenever a handle exists.
fn tick() {
    loop {
        std::thread::sleep(TICK);
        refresh();
        let mut ticker = ticker();
        if ticker.handles == 0 {
            ticker.running = false;
            return;
        }
    }
}
