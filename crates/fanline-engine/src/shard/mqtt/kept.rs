//! What waits until something is on the disk: acknowledgements of messages, and requests that have several
//! parts.

use super::super::SessionId;
use super::super::Shard;
use super::groups::is_shared;
use super::names;
use super::note::KeptRelease;
use super::session::{Mqtt, Release, ReleaseStage, Waiting};
use crate::auth::AccountId;
use crate::codec::mqtt::{Ended, Names, Reason};
use crate::codec::nats::error::CloseReason;
use crate::exchange::message::Message;

/// What an answer is about: the first letter of its topic's last token.
pub(super) const PUBLISH: u8 = b'a';
pub(super) const HOLD: u8 = b'h';
pub(super) const RELEASE: u8 = b'r';
/// That a message of a group is one member's own.
pub(super) const OWN: u8 = b'o';
/// A PUBREL.
const NOTE: u8 = b'n';
/// The acknowledgement of a message whose PUBREL is kept.
const CONFIRM: u8 = b'c';
/// The same at the consumer of a group, of a message that is the session's own.
const CONFIRM_OWNED: u8 = b'w';
/// The removal of a PUBREL.
const FORGET: u8 = b'f';
/// The removal of a message of QoS 2 that was released.
const COMPLETE: u8 = b'p';
/// The part of an operation that is the session's record.
const RECORD: u8 = b's';
/// The part that is its consumer.
const CONSUMER: u8 = b'k';

/// A token of a message that nobody keeps for this session, as a retained one.
pub(super) const UNKEPT: u64 = 1 << 63;

/// What came for MQTT sessions while messages were given out, and is looked at afterwards.
#[derive(Default)]
pub(in crate::shard) struct Answers {
    answers: Vec<Answer>,
    /// Messages that nobody is given, to be acknowledged, and with what.
    unwanted: Vec<Unwanted>,
    /// Sessions for which something waits.
    woken: Vec<u32>,
    /// Messages whose PUBRELs are kept, by session and packet identifier: they are to be acknowledged again.
    arrived: Vec<(u32, u16)>,
    names: Names,
    /// The subject that was translated last, and its topic name, which may be none.
    subject: Vec<u8>,
    topic: String,
}

/// A message that its receiver does not get or keep.
struct Unwanted {
    account: AccountId,
    ack: Box<[u8]>,
    word: &'static [u8],
}

#[derive(Clone, Copy)]
struct Answer {
    session: u32,
    kind: u8,
    number: u32,
    reason: Reason,
    /// The place of the record.
    sequence: u64,
}

/// A message that is being stored.
#[derive(Clone, Copy, Default)]
pub(super) struct Storing {
    /// In so many places.
    left: u8,
    /// How often the client waits for it.
    times: u16,
    worst: Option<Reason>,
}

/// A request with parts of which each has to be on the disk before it is answered.
pub(super) struct Operation {
    left: usize,
    failed: Option<Reason>,
    what: What,
}

enum What {
    Accept {
        session_present: bool,
    },
    Subscribe(Subscribing),
    Unsubscribe {
        packet_id: u16,
        reasons: Vec<Reason>,
    },
}

/// What a SUBACK says.
pub(super) struct Subscribing {
    pub(super) packet_id: u16,
    pub(super) reasons: Vec<Reason>,
    /// Places of the subscriptions that want retained messages.
    pub(super) recalls: Vec<u32>,
}

impl Operation {
    pub(super) fn accept(session_present: bool, parts: usize) -> Self {
        Operation::of(What::Accept { session_present }, parts)
    }

    pub(super) fn subscribe(subscribing: Subscribing, parts: usize) -> Self {
        Operation::of(What::Subscribe(subscribing), parts)
    }

    pub(super) fn unsubscribe(packet_id: u16, reasons: Vec<Reason>, parts: usize) -> Self {
        Operation::of(What::Unsubscribe { packet_id, reasons }, parts)
    }

    fn of(what: What, left: usize) -> Self {
        Operation {
            left,
            failed: None,
            what,
        }
    }
}

impl Answers {
    /// The topic name of a subject.
    #[inline]
    pub(super) fn topic(&mut self, subject: &[u8]) -> Option<&str> {
        if self.subject != subject {
            self.subject.clear();
            self.topic.clear();
            if let Ok(topic) = self.names.topic(subject) {
                self.topic.push_str(topic);
            }
            self.subject.extend_from_slice(subject);
        }
        (!self.topic.is_empty()).then_some(&self.topic)
    }

    /// An answer has come for a session.
    pub(super) fn note(&mut self, session: u32, topic: &[u8], payload: &[u8]) {
        let token = topic.rsplit(|b| *b == b'.').next().unwrap_or_default();
        let Some((kind, digits)) = token.split_first() else {
            return;
        };
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        if let Ok(number) = digits.parse() {
            self.answers.push(Answer {
                session,
                kind: *kind,
                number,
                reason: reason_in(payload),
                sequence: sequence_in(payload),
            });
        }
    }

    /// A message is to be acknowledged that nobody was given.
    pub(super) fn acknowledge(&mut self, account: AccountId, ack: &[u8]) {
        self.refuse(account, ack, b"");
    }

    /// A message is done with that had to wait.
    pub(super) fn discard(&mut self, account: AccountId, message: &Waiting) {
        if !message.ack.is_empty() {
            self.acknowledge(account, &message.ack);
        }
    }

    /// The same as [`acknowledge`](Self::acknowledge) in other words.
    pub(super) fn refuse(&mut self, account: AccountId, ack: &[u8], word: &'static [u8]) {
        let ack = ack.into();
        self.unwanted.push(Unwanted { account, ack, word });
    }

    /// A message has found no member of its group, as the last one here has just left. One that the consumer of an
    /// MQTT group has sent is to have another.
    #[cold]
    pub(in crate::shard) fn note_missed(
        &mut self,
        account: AccountId,
        topic: &[u8],
        message: &Message<'_>,
    ) {
        if topic.starts_with(names::MEMBER_PREFIX.as_bytes()) {
            let ack = &message.args[..message.reply_bytes];
            self.refuse(account, ack, super::groups::PASS_ON);
        }
    }

    /// Something waits for a session.
    pub(super) fn wake(&mut self, session: u32) {
        if self.woken.last() != Some(&session) {
            self.woken.push(session);
        }
    }

    /// A message was delivered again whose PUBREL is kept.
    #[cold]
    pub(super) fn note_arrived(&mut self, session: u32, packet_id: u16) {
        self.arrived.push((session, packet_id));
    }

    fn is_empty(&self) -> bool {
        self.answers.is_empty()
            && self.unwanted.is_empty()
            && self.woken.is_empty()
            && self.arrived.is_empty()
    }
}

/// Whether an answer of JetStream says that something failed.
fn reason_in(payload: &[u8]) -> Reason {
    let has = |wanted: &[u8]| payload.windows(wanted.len()).any(|part| part == wanted);
    match payload {
        // An acknowledgement is the usual answer.
        [b'{', b'"', b's', b't', ..] | [] => Reason::SUCCESS,
        _ if !has(b"\"error\":{") => Reason::SUCCESS,
        _ if has(b"\"err_code\":10023") || has(b"\"err_code\":10047") => Reason::QUOTA_EXCEEDED,
        _ => Reason::UNSPECIFIED_ERROR,
    }
}

fn sequence_in(payload: &[u8]) -> u64 {
    const WANTED: &[u8] = b"\"seq\":";
    let at = payload
        .windows(WANTED.len())
        .position(|part| part == WANTED);
    let digits = at.map_or(&[][..], |at| &payload[at + WANTED.len()..]);
    let digits = digits.iter().take_while(|b| b.is_ascii_digit());
    digits.fold(0, |number: u64, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'))
    })
}

impl Shard {
    /// Looks at what came for MQTT sessions.
    #[inline]
    pub(in crate::shard) fn take_answers(&mut self) {
        while !self.broker.exchange.shared.answers.is_empty() {
            self.take_some_answers();
        }
    }

    #[inline(never)]
    fn take_some_answers(&mut self) {
        for unwanted in std::mem::take(&mut self.broker.exchange.shared.answers.unwanted) {
            let Unwanted { account, ack, word } = unwanted;
            self.publish_own(account, &ack, b"", b"", word);
        }
        for session in std::mem::take(&mut self.broker.exchange.shared.answers.woken) {
            let index = usize::try_from(session).unwrap_or(usize::MAX);
            if self.broker.exchange.sessions.contains(index) {
                self.deliver_waiting(SessionId(session));
            }
        }
        for (session, packet_id) in std::mem::take(&mut self.broker.exchange.shared.answers.arrived)
        {
            let index = usize::try_from(session).unwrap_or(usize::MAX);
            if self.broker.exchange.sessions.contains(index) {
                self.acknowledge_release(SessionId(session), packet_id);
            }
        }
        let mut answers = std::mem::take(&mut self.broker.exchange.shared.answers.answers);
        for answer in answers.drain(..) {
            let index = usize::try_from(answer.session).unwrap_or(usize::MAX);
            let session = self.broker.exchange.sessions.get(index);
            if session.is_some_and(|session| session.ending.is_none()) {
                self.take_answer(SessionId(answer.session), answer);
            }
        }
        if self.broker.exchange.shared.answers.answers.is_empty() {
            // Its room is used again.
            self.broker.exchange.shared.answers.answers = answers;
        }
    }

    fn take_answer(&mut self, id: SessionId, answer: Answer) {
        let Answer {
            kind,
            number,
            reason,
            sequence,
            ..
        } = answer;
        if matches!(kind, RECORD | CONSUMER) {
            return match reason.is_failure() && !self.may_fail(id, kind, number, reason) {
                true => self.fail_operation(id, number, reason),
                false => self.end_part(id, number),
            };
        }
        let Ok(packet_id) = u16::try_from(number) else {
            return;
        };
        match kind {
            PUBLISH | HOLD | RELEASE => {
                if kind == HOLD
                    && let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt
                    && let Some(held) = mqtt.held.get_mut(&packet_id)
                {
                    held.sequence = sequence;
                }
                self.stored(id, kind, packet_id, reason);
            }
            OWN => self.send_owned(id, packet_id, reason),
            NOTE => self.release_kept(id, packet_id, reason),
            // What was not confirmed is acknowledged again on the next connection.
            CONFIRM if reason.is_failure() => {}
            CONFIRM => self.confirm_release(id, packet_id),
            CONFIRM_OWNED => self.disown_released(id, packet_id),
            FORGET => self.release_forgotten(id, packet_id),
            COMPLETE => self.complete_held(id, packet_id, reason),
            _ => {}
        }
    }

    /// A message is about to be stored in so many places.
    pub(super) fn await_storing(&mut self, id: SessionId, kind: u8, packet_id: u16, places: u8) {
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt {
            let storing = mqtt.storing.entry((kind, packet_id)).or_default();
            storing.left = storing.left.saturating_add(places);
            storing.times = storing.times.saturating_add(1);
        }
    }

    /// A message is stored in one more place, or will not be.
    pub(super) fn stored(&mut self, id: SessionId, kind: u8, packet_id: u16, reason: Reason) {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let mut storing = mqtt.storing.remove(&(kind, packet_id)).unwrap_or(Storing {
            left: 1,
            times: 1,
            worst: None,
        });
        storing.left = storing.left.saturating_sub(1);
        storing.worst = storing
            .worst
            .or_else(|| Some(reason).filter(|reason| reason.is_failure()));
        if storing.left > 0 {
            mqtt.storing.insert((kind, packet_id), storing);
            return;
        }
        let reason = storing.worst.unwrap_or(Reason::SUCCESS);
        for _ in 0..storing.times {
            self.answer_stored(id, kind, packet_id, reason);
        }
    }

    fn answer_stored(&mut self, id: SessionId, kind: u8, packet_id: u16, reason: Reason) {
        if kind == RELEASE && reason.is_failure() {
            // PUBCOMP has no word for it. Without one the client says PUBREL again when it is back, and the message
            // is still held if its session is kept.
            return self.end_because(id, reason, "a message could not be kept");
        }
        if kind == RELEASE {
            return self.forget_held(id, packet_id);
        }
        let session = &mut self.broker.exchange.sessions[id.index()];
        let before = session.out.pending_bytes();
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        let out = &mut session.out;
        let ended = match kind {
            PUBLISH => mqtt.link.acknowledge(packet_id, reason, out),
            _ => {
                if reason.is_failure() {
                    mqtt.held.remove(&packet_id);
                }
                mqtt.link.held(packet_id, reason, out)
            }
        };
        self.note_written(id, before);
        if let Some(ended) = ended {
            self.end_wrong(id, ended);
        }
    }

    /// A message of QoS 2 was published: it is held no more. PUBCOMP waits until that is on the disk. Its client uses
    /// the identifier again then, and a record that came back after a power cut would be taken for the next message.
    fn forget_held(&mut self, id: SessionId, packet_id: u16) {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let held = mqtt.held.remove(&packet_id);
        if held.is_none_or(|held| held.sequence == 0) {
            return self.complete_held(id, packet_id, Reason::SUCCESS);
        }
        let subject = names::held(&mqtt.hash, packet_id);
        let reply = self.reply_topic(id, COMPLETE, packet_id);
        if !self.purge_own(id, names::HELD, &subject, &reply) {
            self.complete_held(id, packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// PUBCOMP leaves.
    fn complete_held(&mut self, id: SessionId, packet_id: u16, reason: Reason) {
        if reason.is_failure() {
            // The client sends PUBREL again when it is back.
            return self.end_because(id, reason, "a message of QoS 2 could not be removed");
        }
        let session = &mut self.broker.exchange.sessions[id.index()];
        let before = session.out.pending_bytes();
        if let Some(mqtt) = &mut session.kind.mqtt {
            mqtt.link.released(packet_id, &mut session.out);
        }
        self.note_written(id, before);
    }

    /// Removes the record of a subject; false when nobody does it.
    fn purge_own(&mut self, id: SessionId, stream: &str, subject: &str, reply: &str) -> bool {
        let account = self.broker.exchange.sessions[id.index()].account;
        let (topic, body) = names::purge(stream, subject);
        let (topic, body) = (topic.as_bytes(), body.as_bytes());
        self.publish_own(account, topic, reply.as_bytes(), b"", body)
    }

    /// A message has arrived: it is not kept for this client any more.
    pub(super) fn message_done(&mut self, id: SessionId, token: u64) {
        self.acknowledge_kept(id, token);
        self.deliver_waiting(id);
    }

    /// Acknowledges a message where it is kept, if it is.
    fn acknowledge_kept(&mut self, id: SessionId, token: u64) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        mqtt.begun.remove(&token);
        if let Some(owned) = mqtt.owned.remove(&token) {
            self.disown(id, owned.packet_id, b"");
        } else if let Some(ack) = mqtt.acks.remove(&token) {
            self.publish_own(account, &ack, b"", b"", b"");
        }
    }

    /// A message of QoS 2 has arrived: that is kept before it is said.
    pub(super) fn note_received(&mut self, id: SessionId, token: u64, packet_id: u16) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        // Its client has it: PUBLISH is not sent again.
        mqtt.begun.remove(&token);
        let is_persistent = mqtt.is_persistent();
        if !is_persistent && !is_shared(token) {
            self.send_release(id, packet_id);
            return self.acknowledge_kept(id, token);
        }
        let release = Release::new(token, ReleaseStage::Noting);
        mqtt.releases.insert(packet_id, release);
        if !is_persistent {
            return self.release_kept(id, packet_id, Reason::SUCCESS);
        }
        mqtt.is_kept = true;
        let topic = names::release(&mqtt.hash, packet_id);
        self.listen_to_replies(id);
        let reply = self.reply_topic(id, NOTE, packet_id);
        let kept = KeptRelease {
            packet_id,
            token,
            is_complete: false,
        };
        let is_wanted = self.publish_own(
            account,
            topic.as_bytes(),
            reply.as_bytes(),
            b"",
            kept.encode().as_bytes(),
        );
        if !is_wanted {
            self.release_kept(id, packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// A PUBREL is on the disk, or will not be.
    fn release_kept(&mut self, id: SessionId, packet_id: u16, reason: Reason) {
        if reason.is_failure() {
            // Without a PUBREL the client sends PUBREC again when it is back.
            let why = "a PUBREL could not be kept";
            return self.end_because(id, reason, why);
        }
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt
            && let Some(release) = mqtt.releases.get_mut(&packet_id)
        {
            release.stage = match release.token & UNKEPT != 0 {
                true => ReleaseStage::Confirmed,
                false => ReleaseStage::Noted,
            };
        }
        self.send_release(id, packet_id);
        self.acknowledge_release(id, packet_id);
    }

    /// Acknowledges a message whose PUBREL is kept. The record of the PUBREL stays until that is durable.
    pub(super) fn acknowledge_release(&mut self, id: SessionId, packet_id: u16) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        let release = mqtt.releases.get_mut(&packet_id);
        let Some(release) = release.filter(|release| release.stage == ReleaseStage::Noted) else {
            return;
        };
        let token = release.token;
        let (ack, kind) = if is_shared(token) {
            if let Some(owned) = mqtt.owned.remove(&token) {
                release.ack = owned.ack;
            }
            // What was acknowledged there before may not be durable.
            (release.ack.clone(), CONFIRM_OWNED)
        } else {
            let ack = mqtt.acks.remove(&token);
            let ack = ack.unwrap_or_else(|| names::ack(&mqtt.hash, token).into_bytes().into());
            (ack, CONFIRM)
        };
        if ack.is_empty() {
            return self.disown_released(id, packet_id);
        }
        let reply = self.reply_topic(id, kind, packet_id);
        if !self.publish_own(account, &ack, reply.as_bytes(), b"", b"") {
            // Nobody keeps the message itself.
            self.confirm_release(id, packet_id);
        }
    }

    /// It is on the disk that a message of a group is done with: it is not the session's own any more.
    fn disown_released(&mut self, id: SessionId, packet_id: u16) {
        let mqtt = self.broker.exchange.sessions[id.index()].kind.mqtt.as_ref();
        if mqtt.is_none_or(|mqtt| !mqtt.releases.contains_key(&packet_id)) {
            return;
        }
        let reply = self.reply_topic(id, CONFIRM, packet_id);
        if !self.disown(id, packet_id, reply.as_bytes()) {
            self.confirm_release(id, packet_id);
        }
    }

    fn send_release(&mut self, id: SessionId, packet_id: u16) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let before = session.out.pending_bytes();
        if let Some(mqtt) = &mut session.kind.mqtt {
            mqtt.link.noted(packet_id, &mut session.out);
        }
        self.note_written(id, before);
    }

    /// It is on the disk that a message of QoS 2 has arrived.
    fn confirm_release(&mut self, id: SessionId, packet_id: u16) {
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt
            && let Some(release) = mqtt.releases.get_mut(&packet_id)
            && release.stage == ReleaseStage::Noted
        {
            release.stage = ReleaseStage::Confirmed;
            if release.is_complete {
                self.forget_release(id, packet_id);
            }
        }
    }

    /// PUBCOMP.
    pub(super) fn complete_release(&mut self, id: SessionId, packet_id: u16) {
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt
            && let Some(release) = mqtt.releases.get_mut(&packet_id)
        {
            release.is_complete = true;
            if release.stage == ReleaseStage::Confirmed {
                self.forget_release(id, packet_id);
            }
        }
        self.deliver_waiting(id);
    }

    /// Removes the record of a PUBREL that is complete.
    fn forget_release(&mut self, id: SessionId, packet_id: u16) {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        if let Some(release) = mqtt.releases.get_mut(&packet_id) {
            release.stage = ReleaseStage::Forgetting;
        }
        let subject = names::release(&mqtt.hash, packet_id);
        let reply = self.reply_topic(id, FORGET, packet_id);
        if !self.purge_own(id, names::RELEASES, &subject, &reply) {
            self.release_forgotten(id, packet_id);
        }
    }

    /// The record of a PUBREL is durably gone: another message may have its identifier. If the disk fails, the next
    /// PUBREL with that identifier takes the place of the record.
    fn release_forgotten(&mut self, id: SessionId, packet_id: u16) {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let release = mqtt.releases.get(&packet_id);
        if release.is_some_and(|release| release.stage == ReleaseStage::Forgetting) {
            mqtt.releases.remove(&packet_id);
            self.deliver_waiting(id);
        }
    }

    fn end_part(&mut self, id: SessionId, number: u32) {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let Some(operation) = mqtt.operations.get_mut(&number) else {
            return;
        };
        operation.left = operation.left.saturating_sub(1);
        if operation.left == 0
            && let Some(operation) = mqtt.operations.remove(&number)
        {
            self.finish_operation(id, operation);
        }
    }

    /// A session's consumer was there when the session was kept. One that does not change stays as it is. On a disk
    /// that is full so does its record: else nobody could come back to take what fills it.
    fn may_fail(&self, id: SessionId, kind: u8, number: u32, reason: Reason) -> bool {
        let Some(mqtt) = &self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return false;
        };
        let operation = mqtt.operations.get(&number);
        let is_accept = |operation: &Operation| matches!(operation.what, What::Accept { .. });
        let stays = kind == CONSUMER || mqtt.is_resumed && reason == Reason::QUOTA_EXCEEDED;
        stays && operation.is_some_and(is_accept)
    }

    /// A part of an operation will not be on the disk.
    pub(super) fn fail_operation(&mut self, id: SessionId, number: u32, reason: Reason) {
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt
            && let Some(operation) = mqtt.operations.get_mut(&number)
        {
            operation.failed = Some(reason);
        }
        self.end_part(id, number);
    }

    /// All parts of an operation are where they have to be.
    pub(super) fn finish_operation(&mut self, id: SessionId, operation: Operation) {
        let failed = operation.failed;
        match operation.what {
            What::Accept { session_present } => {
                let reason = failed.map_or(Reason::SUCCESS, |_| Reason::SERVER_UNAVAILABLE);
                self.accept_mqtt(id, session_present, reason);
            }
            What::Subscribe(mut subscribing) => {
                for reason in &mut subscribing.reasons {
                    *reason = failed.filter(|_| !reason.is_failure()).unwrap_or(*reason);
                }
                self.answer_filters(id, |mqtt, out| {
                    let Subscribing {
                        packet_id, reasons, ..
                    } = &subscribing;
                    mqtt.link.subscribed(*packet_id, reasons, out)
                });
                self.begin_recalls(id, &subscribing.recalls);
            }
            What::Unsubscribe { packet_id, reasons } => {
                self.answer_filters(id, |mqtt, out| {
                    mqtt.link.unsubscribed(packet_id, &reasons, out)
                });
            }
        }
    }

    fn answer_filters(
        &mut self,
        id: SessionId,
        answer: impl FnOnce(&mut Mqtt, &mut crate::outbox::Outbox) -> Option<Ended>,
    ) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.ending.is_some() {
            return;
        }
        let before = session.out.pending_bytes();
        let mqtt = session.kind.mqtt.as_mut();
        let ended = mqtt.and_then(|mqtt| answer(mqtt, &mut session.out));
        self.note_written(id, before);
        if let Some(ended) = ended {
            self.end_wrong(id, ended);
        }
    }

    /// How the shard refuses a client in its own words.
    pub(in crate::shard) fn refuse_if_mqtt(&mut self, id: SessionId, reason: CloseReason) -> bool {
        let is_mqtt = self.broker.exchange.sessions[id.index()]
            .kind
            .mqtt
            .is_some();
        if is_mqtt {
            self.refuse_mqtt(id, super::connect::told_reason(reason), reason);
        }
        is_mqtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_jetstream() {
        let full = br#"{"error":{"code":503,"err_code":10023,"description":"insufficient resources"},"stream":"S","seq":0}"#;
        for (payload, reason, sequence) in [
            (&b""[..], Reason::SUCCESS, 0),
            (br#"{"stream":"$MQTT_msgs","seq":42}"#, Reason::SUCCESS, 42),
            (
                br#"{"type":"io.nats.jetstream.api.v1.stream_purge_response","success":true}"#,
                Reason::SUCCESS,
                0,
            ),
            (full, Reason::QUOTA_EXCEEDED, 0),
            (
                br#"{"error":{"code":400,"err_code":10058}}"#,
                Reason::UNSPECIFIED_ERROR,
                0,
            ),
        ] {
            let found = (reason_in(payload), sequence_in(payload));
            assert_eq!(
                found,
                (reason, sequence),
                "{}",
                String::from_utf8_lossy(payload)
            );
        }
    }
}
