//! The state that the loads share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Error, Result};
use fanline_server::client::{Client, ConnectOptions};
use tokio::sync::watch;

/// Time limit of a wait, unless the server is restarted in the meantime.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before a load that has failed is started again, if the server was not restarted.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of faults that are stored. All faults are counted.
const FAULTS_MAX: usize = 20;

/// A lost, repeated, or reordered message. No restart excuses it.
#[derive(Debug)]
pub(super) struct Violation(pub(super) String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Returns an error that contains a violation.
pub(super) fn violation(text: impl Into<String>) -> Error {
    Violation(text.into()).into()
}

/// The state of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunState {
    /// Number of restarts that have begun, plus the number of restarts that have ended. It is odd while the
    /// server is down.
    pub(super) transitions: u64,
    /// Whether the loads must end.
    pub(super) is_ending: bool,
}

/// An error, with the name of the load in which it occurred.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) load: &'static str,
    pub(super) text: String,
}

/// Counters for the report and for checks of progress.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Number of messages that all loads have received.
    pub(super) deliveries: AtomicU64,
    pub(super) core: AtomicU64,
    pub(super) acknowledged: AtomicU64,
    pub(super) read: AtomicU64,
    pub(super) worked: AtomicU64,
    pub(super) redelivered: AtomicU64,
    pub(super) mqtt: AtomicU64,
    pub(super) mqtt_repeated: AtomicU64,
    pub(super) roll_calls: AtomicU64,
    pub(super) came_and_went: AtomicU64,
    pub(super) dropped_as_slow: AtomicU64,
    /// Number of permanent connections that are open.
    pub(super) present: AtomicU64,
}

/// Adds to a counter. Relaxed: it orders no other data.
pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Reads a counter.
pub(super) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// The shared state of one run.
pub(super) struct Stage {
    pub(super) nats: SocketAddr,
    pub(super) mqtt: SocketAddr,
    pub(super) counts: Counts,
    run_state: watch::Sender<RunState>,
    faults: Mutex<(Vec<Fault>, u64)>,
}

impl Stage {
    pub(super) fn new(nats: SocketAddr, mqtt: SocketAddr) -> Arc<Self> {
        let run_state = RunState {
            transitions: 0,
            is_ending: false,
        };
        Arc::new(Self {
            nats,
            mqtt,
            counts: Counts::default(),
            run_state: watch::Sender::new(run_state),
            faults: Mutex::default(),
        })
    }

    pub(super) fn run_state(&self) -> RunState {
        *self.run_state.borrow()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.run_state().is_ending
    }

    /// Records the beginning or the end of a restart.
    pub(super) fn begin_or_end_restart(&self) {
        self.run_state
            .send_modify(|run_state| run_state.transitions += 1);
    }

    pub(super) fn end(&self) {
        self.run_state
            .send_modify(|run_state| run_state.is_ending = true);
    }

    /// Waits until the server is up. Returns the number of transitions so far.
    pub(super) async fn is_up(&self) -> u64 {
        let mut scenes = self.run_state.subscribe();
        let is_up = |run_state: &RunState| run_state.transitions.is_multiple_of(2);
        // The sender is in this struct, so waiting cannot fail.
        let run_state = scenes
            .wait_for(is_up)
            .await
            .map(|run_state| run_state.transitions);
        run_state.unwrap_or_default()
    }

    /// Connects a separate client for a load.
    pub(super) async fn connect(&self, name: &str) -> Result<Client> {
        let options = ConnectOptions::new(&self.nats.to_string())?;
        let options = options.name(name).connect_timeout(TIMEOUT);
        Ok(Client::connect(&options).await?)
    }

    /// Records the error of a load, and returns false. If the server was restarted after the load had started
    /// (when the number of transitions was `transitions`), the error is excused: it is not recorded, and the
    /// result is true. A violation is never excused.
    pub(super) fn record_fault(&self, load: &'static str, transitions: u64, error: &Error) -> bool {
        let is_excused = self.run_state().transitions != transitions && !error.is::<Violation>();
        if !is_excused {
            let text = format!("{error:#}");
            // A panic while the lock is held leaves no partial update.
            let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
            faults.1 += 1;
            if faults.0.len() < FAULTS_MAX {
                eprintln!("{load}: {text}");
                faults.0.push(Fault { load, text });
            }
        }
        is_excused
    }

    /// Returns the first faults, and the number of all faults.
    pub(super) fn faults(&self) -> (Vec<Fault>, u64) {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.clone()
    }
}

/// A load that keeps the server busy and checks the results.
pub(super) trait Load: Send {
    /// Name in reports.
    const NAME: &'static str;

    /// Runs until the loads must end. After an error the load is started again when the server is up, and
    /// resumes at its position.
    fn play(&mut self, stage: &Stage) -> impl Future<Output = Result<()>> + Send;
}

/// Runs a load until the end of the run, and starts it again after errors.
pub(super) async fn keep<L: Load>(stage: Arc<Stage>, mut load: L) {
    loop {
        let transitions = stage.is_up().await;
        match load.play(&stage).await {
            Ok(()) if stage.is_ending() => return,
            Ok(()) => {}
            Err(error) => {
                if !stage.record_fault(L::NAME, transitions, &error) {
                    if stage.is_ending() {
                        return;
                    }
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_excuses_errors_but_not_losses() {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let stage = Stage::new(nowhere, nowhere);
        let ended = || anyhow::anyhow!("the connection is gone");
        let before = stage.run_state().transitions;
        assert!(!stage.record_fault("load", before, &ended()));
        stage.begin_or_end_restart();
        assert!(stage.record_fault("load", before, &ended()));
        assert!(!stage.record_fault("load", before, &violation("7 is lost")));
        let (faults, count) = stage.faults();
        assert_eq!((faults.len(), count), (2, 2));
        assert_eq!(faults[1].text, "7 is lost");
    }
}
