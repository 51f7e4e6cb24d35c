//! What a shard has for the runtime to do: batches for other shards, bytes to write, connections to close, and lines
//! for the log.

use super::{Batch, SessionId, Shard};
use crate::codec::nats::error::CloseReason;
use crate::outbox::Outbox;

impl Shard {
    /// The batch for another shard, to be taken and handed to its [`apply`](Shard::apply).
    pub fn outgoing(&mut self, shard: usize) -> &mut Batch {
        &mut self.broker.exchange.outgoing[shard]
    }

    /// The next session with something to write.
    pub fn next_dirty(&mut self) -> Option<SessionId> {
        loop {
            let id = self.broker.exchange.outputs.dirty.pop()?;
            if let Some(session) = self.broker.exchange.sessions.get_mut(id.index())
                && std::mem::take(&mut session.is_dirty)
            {
                return Some(id);
            }
        }
    }

    /// Whether [`next_dirty`](Shard::next_dirty) or [`next_ended`](Shard::next_ended) has anything.
    pub fn has_work(&self) -> bool {
        !self.broker.exchange.outputs.dirty.is_empty()
            || !self.broker.exchange.outputs.ended.is_empty()
    }

    /// What waits for a connection.
    pub fn outbox(&mut self, id: SessionId) -> &mut Outbox {
        &mut self.broker.exchange.sessions[id.index()].out
    }

    /// How many bytes wait for a connection, 0 when it is gone.
    pub fn pending_bytes(&self, id: SessionId) -> usize {
        self.broker
            .exchange
            .sessions
            .get(id.index())
            .map_or(0, |s| s.out.pending_bytes())
    }

    /// The next session whose connection is to be closed: write what
    /// [`CloseReason::flushes`] says, close, then [`remove`](Shard::remove).
    pub fn next_ended(&mut self) -> Option<(SessionId, CloseReason)> {
        self.broker.end_overrun();
        let id = self.broker.exchange.outputs.ended.pop()?;
        let reason = self.broker.exchange.sessions[id.index()]
            .ending
            .unwrap_or(CloseReason::ClientClosed);
        Some((id, reason))
    }

    /// Whether there are lines for [`take_notices`](Shard::take_notices).
    pub fn has_notices(&self) -> bool {
        !self.broker.exchange.outputs.notices.is_empty()
    }

    /// Lines for the log since the last call, each about a session: who was refused, and what.
    pub fn take_notices(&mut self) -> Vec<(SessionId, String)> {
        std::mem::take(&mut self.broker.exchange.outputs.notices)
    }

    /// Whether there are traces to be taken.
    #[inline]
    pub fn has_traces(&self) -> bool {
        !self.broker.exchange.outputs.trace_lines.is_empty()
    }

    /// Lines for a protocol trace since the last call, each with its session.
    ///
    /// What the server asks of itself is nobody's protocol.
    pub fn take_traces(&mut self) -> Vec<(SessionId, String)> {
        let mut lines = std::mem::take(&mut self.broker.exchange.outputs.trace_lines);
        lines.retain(|(id, _)| !self.is_insider(*id));
        lines
    }
}
