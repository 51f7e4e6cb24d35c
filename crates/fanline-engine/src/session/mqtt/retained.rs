//! Retained messages for new subscriptions, which the registry reads in batches.

use super::MqttSession;
use super::expiry::Lifetime;
use super::messages::{RegistryMessage, RetainedBatch, RetainedMessage, RetainedRequest};
use super::names;
use super::parts;
use super::state::{QueuedMessage, RETAINED_TOKEN};
use crate::codec::mqtt::{Version, parent_subject, qos_of, write_properties};

impl MqttSession<'_> {
    /// Requests the retained messages of subscriptions, one subscription after the other.
    pub(super) fn request_retained_for(&mut self, subs: &[u32]) {
        let account = self.account();
        let connection = self.connection_id();
        let mqtt = self.state_mut();
        for index in subs {
            let Some(sub) = mqtt.sub(*index) else {
                continue;
            };
            let stored = |subject: &[u8]| -> Box<[u8]> {
                [names::RETAINED_PREFIX.as_bytes(), subject].concat().into()
            };
            let parent = parent_subject(&sub.subject).map(stored);
            let filters = std::iter::once(stored(&sub.subject)).chain(parent);
            let filters = filters.collect();
            mqtt.retained_requests.push_back(RetainedRequest {
                account,
                connection,
                sub: *index,
                filters,
                from: 0,
            });
        }
        self.request_retained();
    }

    /// Requests more retained messages, if requests remain and all output for the client is written.
    pub(crate) fn request_retained(&mut self) {
        let session = self.session_mut();
        let is_behind = !session.out.is_empty();
        let (mqtt, _) = parts(session);
        if mqtt.awaits_retained || !mqtt.queue.is_empty() || is_behind {
            return;
        }
        if let Some(request) = mqtt.retained_requests.pop_front() {
            mqtt.awaits_retained = true;
            self.send_to_registry(RegistryMessage::RequestRetained(request));
        }
    }

    /// Handles retained messages that were requested.
    pub(super) fn queue_retained(&mut self, batch: &RetainedBatch) {
        let now = i64::try_from(self.broker.exchange.outputs.now.as_nanos()).unwrap_or(i64::MAX);
        let request = &batch.request;
        // By now, another subscription may use the index.
        let sub = self.state().sub(request.sub);
        let is_wanted = sub.is_some_and(|sub| request.is_for(&sub.subject));
        if is_wanted {
            for message in &batch.messages {
                self.queue_one_retained(request.sub, message, now);
            }
        }
        let mqtt = self.state_mut();
        mqtt.awaits_retained = false;
        if batch.has_more && is_wanted {
            mqtt.retained_requests.push_front(request.clone());
        }
        self.deliver_queue();
    }

    fn queue_one_retained(&mut self, sub: u32, message: &RetainedMessage, now: i64) {
        let exchange = &mut self.broker.exchange;
        let session = &mut exchange.sessions[self.id.index()];
        let restriction = session.restriction.as_ref();
        if restriction.is_some_and(|restriction| !restriction.may_receive(&message.subject, b"")) {
            return;
        }
        let (mqtt, _) = parts(session);
        let unix_nanos = mqtt.started_unix_nanos.saturating_add(now);
        let lifetime = Lifetime::left(&message.headers, message.unix_nanos, unix_nanos);
        let version = mqtt.connection.version();
        let (Some(sub), Some(lifetime)) = (mqtt.sub(sub), lifetime) else {
            return;
        };
        if sub.hides(&message.subject) {
            return;
        }
        let Some(topic) = exchange.shared.mqtt.events.topic(&message.subject) else {
            return;
        };
        let mut properties = Vec::new();
        if version == Version::V5 {
            write_properties(&message.headers, b"", lifetime.seconds(), &mut properties);
        }
        let identifier = Some(sub.subscription.identifier).filter(|identifier| *identifier != 0);
        let queued = QueuedMessage {
            topic: topic.into(),
            qos: sub.qos.min(qos_of(&message.headers)),
            // MQTT-3.3.1-8: RETAIN is set because the subscription is new.
            retain: true,
            dup: false,
            properties: properties.into(),
            identifiers: identifier.into_iter().collect(),
            payload: message.payload.clone(),
            token: RETAINED_TOKEN | message.sequence,
            packet_id: None,
            ack_subject: Box::default(),
            expires_at: lifetime.expires_at(unix_nanos),
            is_claimed: false,
        };
        mqtt.queue.push_back(queued);
    }
}
