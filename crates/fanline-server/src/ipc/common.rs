//! What all shards of a server share.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use fanline_engine::codec::websocket::UpgradeRules;
use fanline_engine::{Batch, ShardConfig};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{
    AccountRequest, AccountResolver, CalloutRequest, Command, ConnectionEvent, InlineService,
    Mailbox, PanicStop, SyncTimes,
};
use crate::auth_pool::AuthPool;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Nothing sleeps longer without a look at what is due. Deadlines come from clients and from files, and need not be
/// times that a clock can show.
const SLEEP_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Connections for each shard that were accepted and not opened yet. More wait in the kernel's backlog: in the queue of
/// a shard, thousands of new connections would delay those that are open.
pub(crate) const ARRIVALS_MAX: usize = 16;

/// What listeners do before a session begins.
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

/// What all shards of a server share.
pub(crate) struct Common {
    /// What shards begin with.
    pub(crate) config: Arc<ShardConfig>,
    /// One for each shard, and the JetStream service's after them when there is one.
    pub(crate) mailboxes: Vec<Mailbox>,
    /// Counts the changes of who wants what, each after all shards have been told.
    pub(crate) interest: AtomicU64,
    /// The JetStream service, once there is one, for shards that have little for it.
    pub(crate) jetstream: OnceLock<Weak<dyn InlineService>>,
    /// Whatever takes long before a client is let in.
    pub(crate) auth_pool: AuthPool,
    /// How long the disk takes.
    pub(crate) sync_times: Arc<SyncTimes>,
    /// Who serves leafs.
    pub(crate) leafs: OnceLock<mpsc::UnboundedSender<Command>>,
    /// Whom to ask for accounts that are not known, if there is somebody.
    pub(crate) resolver: OnceLock<AccountResolver>,
    /// Who asks the service that decides who may connect.
    pub(crate) callout: OnceLock<mpsc::UnboundedSender<CalloutRequest>>,
    pub(crate) started: Instant,
    /// Who is told of connections that come and go.
    pub(crate) events: OnceLock<mpsc::Sender<ConnectionEvent>>,
    pub(crate) listeners: Listeners,
    /// One permit for each connection that was accepted and that no shard has opened yet.
    pub(crate) arrivals: Arc<Semaphore>,
    /// Open connections, counted from accept to close, of each shard.
    pub(crate) connections: Vec<AtomicUsize>,
    /// Closed clients that are remembered by all shards together.
    pub(crate) closed_clients_max: usize,
    /// Stops the server after a panic.
    pub(crate) panic_stop: Arc<PanicStop>,
}

impl Common {
    /// A time since the start as the runtime counts it. What is further ahead than that can be comes earlier: then
    /// nothing is due, and it is looked at again.
    pub(crate) fn instant(&self, since_start: Duration) -> tokio::time::Instant {
        let at_most = self.started.elapsed() + SLEEP_MAX;
        (self.started + since_start.min(at_most)).into()
    }

    /// Gives a batch to another shard. What the JetStream service would do with it is done here and now, if that
    /// is little and the JetStream service has nothing else to do: waking it, to be woken by it, takes longer.
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

    /// Requests an account of the resolver, for a shard. The receiver ends when the shard knows the account, or when it
    /// was not found. Returns `None` without a resolver.
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
        // A thread that has ended drops the request, which ends the receiver.
        drop(self.resolver.get()?.wanted.send(request));
        Some(is_done)
    }

    pub(crate) fn connection_count(&self) -> usize {
        // Only a limit and a report depend on it, so no order with anything else is needed.
        self.connections
            .iter()
            .map(|c| c.load(Ordering::Relaxed))
            .sum()
    }
}
