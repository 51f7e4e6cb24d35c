//! UNSUB.

use super::ClientSession;

impl ClientSession<'_> {
    /// Ends a subscription at once, or after `max` messages.
    pub(super) fn unsubscribe(&mut self, sid: &[u8], max: Option<u64>) {
        if let Some(sub) = self.broker.exchange.subs.find(self.id.0, sid) {
            let is_over = match max {
                Some(max) if max > 0 => self.broker.exchange.subs.get_mut(sub).limit(max),
                _ => true,
            };
            if is_over {
                self.broker.exchange.drop_subscription(sub);
            }
        }
        self.any().acknowledge();
    }
}
