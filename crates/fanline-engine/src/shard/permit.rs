//! Whether what a client does is allowed to it.
//!
//! Sessions without restrictions have none of this: they pay for a look at one field.

use super::SessionId;
use super::Shard;
use super::mqtt::is_own_of_mqtt;
use crate::codec::nats::error::ClientError;
use crate::exchange::router::SubId;
use crate::exchange::run::Intake;
use crate::exchange::text::text;

/// Whether, and why, a topic may be published to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// It was before, and nothing has changed.
    Known,
    /// The rules say so.
    Granted,
    /// This once, as an answer.
    AsReply,
    Denied,
}

impl Shard {
    /// Whether a client may publish to a topic; tells it when not.
    #[inline(never)]
    pub(super) fn permit_publish(&mut self, id: SessionId, topic: &[u8]) -> Permit {
        let now = self.broker.exchange.outputs.now;
        let session = &mut self.broker.exchange.sessions[id.index()];
        let Some(restriction) = &mut session.restriction else {
            return Permit::Granted;
        };
        if restriction.may_publish(topic) {
            return Permit::Granted;
        }
        if restriction.use_up_reply(topic, now) {
            return Permit::AsReply;
        }
        self.deny_publish(id, topic);
        Permit::Denied
    }

    /// Whether a client is known to be permitted to publish to a topic. What its memo holds was when it came for the
    /// first time.
    #[inline]
    pub(super) fn knows_permitted(&mut self, intake: &mut Intake<'_>, topic: &[u8]) -> bool {
        self.broker.exchange.routers[intake.account].knows_permitted(
            topic,
            intake.rights,
            &mut intake.memo,
        )
    }

    /// Takes note that what was just published was permitted by the rules, so that they need not be asked about its
    /// topic again.
    #[cold]
    #[inline(never)]
    pub(super) fn note_permitted(&mut self, intake: &Intake<'_>, topic: &[u8]) {
        let restriction = self.broker.exchange.sessions[intake.id.index()]
            .restriction
            .as_ref();
        if let Some(rights) = restriction.and_then(|restriction| restriction.sole_rights()) {
            let router = &mut self.broker.exchange.routers[intake.account];
            router.note_permitted(topic, intake.memo, rights);
        }
    }

    /// Who a session is, for the log.
    fn who(&self, id: SessionId) -> String {
        let session = &self.broker.exchange.sessions[id.index()];
        let account = self.broker.exchange.access.account(session.account);
        let account = account.map_or("", |account| &account.name);
        let who = format!("{account}/user:{}", session.user());
        format!("{who:?}")
    }

    pub(super) fn deny_publish(&mut self, id: SessionId, topic: &[u8]) {
        let topic = text(topic);
        let who = self.who(id);
        self.broker.exchange.outputs.notice(id, || {
            format!("{who} - Publish Violation - Subject {topic:?}")
        });
        let error = ClientError::PublishDenied(topic);
        self.send_error(id, &error);
    }

    /// Whether a client may subscribe; tells it when not.
    pub(super) fn permit_subscribe(
        &mut self,
        id: SessionId,
        filter: &[u8],
        queue: &[u8],
        sid: &[u8],
    ) -> bool {
        let session = &self.broker.exchange.sessions[id.index()];
        let Some(restriction) = &session.restriction else {
            return true;
        };
        if restriction.may_subscribe(filter, queue) {
            return true;
        }
        let (who, sid) = (self.who(id), text(sid));
        let error = denied(filter, queue);
        self.broker.exchange.outputs.notice(id, || {
            let filter = text(filter);
            let queue = match queue {
                [] => String::new(),
                queue => format!(", Queue: {:?}", text(queue)),
            };
            format!("{who} - Subscription Violation - Subject {filter:?}{queue}, SID {sid}")
        });
        self.send_error(id, &error);
        false
    }

    /// Whether single messages of a subscription are to be kept from its client.
    pub(super) fn is_filtered(&self, id: SessionId, filter: &[u8], queue: &[u8]) -> bool {
        let session = &self.broker.exchange.sessions[id.index()];
        let restriction = session.restriction.as_ref();
        // What an MQTT client is given is written otherwise.
        session.kind.mqtt.is_some()
            || restriction.is_some_and(|restriction| restriction.filters(filter, queue))
    }

    /// Drops what a client has subscribed to and may not any more, and tells it.
    pub(super) fn drop_denied_subscriptions(&mut self, id: SessionId) {
        let account = self.broker.exchange.sessions[id.index()].account;
        let all: Vec<SubId> = self.broker.exchange.subs.of_session(id.0).collect();
        for sub in all {
            let subscription = self.broker.exchange.subs.get(sub);
            let filter = self.broker.exchange.routers[account].filter_of(subscription);
            let (queue, sid) = (subscription.queue().to_vec(), text(subscription.sid()));
            let session = &self.broker.exchange.sessions[id.index()];
            if session.kind.mqtt.is_some() && is_own_of_mqtt(subscription.sid()) {
                continue;
            }
            let restriction = session.restriction.as_ref();
            if restriction.is_none_or(|r| r.may_subscribe(&filter, &queue)) {
                let is_filtered = self.is_filtered(id, &filter, &queue);
                self.broker
                    .exchange
                    .subs
                    .get_mut(sub)
                    .set_filtered(is_filtered);
                continue;
            }
            self.broker.exchange.drop_subscription(sub);
            let error = ClientError::SubscriptionDropped(denied(&filter, &queue).to_string(), sid);
            self.send_error(id, &error);
        }
    }
}

fn denied(filter: &[u8], queue: &[u8]) -> ClientError {
    match queue {
        [] => ClientError::SubscriptionDenied(text(filter)),
        queue => ClientError::QueueSubscriptionDenied(text(filter), text(queue)),
    }
}
