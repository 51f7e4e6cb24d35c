//! The task of one connection: reads, passes input to the engine, and closes the socket at the end.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fanline_engine::auth::callout::Caller;
use fanline_engine::auth::{AccountId, ConnectionKind, Grant};
use fanline_engine::{Chunk, CloseReason, Ended, Outbox, Peer, SessionId, leaf};
use tokio::io::{AsyncReadExt, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::{debug, error};

use super::chunks::new_chunk;
use super::dialled::open_dialled;
use super::link::{Link, Writer};
use super::opening::{self, NotOpened, Opened};
use super::{Runtime, SLOW_WAIT_MAX, close_log, gateways, routes};
use crate::ipc::{CalloutRequest, ConnectionEvent, Incoming, Listener, Transport, catch_panic};
use crate::leaf::{Dialled, credentials_for};
use crate::sync::Ordering;
use crate::wire::{Input, WireReader, Wrote, close_reason, prepare_tcp};

/// Largest number of bytes that are read and discarded after an error. Closing a socket with unread bytes
/// would reset the connection before the client has read the error.
const LINGER_BYTES: usize = 4 * 1024 * 1024;
/// Time limit for reading and discarding after an error.
const LINGER: Duration = Duration::from_millis(500);

/// Interval of checks whether a full mailbox has room again.
const RECHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Number of successive reads after which other tasks run.
const READS_IN_A_ROW_MAX: u32 = 2;

/// Partial input of at least this size stays in its chunk until the next read. Smaller input is copied, and the
/// chunk returns to the pool.
const IN_PLACE_BYTES_MIN: usize = 16 * 1024;

/// Starts the task of a connection. A task occupies as much memory as its largest state for as long as the
/// connection lasts. Large states and those of handshakes are therefore boxed.
pub(super) fn spawn(
    runtime: &Rc<Runtime>,
    transport: Transport,
    cid: u64,
    is_full: bool,
    arrival: Option<OwnedSemaphorePermit>,
) {
    let runtime = Rc::clone(runtime);
    tokio::task::spawn_local(async move {
        drop(arrival);
        match transport {
            Transport::Wire(stream, Listener::Leafs) => {
                return serve_wire(&runtime, stream, Listener::Leafs, cid, is_full).await;
            }
            Transport::Wire(stream, Listener::Routes) => {
                return serve_wire(&runtime, stream, Listener::Routes, cid, is_full).await;
            }
            Transport::Wire(stream, Listener::Gateways) => {
                return serve_wire(&runtime, stream, Listener::Gateways, cid, is_full).await;
            }
            Transport::Gateway(dialled) => {
                return Box::pin(gateways::serve_dialed(&runtime, *dialled, cid)).await;
            }
            Transport::Route(dialled) => {
                return Box::pin(routes::serve_dialed(&runtime, *dialled, cid)).await;
            }
            Transport::GreetedRoute(greeted) => {
                return Box::pin(routes::serve_greeted(&runtime, *greeted, cid)).await;
            }
            Transport::Wire(incoming, listener) => match (incoming, runtime.plain(listener)) {
                (Incoming::Tcp(stream), Some(kind)) => {
                    if let Err(error) = serve_tcp(&runtime, stream, kind, cid, is_full).await {
                        debug!("cid:{cid} - could not be served: {error}");
                    }
                }
                (incoming, _) => serve_wire(&runtime, incoming, listener, cid, is_full).await,
            },
            Transport::Dialled(dialled) => {
                return Box::pin(serve_dialled(&runtime, *dialled, cid)).await;
            }
            Transport::InProcess(stream) => {
                let (read, write) = tokio::io::split(stream);
                let name = format!("in-process - cid:{cid}");
                let link = Link::new(Writer::InProcess(write.into()), name);
                let peer = Peer {
                    kind: ConnectionKind::InProcess,
                    ..Peer::default()
                };
                serve(&runtime, read, link, peer, cid, is_full).await;
            }
            Transport::SystemClient(stream, account) => {
                let (read, write) = tokio::io::split(stream);
                let link = Link::new(Writer::InProcess(write.into()), "system".into());
                serve_system_client(&runtime, read, link, cid, account).await;
                return;
            }
        }
        // Relaxed, because the count is used only for limits and reports.
        runtime.common.connections[runtime.index]
            .fetch_sub(usize::from(!is_full), Ordering::Relaxed);
    });
}

async fn serve_tcp(
    runtime: &Rc<Runtime>,
    stream: std::net::TcpStream,
    kind: ConnectionKind,
    cid: u64,
    is_full: bool,
) -> io::Result<()> {
    let address = stream.peer_addr()?;
    prepare_tcp(&stream)?;
    let (read, write) = tokio::net::TcpStream::from_std(stream)?.into_split();
    let id = if kind.is_mqtt() { "mid" } else { "cid" };
    let link = Link::new(Writer::Tcp(write), format!("{address} - {id}:{cid}"));
    let peer = Peer {
        kind,
        ..peer_at(address)
    };
    serve(runtime, read, link, peer, cid, is_full).await;
    Ok(())
}

/// Returns a peer at this address.
pub(super) fn peer_at(address: SocketAddr) -> Peer {
    Peer {
        ip: address.ip().to_canonical().to_string(),
        port: address.port(),
        ..Peer::default()
    }
}

/// Serves a connection that is not plain TCP, after its handshake.
async fn serve_wire(
    runtime: &Rc<Runtime>,
    stream: Incoming,
    listener: Listener,
    cid: u64,
    is_full: bool,
) {
    let opened = {
        let mut handshake = Box::pin(opening::open(runtime, stream, listener, cid, is_full));
        catch_panic(handshake.as_mut()).await
    };
    match opened {
        Some(Ok(opened)) if opened.peer.kind == ConnectionKind::Gateway => {
            Box::pin(gateways::serve_accepted(runtime, opened, cid)).await;
        }
        Some(Ok(opened)) if opened.peer.kind == ConnectionKind::Route => {
            Box::pin(routes::serve_accepted(runtime, opened, cid)).await;
        }
        Some(Ok(Opened {
            wire,
            peer,
            name,
            agreed,
        })) => {
            let wire = Rc::new(wire);
            let link = Link::new(Writer::Wire(Rc::clone(&wire)), name);
            if peer.kind.is_leaf() {
                let id = runtime.open_leaf(cid, peer, None, agreed);
                serve_session(runtime, WireReader(wire), link, id, &[]).await;
            } else {
                serve(runtime, WireReader(wire), link, peer, cid, is_full).await;
            }
        }
        Some(Err(error)) => debug!("cid:{cid} - was not opened: {error}"),
        None => error!("cid:{cid} - was not opened: internal error of the server"),
    }
}

/// Serves a connection to a hub. Reports the end of the connection to the task that dialed it.
async fn serve_dialled(runtime: &Rc<Runtime>, dialled: Dialled, cid: u64) {
    let Dialled {
        stream,
        hub,
        address,
        credentials,
        reached_by,
        done,
    } = dialled;
    let address_text = address.server.host_and_port();
    let peer = stream.peer_addr().map(peer_at);
    let opened = open_dialled(runtime, stream, &hub, &address, reached_by).await;
    let ended = match (opened, peer) {
        (Ok((wire, info, agreed)), Ok(peer)) => {
            let (kind, word) = match address.websocket_path {
                Some(_) => (ConnectionKind::LeafnodeWebSocket, "lid_ws"),
                None => (ConnectionKind::Leafnode, "lid"),
            };
            let name = format!("{}:{} - {word}:{cid}", peer.ip, peer.port);
            let peer = Peer { kind, ..peer };
            let credentials = credentials_for(&address, credentials.as_ref(), &info.nonce);
            let wire = Rc::new(wire);
            let link = Link::new(Writer::Wire(Rc::clone(&wire)), name);
            let dialled_leaf = leaf::Dialled {
                remote: Arc::clone(&hub.remote),
                info,
                credentials,
            };
            let id = runtime.open_leaf(cid, peer, Some(dialled_leaf), agreed);
            if done.is_closed() {
                let reason = CloseReason::ServerShutdown;
                runtime.engine.borrow_mut().end(id, reason);
            }
            let ended = serve_session(runtime, WireReader(wire), link, id, &[]).await;
            Ok(ended.and_then(|ended| ended.leaf))
        }
        (Err(NotOpened::Unreached(why)), _) => Err(why),
        (Err(error), _) => {
            error!("{address_text} - lid:{cid} - Leafnode Error '{error}'");
            Ok(None)
        }
        (_, Err(_)) => Ok(None),
    };
    // The send fails if the dialing task has stopped.
    let _ = done.send(ended.map(Option::unwrap_or_default));
}

/// Serves a system client.
async fn serve_system_client(
    runtime: &Rc<Runtime>,
    read: impl Input,
    link: Link,
    cid: u64,
    account: AccountId,
) {
    let id = runtime.open(cid, Peer::default(), false);
    runtime.engine.borrow_mut().admit_system_client(id, account);
    serve_session(runtime, read, link, id, &[]).await;
}

pub(super) async fn serve(
    runtime: &Rc<Runtime>,
    read: impl Input,
    link: Link,
    peer: Peer,
    cid: u64,
    is_full: bool,
) {
    let id = runtime.open(cid, peer, is_full);
    serve_session(runtime, read, link, id, &[]).await;
}

/// Serves a session. `received` is input that was read before the session began, at most a chunk.
pub(super) async fn serve_session(
    runtime: &Rc<Runtime>,
    mut read: impl Input,
    link: Link,
    id: SessionId,
    received: &[u8],
) -> Option<Ended> {
    let link = Rc::new(link);
    debug!("{} - Client connection created", link.name());
    {
        let mut links = runtime.links.borrow_mut();
        if links.len() <= id.index() {
            links.resize(id.index() + 1, None);
        }
        links[id.index()] = Some(Rc::clone(&link));
    }
    runtime.settle(0);
    let mut connection = Connection {
        runtime,
        id,
        link: &link,
        partial: PartialInput::None,
        partial_bytes: Vec::new(),
        reads_in_a_row: 0,
        is_announced: runtime.engine.borrow().is_system_client(id),
    };
    let served = {
        let served = pin!(async {
            if !received.is_empty() {
                connection.receive_early(received).await;
            }
            let reason = connection.read_until_end(&mut read).await;
            connection.close(&mut read, reason).await;
            reason
        });
        catch_panic(served).await
    };
    let reason = match served {
        Some(reason) => reason,
        None => connection.abandon().await,
    };
    let was_announced = connection.is_announced;
    runtime.links.borrow_mut()[id.index()] = None;
    let config = runtime.config();
    let is_system_client = runtime.engine.borrow().is_system_client(id);
    let ended = runtime.engine.borrow_mut().remove(id, reason);
    if let Some(ended) = &ended {
        close_log::log(link.name(), ended, &config.limits, runtime.now());
        if !is_system_client {
            runtime.record_closed(ended.clone(), was_announced);
        }
    }
    // The end of the session may have produced output for other connections.
    runtime.settle(0);
    ended
}

struct Connection<'a> {
    runtime: &'a Rc<Runtime>,
    id: SessionId,
    link: &'a Rc<Link>,
    partial: PartialInput,
    /// The beginning of a short frame. The buffer is reused for successive reads.
    partial_bytes: Vec<u8>,
    /// Number of reads since other tasks last ran.
    reads_in_a_row: u32,
    /// Whether the connect event was sent.
    is_announced: bool,
}

/// Input that is not complete yet.
enum PartialInput {
    None,
    /// The beginning of a short frame is in `partial_bytes`.
    Copied,
    /// The beginning of a long frame: the chunk that contains it, and its length in bytes.
    InPlace(Chunk, usize),
}

/// The reason why a connection's task woke.
enum Event {
    /// The chunk, and how many of its bytes are filled.
    Read(Chunk, usize),
    Ended(CloseReason),
}

impl Connection<'_> {
    async fn read_until_end(&mut self, read: &mut impl Input) -> CloseReason {
        loop {
            match poll_fn(|context| self.poll_event(read, context)).await {
                Event::Ended(reason) => return reason,
                Event::Read(chunk, filled) => self.receive(chunk, filled).await,
            }
        }
    }

    /// Passes input on that was read before the session began.
    async fn receive_early(&mut self, received: &[u8]) {
        let (mut chunk, _) = self.take_chunk();
        let room = Chunk::get_mut(&mut chunk).expect("a chunk to read into is not shared");
        room[..received.len()].copy_from_slice(received);
        self.receive(chunk, received.len()).await;
    }

    /// Reads, or writes pending output, whichever is possible first.
    fn poll_event(&mut self, read: &mut impl Input, context: &mut Context<'_>) -> Poll<Event> {
        self.link.register(context);
        if let Some(reason) = self.link.ended() {
            return Poll::Ready(Event::Ended(reason));
        }
        if self.link.is_draining() {
            self.drain(context);
        }
        if self.reads_in_a_row == READS_IN_A_ROW_MAX {
            self.reads_in_a_row = 0;
            return wake_after_others(context);
        }
        let (mut chunk, filled) = self.take_chunk();
        let room = Chunk::get_mut(&mut chunk).expect("a chunk to read into is not shared");
        let mut buffer = ReadBuf::new(&mut room[filled..]);
        let outcome = Pin::new(&mut *read).poll_read(context, &mut buffer);
        let new = buffer.filled().len();
        if read.has_pending_control() {
            self.link.request_drain();
        }
        match outcome {
            Poll::Ready(Ok(())) if new > 0 => {
                self.reads_in_a_row += 1;
                Poll::Ready(Event::Read(chunk, filled + new))
            }
            Poll::Ready(Ok(())) => Poll::Ready(Event::Ended(CloseReason::ClientClosed)),
            Poll::Ready(Err(error)) => Poll::Ready(Event::Ended(close_reason(&error))),
            Poll::Pending => {
                self.reads_in_a_row = 0;
                if filled == 0 {
                    self.partial_bytes = Vec::new();
                }
                self.store_partial(chunk, 0..filled);
                Poll::Pending
            }
        }
    }

    /// Writes pending output.
    fn drain(&self, context: &mut Context<'_>) {
        let mut engine = self.runtime.engine.borrow_mut();
        let before = engine.pending_bytes(self.id);
        let outcome = self.link.poll_drain(context, engine.outbox(self.id));
        let is_failed = matches!(outcome, Poll::Ready(Wrote::Failed));
        if is_failed {
            engine.end(self.id, CloseReason::WriteError);
        } else if engine.pending_bytes(self.id) < before {
            engine.written(self.id, self.runtime.now());
        }
        let made_room = engine.pending_bytes(self.id) < before;
        drop(engine);
        if outcome.is_ready() {
            self.link.end_drain();
        }
        if made_room {
            self.runtime.post_batches();
            self.runtime.drained.notify_waiters();
            self.runtime.end_congestion();
        }
        if is_failed {
            self.runtime.settle(0);
        }
    }

    /// Passes input to the engine, and stores an incomplete frame at its end.
    async fn receive(&mut self, chunk: Chunk, filled: usize) {
        let runtime = self.runtime;
        // Batches that arrived before this input may contain subscriptions to its subjects.
        runtime.take_batches();
        let mut from = 0;
        let receipt = loop {
            let now = runtime.now();
            let receipt = runtime
                .engine
                .borrow_mut()
                .receive(self.id, &chunk, from..filled, now);
            from += receipt.consumed;
            if receipt.was_measured {
                self.note_distance();
            }
            if receipt.must_flush {
                runtime.flush();
            } else {
                runtime.settle(receipt.produced_bytes);
            }
            if let Some(slow) = receipt.congested {
                runtime.flush();
                self.while_writing(runtime.hold_back(slow, receipt.announced_bytes))
                    .await;
            }
            if runtime.posted_to_congested.take()
                && !runtime.config.borrow().limits.no_fast_producer_stall
            {
                self.while_writing(wait_while(SLOW_WAIT_MAX, || {
                    runtime.is_any_mailbox_congested()
                }))
                .await;
            }
            self.while_writing(self.wait_for_room()).await;
            if receipt.awaits_check {
                self.authenticate().await;
            } else if !receipt.must_flush {
                break receipt;
            }
        };
        if !self.is_announced {
            self.announce();
        }
        if receipt.frame_bytes > chunk.len() {
            let mut larger = new_chunk(receipt.frame_bytes);
            let room = Chunk::get_mut(&mut larger).expect("it is new");
            room[..filled - from].copy_from_slice(&chunk[from..filled]);
            runtime.chunks.borrow_mut().give_back(chunk);
            self.partial = PartialInput::InPlace(larger, filled - from);
        } else {
            self.store_partial(chunk, from..filled);
        }
    }

    /// Adapts compression to the round-trip time, if the configuration says so.
    fn note_distance(&self) {
        if let Some(level) = self.runtime.engine.borrow().link_level(self.id) {
            self.link.set_level(level);
        }
    }

    /// Runs pending authentication outside the shard. The client or the server may close the connection
    /// meanwhile.
    async fn authenticate(&self) {
        loop {
            let Some(check) = self.runtime.engine.borrow_mut().take_check(self.id) else {
                return;
            };
            if let Some(account) = check.account_needed() {
                self.look_up_account(account.to_owned()).await;
                self.runtime.engine.borrow_mut().decide_again(self.id);
                self.runtime.settle(0);
                continue;
            }
            let outcome = match check.caller() {
                Some(caller) => self.request_callout(caller).await,
                None => {
                    self.wait_for_grant(self.runtime.common.auth_pool.perform(check))
                        .await
                }
            };
            self.runtime.engine.borrow_mut().decided(self.id, outcome);
            self.runtime.settle(0);
        }
    }

    /// Requests an account from the resolver. Returns when the engine knows the account, or when it was not
    /// found.
    async fn look_up_account(&self, account: String) {
        let Runtime { common, index, .. } = &**self.runtime;
        let Some(mut found) = common.look_up_account(account, *index) else {
            return;
        };
        poll_fn(|context| {
            self.link.register(context);
            match self.link.ended() {
                Some(_) => Poll::Ready(()),
                None => Pin::new(&mut found).poll(context).map(drop),
            }
        })
        .await;
    }

    /// Requests a decision from the auth callout service.
    async fn request_callout(&self, caller: Arc<Caller>) -> Option<Grant> {
        let runtime = self.runtime;
        let cid = runtime.engine.borrow().cid(self.id)?;
        let (reply, grant) = oneshot::channel();
        let wanted = CalloutRequest {
            caller,
            cid,
            shard: runtime.index,
            reply,
        };
        // Without a callout task, no client is admitted.
        runtime.common.callout.get()?.send(wanted).ok()?;
        self.wait_for_grant(grant).await
    }

    /// Waits for a grant while the connection is open.
    async fn wait_for_grant(&self, mut grant: oneshot::Receiver<Option<Grant>>) -> Option<Grant> {
        poll_fn(|context| {
            self.link.register(context);
            match self.link.ended() {
                Some(_) => Poll::Ready(None),
                None => Pin::new(&mut grant)
                    .poll(context)
                    .map(|grant| grant.ok().flatten()),
            }
        })
        .await
    }

    /// Sends the connect event when the client has been admitted.
    fn announce(&mut self) {
        let engine = self.runtime.engine.borrow();
        let event = match (engine.is_admitted(self.id), engine.is_linked(self.id)) {
            (true, _) => ConnectionEvent::Connected,
            (false, true) => ConnectionEvent::Linked,
            (false, false) => return,
        };
        self.is_announced = true;
        let status = || engine.connection(self.id).map(Box::new);
        self.runtime.send_event(|| status().map(event));
    }

    /// Waits for a future, and writes pending output meanwhile.
    async fn while_writing(&self, wait: impl Future<Output = ()>) {
        let mut wait = pin!(wait);
        poll_fn(|context| {
            self.link.register(context);
            if self.link.is_draining() {
                self.drain(context);
            }
            wait.as_mut().poll(context)
        })
        .await;
    }

    /// Waits while another shard's mailbox is full.
    async fn wait_for_room(&self) {
        let runtime = self.runtime;
        while runtime.is_any_mailbox_full() && self.link.ended().is_none() {
            // The other shard may be waiting for room in this shard's mailbox.
            runtime.take_batches();
            runtime.settle(usize::MAX);
            tokio::time::sleep(RECHECK_INTERVAL).await;
        }
    }

    /// Returns a chunk to read into, and the number of bytes at its front that are incomplete input.
    fn take_chunk(&mut self) -> (Chunk, usize) {
        match std::mem::replace(&mut self.partial, PartialInput::None) {
            PartialInput::InPlace(chunk, filled) => (chunk, filled),
            PartialInput::None => (self.runtime.chunks.borrow_mut().take(), 0),
            PartialInput::Copied => {
                let mut chunk = self.runtime.chunks.borrow_mut().take();
                let room = Chunk::get_mut(&mut chunk).expect("a free chunk is not shared");
                room[..self.partial_bytes.len()].copy_from_slice(&self.partial_bytes);
                (chunk, self.partial_bytes.len())
            }
        }
    }

    /// Stores incomplete input, a part of a chunk, until the next read. A short part is copied out of the
    /// chunk.
    fn store_partial(&mut self, mut chunk: Chunk, part: std::ops::Range<usize>) {
        if part.len() >= IN_PLACE_BYTES_MIN {
            match Chunk::get_mut(&mut chunk) {
                Some(bytes) => bytes.copy_within(part.clone(), 0),
                None => {
                    let mut other = self.runtime.chunks.borrow_mut().take();
                    let room = Chunk::get_mut(&mut other).expect("a free chunk is not shared");
                    room[..part.len()].copy_from_slice(&chunk[part.clone()]);
                    self.runtime
                        .chunks
                        .borrow_mut()
                        .give_back(std::mem::replace(&mut chunk, other));
                }
            }
            self.partial = PartialInput::InPlace(chunk, part.len());
            return;
        }
        if !part.is_empty() {
            self.partial_bytes.clear();
            self.partial_bytes.extend_from_slice(&chunk[part]);
            self.partial = PartialInput::Copied;
        }
        self.runtime.chunks.borrow_mut().give_back(chunk);
    }

    /// Writes the last output and closes the connection.
    async fn close(&mut self, read: &mut impl Input, reason: CloseReason) {
        self.partial = PartialInput::None;
        // The engine or the peer may have ended the session already. Nothing is delivered from here on.
        self.runtime.engine.borrow_mut().end(self.id, reason);
        self.runtime.post_batches();
        self.link.send_close(reason);
        if reason.flushes() {
            self.runtime.write(self.id, self.link);
            // A new socket becomes writable only after the event loop has run once.
            let _ = tokio::time::timeout(LINGER, self.finish_drain()).await;
        } else {
            // The outbox is empty. A close frame or alert may still be pending.
            self.link.try_write_all(&mut Outbox::default());
        }
        self.link.shut_down();
        self.remove_subscriptions().await;
        let peer_waits = !matches!(
            reason,
            CloseReason::ClientClosed | CloseReason::ServerShutdown
        );
        if reason.flushes() && peer_waits {
            let _ = tokio::time::timeout(LINGER, discard(read)).await;
        }
    }

    /// Ends a connection whose task has panicked while the shard is intact. Writes nothing more, because the
    /// layers between shard and socket may be half changed. The socket closes when it is dropped.
    async fn abandon(&mut self) -> CloseReason {
        error!(
            "{} - was closed: internal error of the server",
            self.link.name()
        );
        // The scratch buffers may contain half-processed bytes of this connection.
        self.runtime.scratch.take();
        self.partial = PartialInput::None;
        let reason = CloseReason::InternalError;
        self.runtime.engine.borrow_mut().end(self.id, reason);
        self.runtime.post_batches();
        self.remove_subscriptions().await;
        reason
    }

    /// Removes the client's subscriptions. If there are many, other tasks run in between.
    async fn remove_subscriptions(&self) {
        loop {
            let is_more = self
                .runtime
                .engine
                .borrow_mut()
                .remove_some_subscriptions(self.id);
            self.runtime.settle(0);
            if !is_more {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Writes until the outbox is empty.
    async fn finish_drain(&self) {
        poll_fn(|context| {
            self.link.register(context);
            if self.link.is_draining() {
                self.drain(context);
            }
            match self.link.is_draining() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

/// Wakes a task after all other ready tasks have run, including tasks whose sockets have become ready. A task
/// that wakes itself directly would run many times before the runtime polls sockets again.
fn wake_after_others<T>(context: &mut Context<'_>) -> Poll<T> {
    match pin!(tokio::task::yield_now()).poll(context) {
        Poll::Pending => {}
        Poll::Ready(()) => context.waker().wake_by_ref(),
    }
    Poll::Pending
}

/// Waits while a condition holds, but at most for this time.
async fn wait_while(most: Duration, is_so: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + most;
    while is_so() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(RECHECK_INTERVAL).await;
    }
}

async fn discard(read: &mut impl Input) {
    let mut scrap = vec![0; 16 * 1024];
    let mut left = LINGER_BYTES;
    while left > 0 {
        match read.read(&mut scrap).await {
            Ok(bytes) if bytes > 0 => left = left.saturating_sub(bytes),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn connection_yields_to_ready_sockets_after_two_full_reads() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let was_read = Rc::new(Cell::new(false));
        let noted = Rc::clone(&was_read);
        crate::threads::block_on(async move {
            let mut socket = tokio::net::TcpStream::from_std(accepted).unwrap();
            tokio::task::spawn_local(async move {
                socket.read_u8().await.unwrap();
                noted.set(true);
            });
            // The task waits for its socket before data arrives.
            tokio::task::yield_now().await;
            let busy = tokio::task::spawn_local(async move {
                peer.write_all(b"x").unwrap();
                let mut polls = 0;
                poll_fn(|context| {
                    polls += 1;
                    match polls {
                        1 | 2 => wake_after_others(context),
                        _ => Poll::Ready(()),
                    }
                })
                .await;
                was_read.get()
            });
            assert!(busy.await.unwrap());
        })
        .unwrap();
    }
}
