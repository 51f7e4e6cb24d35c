//! A naive model of deliveries, written from the rules of the protocol. It plays a burst of one client, and takes
//! from the received messages those that have to be there. A queue group's member is free to choose, so the model
//! follows the server's choice.
//!
//! The server is exact except in one case. A member of a queue group or a subscription on another shard reaches
//! its limit, and the publisher's shard learns of it only after the burst. Until then a message for the group may be
//! forwarded: it arrives later than others, or finds no member, and a request may seem to have a responder.

use super::delivery::{CLIENTS, ClientOptions, QUEUES, Step};
use super::delivery_received::{Delivery, NoResponders, Received};

/// A message that a client publishes.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Unique number.
    pub(super) number: u64,
    pub(super) subject: &'static str,
    /// Reply subject; empty if there is none.
    pub(super) reply: &'static str,
    /// Header block; empty if there is none.
    pub(super) headers: &'static str,
    /// Bytes of the payload after the number.
    pub(super) filler_bytes: usize,
}

impl Message {
    pub(super) fn payload(&self) -> String {
        format!("{}.{}", self.number, "x".repeat(self.filler_bytes))
    }
}

#[derive(Debug)]
struct Subscription {
    client: usize,
    filter: &'static str,
    queue: &'static str,
    sid: &'static str,
    delivered: u64,
    limit: Option<u64>,
    is_open: bool,
    /// Whether it has reached its limit in this burst.
    is_spent: bool,
}

/// A message that no member of a queue group has received.
struct Missed {
    number: u64,
    queue: &'static str,
    /// Indices of the members.
    members: Vec<usize>,
}

pub(super) struct Model {
    shards: usize,
    options: [ClientOptions; CLIENTS],
    subscriptions: Vec<Subscription>,
    missed: Vec<Missed>,
}

impl Model {
    pub(super) fn new(shards: usize) -> Self {
        Model {
            shards,
            options: [ClientOptions::default(); CLIENTS],
            subscriptions: Vec::new(),
            missed: Vec::new(),
        }
    }

    pub(super) fn options(&self, client: usize) -> ClientOptions {
        self.options[client]
    }

    pub(super) fn connect(&mut self, client: usize, options: ClientOptions) {
        self.options[client] = options;
    }

    pub(super) fn disconnect(&mut self, client: usize) {
        self.subscriptions.retain(|own| own.client != client);
    }

    /// Plays a burst, and takes what its messages must have caused.
    pub(super) fn play(&mut self, client: usize, steps: &[Step], received: &mut Received) {
        for step in steps {
            match step {
                Step::Connect(_) | Step::Disconnect => {}
                &Step::Subscribe { filter, queue, sid } => {
                    self.subscribe(client, filter, queue, sid);
                }
                &Step::Unsubscribe { sid, limit } => self.unsubscribe(client, sid, limit),
                Step::Publish(message) => self.publish(client, message, received),
            }
        }
        for missed in std::mem::take(&mut self.missed) {
            self.check_missed(client, &missed);
        }
        self.subscriptions.retain(|own| own.is_open);
    }

    fn find(&mut self, client: usize, sid: &str) -> Option<&mut Subscription> {
        let mut all = self.subscriptions.iter_mut();
        all.find(|own| own.is_open && own.client == client && own.sid == sid)
    }

    /// A SUB with a sid that is in use has no effect.
    fn subscribe(
        &mut self,
        client: usize,
        filter: &'static str,
        queue: &'static str,
        sid: &'static str,
    ) {
        if self.find(client, sid).is_some() {
            return;
        }
        self.subscriptions.push(Subscription {
            client,
            filter,
            queue,
            sid,
            delivered: 0,
            limit: None,
            is_open: true,
            is_spent: false,
        });
    }

    /// The limit counts all messages since the subscription began.
    fn unsubscribe(&mut self, client: usize, sid: &str, limit: u64) {
        if let Some(own) = self.find(client, sid) {
            own.limit = Some(limit);
            own.is_open = own.delivered < limit;
        }
    }

    fn publish(&mut self, client: usize, message: &Message, received: &mut Received) {
        let mut has_receiver = false;
        for at in self.receivers(client, message.subject, "") {
            self.take(at, client, message, true, received);
            has_receiver = true;
        }
        for queue in QUEUES.into_iter().skip(1) {
            let members = self.receivers(client, message.subject, queue);
            if members.is_empty() {
                continue;
            }
            has_receiver = true;
            let has_it = |at: &&usize| {
                let member = &self.subscriptions[**at];
                received.has(member.client, member.sid, message.number)
            };
            let found: Vec<usize> = members.iter().filter(has_it).copied().collect();
            match found[..] {
                [] => self.missed.push(Missed {
                    number: message.number,
                    queue,
                    members,
                }),
                [at] => {
                    let is_next = !self.is_outdated(client, queue);
                    self.take(at, client, message, is_next, received);
                }
                _ => panic!("message {} reached {found:?} of {queue}", message.number),
            }
        }
        if !message.reply.is_empty() && self.options[client].no_responders {
            self.take_report(client, message, has_receiver, received);
        }
    }

    /// Returns the indices of the subscriptions that may receive a message of a client.
    fn receivers(&self, publisher: usize, subject: &str, queue: &str) -> Vec<usize> {
        let echoes = self.options[publisher].echo;
        let receives = |own: &Subscription| {
            own.is_open
                && own.queue == queue
                && (own.client != publisher || echoes)
                && matches(own.filter, subject)
        };
        let all = self.subscriptions.iter().enumerate();
        let all = all.filter(|(_, own)| receives(own));
        all.map(|(at, _)| at).collect()
    }

    /// Takes a delivery that must be there, and counts it.
    fn take(
        &mut self,
        at: usize,
        publisher: usize,
        message: &Message,
        is_next: bool,
        received: &mut Received,
    ) {
        let own = &mut self.subscriptions[at];
        let takes_headers = self.options[own.client].headers;
        let has_headers = self.options[publisher].headers && takes_headers;
        let expected = Delivery {
            number: message.number,
            subject: message.subject.into(),
            reply: message.reply.into(),
            headers: if has_headers { message.headers } else { "" }.into(),
            payload: message.payload(),
        };
        let found = received.take(own.client, own.sid, message.number, is_next);
        assert_eq!(found, Some(expected), "{own:?}");
        own.delivered += 1;
        if own.limit.is_some_and(|limit| own.delivered >= limit) {
            (own.is_open, own.is_spent) = (false, true);
        }
    }

    /// A request without receivers is reported to the requester, at one of its own subscriptions to the reply
    /// subject.
    fn take_report(
        &self,
        client: usize,
        message: &Message,
        has_receiver: bool,
        received: &mut Received,
    ) {
        let is_candidate = |own: &&Subscription| {
            own.is_open
                && own.client == client
                && own.queue.is_empty()
                && matches(own.filter, message.reply)
        };
        let candidates: Vec<_> = self.subscriptions.iter().filter(is_candidate).collect();
        if has_receiver || candidates.is_empty() {
            return;
        }
        let headers = format!("NATS/1.0 503\r\nNats-Subject: {}\r\n\r\n", message.subject);
        let is_it = |report: &NoResponders| {
            report.reply == message.reply
                && report.headers == headers
                && candidates.iter().any(|own| own.sid == report.sid)
        };
        if received.reports.front().is_some_and(is_it) {
            received.reports.pop_front();
            return;
        }
        let seems_to_have_one = self.subscriptions.iter().any(|own| {
            own.is_spent && self.is_remote(own, client) && matches(own.filter, message.subject)
        });
        assert!(seems_to_have_one, "no report for {message:?}");
    }

    fn is_remote(&self, own: &Subscription, client: usize) -> bool {
        own.client % self.shards != client % self.shards
    }

    /// Returns whether the shard of a client may not know yet that a member on another shard is gone.
    fn is_outdated(&self, client: usize, queue: &str) -> bool {
        let mut all = self.subscriptions.iter();
        all.any(|own| own.queue == queue && own.is_spent && self.is_remote(own, client))
    }

    /// A group may miss a message if the message found no member any more.
    fn check_missed(&self, client: usize, missed: &Missed) {
        let mut members = missed.members.iter();
        let is_over = members.all(|at| !self.subscriptions[*at].is_open);
        assert!(
            is_over && self.is_outdated(client, missed.queue),
            "queue group {} has not received message {}",
            missed.queue,
            missed.number
        );
    }
}

/// Compares a filter and a subject, token by token.
fn matches(filter: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in filter.split('.') {
        match (wanted, tokens.next()) {
            (">", rest) => return rest.is_some(),
            ("*", Some(_)) => {}
            (wanted, token) if Some(wanted) == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}
