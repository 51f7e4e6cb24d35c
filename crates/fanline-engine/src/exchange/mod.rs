//! The exchange: interest, routes, and delivery of messages to sessions, other shards, and other servers. A
//! *link* is a connection to another server.
//!
//! The exchange knows accounts by number only, and no imports between accounts. It knows no protocol except
//! that of plain NATS clients; see [`Kind`] for the others.

pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod beyond;
pub(crate) mod deliver;
pub(crate) mod gateway_settings;
mod leaf_listener;
pub(crate) mod links;
pub(crate) mod message;
pub(crate) mod outputs;
pub(crate) mod quotas;
mod received;
pub(crate) mod remote;
pub(crate) mod replies;
pub(crate) mod restriction;
pub(crate) mod route_settings;
pub(crate) mod router;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod targets;
pub(crate) mod text;
pub(crate) mod totals;
pub(crate) mod tracing;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;

use crate::auth::{Access, AccountId, Auth};
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::info::ServerInfo;
use crate::limits::Limits;
use crate::random::{FastRandom, Purpose, Random, Seed};
use crate::subject::Filter;
use crate::timers::Timers;
use batch::Batch;
use beyond::Beyond;
pub(crate) use deliver::Kind;
pub use gateway_settings::GatewaySettings;
pub use leaf_listener::LeafListener;
use links::LinkSets;
use outputs::Outputs;
use quotas::Quotas;
pub use remote::SHARDS_MAX;
use remote::{LinkSet, Remote};
pub use route_settings::{CertificateRules, RouteSettings};
use router::{Router, Routers, SubId, Subscription, Subscriptions, replies_of};
use run::Run;
use session::{Session, SessionId};
use targets::RemoteTargets;
use totals::Totals;
use tracing::Traced;

/// Configuration that all shards of a server share.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// Limits of clients.
    pub limits: Limits,
    /// How clients authenticate.
    pub auth: Auth,
    /// Number of shards, at most [`SHARDS_MAX`].
    pub shards: usize,
    /// Whether [`Shard::take_traces`](crate::Shard::take_traces) reports each protocol line.
    pub traces: bool,
    /// Settings for accepted leaf connections, if there is a listener for them.
    pub leafs: Option<Arc<LeafListener>>,
    /// Settings of routes, if the server is in a cluster.
    pub routes: Option<Arc<RouteSettings>>,
    /// Settings of gateways, if the cluster is connected to others.
    pub gateways: Option<Arc<GatewaySettings>>,
}

/// State that connections of all kinds share: sessions, subscriptions, routes, and pending output.
pub(crate) struct Exchange<K: Kind> {
    pub(crate) index: u16,
    pub(crate) config: Arc<ShardConfig>,
    /// The users and accounts of `config.auth`, or those of a reload.
    pub(crate) access: Arc<Access>,
    pub(crate) info: ServerInfo,
    pub(crate) sessions: Slab<Session<K>>,
    /// Time of the next check of each session.
    pub(crate) timers: Timers<SessionId>,
    /// The router of each account.
    pub(crate) routers: Routers,
    pub(crate) subs: Subscriptions,
    /// State of each link set.
    pub(crate) links: LinkSets,
    pub(crate) outputs: Outputs,
    pub(crate) outgoing: Vec<Batch>,
    pub(crate) quotas: Quotas,
    /// State that sessions of one kind share.
    pub(crate) shared: K::Shared,
    /// Counters by account.
    pub(crate) totals: Vec<Totals>,
    pub(crate) random: FastRandom,
    /// Generator of identifiers that a peer must not be able to guess.
    pub(crate) secrets: Random,
    targets: RemoteTargets,
    run: Run,
    /// Buffer for messages whose outgoing form differs from the incoming form.
    pub(crate) scratch: Vec<u8>,
    /// Number of times that clients of this shard have subscribed or unsubscribed.
    pub(crate) interest_changes: u64,
    /// Time at which the first subscription ended after this field was last taken.
    pub(crate) unsubscribed_at: Option<Duration>,
    /// In a cluster, the accounts in which this shard's reply subjects were announced.
    pub(crate) replies_in: HashSet<AccountId>,
    pub(crate) beyond: Beyond,
    /// Whether the other servers of a cluster measure the responder's half of a service latency for this one.
    pub(crate) awaits_halves: bool,
}

impl<K: Kind> Exchange<K> {
    /// Creates an exchange without sessions.
    ///
    /// # Panics
    ///
    /// If there are more than [`SHARDS_MAX`] shards, or `index` is not one of them.
    pub(crate) fn new(index: u16, config: Arc<ShardConfig>, info: ServerInfo, seed: Seed) -> Self {
        assert!(config.shards <= SHARDS_MAX && usize::from(index) < config.shards);
        let mut secrets = Random::new(seed, Purpose::Shard);
        let mut routers = Routers::default();
        routers.ensure(AccountId::GLOBAL);
        Exchange {
            index,
            access: config.auth.directory(),
            info,
            sessions: Slab::new(),
            timers: Timers::default(),
            routers,
            subs: Subscriptions::default(),
            links: LinkSets::default(),
            outputs: Outputs::new(&config.limits, config.traces),
            outgoing: (0..config.shards).map(|_| Batch::default()).collect(),
            quotas: Quotas::default(),
            shared: K::Shared::default(),
            totals: Vec::new(),
            random: FastRandom::new(secrets.number()),
            secrets,
            targets: RemoteTargets::new(Some(index), &config),
            run: Run::default(),
            scratch: Vec::new(),
            interest_changes: 0,
            unsubscribed_at: None,
            replies_in: HashSet::new(),
            beyond: Beyond::default(),
            awaits_halves: false,
            config,
        }
    }

    /// Returns whether this shard serves the links of a set.
    pub(crate) fn serves(&self, set: LinkSet) -> bool {
        self.targets.serves(set)
    }

    /// Returns whether the server may exchange messages with other servers of its cluster, or with other clusters.
    pub(crate) fn has_peers(&self) -> bool {
        self.config.routes.is_some() || self.config.gateways.is_some()
    }

    /// Returns the token in this server's reply subjects, by which the servers of a cluster route responses. It
    /// is empty outside of a cluster.
    pub(crate) fn reply_token(&self) -> &str {
        /// Length of the token. The end of a server's id is random.
        const BYTES: usize = 6;
        let id = match self.has_peers() {
            true => &*self.info.server_id,
            false => "",
        };
        id.get(id.len().saturating_sub(BYTES)..).unwrap_or(id)
    }

    /// Announces the reply subjects of this shard at the first request to an account, if they are not announced
    /// anyway.
    pub(crate) fn announce_replies(&mut self, account: AccountId) {
        if !self.has_peers() || !self.replies_in.insert(account) {
            return;
        }
        let filter = replies_of(self.reply_token(), self.index);
        self.routers.changing(account).record_change(&filter, b"");
        self.announce(Remote::Shard(self.index), account, &filter, b"", 1);
    }

    /// Queues bytes for a session.
    pub(crate) fn send(&mut self, id: SessionId, bytes: &[u8]) {
        let session = &mut self.sessions[id.index()];
        self.outputs.mark_dirty(id.0, session);
        session.out.append(bytes);
        if self.outputs.traces && !bytes.starts_with(b"INFO ") {
            self.outputs.trace_sent(id, bytes);
        }
        // A client that sends requests and never reads the responses is a slow consumer as well.
        let pending_bytes = session.out.pending_bytes();
        if pending_bytes > self.outputs.congested_bytes {
            let most = (self.config.limits).pending_bytes_max_of(session.kind.links().is_some());
            self.outputs.record_congested(id.0, pending_bytes);
            if pending_bytes > most && std::mem::take(&mut self.outputs.overflowed) {
                self.overrun(id);
            }
        }
    }

    /// Marks a session as ending, so that it receives no more messages. Returns false if it was already
    /// marked.
    pub(crate) fn begin_end(&mut self, id: SessionId, reason: CloseReason) -> bool {
        let Some(session) = self.sessions.get_mut(id.index()) else {
            return false;
        };
        let is_first = session.ending.is_none();
        if is_first {
            session.ending = Some(reason);
            self.outputs.ended.push(id);
        }
        is_first
    }

    /// Marks a session with too many pending bytes as ending. Its other state is released later.
    pub(crate) fn overrun(&mut self, id: SessionId) {
        if self.begin_end(id, CloseReason::SlowConsumerPendingBytes) {
            self.outputs.overrun.push(id);
        }
    }

    /// Adds a subscription. The session must have no subscription with this sid.
    pub(crate) fn subscribe(
        &mut self,
        id: SessionId,
        filter: Filter<'_>,
        queue: &[u8],
        sid: &[u8],
        is_filtered: bool,
    ) {
        let session = &mut self.sessions[id.index()];
        let (account, is_system_client) = (session.account, session.is_system_client);
        let router = self.routers.changing(account);
        let Some((sub, weight)) = router.subscribe(&mut self.subs, id.0, sid, filter, queue) else {
            return;
        };
        self.subs.get_mut(sub).set_filtered(is_filtered);
        self.interest_changes += 1;
        session.count_subscription(queue);
        if !is_system_client {
            self.count(account, |own| own.subscriptions += 1);
        }
        if let Some(weight) = weight {
            let from = Remote::Shard(self.index);
            self.announce(from, account, filter.as_bytes(), queue, weight);
        }
    }

    /// Removes a subscription.
    pub(crate) fn drop_subscription(&mut self, id: SubId) {
        self.interest_changes += 1;
        let sub = self.subs.get(id);
        let session = &mut self.sessions[sub.session() as usize];
        if let Some(set) = session.kind.links() {
            self.drop_link_subscription(set, id);
            return;
        }
        session.uncount_subscription(sub.queue());
        let (account, is_system_client) = (session.account, session.is_system_client);
        self.record_unsubscribed();
        if !is_system_client {
            self.count(account, |own| {
                own.subscriptions = own.subscriptions.saturating_sub(1)
            });
        }
        let Exchange {
            routers,
            subs,
            outgoing,
            index,
            ..
        } = self;
        let router = routers.changing(account);
        router.unsubscribe(subs, id, |filter, queue, weight| {
            let from = Remote::Shard(*index);
            announce(outgoing, *index, from, account, filter, queue, weight);
        });
    }

    /// Records that a subscription ended. A requester may have used it to wait for a reply.
    pub(crate) fn record_unsubscribed(&mut self) {
        self.unsubscribed_at.get_or_insert(self.outputs.now);
    }

    /// Announces the interest in a filter of an account to all other shards.
    pub(crate) fn announce(
        &mut self,
        from: Remote,
        account: AccountId,
        filter: &[u8],
        queue: &[u8],
        weight: u32,
    ) {
        let (outgoing, index) = (&mut self.outgoing, self.index);
        announce(outgoing, index, from, account, filter, queue, weight);
    }

    /// Sets the time of a session's next check.
    pub(crate) fn rearm(&mut self, id: SessionId, at: Duration) {
        self.timers.set(id, Some(at));
    }

    /// Sets the time of a session's next check, unless an earlier one is set.
    pub(crate) fn arm_before(&mut self, id: SessionId, at: Duration) {
        self.timers.set_earlier(id, at);
    }

    /// Returns the counters of an account that outlive its sessions.
    pub(crate) fn totals_of(&mut self, account: AccountId) -> &mut Totals {
        let at = account.index();
        if self.totals.len() <= at {
            self.totals.resize(at + 1, Totals::default());
        }
        &mut self.totals[at]
    }

    /// Returns the router that stores a subscription.
    pub(crate) fn router_of(&self, sub: &Subscription) -> &Router {
        let session = &self.sessions[sub.session() as usize];
        let account = session.kind.account_of(sub.sid());
        let account = account.unwrap_or(session.account);
        match session.kind.links() {
            Some(set) => &self.links[set].routers[account],
            None => &self.routers[account],
        }
    }

    /// Returns the name of an account; empty if it was removed.
    pub(crate) fn account_name(&self, account: AccountId) -> String {
        let account = self.access.account(account);
        account.map_or_else(String::new, |account| account.name.clone())
    }

    /// Resolves the filters of the subscriptions in a trace. Must run before a subscription is removed.
    pub(crate) fn name_subscriptions(&self, trace: &mut Traced) {
        trace.name_subscriptions(&self.subs, &self.sessions, &self.routers, &self.access);
    }
}

/// Announces interest in a filter of an account to all other shards. `from` is this shard, or a set of links
/// that this shard serves.
pub(crate) fn announce(
    outgoing: &mut [Batch],
    index: u16,
    from: Remote,
    account: AccountId,
    filter: &[u8],
    queue: &[u8],
    weight: u32,
) {
    for (shard, batch) in outgoing.iter_mut().enumerate() {
        if shard != usize::from(index) {
            batch.push_interest(from, account, filter, queue, weight);
        }
    }
}
