//! Whether what a client does is allowed to it.
//!
//! Sessions without restrictions have none of this: they pay for a look at one field.

use super::{AnySession, Broker};
use crate::codec::nats::error::ClientError;
use crate::exchange::Kind as _;
use crate::exchange::router::SubId;
use crate::exchange::run::Intake;
use crate::exchange::session::SessionId;
use crate::exchange::text::text;

/// Whether, and why, a topic may be published to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It was before, and nothing has changed.
    Known,
    /// The rules say so.
    Granted,
    /// This once, as an answer.
    AsReply,
    Denied,
}

impl AnySession<'_> {
    /// Whether a client may publish to a topic; tells it when not.
    #[inline(never)]
    pub(crate) fn permit_publish(&mut self, topic: &[u8]) -> Permit {
        let now = self.broker.exchange.outputs.now;
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let Some(restriction) = &mut session.restriction else {
            return Permit::Granted;
        };
        if restriction.may_publish(topic) {
            return Permit::Granted;
        }
        if restriction.use_up_reply(topic, now) {
            return Permit::AsReply;
        }
        self.deny_publish(topic);
        Permit::Denied
    }

    /// Whether a client is known to be permitted to publish to a topic. What its memo holds was when it came for the
    /// first time.
    #[inline]
    pub(crate) fn knows_permitted(&mut self, intake: &mut Intake<'_>, topic: &[u8]) -> bool {
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
    pub(crate) fn note_permitted(&mut self, intake: &Intake<'_>, topic: &[u8]) {
        let restriction = self.broker.exchange.sessions[intake.id.index()]
            .restriction
            .as_ref();
        if let Some(rights) = restriction.and_then(|restriction| restriction.sole_rights()) {
            let router = &mut self.broker.exchange.routers[intake.account];
            router.note_permitted(topic, intake.memo, rights);
        }
    }

    /// Who a session is, for the log.
    fn who(&self) -> String {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let account = self.broker.exchange.access.account(session.account);
        let account = account.map_or("", |account| &account.name);
        let who = format!("{account}/user:{}", session.user());
        format!("{who:?}")
    }

    pub(crate) fn deny_publish(&mut self, topic: &[u8]) {
        let topic = text(topic);
        let who = self.who();
        self.broker.exchange.outputs.notice(self.id, || {
            format!("{who} - Publish Violation - Subject {topic:?}")
        });
        let error = ClientError::PublishDenied(topic);
        self.broker.send_error(self.id, &error);
    }

    /// Whether a client may subscribe; tells it when not.
    pub(crate) fn permit_subscribe(&mut self, filter: &[u8], queue: &[u8], sid: &[u8]) -> bool {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let Some(restriction) = &session.restriction else {
            return true;
        };
        if restriction.may_subscribe(filter, queue) {
            return true;
        }
        let (who, sid) = (self.who(), text(sid));
        let error = denied(filter, queue);
        self.broker.exchange.outputs.notice(self.id, || {
            let filter = text(filter);
            let queue = match queue {
                [] => String::new(),
                queue => format!(", Queue: {:?}", text(queue)),
            };
            format!("{who} - Subscription Violation - Subject {filter:?}{queue}, SID {sid}")
        });
        self.broker.send_error(self.id, &error);
        false
    }

    /// Drops what a client has subscribed to and may not any more, and tells it.
    pub(crate) fn drop_denied_subscriptions(&mut self) {
        let account = self.broker.exchange.sessions[self.id.index()].account;
        let all: Vec<SubId> = self.broker.exchange.subs.of_session(self.id.0).collect();
        for sub in all {
            let subscription = self.broker.exchange.subs.get(sub);
            let filter = self.broker.exchange.routers[account].filter_of(subscription);
            let (queue, sid) = (subscription.queue().to_vec(), text(subscription.sid()));
            let session = &self.broker.exchange.sessions[self.id.index()];
            if session.kind.is_internal(subscription.sid()) {
                continue;
            }
            let restriction = session.restriction.as_ref();
            if restriction.is_none_or(|r| r.may_subscribe(&filter, &queue)) {
                let is_filtered = self.broker.is_filtered(self.id, &filter, &queue);
                self.broker
                    .exchange
                    .subs
                    .get_mut(sub)
                    .set_filtered(is_filtered);
                continue;
            }
            self.broker.exchange.drop_subscription(sub);
            let error = ClientError::SubscriptionDropped(denied(&filter, &queue).to_string(), sid);
            self.broker.send_error(self.id, &error);
        }
    }
}

impl Broker {
    /// Whether single messages of a subscription are to be kept from its client.
    pub(crate) fn is_filtered(&self, id: SessionId, filter: &[u8], queue: &[u8]) -> bool {
        let session = &self.exchange.sessions[id.index()];
        let restriction = session.restriction.as_ref();
        // What an MQTT client is given is written otherwise.
        session.kind.is_mqtt()
            || restriction.is_some_and(|restriction| restriction.filters(filter, queue))
    }
}

fn denied(filter: &[u8], queue: &[u8]) -> ClientError {
    match queue {
        [] => ClientError::SubscriptionDenied(text(filter)),
        queue => ClientError::QueueSubscriptionDenied(text(filter), text(queue)),
    }
}
