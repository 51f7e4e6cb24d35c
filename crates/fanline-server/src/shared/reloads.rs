//! Requests to reload the configuration. The program that started the server handles them, because only it
//! knows the file and the overrides.

use tokio::sync::{mpsc, oneshot};

use crate::sync::Lock;

/// Largest number of pending requests. Further requests are rejected.
const WAITING_MAX: usize = 16;

/// The error if there is no receiver of requests.
const NOBODY: &str = "can only reload config when a file is provided using -c or --config";

/// Reload requests from users of the system account (`$SYS.REQ.SERVER.<id>.RELOAD`); see
/// [`Handle::reload_requests`](crate::Handle::reload_requests).
#[derive(Debug)]
pub struct ReloadRequests(mpsc::Receiver<ReloadRequest>);

impl ReloadRequests {
    /// Waits for the next request. Returns `None` after another receiver has replaced this receiver. Cancel
    /// safe.
    pub async fn next(&mut self) -> Option<ReloadRequest> {
        self.0.recv().await
    }
}

/// A reload request. The requester waits for the answer. If the request is dropped, the requester receives an
/// error.
#[derive(Debug)]
pub struct ReloadRequest(oneshot::Sender<Result<(), String>>);

impl ReloadRequest {
    /// Reports the result to the requester. An error contains the text for the requester.
    pub fn answer(self, outcome: Result<(), String>) {
        // The send fails if the requester has disconnected.
        let _ = self.0.send(outcome);
    }
}

/// The current receiver of reload requests.
pub(crate) struct Reloader(Lock<Option<mpsc::Sender<ReloadRequest>>>);

impl Reloader {
    pub(crate) fn new() -> Self {
        Reloader(Lock::new(None))
    }

    /// Replaces the receiver.
    pub(crate) fn listen(&self) -> ReloadRequests {
        let (to, requests) = mpsc::channel(WAITING_MAX);
        *self.0.lock() = Some(to);
        ReloadRequests(requests)
    }

    /// Requests a reload and waits for its result.
    ///
    /// # Errors
    ///
    /// Returns an error text for the requester.
    pub(crate) async fn ask(&self) -> Result<(), String> {
        let current = self.0.lock().clone();
        let Some(to) = current else {
            return Err(NOBODY.into());
        };
        let (request, outcome) = oneshot::channel();
        match to.try_send(ReloadRequest(request)) {
            Ok(()) => outcome.await.unwrap_or_else(|_| Err(NOBODY.into())),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err("too many pending reload requests".into())
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(NOBODY.into()),
        }
    }
}
