//! Traces of messages in JetStream; see [`crate::trace`].

use super::{JetStream, Message, Now, Port, Timestamp};
use crate::trace::{Event, ROUTER, Reporter, Trace, TraceRequest};

impl JetStream {
    /// Reports which stream stores a traced message.
    pub(super) fn trace(
        &mut self,
        request: TraceRequest,
        message: &Message<'_>,
        index: u16,
        now: Now,
        port: &mut dyn Port,
    ) {
        let ts = Timestamp::from_unix_nanos(now.unix_nanos);
        let subject = String::from_utf8_lossy(message.subject).into_owned();
        let ingress = Event {
            r#type: "in",
            ts,
            kind: Some(ROUTER),
            cid: Some(0),
            name: "another shard".into(),
            acc: self.settings.account.clone(),
            subj: subject.clone(),
            ..Event::default()
        };
        let bytes = message.headers.len() + message.payload.len();
        let mut trace = Trace::new(request, bytes, ingress);
        let hop = trace.hop_to(index);
        trace.set_hop(hop);
        let holder = self.streams.find_stream_of(message.subject);
        let stream = holder.and_then(|key| self.streams.get(key));
        trace.events.extend(stream.map(|stream| Event {
            r#type: "js",
            ts,
            stream: stream.config().name.clone(),
            subject,
            ..Event::default()
        }));
        let settings = &self.settings;
        let (headers, body) = trace.report(&Reporter {
            name: &settings.server_name,
            host: "",
            id: &settings.server_id,
            ver: &settings.server_version,
            jetstream: true,
            time: ts,
        });
        port.publish(&Message {
            subject: trace.request.to.as_bytes(),
            headers: &headers,
            payload: &body,
            ..Message::default()
        });
    }
}
