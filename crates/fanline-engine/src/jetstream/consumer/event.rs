//! Events of a consumer, which are published for monitoring.

use serde::Serialize;

use super::shared::CallContext;
use crate::jetstream::{Message, Timestamp};

/// A delivery, in an event.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Delivery {
    #[serde(rename = "consumer_seq")]
    pub(super) consumer_sequence: u64,
    #[serde(rename = "stream_seq")]
    pub(super) stream_sequence: u64,
    #[serde(skip)]
    pub(super) deliveries: u64,
}

/// An event of a consumer.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConsumerEvent<'a> {
    /// A record was acknowledged, and the acknowledgement belongs to the sample.
    Acked { delivery: Delivery, ack_time: i64 },
    /// A record was refused and will be redelivered.
    Naked(Delivery),
    /// A client has requested that a record is never redelivered.
    Terminated { delivery: Delivery, reason: &'a str },
    /// A record has reached the maximum number of deliveries.
    MaxDeliver {
        stream_sequence: u64,
        deliveries: u64,
    },
    /// The consumer was paused until a time, or resumed.
    Pause { until: Option<i64>, is_paused: bool },
    /// A client was pinned to a priority group.
    Pinned { group: &'a str, pinned_id: &'a str },
    /// A client was unpinned from a priority group.
    Unpinned { group: &'a str, reason: &'a str },
}

impl ConsumerEvent<'_> {
    fn subject(&self) -> &'static str {
        match self {
            ConsumerEvent::Acked { .. } => "$JS.EVENT.METRIC.CONSUMER.ACK",
            ConsumerEvent::Naked(_) => "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED",
            ConsumerEvent::Terminated { .. } => "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED",
            ConsumerEvent::MaxDeliver { .. } => "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES",
            ConsumerEvent::Pause { .. } => "$JS.EVENT.ADVISORY.CONSUMER.PAUSE",
            ConsumerEvent::Pinned { .. } => "$JS.EVENT.ADVISORY.CONSUMER.PINNED",
            ConsumerEvent::Unpinned { .. } => "$JS.EVENT.ADVISORY.CONSUMER.UNPINNED",
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ConsumerEvent::Acked { .. } => "io.nats.jetstream.metric.v1.consumer_ack",
            ConsumerEvent::Naked(_) => "io.nats.jetstream.advisory.v1.nak",
            ConsumerEvent::Terminated { .. } => "io.nats.jetstream.advisory.v1.terminated",
            ConsumerEvent::MaxDeliver { .. } => "io.nats.jetstream.advisory.v1.max_deliver",
            ConsumerEvent::Pause { .. } => "io.nats.jetstream.advisory.v1.consumer_pause",
            ConsumerEvent::Pinned { .. } => "io.nats.jetstream.advisory.v1.consumer_group_pinned",
            ConsumerEvent::Unpinned { .. } => {
                "io.nats.jetstream.advisory.v1.consumer_group_unpinned"
            }
        }
    }

    fn body<'a>(&'a self, account: &'a str) -> Body<'a> {
        let empty = Body::default();
        match *self {
            ConsumerEvent::Acked { delivery, ack_time } => Body {
                delivery: Some(delivery),
                ack_time: Some(ack_time),
                deliveries: Some(delivery.deliveries),
                ..empty
            },
            ConsumerEvent::Naked(delivery) => Body {
                delivery: Some(delivery),
                deliveries: Some(delivery.deliveries),
                ..empty
            },
            ConsumerEvent::Terminated { delivery, reason } => Body {
                delivery: Some(delivery),
                deliveries: Some(delivery.deliveries),
                reason: Some(reason).filter(|reason| !reason.is_empty()),
                ..empty
            },
            ConsumerEvent::MaxDeliver {
                stream_sequence,
                deliveries,
            } => Body {
                stream_seq: Some(stream_sequence),
                deliveries: Some(deliveries),
                ..empty
            },
            ConsumerEvent::Pause { until, is_paused } => Body {
                paused: Some(is_paused),
                pause_until: Some(until.map_or(Timestamp::ZERO, Timestamp::from_unix_nanos)),
                ..empty
            },
            ConsumerEvent::Pinned { group, pinned_id } => Body {
                account: Some(account),
                group: Some(group),
                pinned_id: Some(pinned_id),
                ..empty
            },
            ConsumerEvent::Unpinned { group, reason } => Body {
                account: Some(account),
                group: Some(group),
                reason: Some(reason),
                ..empty
            },
        }
    }
}

/// All fields that an event can have, in the order of nats-server.
#[derive(Debug, Default, Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: &'a str,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a str>,
    stream: &'a str,
    consumer: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    delivery: Option<Delivery>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_until: Option<Timestamp>,
}

impl CallContext<'_> {
    /// Publishes an event if its subject has subscribers.
    pub(super) fn publish_event(&mut self, consumer: &str, event: &ConsumerEvent<'_>) {
        let stream = self.shared.stream.as_str();
        let subject = format!("{}.{stream}.{consumer}", event.subject());
        if !self.port.has_interest(subject.as_bytes()) {
            return;
        }
        let id = self.shared.random.id();
        let mut body = event.body(&self.shared.account);
        body.kind = event.kind();
        body.id = &id;
        body.timestamp = Timestamp::from_unix_nanos(self.now.unix_nanos);
        (body.stream, body.consumer) = (stream, consumer);
        // Serializing only strings and numbers does not fail.
        if let Ok(payload) = serde_json::to_vec(&body) {
            let subject = subject.as_bytes();
            self.port.publish(&Message {
                subject,
                payload: &payload,
                ..Message::default()
            });
        }
    }
}
