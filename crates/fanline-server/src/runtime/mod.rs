//! The I/O layer of one shard: waits for sockets, timers, and mailboxes, and calls the engine.
//!
//! Everything here runs on one thread and is shared by `Rc`. Other threads reach only the [`Mailbox`] and the
//! command channel.

mod chunks;
mod close_log;
mod closed;
mod connection;
mod dialled;
mod gateways;
mod link;
mod opening;
#[cfg(test)]
mod panic_tests;
mod routes;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::ConnectionKind;
use fanline_engine::{
    AccountId, BatchCursor, ClientUrls, CloseReason, Ended, Peer, ServerInfo, SessionId, Shard,
    ShardConfig, gateway, leaf, route,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tracing::{error, info, trace};

use crate::ipc::{
    Command, Common, ConnectionEvent, ConnectionQuery, ConnectionReport, Listener, Mailbox,
    PoisonCell, Reload,
};
use crate::sync::Ordering;
use crate::tls::ListenersTls;
use crate::wire::{SharedScratch, Wrote};
use chunks::ChunkPool;
use closed::ClosedRing;
use link::Link;

/// Longest time that a publisher waits after each input, or a shard after each batch, for a slow subscriber
/// that still reads.
const SLOW_WAIT_MAX: Duration = Duration::from_millis(2);
/// Longest wait for a subscriber that is close to its limit of pending bytes.
const URGENT_WAIT_MAX: Duration = Duration::from_millis(10);
/// Longest wait for another server. It may share the cores with this server, and then runs less often.
const LEAF_WAIT_MAX: Duration = Duration::from_millis(10);
/// Longest wait for another server with many pending subscription changes, because messages of other clients
/// to that server are sent only after the changes. It is shorter than any ping interval, because a waiting
/// publisher answers no pings.
const INTEREST_WAIT_MAX: Duration = Duration::from_millis(250);
/// Bytes of subscription changes from which [`INTEREST_WAIT_MAX`] applies.
const INTEREST_BYTES_MIN: usize = 16 * 1024;
/// Number of pending bytes below which a subscriber delays no publisher.
const ROOM_AGAIN_BYTES: usize = 1024 * 1024;

/// A subscriber that delays publishers on other shards.
#[derive(Clone, Copy)]
struct Congestion {
    slow: SessionId,
    /// Bytes that the subscriber had accepted when the delay began, to measure its progress.
    written_bytes: u64,
    since: Duration,
}

/// One shard with the state that its tasks share.
pub(crate) struct Runtime {
    index: usize,
    engine: PoisonCell<Shard>,
    /// The connection of each session, by the session's index.
    links: RefCell<Vec<Option<Rc<Link>>>>,
    chunks: RefCell<ChunkPool>,
    common: Arc<Common>,
    /// The engine's configuration.
    config: RefCell<Arc<ShardConfig>>,
    /// TLS settings of new connections.
    tls: RefCell<Arc<ListenersTls>>,
    /// Requests that output is written after all ready sockets have been read.
    flush_wanted: Notify,
    /// Wakes the timer task, because the next deadline is earlier than the one that the task sleeps for.
    deadline_moved: Notify,
    sleeps_until: Cell<Duration>,
    /// Notified when a connection's pending output has become smaller.
    drained: Notify,
    /// The subscriber that currently delays publishers on other shards.
    congestion: Cell<Option<Congestion>>,
    /// Whether a batch was posted to a shard that delays publishers.
    posted_to_congested: Cell<bool>,
    /// The number of interest changes that were posted to other shards.
    interest_posted: Cell<u64>,
    closed: RefCell<ClosedRing>,
    /// Buffers of connections that are not plain TCP.
    scratch: SharedScratch,
}

/// Runs a shard until it receives the command to stop.
pub(crate) async fn run(
    index: usize,
    info: ServerInfo,
    tls: Arc<ListenersTls>,
    common: Arc<Common>,
    commands: mpsc::UnboundedReceiver<Command>,
) {
    let panic_stop = Arc::clone(&common.panic_stop);
    let _guard = panic_stop.guard();
    let seed = crate::identity::new_seed();
    let shard = u16::try_from(index).expect("at most SHARDS_MAX shards");
    let engine = Shard::new(shard, Arc::clone(&common.config), info, seed);
    let closed = ClosedRing::new(common.closed_clients_max, common.connections.len());
    let runtime = Rc::new(Runtime {
        index,
        engine: PoisonCell::new(engine, &panic_stop),
        links: RefCell::new(Vec::new()),
        chunks: RefCell::new(ChunkPool::default()),
        config: RefCell::new(Arc::clone(&common.config)),
        tls: RefCell::new(tls),
        common,
        flush_wanted: Notify::new(),
        deadline_moved: Notify::new(),
        sleeps_until: Cell::new(Duration::MAX),
        drained: Notify::new(),
        congestion: Cell::new(None),
        posted_to_congested: Cell::new(false),
        interest_posted: Cell::new(0),
        closed: closed.into(),
        scratch: SharedScratch::default(),
    });
    // These are separate tasks, not parts of this future. The tokio runtime polls for events before it polls
    // this future again, and each such poll is a system call.
    tokio::task::spawn_local(flush_when_wanted(Rc::clone(&runtime)));
    tokio::task::spawn_local(run_timers(Rc::clone(&runtime)));
    tokio::task::spawn_local(read_mailbox(Rc::clone(&runtime)));
    tokio::select! {
        // A poisoned shard ends at once. Its connections close with the runtime, and nothing can use the shard
        // again.
        biased;
        () = runtime.engine.poisoned() => {}
        () = handle_commands(&runtime, commands) => {}
    }
}

async fn handle_commands(runtime: &Rc<Runtime>, mut commands: mpsc::UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        match command {
            Command::Serve {
                transport,
                cid,
                is_full,
                arrival,
            } => {
                connection::spawn(runtime, transport, cid, is_full, arrival);
            }
            Command::HasInterest(subject, to) => drop(to.send(runtime.has_interest(&subject))),
            Command::Status(to) => drop(to.send(runtime.engine.borrow().status_by_account())),
            Command::Kick(cid, to) => runtime.change_client(to, |shard| shard.kick(cid)),
            Command::CloseOverLimit(cid, to) => {
                runtime.change_client(to, |shard| shard.close_over_limit(cid));
            }
            Command::RequestReconnect(cid, to) => {
                runtime.change_client(to, |shard| shard.send_lame_duck(cid));
            }
            Command::SetRemoteConnections(account, clients, leafnodes) => {
                let mut engine = runtime.engine.borrow_mut();
                engine.set_remote_connections(account, clients, leafnodes);
            }
            Command::LeafNodes(with_subscriptions, to) => {
                drop(to.send(runtime.engine.borrow().leafs(with_subscriptions)));
            }
            Command::Routes(detail, to) => {
                drop(to.send(runtime.engine.borrow().routes(detail)));
            }
            Command::Gateways(command) => gateways::apply(runtime, command),
            Command::ChangeRoutes(change) => routes::apply(runtime, change),
            Command::CloseRemote(remote) => {
                runtime.engine.borrow_mut().end_leaf(remote);
                runtime.flush();
            }
            // If the requester has timed out, no report is made, because a report delays messages.
            Command::Connections(_, to) if to.is_closed() => {}
            Command::Connections(wanted, to) => drop(to.send(runtime.connections(&wanted))),
            Command::SetConnectUrls(urls) => runtime.set_connect_urls(urls),
            Command::AnnounceLameDuck => {
                runtime.engine.borrow_mut().announce_lame_duck();
                runtime.flush();
            }
            Command::ReplaceAccess(access) => {
                let now = runtime.now();
                runtime.engine.borrow_mut().replace_access(access, now);
                runtime.settle(usize::MAX);
            }
            Command::Barrier(to) => drop(to.send(())),
            #[cfg(test)]
            Command::Run(work) => work(runtime),
            Command::Reload(new) => runtime.reload(new),
            Command::ReplaceTls(tls) => drop(runtime.tls.replace(tls)),
            Command::CloseSome(count) => runtime.end_sessions(count),
            Command::CloseExcess(count) => {
                runtime.engine.borrow_mut().close_excess(count);
                runtime.settle(usize::MAX);
            }
            Command::Stop => {
                // Messages published before the command are still delivered.
                runtime.take_batches();
                runtime.end_sessions(usize::MAX);
                // Lets each connection's task write once and close.
                for _ in 0..2 {
                    tokio::task::yield_now().await;
                }
                return;
            }
        }
    }
}

/// Writes after all ready connections have been read, so that several messages for one subscriber leave in one
/// write.
async fn flush_when_wanted(runtime: Rc<Runtime>) {
    let _guard = runtime.common.panic_stop.guard();
    loop {
        runtime.flush_wanted.notified().await;
        runtime.flush();
    }
}

async fn run_timers(runtime: Rc<Runtime>) {
    let _guard = runtime.common.panic_stop.guard();
    loop {
        let next = runtime.engine.borrow().next_timeout();
        runtime.sleeps_until.set(next.unwrap_or(Duration::MAX));
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(runtime.common.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep => {
                let now = runtime.now();
                runtime.engine.borrow_mut().handle_timeout(now);
                runtime.flush();
            }
            () = runtime.deadline_moved.notified() => {}
        }
    }
}

async fn read_mailbox(runtime: Rc<Runtime>) {
    let _guard = runtime.common.panic_stop.guard();
    let mailbox = &runtime.common.mailboxes[runtime.index];
    loop {
        mailbox.wait().await;
        runtime.take_batches();
        runtime.settle(usize::MAX);
        if !mailbox.is_empty() {
            // Other shards may post without pause. So let the tasks of sockets run before the mailbox is read
            // again.
            tokio::task::yield_now().await;
        }
    }
}

impl Runtime {
    /// Returns whether a subscription in the global account matches the subject.
    fn has_interest(&self, subject: &str) -> bool {
        // Interest changes that were announced before the question are applied first.
        self.take_batches();
        self.settle(usize::MAX);
        let mut engine = self.engine.borrow_mut();
        engine.has_subscriber(AccountId::GLOBAL, subject.as_bytes())
    }

    /// Changes a client, and reports whether it was found.
    fn change_client(&self, to: oneshot::Sender<bool>, change: impl FnOnce(&mut Shard) -> bool) {
        let found = change(&mut self.engine.borrow_mut());
        self.flush();
        let _ = to.send(found);
    }

    fn now(&self) -> Duration {
        self.common.started.elapsed()
    }

    fn config(&self) -> Arc<ShardConfig> {
        Arc::clone(&self.config.borrow())
    }

    /// Returns the TLS settings of new connections.
    fn tls(&self) -> Arc<ListenersTls> {
        Arc::clone(&self.tls.borrow())
    }

    /// Returns the kind of a listener's connections if they need no handshake before the session.
    fn plain(&self, listener: Listener) -> Option<ConnectionKind> {
        let tls = self.tls.borrow();
        let proxied = self.common.listeners.proxy_protocol;
        match listener {
            Listener::Clients if tls.clients.is_none() && !proxied => {
                Some(ConnectionKind::Standard)
            }
            Listener::Mqtt if tls.mqtt.is_none() => Some(ConnectionKind::Mqtt),
            _ => None,
        }
    }

    fn link(&self, id: SessionId) -> Option<Rc<Link>> {
        self.links.borrow().get(id.index()).cloned().flatten()
    }

    /// Applies the batches of other shards.
    fn take_batches(&self) {
        let mailbox = &self.common.mailboxes[self.index];
        self.engine.borrow_mut().note_time(self.now());
        mailbox.take(|batch| {
            // A panic would lose the rest of the batch for all connections.
            let _guard = self.engine.guard();
            let mut cursor = BatchCursor::default();
            loop {
                let receipt = self.engine.borrow_mut().apply(batch, &mut cursor);
                if receipt.must_flush || receipt.congested.is_some() {
                    self.flush();
                }
                if let Some(slow) = receipt.congested {
                    self.note_congestion(slow);
                }
                if !receipt.must_flush {
                    return;
                }
            }
        });
    }

    /// Records that a subscriber reads messages of other shards too slowly. Publishers of those shards wait
    /// while the subscriber makes progress, like publishers of this shard.
    fn note_congestion(&self, slow: SessionId) {
        let Some(link) = self.link(slow) else { return };
        if self.engine.borrow().pending_bytes(slow) < ROOM_AGAIN_BYTES {
            return;
        }
        let now = self.now();
        let written = link.written_bytes();
        let is_stuck = match self.congestion.get() {
            Some(known) if known.slow == slow && known.written_bytes == written => {
                now.saturating_sub(known.since) > SLOW_WAIT_MAX
            }
            _ => {
                self.congestion.set(Some(Congestion {
                    slow,
                    written_bytes: written,
                    since: now,
                }));
                false
            }
        };
        self.common.mailboxes[self.index].set_congested(!is_stuck);
    }

    /// Ends the congestion that [`Runtime::note_congestion`] has recorded, if the subscriber has few pending
    /// bytes.
    fn end_congestion(&self) {
        let Some(Congestion { slow, .. }) = self.congestion.get() else {
            return;
        };
        if self.engine.borrow().pending_bytes(slow) < ROOM_AGAIN_BYTES {
            self.congestion.set(None);
            self.common.mailboxes[self.index].set_congested(false);
        }
    }

    /// Posts the engine's batches to other shards, and schedules writes to connections. Much output is
    /// written immediately. Otherwise it is written together with the output of other ready sockets.
    fn settle(&self, produced_bytes: usize) {
        const WRITE_AT_ONCE_BYTES: usize = 32 * 1024;
        self.post_batches();
        let engine = self.engine.borrow();
        let next = engine.next_timeout();
        let has_work = engine.has_work();
        let has_notices = engine.has_notices()
            || engine.has_leaf_lines()
            || engine.has_route_events()
            || engine.has_gateway_events();
        drop(engine);
        if has_notices {
            self.log_notices();
        }
        if next.is_some_and(|at| at < self.sleeps_until.get()) {
            self.deadline_moved.notify_one();
        }
        if !has_work {
            return;
        }
        if produced_bytes >= WRITE_AT_ONCE_BYTES {
            self.flush();
        } else {
            self.flush_wanted.notify_one();
        }
    }

    /// Posts batches to other shards and logs protocol traces. Both happen before any write to a connection,
    /// so that a client that has received a reply finds its request in the log.
    fn post_batches(&self) {
        let mut engine = self.engine.borrow_mut();
        for (to, mailbox) in self.common.mailboxes.iter().enumerate() {
            let batch = engine.outgoing(to);
            if to != self.index && !batch.is_empty() {
                self.common.post(to, batch);
                if mailbox.is_congested() {
                    self.posted_to_congested.set(true);
                }
            }
        }
        let changes = engine.interest_changes();
        if self.interest_posted.replace(changes) != changes {
            // Release, for the Acquire in `Interest::generation`. If a thread loads the new count and then
            // queries a shard, the posted changes are already in that shard's mailbox.
            self.common.interest.fetch_add(1, Ordering::Release);
        }
        let has_traces = engine.has_traces();
        drop(engine);
        if has_traces {
            self.emit_traces();
        }
    }

    /// Writes pending output of all connections, and wakes the tasks of connections that end.
    fn flush(&self) {
        // Batches are posted before anything is written. A reply may confirm a change to the client, and then
        // the batch with this change must already be in the other shards' mailboxes.
        self.post_batches();
        loop {
            let Some(id) = self.engine.borrow_mut().next_dirty() else {
                break;
            };
            let Some(link) = self.link(id) else { continue };
            if !link.is_draining() {
                self.write(id, &link);
            }
        }
        loop {
            let Some((id, reason)) = self.engine.borrow_mut().next_ended() else {
                break;
            };
            if let Some(link) = self.link(id) {
                link.end(reason);
            }
        }
        // A completed write may release MQTT messages, and ended sessions produce announcements.
        self.post_batches();
        self.end_congestion();
    }

    /// Writes as much to a connection as it accepts. The connection's own task writes the rest.
    fn write(&self, id: SessionId, link: &Rc<Link>) {
        let mut engine = self.engine.borrow_mut();
        let wrote = link.try_write_all(engine.outbox(id));
        match wrote {
            Wrote::Failed => engine.end(id, CloseReason::WriteError),
            // The time is needed only for a blocked write, so the clock is not read for other writes.
            Wrote::All => engine.written(id, Duration::ZERO),
            Wrote::Blocked => engine.written(id, self.now()),
        }
        drop(engine);
        if matches!(wrote, Wrote::Blocked) {
            link.request_drain();
        }
    }

    /// Returns whether any shard delays publishers.
    fn is_any_mailbox_congested(&self) -> bool {
        self.common.mailboxes.iter().any(Mailbox::is_congested)
    }

    /// Returns whether any mailbox contains more than its limit.
    fn is_any_mailbox_full(&self) -> bool {
        self.common.mailboxes.iter().any(Mailbox::is_full)
    }

    /// Sends an event to the system account. The event is dropped if the queue is full.
    fn send_event(&self, event: impl FnOnce() -> Option<ConnectionEvent>) {
        if let Some(events) = self.common.events.get()
            && let Ok(permit) = events.try_reserve()
            && let Some(event) = event()
        {
            permit.send(event);
        }
    }

    /// Stores a closed connection. Sends an event if the connect event was sent, or if the client was
    /// refused.
    fn record_closed(&self, ended: Ended, was_announced: bool) {
        let is_refusal = ended.leaf.is_none()
            && matches!(
                ended.reason,
                CloseReason::AuthenticationFailure | CloseReason::AuthenticationTimeout
            );
        if ended.route.is_some() || ended.gateway.is_some() {
            return;
        }
        self.closed.borrow_mut().push(ended, self.now());
        let closed = self.closed.borrow();
        let last = || closed.iter().next_back().cloned().map(Box::new);
        if was_announced {
            self.send_event(|| last().map(ConnectionEvent::Closed));
        } else if is_refusal {
            self.send_event(|| last().map(ConnectionEvent::Refused));
        }
    }

    fn end_sessions(&self, count: usize) {
        let mut engine = self.engine.borrow_mut();
        let ids: Vec<SessionId> = engine.session_ids().take(count).collect();
        let links = match count {
            usize::MAX => [engine.leaf_ids(), engine.route_ids(), engine.gateway_ids()].concat(),
            _ => Vec::new(),
        };
        for id in ids.into_iter().chain(links) {
            engine.end(id, CloseReason::ServerShutdown);
        }
        drop(engine);
        self.flush();
    }

    /// Applies another configuration.
    fn reload(&self, new: Box<Reload>) {
        let now = self.now();
        self.tls.replace(new.tls);
        self.config.replace(Arc::clone(&new.config));
        let mut engine = self.engine.borrow_mut();
        engine.reload(new.config, new.info, new.access, now);
        drop(engine);
        self.settle(usize::MAX);
    }

    fn connections(&self, wanted: &ConnectionQuery) -> ConnectionReport {
        let mut report = ConnectionReport::default();
        if wanted.open {
            let engine = self.engine.borrow();
            for id in engine.session_ids() {
                if wanted.behind && !engine.is_behind(id) {
                    continue;
                }
                let Some(mut status) = engine.connection(id) else {
                    continue;
                };
                if !wanted.includes(status.cid) {
                    continue;
                }
                if wanted.subscriptions {
                    status.subscriptions_list = engine.subscriptions(id);
                }
                report.open.push(status);
            }
        }
        if wanted.closed {
            let closed = self.closed.borrow();
            let kept = closed
                .iter()
                .filter(|closed| wanted.includes(closed.status.cid));
            report.closed.extend(kept.cloned());
        }
        report
    }

    fn open(&self, cid: u64, mut peer: Peer, is_full: bool) -> SessionId {
        self.add_nonce(&mut peer);
        let now = self.now();
        self.engine.borrow_mut().open(cid, peer, is_full, now)
    }

    /// Opens the session of a leaf connection.
    fn open_leaf(
        &self,
        cid: u64,
        mut peer: Peer,
        dialled: Option<leaf::Dialled>,
        agreed: leaf::Agreed,
    ) -> SessionId {
        if dialled.is_none() {
            self.add_nonce(&mut peer);
        }
        let now = self.now();
        let mut engine = self.engine.borrow_mut();
        engine.open_leaf(cid, peer, dialled, agreed, now)
    }

    /// Announces the addresses of the cluster's servers to clients.
    fn set_connect_urls(&self, urls: Arc<ClientUrls>) {
        self.engine.borrow_mut().set_connect_urls(urls);
        self.flush();
    }

    /// Opens the session of a route.
    fn open_route(
        &self,
        cid: u64,
        peer: Peer,
        dial: Option<route::RouteDial>,
        compressed: Option<route::Compressed>,
        opened_at: Duration,
    ) -> SessionId {
        let mut engine = self.engine.borrow_mut();
        engine.open_route(cid, peer, dial, compressed, opened_at)
    }

    /// Opens the session of a gateway connection.
    fn open_gateway(&self, cid: u64, peer: Peer, dial: Option<gateway::GatewayDial>) -> SessionId {
        let now = self.now();
        let mut engine = self.engine.borrow_mut();
        engine.open_gateway(cid, peer, dial, now)
    }

    /// Adds a nonce for the peer to sign, if the access rules need one and the peer has none.
    fn add_nonce(&self, peer: &mut Peer) {
        let engine = self.engine.borrow();
        let is_needed = match peer.kind {
            kind if kind.is_leaf() => engine.leafs_need_nonce(),
            _ => engine.access().needs_nonce(),
        };
        if peer.nonce.is_empty() && is_needed {
            peer.nonce = crate::identity::new_nonce();
        }
    }

    #[cold]
    fn log_notices(&self) {
        let (notices, leaf_lines, route_events, gateway_events) = {
            let mut engine = self.engine.borrow_mut();
            (
                engine.take_notices(),
                engine.take_leaf_lines(),
                engine.take_route_events(),
                engine.take_gateway_events(),
            )
        };
        if let Some(to) = self.common.gateway_events.get() {
            for event in gateway_events {
                // The task has ended if the server stops.
                let _ = to.send(event);
            }
        }
        if let Some(to) = self.common.route_events.get() {
            for event in route_events {
                // The task has ended if the server stops.
                let _ = to.send(event);
            }
        }
        self.for_each_line(notices, |name, line| error!("{name} - {line}"));
        self.for_each_line(leaf_lines, |name, line| info!("{name} - {line}"));
    }

    fn emit_traces(&self) {
        let lines = self.engine.borrow_mut().take_traces();
        self.for_each_line(lines, |name, line| trace!("{name} - {line}"));
    }

    /// Logs lines with the names of their connections. Skips connections that have closed.
    fn for_each_line(&self, lines: Vec<(SessionId, String)>, log: impl Fn(&str, &str)) {
        for (id, line) in lines {
            if let Some(link) = self.link(id) {
                log(link.name(), &line);
            }
        }
    }

    /// Delays a publisher for a short time while the subscriber `slow` of its last messages has much pending
    /// output and still reads. `interest_bytes` is the size of the subscription changes for other servers
    /// that the publisher's input has caused.
    async fn hold_back(&self, slow: SessionId, interest_bytes: usize) {
        let config = self.config();
        let limits = &config.limits;
        if limits.no_fast_producer_stall {
            return;
        }
        let Some(link) = self.link(slow) else { return };
        let pending = || self.engine.borrow().pending_bytes(slow);
        let at_first = pending();
        let is_urgent = at_first > limits.pending_bytes_max / 4 * 3;
        if link.is_stuck() && !is_urgent {
            return;
        }
        let is_link = self.engine.borrow().is_linked(slow);
        let most = if is_link && interest_bytes >= INTEREST_BYTES_MIN {
            INTEREST_WAIT_MAX
        } else if is_link {
            LEAF_WAIT_MAX
        } else if is_urgent {
            URGENT_WAIT_MAX
        } else {
            SLOW_WAIT_MAX
        };
        let deadline = tokio::time::Instant::now() + most;
        let target = (at_first / 2).min(ROOM_AGAIN_BYTES);
        while pending() > target {
            let drained = self.drained.notified();
            if tokio::time::timeout_at(deadline, drained).await.is_err() {
                link.set_stuck(pending() >= at_first);
                return;
            }
        }
    }
}
