//! State that the threads of a server share, and the assignment of connections to shards.

mod accounts;
mod reloads;

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use fanline_engine::auth::AccountId;
use fanline_engine::auth::nkey::SecretKey;
use fanline_engine::{Access, ServerInfo};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch};

use crate::client::{Client, ClientError, ConnectOptions};
use crate::cluster::DialledRoute;
use crate::gateway::DialledGateway;
use crate::ipc::{Command, Common, IN_PROCESS_PIPE_BYTES, Incoming, Listener, Transport};
use crate::jetstream;
use crate::leaf::Dialled;
use crate::options::{Addresses, ClusterOptions, LeafnodeRemote, Options};
use crate::sync::{AtomicU64, AtomicUsize, Lock, MutexGuard, Ordering};
use crate::tls::ListenersTls;

pub(crate) use accounts::newer_tokens;
pub(crate) use reloads::Reloader;
pub use reloads::{ReloadRequest, ReloadRequests};

/// State that the handle, the control thread, and monitoring share.
pub(crate) struct Shared {
    pub(crate) common: Arc<Common>,
    pub(crate) shards: Vec<mpsc::UnboundedSender<Command>>,
    /// The JetStream service, if JetStream is enabled.
    pub(crate) jetstream: Option<mpsc::UnboundedSender<jetstream::Command>>,
    /// Users, accounts, and permissions.
    pub(crate) access: Lock<Arc<Access>>,
    /// Notified when all shards have been sent a change of `access`.
    pub(crate) access_changed: Notify,
    pub(crate) next_cid: AtomicU64,
    pub(crate) next_shard: AtomicUsize,
    pub(crate) started_at: SystemTime,
    pub(crate) info: ServerInfo,
    /// The server's signing key. Its public part is the server's id.
    pub(crate) key: SecretKey,
    pub(crate) options: Lock<Arc<Options>>,
    /// TLS settings of new connections.
    pub(crate) tls: Lock<Arc<ListenersTls>>,
    /// The receiver of reload requests from the system account.
    pub(crate) reloader: Reloader,
    pub(crate) addresses: Addresses,
    /// The bridge without credentials, while it is in use.
    pub(crate) default_bridge: Lock<Option<Weak<dyn Any + Send + Sync>>>,
    /// The options of the cluster.
    pub(crate) cluster: watch::Sender<Option<ClusterOptions>>,
    /// Remotes of leaf nodes.
    pub(crate) remotes: watch::Sender<Vec<LeafnodeRemote>>,
}

impl Shared {
    /// Returns users, accounts, and permissions.
    pub(crate) fn access(&self) -> Arc<Access> {
        Arc::clone(&self.lock_access())
    }

    /// Locks the access rules for a change. Other changes wait.
    pub(crate) fn lock_access(&self) -> MutexGuard<'_, Arc<Access>> {
        self.access.lock()
    }

    /// Returns the current options.
    pub(crate) fn options(&self) -> Arc<Options> {
        Arc::clone(&self.options.lock())
    }

    /// Returns the name of the cluster.
    pub(crate) fn cluster_name(&self) -> Option<String> {
        let name = self.options().cluster_name.clone();
        name.or_else(|| self.info.cluster.clone())
    }

    /// Returns the TLS settings of new connections.
    pub(crate) fn tls(&self) -> Arc<ListenersTls> {
        Arc::clone(&self.tls.lock())
    }

    /// Sends a command to one shard.
    pub(crate) fn send(&self, shard: usize, command: Command) {
        if let Some(shard) = self.shards.get(shard) {
            // A shard that has ended has no work left.
            let _ = shard.send(command);
        }
    }

    /// Sends new accounts to the JetStream service.
    pub(crate) fn send_accounts_to_jetstream(&self, access: &Arc<Access>) {
        if let Some(jetstream) = &self.jetstream {
            // The send fails if the service has ended, which then needs no accounts.
            let _ = jetstream.send(jetstream::Command::SetAccounts(Arc::clone(access)));
        }
    }

    /// Assigns a connection to the shard with the fewest connections.
    pub(crate) fn assign(&self, transport: Transport, arrival: Option<OwnedSemaphorePermit>) {
        let counts = &self.common.connections;
        // The counts are a hint. Concurrent callers may choose the same shard.
        let start = self.next_shard.fetch_add(1, Ordering::Relaxed);
        let order = (0..counts.len()).map(|i| (start + i) % counts.len());
        let shard = order
            .min_by_key(|i| counts[*i].load(Ordering::Relaxed))
            .unwrap_or(0);
        let cid = self.next_cid.fetch_add(1, Ordering::Relaxed);
        let is_full = self.common.connection_count() >= self.options().limits.connections_max;
        // A connection above the limit is not counted, although it stays open until its error is sent.
        counts[shard].fetch_add(usize::from(!is_full), Ordering::Relaxed);
        // A shard that has ended drops the connection.
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
            // The first shard passes a route on to the one that serves what it carries.
            Listener::Leafs | Listener::Routes | Listener::Gateways => {
                self.serve_on(0, transport, Some(arrival));
            }
            _ => self.assign(transport, Some(arrival)),
        }
    }

    /// Assigns a dialed connection to the shard of leaf nodes.
    pub(crate) fn serve_dialled(&self, dialled: Dialled) {
        self.serve_on(0, Transport::Dialled(dialled.into()), None);
    }

    /// Assigns a dialed route to the shard that serves what it carries.
    pub(crate) fn serve_route(&self, dialled: DialledRoute) {
        let settings = self.common.config.routes.as_ref();
        let shard = settings.map_or(0, |settings| settings.shard_of(&dialled.dial.carries));
        self.serve_on(usize::from(shard), Transport::Route(dialled.into()), None);
    }

    /// Assigns a dialed gateway connection to the shard that serves gateways.
    pub(crate) fn serve_gateway(&self, dialled: DialledGateway) {
        self.serve_on(0, Transport::Gateway(dialled.into()), None);
    }

    /// Assigns a connection to another server to a shard.
    fn serve_on(&self, shard: usize, transport: Transport, arrival: Option<OwnedSemaphorePermit>) {
        let cid = self.next_cid.fetch_add(1, Ordering::Relaxed);
        let _ = self.shards[shard].send(Command::Serve {
            transport,
            cid,
            is_full: false,
            arrival,
        });
    }

    /// Connects a system client in an account. The first shard serves it.
    ///
    /// # Errors
    ///
    /// Fails if the server stops.
    pub(crate) async fn system_client(&self, account: AccountId) -> Result<Client, ClientError> {
        let (ours, theirs) = tokio::io::duplex(IN_PROCESS_PIPE_BYTES);
        let _ = self.shards[0].send(Command::Serve {
            transport: Transport::SystemClient(theirs, account),
            // Connections of clients have other ids.
            cid: 0,
            is_full: false,
            arrival: None,
        });
        Client::over(ours, &ConnectOptions::system_client()).await
    }

    /// Returns the shard with the most connections.
    pub(crate) fn fullest_shard(&self) -> &mpsc::UnboundedSender<Command> {
        let counts = self
            .common
            .connections
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let fullest = counts.zip(&self.shards).max_by_key(|(count, _)| *count);
        fullest.expect("there is at least one shard").1
    }

    /// Closes clients in excess of `max`, on the shards with the most connections.
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

/// Queries of subscriptions in the default account, for publishers in this process.
pub(crate) struct Interest {
    pub(crate) common: Arc<Common>,
    pub(crate) shard: mpsc::UnboundedSender<Command>,
}

impl Interest {
    /// Returns the generation of subscriptions. Results of `ask` stay valid while the generation is the same.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        // Acquire pairs with the Release in the shard that increments the count. If the caller then sends a
        // query, the queried shard knows at least the subscriptions that the loaded count includes.
        self.common.interest.load(Ordering::Acquire)
    }

    /// Queries whether a subject has subscribers. The receiver fails if the server has stopped.
    pub(crate) fn ask(&self, subject: &Arc<str>) -> oneshot::Receiver<bool> {
        let (sender, answer) = oneshot::channel();
        // A shard that has ended drops the sender.
        let _ = self
            .shard
            .send(Command::HasInterest(Arc::clone(subject), sender));
        answer
    }
}
