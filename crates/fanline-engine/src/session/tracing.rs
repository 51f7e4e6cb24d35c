//! Traces of single messages that clients, leaf connections, and routes request; see [`crate::trace`].

use super::leaf::LeafSession;
use super::{AnySession, Broker, Kind, SessionId};
use crate::auth::AccountId;
use crate::codec::nats::parse::Publish;
use crate::exchange::message::Context;
use crate::exchange::run::Intake;
use crate::exchange::text::text;
use crate::exchange::tracing::Traced;
use crate::trace::{CLIENT, Event, GATEWAY, LEAF, ROUTER, Trace, TraceRequest};

impl AnySession<'_> {
    /// Publishes a message that requests a trace, if the trace is permitted.
    #[cold]
    #[inline(never)]
    pub(super) fn publish_traced(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        context: Context<'_>,
    ) {
        let (id, account) = (intake.id, intake.account);
        let exchange = &mut self.broker.exchange;
        let body = &intake.chunk[from + publish.body.start..from + publish.body.end];
        let by_parent = exchange.access.account(account);
        let by_parent = by_parent.and_then(|account| account.trace.as_ref());
        let ticket = exchange.random.below(100);
        let request = TraceRequest::read(&body[..publish.header_bytes], by_parent, ticket);
        let Some(request) = request else {
            return self.publish_mapped(intake, publish, from, context);
        };
        if !self.may_trace(&request.to) {
            return intake.count(publish);
        }
        let exchange = &mut self.broker.exchange;
        exchange.end_run(intake);
        let name = exchange.sessions[id.index()].options.name.clone();
        let bytes = publish.payload_bytes();
        let from_client = (id, CLIENT, name);
        let broker = &self.broker;
        let mut traced = broker.traced(request, from_client, account, publish.subject, bytes);
        let context = Context {
            trace: Some(&mut traced),
            ..context
        };
        self.publish_mapped(intake, publish, from, context);
        self.broker.end_trace(traced);
    }

    /// Returns whether a client may publish to the subject of its trace; sends it an error if not.
    fn may_trace(&mut self, to: &str) -> bool {
        let may = match &self.broker.exchange.sessions[self.id.index()].restriction {
            None => true,
            Some(restriction) => restriction.may_publish(to.as_bytes()),
        };
        if !may {
            self.deny_publish(to.as_bytes());
        }
        may
    }
}

impl LeafSession<'_> {
    /// Begins the trace of a message from another server, if the message requests one. Returns `None` if the
    /// message requests only a trace and that trace is not permitted.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_trace(
        &self,
        subject: &[u8],
        headers: &[u8],
        payload_bytes: usize,
    ) -> Option<Option<Traced>> {
        // The server that sent the message has decided about sampling.
        let Some(request) = TraceRequest::read(headers, None, 0) else {
            return Some(None);
        };
        let exchange = &self.broker.exchange;
        let session = &exchange.sessions[self.id.index()];
        let leaf = session.kind.leaf()?;
        if leaf.rules.may_receive(request.to.as_bytes()) != Ok(true) {
            return (!request.is_only).then_some(None);
        }
        let account = session.account;
        let from = (self.id, LEAF, leaf.name.clone());
        let broker = &self.broker;
        Some(Some(broker.traced(
            request,
            from,
            account,
            subject,
            payload_bytes,
        )))
    }
}

impl Broker {
    /// Continues the trace of a message from another server or cluster, which has decided about permissions and
    /// sampling.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_arrival(
        &self,
        id: SessionId,
        account: AccountId,
        publish: &Publish<'_>,
        headers: &[u8],
    ) -> Option<Traced> {
        let request = TraceRequest::read(headers, None, 0)?;
        let (kind, name) = match &self.exchange.sessions[id.index()].kind {
            Kind::Route(route) => (ROUTER, &route.info.server_name),
            Kind::Gateway(gateway) => (GATEWAY, &gateway.info.server_name),
            Kind::Client(_) | Kind::Mqtt(_) | Kind::Leaf(_) => return None,
        };
        let (from, bytes) = ((id, kind, name.clone()), publish.payload_bytes());
        Some(self.traced(request, from, account, publish.subject, bytes))
    }

    /// Begins a trace with the arrival of the message. `from` is the publisher, with its kind and its name.
    fn traced(
        &self,
        request: TraceRequest,
        (from, kind, name): (SessionId, u8, String),
        account: AccountId,
        subject: &[u8],
        payload_bytes: usize,
    ) -> Traced {
        let ingress = Event {
            r#type: "in",
            kind: Some(kind),
            cid: Some(self.exchange.sessions[from.index()].cid),
            name,
            acc: self.exchange.account_name(account),
            subj: text(subject),
            ..Event::default()
        };
        Traced::new(Trace::new(request, payload_bytes, ingress), account)
    }
}
