//! Traces of single messages. A publisher sets the header `Nats-Trace-Dest` to a subject. Each shard then
//! publishes a report to that subject, which lists where the shard sent the message. With `Nats-Trace-Only`,
//! the message itself is not delivered.
//!
//! Each shard reports its own part, as if the shards were servers of a cluster with routes between them. A
//! message to another shard is an egress event with a hop, and that shard's report contains the hop. A server
//! that is connected as a leaf node receives its hop in a header.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::auth::TraceTo;
use crate::encoding::{ACCEPT_ENCODING, CONTENT_ENCODING, Encoding};
use crate::headers::{self, Block};
use crate::subject::is_literal_subject;
use crate::time::Timestamp;

const DESTINATION: &str = "Nats-Trace-Dest";
const ONLY: &str = "Nats-Trace-Only";
/// Header of W3C Trace Context. Its name is case-insensitive.
const PARENT: &str = "traceparent";
/// Header that lists the hops of a message, both in reports and in messages to other servers.
pub(crate) const HOP: &str = "Nats-Trace-Hop";
/// Largest size of a valid hop header in bytes. A longer one is ignored as forged.
const HOP_BYTES_MAX: usize = 256;

/// First hop number of connections to other servers. Shards have the lower numbers.
const FIRST_LINK_HOP: usize = 64;

/// Kinds of connections, with nats-server's numbers.
pub(crate) const CLIENT: u8 = 0;
pub(crate) const ROUTER: u8 = 1;
pub(crate) const GATEWAY: u8 = 2;
pub(crate) const LEAF: u8 = 4;

/// Returns whether headers may request a trace. Most do not, and are not parsed further.
#[inline]
pub(crate) fn may_request_trace(headers: &[u8]) -> bool {
    headers::lines(headers).any(|line| match line {
        [b'N', ..] => line.starts_with(DESTINATION.as_bytes()),
        [b't' | b'T', ..] => line
            .get(..PARENT.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(PARENT.as_bytes())),
        _ => false,
    })
}

/// A trace requested by a message's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceRequest {
    /// Subject that reports are published to.
    pub(crate) to: String,
    /// Whether the message itself is not delivered.
    pub(crate) is_only: bool,
    headers: BTreeMap<String, Vec<String>>,
}

impl TraceRequest {
    /// Reads a request from headers; returns `None` if they request no trace. `by_parent` configures where to
    /// report messages with a sampled `traceparent` header. `ticket` is a random number below 100, which is
    /// compared with the sampling percentage.
    pub(crate) fn read(headers: &[u8], by_parent: Option<&TraceTo>, ticket: u32) -> Option<Self> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers::each_text(headers) {
            all.entry(name.into()).or_default().push(value.into());
        }
        let first = |name: &str| all.get(name).and_then(|values| values.first());
        let (to, is_only) = match first(DESTINATION) {
            Some(to) => {
                let only = first(ONLY).map(|text| text.to_ascii_lowercase());
                let is_only = matches!(only.as_deref(), Some("1" | "true" | "on"));
                (to.clone(), is_only)
            }
            None => {
                let by_parent = by_parent.filter(|to| ticket < u32::from(to.percent))?;
                let mut named = all
                    .iter()
                    .filter(|(name, _)| name.eq_ignore_ascii_case(PARENT));
                let is_sampled = named.any(|(_, values)| {
                    let flags = values.first().and_then(|value| value.split('-').nth(3));
                    let flags = flags.and_then(|flags| u8::from_str_radix(flags, 16).ok());
                    flags.is_some_and(|flags| flags & 1 == 1)
                });
                is_sampled.then(|| (by_parent.dest.clone(), false))?
            }
        };
        is_literal_subject(to.as_bytes()).then_some(TraceRequest {
            to,
            is_only,
            headers: all,
        })
    }

    /// Returns the requested encoding of the report, if there is one.
    fn encoding(&self) -> Option<Encoding> {
        let accepted = self.headers.get(ACCEPT_ENCODING)?.first()?;
        Some(Encoding::wanted(accepted))
    }
}

/// An event of a traced message. Fields that do not apply to the event are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(crate) struct Event {
    pub(crate) r#type: &'static str,
    pub(crate) ts: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cid: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hop: Option<String>,
    /// Whether the event concerns a connection to another server.
    #[serde(skip)]
    pub(crate) is_link: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) acc: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) subj: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) sub: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) queue: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) from: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) to: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) stream: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
}

/// The server that reports a trace.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reporter<'a> {
    pub(crate) name: &'a str,
    pub(crate) host: &'a str,
    pub(crate) id: &'a str,
    pub(crate) ver: &'a str,
    pub(crate) jetstream: bool,
    pub(crate) time: Timestamp,
}

#[derive(Serialize)]
struct Report<'a> {
    server: &'a Reporter<'a>,
    request: Request<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    hops: usize,
    events: &'a [Event],
}

#[derive(Serialize)]
struct Request<'a> {
    header: &'a BTreeMap<String, Vec<String>>,
    msgsize: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The trace of one message.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) request: TraceRequest,
    message_bytes: usize,
    pub(crate) events: Vec<Event>,
}

impl Trace {
    /// Creates a trace whose first event is `ingress`, the arrival of the message.
    pub(crate) fn new(request: TraceRequest, message_bytes: usize, ingress: Event) -> Self {
        Trace {
            request,
            message_bytes,
            events: vec![ingress],
        }
    }

    /// Returns the hop to the shard with this index.
    pub(crate) fn hop_to(&self, index: u16) -> String {
        self.hop(usize::from(index) + 1)
    }

    /// Returns the hop to the next connection to another server.
    pub(crate) fn next_link_hop(&self) -> String {
        let is_link = |event: &&Event| event.is_link && event.hop.is_some();
        let links = self.events.iter().filter(is_link).count();
        self.hop(FIRST_LINK_HOP + links)
    }

    /// Appends a number to the hops that the message took to this server.
    fn hop(&self, number: usize) -> String {
        let recorded = self.request.headers.get(HOP).and_then(|hops| hops.first());
        let is_hop = |hop: &&String| {
            let is_part = |c: char| c.is_ascii_digit() || c == '.';
            hop.len() <= HOP_BYTES_MAX && hop.chars().all(is_part)
        };
        match recorded.filter(is_hop) {
            Some(before) => format!("{before}.{number}"),
            None => number.to_string(),
        }
    }

    /// Records the hop by which the message reached this shard.
    pub(crate) fn set_hop(&mut self, hop: String) {
        self.request.headers.insert(HOP.into(), vec![hop]);
    }

    /// Returns the headers and the body of the report: JSON, compressed if the request accepts it. For
    /// compressed JSON, the headers name the encoding; otherwise the headers are empty.
    pub(crate) fn report(&self, reporter: &Reporter<'_>) -> (Vec<u8>, Vec<u8>) {
        let json = self.json(reporter);
        match self.request.encoding() {
            None => (Vec::new(), json),
            Some(encoding) => {
                let mut headers = Vec::new();
                let block = Block::new(&mut headers);
                block
                    .add(CONTENT_ENCODING, encoding.name().as_bytes())
                    .end();
                (headers, encoding.pack(json))
            }
        }
    }

    fn json(&self, reporter: &Reporter<'_>) -> Vec<u8> {
        let report = Report {
            server: reporter,
            request: Request {
                header: &self.request.headers,
                msgsize: self.message_bytes,
            },
            hops: self
                .events
                .iter()
                .filter(|event| event.hop.is_some())
                .count(),
            events: &self.events,
        };
        // Strings and numbers always serialize.
        serde_json::to_vec(&report).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> Vec<u8> {
        let mut text = String::from("NATS/1.0\r\n");
        for line in lines {
            text += &format!("{line}\r\n");
        }
        (text + "\r\n").into_bytes()
    }

    /// Checks the destination that headers request, and whether the headers set `Nats-Trace-Only`.
    fn check(lines: &[&str], expected: Option<(&str, bool)>) {
        let headers = headers(lines);
        let by_parent = TraceTo {
            dest: "traces".into(),
            percent: 50,
        };
        let request = TraceRequest::read(&headers, Some(&by_parent), 49);
        let found = request
            .as_ref()
            .map(|request| (&*request.to, request.is_only));
        assert_eq!(found, expected, "{lines:?}");
        assert!(
            expected.is_none() || may_request_trace(&headers),
            "{lines:?}"
        );
    }

    #[test]
    fn headers_request_traces() {
        const SAMPLED: &str =
            "TraceParent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        check(&["Nats-Trace-Dest: t"], Some(("t", false)));
        for yes in ["1", "true", "TRUE", "on"] {
            let only = format!("Nats-Trace-Only: {yes}");
            check(&["Nats-Trace-Dest: t", &only], Some(("t", true)));
        }
        for no in ["0", "false", "yes", ""] {
            let only = format!("Nats-Trace-Only: {no}");
            check(&["Nats-Trace-Dest: t", &only], Some(("t", false)));
        }
        check(&["Nats-Trace-Only: 1"], None);
        check(&["Nats-Msg-Id: 1", "a: b"], None);
        for wrong in ["a..b", "a.*", ">", "", "a b"] {
            check(&[&format!("Nats-Trace-Dest: {wrong}")], None);
        }
        check(&[SAMPLED], Some(("traces", false)));
        check(&[&SAMPLED.replace("-01", "-00")], None);
        check(&["traceparent: 01"], None);
        check(&[SAMPLED, "Nats-Trace-Dest: t"], Some(("t", false)));
        let sampled = headers(&[SAMPLED]);
        let rarely = TraceTo {
            dest: "traces".into(),
            percent: 49,
        };
        assert_eq!(TraceRequest::read(&sampled, Some(&rarely), 49), None);
        assert_eq!(TraceRequest::read(&sampled, None, 0), None);
        assert!(!may_request_trace(&headers(&["Nats-Msg-Id: 1", "tr: a"])));
    }

    #[test]
    fn report_lists_events_and_hops() {
        let request =
            TraceRequest::read(&headers(&["Nats-Trace-Dest: t", "a: b", "a: c"]), None, 0);
        let ingress = Event {
            r#type: "in",
            kind: Some(CLIENT),
            cid: Some(7),
            acc: "A".into(),
            subj: "x".into(),
            ..Event::default()
        };
        let mut trace = Trace::new(request.unwrap(), 9, ingress);
        trace.set_hop("2".into());
        trace.events.push(Event {
            r#type: "eg",
            kind: Some(ROUTER),
            hop: Some("1".into()),
            ..Event::default()
        });
        let reporter = Reporter {
            name: "n",
            host: "h",
            id: "I",
            ver: "2",
            jetstream: false,
            time: Timestamp::default(),
        };
        let report: serde_json::Value = serde_json::from_slice(&trace.json(&reporter)).unwrap();
        assert_eq!(trace.report(&reporter), (Vec::new(), trace.json(&reporter)));
        for (accepted, name) in [("gzip", "gzip"), ("snappy", "identity")] {
            let accepted = vec![accepted.to_owned()];
            let before = trace
                .request
                .headers
                .insert(ACCEPT_ENCODING.into(), accepted);
            let (headers, body) = trace.report(&reporter);
            let expected = format!("NATS/1.0\r\nContent-Encoding: {name}\r\n\r\n");
            assert_eq!(headers, expected.as_bytes());
            assert_eq!(body == trace.json(&reporter), name == "identity");
            trace.request.headers.remove(ACCEPT_ENCODING);
            assert!(before.is_none());
        }
        assert_eq!(
            report["request"],
            serde_json::json!({
                "header": { "Nats-Trace-Dest": ["t"], "Nats-Trace-Hop": ["2"], "a": ["b", "c"] },
                "msgsize": 9,
            })
        );
        assert_eq!(report["hops"], 1);
        assert_eq!(report["server"]["name"], "n");
        let mut first = report["events"][0].clone();
        first.as_object_mut().unwrap().remove("ts");
        assert_eq!(
            first,
            serde_json::json!({ "type": "in", "kind": 0, "cid": 7, "acc": "A", "subj": "x" })
        );
    }
}
