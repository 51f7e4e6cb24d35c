//! The backlog of a session.

use super::Exchange;
use crate::exchange::backlog::{Backlog, heaviest_sid};
use crate::exchange::session::SessionId;
use crate::exchange::text::text;
use crate::outbox::Outbox;

impl Exchange {
    /// Returns the backlog of a connection whose peer does not accept all pending output, otherwise `None`.
    pub(crate) fn backlog(&self, id: SessionId) -> Option<Backlog> {
        let session = self.sessions.get(id.index())?;
        let is_behind = session.out.blocked_since().is_some();
        is_behind.then(|| self.backlog_of(id, &session.out))
    }

    /// Returns the backlog of a connection that is about to be closed as a slow consumer. `out` is its
    /// output.
    pub(super) fn backlog_of(&self, id: SessionId, out: &Outbox) -> Backlog {
        let sid = heaviest_sid(out.segments());
        let subject = sid.as_ref().and_then(|sid| {
            let mut all = self.subs.of_session(id.0).map(|sub| self.subs.get(sub));
            let sub = all.find(|sub| text(sub.sid()) == *sid)?;
            Some(text(&self.router_of(sub).filter_of(sub)))
        });
        Backlog {
            bytes: out.pending_bytes(),
            since: out.blocked_since(),
            sid,
            subject,
        }
    }
}
