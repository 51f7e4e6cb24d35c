//! Requests of shards to other threads: to the JetStream service, the auth callout, and the account resolver.

use std::sync::Arc;

use fanline_engine::Batch;
use fanline_engine::auth::Grant;
use fanline_engine::auth::callout::Caller;
use tokio::sync::{mpsc, oneshot};

use crate::account_directory::Directory;

/// A JetStream service that can run on another thread than its own.
pub(crate) trait InlineService: Send + Sync {
    /// Processes a batch at once and returns true. If this would take long, leaves the batch unchanged and
    /// returns false. Never waits.
    fn try_run(&self, batch: &mut Batch) -> bool;
}

/// A request to the auth callout service for one client.
pub(crate) struct CalloutRequest {
    pub(crate) caller: Arc<Caller>,
    pub(crate) cid: u64,
    /// The client's shard.
    pub(crate) shard: usize,
    /// Receives the grant; `None` if the client is refused.
    pub(crate) reply: oneshot::Sender<Option<Grant>>,
}

/// A request for an account.
pub(crate) struct AccountRequest {
    pub(crate) account: String,
    /// The requester's shard.
    pub(crate) shard: usize,
    /// Completed when the shard knows the account, or when the account was not found.
    pub(crate) done: oneshot::Sender<()>,
}

/// Access to the resolver thread for other threads.
pub(crate) struct AccountResolver {
    pub(crate) wanted: mpsc::UnboundedSender<AccountRequest>,
    /// The folder of tokens, if the resolver has one.
    pub(crate) directory: Option<Arc<Directory>>,
}

impl AccountResolver {
    /// Returns the store of account JWTs on disk, which the caller may read and update; `None` if the server has
    /// none.
    pub(crate) fn directory(&self) -> Option<&Arc<Directory>> {
        self.directory.as_ref()
    }
}
