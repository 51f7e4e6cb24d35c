//! Traces of single messages, as clients and leaf connections ask for them; see [`crate::trace`].

use super::{SessionId, Shard};
use crate::codec::nats::parse::Publish;
use crate::exchange::message::Context;
use crate::exchange::run::Intake;
use crate::exchange::text::text;
use crate::exchange::tracing::Traced;
use crate::trace::{Asked, CLIENT, Event, LEAF, Trace};

impl Shard {
    /// Takes a message that asks to be traced, if it may.
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
        let asked = Asked::read(&body[..publish.header_bytes], by_parent, ticket);
        let Some(asked) = asked else {
            return self.publish_mapped(intake, publish, from, context);
        };
        if !self.may_trace(id, &asked.to) {
            return intake.count(publish);
        }
        let exchange = &mut self.broker.exchange;
        exchange.end_run(intake);
        let session = &exchange.sessions[id.index()];
        let came_in = Event {
            r#type: "in",
            kind: Some(CLIENT),
            cid: Some(session.cid),
            name: session.options.name.clone(),
            acc: exchange.account_name(account),
            subj: text(publish.topic),
            ..Event::default()
        };
        let trace = Trace::new(asked, publish.payload_bytes(), came_in);
        let mut traced = Traced::new(trace, account);
        let context = Context {
            trace: Some(&mut traced),
            ..context
        };
        self.publish_mapped(intake, publish, from, context);
        self.broker.end_trace(traced);
    }

    /// Begins the trace of a message from another server, if it asks for one. `None` when the message is to go nowhere,
    /// and may not be traced either.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_of_leaf(
        &self,
        id: SessionId,
        topic: &[u8],
        headers: &[u8],
        payload_bytes: usize,
    ) -> Option<Option<Traced>> {
        // Whether it is one of a sample was decided where it came from.
        let Some(asked) = Asked::read(headers, None, 0) else {
            return Some(None);
        };
        let exchange = &self.broker.exchange;
        let session = &exchange.sessions[id.index()];
        let leaf = session.kind.leaf.as_ref()?;
        if leaf.rules.may_take(asked.to.as_bytes()) != Ok(true) {
            return (!asked.is_only).then_some(None);
        }
        let account = session.account;
        let came_in = Event {
            r#type: "in",
            kind: Some(LEAF),
            cid: Some(session.cid),
            name: leaf.name.clone(),
            acc: exchange.account_name(account),
            subj: text(topic),
            ..Event::default()
        };
        let trace = Trace::new(asked, payload_bytes, came_in);
        Some(Some(Traced::new(trace, account)))
    }

    /// Whether a client may publish where it wants a trace; sends it an error if not.
    fn may_trace(&mut self, id: SessionId, to: &str) -> bool {
        let may = match &self.broker.exchange.sessions[id.index()].restriction {
            None => true,
            Some(restriction) => restriction.may_publish(to.as_bytes()),
        };
        if !may {
            self.deny_publish(id, to.as_bytes());
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::Value;

    use super::super::account_tests::{SERVICE, ask, client, export, import, world};
    use super::super::tests::{Client, World};
    use crate::auth::{AccessConfig, ExportKind, ImportKind, Mapping};

    /// What a client says to have a message traced.
    fn traced(topic: &str, header: &str) -> String {
        let headers = format!("NATS/1.0\r\nNats-Trace-Dest: t\r\n{header}\r\n");
        let bytes = headers.len();
        format!("HPUB {topic} {bytes} {}\r\n{headers}hi\r\n", bytes + 2)
    }

    const ONLY: &str = "Nats-Trace-Only: true\r\n";

    /// What a listener has been told of one message, each event as a word and what belongs to it.
    fn told(world: &mut World, listener: Client) -> Vec<String> {
        let sent = world.read(listener);
        let all = sent.lines().filter(|line| line.starts_with('{'));
        let all = all.map(|json| serde_json::from_str::<Value>(json).unwrap());
        all.flat_map(|trace| {
            let events = trace["events"].as_array().cloned().unwrap_or_default();
            events.iter().map(shown).collect::<Vec<_>>()
        })
        .collect()
    }

    fn shown(event: &Value) -> String {
        let mut text = event["type"].as_str().unwrap().to_owned();
        for (key, value) in event.as_object().unwrap() {
            if !matches!(key.as_str(), "type" | "ts" | "cid" | "kind") {
                let _ = write!(text, " {key}={}", value.as_str().unwrap());
            }
        }
        text
    }

    #[test]
    fn deliveries_are_told_of_and_take_place_unless_that_is_all() {
        let mut world = World::new(1);
        let [listener, reader, publisher] = [0, 0, 0].map(|shard| world.client(shard));
        world.say(listener, "SUB t 1\r\n");
        world.say(reader, "SUB a.* 1\r\nSUB a.b g 2\r\nUNSUB 2 1\r\n");
        for is_only in [true, false] {
            let header = if is_only { ONLY } else { "" };
            world.say(publisher, &traced("a.b", header));
            assert_eq!(world.read(reader).is_empty(), is_only);
            assert_eq!(
                told(&mut world, listener),
                ["in acc=$G subj=a.b", "eg sub=a.*", "eg queue=g sub=a.b"]
            );
        }
        // Others are as before, and so is a message after it in the same breath.
        world.say(publisher, &(traced("c", ONLY) + "PUB a.b 1\r\nx\r\n"));
        assert_eq!(world.read(reader), "MSG a.b 1 1\r\nx\r\n");
        assert_eq!(told(&mut world, listener), ["in acc=$G subj=c"]);
    }

    #[test]
    fn other_shards_tell_for_themselves() {
        for is_only in [true, false] {
            let mut world = World::new(2);
            let [listener, publisher] = [0, 0].map(|shard| world.client(shard));
            let reader = world.client(1);
            world.say(listener, "SUB t 1\r\n");
            world.say(reader, "SUB a 1\r\nSUB a g 2\r\n");
            let header = if is_only { ONLY } else { "" };
            world.say(publisher, &traced("a", header));
            assert_eq!(world.read(reader).is_empty(), is_only);
            assert_eq!(
                told(&mut world, listener),
                [
                    "in acc=$G subj=a",
                    "eg hop=2 name=shard-1",
                    "in acc=$G name=another shard subj=a",
                    "eg sub=a",
                    "eg queue=g sub=a",
                ]
            );
        }
    }

    #[test]
    fn a_border_is_crossed_in_sight_where_its_owner_lets() {
        for may_look in [false, true] {
            let mut config = AccessConfig::default();
            let mut service = export(SERVICE, "svc");
            service.allow_trace = may_look;
            let mut stream = import(ImportKind::Stream, "A", "news.>", Some("from.>"));
            stream.allow_trace = may_look;
            let a = config.account_mut("A");
            a.exports = vec![service, export(ExportKind::Stream, "news.>")];
            a.mappings = vec![Mapping::new("old.*", "news.$1").unwrap()];
            config.account_mut("B").imports = vec![stream, ask("A", "svc", Some("ask"))];
            let (mut world, access) = world(1, config);
            let [a, b] = ["A", "B"].map(|name| client(&mut world, &access, 0, name));
            world.say(a, "SUB t 1\r\nSUB svc 2\r\n");
            world.say(b, "SUB t 1\r\nSUB from.* 2\r\n");
            let seen = |line: &str| may_look.then(|| line.to_owned());
            world.say(a, &traced("old.x", ""));
            let mut expected = vec!["in acc=A subj=old.x".to_owned(), "sm to=news.x".into()];
            expected.push("se acc=B to=from.x".into());
            expected.extend(seen("eg acc=B sub=from.*"));
            assert_eq!(told(&mut world, a), expected);
            assert!(world.read(b).contains("from.x"));
            world.say(b, &traced("ask", ONLY));
            let mut expected = vec!["in acc=B subj=ask".to_owned()];
            expected.push("si acc=A from=ask to=svc".into());
            expected.extend(seen("eg acc=A sub=svc"));
            assert_eq!(told(&mut world, b), expected);
            assert_eq!(world.read(a), "");
        }
    }
}
