//! Push delivery: subscribers, rate limit, and flow control.

use super::machine::Consumer;
use super::rules::Rules;
use super::shared::CallContext;
use super::status::Status;
use crate::jetstream::{AckPolicy, ConsumerConfig, Port};

/// Maximum number of bytes that are sent before the subscriber answers a flow control request.
const WINDOW_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Initial value of this maximum. It doubles with each answer.
const WINDOW_BYTES_MIN: u64 = WINDOW_BYTES_MAX / 16;
/// Deliver subjects of the consumers of MQTT sessions and groups.
const MQTT: [&[u8]; 2] = [b"$MQTT.sub.", b"$MQTT.member."];
/// Number of random characters in the subject of a flow control request.
const FLOW_ID_CHARS: usize = 4;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// State of a push consumer.
#[derive(Debug)]
pub(super) struct Push {
    subject: Box<[u8]>,
    /// Queue group of the subscribers; empty means subscribers outside queue groups.
    group: Box<[u8]>,
    /// Whether the deliver subject has a subscriber in this queue group.
    is_active: bool,
    flow: Option<Flow>,
    /// Time of the last message, in nanoseconds since the server's start.
    last_sent: u64,
    /// Time at which the rate limit allows the next record, in nanoseconds since the server's start.
    allowed_at: u64,
}

/// Flow control state.
#[derive(Debug, Default)]
struct Flow {
    window: u64,
    bytes: u64,
    request: Option<FlowRequest>,
}

/// A flow control request that is not answered yet.
#[derive(Debug)]
struct FlowRequest {
    subject: Vec<u8>,
    /// Number of bytes that the answer to this request confirms.
    bytes: u64,
    stream_sequence: u64,
}

impl Flow {
    fn new() -> Self {
        Flow {
            window: WINDOW_BYTES_MIN,
            ..Flow::default()
        }
    }

    fn is_stalled(&self) -> bool {
        self.bytes > self.window
    }
}

impl Push {
    pub(super) fn new(config: &ConsumerConfig) -> Self {
        Push {
            subject: config.deliver_subject.as_bytes().into(),
            group: config.deliver_group.as_bytes().into(),
            is_active: false,
            flow: config.flow_control.then(Flow::new),
            last_sent: 0,
            allowed_at: 0,
        }
    }

    pub(super) fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// Returns whether the deliver subject has a subscriber in the configured queue group now.
    pub(super) fn has_receiver(&self, port: &mut dyn Port) -> bool {
        port.has_receiver(&self.subject, &self.group)
    }

    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Returns whether a record may be delivered now.
    pub(super) fn can_send(&self, at: u64) -> bool {
        self.is_active
            && self.allowed_at <= at
            && self.flow.as_ref().is_none_or(|flow| !flow.is_stalled())
    }

    /// Returns the time at which the rate limit allows the next record; `None` if it allows a record now.
    pub(super) fn next_allowed(&self, at: u64) -> Option<u64> {
        (self.is_active && self.allowed_at > at).then_some(self.allowed_at)
    }

    /// Returns the time at which the next heartbeat is due.
    pub(super) fn next_heartbeat(&self, rules: &Rules) -> Option<u64> {
        let every = rules.heartbeat_nanos.filter(|_| self.is_active)?;
        Some(self.last_sent.saturating_add(every))
    }

    /// Returns the number of bytes after which flow control must decide again; `None` if no record may be
    /// delivered now.
    pub(super) fn bytes_to_decision(&self, at: u64) -> Option<u64> {
        let limit = |flow: &Flow| match flow.request {
            None => flow.window / 2,
            Some(_) => flow.window,
        };
        let left = |flow: &Flow| limit(flow).saturating_sub(flow.bytes);
        (self.can_send(at)).then(|| self.flow.as_ref().map_or(u64::MAX, left))
    }

    /// Counts delivered bytes.
    pub(super) fn sent(&mut self, bytes: u64, at: u64, rules: &Rules) {
        self.last_sent = at;
        if let Some(flow) = &mut self.flow {
            flow.bytes += bytes;
        }
        if let Some(bits_per_second) = rules.bits_per_second {
            let nanos = u128::from(bytes) * 8 * NANOS_PER_SECOND / u128::from(bits_per_second);
            let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
            self.allowed_at = self.allowed_at.max(at).saturating_add(nanos);
        }
    }
}

impl Consumer {
    /// Sets whether there is a subscriber.
    pub(super) fn set_active(&mut self, is_active: bool, context: &mut CallContext<'_>) {
        let Some(push) = &mut self.push else {
            return;
        };
        if push.is_active == is_active {
            return;
        }
        push.is_active = is_active;
        push.last_sent = context.at;
        push.flow = self.config.flow_control.then(Flow::new);
        self.last_used = context.at;
        let is_mqtt = MQTT.iter().any(|prefix| push.subject.starts_with(prefix));
        if is_active && (is_mqtt || self.rules.ack_policy == AckPolicy::FlowControl) {
            // The previous subscriber may not have received these records. MQTT requires that a client
            // receives all unacknowledged messages when it reconnects (MQTT-4.4.0-1).
            self.queue_all(context);
        }
    }

    /// Sends a flow control request when half of the allowed bytes have been sent.
    pub(super) fn request_flow_control(&mut self, context: &mut CallContext<'_>) {
        let half_pending = self.rules.ack_policy == AckPolicy::FlowControl
            && self.pending.len() > self.rules.pending_max / 2;
        self.request_flow_control_if(context, |flow| flow.bytes > flow.window / 2 || half_pending);
    }

    fn request_flow_control_if(
        &mut self,
        context: &mut CallContext<'_>,
        wanted: impl Fn(&Flow) -> bool,
    ) -> bool {
        let stream_sequence = self.delivered.stream_sequence;
        let Some(push) = &mut self.push else {
            return false;
        };
        let Some(flow) = push
            .flow
            .as_mut()
            .filter(|flow| flow.request.is_none() && wanted(flow))
        else {
            return false;
        };
        let id = context.shared.random.token(FLOW_ID_CHARS);
        let subject =
            format!("$JS.FC.{}.{}.{id}", context.shared.stream, self.config.name).into_bytes();
        context.send(&push.subject, &subject, Status::FlowControlRequest);
        flow.request = Some(FlowRequest {
            subject,
            bytes: flow.bytes,
            stream_sequence,
        });
        true
    }

    /// Handles the answer to a flow control request, which confirms everything that was sent before the
    /// request.
    pub(super) fn handle_flow_control(&mut self, subject: &[u8], context: &mut CallContext<'_>) {
        let Some(flow) = self.push.as_mut().and_then(|push| push.flow.as_mut()) else {
            return;
        };
        let Some(request) = flow.request.take_if(|request| request.subject == subject) else {
            return;
        };
        flow.bytes = flow.bytes.saturating_sub(request.bytes);
        flow.window = (flow.window * 2).min(WINDOW_BYTES_MAX);
        self.last_used = context.at;
        if self.rules.ack_policy == AckPolicy::FlowControl {
            self.acknowledge_up_to(request.stream_sequence, context);
        }
    }

    /// Sends a heartbeat if one is due.
    pub(super) fn heartbeat(&mut self, context: &mut CallContext<'_>) {
        let due = self
            .push
            .as_ref()
            .and_then(|push| push.next_heartbeat(&self.rules));
        if due.is_none_or(|due| due > context.at) {
            return;
        }
        // If no record follows, the answer to this request is the only acknowledgement.
        if self.rules.ack_policy == AckPolicy::FlowControl && !self.pending.is_empty() {
            self.request_flow_control_if(context, |_| true);
        }
        let stream_sequence = self.last_examined();
        let Some(push) = &mut self.push else {
            return;
        };
        push.last_sent = context.at;
        let request = push.flow.as_ref().filter(|flow| flow.is_stalled());
        let status = Status::IdleHeartbeat {
            consumer_sequence: self.delivered.consumer_sequence,
            stream_sequence,
            stalled: request
                .and_then(|flow| flow.request.as_ref())
                .map(|request| request.subject.as_slice()),
        };
        context.send(&push.subject, b"", status);
    }
}
