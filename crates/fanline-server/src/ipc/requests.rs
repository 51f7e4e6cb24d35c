//! Requests of shards to other threads: to the JetStream service, and to those who know whether a client may connect.

use std::sync::Arc;

use fanline_engine::Batch;
use fanline_engine::auth::Grant;
use fanline_engine::auth::callout::Caller;
use tokio::sync::{mpsc, oneshot};

use crate::account_directory::Directory;

/// A JetStream service whose work another thread may do.
pub(crate) trait InlineService: Send + Sync {
    /// Takes a batch and does all that follows from it now; or says no, and the batch is as it was.
    /// Never waits.
    fn try_run(&self, batch: &mut Batch) -> bool;
}

/// A client waits for what the service says of it.
pub(crate) struct CalloutRequest {
    pub(crate) caller: Arc<Caller>,
    pub(crate) cid: u64,
    /// The shard that it is on.
    pub(crate) shard: usize,
    /// Told what it is granted, if anything.
    pub(crate) tell: oneshot::Sender<Option<Grant>>,
}

/// Somebody waits for an account.
pub(crate) struct AccountRequest {
    pub(crate) account: String,
    /// The shard of who waits.
    pub(crate) shard: usize,
    /// Answered when the shard knows the account, or when it was not found.
    pub(crate) done: oneshot::Sender<()>,
}

/// The thread that looks, as others see it.
pub(crate) struct AccountResolver {
    pub(crate) wanted: mpsc::UnboundedSender<AccountRequest>,
    /// The folder in which it looks, if it does.
    pub(crate) directory: Option<Arc<Directory>>,
}

impl AccountResolver {
    /// The folder of tokens, which may be asked for and told of others.
    pub(crate) fn directory(&self) -> Option<&Arc<Directory>> {
        self.directory.as_ref()
    }
}
