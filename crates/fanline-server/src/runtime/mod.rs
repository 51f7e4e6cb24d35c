//! One shard's thread: it waits for sockets, time and mail, and lets the engine decide.
//!
//! Everything here runs on one thread and is shared by `Rc`; only the [`Mailbox`]es and the
//! commands are reached from others.

mod chunks;
mod close_log;
mod closed;
mod connection;
mod dialled;
mod link;
mod opening;
#[cfg(test)]
mod panic_tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::ConnectionKind;
use fanline_engine::{
    AccountId, CloseReason, Ended, Peer, Place, ServerInfo, SessionId, Shard, ShardConfig,
    codec::leaf,
};
use tokio::sync::{Notify, mpsc};
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

/// How long publishers are held back for each batch while a subscriber is behind but reads.
const BEHIND: Duration = Duration::from_millis(2);
/// The same when it is about to be dropped.
const ABOUT_TO_BE_DROPPED: Duration = Duration::from_millis(10);
/// The same for another server, which may share its cores with this one and get none for longer.
const LINK_BEHIND: Duration = Duration::from_millis(10);
/// The same for who has many subjects told to another server: what others send there waits behind them. Less than
/// any ping interval, as who is not read answers no pings.
const ANNOUNCING: Duration = Duration::from_millis(250);
/// Fewer bytes of subjects are not many.
const ANNOUNCED_BYTES_MIN: usize = 16 * 1024;
/// A subscriber with less than this waiting holds nobody back any more.
const ROOM_AGAIN_BYTES: usize = 1024 * 1024;

/// A subscriber that holds publishers on other shards back.
#[derive(Clone, Copy)]
struct Congestion {
    slow: SessionId,
    /// What it had taken when that began, by which it is seen to move.
    written_bytes: u64,
    since: Duration,
}

/// One shard with all that its tasks share.
pub(crate) struct Runtime {
    index: usize,
    engine: PoisonCell<Shard>,
    /// The connection of each session, by the session's index.
    links: RefCell<Vec<Option<Rc<Link>>>>,
    chunks: RefCell<ChunkPool>,
    common: Arc<Common>,
    /// What the engine goes by.
    config: RefCell<Arc<ShardConfig>>,
    /// What connections begin with.
    tls: RefCell<Arc<ListenersTls>>,
    /// Something is to be written once all that is ready now has been read.
    flush_wanted: Notify,
    /// A deadline was set that comes before the one slept for.
    deadline_moved: Notify,
    sleeps_until: Cell<Duration>,
    /// Somebody's backlog got smaller.
    drained: Notify,
    /// The subscriber for whose sake publishers on other shards are held back.
    congestion: Cell<Option<Congestion>>,
    /// Something was posted to a shard that asks for publishers to be held back.
    posted_to_congested: Cell<bool>,
    /// How many changes of interest have been told of.
    interest_told: Cell<u64>,
    closed: RefCell<ClosedRing>,
    /// Where connections that are not plain TCP work.
    scratch: SharedScratch,
}

/// Runs a shard until it is told to stop.
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
        interest_told: Cell::new(0),
        closed: closed.into(),
        scratch: SharedScratch::default(),
    });
    // Tasks of their own, and not parts of this future: the runtime looks for new events before
    // it polls this one again, which would cost a system call for each turn.
    tokio::task::spawn_local(flush_when_wanted(Rc::clone(&runtime)));
    tokio::task::spawn_local(keep_time(Rc::clone(&runtime)));
    tokio::task::spawn_local(read_mailbox(Rc::clone(&runtime)));
    tokio::select! {
        // At once: connections close with the runtime, and nothing is left that could use the shard.
        biased;
        () = runtime.engine.poisoned() => {}
        () = obey(&runtime, commands) => {}
    }
}

async fn obey(runtime: &Rc<Runtime>, mut commands: mpsc::UnboundedReceiver<Command>) {
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
            Command::HasInterest(topic, to) => {
                // What was announced before it was asked.
                runtime.take_batches();
                runtime.settle(usize::MAX);
                let mut engine = runtime.engine.borrow_mut();
                let _ = to.send(engine.is_wanted(AccountId::GLOBAL, topic.as_bytes()));
            }
            Command::Status(to) => drop(to.send(runtime.engine.borrow().status_by_account())),
            Command::Kick(cid, to) => {
                let found = runtime.engine.borrow_mut().kick(cid);
                runtime.flush();
                let _ = to.send(found);
            }
            Command::RequestReconnect(cid, to) => {
                let found = runtime.engine.borrow_mut().send_away(cid);
                runtime.flush();
                let _ = to.send(found);
            }
            Command::LeafNodes(with_subscriptions, to) => {
                drop(to.send(runtime.engine.borrow().leafs(with_subscriptions)));
            }
            Command::CloseRemote(remote) => {
                runtime.engine.borrow_mut().end_leaf(remote);
                runtime.flush();
            }
            // Who asked may have lost patience, while the answer takes time from the messages.
            Command::Connections(_, to) if to.is_closed() => {}
            Command::Connections(wanted, to) => drop(to.send(runtime.connections(&wanted))),
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
                // What was published before the order to stop is still delivered.
                runtime.take_batches();
                runtime.end_sessions(usize::MAX);
                // One turn for each connection to write what it can and close.
                for _ in 0..2 {
                    tokio::task::yield_now().await;
                }
                return;
            }
        }
    }
}

/// Writes when all connections that were ready have been read, so that what several of them have
/// for one subscriber leaves in one write.
async fn flush_when_wanted(runtime: Rc<Runtime>) {
    let _guard = runtime.common.panic_stop.guard();
    loop {
        runtime.flush_wanted.notified().await;
        runtime.flush();
    }
}

async fn keep_time(runtime: Rc<Runtime>) {
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
            // Others may post all the time, and sockets want their turn.
            tokio::task::yield_now().await;
        }
    }
}

impl Runtime {
    fn now(&self) -> Duration {
        self.common.started.elapsed()
    }

    fn config(&self) -> Arc<ShardConfig> {
        Arc::clone(&self.config.borrow())
    }

    /// What connections begin with now.
    fn tls(&self) -> Arc<ListenersTls> {
        Arc::clone(&self.tls.borrow())
    }

    /// What is spoken over TCP at this listener now, if nothing comes before it.
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

    /// Lets the engine know what other shards have said so far.
    fn take_batches(&self) {
        let mailbox = &self.common.mailboxes[self.index];
        self.engine.borrow_mut().note_time(self.now());
        mailbox.take(|batch| {
            // What is left of the batch would be lost for all connections.
            let _guard = self.engine.guard();
            let mut place = Place::default();
            loop {
                let receipt = self.engine.borrow_mut().apply(batch, &mut place);
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

    /// A subscriber of what other shards publish has much waiting. Their publishers are held back
    /// as those here are, while it takes what it gets.
    fn note_congestion(&self, slow: SessionId) {
        let Some(link) = self.link(slow) else { return };
        if self.engine.borrow().pending_bytes(slow) < ROOM_AGAIN_BYTES {
            return;
        }
        let now = self.now();
        let written = link.written_bytes();
        let is_stuck = match self.congestion.get() {
            Some(known) if known.slow == slow && known.written_bytes == written => {
                now.saturating_sub(known.since) > BEHIND
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

    /// Ends what [`Runtime::note_congestion`] began, once there is room again.
    fn end_congestion(&self) {
        let Some(Congestion { slow, .. }) = self.congestion.get() else {
            return;
        };
        if self.engine.borrow().pending_bytes(slow) < ROOM_AGAIN_BYTES {
            self.congestion.set(None);
            self.common.mailboxes[self.index].set_congested(false);
        }
    }

    /// Hands on what the engine has for other shards, and sees to it that what it has for
    /// connections is written: at once when it is much, else together with what comes meanwhile.
    fn settle(&self, produced_bytes: usize) {
        const WRITE_AT_ONCE_BYTES: usize = 32 * 1024;
        self.post_batches();
        let engine = self.engine.borrow();
        let next = engine.next_timeout();
        let has_work = engine.has_work();
        let has_notices = engine.has_notices() || engine.has_leaf_lines();
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

    /// Hands on what has to be out before anything is written to connections: mail to other shards, and the lines
    /// of the log that trace the protocol, so that a client finds in the log what it has an answer to.
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
        if self.interest_told.replace(changes) != changes {
            // Release: who sees this count and asks a shard finds in its mailbox what was posted.
            self.common.interest.fetch_add(1, Ordering::Release);
        }
        let has_traces = engine.has_traces();
        drop(engine);
        if has_traces {
            self.emit_traces();
        }
    }

    /// Writes to each connection that has something to be written, and wakes those that end.
    fn flush(&self) {
        // What other shards are to know goes first: an answer may rely on it.
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
        // That something was written may let an MQTT client have more, and ended sessions are told of.
        self.post_batches();
        self.end_congestion();
    }

    /// Writes as much to a connection as it takes. What remains is written by the connection's own task.
    fn write(&self, id: SessionId, link: &Rc<Link>) {
        let mut engine = self.engine.borrow_mut();
        let wrote = link.try_write_all(engine.outbox(id));
        match wrote {
            Wrote::Failed => engine.end(id, CloseReason::WriteError),
            // The clock is read only for those who have to wait.
            Wrote::All => engine.written(id, Duration::ZERO),
            Wrote::Blocked => engine.written(id, self.now()),
        }
        drop(engine);
        if matches!(wrote, Wrote::Blocked) {
            link.request_drain();
        }
    }

    /// Whether a shard asks those who post to it to take their time.
    fn is_any_mailbox_congested(&self) -> bool {
        self.common.mailboxes.iter().any(Mailbox::is_congested)
    }

    /// Whether a shard has more to read than it should.
    fn is_any_mailbox_full(&self) -> bool {
        self.common.mailboxes.iter().any(Mailbox::is_full)
    }

    /// Tells the system account of a connection. Nobody waits for it: what does not fit is not told.
    fn send_event(&self, event: impl FnOnce() -> Option<ConnectionEvent>) {
        if let Some(events) = self.common.events.get()
            && let Ok(place) = events.try_reserve()
            && let Some(event) = event()
        {
            place.send(event);
        }
    }

    /// Remembers a connection that is gone, and tells of it if it was told of before, or was refused.
    fn record_closed(&self, ended: Ended, was_announced: bool) {
        let is_refusal = ended.leaf.is_none()
            && matches!(
                ended.reason,
                CloseReason::AuthenticationFailure | CloseReason::AuthenticationTimeout
            );
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
        let leafs = match count {
            usize::MAX => engine.leaf_ids(),
            _ => Vec::new(),
        };
        for id in ids.into_iter().chain(leafs) {
            engine.end(id, CloseReason::ServerShutdown);
        }
        drop(engine);
        self.flush();
    }

    /// Puts another configuration in force.
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
        let mut told = ConnectionReport::default();
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
                told.open.push(status);
            }
        }
        if wanted.closed {
            let closed = self.closed.borrow();
            let kept = closed
                .iter()
                .filter(|closed| wanted.includes(closed.status.cid));
            told.closed.extend(kept.cloned());
        }
        told
    }

    fn open(&self, cid: u64, mut peer: Peer, is_full: bool) -> SessionId {
        self.give_nonce(&mut peer);
        let now = self.now();
        self.engine.borrow_mut().open(cid, peer, is_full, now)
    }

    /// The same for a link to another server.
    fn open_leaf(
        &self,
        cid: u64,
        mut peer: Peer,
        dialled: Option<leaf::Dialled>,
        agreed: leaf::Agreed,
    ) -> SessionId {
        if dialled.is_none() {
            self.give_nonce(&mut peer);
        }
        let now = self.now();
        let mut engine = self.engine.borrow_mut();
        engine.open_leaf(cid, peer, dialled, agreed, now)
    }

    /// What a client has to sign, if anybody asks for it and it has none yet.
    fn give_nonce(&self, peer: &mut Peer) {
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
        let (notices, leaf_lines) = {
            let mut engine = self.engine.borrow_mut();
            (engine.take_notices(), engine.take_leaf_lines())
        };
        self.for_each_line(notices, |name, line| error!("{name} - {line}"));
        self.for_each_line(leaf_lines, |name, line| info!("{name} - {line}"));
    }

    fn emit_traces(&self) {
        let lines = self.engine.borrow_mut().take_traces();
        self.for_each_line(lines, |name, line| trace!("{name} - {line}"));
    }

    /// Logs lines of connections that are still open, each with its connection's name.
    fn for_each_line(&self, lines: Vec<(SessionId, String)>, log: impl Fn(&str, &str)) {
        for (id, line) in lines {
            if let Some(link) = self.link(id) {
                log(link.name(), &line);
            }
        }
    }

    /// Waits a little, as long as a subscriber of what was just published has too much waiting
    /// and is taking it. `told_bytes` is how much of it are subjects that other servers are told.
    async fn hold_back(&self, slow: SessionId, told_bytes: usize) {
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
        let most = if is_link && told_bytes >= ANNOUNCED_BYTES_MIN {
            ANNOUNCING
        } else if is_link {
            LINK_BEHIND
        } else if is_urgent {
            ABOUT_TO_BE_DROPPED
        } else {
            BEHIND
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
