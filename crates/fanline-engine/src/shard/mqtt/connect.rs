//! How an MQTT session begins and ends.

use std::time::Duration;

use super::super::SessionId;
use super::super::Shard;
use super::super::timers::auth_timeout;
use super::kept::Operation;
use super::names;
use super::note::{Close, Note, Opened, Seat};
use super::session::{DELIVER_SID, Held, REPLY_SID, Waiting};
use crate::accounts::Mapped;
use crate::auth::{AccountId, Decision, Grant};
use crate::codec::mqtt::{
    Accepted, Connect, Ended, Reason, SessionKey, SessionRecord, Will, id_hash, topic_to_subject,
};
use crate::codec::nats::error::CloseReason;

/// How long it is waited until a connection that waits for the keeper is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// A client without a keep alive is looked at now and then.
const NO_KEEP_ALIVE: Duration = Duration::from_secs(3600);

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Records of an earlier session with the same client id, as streams, prefixes and last tokens: a power cut must not
/// bring them back into a session that begins.
const BEGUN: [(&str, &str, &str); 3] = [
    (names::HELD, names::HELD_PREFIX, "*"),
    (names::RELEASES, names::RELEASES_PREFIX, "*"),
    (names::SHARED, names::OWNED_PREFIX, "*"),
];
/// The same for a session that goes on. The last connection may have removed records whose removal is not durable yet,
/// and their identifiers are free. No record has the identifier 0: nothing but the wait is left of the removal.
const RESUMED: [(&str, &str, &str); 2] = [
    (names::HELD, names::HELD_PREFIX, "0"),
    (names::RELEASES, names::RELEASES_PREFIX, "0"),
];

impl Shard {
    /// CONNECT: who a client is, and whether it may come in.
    pub(super) fn connect_mqtt(&mut self, id: SessionId, connect: &Connect<'_>) {
        let assigned = match connect.client_id {
            "" => format!("fanline-{:016x}", self.broker.exchange.secrets.number()),
            _ => String::new(),
        };
        let session = &mut self.broker.exchange.sessions[id.index()];
        let password = connect.password.map(String::from_utf8_lossy);
        let password = password
            .map(std::borrow::Cow::into_owned)
            .unwrap_or_default();
        let options = &mut session.options;
        options.user = connect.user.unwrap_or_default().into();
        // A token, or a user's JWT, is a password, as there is no other field.
        if password.starts_with("eyJ") {
            options.jwt.clone_from(&password);
        }
        options.auth_token.clone_from(&password);
        options.pass = password;
        options.complete(&session.peer.cookies);
        if let Some(mqtt) = &mut session.kind.mqtt {
            mqtt.clean_start = connect.clean_start;
            mqtt.is_id_assigned = !assigned.is_empty();
            mqtt.client_id = match assigned.as_str() {
                "" => connect.client_id.into(),
                assigned => assigned.into(),
            };
            mqtt.hash = id_hash(&mqtt.client_id).into();
        }
        match self.decide(id) {
            Decision::Admitted(grant) => self.admit_mqtt(id, grant),
            Decision::Refused => self.refuse_credentials(id),
            Decision::Later(check) => self.broker.exchange.sessions[id.index()].check = Some(check),
        }
    }

    /// A client may come in; the keeper is asked for its session.
    pub(in crate::shard) fn admit_mqtt(&mut self, id: SessionId, grant: Grant) {
        if grant.account == AccountId::SYSTEM {
            // It has no JetStream to keep sessions in.
            return self.refuse_credentials(id);
        }
        let expires_in = grant.expires_in;
        self.settle_in(id, grant);
        if self.broker.exchange.sessions[id.index()].ending.is_some() {
            return;
        }
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.has_connected = true;
        let account = session.account;
        let cid = session.cid;
        let keeper = self.keeper_index();
        let session = &mut self.broker.exchange.sessions[id.index()];
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        mqtt.is_registered = true;
        let note = Note::Open {
            key: SessionKey {
                account,
                client_id: mqtt.client_id.clone(),
            },
            seat: Seat {
                shard: self.broker.exchange.index,
                session: id.0,
                cid,
            },
            clean_start: mqtt.clean_start,
        };
        self.broker.exchange.outgoing[keeper].push_note(note);
        self.broker
            .exchange
            .rearm(id, self.broker.exchange.outputs.now + LOOK_AGAIN);
        self.expire_in(id, expires_in);
    }

    /// The keeper's place, behind all shards.
    pub(super) fn keeper_index(&self) -> usize {
        self.broker.exchange.outgoing.len() - 1
    }

    /// Tells the keeper something.
    pub(super) fn tell_keeper(&mut self, note: Note) {
        let keeper = self.keeper_index();
        self.broker.exchange.outgoing[keeper].push_note(note);
    }

    /// Takes what the keeper says.
    pub(in crate::shard) fn take_note(&mut self, note: &Note) {
        match note {
            Note::Opened(opened) => {
                if let Some(id) = self.seated(opened.seat) {
                    self.begin_mqtt(id, opened);
                }
            }
            Note::TakenOver(seat) => {
                if let Some(id) = self.seated(*seat) {
                    let why = "another connection has the client id now";
                    self.end_because(id, Reason::SESSION_TAKEN_OVER, why);
                }
            }
            Note::Will {
                account,
                will,
                client,
            } => self.publish_for(*account, &will.publish(), Some(&**client)),
            Note::Group {
                account,
                filter,
                is_there,
            } => self.know_group(*account, filter, *is_there),
            Note::Recalled(recalled) => {
                if let Some(id) = self.seated(recalled.recall.seat) {
                    self.deliver_recalled(id, recalled);
                }
            }
            Note::Open { .. } | Note::Close(_) | Note::Recall(_) | Note::Member { .. } => {}
        }
    }

    fn seated(&self, seat: Seat) -> Option<SessionId> {
        let session = self
            .broker
            .exchange
            .sessions
            .get(usize::try_from(seat.session).ok()?)?;
        let is_it = session.cid == seat.cid && session.ending.is_none();
        is_it.then_some(SessionId(seat.session))
    }

    /// Nobody else has the session any more: it goes on here.
    fn begin_mqtt(&mut self, id: SessionId, opened: &Opened) {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        mqtt.started_unix_nanos = opened.started_unix_nanos;
        let session_present = opened.record.is_some();
        let mut acks: Vec<&[u8]> = Vec::new();
        if let Some(record) = &opened.record {
            mqtt.is_kept = true;
            mqtt.is_resumed = true;
            let owned = opened.owned.iter();
            acks.extend(owned.filter_map(|(_, kept)| Waiting::ack_in(kept)));
            mqtt.restore(&opened.releases, &opened.owned);
            mqtt.link
                .restore_held(opened.held.iter().map(|(packet_id, ..)| *packet_id));
            for (packet_id, sequence, kept) in &opened.held {
                if let Some(held) = Held::decode(kept, *sequence) {
                    mqtt.held.insert(*packet_id, held);
                }
            }
            self.resume_subscriptions(id, record);
        }
        // What is its own comes from no consumer any more.
        let account = self.broker.exchange.sessions[id.index()].account;
        for ack in acks {
            self.publish_own(account, ack, b"", b"", b"");
        }
        for release in &opened.releases {
            // A crash may have taken the acknowledgement of its message.
            self.listen_to_replies(id);
            self.acknowledge_release(id, release.packet_id);
        }
        self.keep_begun(id, session_present);
    }

    /// Has all kept of a session that begins or goes on, and lets its client in then.
    fn keep_begun(&mut self, id: SessionId, session_present: bool) {
        let groups = self.change_groups(id);
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let is_persistent = mqtt.is_persistent();
        let has_consumer = !mqtt.consumer.filters.is_empty();
        let old = match (is_persistent, session_present) {
            (true, true) => &RESUMED[..],
            (true, false) => &BEGUN[..],
            (false, _) => &[],
        };
        let parts =
            usize::from(is_persistent) + usize::from(has_consumer) + groups.len() + old.len();
        if mqtt.link.will().is_some() && !is_persistent {
            // Nobody waits for that: a crash may end the connection at any time.
            self.keep_record(id, 0);
        }
        let accept = Operation::accept(session_present, parts);
        if parts == 0 {
            return self.finish_operation(id, accept);
        }
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let operation = mqtt.operation(accept);
        if has_consumer {
            // It is there, unless it was in memory, and has the settings of today.
            self.change_consumer(id, operation);
        }
        for filter in groups {
            self.make_group(id, &filter, operation);
        }
        for (stream, prefix, last) in old {
            self.await_removal(id, (stream, prefix, last), operation);
        }
        if is_persistent {
            self.keep_record(id, operation);
        }
    }

    /// Removes records of the session from a stream; `operation` goes on when that and all earlier removals are on the
    /// disk.
    fn await_removal(
        &mut self,
        id: SessionId,
        (stream, prefix, last): (&str, &str, &str),
        operation: u32,
    ) {
        self.listen_to_replies(id);
        let session = &self.broker.exchange.sessions[id.index()];
        let (account, cid) = (session.account, session.cid);
        let Some(mqtt) = &session.kind.mqtt else {
            return;
        };
        let (topic, body) = names::purge(stream, &format!("{prefix}{}.{last}", mqtt.hash));
        let reply = format!("{}{cid}.s{operation}", names::REPLY_PREFIX);
        let (topic, body, reply) = (topic.as_bytes(), body.as_bytes(), reply.as_bytes());
        if !self.publish_own(account, topic, reply, b"", body) {
            self.fail_operation(id, operation, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// CONNACK leaves.
    pub(super) fn accept_mqtt(&mut self, id: SessionId, session_present: bool, reason: Reason) {
        if reason.is_failure() {
            return self.refuse_mqtt(id, reason, CloseReason::ServerShutdown);
        }
        let now = self.broker.exchange.outputs.now;
        let session = &mut self.broker.exchange.sessions[id.index()];
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        let before = session.out.pending_bytes();
        let accepted = Accepted {
            session_present,
            assigned_client_id: mqtt.is_id_assigned.then_some(&*mqtt.client_id),
        };
        let ended = mqtt.link.accept(&accepted, now, &mut session.out);
        if let Some(ended) = ended {
            self.note_written(id, before);
            return self.end_wrong(id, ended);
        }
        mqtt.link.again(&mut session.out, |_, _, _, _| {});
        let has_consumer = !mqtt.consumer.filters.is_empty();
        let next = mqtt.link.next_timeout().unwrap_or(now + NO_KEEP_ALIVE);
        self.note_written(id, before);
        self.broker.exchange.rearm(id, next);
        self.arm_expiry(id);
        if has_consumer {
            self.listen_to_consumer(id);
        }
        self.deliver_waiting(id);
        self.take_early(id, b"", now);
    }

    /// Subscribes to where answers to this session go.
    pub(super) fn listen_to_replies(&mut self, id: SessionId) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let cid = session.cid;
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        if !std::mem::replace(&mut mqtt.has_replies, true) {
            let filter = format!("{}{cid}.*", names::REPLY_PREFIX);
            self.enter_subscription(id, filter.as_bytes(), b"", REPLY_SID);
        }
    }

    /// Subscribes to where its consumer delivers: from then on it does.
    pub(super) fn listen_to_consumer(&mut self, id: SessionId) {
        let Some(mqtt) = &self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let subject = format!("{}{}", names::DELIVER_PREFIX, mqtt.hash);
        self.enter_subscription(id, subject.as_bytes(), b"", DELIVER_SID);
    }

    /// Keeps what the session is; `operation` goes on when that is on the disk, unless it is 0.
    pub(super) fn keep_record(&mut self, id: SessionId, operation: u32) {
        self.listen_to_replies(id);
        let mqtt = self.broker.exchange.sessions[id.index()].kind.mqtt.as_ref();
        let will = mqtt.and_then(|mqtt| mqtt.link.will().cloned());
        let will = will.filter(|will| self.may_leave(id, will));
        let session = &mut self.broker.exchange.sessions[id.index()];
        let (account, cid) = (session.account, session.cid);
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        mqtt.is_kept = true;
        let (version, expiry) = (mqtt.link.version(), mqtt.link.session_expiry());
        let mut record = SessionRecord::new(&mqtt.client_id, version, expiry, &mqtt.subscriptions);
        // Should a crash end it, its will is sent when the server is back.
        record.set_will(will.as_ref().map(|will| (will, 0)));
        let topic = format!("{}{}", names::SESSIONS_PREFIX, mqtt.hash);
        let reply = format!("{}{cid}.s{operation}", names::REPLY_PREFIX);
        let sent = self.publish_own(
            account,
            topic.as_bytes(),
            reply.as_bytes(),
            b"",
            &record.encode(),
        );
        if !sent {
            self.fail_operation(id, operation, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Tells a client that it may not come in, or that its connection ends, as far as MQTT has a word for it.
    pub(in crate::shard) fn refuse_mqtt(
        &mut self,
        id: SessionId,
        reason: Reason,
        close: CloseReason,
    ) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let before = session.out.pending_bytes();
        if let Some(mqtt) = &mut session.kind.mqtt {
            match mqtt.link.is_asked() {
                true => mqtt.link.refuse(reason, &mut session.out),
                false => mqtt.link.close(reason, "", &mut session.out),
            }
        }
        self.note_written(id, before);
        self.end(id, close);
    }

    /// A connection has ended, for whatever reason; its subscriptions are gone.
    pub(in crate::shard) fn end_mqtt(&mut self, id: SessionId, reason: CloseReason) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let (account, cid) = (session.account, session.cid);
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        if reason.flushes() && mqtt.link.is_open() {
            let told = told_reason(reason);
            mqtt.link.close(told, "", &mut session.out);
        }
        mqtt.early = Vec::new();
        self.leave_groups(id);
        let session = &mut self.broker.exchange.sessions[id.index()];
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        let complete = match mqtt.is_persistent() {
            true => mqtt.complete_releases(),
            false => Vec::new(),
        };
        let will = mqtt.link.take_will();
        let client = mqtt.hash.clone();
        if !mqtt.is_registered {
            return;
        }
        for release in complete {
            let topic = names::release(&client, release.packet_id);
            let told = release.encode();
            self.publish_own(account, topic.as_bytes(), b"", b"", told.as_bytes());
        }
        let mut will = will.filter(|will| self.may_leave(id, will));
        if let Some(will) = will.take_if(|will| will.delay.is_zero()) {
            self.publish_for(account, &will.publish(), Some(&*client));
        }
        self.keep_begun_messages(id);
        self.keep_ended_record(id, will.as_deref());
        let Some(mqtt) = &self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let close = Close {
            key: SessionKey {
                account,
                client_id: mqtt.client_id.clone(),
            },
            seat: Seat {
                shard: self.broker.exchange.index,
                session: id.0,
                cid,
            },
            expiry: mqtt.link.session_expiry(),
            will,
            is_kept: mqtt.is_kept,
        };
        self.tell_keeper(Note::Close(Box::new(close)));
    }

    /// Whether a client may publish its will, by what it was granted.
    fn may_leave(&mut self, id: SessionId, will: &Will) -> bool {
        let mut subject = Vec::new();
        let has_subject = topic_to_subject(&will.topic, &mut subject).is_ok();
        if !has_subject || subject.starts_with(names::OWN_PREFIX) {
            return false;
        }
        let session = &self.broker.exchange.sessions[id.index()];
        if session.restriction.is_none() {
            return true;
        }
        // By its other name, as all that is published.
        let account = session.account;
        let mut renamed = Vec::new();
        let subject = match self.broker.rename(account, &subject, &mut renamed) {
            Mapped::Renamed => renamed,
            Mapped::Unchanged => subject,
            Mapped::Lost => return false,
        };
        let restriction = self.broker.exchange.sessions[id.index()]
            .restriction
            .as_ref();
        restriction.is_none_or(|restriction| restriction.may_publish(&subject))
    }

    fn keep_ended_record(&mut self, id: SessionId, will: Option<&Will>) {
        let now = self.broker.exchange.outputs.now;
        let session = &self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = session.kind.mqtt.as_ref().filter(|mqtt| mqtt.is_kept) else {
            return;
        };
        if !mqtt.is_persistent() {
            return;
        }
        let (version, expiry) = (mqtt.link.version(), mqtt.link.session_expiry());
        let mut record = SessionRecord::new(&mqtt.client_id, version, expiry, &mqtt.subscriptions);
        let started = u64::try_from(mqtt.started_unix_nanos / NANOS_PER_SECOND).unwrap_or(0);
        let ended_at = started + now.as_secs();
        record.ended_at = Some(ended_at);
        let delayed = will.filter(|will| !will.delay.is_zero());
        record.set_will(delayed.map(|will| (will, ended_at + will.delay.as_secs())));
        let topic = format!("{}{}", names::SESSIONS_PREFIX, mqtt.hash);
        self.publish_own(account, topic.as_bytes(), b"", b"", &record.encode());
    }

    /// What is due for an MQTT session. Says when it is to be looked at again; `None` when it has ended.
    pub(in crate::shard) fn handle_mqtt_timeout(
        &mut self,
        id: SessionId,
        now: Duration,
    ) -> Option<Duration> {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let auth_timeout = auth_timeout(&self.broker.exchange.config.limits, &session.peer);
        let before = session.out.pending_bytes();
        let mqtt = session.kind.mqtt.as_mut()?;
        if !session.has_connected {
            let until = session.opened_at + auth_timeout;
            if now >= until {
                self.end(id, CloseReason::AuthenticationTimeout);
                return None;
            }
            return Some(until);
        }
        if !mqtt.link.is_open() {
            return Some(now + LOOK_AGAIN);
        }
        let ended: Option<Ended> = mqtt.link.handle_timeout(now, &mut session.out);
        let next = mqtt.link.next_timeout();
        self.note_written(id, before);
        if let Some(ended) = ended {
            let account = self.broker.exchange.sessions[id.index()].account;
            self.broker.exchange.totals_of(account).stale += 1;
            self.end_wrong(id, ended);
            return None;
        }
        Some(next.unwrap_or(now + NO_KEEP_ALIVE))
    }
}

/// How MQTT says why a connection ends.
pub(in crate::shard) fn told_reason(reason: CloseReason) -> Reason {
    match reason {
        CloseReason::ServerShutdown => Reason::SERVER_SHUTTING_DOWN,
        CloseReason::AuthenticationFailure
        | CloseReason::AuthenticationTimeout
        | CloseReason::AuthenticationExpired
        | CloseReason::CredentialsRevoked => Reason::NOT_AUTHORIZED,
        CloseReason::MaximumConnectionsExceeded
        | CloseReason::MaximumAccountConnectionsExceeded => Reason::QUOTA_EXCEEDED,
        CloseReason::Kicked => Reason::ADMINISTRATIVE_ACTION,
        CloseReason::StaleConnection => Reason::KEEP_ALIVE_TIMEOUT,
        CloseReason::DuplicateClientId => Reason::SESSION_TAKEN_OVER,
        CloseReason::MaximumPayloadExceeded => Reason::PACKET_TOO_LARGE,
        CloseReason::ParseError => Reason::MALFORMED_PACKET,
        CloseReason::ProtocolViolation => Reason::PROTOCOL_ERROR,
        _ => Reason::UNSPECIFIED_ERROR,
    }
}
