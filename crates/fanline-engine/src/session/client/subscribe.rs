//! SUB.

use super::super::AnySession;
use super::ClientSession;
use crate::codec::nats::error::ClientError;
use crate::exchange::text::text;

impl ClientSession<'_> {
    /// Subscribes to a filter, if the client is permitted to.
    pub(super) fn subscribe(&mut self, filter: &[u8], queue: &[u8], sid: &[u8]) {
        if queue == b"_sys_" {
            let error = ClientError::QueueSubscriptionDenied(text(filter), text(queue));
            return self.broker.send_error(self.id, &error);
        }
        if self.any().has_too_many_tokens(filter) {
            return self
                .broker
                .send_error(self.id, &ClientError::TooManyTokens(text(filter)));
        }
        if !self.any().permit_subscribe(filter, queue, sid) {
            return;
        }
        if !self.broker.has_room_for_subscription(self.id) {
            return self
                .broker
                .send_error(self.id, &ClientError::SubscriptionsExceeded);
        }
        if !self.broker.enter_subscription(self.id, filter, queue, sid) {
            return self
                .broker
                .send_error(self.id, &ClientError::InvalidSubject);
        }
        self.any().acknowledge();
    }
}

impl AnySession<'_> {
    fn has_too_many_tokens(&self, filter: &[u8]) -> bool {
        let max = self.broker.exchange.config.limits.subscription_tokens_max;
        let is_longer = |max| filter.split(|byte| *byte == b'.').count() > usize::from(max);
        // Limits of clients do not apply to system clients.
        max.is_some_and(is_longer) && !self.session().is_system_client
    }
}
