//! State that all shards of a server share.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use fanline_engine::codec::websocket::UpgradeRules;
use fanline_engine::gateway::GatewayEvent;
use fanline_engine::route::RouteEvent;
use fanline_engine::{Batch, ShardConfig};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{
    AccountRequest, AccountResolver, CalloutRequest, Command, ConnectionEvent, InlineService,
    Mailbox, PanicStop, SyncTimes,
};
use crate::auth_pool::AuthPool;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// The longest sleep between checks for due timers. Deadlines come from clients and files, and may be too
/// late for an `Instant`.
const SLEEP_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Largest number of connections for each shard that are accepted but not yet opened. Further connections
/// wait in the kernel's backlog, because thousands of them in a shard's queue would delay open connections.
pub(crate) const ARRIVALS_MAX: usize = 16;

/// Handshake settings of listeners.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    pub(crate) proxy_protocol: bool,
    pub(crate) websocket: Option<WebSocketListener>,
}

#[derive(Debug)]
pub(crate) struct WebSocketListener {
    pub(crate) rules: UpgradeRules,
    pub(crate) handshake_timeout: Duration,
}

/// State that all shards of a server share.
pub(crate) struct Common {
    /// The configuration that shards start with.
    pub(crate) config: Arc<ShardConfig>,
    /// The mailbox of each shard, followed by that of the JetStream service if there is one.
    pub(crate) mailboxes: Vec<Mailbox>,
    /// A count that a shard increments after it has posted changes of its interest to all other shards.
    pub(crate) interest: AtomicU64,
    /// The running JetStream service, for small work on a shard's own thread.
    pub(crate) jetstream: OnceLock<Weak<dyn InlineService>>,
    /// Threads for slow authentication.
    pub(crate) auth_pool: AuthPool,
    /// Durations of disk syncs.
    pub(crate) sync_times: Arc<SyncTimes>,
    /// The commands of the shards. The first one serves leaf nodes.
    pub(crate) shards: OnceLock<Vec<mpsc::UnboundedSender<Command>>>,
    /// The resolver of unknown accounts, in operator mode.
    pub(crate) resolver: OnceLock<AccountResolver>,
    /// The task that sends auth callout requests.
    pub(crate) callout: OnceLock<mpsc::UnboundedSender<CalloutRequest>>,
    /// The task that dials other servers of the cluster.
    pub(crate) route_events: OnceLock<mpsc::UnboundedSender<RouteEvent>>,
    /// The task that dials other clusters.
    pub(crate) gateway_events: OnceLock<mpsc::UnboundedSender<GatewayEvent>>,
    pub(crate) started: Instant,
    /// The receiver of connection events.
    pub(crate) events: OnceLock<mpsc::Sender<ConnectionEvent>>,
    pub(crate) listeners: Listeners,
    /// A connection that is accepted but not yet opened has one permit.
    pub(crate) arrivals: Arc<Semaphore>,
    /// Number of open connections of each shard, counted from accept to close.
    pub(crate) connections: Vec<AtomicUsize>,
    /// Largest number of closed connections that all shards store together.
    pub(crate) closed_clients_max: usize,
    /// Stops the server after a panic.
    pub(crate) panic_stop: Arc<PanicStop>,
}

impl Common {
    /// Converts a time since the start to tokio's instant. A time more than [`SLEEP_MAX`] ahead is shortened
    /// to that. The caller then finds nothing due, and checks again.
    pub(crate) fn instant(&self, since_start: Duration) -> tokio::time::Instant {
        let at_most = self.started.elapsed() + SLEEP_MAX;
        (self.started + since_start.min(at_most)).into()
    }

    /// Posts a batch to another shard. A small batch for an idle JetStream service is processed on this
    /// thread instead. That is faster than waking the JetStream thread and being woken by it.
    pub(crate) fn post(&self, to: usize, batch: &mut Batch) {
        let is_for_jetstream = to + 1 == self.mailboxes.len();
        let jetstream = self.jetstream.get().filter(|_| is_for_jetstream);
        let is_done = jetstream
            .and_then(Weak::upgrade)
            .is_some_and(|jetstream| jetstream.try_run(batch));
        if !is_done {
            self.mailboxes[to].post(batch);
        }
    }

    /// Requests an account from the resolver, for a shard. The returned receiver completes when the shard
    /// knows the account, or when the account was not found. Returns `None` without a resolver.
    pub(crate) fn look_up_account(
        &self,
        account: String,
        shard: usize,
    ) -> Option<oneshot::Receiver<()>> {
        let (done, is_done) = oneshot::channel();
        let request = AccountRequest {
            account,
            shard,
            done,
        };
        // If the resolver's thread has ended, the request is dropped, and the receiver completes.
        drop(self.resolver.get()?.wanted.send(request));
        Some(is_done)
    }

    pub(crate) fn connection_count(&self) -> usize {
        // Relaxed suffices, because the sum is used only for a limit and for reports.
        self.connections
            .iter()
            .map(|c| c.load(Ordering::Relaxed))
            .sum()
    }
}
