use std::sync::{Mutex, PoisonError};
use std::time::Duration;

// Statics need constructors that are `const`, which loom's types do not have; the clock is not part
// of any model.
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Clock, Precise, Time};

const TICK: Duration = Duration::from_millis(1);

/// The last reading, in nanoseconds. It guards nothing but itself, so relaxed loads and stores
/// suffice; `fetch_max` keeps it from going back when two write it.
static READING: AtomicU64 = AtomicU64::new(0);

static TICKER: Mutex<Ticker> = Mutex::new(Ticker {
    handles: 0,
    running: false,
});

struct Ticker {
    handles: usize,
    running: bool,
}

/// A clock that is read once a millisecond for the whole process: [`now`](Clock::now) is a load from
/// memory, about eighty times cheaper than asking the system.
///
/// One background thread keeps the reading while at least one `Coarse` exists, and ends within a
/// millisecond or two of the last being dropped. A reading is about one millisecond late at most; on a
/// machine so busy that the thread does not get to run it is later. Readings share their beginning
/// with [`Precise`] and may be compared with its.
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
    /// Only `new` makes one, so that each is counted.
    _counted: (),
}

impl Coarse {
    /// A handle of the process's coarse clock; starts its thread when it is the first.
    ///
    /// # Panics
    ///
    /// When the system refuses to start the thread.
    pub fn new() -> Self {
        let mut ticker = ticker();
        if !ticker.running {
            // The last reading may be from long ago; a second handle must not see it either.
            refresh();
            std::thread::Builder::new()
                .name("fanline-clock".to_owned())
                .spawn(tick)
                .expect("the clock's thread can be started");
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

/// The clock's thread. It leaves under the lock under which a new handle decides whether to start
/// another, so there is one whenever there is a handle.
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
