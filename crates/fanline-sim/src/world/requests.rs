//! Requests of clients to JetStream.

use super::{NatsClient, Role, World};
use crate::client::ClientKey;
use crate::model::{ConsumerKind, StreamKind, StreamModel};

/// Time for which a consumer waits for an acknowledgement, in nanoseconds.
const ACK_WAIT_NANOS: u64 = 2_000_000_000;

/// What a client has requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Create,
    CreateConsumer(ConsumerKind),
    Publish {
        message: u64,
        /// Whether the stream was known to exist.
        is_expected: bool,
        /// Whether the request has a condition that may fail.
        is_conditional: bool,
    },
    Delete(u64),
    Purge(usize),
    Pull,
    Ack(ConsumerKind, u64),
    /// Reads the newest record of a subject.
    Read {
        subject: String,
        /// The newest record that was acknowledged before.
        floor: u64,
    },
}

/// A request without an answer.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) client: ClientKey,
    /// The stream's position.
    pub(super) stream: usize,
    pub(super) request: Request,
}

/// A delivery that its client has not acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Unacknowledged {
    pub(super) stream: usize,
    pub(super) consumer: ConsumerKind,
    pub(super) sequence: u64,
    pub(super) reply: String,
}

impl World {
    /// Lets a client do something with a stream of its account.
    pub(super) fn use_stream(&mut self, at: usize) {
        let account = self.clients[at].account;
        let mut streams: Vec<usize> = (0..self.streams.len()).collect();
        streams.retain(|stream| self.streams[*stream].account == account);
        if streams.is_empty() {
            return;
        }
        let stream = streams[self.dice.below(streams.len())];
        if self.clients[at].inbox.is_none() {
            return self.open_inbox(at);
        }
        if !self.streams[stream].is_created() && !self.dice.one_in(4) {
            return self.create_stream(at, stream);
        }
        match self.dice.below(24) {
            0 => self.create_stream(at, stream),
            1 => self.create_consumer(at, stream),
            2 => self.listen(at, stream),
            3..12 => self.publish_to_stream(at, stream),
            12..15 => self.pull(at, stream),
            15..18 => self.acknowledge(at),
            18 => self.delete_message(at, stream),
            19 if self.dice.one_in(5) => self.purge(at, stream),
            _ => self.read_newest(at, stream),
        }
    }

    /// Subscribes to the responses of a client's requests.
    pub(super) fn open_inbox(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let inbox = format!("_R.{}", client.key.0);
        client.queue_subscribe(&format!("{inbox}.>"), None, Role::Inbox);
        client.inbox = Some(inbox);
    }

    /// Queues a request.
    fn request(&mut self, at: usize, stream: usize, subject: &str, body: &str, request: Request) {
        self.request_with(at, stream, subject, "", body, request);
    }

    fn request_with(
        &mut self,
        at: usize,
        stream: usize,
        subject: &str,
        header: &str,
        body: &str,
        request: Request,
    ) {
        self.requests_made += 1;
        let number = self.requests_made;
        let client = &mut self.clients[at];
        let key = client.key;
        let reply = format!("_R.{}.{number}", key.0);
        client.queue_publish(subject, &reply, header, body.as_bytes());
        self.note(|| {
            format!("{key:?} requests {subject} {header} {body} with {reply}: {request:?}")
        });
        let pending = Pending {
            client: key,
            stream,
            request,
        };
        self.requests.insert(reply, pending);
    }

    pub(super) fn create_stream(&mut self, at: usize, stream: usize) {
        let StreamModel { name, kind, .. } = self.streams[stream];
        let fields = match kind {
            StreamKind::Plain => r#""storage":"file""#,
            StreamKind::Limited => r#""storage":"file","max_msgs":6"#,
            StreamKind::Latest => r#""storage":"file","max_msgs_per_subject":1"#,
            StreamKind::Work => r#""storage":"file","retention":"workqueue""#,
            StreamKind::Interest => r#""storage":"file","retention":"interest""#,
            StreamKind::Memory => r#""storage":"memory""#,
        };
        let body = format!(
            r#"{{"name":"{name}","subjects":["j.{name}.*"],"allow_direct":true,{fields}}}"#
        );
        let subject = format!("$JS.API.STREAM.CREATE.{name}");
        self.request(at, stream, &subject, &body, Request::Create);
    }

    pub(super) fn create_consumer(&mut self, at: usize, stream: usize) {
        let StreamModel { name, kind, .. } = self.streams[stream];
        let has_push = matches!(kind, StreamKind::Plain | StreamKind::Memory);
        let consumer = match has_push && self.dice.one_in(2) {
            true => ConsumerKind::Push,
            false => ConsumerKind::Pull,
        };
        let (durable, target) = match consumer {
            ConsumerKind::Pull => ("C", String::new()),
            ConsumerKind::Push => ("P", format!(r#","deliver_subject":"d.{name}""#)),
        };
        let body = format!(
            r#"{{"stream_name":"{name}","config":{{"durable_name":"{durable}","ack_policy":"explicit","ack_wait":{ACK_WAIT_NANOS},"max_ack_pending":1000{target}}}}}"#
        );
        let subject = format!("$JS.API.CONSUMER.CREATE.{name}.{durable}");
        let request = Request::CreateConsumer(consumer);
        self.request(at, stream, &subject, &body, request);
    }

    /// Subscribes to the deliveries of a push consumer, once for each client.
    fn listen(&mut self, at: usize, stream: usize) {
        let client = &self.clients[at];
        if !client
            .subscriptions
            .values()
            .any(|role| *role == Role::Push)
        {
            self.listen_to_all(at, stream);
        }
    }

    /// Subscribes to the deliveries of a push consumer.
    pub(super) fn listen_to_all(&mut self, at: usize, stream: usize) {
        let filter = format!("d.{}", self.streams[stream].name);
        self.clients[at].queue_subscribe(&filter, None, Role::Push);
    }

    fn publish_to_stream(&mut self, at: usize, stream: usize) {
        let token = self.token();
        let has_id = self.dice.one_in(3);
        let is_conditional = !has_id && self.dice.one_in(6);
        let repeats = has_id && self.dice.one_in(3);
        let step = self.step;
        let of = &self.streams[stream];
        let (name, newest, is_expected) = (of.name, of.newest(), of.is_created());
        // Other streams forget what they have removed.
        let remembers = matches!(of.kind, StreamKind::Plain | StreamKind::Interest);
        let repeated = of.repeatable().filter(|_| repeats && remembers);
        let (message, subject) = repeated.unwrap_or_else(|| {
            self.messages += 1;
            (self.messages, format!("j.{name}.{token}"))
        });
        let has_id = has_id || of.kind == StreamKind::Plain && !is_conditional;
        let header = match (is_conditional, has_id) {
            (true, _) => format!("Nats-Expected-Last-Sequence: {newest}"),
            (false, true) => format!("Nats-Msg-Id: m{message}"),
            (false, false) => String::new(),
        };
        let mut body = format!("{message} {} ", of.account);
        if self.dice.one_in(8) {
            body += &"x".repeat(700);
        }
        self.streams[stream].publish(message, &subject, step, has_id);
        let request = Request::Publish {
            message,
            is_expected,
            is_conditional,
        };
        self.request_with(at, stream, &subject, &header, &body, request);
    }

    /// Chooses the last token of a subject.
    fn token(&mut self) -> &'static str {
        ["a", "b", "c"][self.dice.below(3)]
    }

    /// Reads the newest record of a subject, as clients of key-value buckets do.
    fn read_newest(&mut self, at: usize, stream: usize) {
        let of = &self.streams[stream];
        // Others remove records without a request.
        let holds_newest = matches!(
            of.kind,
            StreamKind::Plain | StreamKind::Latest | StreamKind::Memory
        );
        if !holds_newest || !of.is_created() {
            return;
        }
        let name = of.name;
        let subject = format!("j.{name}.{}", self.token());
        let floor = self.streams[stream].newest_of(&subject);
        let request = Request::Read {
            subject: subject.clone(),
            floor,
        };
        let direct = format!("$JS.API.DIRECT.GET.{name}.{subject}");
        self.request(at, stream, &direct, "", request);
    }

    pub(super) fn pull(&mut self, at: usize, stream: usize) {
        let name = self.streams[stream].name;
        let batch = 1 + self.dice.below(5);
        let body = match self.dice.one_in(2) {
            true => format!(r#"{{"batch":{batch},"no_wait":true}}"#),
            false => format!(r#"{{"batch":{batch},"expires":1000000000}}"#),
        };
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{name}.C");
        self.request(at, stream, &subject, &body, Request::Pull);
    }

    /// Requests all messages that a consumer has.
    pub(super) fn pull_all(&mut self, at: usize, stream: usize) {
        let name = self.streams[stream].name;
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{name}.C");
        let body = r#"{"batch":1000,"no_wait":true}"#;
        self.request(at, stream, &subject, body, Request::Pull);
    }

    /// Acknowledges a delivery, or asks for it again.
    fn acknowledge(&mut self, at: usize) {
        let count = self.clients[at].unacknowledged.len();
        if count == 0 {
            return;
        }
        let place = self.dice.below(count);
        let Unacknowledged {
            stream,
            consumer,
            sequence,
            reply,
        } = self.clients[at].unacknowledged.remove(place);
        if self.dice.one_in(6) {
            return self.clients[at].queue_publish(&reply, "", "", b"-NAK");
        }
        self.streams[stream].begin_ack(consumer, sequence);
        match self.dice.one_in(2) {
            true => self.request(at, stream, &reply, "+ACK", Request::Ack(consumer, sequence)),
            false => self.clients[at].queue_publish(&reply, "", "", b"+ACK"),
        }
    }

    fn delete_message(&mut self, at: usize, stream: usize) {
        let sequences = self.streams[stream].sequences();
        if sequences.is_empty() {
            return;
        }
        let sequence = sequences[self.dice.below(sequences.len())];
        let name = self.streams[stream].name;
        self.streams[stream].delete(sequence);
        let subject = format!("$JS.API.STREAM.MSG.DELETE.{name}");
        let body = format!(r#"{{"seq":{sequence}}}"#);
        self.request(at, stream, &subject, &body, Request::Delete(sequence));
    }

    fn purge(&mut self, at: usize, stream: usize) {
        let name = self.streams[stream].name;
        let purge = self.streams[stream].purge();
        let subject = format!("$JS.API.STREAM.PURGE.{name}");
        self.request(at, stream, &subject, "", Request::Purge(purge));
    }
}

impl NatsClient {
    /// Acknowledges all deliveries. Returns them.
    pub(super) fn acknowledge_all(&mut self) -> Vec<Unacknowledged> {
        let all = std::mem::take(&mut self.unacknowledged);
        for delivery in &all {
            self.queue_publish(&delivery.reply, "", "", b"+ACK");
        }
        all
    }
}
