//! Traces of single messages, as they pass through a shard; see [`crate::trace`].
//!
//! Beyond the border of an account, the topic's owner says whether a trace may go on. What crosses to
//! another shard after such a border is not told of there.

use super::crossing::{Crossing, TRACED};
use super::deliver::{FanOut, Message, Origin, RemoteTargets};
use super::session::{Session, SessionId};
use super::verbs::{Intake, text};
use super::{Exchange, Pending, Shard};
use crate::auth::{AccountId, ExportKind, ImportKind};
use crate::codec::leaf::LEAF_SHARD;
use crate::codec::nats::error::ClientError;
use crate::codec::nats::parse::Publish;
use crate::exchange::router::{Exit, LEAFS, Route, RouteMemo, SubId};
use crate::subject::Filter;
use crate::trace::{Asked, CLIENT, Event, LEAF, ROUTER, Teller, Trace};

/// The message at hand, as long as it is traced.
pub(super) struct Traced {
    trace: Trace,
    /// Where it was published.
    account: AccountId,
    /// Borders that were crossed where nobody may look.
    hidden: usize,
    /// Subscriptions whose filters are still to be found out, by place in the events.
    unnamed: Vec<(usize, SubId)>,
}

impl Traced {
    fn push(&mut self, event: Event) {
        if self.hidden == 0 {
            self.trace.events.push(event);
        }
    }
}

/// How a message goes on to another server.
pub(super) enum Onward {
    AsItCame,
    /// It is told over which hop it comes, and tells in turn.
    Over(String),
    Not,
}

impl Pending {
    /// Whether the message at hand is told of and goes nowhere.
    pub(super) fn is_held(&self) -> bool {
        self.traced
            .as_ref()
            .is_some_and(|traced| traced.trace.asked.is_only)
    }

    /// What goes with a message to other shards, which are noted.
    #[cold]
    pub(super) fn watch_crossing(
        &mut self,
        account: AccountId,
        crossings: &mut RemoteTargets,
    ) -> u8 {
        let is_held = self.is_held();
        let Some(traced) = &mut self.traced else {
            return 0;
        };
        if traced.account != account {
            if is_held {
                crossings.clear();
            }
            return 0;
        }
        for shard in crossings.shards() {
            let shard = match shard {
                // Each link is told of by itself, once it is known which of them get the message.
                LEAFS if crossings.serves_leafs() => continue,
                LEAFS => LEAF_SHARD,
                shard => shard,
            };
            let hop = traced.trace.hop_to(shard);
            traced.push(Event {
                r#type: "eg",
                kind: Some(ROUTER),
                cid: Some(0),
                name: shard_name(shard),
                hop: Some(hop),
                ..Event::default()
            });
        }
        TRACED
    }

    /// Takes note of another server that is about to get the message at hand.
    #[cold]
    pub(super) fn watch_leaf(&mut self, session: &Session) -> Onward {
        let is_held = self.is_held();
        let (Some(traced), Some(leaf)) = (&mut self.traced, &session.leaf) else {
            return Onward::AsItCame;
        };
        let is_told = traced.account == session.account && traced.hidden == 0;
        match is_told && leaf.takes_traces && session.takes_headers {
            true => {
                let hop = traced.trace.next_leaf_hop();
                traced.push(Event {
                    r#type: "eg",
                    kind: Some(LEAF),
                    cid: Some(session.cid),
                    name: leaf.name.clone(),
                    hop: Some(hop.clone()),
                    ..Event::default()
                });
                Onward::Over(hop)
            }
            // There, nobody would know that it is to go nowhere.
            false if is_held => Onward::Not,
            false => Onward::AsItCame,
        }
    }

    /// A publish was refused.
    pub(super) fn trace_refusal(&mut self, error: &ClientError) {
        if let Some(traced) = &mut self.traced
            && let Some(came_in) = traced.trace.events.first_mut()
        {
            came_in.error = error.to_string();
        }
    }

    fn set_traced(&mut self, traced: Option<Box<Traced>>) {
        self.watches = self.traces || traced.is_some();
        self.traced = traced;
    }
}

fn shard_name(shard: u16) -> String {
    format!("shard-{shard}")
}

impl FanOut<'_> {
    /// Takes note of a delivery that is about to be. Whether it has been, when there is to be none.
    #[cold]
    #[inline(never)]
    pub(super) fn watch(
        &mut self,
        id: SubId,
        route: &Route,
        message: &Message<'_>,
    ) -> Option<bool> {
        if !self.may_deliver(id, route, message) {
            return Some(false);
        }
        let sub = self.subs.get(id);
        let session = &self.sessions[sub.session() as usize];
        let is_held = self.pending.is_held();
        if let Some(traced) = &mut self.pending.traced {
            if traced.hidden == 0 {
                traced.unnamed.push((traced.trace.events.len(), id));
            }
            let is_abroad = session.account != traced.account;
            traced.push(Event {
                r#type: "eg",
                kind: Some(CLIENT),
                cid: Some(session.cid),
                name: session.options.name.clone(),
                // To be replaced by the name of the account.
                acc: match is_abroad {
                    true => session.account.0.to_string(),
                    false => String::new(),
                },
                queue: text(sub.queue()),
                ..Event::default()
            });
        }
        if is_held {
            return Some(true);
        }
        if self.pending.traces {
            let takes_headers = session.takes_headers;
            self.pending
                .trace_delivery(sub, route, message, takes_headers);
        }
        None
    }
}

impl Shard {
    /// Takes a message that asks to be traced, if it may.
    #[cold]
    #[inline(never)]
    pub(super) fn publish_traced(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
    ) {
        let (id, account) = (intake.id, intake.account);
        let body = &intake.chunk[from + publish.body.start..from + publish.body.end];
        let by_parent = self.exchange.access.account(account);
        let by_parent = by_parent.and_then(|account| account.trace.as_ref());
        let ticket = self.exchange.random.below(100);
        let asked = Asked::read(&body[..publish.header_bytes], by_parent, ticket);
        let Some(asked) = asked else {
            return self.publish_untraced(intake, publish, from);
        };
        if !self.may_trace(id, &asked.to) {
            return intake.count(publish);
        }
        self.end_run(intake);
        let session = &self.exchange.sessions[id.index()];
        let came_in = Event {
            r#type: "in",
            kind: Some(CLIENT),
            cid: Some(session.cid),
            name: session.options.name.clone(),
            acc: self.account_name(account),
            subj: text(publish.topic),
            ..Event::default()
        };
        let trace = Trace::new(asked, publish.payload_bytes(), came_in);
        self.begin_trace(trace, account);
        self.publish_untraced(intake, publish, from);
        self.end_trace();
    }

    /// Takes a message that is traced from another shard.
    #[cold]
    #[inline(never)]
    pub(super) fn receive_traced(&mut self, crossing: Crossing<'_>, memo: &mut RouteMemo) {
        let (account, message) = (crossing.account, &crossing.message);
        let headers = &message.body[..message.header_bytes];
        let by_parent = self.exchange.access.account(account);
        let by_parent = by_parent.and_then(|account| account.trace.as_ref());
        // It was decided where it came from.
        if let Some(asked) = Asked::read(headers, by_parent, 0) {
            let came_in = Event {
                r#type: "in",
                kind: Some(ROUTER),
                cid: Some(0),
                name: "another shard".into(),
                acc: self.account_name(account),
                subj: text(crossing.topic),
                ..Event::default()
            };
            let mut trace = Trace::new(asked, message.payload_bytes(), came_in);
            let hop = trace.hop_to(self.exchange.index);
            trace.set_hop(hop);
            self.begin_trace(trace, account);
        }
        self.fan_out_crossing(
            Crossing {
                hops: crossing.hops & !TRACED,
                ..crossing
            },
            memo,
        );
        self.end_trace();
    }

    /// A message has come from another server: has it told of here if it asks for that. Whether it is; `None` when
    /// it is to go nowhere, and may not be told of either.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_trace_of_leaf(
        &mut self,
        id: SessionId,
        topic: &[u8],
        headers: &[u8],
        payload_bytes: usize,
    ) -> Option<bool> {
        // Whether it is one of a sample was decided where it came from.
        let Some(asked) = Asked::read(headers, None, 0) else {
            return Some(false);
        };
        let session = &self.exchange.sessions[id.index()];
        let leaf = session.leaf.as_ref()?;
        if leaf.rules.may_take(asked.to.as_bytes()) != Ok(true) {
            return (!asked.is_only).then_some(false);
        }
        let account = session.account;
        let came_in = Event {
            r#type: "in",
            kind: Some(LEAF),
            cid: Some(session.cid),
            name: leaf.name.clone(),
            acc: self.account_name(account),
            subj: text(topic),
            ..Event::default()
        };
        self.begin_trace(Trace::new(asked, payload_bytes, came_in), account);
        Some(true)
    }

    /// A topic has got another name.
    pub(super) fn trace_mapping(&mut self, to: &[u8]) {
        if let Some(traced) = &mut self.exchange.pending.traced {
            traced.push(Event {
                r#type: "sm",
                to: text(to),
                ..Event::default()
            });
        }
    }

    /// A message is about to leave its account as part of a stream.
    pub(super) fn trace_export(&mut self, account: AccountId, exit: &Exit, topic: &[u8]) {
        if self.exchange.pending.traced.is_none() {
            return;
        }
        let importer = self.exchange.access.account(exit.account);
        let exporter = self.account_name(account);
        let may_look = importer.is_some_and(|importer| {
            importer.imports.iter().any(|import| {
                import.allow_trace
                    && import.kind == ImportKind::Stream
                    && import.account == exporter
                    && matches(&import.subject, topic)
            })
        });
        let event = Event {
            r#type: "se",
            acc: self.account_name(exit.account),
            to: text(&exit.topic),
            ..Event::default()
        };
        self.cross_border(event, may_look);
    }

    /// A request is about to leave its account.
    pub(super) fn trace_import(&mut self, exit: &Exit, topic: &[u8]) {
        if self.exchange.pending.traced.is_none() {
            return;
        }
        let exporter = self.exchange.access.account(exit.account);
        let may_look = exporter.is_some_and(|exporter| {
            exporter.exports.iter().any(|export| {
                export.allow_trace
                    && matches!(export.kind, ExportKind::Service { .. })
                    && matches(&export.subject, &exit.topic)
            })
        });
        let event = Event {
            r#type: "si",
            acc: self.account_name(exit.account),
            from: text(topic),
            to: text(&exit.topic),
            ..Event::default()
        };
        self.cross_border(event, may_look);
    }

    fn cross_border(&mut self, event: Event, may_look: bool) {
        if let Some(traced) = &mut self.exchange.pending.traced {
            traced.push(event);
            traced.hidden += usize::from(!may_look || traced.hidden > 0);
        }
    }

    /// The message has been everywhere beyond the border.
    pub(super) fn trace_return(&mut self) {
        if let Some(traced) = &mut self.exchange.pending.traced {
            traced.hidden = traced.hidden.saturating_sub(1);
        }
    }

    /// Finds out what subscriptions ask for, while they are there.
    pub(super) fn name_traced(&mut self) {
        let Shard {
            exchange:
                Exchange {
                    pending,
                    subs,
                    sessions,
                    routers,
                    access,
                    ..
                },
            ..
        } = self;
        let Some(traced) = &mut pending.traced else {
            return;
        };
        for (at, id) in traced.unnamed.drain(..) {
            let sub = subs.get(id);
            let account = sessions[sub.session() as usize].account;
            if let Some(event) = traced.trace.events.get_mut(at) {
                event.sub = text(&routers[account].filter_of(sub));
                if !event.acc.is_empty() {
                    let account = access.account(account);
                    event.acc = account.map_or_else(String::new, |account| account.name.clone());
                }
            }
        }
    }

    /// Whether a client may have messages told of there; tells it when not.
    fn may_trace(&mut self, id: SessionId, to: &str) -> bool {
        let may = match &self.exchange.sessions[id.index()].restriction {
            None => true,
            Some(restriction) => restriction.may_publish(to.as_bytes()),
        };
        if !may {
            self.deny_publish(id, to.as_bytes());
        }
        may
    }

    fn begin_trace(&mut self, trace: Trace, account: AccountId) {
        self.exchange.pending.set_traced(Some(Box::new(Traced {
            trace,
            account,
            hidden: 0,
            unnamed: Vec::new(),
        })));
    }

    /// Tells what has become of a message.
    pub(super) fn end_trace(&mut self) {
        self.name_traced();
        let traced = self.exchange.pending.traced.take();
        self.exchange.pending.set_traced(None);
        let Some(mut traced) = traced else {
            return;
        };
        let now = self.date(self.exchange.pending.now);
        for event in &mut traced.trace.events {
            event.ts = now;
        }
        let (headers, body) = traced.trace.tell(&Teller {
            name: &self.exchange.info.server_name,
            host: &self.exchange.info.host,
            id: &self.exchange.info.server_id,
            ver: &self.exchange.info.version,
            jetstream: self.exchange.info.jetstream,
            time: now,
        });
        let topic = traced.trace.asked.to.as_bytes();
        self.tell_all(traced.account, topic, &headers, &body);
    }

    /// Publishes something of the server's own in an account, with headers or none. Whether anybody listens
    /// is his business.
    pub(super) fn tell_all(
        &mut self,
        account: AccountId,
        topic: &[u8],
        headers: &[u8],
        payload: &[u8],
    ) {
        let total = headers.len() + payload.len();
        let sizes = match headers.len() {
            0 => format!("{total}\r\n"),
            header_bytes => format!("{header_bytes} {total}\r\n"),
        };
        let args_bytes = sizes.len();
        let frame = [sizes.as_bytes(), headers, payload, b"\r\n"].concat();
        let message = Message {
            head: &[],
            reply_bytes: 0,
            header_bytes: headers.len(),
            args: &frame[..args_bytes],
            body: &frame[args_bytes..],
            tail: &frame,
            shared: None,
        };
        let mut memo = RouteMemo::default();
        self.fan_out(account, topic, &message, Origin::ELSEWHERE, &mut memo);
    }
}

fn matches(filter: &str, topic: &[u8]) -> bool {
    Filter::parse(filter.as_bytes()).is_ok_and(|filter| filter.matches(topic))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::Value;

    use super::super::account_tests::{SERVICE, ask, client, export, import, world};
    use super::super::tests::{Client, World};
    use super::*;
    use crate::auth::{AccessConfig, Mapping};

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
