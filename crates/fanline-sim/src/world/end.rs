//! The end of a run: faults are over, everything must be answered, and everything must be released.

use super::{Invariant, Outcome, World, violation};

impl World {
    pub(super) fn end(&mut self) -> Outcome {
        for at in 0..self.devices.len() {
            if self.devices[at].link.is_none() {
                self.connect_device(at);
            }
        }
        self.drain_consumers()?;
        for at in 0..self.devices.len() {
            self.drop_device(at, true);
        }
        while !self.clients.is_empty() {
            self.hang_up(0, false);
        }
        self.quiesce()?;
        let (sessions, subscriptions) = self.server.sessions_and_subscriptions();
        let left = self.server.connection_keys().len();
        if (sessions, subscriptions, left) != (0, 0, 0) || self.core.subscriptions() > 0 {
            let text = format!(
                "all clients left; there are {sessions} sessions, {subscriptions} subscriptions, {left} connections"
            );
            return violation(Invariant::Memory, text);
        }
        Ok(())
    }
}
