//! What the loads share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Error, Result};
use fanline_server::client::{Client, ConnectOptions};
use tokio::sync::watch;

/// Longest wait for anything, unless the server is restarted meanwhile.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Before a load begins again that has failed for no reason that is known.
const PENANCE: Duration = Duration::from_secs(1);
/// Faults that are kept in words; all are counted.
const FAULTS_MAX: usize = 20;

/// Something was lost, repeated or out of order: no restart excuses that.
#[derive(Debug)]
pub(super) struct Violation(pub(super) String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// The error of a violation.
pub(super) fn violation(text: impl Into<String>) -> Error {
    Violation(text.into()).into()
}

/// How far the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    /// Counts the beginnings and the ends of restarts: odd while the server is away.
    pub(super) upheavals: u64,
    /// Loads come to their end.
    pub(super) is_ending: bool,
}

/// What went wrong, by the load that met it.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) load: &'static str,
    pub(super) text: String,
}

/// Counts of what was done, for the report and for checks that nothing stood still.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Deliveries of all loads.
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
    /// Connections of the crowd that are there now.
    pub(super) present: AtomicU64,
}

/// Adds to a count. Nothing depends on when it is seen.
pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Reads one.
pub(super) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// One run.
pub(super) struct Stage {
    pub(super) nats: SocketAddr,
    pub(super) mqtt: SocketAddr,
    pub(super) counts: Counts,
    scene: watch::Sender<Scene>,
    faults: Mutex<(Vec<Fault>, u64)>,
}

impl Stage {
    pub(super) fn new(nats: SocketAddr, mqtt: SocketAddr) -> Arc<Self> {
        let scene = Scene {
            upheavals: 0,
            is_ending: false,
        };
        Arc::new(Self {
            nats,
            mqtt,
            counts: Counts::default(),
            scene: watch::Sender::new(scene),
            faults: Mutex::default(),
        })
    }

    pub(super) fn scene(&self) -> Scene {
        *self.scene.borrow()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.scene().is_ending
    }

    /// A restart begins, or has ended.
    pub(super) fn turn_over(&self) {
        self.scene.send_modify(|scene| scene.upheavals += 1);
    }

    pub(super) fn end(&self) {
        self.scene.send_modify(|scene| scene.is_ending = true);
    }

    /// Waits until the server is there, and says which of its lives that is.
    pub(super) async fn is_up(&self) -> u64 {
        let mut scenes = self.scene.subscribe();
        let is_up = |scene: &Scene| scene.upheavals.is_multiple_of(2);
        // The sender is in this very struct, so there always is an answer.
        let scene = scenes.wait_for(is_up).await.map(|scene| scene.upheavals);
        scene.unwrap_or_default()
    }

    /// A client of its own for a load.
    pub(super) async fn connect(&self, name: &str) -> Result<Client> {
        let options = ConnectOptions::new(&self.nats.to_string())?;
        let options = options.name(name).connect_timeout(PATIENCE);
        Ok(Client::connect(&options).await?)
    }

    /// Notes what has ended a load that began at `upheavals`, unless a restart excuses it. Says whether it
    /// did.
    pub(super) fn judge(&self, load: &'static str, upheavals: u64, error: &Error) -> bool {
        let is_excused = self.scene().upheavals != upheavals && !error.is::<Violation>();
        if !is_excused {
            let text = format!("{error:#}");
            // No update is left half done by a panic.
            let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
            faults.1 += 1;
            if faults.0.len() < FAULTS_MAX {
                eprintln!("{load}: {text}");
                faults.0.push(Fault { load, text });
            }
        }
        is_excused
    }

    /// What went wrong: the first of it in words, and how often in all.
    pub(super) fn faults(&self) -> (Vec<Fault>, u64) {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.clone()
    }
}

/// Something that keeps the server busy and checks what comes of it.
pub(super) trait Load: Send {
    /// As reports call it.
    const NAME: &'static str;

    /// Goes on until the loads are to end. An error ends it early: it is begun again when the server is
    /// there, and goes on where it was.
    fn play(&mut self, stage: &Stage) -> impl Future<Output = Result<()>> + Send;
}

/// Plays a load to the end of the run.
pub(super) async fn keep<L: Load>(stage: Arc<Stage>, mut load: L) {
    loop {
        let upheavals = stage.is_up().await;
        match load.play(&stage).await {
            Ok(()) if stage.is_ending() => return,
            Ok(()) => {}
            Err(error) => {
                if !stage.judge(L::NAME, upheavals, &error) {
                    if stage.is_ending() {
                        return;
                    }
                    tokio::time::sleep(PENANCE).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_excuses_errors_but_no_loss() {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let stage = Stage::new(nowhere, nowhere);
        let ended = || anyhow::anyhow!("the connection is gone");
        let before = stage.scene().upheavals;
        assert!(!stage.judge("load", before, &ended()));
        stage.turn_over();
        assert!(stage.judge("load", before, &ended()));
        assert!(!stage.judge("load", before, &violation("7 is lost")));
        let (faults, count) = stage.faults();
        assert_eq!((faults.len(), count), (2, 2));
        assert_eq!(faults[1].text, "7 is lost");
    }
}
