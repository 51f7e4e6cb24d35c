//! Permissions of clients.
//!
//! Without restrictions, a check reads one field only.

use super::{AnySession, Broker};
use crate::codec::nats::error::ClientError;
use crate::exchange::Kind as _;
use crate::exchange::router::SubId;
use crate::exchange::run::Intake;
use crate::exchange::session::SessionId;
use crate::exchange::text::text;

/// Whether and why a client may publish to a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// An earlier check permitted the subject, and the permissions are unchanged.
    Known,
    /// The permissions allow it.
    Granted,
    /// The subject is permitted once, as a response.
    AsReply,
    Denied,
}

impl AnySession<'_> {
    /// Returns whether a client may publish to a subject; sends it an error if not.
    #[inline(never)]
    pub(crate) fn permit_publish(&mut self, subject: &[u8]) -> Permit {
        let now = self.broker.exchange.outputs.now;
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let Some(restriction) = &mut session.restriction else {
            return Permit::Granted;
        };
        if restriction.may_publish(subject) {
            return Permit::Granted;
        }
        if restriction.use_up_reply(subject, now) {
            return Permit::AsReply;
        }
        self.deny_publish(subject);
        Permit::Denied
    }

    /// Returns whether an earlier check permitted the subject. The subject of the cached route (`memo`) was
    /// checked when its first message was routed.
    #[inline]
    pub(crate) fn knows_permitted(&mut self, intake: &mut Intake<'_>, subject: &[u8]) -> bool {
        self.broker.exchange.routers[intake.account].knows_permitted(
            subject,
            intake.rights,
            &mut intake.memo,
        )
    }

    /// Records that permissions allow the subject of the last message, so that the next message needs no
    /// check.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_permitted(&mut self, intake: &Intake<'_>, subject: &[u8]) {
        let restriction = self.broker.exchange.sessions[intake.id.index()]
            .restriction
            .as_ref();
        if let Some(rights) = restriction.and_then(|restriction| restriction.sole_rights()) {
            let router = &mut self.broker.exchange.routers[intake.account];
            router.record_permitted(subject, intake.memo, rights);
        }
    }

    /// Returns the account and the user of a session, for the log.
    fn identity(&self) -> String {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let account = self.broker.exchange.access.account(session.account);
        let account = account.map_or("", |account| &account.name);
        let who = format!("{account}/user:{}", session.user());
        format!("{who:?}")
    }

    pub(crate) fn deny_publish(&mut self, subject: &[u8]) {
        let subject = text(subject);
        let who = self.identity();
        self.broker.exchange.outputs.notice(self.id, || {
            format!("{who} - Publish Violation - Subject {subject:?}")
        });
        let error = ClientError::PublishDenied(subject);
        self.broker.send_error(self.id, &error);
    }

    /// Returns whether a client may subscribe to a filter; sends it an error if not.
    pub(crate) fn permit_subscribe(&mut self, filter: &[u8], queue: &[u8], sid: &[u8]) -> bool {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let Some(restriction) = &session.restriction else {
            return true;
        };
        if restriction.may_subscribe(filter, queue) {
            return true;
        }
        let (who, sid) = (self.identity(), text(sid));
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

    /// Drops the subscriptions that the client's permissions do not allow any more, and sends an error for
    /// each.
    pub(crate) fn drop_denied_subscriptions(&mut self) {
        let account = self.session().account;
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
    /// Returns whether each message of a subscription must be checked or encoded before it is delivered.
    pub(crate) fn is_filtered(&self, id: SessionId, filter: &[u8], queue: &[u8]) -> bool {
        let session = &self.exchange.sessions[id.index()];
        let restriction = session.restriction.as_ref();
        // Messages to MQTT clients are encoded.
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
