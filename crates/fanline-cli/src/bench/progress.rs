//! A progress bar on stderr during a measurement, if stderr is a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

const WIDTH: usize = 30;
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// A progress counter with its bar.
pub(super) struct Progress {
    done: Arc<AtomicU64>,
    drawer: Option<JoinHandle<()>>,
}

impl Progress {
    pub(super) fn start(total: u64, wanted: bool) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let drawer = (wanted && stderr().is_terminal()).then(|| {
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                loop {
                    // The bar may lag behind, so the weakest ordering suffices.
                    draw(done.load(Ordering::Relaxed), total);
                    tokio::time::sleep(REDRAW_INTERVAL).await;
                }
            })
        });
        Progress { done, drawer }
    }

    /// Returns the counter that workers add to, in batches.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.done)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(drawer) = self.drawer.take() {
            drawer.abort();
            // Clears the line and returns to its start.
            let _ = stderr().write_all(b"\r\x1b[K");
        }
    }
}

fn draw(done: u64, total: u64) {
    let share = done.min(total) * WIDTH as u64 / total.max(1);
    let filled = usize::try_from(share).unwrap_or(WIDTH);
    let bar = format!("{}{}", "=".repeat(filled), " ".repeat(WIDTH - filled));
    let line = format!(
        "\r[{bar}] {:>3}% {done} of {total}",
        done.min(total) * 100 / total.max(1)
    );
    let _ = stderr().write_all(line.as_bytes());
}
