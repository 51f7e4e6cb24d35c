//! The output of a shard: batches for other shards, bytes to write, connections to close, and log lines.

use super::{Batch, SessionId, Shard};
use crate::codec::nats::error::CloseReason;
use crate::outbox::Outbox;

impl Shard {
    /// Returns the batch for another shard. The caller takes it and passes it to that shard's
    /// [`apply`](Shard::apply).
    pub fn outgoing(&mut self, shard: usize) -> &mut Batch {
        &mut self.broker.exchange.outgoing[shard]
    }

    /// Returns the next session with pending output.
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

    /// Returns whether [`next_dirty`](Shard::next_dirty) or [`next_ended`](Shard::next_ended) has a session.
    pub fn has_work(&self) -> bool {
        !self.broker.exchange.outputs.dirty.is_empty()
            || !self.broker.exchange.outputs.ended.is_empty()
    }

    /// Returns the pending output of a connection.
    pub fn outbox(&mut self, id: SessionId) -> &mut Outbox {
        &mut self.broker.exchange.sessions[id.index()].out
    }

    /// Returns the pending bytes of a connection; 0 if it is gone.
    pub fn pending_bytes(&self, id: SessionId) -> usize {
        self.broker
            .exchange
            .sessions
            .get(id.index())
            .map_or(0, |s| s.out.pending_bytes())
    }

    /// Returns the next session whose connection must be closed. The caller writes its output if
    /// [`CloseReason::flushes`] is true, closes the connection, then calls [`remove`](Shard::remove).
    pub fn next_ended(&mut self) -> Option<(SessionId, CloseReason)> {
        self.broker.end_overrun();
        let id = self.broker.exchange.outputs.ended.pop()?;
        let reason = self.broker.exchange.sessions[id.index()]
            .ending
            .unwrap_or(CloseReason::ClientClosed);
        Some((id, reason))
    }

    /// Returns whether there are lines for [`take_notices`](Shard::take_notices).
    pub fn has_notices(&self) -> bool {
        !self.broker.exchange.outputs.notices.is_empty()
    }

    /// Takes log lines, each about a session: refusals, and violations of permissions.
    pub fn take_notices(&mut self) -> Vec<(SessionId, String)> {
        std::mem::take(&mut self.broker.exchange.outputs.notices)
    }

    /// Returns whether there are lines for [`take_traces`](Shard::take_traces).
    #[inline]
    pub fn has_traces(&self) -> bool {
        !self.broker.exchange.outputs.trace_lines.is_empty()
    }

    /// Takes the lines of the protocol trace, each with its session.
    ///
    /// System clients are not traced.
    pub fn take_traces(&mut self) -> Vec<(SessionId, String)> {
        let mut lines = std::mem::take(&mut self.broker.exchange.outputs.trace_lines);
        lines.retain(|(id, _)| !self.is_system_client(*id));
        lines
    }
}
