//! Requests to read the configuration again. Where that comes from, and what of it was overridden, is
//! known to whoever has started the server.

use tokio::sync::{mpsc, oneshot};

use crate::sync::Lock;

/// Requests that wait to be looked at. One more is told to come again.
const WAITING_MAX: usize = 16;

/// What is answered when nobody looks at them.
const NOBODY: &str = "can only reload config when a file is provided using -c or --config";

/// What users of the system account ask for by `$SYS.REQ.SERVER.<id>.RELOAD`; see
/// [`Handle::reload_requests`](crate::Handle::reload_requests).
#[derive(Debug)]
pub struct ReloadRequests(mpsc::Receiver<ReloadRequest>);

impl ReloadRequests {
    /// Waits for the next one. `None` when they go to somebody else by now. Cancel safe.
    pub async fn next(&mut self) -> Option<ReloadRequest> {
        self.0.recv().await
    }
}

/// One request. Who has asked waits until it is answered; one that is dropped has failed.
#[derive(Debug)]
pub struct ReloadRequest(oneshot::Sender<Result<(), String>>);

impl ReloadRequest {
    /// Says what came of it; if nothing, why, in words for who has asked.
    pub fn answer(self, outcome: Result<(), String>) {
        // Who has asked may be gone.
        let _ = self.0.send(outcome);
    }
}

/// Where requests go.
pub(crate) struct Reloader(Lock<Option<mpsc::Sender<ReloadRequest>>>);

impl Reloader {
    pub(crate) fn new() -> Self {
        Reloader(Lock::new(None))
    }

    /// From now on they go here.
    pub(crate) fn listen(&self) -> ReloadRequests {
        let (to, requests) = mpsc::channel(WAITING_MAX);
        *self.0.lock() = Some(to);
        ReloadRequests(requests)
    }

    /// Has the configuration read again.
    ///
    /// # Errors
    /// Why it was not, in words for who has asked.
    pub(crate) async fn ask(&self) -> Result<(), String> {
        let current = self.0.lock().clone();
        let Some(to) = current else {
            return Err(NOBODY.into());
        };
        let (request, outcome) = oneshot::channel();
        match to.try_send(ReloadRequest(request)) {
            Ok(()) => outcome.await.unwrap_or_else(|_| Err(NOBODY.into())),
            Err(mpsc::error::TrySendError::Full(_)) => Err("too many wait for a reload".into()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(NOBODY.into()),
        }
    }
}
