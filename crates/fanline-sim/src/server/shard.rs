//! The steps of a shard's thread, in the order in which the runtime calls the engine.

use std::io::IoSlice;
use std::sync::Arc;

use fanline_engine::auth::{Access, ConnectionKind};
use fanline_engine::route::RouteEnded;
use fanline_engine::{
    Auth, Batch, BatchCursor, Chunk, CloseReason, Peer, Receipt, SessionId, Shard, ShardConfig,
};

use super::routes::Greeting;
use super::{Sabotage, Server, Socket};

/// A shard as its thread holds it.
pub(super) struct ShardThread {
    pub(super) shard: Shard,
}

impl ShardThread {
    pub(super) fn new(shard: Shard) -> Self {
        ShardThread { shard }
    }
}

/// The number of a connection of a [`Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnectionKey(pub(super) usize);

/// A connection, with the state of its task.
pub(super) struct Connection {
    pub(super) shard: usize,
    /// The session, until it is removed.
    pub(super) session: Option<SessionId>,
    /// The connection of a route before its session.
    pub(super) greeting: Option<Greeting>,
    pub(super) is_route: bool,
    pub(super) socket: Socket,
    /// The beginning of an incomplete frame.
    held: Vec<u8>,
    /// Whether the last write did not take everything.
    is_draining: bool,
    ended: Option<CloseReason>,
}

impl Connection {
    /// Creates a connection whose socket stores at most `room_bytes` that the other side has not read.
    pub(super) fn new(shard: usize, room_bytes: usize) -> Self {
        Connection {
            shard,
            session: None,
            greeting: None,
            is_route: false,
            socket: Socket {
                room_bytes,
                ..Socket::default()
            },
            held: Vec::new(),
            is_draining: false,
            ended: None,
        }
    }
}

impl Server {
    /// Opens a connection on a shard. The socket stores at most `room_bytes` that the client has not read.
    pub(crate) fn connect(
        &mut self,
        shard: usize,
        kind: ConnectionKind,
        room_bytes: usize,
    ) -> ConnectionKey {
        self.connections_opened += 1;
        let peer = Peer {
            kind,
            ..Peer::default()
        };
        let now = self.now.since_start;
        let session = self.threads[shard]
            .shard
            .open(self.connections_opened, peer, false, now);
        self.connections.push(Some(Connection {
            session: Some(session),
            ..Connection::new(shard, room_bytes)
        }));
        self.post_batches(shard);
        ConnectionKey(self.connections.len() - 1)
    }

    /// Reads up to `bytes_max` from a connection and passes them to the engine. Returns whether there was anything.
    pub(crate) fn receive(&mut self, key: ConnectionKey, bytes_max: usize) -> bool {
        let Some(connection) = self.connection(key) else {
            return false;
        };
        if connection.greeting.is_some() {
            return self.greet(key, bytes_max);
        }
        let (Some(session), None) = (connection.session, connection.ended) else {
            return false;
        };
        let new = connection.socket.read_at_server(bytes_max);
        if new.is_empty() {
            let is_at_end = connection.socket.is_client_gone;
            if is_at_end {
                self.close(key, CloseReason::ClientClosed);
            }
            return is_at_end;
        }
        self.take_input(key, session, &new);
        true
    }

    /// Passes input of a session to the engine.
    pub(super) fn take_input(&mut self, key: ConnectionKey, session: SessionId, new: &[u8]) {
        let Some(connection) = self.connection(key) else {
            return;
        };
        let mut input = std::mem::take(&mut connection.held);
        input.extend_from_slice(new);
        let shard = connection.shard;
        let chunk = Chunk::new(input.into_boxed_slice());
        // Batches that arrived before this input may hold subscriptions to its subjects.
        self.take_mailbox(shard);
        let held = self.pass_input(shard, session, &chunk);
        if let Some(connection) = self.connection(key) {
            connection.held = held;
        }
    }

    /// Passes input to the engine, and returns what is incomplete.
    fn pass_input(&mut self, shard: usize, session: SessionId, chunk: &Chunk) -> Vec<u8> {
        let mut from = 0;
        loop {
            let now = self.now.since_start;
            let engine = &mut self.threads[shard].shard;
            let receipt: Receipt = engine.receive(session, chunk, from..chunk.len(), now);
            from += receipt.consumed;
            if receipt.must_flush {
                self.flush(shard);
            } else {
                self.post_batches(shard);
            }
            if receipt.awaits_check {
                self.authenticate(shard, session);
            } else if !receipt.must_flush {
                return chunk[from..].to_vec();
            }
        }
    }

    /// Performs pending checks of a client's credentials at once.
    fn authenticate(&mut self, shard: usize, session: SessionId) {
        let unix_seconds = self.now.unix_nanos / 1_000_000_000;
        let engine = &mut self.threads[shard].shard;
        while let Some(check) = engine.take_check(session) {
            let outcome = check.perform(unix_seconds);
            engine.decided(session, outcome);
        }
        self.post_batches(shard);
    }

    /// Applies the batches of other shards. Returns whether there were any.
    pub(crate) fn take_mailbox(&mut self, shard: usize) -> bool {
        self.threads[shard].shard.note_time(self.now.since_start);
        let batch = std::mem::take(&mut self.mailboxes[shard]);
        if batch.is_empty() {
            return false;
        }
        let is_repeated = self.sabotage == Sabotage::ApplyTwice && self.sabotage_dice.one_in(40);
        for _ in 0..=usize::from(is_repeated) {
            let mut cursor = BatchCursor::default();
            loop {
                let receipt = self.threads[shard].shard.apply(&batch, &mut cursor);
                if receipt.must_flush || receipt.congested.is_some() {
                    self.flush(shard);
                }
                if !receipt.must_flush {
                    break;
                }
            }
        }
        self.post_batches(shard);
        true
    }

    /// Posts the batches of a shard.
    pub(super) fn post_batches(&mut self, shard: usize) {
        for to in 0..self.mailboxes.len() {
            let mut batch = std::mem::take(self.threads[shard].shard.outgoing(to));
            if to != shard && !batch.is_empty() {
                self.post(to, &mut batch);
            }
        }
        let events = self.threads[shard].shard.take_route_events();
        self.route_events.extend(events);
    }

    /// Posts a batch of a shard. The service may perform small work at once.
    fn post(&mut self, to: usize, batch: &mut Batch) {
        if self.sabotage == Sabotage::DropBatch && self.sabotage_dice.one_in(40) {
            return batch.clear();
        }
        let is_for_service = self.service.is_some() && to + 1 == self.mailboxes.len();
        if !(is_for_service && self.try_run_service(batch)) {
            self.mailboxes[to].append(batch);
        }
    }

    /// Writes pending output of all connections of a shard, and ends those that the engine has ended.
    pub(crate) fn flush(&mut self, shard: usize) {
        self.post_batches(shard);
        while let Some(session) = self.threads[shard].shard.next_dirty() {
            if let Some(at) = self.find(shard, session)
                && self.connections[at]
                    .as_ref()
                    .is_some_and(|it| !it.is_draining)
            {
                self.write(ConnectionKey(at));
            }
        }
        while let Some((session, reason)) = self.threads[shard].shard.next_ended() {
            if let Some(at) = self.find(shard, session)
                && let Some(connection) = &mut self.connections[at]
            {
                connection.ended = Some(reason);
            }
        }
        self.post_batches(shard);
    }

    /// Writes as much pending output to a connection as its socket accepts. Returns whether it wrote
    /// anything.
    fn write(&mut self, key: ConnectionKey) -> bool {
        let now = self.now.since_start;
        let Server {
            threads,
            connections,
            ..
        } = self;
        let Some(connection) = connections[key.0].as_mut() else {
            return false;
        };
        let Some(session) = connection.session else {
            return false;
        };
        let shard = &mut threads[connection.shard].shard;
        let before = shard.pending_bytes(session);
        let out = shard.outbox(session);
        let socket = &mut connection.socket;
        while !out.is_empty() && socket.room() > 0 {
            let mut parts = [IoSlice::new(&[]); 4];
            let count = out.parts(&mut parts);
            let mut written = 0;
            for part in &parts[..count] {
                let length = part.len().min(socket.room());
                socket.to_client.extend_from_slice(&part[..length]);
                written += length;
            }
            out.advance(written);
        }
        connection.is_draining = !out.is_empty();
        shard.written(session, now);
        shard.pending_bytes(session) < before
    }

    /// Does what the task of a connection does when it wakes: writes the rest of its output, or closes it. Returns
    /// whether there was anything to do.
    pub(crate) fn wake(&mut self, key: ConnectionKey) -> bool {
        let Some(connection) = self.connection(key) else {
            return false;
        };
        if let Some(reason) = connection.ended {
            self.close(key, reason);
            return true;
        }
        let is_draining = connection.is_draining && connection.socket.room() > 0;
        if is_draining {
            let shard = connection.shard;
            self.write(key);
            self.post_batches(shard);
        }
        is_draining
    }

    /// Closes a connection from the server's side.
    pub(super) fn close(&mut self, key: ConnectionKey, reason: CloseReason) {
        let Some(connection) = self.connection(key) else {
            return;
        };
        let shard = connection.shard;
        let Some(session) = connection.session else {
            return;
        };
        if self.is_kept(key) {
            self.ended_routes.push((key, RouteEnded::default()));
        } else {
            self.remove(key, session, reason);
        }
        self.post_batches(shard);
        let Some(connection) = self.connection(key) else {
            return;
        };
        connection.session = None;
        connection.socket.is_server_gone = true;
        if connection.socket.is_client_gone {
            self.connections[key.0] = None;
        }
    }

    /// Whether the harness does not let a route end.
    fn is_kept(&mut self, key: ConnectionKey) -> bool {
        let is_route = self.connection(key).is_some_and(|it| it.is_route);
        self.sabotage == Sabotage::KeepRoutes && is_route && self.sabotage_dice.one_in(4)
    }

    /// Removes the session of a connection.
    fn remove(&mut self, key: ConnectionKey, session: SessionId, reason: CloseReason) {
        let Some(shard) = self.connection(key).map(|connection| connection.shard) else {
            return;
        };
        self.threads[shard].shard.end(session, reason);
        self.post_batches(shard);
        if reason.flushes() {
            // The client that reads slowly enough misses the rest.
            self.write(key);
        }
        while self.threads[shard].shard.remove_some_subscriptions(session) {
            self.post_batches(shard);
        }
        self.post_batches(shard);
        if self.sabotage == Sabotage::KeepSessions {
            return;
        }
        let ended = self.threads[shard].shard.remove(session, reason);
        if let Some(ended) = ended.and_then(|ended| ended.route) {
            self.ended_routes.push((key, *ended));
        }
    }

    /// Closes a connection from the client's side. Unless `abrupt` is set, the server may still read what the
    /// client has written.
    pub(crate) fn hang_up(&mut self, key: ConnectionKey, abrupt: bool) {
        let Some(connection) = self.connection(key) else {
            return;
        };
        connection.socket.is_client_gone = true;
        if abrupt {
            connection.socket.to_server.clear();
        }
        // The client reads nothing more: the system takes what is written.
        connection.socket.to_client.clear();
        connection.socket.room_bytes = usize::MAX;
        if connection.session.is_none() && connection.greeting.is_none() {
            self.connections[key.0] = None;
        }
    }

    /// Runs the timers of a shard if they are due. Returns whether they were.
    pub(crate) fn handle_shard_timeout(&mut self, shard: usize) -> bool {
        let engine = &mut self.threads[shard].shard;
        let is_due = engine
            .next_timeout()
            .is_some_and(|at| at <= self.now.since_start);
        if is_due {
            engine.handle_timeout(self.now.since_start);
            self.flush(shard);
        }
        self.end_late_greetings(shard) || is_due
    }

    /// Applies another directory on one shard.
    pub(crate) fn reload_shard(&mut self, shard: usize, access: &Arc<Access>) {
        let config = Arc::new(ShardConfig {
            auth: Auth::Directory(Arc::clone(access)),
            ..ShardConfig::clone(&self.config)
        });
        let (info, now) = (self.info.clone(), self.now.since_start);
        self.threads[shard]
            .shard
            .reload(config, info, Arc::clone(access), now);
        self.post_batches(shard);
    }

    /// Returns the pending bytes of the connection that has the most.
    pub(crate) fn pending_bytes_most(&self) -> usize {
        let open = self.connections.iter().flatten();
        let pending = open.filter_map(|connection| {
            Some(
                self.threads[connection.shard]
                    .shard
                    .pending_bytes(connection.session?),
            )
        });
        pending.max().unwrap_or_default()
    }

    /// Returns why the server has decided to close a connection, if it has.
    pub(crate) fn ended(&mut self, key: ConnectionKey) -> Option<CloseReason> {
        self.connection(key)?.ended
    }
}
