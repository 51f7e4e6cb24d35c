//! PING and PONG.

use std::time::Duration;

use super::super::AnySession;
use super::ClientSession;

impl ClientSession<'_> {
    /// Handles PING. After the first PING that follows CONNECT, also sends a second INFO.
    pub(super) fn ping(&mut self) {
        self.broker.exchange.send(self.id, b"PONG\r\n");
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        if session.has_connected
            && session.options.protocol >= 1
            && let Some(client) = session.kind.client_mut()
            && !std::mem::replace(&mut client.has_account_info, true)
        {
            self.send_info(true);
        }
    }
}

impl AnySession<'_> {
    /// Handles PONG: measures the round trip.
    pub(crate) fn pong(&mut self, now: Duration) {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        if session.pings.unanswered > 0 {
            session.rtt = Some(now.saturating_sub(session.pings.sent_at));
        }
        session.pings.unanswered = 0;
    }
}
