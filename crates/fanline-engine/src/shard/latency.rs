//! How long services take: what is looked at is told to the account that exports the service, as
//! `io.nats.server.metric.v1.service_latency`.
//!
//! The one who answers may be on another shard. Then no more is known of him than his account, and
//! his own round trip counts as time of the service.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::Shard;
use super::deliver::{Message, Origin};
use crate::auth::{AccountId, ExportKind, Sampling};
use crate::exchange::router::Terms;
use crate::jetstream::Timestamp;

const TYPE: &str = "io.nats.server.metric.v1.service_latency";

/// A request that is looked at.
pub(super) struct Measure {
    /// The topic of the report.
    subject: String,
    asked_at: Duration,
    /// Who has asked, and the round trip to him.
    requestor: Value,
    rtt: Duration,
    headers: Headers,
}

/// The headers that have asked for a report, as nats-server shows them.
type Headers = BTreeMap<String, Vec<String>>;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    /// It had no topic for an answer.
    NoReply,
    /// Nobody listened for the answer any more.
    Abandoned,
    /// Nobody was there to answer.
    Unserved,
    /// No answer came in time.
    Late,
}

impl Outcome {
    /// Status and description.
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

/// Times are in nanoseconds.
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

impl Shard {
    /// What has to be kept of a request to report on it; `None` when nobody wants to know.
    pub(super) fn measure(
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
            Sampling::Headers => asking(&message.body[..message.header_bytes])?,
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
            asked_at: self.exchange.pending.now,
            requestor: self.who_is(importer, terms.share, origin),
            rtt: self.rtt_of(origin),
            headers,
        })
    }

    /// Tells how a request ended, in the account that exports the service.
    #[cold]
    pub(super) fn report(
        &mut self,
        exporter: AccountId,
        measure: &Measure,
        outcome: Outcome,
        responder: Origin<'_>,
    ) {
        let id = self.exchange.secrets.id();
        let now = self.exchange.pending.now;
        let elapsed = now.saturating_sub(measure.asked_at);
        let (status, description) = outcome.words();
        let is_answered = outcome == Outcome::Answered;
        let report = Report {
            r#type: TYPE,
            id,
            timestamp: self.date(now),
            status,
            description,
            requestor: &measure.requestor,
            responder: is_answered.then(|| self.who_is(exporter, true, responder)),
            header: &measure.headers,
            start: self.date(measure.asked_at.saturating_sub(measure.rtt)),
            service: nanos(elapsed.saturating_sub(self.rtt_of(responder))),
            system: 0,
            total: nanos(elapsed.saturating_add(measure.rtt)),
        };
        let Ok(json) = serde_json::to_vec(&report) else {
            return;
        };
        self.tell_all(exporter, measure.subject.as_bytes(), &[], &json);
    }

    fn who_is(&self, account: AccountId, is_detailed: bool, origin: Origin<'_>) -> Value {
        let known = self.request_info(account, is_detailed, origin);
        let known = known.and_then(|text| serde_json::from_str(&text).ok());
        known.unwrap_or_else(|| {
            let account = self.exchange.access.account(account);
            json!({ "acc": account.map_or("", |account| &account.name) })
        })
    }

    fn rtt_of(&self, origin: Origin<'_>) -> Duration {
        let session = origin
            .session
            .and_then(|id| self.exchange.sessions.get(id as usize));
        session.and_then(|session| session.rtt).unwrap_or_default()
    }

    /// When a moment of this server was.
    pub(super) fn date(&self, at: Duration) -> Timestamp {
        let since_1970 = self.exchange.info.started_at.saturating_add(at);
        let nanos = i64::try_from(since_1970.as_nanos());
        Timestamp::from_unix_nanos(nanos.unwrap_or(i64::MAX))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The headers by which tracers say that a request is to be looked at: those of Jaeger, Zipkin (B3)
/// and W3C.
fn asking(headers: &[u8]) -> Option<Headers> {
    let mut asking = Headers::new();
    let text = std::str::from_utf8(headers).ok()?;
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        let has_flag = |last: &str| u8::from_str_radix(last, 16).is_ok_and(|flags| flags & 1 == 1);
        let is_asking = match name.to_ascii_lowercase().as_str() {
            "uber-trace-id" => value.split(':').nth(3).is_some_and(has_flag),
            "traceparent" => value.split('-').nth(3).is_some_and(has_flag),
            "x-b3-sampled" => value == "1",
            "b3" => matches!(value.split('-').nth(2), Some("1" | "d")),
            _ => false,
        };
        if is_asking {
            asking.insert(name.into(), vec![value.into()]);
        }
    }
    (!asking.is_empty()).then_some(asking)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Client, World};
    use super::*;
    use crate::auth::{
        Access, AccessConfig, Auth, Export, Import, ImportKind, Latency, ResponseKind,
    };
    use crate::limits::Limits;

    #[test]
    fn tracers_ask_in_their_headers() {
        let check = |header: &str, expected: bool| {
            let headers = format!("NATS/1.0\r\nA: b\r\n{header}\r\n\r\n");
            let found = asking(headers.as_bytes());
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

    /// A service in A that B may ask, and who hears the reports.
    fn world(shards: usize, sampling: Sampling) -> (World, [Client; 3]) {
        let mut config = AccessConfig::default();
        config.account_mut("A").exports.push(Export {
            kind: ExportKind::Service {
                response: ResponseKind::Single,
                response_threshold: None,
                latency: Some(Latency {
                    subject: "latency".into(),
                    sampling,
                }),
            },
            subject: "svc".into(),
            accounts: None,
            account_token_position: None,
            allow_trace: false,
        });
        config.account_mut("B").imports.push(Import {
            kind: ImportKind::Service { share: false },
            account: "A".into(),
            subject: "svc".into(),
            to: None,
            allow_trace: false,
        });
        let access = Access::new(config).unwrap();
        let ids = ["A", "A", "B"].map(|name| access.account_id(name).unwrap());
        let mut world = World::with(shards, Limits::default(), Auth::Directory(access.into()));
        let clients = ids.map(|account| {
            let client = world.client(0);
            world.shards[0].bind(client.id, account);
            client
        });
        world.say(clients[1], "SUB latency 1\r\n");
        world.say(clients[2], "SUB in 1\r\n");
        (world, clients)
    }

    /// The one report that came, without its line.
    fn report(world: &mut World, listener: Client) -> Value {
        let told = world.read(listener);
        let (line, json) = told.split_once("\r\n").expect("a report");
        assert!(line.starts_with("MSG latency 1 "), "{told}");
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn answers_are_reported_to_the_exporter() {
        for shards in [1, 2] {
            let (mut world, [service, listener, asker]) = world(shards, Sampling::Percent(100));
            world.say(service, "SUB svc 1\r\n");
            world.say(asker, "PUB svc in 2\r\nhi\r\n");
            assert_eq!(world.read(listener), "");
            let asked = world.read(service);
            let reply = asked.split(' ').nth(3).unwrap();
            world.say(service, &format!("PUB {reply} 2\r\nho\r\n"));
            assert_eq!(world.read(asker), "MSG in 1 2\r\nho\r\n");
            let told = report(&mut world, listener);
            assert_eq!(told["type"], TYPE);
            assert_eq!(told["status"], 200);
            assert_eq!(told["description"], Value::Null);
            assert_eq!(told["requestor"]["acc"], "B");
            // Who asks did not share more than that.
            assert_eq!(told["requestor"]["id"], Value::Null);
            assert_eq!(told["responder"]["acc"], "A");
            assert_eq!(told["id"].as_str().map(str::len), Some(22));
            for key in ["start", "timestamp"] {
                assert!(told[key].is_string(), "{told}");
            }
            for key in ["service", "system", "total"] {
                assert!(told[key].is_u64(), "{told}");
            }
        }
    }

    #[test]
    fn what_is_not_answered_is_reported_too() {
        let (mut world, [service, listener, asker]) = world(1, Sampling::Percent(100));
        world.say(asker, "PUB svc in 2\r\nhi\r\n");
        assert_eq!(report(&mut world, listener)["status"], 503);
        world.say(service, "SUB svc 1\r\n");
        world.say(asker, "PUB svc 2\r\nhi\r\n");
        let told = report(&mut world, listener);
        assert_eq!(
            (&told["status"], &told["description"]),
            (&json!(400), &json!("Bad Request"))
        );
        world.say(asker, "PUB svc in 2\r\nhi\r\n");
        // Longer than an answer may take.
        let later = Duration::from_secs(3600);
        world.shards[0].handle_timeout(later);
        assert_eq!(report_among(&world.read(listener))["status"], 504);
    }

    /// The report among what else a client is told in an hour.
    fn report_among(told: &str) -> Value {
        let json = told.lines().find(|line| line.starts_with('{'));
        serde_json::from_str(json.expect("a report")).expect("JSON")
    }

    #[test]
    fn only_what_is_asked_for_is_reported() {
        let (mut world, [service, listener, asker]) = world(1, Sampling::Headers);
        world.say(service, "SUB svc 1\r\n");
        world.say(asker, "PUB svc 2\r\nhi\r\n");
        assert_eq!(world.read(listener), "");
        let headers = "NATS/1.0\r\nX-B3-Sampled: 1\r\n\r\n";
        let bytes = headers.len();
        world.say(asker, &format!("HPUB svc {bytes} {bytes}\r\n{headers}\r\n"));
        let told = report(&mut world, listener);
        assert_eq!(told["header"], json!({ "X-B3-Sampled": ["1"] }));
        let (mut world, [service, listener, asker]) = self::world(1, Sampling::Percent(0));
        world.say(service, "SUB svc 1\r\n");
        world.say(asker, "PUB svc 2\r\nhi\r\n");
        assert_eq!(world.read(listener), "");
    }
}
