//! Traces of messages that cross accounts, and the report at the end of a trace.

use std::time::Duration;

use super::Broker;
use crate::auth::{AccountId, ExportKind, ImportKind};
use crate::exchange::Kind;
use crate::exchange::batch::{Crossing, TRACED};
use crate::exchange::router::{BridgeKind, BridgeTarget, RouteMemo};
use crate::exchange::text::text;
use crate::exchange::tracing::Traced;
use crate::subject::Filter;
use crate::time::Timestamp;
use crate::trace::{Event, ROUTER, Reporter, Trace, TraceRequest};

impl<K: Kind> Broker<K> {
    /// Delivers a message from another shard, and traces it.
    #[cold]
    #[inline(never)]
    pub(crate) fn dispatch_traced(&mut self, crossing: Crossing<'_>, memo: &mut RouteMemo) {
        let (account, message) = (crossing.account, &crossing.message);
        let by_parent = self.exchange.access.account(account);
        let by_parent = by_parent.and_then(|account| account.trace.as_ref());
        // The publisher's shard has already applied the sampling rate, and has selected this message. With
        // the ticket 0, this shard does not apply the rate again.
        let request = TraceRequest::read(message.headers(), by_parent, 0);
        let mut traced = request.map(|request| {
            let ingress = Event {
                r#type: "in",
                kind: Some(ROUTER),
                cid: Some(0),
                name: "another shard".into(),
                acc: self.exchange.account_name(account),
                subj: text(crossing.subject),
                ..Event::default()
            };
            let mut trace = Trace::new(request, message.payload_bytes(), ingress);
            let hop = trace.hop_to(self.exchange.index);
            trace.set_hop(hop);
            Traced::new(trace, account)
        });
        let crossing = Crossing {
            hops: crossing.hops & !TRACED,
            ..crossing
        };
        self.dispatch_crossing(crossing, traced.as_mut(), memo);
        if let Some(traced) = traced {
            self.end_trace(traced);
        }
    }

    /// Records that a traced message leaves its account.
    #[cold]
    pub(super) fn trace_bridge(
        &self,
        trace: &mut Traced,
        account: AccountId,
        target: &BridgeTarget,
        subject: &[u8],
    ) {
        let access = &self.exchange.access;
        let other = access.account(target.account);
        let (event, allows_trace) = match target.kind {
            BridgeKind::Stream => {
                let exporter = self.exchange.account_name(account);
                let allows_trace = other.is_some_and(|importer| {
                    importer.imports.iter().any(|import| {
                        import.allow_trace
                            && import.kind == ImportKind::Stream
                            && import.account == exporter
                            && matches(&import.subject, subject)
                    })
                });
                let event = Event {
                    r#type: "se",
                    ..Event::default()
                };
                (event, allows_trace)
            }
            BridgeKind::Service(_) => {
                let allows_trace = other.is_some_and(|exporter| {
                    exporter.exports.iter().any(|export| {
                        export.allow_trace
                            && matches!(export.kind, ExportKind::Service { .. })
                            && matches(&export.subject, &target.subject)
                    })
                });
                let event = Event {
                    r#type: "si",
                    from: text(subject),
                    ..Event::default()
                };
                (event, allows_trace)
            }
            BridgeKind::Replies => return,
        };
        let event = Event {
            acc: self.exchange.account_name(target.account),
            to: text(&target.subject),
            ..event
        };
        trace.enter_account(event, allows_trace);
    }

    /// Publishes the report of a trace.
    #[cold]
    pub(crate) fn end_trace(&mut self, mut traced: Traced) {
        self.exchange.name_subscriptions(&mut traced);
        let now = self.date(self.exchange.outputs.now);
        for event in &mut traced.trace.events {
            event.ts = now;
        }
        let info = &self.exchange.info;
        let (headers, body) = traced.trace.report(&Reporter {
            name: &info.server_name,
            host: &info.host,
            id: &info.server_id,
            ver: &info.version,
            jetstream: info.jetstream,
            time: now,
        });
        let subject = traced.trace.request.to.as_bytes();
        self.publish_event(traced.account, subject, &headers, &body, 0);
    }

    /// Returns the wall-clock time for a time since the server's start.
    pub(crate) fn date(&self, at: Duration) -> Timestamp {
        let since_1970 = self.exchange.info.started_at.saturating_add(at);
        let nanos = i64::try_from(since_1970.as_nanos());
        Timestamp::from_unix_nanos(nanos.unwrap_or(i64::MAX))
    }
}

fn matches(filter: &str, subject: &[u8]) -> bool {
    Filter::parse(filter.as_bytes()).is_ok_and(|filter| filter.matches(subject))
}
