//! Whether what a client does is allowed to it.
//!
//! Sessions without restrictions have none of this: they pay for a look at one field.

use std::sync::Arc;

use super::Shard;
use super::mqtt::is_own_of_mqtt;
use super::replies::Replies;
use super::session::{Peer, SessionId};
use super::verbs::text;
use super::verdicts::Verdicts;
use crate::access::{AllowResponses, Grant, Rights};
use crate::nats::error::ClientError;
use crate::router::SubId;

/// What a session with permissions has beside others.
pub(super) struct Restriction {
    rights: Arc<Rights>,
    /// Rights that it must have too.
    within: Option<Arc<Rights>>,
    /// Where it may answer.
    replies: Replies,
    /// Topics that are known to be allowed.
    verdicts: Verdicts,
}

/// Whether, and why, a topic may be published to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    Granted,
    /// This once, as an answer.
    AsReply,
    Denied,
}

impl Restriction {
    pub(super) fn new(grant: &Grant, peer: &Peer) -> Option<Box<Self>> {
        let within = peer
            .vouched
            .as_ref()
            .and_then(|vouched| vouched.within.clone());
        let (rights, within) = match (grant.rights.clone(), within) {
            (Some(rights), within) => (rights, within),
            (None, Some(within)) => (within, None),
            (None, None) => return None,
        };
        Some(Box::new(Restriction {
            rights,
            within,
            replies: Replies::default(),
            verdicts: Verdicts::default(),
        }))
    }

    /// Whether a topic may be published to, answers aside.
    pub(super) fn may_publish(&self, topic: &[u8]) -> bool {
        may_publish(&self.rights, self.within.as_deref(), topic)
    }

    /// The same for a client that publishes to it time and again.
    fn may_publish_again(&mut self, topic: &[u8]) -> bool {
        let (rights, within) = (&self.rights, self.within.as_deref());
        self.verdicts
            .allow(topic, || may_publish(rights, within, topic))
    }

    fn may_subscribe(&self, filter: &[u8], queue: &[u8]) -> bool {
        self.rights.may_subscribe(filter, queue)
            && (self.within.as_ref()).is_none_or(|within| within.may_subscribe(filter, queue))
    }

    /// Who may do less than its user may not answer either.
    fn responses(&self) -> Option<AllowResponses> {
        self.rights.responses().filter(|_| self.within.is_none())
    }

    /// Takes note of where an answer to a message may go.
    #[cold]
    pub(super) fn note_reply(&mut self, reply: &[u8], now: std::time::Duration) {
        if let Some(rule) = self.responses() {
            self.replies.note(reply, rule, now);
        }
    }

    /// Whether a message may be given to a subscription that matches more than it may have.
    #[cold]
    pub(super) fn may_receive(&self, topic: &[u8], queue: &[u8]) -> bool {
        self.rights.may_receive(topic, queue)
            && (self.within.as_ref()).is_none_or(|within| within.may_receive(topic, queue))
    }
}

fn may_publish(rights: &Rights, within: Option<&Rights>, topic: &[u8]) -> bool {
    rights.may_publish(topic) && within.is_none_or(|within| within.may_publish(topic))
}

impl Shard {
    /// Whether a client may publish to a topic; tells it when not.
    #[inline(never)]
    pub(super) fn permit_publish(&mut self, id: SessionId, topic: &[u8]) -> Permit {
        let now = self.pending.now;
        let session = &mut self.sessions[id.index()];
        let Some(restriction) = &mut session.restriction else {
            return Permit::Granted;
        };
        if restriction.may_publish_again(topic) {
            return Permit::Granted;
        }
        if let Some(rule) = restriction.responses()
            && restriction.replies.use_up(topic, rule, now)
        {
            return Permit::AsReply;
        }
        self.deny_publish(id, topic);
        Permit::Denied
    }

    /// Who a session is, for the log.
    fn who(&self, id: SessionId) -> String {
        let session = &self.sessions[id.index()];
        let account = self.access.account(session.account);
        let account = account.map_or("", |account| &account.name);
        let who = format!("{account}/user:{}", session.user());
        format!("{who:?}")
    }

    pub(super) fn deny_publish(&mut self, id: SessionId, topic: &[u8]) {
        let topic = text(topic);
        let who = self.who(id);
        self.pending.notice(id, || {
            format!("{who} - Publish Violation - Subject {topic:?}")
        });
        let error = ClientError::PublishDenied(topic);
        self.pending.trace_refusal(&error);
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
        let session = &self.sessions[id.index()];
        let Some(restriction) = &session.restriction else {
            return true;
        };
        if restriction.may_subscribe(filter, queue) {
            return true;
        }
        let (who, sid) = (self.who(id), text(sid));
        let error = denied(filter, queue);
        self.pending.notice(id, || {
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
    pub(super) fn is_filtered(&self, id: SessionId, filter: &[u8]) -> bool {
        let session = &self.sessions[id.index()];
        let restriction = session.restriction.as_ref();
        // What an MQTT client is given is written otherwise.
        session.mqtt.is_some()
            || restriction.is_some_and(|restriction| {
                let within = restriction.within.as_ref();
                restriction.rights.filters(filter) || within.is_some_and(|w| w.filters(filter))
            })
    }

    /// Drops what a client has subscribed to and may not any more, and tells it.
    pub(super) fn drop_denied_subscriptions(&mut self, id: SessionId) {
        let account = self.sessions[id.index()].account;
        let all: Vec<SubId> = self.subs.of_session(id.0).collect();
        for sub in all {
            let subscription = self.subs.get(sub);
            let filter = self.routers[account].filter_of(subscription);
            let (queue, sid) = (subscription.queue().to_vec(), text(subscription.sid()));
            let session = &self.sessions[id.index()];
            if session.mqtt.is_some() && is_own_of_mqtt(subscription.sid()) {
                continue;
            }
            let restriction = session.restriction.as_ref();
            if restriction.is_none_or(|r| r.may_subscribe(&filter, &queue)) {
                let is_filtered = self.is_filtered(id, &filter);
                self.subs.get_mut(sub).set_filtered(is_filtered);
                continue;
            }
            self.drop_subscription(sub);
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
