//! Latency of services, reported to the account that exports the service as
//! `io.nats.server.metric.v1.service_latency`.
//!
//! If the responder is on another shard, this shard knows only the responder's account. The reported service
//! time then includes the responder's round-trip time. The server of a responder elsewhere in the cluster sends its half
//! of the measurement.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::Broker;
use super::responder_half::Half;
use crate::auth::{AccountId, ExportKind, Sampling};
use crate::exchange::Kind;
use crate::exchange::message::{Message, Origin};
use crate::exchange::router::Terms;
use crate::headers::each_text;
use crate::time::Timestamp;

const TYPE: &str = "io.nats.server.metric.v1.service_latency";

/// A request whose latency is reported.
pub(crate) struct Measure {
    /// Subject of the latency report.
    subject: String,
    requested_at: Duration,
    /// The requester, and its round-trip time.
    requestor: Value,
    rtt: Duration,
    headers: Headers,
    /// Time of the first response.
    pub(super) answered_at: Option<Duration>,
    /// The half of the responder's server.
    pub(super) half: Option<Half>,
}

/// The headers that request a report, in nats-server's form.
type Headers = BTreeMap<String, Vec<String>>;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    /// The request had no reply subject.
    NoReply,
    /// The requester had unsubscribed from its reply subject.
    Abandoned,
    /// There was no responder.
    Unserved,
    /// No response arrived in time.
    Late,
}

impl Outcome {
    /// Returns the status and the description.
    fn words(self) -> (u16, &'static str) {
        match self {
            Outcome::Answered => (200, ""),
            Outcome::NoReply => (400, "Bad Request"),
            Outcome::Abandoned => (408, "Request Timeout"),
            Outcome::Unserved => (503, "Service Unavailable"),
            Outcome::Late => (504, "Service Timeout"),
        }
    }
}

/// The report as JSON. Durations are in nanoseconds.
#[derive(Serialize)]
struct Report<'a> {
    r#type: &'static str,
    id: String,
    timestamp: Timestamp,
    status: u16,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'static str,
    requestor: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    responder: Option<Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    header: &'a Headers,
    start: Timestamp,
    service: u64,
    system: u64,
    total: u64,
}

impl<K: Kind> Broker<K> {
    /// Returns the data for the latency report of a request; `None` if the request is not reported.
    pub(crate) fn measure(
        &mut self,
        (importer, exporter): (AccountId, AccountId),
        terms: Terms,
        message: &Message<'_>,
        origin: Origin<'_>,
    ) -> Option<Measure> {
        let measured = terms.measured?;
        let headers = match measured.sampling {
            Sampling::Percent(percent) => {
                let is_chosen = self.exchange.random.below(100) < u32::from(percent);
                is_chosen.then(Headers::new)?
            }
            Sampling::Headers => sampling_headers(message.headers())?,
        };
        let export = self
            .exchange
            .access
            .account(exporter)?
            .exports
            .get(measured.export)?;
        let ExportKind::Service {
            latency: Some(latency),
            ..
        } = &export.kind
        else {
            return None;
        };
        Some(Measure {
            subject: latency.subject.clone(),
            requested_at: self.exchange.outputs.now,
            requestor: self.identity(importer, terms.share, origin),
            rtt: self.rtt_of(origin),
            headers,
            answered_at: None,
            half: None,
        })
    }

    /// Publishes the latency report of a request in the account that exports the service.
    #[cold]
    pub(crate) fn report(
        &mut self,
        exporter: AccountId,
        measure: &Measure,
        outcome: Outcome,
        responder: Origin<'_>,
        depth: u8,
    ) {
        let id = self.exchange.secrets.id();
        let now = self.exchange.outputs.now;
        let ended_at = measure.answered_at.unwrap_or(now);
        let elapsed = ended_at.saturating_sub(measure.requested_at);
        let total = elapsed.saturating_add(measure.rtt);
        let (status, description) = outcome.words();
        let (responder, service, system) = match &measure.half {
            Some(half) => {
                let others = half.service() + half.rtt() + measure.rtt;
                let system = total.saturating_sub(others);
                (Some(half.responder.clone()), half.service(), system)
            }
            None => {
                let is_answered = outcome == Outcome::Answered;
                let service = elapsed.saturating_sub(self.rtt_of(responder));
                let responder = is_answered.then(|| self.identity(exporter, true, responder));
                (responder, service, Duration::ZERO)
            }
        };
        let report = Report {
            r#type: TYPE,
            id,
            timestamp: self.date(now),
            status,
            description,
            requestor: &measure.requestor,
            responder,
            header: &measure.headers,
            start: self.date(measure.requested_at.saturating_sub(measure.rtt)),
            service: nanos(service),
            system: nanos(system),
            total: nanos(total),
        };
        let Ok(json) = serde_json::to_vec(&report) else {
            return;
        };
        self.publish_event(exporter, measure.subject.as_bytes(), &[], &json, depth);
    }

    pub(super) fn identity(
        &self,
        account: AccountId,
        is_detailed: bool,
        origin: Origin<'_>,
    ) -> Value {
        let known = self.request_info(account, is_detailed, origin);
        let known = known.and_then(|text| serde_json::from_str(&text).ok());
        known.unwrap_or_else(|| {
            let account = self.exchange.access.account(account);
            json!({ "acc": account.map_or("", |account| &account.name) })
        })
    }

    pub(super) fn rtt_of(&self, origin: Origin<'_>) -> Duration {
        let session = origin
            .session
            .and_then(|id| self.exchange.sessions.get(id as usize));
        session.and_then(|session| session.rtt).unwrap_or_default()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the headers by which a tracer marks a request as sampled: those of Jaeger, Zipkin (B3), and W3C.
fn sampling_headers(headers: &[u8]) -> Option<Headers> {
    let mut found = Headers::new();
    for (name, value) in each_text(headers) {
        let has_flag = |last: &str| u8::from_str_radix(last, 16).is_ok_and(|flags| flags & 1 == 1);
        let is_sampled = match name.to_ascii_lowercase().as_str() {
            "uber-trace-id" => value.split(':').nth(3).is_some_and(has_flag),
            "traceparent" => value.split('-').nth(3).is_some_and(has_flag),
            "x-b3-sampled" => value == "1",
            "b3" => matches!(value.split('-').nth(2), Some("1" | "d")),
            _ => false,
        };
        if is_sampled {
            found.insert(name.into(), vec![value.into()]);
        }
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracing_headers_sample_requests() {
        let check = |header: &str, expected: bool| {
            let headers = format!("NATS/1.0\r\nA: b\r\n{header}\r\n\r\n");
            let found = sampling_headers(headers.as_bytes());
            assert_eq!(found.is_some(), expected, "{header}");
        };
        check("Uber-Trace-Id: 479fefe9525eddb:5adb976bfc1f95c1:0:1", true);
        check("Uber-Trace-Id: 479fefe9525eddb:5adb976bfc1f95c1:0:0", false);
        check(
            "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            true,
        );
        check(
            "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            false,
        );
        check("X-B3-Sampled: 1", true);
        check("X-B3-Sampled: 0", false);
        check("b3: 80f198ee56343ba8-e457b5a2e4d86bd1-1", true);
        check("b3: 0", false);
        check("Traceparent: 01", false);
    }
}
