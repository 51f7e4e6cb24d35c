//! What each verb of a client does.

use std::time::Duration;

use super::kind::Kind;
use super::mqtt::Mqtt;
use super::permit::Permit;
use super::timers::{auth_timeout, ping_interval};
use super::{Session, SessionId, Shard};
use crate::accounts::Mapped;
use crate::auth::Peer;
use crate::auth::{AccountId, Grant};
use crate::codec::nats::args;
use crate::codec::nats::connect::ConnectOptions;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::codec::nats::info::Audience;
use crate::codec::nats::parse::{ParseLimits, Publish, Verb};
use crate::exchange::message::{Context, Dispatch, Message, Origin};
use crate::exchange::restriction::Restriction;
use crate::exchange::router::RouteMemo;
use crate::exchange::run::Intake;
use crate::exchange::text::{first_line, text};
use crate::exchange::tracing::Traced;
use crate::headers::no_responders_status;
use crate::limits::{CONNECT_BYTES_MAX, Limits, MqttLimits};
use crate::outbox::{Chunk, Outbox};
use crate::subject::{Filter, is_literal_topic};
use crate::trace::may_be_asked_for;

/// When a new client is pinged for the first time, to learn its round trip; up to a fifth more.
const FIRST_PING: Duration = Duration::from_secs(2);

impl Shard {
    /// A new connection. It is sent INFO; when the server is full, an error as well.
    pub fn open(&mut self, cid: u64, peer: Peer, is_full: bool, now: Duration) -> SessionId {
        let awaits_auth = self.broker.exchange.access.is_required_of(peer.kind);
        let id = self.insert_session(cid, peer, awaits_auth, now);
        self.broker.exchange.totals_of(AccountId::GLOBAL).opened += 1;
        if !self.broker.exchange.sessions[id.index()].peer.is_greeted {
            self.send_info(id, false);
        }
        if is_full {
            self.refuse(
                id,
                Some(ClientError::ConnectionsExceeded),
                CloseReason::MaximumConnectionsExceeded,
            );
        } else if !awaits_auth {
            // It need not say more to be in `$G`.
            self.count_connection(id);
        }
        id
    }

    /// A session that nothing has happened to yet.
    pub(super) fn insert_session(
        &mut self,
        cid: u64,
        peer: Peer,
        awaits_auth: bool,
        now: Duration,
    ) -> SessionId {
        let jitter = Duration::from_millis(u64::from(self.broker.exchange.random.below(400)));
        let limits = &self.broker.exchange.config.limits;
        let is_mqtt = peer.kind.is_mqtt();
        let ping_at = now + FIRST_PING.min(ping_interval(limits, &peer)) + jitter;
        let deadline = if is_mqtt || awaits_auth {
            now + auth_timeout(limits, &peer)
        } else {
            ping_at
        };
        let session = Session {
            out: Outbox::default(),
            out_msgs: 0,
            out_bytes: 0,
            ending: None,
            is_dirty: false,
            takes_headers: false,
            // Before its CONNECT it may do no more than after it.
            restriction: Restriction::new(&Grant::default(), &peer),
            kind: Kind {
                mqtt: is_mqtt.then(|| Box::new(Mqtt::new(mqtt_settings(limits), now))),
                ..Kind::default()
            },
            cid,
            is_insider: false,
            account: AccountId::GLOBAL,
            is_counted: false,
            memo: RouteMemo::default(),
            parse_limits: parse_limits(limits, false),
            in_msgs: 0,
            in_bytes: 0,
            subscriptions: 0,
            in_groups: 0,
            stalls: 0,
            awaits_auth,
            check: None,
            grant: Grant::default(),
            has_connected: false,
            was_told_account: false,
            options: ConnectOptions {
                verbose: !is_mqtt,
                pedantic: !is_mqtt,
                ..ConnectOptions::default()
            },
            peer,
            opened_at: now,
            active_at: now,
            ping_at,
            expires_at: None,
            account_expires_at: None,
            pings_out: 0,
            pinged_at: now,
            rtt: None,
        };
        let id = SessionId::from_index(self.broker.exchange.sessions.insert(session));
        self.broker.exchange.timers.set(id, Some(deadline));
        id
    }

    /// Puts a session into an account. What it was subscribed to in another one is gone.
    pub fn bind(&mut self, id: SessionId, account: AccountId) {
        if self.broker.exchange.sessions[id.index()].account == account {
            return;
        }
        self.drop_subscriptions(id);
        self.broker.exchange.uncount_connection(id);
        self.broker.exchange.routers.ensure(account);
        let session = &mut self.broker.exchange.sessions[id.index()];
        let before = std::mem::replace(&mut session.account, account);
        // It says where the last topic was found in the other account.
        session.memo = RouteMemo::default();
        self.broker.exchange.totals_of(before).opened -= 1;
        self.broker.exchange.totals_of(account).opened += 1;
    }

    /// What the publishes of one client have in common until it says something else.
    pub(super) fn begin_intake<'a>(&self, id: SessionId, chunk: &'a Chunk) -> Intake<'a> {
        let session = &self.broker.exchange.sessions[id.index()];
        Intake {
            id,
            account: session.account,
            chunk,
            origin: Origin {
                session: Some(id.0),
                echo: session.options.echo,
                groups: None,
            },
            limits: session.parse_limits,
            memo: session.memo,
            is_admitted: !session.awaits_auth,
            is_restricted: session.restriction.is_some(),
            rights: (session.restriction.as_ref()).and_then(|restriction| restriction.rights_id()),
            is_answered: session.options.verbose || session.options.pedantic,
            may_run: !session.options.verbose
                && !session.options.pedantic
                && !self.broker.exchange.outputs.traces,
            is_mapped: self.broker.accounts.is_mapped(session.account),
            msgs: 0,
            bytes: 0,
        }
    }

    /// Puts the counts where they belong.
    pub(super) fn end_intake(&mut self, intake: &Intake<'_>) {
        let session = &mut self.broker.exchange.sessions[intake.id.index()];
        session.memo = intake.memo;
        session.in_msgs += intake.msgs;
        session.in_bytes += intake.bytes;
    }

    /// Does what a verb other than a publish says.
    pub(super) fn handle(&mut self, id: SessionId, verb: Verb<'_>, frame: &[u8], now: Duration) {
        if self.broker.exchange.outputs.traces {
            self.trace_verb(id, &verb, frame);
        }
        match verb {
            // Publishes have a way of their own.
            Verb::Publish(_) => {}
            Verb::Subscribe { filter, queue, sid } => self.subscribe(id, filter, queue, sid),
            Verb::Unsubscribe { sid, max } => self.unsubscribe(id, sid, max),
            Verb::Connect(json) => self.connect(id, json),
            Verb::Ping => self.ping(id),
            Verb::Pong => self.pong(id, now),
            // What was negotiated says nothing to a server; but it has to be JSON.
            Verb::Info(json) => {
                if serde_json::from_slice::<serde::de::IgnoredAny>(json).is_err() {
                    self.end(id, CloseReason::ProtocolViolation);
                }
            }
            Verb::Ok => {}
            Verb::Error(_) => self.end(id, CloseReason::ParseError),
        }
    }

    fn subscribe(&mut self, id: SessionId, filter: &[u8], queue: &[u8], sid: &[u8]) {
        if queue == b"_sys_" {
            let error = ClientError::QueueSubscriptionDenied(text(filter), text(queue));
            return self.send_error(id, &error);
        }
        if self.has_too_many_tokens(id, filter) {
            return self.send_error(id, &ClientError::TooManyTokens(text(filter)));
        }
        if !self.permit_subscribe(id, filter, queue, sid) {
            return;
        }
        if !self.has_room_for_subscription(id) {
            return self.send_error(id, &ClientError::SubscriptionsExceeded);
        }
        if !self.enter_subscription(id, filter, queue, sid) {
            return self.send_error(id, &ClientError::InvalidSubject);
        }
        self.acknowledge(id);
    }

    fn has_too_many_tokens(&self, id: SessionId, filter: &[u8]) -> bool {
        let max = self.broker.exchange.config.limits.subscription_tokens_max;
        let is_longer = |max| filter.split(|byte| *byte == b'.').count() > usize::from(max);
        // What the server itself wants does not depend on what clients may have.
        max.is_some_and(is_longer) && !self.broker.exchange.sessions[id.index()].is_insider
    }

    /// Whether a client may have one more subscription.
    pub(super) fn has_room_for_subscription(&self, id: SessionId) -> bool {
        let session = &self.broker.exchange.sessions[id.index()];
        let max = self
            .broker
            .exchange
            .config
            .limits
            .subscriptions_max
            .unwrap_or(usize::MAX);
        let own = session.grant.limits.subscriptions_max;
        let max = own.map_or(max, |own| max.min(usize::try_from(own).unwrap_or(max)));
        let is_full = session.subscriptions >= max
            || !self
                .broker
                .exchange
                .quotas
                .allow_subscription(session.account);
        // What the server itself is asked for does not depend on what clients may have.
        !is_full || session.is_insider
    }

    /// Makes a subscription, unless the session has one with this sid. False when the filter is none.
    pub(super) fn enter_subscription(
        &mut self,
        id: SessionId,
        filter: &[u8],
        queue: &[u8],
        sid: &[u8],
    ) -> bool {
        if self.broker.exchange.subs.find(id.0, sid).is_some() {
            return true;
        }
        let Ok(parsed) = Filter::parse(filter) else {
            return false;
        };
        let is_filtered = self.is_filtered(id, filter, queue);
        (self.broker.exchange).subscribe(id, parsed, queue, sid, is_filtered);
        true
    }

    fn unsubscribe(&mut self, id: SessionId, sid: &[u8], max: Option<u64>) {
        if let Some(sub) = self.broker.exchange.subs.find(id.0, sid) {
            let is_over = match max {
                Some(max) if max > 0 => self.broker.exchange.subs.get_mut(sub).limit(max),
                _ => true,
            };
            if is_over {
                self.broker.exchange.drop_subscription(sub);
            }
        }
        self.acknowledge(id);
    }

    fn ping(&mut self, id: SessionId) {
        self.broker.exchange.send(id, b"PONG\r\n");
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.has_connected && !session.was_told_account && session.options.protocol >= 1 {
            session.was_told_account = true;
            self.send_info(id, true);
        }
    }

    pub(super) fn pong(&mut self, id: SessionId, now: Duration) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.pings_out > 0 {
            session.rtt = Some(now.saturating_sub(session.pinged_at));
        }
        session.pings_out = 0;
    }

    /// Takes a message. `from` is where its verb begins in the chunk.
    #[inline(always)]
    pub(super) fn publish(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        context: Context<'_>,
    ) {
        if publish.header_bytes > 0 && asks_for_trace(intake.chunk, publish, from) {
            return self.publish_traced(intake, publish, from, context);
        }
        match intake.is_mapped {
            false => self.publish_as(intake, publish, from, context),
            true => self.publish_mapped(intake, publish, from, context),
        }
    }

    /// Takes a message whose subject may be mapped to another one.
    #[cold]
    pub(super) fn publish_mapped(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        mut context: Context<'_>,
    ) {
        let mut renamed = std::mem::take(&mut self.broker.accounts.renamed);
        let mapped = match intake.is_mapped {
            true => (self.broker).rename(intake.account, publish.topic, &mut renamed),
            false => Mapped::Unchanged,
        };
        match mapped {
            Mapped::Unchanged => self.publish_as(intake, publish, from, context),
            Mapped::Renamed => {
                if let Some(trace) = context.trace.as_deref_mut() {
                    trace.note_mapping(&renamed);
                }
                let publish = Publish {
                    topic: &renamed,
                    ..publish.clone()
                };
                self.publish_as(intake, &publish, from, context);
            }
            Mapped::Lost => intake.count(publish),
        }
        self.broker.accounts.renamed = renamed;
    }

    /// Takes a message that is not traced, or is by now, under the subject that it is mapped to.
    #[inline(always)]
    pub(super) fn publish_as(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        mut context: Context<'_>,
    ) {
        let (id, chunk) = (intake.id, intake.chunk);
        intake.count(publish);
        if self.broker.exchange.outputs.traces {
            self.trace_publish(id, publish, &chunk[from..]);
        }
        let is_reserved = is_reserved(publish);
        if (self.broker.exchange).coalesce(intake, publish, from, is_reserved) {
            return;
        }
        let mut permit = Permit::Known;
        if intake.is_restricted && !self.knows_permitted(intake, publish.topic) {
            permit = self.permit_publish(id, publish.topic);
        }
        if permit == Permit::Denied {
            note_refusal(context.trace, publish);
            return;
        }
        if is_reserved && !self.may_publish(id, publish, context.trace.as_deref_mut()) {
            return;
        }
        if intake.is_answered {
            self.answer_publish(id, publish);
        }
        let mut for_once = RouteMemo::default();
        let memo = match permit {
            Permit::AsReply => &mut for_once,
            _ => &mut intake.memo,
        };
        let message = Message::published(chunk, publish, from);
        let mut dispatch = Dispatch {
            account: intake.account,
            subject: publish.topic,
            message: &message,
            origin: intake.origin,
            context,
        };
        let delivered = match message.args.is_empty() {
            false => self.broker.dispatch(&mut dispatch, memo),
            true => self.dispatch_rewritten(dispatch, publish, memo),
        };
        if permit == Permit::Granted {
            self.note_permitted(intake, publish.topic);
        }
        if !delivered && !publish.reply.is_empty() {
            self.tell_no_responders(id, publish);
        }
    }

    /// Delivers a message whose arguments are not in the form in which subscribers get them: puts them into that
    /// first.
    #[cold]
    pub(super) fn dispatch_rewritten(
        &mut self,
        dispatch: Dispatch<'_>,
        publish: &Publish<'_>,
        memo: &mut RouteMemo,
    ) -> bool {
        let before = dispatch.message;
        let mut scratch = std::mem::take(&mut self.broker.exchange.scratch);
        scratch.clear();
        write_args(&mut scratch, publish);
        let args_bytes = scratch.len();
        if before.shared.is_none() {
            scratch.extend_from_slice(before.body);
        }
        let message = Message {
            reply_bytes: publish.reply.len(),
            args: &scratch[..args_bytes],
            tail: &scratch,
            shared: (before.shared.as_ref()).map(|(chunk, range)| (*chunk, range.clone())),
            ..*before
        };
        let mut dispatch = Dispatch {
            message: &message,
            ..dispatch
        };
        let delivered = self.broker.dispatch(&mut dispatch, memo);
        self.broker.exchange.scratch = scratch;
        delivered
    }

    /// Whether a publish to a name that the server keeps for itself is allowed; tells the client
    /// when not.
    #[cold]
    fn may_publish(
        &mut self,
        id: SessionId,
        publish: &Publish<'_>,
        trace: Option<&mut Traced>,
    ) -> bool {
        const TOPICS: [&[u8]; 3] = [b"_GR_.", b"$GR.", b"$NRG."];
        const REPLIES: [&[u8]; 4] = [b"_R_.", b"$JS.ACK.", b"_GR_.", b"$GR."];
        if REPLIES
            .iter()
            .any(|prefix| publish.reply.starts_with(prefix))
        {
            self.send_error(id, &ClientError::ReplyDenied(text(publish.reply)));
            return false;
        }
        if TOPICS
            .iter()
            .any(|prefix| publish.topic.starts_with(prefix))
        {
            self.deny_publish(id, publish.topic);
            note_refusal(trace, publish);
            return false;
        }
        true
    }

    /// What verbose and pedantic clients are told about a publish.
    #[cold]
    fn answer_publish(&mut self, id: SessionId, publish: &Publish<'_>) {
        let options = &self.broker.exchange.sessions[id.index()].options;
        let (verbose, pedantic) = (options.verbose, options.pedantic);
        if pedantic && !is_literal_topic(publish.topic) {
            self.send_error(id, &ClientError::InvalidPublishSubject);
        }
        if verbose {
            self.broker.exchange.send(id, b"+OK\r\n");
        }
    }

    /// Answers a request that nobody serves, at the requester's own subscription for the reply.
    #[cold]
    fn tell_no_responders(&mut self, id: SessionId, publish: &Publish<'_>) {
        if !self.broker.exchange.sessions[id.index()]
            .options
            .no_responders
        {
            return;
        }
        let account = self.broker.exchange.sessions[id.index()].account;
        let route =
            self.broker.exchange.routers[account].route(publish.reply, &mut RouteMemo::default());
        let candidates = route.plain.clone();
        let is_own = |sub: &&_| self.broker.exchange.subs.get(**sub).session() == id.0;
        let Some(own) = candidates.iter().find(is_own) else {
            return;
        };
        let mut status = Vec::new();
        let status = no_responders_status(&mut status, publish.topic);
        let mut line = b"HMSG ".to_vec();
        line.extend_from_slice(publish.reply);
        line.push(b' ');
        line.extend_from_slice(self.broker.exchange.subs.get(*own).sid_and_space());
        line.extend_from_slice(format!("{0} {0}\r\n", status.len()).as_bytes());
        line.extend_from_slice(status);
        line.extend_from_slice(b"\r\n");
        self.broker.exchange.send(id, &line);
    }

    pub(super) fn acknowledge(&mut self, id: SessionId) {
        if self.broker.exchange.sessions[id.index()].options.verbose {
            self.broker.exchange.send(id, b"+OK\r\n");
        }
    }

    pub(super) fn send_info(&mut self, id: SessionId, connected: bool) {
        if self.broker.exchange.sessions[id.index()]
            .kind
            .mqtt
            .is_some()
        {
            return;
        }
        let session = &self.broker.exchange.sessions[id.index()];
        let account = self.broker.exchange.access.account(session.account);
        let audience = Audience {
            client_id: session.cid,
            peer: &session.peer,
            needs_auth: self.needs_auth(&session.peer, connected),
            // Whose account is not known yet is told what holds for all.
            payload_bytes_max: (!session.awaits_auth)
                .then(|| {
                    self.broker
                        .exchange
                        .quotas
                        .payload_bytes_max(session.account)
                })
                .flatten(),
            account: account
                .filter(|_| connected)
                .map(|account| account.name.as_str()),
            is_system: connected && session.account == AccountId::SYSTEM,
        };
        let line = self.broker.exchange.info.line(&audience);
        self.broker.exchange.send(id, &line);
    }

    /// Whether INFO says that credentials are needed.
    fn needs_auth(&self, peer: &Peer, connected: bool) -> bool {
        let may_hide = !connected && self.broker.exchange.access.has_no_auth_user(peer.kind);
        self.broker.exchange.access.is_required_of(peer.kind) && !may_hide
    }

    /// The INFO that a connection begins with, for those who get it before their TLS begins.
    pub fn greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        self.broker.exchange.info.line(&Audience {
            client_id: cid,
            peer,
            needs_auth: self.needs_auth(peer, false),
            payload_bytes_max: None,
            account: None,
            is_system: false,
        })
    }

    /// Tells every client that understands it that this server is going away.
    pub fn announce_lame_duck(&mut self) {
        self.broker.exchange.info.lame_duck = true;
        let told: Vec<SessionId> = (self.broker.exchange.sessions.iter())
            .filter(|(_, s)| s.has_connected && s.options.protocol >= 1 && s.ending.is_none())
            .map(|(index, _)| SessionId::from_index(index))
            .collect();
        for id in told {
            self.send_info(id, false);
        }
    }

    #[cold]
    fn trace_verb(&mut self, id: SessionId, verb: &Verb<'_>, frame: &[u8]) {
        let shown = match verb {
            Verb::Connect(json) => format!("CONNECT {}", redact(json)),
            _ => first_line(frame),
        };
        self.broker
            .exchange
            .outputs
            .trace_lines
            .push((id, format!("<<- [{shown}]")));
    }

    #[cold]
    fn trace_publish(&mut self, id: SessionId, publish: &Publish<'_>, input: &[u8]) {
        let body = &input[publish.body.start..publish.body.end - 2];
        self.broker
            .exchange
            .outputs
            .trace_lines
            .push((id, format!("<<- [{}]", first_line(input))));
        self.broker
            .exchange
            .outputs
            .trace_message(id, "<<-", body, publish.header_bytes);
    }
}

/// Notes in the trace of a message that it may not be published.
fn note_refusal(trace: Option<&mut Traced>, publish: &Publish<'_>) {
    if let Some(trace) = trace {
        trace.note_refusal(&ClientError::PublishDenied(text(publish.topic)));
    }
}

/// What an MQTT client is granted.
fn mqtt_settings(limits: &Limits) -> MqttLimits {
    MqttLimits {
        packet_bytes_max: limits.payload_bytes_max.saturating_add(CONNECT_BYTES_MAX),
        ..limits.mqtt.clone()
    }
}

pub(super) fn parse_limits(limits: &Limits, headers: bool) -> ParseLimits {
    ParseLimits {
        control_line_bytes_max: limits.control_line_bytes_max,
        payload_bytes_max: limits.payload_bytes_max,
        headers,
    }
}

/// Whether a publish needs a closer look: few names begin like the reserved ones.
#[inline]
fn is_reserved(publish: &Publish<'_>) -> bool {
    let may_be = |name: &[u8]| match name {
        [b'$', ..] => true,
        [b'_', second, ..] => matches!(second, b'R' | b'G'),
        _ => false,
    };
    may_be(publish.topic) || may_be(publish.reply)
}

/// Apart, so that the path of messages without headers stays short.
#[inline(never)]
pub(super) fn asks_for_trace(chunk: &Chunk, publish: &Publish<'_>, from: usize) -> bool {
    let start = from + publish.body.start;
    may_be_asked_for(&chunk[start..start + publish.header_bytes])
}

/// The arguments after the topic, as every receiver understands them.
pub(super) fn write_args(out: &mut Vec<u8>, publish: &Publish<'_>) {
    args::write_args(
        out,
        publish.reply,
        publish.header_bytes,
        publish.payload_bytes(),
    );
}

/// A CONNECT without its secrets, whose names are understood in any case here too.
fn redact(json: &[u8]) -> String {
    const SECRETS: [&str; 6] = ["pass", "auth_token", "jwt", "sig", "proxy_sig", "nkey"];
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(json) else {
        return "[unreadable]".into();
    };
    for (key, value) in value.as_object_mut().into_iter().flatten() {
        if SECRETS.contains(&key.to_ascii_lowercase().as_str()) {
            *value = "[REDACTED]".into();
        }
    }
    value.to_string()
}
