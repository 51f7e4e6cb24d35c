//! The responder's half of a service latency, in a cluster.
//!
//! The requester's server measures the whole time of a request. If the responder is connected to another server, that
//! server measures the time of the service, and sends it in the system account to a subject that the request's reply
//! subject names.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Broker;
use super::latency::Outcome;
use crate::auth::AccountId;
use crate::exchange::Kind;
use crate::exchange::batch::Notification;
use crate::exchange::message::{Message, Origin};
use crate::exchange::router::HALVES;
use crate::exchange::session::SessionId;
use crate::subject::is_literal_subject;
use crate::time::Timestamp;

/// Largest number of requests of other servers that are remembered. Beyond that, the oldest one is forgotten, and the
/// requester's server reports no responder.
const REQUESTS_MAX: usize = 64 * 1024;
/// Time after which a request of another server is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// Measured requests of other servers, by their reply subjects.
#[derive(Default)]
pub(crate) struct MeasuredRequests {
    received_at: HashMap<Box<[u8]>, Duration>,
    /// The same requests in their order, and requests that were answered.
    order: VecDeque<(Duration, Box<[u8]>)>,
}

impl MeasuredRequests {
    fn record(&mut self, reply: &[u8], now: Duration) {
        let is_old = |at: Duration| at.saturating_add(FORGET_AFTER) <= now;
        while let Some((at, _)) = self.order.front()
            && (is_old(*at) || self.order.len() >= REQUESTS_MAX)
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.received_at.remove(&oldest);
        }
        self.received_at.insert(reply.into(), now);
        self.order.push_back((now, reply.into()));
    }

    /// Removes a request. Returns the time at which it was received.
    fn take(&mut self, reply: &[u8]) -> Option<Duration> {
        self.received_at.remove(reply)
    }
}

/// Notifies the other shards, of which one has the responder, of a measured request.
#[derive(Clone)]
pub(crate) struct MeasuredRequest {
    reply: Box<[u8]>,
}

impl Notification for MeasuredRequest {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.reply.len()
    }
}

/// The responder's half.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Half {
    #[serde(default)]
    status: u16,
    #[serde(default)]
    pub(super) responder: Value,
    #[serde(default)]
    start: String,
    /// Time of the service in nanoseconds.
    #[serde(default)]
    pub(super) service: i64,
    #[serde(default)]
    system: i64,
    #[serde(default)]
    total: i64,
}

impl Half {
    /// Returns the responder's round-trip time.
    pub(super) fn rtt(&self) -> Duration {
        Duration::from_nanos(self.responder["rtt"].as_u64().unwrap_or_default())
    }

    pub(super) fn service(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.service).unwrap_or_default())
    }
}

/// The message with the responder's half.
#[derive(Deserialize, Serialize)]
struct HalfMessage {
    /// The account that exports the service.
    account: String,
    /// The reply subject of the request.
    req_id: String,
    m2: Half,
}

impl<K: Kind> Broker<K> {
    /// Records a measured request of another server, on all shards.
    #[cold]
    pub(crate) fn receive_measured(&mut self, reply: &[u8]) {
        let request = MeasuredRequest {
            reply: reply.into(),
        };
        let own = usize::from(self.exchange.index);
        for (shard, batch) in self.exchange.outgoing.iter_mut().enumerate() {
            if shard != own {
                batch.push_notification(request.clone());
            }
        }
        self.record_measured(&request);
    }

    pub(crate) fn record_measured(&mut self, request: &MeasuredRequest) {
        let now = self.exchange.outputs.now;
        self.accounts.measured.record(&request.reply, now);
    }

    /// Sends the responder's half to the requester's server, if a client responds to a measured request of another
    /// server.
    #[cold]
    pub(crate) fn send_half(&mut self, id: SessionId, subject: &[u8]) {
        let Some(received_at) = self.accounts.measured.take(subject) else {
            return;
        };
        let Ok(req_id) = std::str::from_utf8(subject) else {
            return;
        };
        let account = self.exchange.sessions[id.index()].account;
        let origin = Origin {
            session: Some(id.0),
            ..Origin::ELSEWHERE
        };
        let Some(place) = req_id.rsplit('.').nth(1) else {
            return;
        };
        let to = format!("{HALVES}{place}");
        if !is_literal_subject(to.as_bytes()) {
            return;
        }
        let rtt = self.rtt_of(origin);
        let now = self.exchange.outputs.now;
        let service = now.saturating_sub(received_at).saturating_sub(rtt);
        let signed = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let start: Timestamp = self.date(received_at.saturating_sub(rtt));
        let message = HalfMessage {
            account: self.exchange.account_name(account),
            req_id: req_id.to_owned(),
            m2: Half {
                status: 200,
                responder: self.identity(account, true, origin),
                start: start.to_string(),
                service: signed(service),
                system: 0,
                total: signed(service.saturating_add(rtt)),
            },
        };
        if let Ok(json) = serde_json::to_vec(&message) {
            self.publish_event(AccountId::SYSTEM, to.as_bytes(), &[], &json, 0);
        }
    }

    /// Takes the responder's half of a request of this shard. Reports the latency if the response has arrived.
    #[cold]
    pub(super) fn take_half(&mut self, message: &Message<'_>, depth: u8) -> bool {
        let payload = &message.body[message.header_bytes..message.payload_bytes()];
        let Ok(HalfMessage {
            account,
            req_id,
            m2,
        }) = serde_json::from_slice(payload)
        else {
            return false;
        };
        let Some(exporter) = self.exchange.access.account_id(&account) else {
            return false;
        };
        let requests = &mut self.accounts.requests;
        let (is_known, answered) = requests.take_half(req_id.as_bytes(), exporter, m2);
        if let Some(measure) = answered {
            self.report(
                exporter,
                &measure,
                Outcome::Answered,
                Origin::ELSEWHERE,
                depth,
            );
        }
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn old_requests_are_forgotten() {
        let mut requests = MeasuredRequests::default();
        requests.record(b"a", SECOND);
        requests.record(b"b", 2 * SECOND);
        assert_eq!(requests.take(b"a"), Some(SECOND));
        assert_eq!(requests.take(b"a"), None);
        requests.record(b"c", FORGET_AFTER + 2 * SECOND);
        assert_eq!(requests.take(b"b"), None);
        assert_eq!(requests.order.len(), 1);
    }

    #[test]
    fn number_of_requests_is_limited() {
        let mut requests = MeasuredRequests::default();
        for number in 0..=REQUESTS_MAX {
            requests.record(number.to_string().as_bytes(), SECOND);
        }
        assert_eq!(requests.order.len(), REQUESTS_MAX);
        assert_eq!(requests.take(b"0"), None);
        assert!(requests.take(b"1").is_some());
    }
}
