//! What the threads of a server share, and which shard a connection goes to.

mod accounts;
mod reloads;

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use fanline_engine::auth::AccountId;
use fanline_engine::auth::nkey::SecretKey;
use fanline_engine::{Access, ServerInfo};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

use crate::client::{Client, ClientError, ConnectOptions};
use crate::ipc::{Command, Common, IN_PROCESS_PIPE_BYTES, Incoming, Listener, Transport};
use crate::jetstream;
use crate::leaf::Dialled;
use crate::options::{Addresses, LeafnodeRemote, Options};
use crate::sync::{AtomicU64, AtomicUsize, Lock, MutexGuard, Ordering};
use crate::tls::ListenersTls;

pub(crate) use accounts::newer_tokens;
pub(crate) use reloads::Reloader;
pub use reloads::{ReloadRequest, ReloadRequests};

/// What the handle, the control thread and monitoring share.
pub(crate) struct Shared {
    pub(crate) common: Arc<Common>,
    pub(crate) shards: Vec<mpsc::UnboundedSender<Command>>,
    /// The JetStream service, if there is JetStream.
    pub(crate) jetstream: Option<mpsc::UnboundedSender<jetstream::Command>>,
    /// Who may connect, and what they may do.
    pub(crate) access: Lock<Arc<Access>>,
    pub(crate) next_cid: AtomicU64,
    pub(crate) next_shard: AtomicUsize,
    pub(crate) started_at: SystemTime,
    pub(crate) info: ServerInfo,
    /// What the server signs with; its public part is its id.
    pub(crate) key: SecretKey,
    pub(crate) options: Lock<Arc<Options>>,
    /// What connections begin with.
    pub(crate) tls: Lock<Arc<ListenersTls>>,
    /// Who reads the configuration again when the system account asks for it.
    pub(crate) reloader: Reloader,
    pub(crate) addresses: Addresses,
    /// The bridge without credentials, while it is in use.
    pub(crate) default_bridge: Lock<Option<Weak<dyn Any + Send + Sync>>>,
    /// The servers that this one attaches to.
    pub(crate) remotes: watch::Sender<Vec<LeafnodeRemote>>,
}

impl Shared {
    /// Who may connect, and what they may do.
    pub(crate) fn access(&self) -> Arc<Access> {
        Arc::clone(&self.lock_access())
    }

    /// The same for one who is about to change it: others who want to wait until that is done.
    pub(crate) fn lock_access(&self) -> MutexGuard<'_, Arc<Access>> {
        self.access.lock()
    }

    /// What the server goes by now.
    pub(crate) fn options(&self) -> Arc<Options> {
        Arc::clone(&self.options.lock())
    }

    /// What connections begin with now.
    pub(crate) fn tls(&self) -> Arc<ListenersTls> {
        Arc::clone(&self.tls.lock())
    }

    /// Has one shard do something.
    pub(crate) fn send(&self, shard: usize, command: Command) {
        if let Some(shard) = self.shards.get(shard) {
            // One that is gone has nobody left to do it for.
            let _ = shard.send(command);
        }
    }

    /// Has the JetStream service go by other accounts.
    pub(crate) fn send_accounts_to_jetstream(&self, access: &Arc<Access>) {
        if let Some(jetstream) = &self.jetstream {
            // One that is gone has nothing to keep.
            let _ = jetstream.send(jetstream::Command::SetAccounts(Arc::clone(access)));
        }
    }

    /// Has the shard with the fewest connections serve one more.
    pub(crate) fn assign(&self, transport: Transport, arrival: Option<OwnedSemaphorePermit>) {
        let counts = &self.common.connections;
        // Counts are a hint; two threads that choose at once do no harm.
        let start = self.next_shard.fetch_add(1, Ordering::Relaxed);
        let order = (0..counts.len()).map(|i| (start + i) % counts.len());
        let shard = order
            .min_by_key(|i| counts[*i].load(Ordering::Relaxed))
            .unwrap_or(0);
        let cid = self.next_cid.fetch_add(1, Ordering::Relaxed);
        let is_full = self.common.connection_count() >= self.options().limits.connections_max;
        // One that is refused takes no place while it lingers.
        counts[shard].fetch_add(usize::from(!is_full), Ordering::Relaxed);
        // A shard that is gone has ended with the server; the connection is dropped with it.
        let _ = self.shards[shard].send(Command::Serve {
            transport,
            cid,
            is_full,
            arrival,
        });
    }

    /// Assigns an accepted connection to a shard.
    pub(crate) fn accept(
        &self,
        incoming: Incoming,
        listener: Listener,
        arrival: OwnedSemaphorePermit,
    ) {
        let transport = Transport::Wire(incoming, listener);
        match listener {
            Listener::Leafs => self.serve_on_leaf_shard(transport, Some(arrival)),
            _ => self.assign(transport, Some(arrival)),
        }
    }

    /// Assigns a dialed connection to the shard of leaf nodes.
    pub(crate) fn serve_dialled(&self, dialled: Dialled) {
        self.serve_on_leaf_shard(Transport::Dialled(dialled.into()), None);
    }

    fn serve_on_leaf_shard(&self, transport: Transport, arrival: Option<OwnedSemaphorePermit>) {
        let cid = self.next_cid.fetch_add(1, Ordering::Relaxed);
        let _ = self.shards[0].send(Command::Serve {
            transport,
            cid,
            is_full: false,
            arrival,
        });
    }

    /// Connects a client of the server's own in an account. The first shard serves it.
    ///
    /// # Errors
    /// Fails when the server stops.
    pub(crate) async fn system_client(&self, account: AccountId) -> Result<Client, ClientError> {
        let (ours, theirs) = tokio::io::duplex(IN_PROCESS_PIPE_BYTES);
        let _ = self.shards[0].send(Command::Serve {
            transport: Transport::SystemClient(theirs, account),
            // Not one that a client could have.
            cid: 0,
            is_full: false,
            arrival: None,
        });
        Client::over(ours, &ConnectOptions::system_client()).await
    }

    /// The shard with the most connections.
    pub(crate) fn fullest_shard(&self) -> &mpsc::UnboundedSender<Command> {
        let counts = self
            .common
            .connections
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let fullest = counts.zip(&self.shards).max_by_key(|(count, _)| *count);
        fullest.expect("there is at least one shard").1
    }

    /// Closes as many clients as there are more than `max`, of the shards that have the most.
    pub(crate) fn close_excess(&self, max: usize) {
        let counts = self.common.connections.iter();
        let mut counts: Vec<usize> = counts.map(|count| count.load(Ordering::Relaxed)).collect();
        let before = counts.clone();
        let excess = counts.iter().sum::<usize>().saturating_sub(max);
        for _ in 0..excess {
            if let Some(most) = counts.iter_mut().max() {
                *most -= 1;
            }
        }
        for ((shard, before), left) in self.shards.iter().zip(before).zip(counts) {
            if before > left {
                let _ = shard.send(Command::CloseExcess(before - left));
            }
        }
        if excess > 0 {
            tracing::info!("Closed {excess} connections to fall within max_connections");
        }
    }

    pub(crate) fn send_to_all(&self, command: impl Fn() -> Command) {
        for shard in &self.shards {
            let _ = shard.send(command());
        }
    }
}

/// Whether anybody wants what is published, in the account without a name.
pub(crate) struct Interest {
    pub(crate) common: Arc<Common>,
    pub(crate) shard: mpsc::UnboundedSender<Command>,
}

impl Interest {
    /// Which state of things this is: as long as it is the same, so are the answers.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        // Acquire: what is asked after this is answered by the state that was counted, or a later one.
        self.common.interest.load(Ordering::Acquire)
    }

    /// Asks about a topic. No answer comes when the server has stopped.
    pub(crate) fn ask(&self, topic: &Arc<str>) -> oneshot::Receiver<bool> {
        let (sender, answer) = oneshot::channel();
        // A shard that is gone drops the sender.
        let _ = self
            .shard
            .send(Command::HasInterest(Arc::clone(topic), sender));
        answer
    }
}
