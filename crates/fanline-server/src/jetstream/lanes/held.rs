//! Messages of a lane's service that wait for a commit.

use std::collections::VecDeque;

use fanline_engine::auth::AccountId;
use fanline_engine::jetstream::{
    ApiError, Message, Outcome, Port, Ports, is_of_service, refusal_of,
};

/// The messages that the service of a lane has sent, in order. Each waits until the last entry that was recorded when
/// it was sent is committed, because it may show changes of this entry.
#[derive(Default)]
pub(super) struct Held {
    messages: VecDeque<HeldMessage>,
    /// Number of messages at the end that were sent in this round, whose last entry is not known yet.
    new: usize,
    /// The entry for which messages wait that are sent now, if it is known.
    after: Option<u64>,
}

struct HeldMessage {
    /// Number of the last entry that was recorded before.
    after: u64,
    account: AccountId,
    kind: Kind,
    /// The subject to which it is delivered, if it is another one.
    to: Vec<u8>,
    subject: Vec<u8>,
    reply: Vec<u8>,
    headers: Vec<u8>,
    payload: Vec<u8>,
    shown: Vec<u8>,
}

enum Kind {
    Publish,
    Deliver,
    Answer(Result<u64, ApiError>),
}

impl Held {
    /// Ends a round. `last` is the number of the last recorded entry.
    pub(super) fn end_round(&mut self, last: u64) {
        for message in self.messages.iter_mut().rev().take(self.new) {
            message.after = message.after.min(last);
        }
        self.new = 0;
    }

    /// Sets the entry for which the next messages wait; `None` if it is the last one of their round.
    pub(super) fn set_after(&mut self, after: Option<u64>) {
        self.after = after;
    }

    /// Sends the messages whose entries are committed. Call it after [`end_round`](Self::end_round).
    pub(super) fn release(&mut self, committed: u64, ports: &mut dyn Ports) {
        while let Some(message) = self.messages.pop_front_if(|it| it.after <= committed) {
            message.send(ports.of(message.account));
        }
        self.new = self.new.min(self.messages.len());
    }

    /// Drops all messages, because the server does not lead the lane any more. Answers become errors: their changes may
    /// or may not be committed.
    pub(super) fn fail(&mut self, ports: &mut dyn Ports) {
        self.new = 0;
        for message in self.messages.drain(..) {
            if let Kind::Answer(_) = message.kind {
                message.refuse(ports.of(message.account));
            }
        }
    }

    fn push(&mut self, account: AccountId, kind: Kind, to: &[u8], message: &Message<'_>) {
        // A message never overtakes an earlier one.
        let after = self.after.unwrap_or(u64::MAX);
        self.new += 1;
        self.messages.push_back(HeldMessage {
            after,
            account,
            kind,
            to: to.into(),
            subject: message.subject.into(),
            reply: message.reply.into(),
            headers: message.headers.into(),
            payload: message.payload.into(),
            shown: message.shown.into(),
        });
    }
}

impl HeldMessage {
    fn message(&self) -> Message<'_> {
        Message {
            subject: &self.subject,
            reply: &self.reply,
            headers: &self.headers,
            payload: &self.payload,
            shown: &self.shown,
            ..Message::default()
        }
    }

    fn send(&self, port: &mut dyn Port) {
        let message = self.message();
        match &self.kind {
            Kind::Publish => port.publish(&message),
            Kind::Deliver => port.deliver(&self.to, &message),
            Kind::Answer(outcome) => port.answer(&message, outcome.as_ref().copied()),
        }
    }

    /// Sends an error in place of an answer. It is no status without responders, after which clients would repeat the
    /// request.
    fn refuse(&self, port: &mut dyn Port) {
        let error = ApiError::TEMPORARILY_UNAVAILABLE;
        // Another answer is missed.
        let Some(payload) = refusal_of(&self.payload, &error) else {
            return;
        };
        let message = Message {
            headers: b"",
            payload: &payload,
            ..self.message()
        };
        port.answer(&message, Err(&error));
    }
}

/// A change of a subscription to a marker: its account, its filter, and whether it begins.
pub(super) type Change = (AccountId, Vec<u8>, bool);

/// The ports of a service. Subscriptions take effect at once, also those to markers, which the other services of this
/// server learn. Messages are held if the service is that of a lane.
pub(super) struct LanePorts<'a> {
    pub(super) ports: &'a mut dyn Ports,
    pub(super) held: Option<&'a mut Held>,
    pub(super) changes: &'a mut Vec<Change>,
    /// Whether it is the service of the streams that are not replicated.
    pub(super) is_own: bool,
    pub(super) account: AccountId,
}

impl LanePorts<'_> {
    fn port(&mut self) -> &mut dyn Port {
        self.ports.of(self.account)
    }

    fn note(&mut self, filter: &[u8], present: bool) {
        if is_of_service(filter) {
            self.changes.push((self.account, filter.into(), present));
        }
    }
}

impl Ports for LanePorts<'_> {
    fn of(&mut self, account: AccountId) -> &mut dyn Port {
        self.account = account;
        self
    }
}

impl Port for LanePorts<'_> {
    fn publish(&mut self, message: &Message<'_>) {
        match &mut self.held {
            Some(held) => held.push(self.account, Kind::Publish, b"", message),
            None => self.port().publish(message),
        }
    }

    fn answer(&mut self, message: &Message<'_>, outcome: Outcome<'_>) {
        match &mut self.held {
            Some(held) => {
                let kind = Kind::Answer(outcome.map_err(Clone::clone));
                held.push(self.account, kind, b"", message);
            }
            None => self.port().answer(message, outcome),
        }
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        match &mut self.held {
            Some(held) => held.push(self.account, Kind::Deliver, to, message),
            None => self.port().deliver(to, message),
        }
    }

    fn deliver_next(&mut self, to: &[u8], message: &Message<'_>) {
        match self.held {
            Some(_) => self.deliver(to, message),
            None => self.port().deliver_next(to, message),
        }
    }

    fn has_interest(&mut self, subject: &[u8]) -> bool {
        self.port().has_interest(subject)
    }

    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool {
        self.port().has_receiver(subject, group)
    }

    fn is_subscribed(&mut self, filter: &[u8]) -> bool {
        self.port().is_subscribed(filter)
    }

    fn has_others(&mut self, subject: &[u8]) -> bool {
        self.port().has_others(subject)
    }

    fn subscribe(&mut self, filter: &[u8]) {
        self.port().subscribe(filter);
        self.note(filter, true);
    }

    fn unsubscribe(&mut self, filter: &[u8]) {
        self.port().unsubscribe(filter);
        self.note(filter, false);
    }

    fn set_member(&mut self, filter: &[u8], group: &[u8], is_member: bool) {
        // The server's own service answers requests for servers without JetStream.
        if self.is_own {
            self.port().set_member(filter, group, is_member);
        }
    }
}
