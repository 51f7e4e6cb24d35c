//! Advisories: events of streams and consumers, published for subscribers.

use serde::Serialize;

use super::consumer::ConsumerId;
use super::group::ReplicaInfo;
use super::info::StateInfo;
use super::streams::Key;
use super::{Message, Now, Port, Timestamp};
use crate::random::Random;

/// Fields that all events begin with.
#[derive(Serialize)]
struct Envelope<T> {
    r#type: String,
    id: String,
    timestamp: Timestamp,
    #[serde(flatten)]
    what: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
}

#[derive(Serialize)]
struct StreamAction<'a> {
    stream: &'a str,
    action: &'static str,
}

#[derive(Serialize)]
struct ConsumerAction<'a> {
    stream: &'a str,
    consumer: &'a str,
    action: &'static str,
}

#[derive(Serialize)]
struct Transfer<'a> {
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a StateInfo>,
}

#[derive(Serialize)]
struct ApiAudit<'a> {
    server: &'a str,
    client: Client<'a>,
    subject: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    request: &'a str,
    response: &'a str,
}

/// The requester, as far as the JetStream service knows it.
#[derive(Serialize)]
struct Client<'a> {
    acc: &'a str,
    server: &'a str,
}

/// Action on a stream or a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Update,
    Delete,
}

impl Action {
    /// Returns two words for the action: the one in the event's subject, and the one in the event's body.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Action::Create => ("CREATED", "create"),
            Action::Update => ("UPDATED", "modify"),
            Action::Delete => ("DELETED", "delete"),
        }
    }
}

/// A stream or a consumer that has a new leader.
pub(super) enum Elected {
    Stream(Key),
    Consumer(Key, ConsumerId),
}

#[derive(Serialize)]
struct LeaderElected<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a str>,
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer: Option<&'a str>,
    leader: &'a str,
    replicas: Vec<ReplicaInfo>,
}

/// Publishes the advisories of one account.
pub(super) struct Advisories {
    account: String,
    server: String,
    domain: Option<String>,
    random: Random,
}

impl Advisories {
    pub(super) fn new(account: &str, server: &str, domain: Option<&str>, random: Random) -> Self {
        Advisories {
            account: account.to_owned(),
            server: server.to_owned(),
            domain: domain.map(str::to_owned),
            random,
        }
    }

    pub(super) fn stream(&mut self, action: Action, stream: &str, now: Now, port: &mut dyn Port) {
        let (word, action) = action.words();
        let subject = format!("$JS.EVENT.ADVISORY.STREAM.{word}.{stream}");
        let what = StreamAction { stream, action };
        self.send("stream_action", &subject, what, now, port);
    }

    pub(super) fn consumer(
        &mut self,
        action: Action,
        (stream, consumer): (&str, &str),
        now: Now,
        port: &mut dyn Port,
    ) {
        let (word, action) = action.words();
        let subject = format!("$JS.EVENT.ADVISORY.CONSUMER.{word}.{stream}.{consumer}");
        let what = ConsumerAction {
            stream,
            consumer,
            action,
        };
        self.send("consumer_action", &subject, what, now, port);
    }

    /// Reports the beginning or end of a backup or restore. `what` is one of `snapshot_create`,
    /// `snapshot_complete`, `restore_create`, `restore_complete`. A `snapshot_create` event includes the
    /// state that is backed up.
    pub(super) fn transfer(
        &mut self,
        what: &'static str,
        (stream, state): (&str, Option<&StateInfo>),
        now: Now,
        port: &mut dyn Port,
    ) {
        let word = what.to_ascii_uppercase();
        let subject = format!("$JS.EVENT.ADVISORY.STREAM.{word}.{stream}");
        self.send(what, &subject, Transfer { stream, state }, now, port);
    }

    /// Reports the leader of a stream or one of its consumers, with all members of its group.
    pub(super) fn leader_elected(
        &mut self,
        (stream, consumer): (&str, Option<&str>),
        account: Option<&str>,
        (leader, replicas): (&str, Vec<ReplicaInfo>),
        now: Now,
        port: &mut dyn Port,
    ) {
        let (kind, subject) = match consumer {
            None => (
                "stream_leader_elected",
                format!("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.{stream}"),
            ),
            Some(consumer) => (
                "consumer_leader_elected",
                format!("$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.{stream}.{consumer}"),
            ),
        };
        let what = LeaderElected {
            account,
            stream,
            consumer,
            leader,
            replicas,
        };
        self.send(kind, &subject, what, now, port);
    }

    /// Reports an answered API request.
    pub(super) fn audit(
        &mut self,
        request: &Message<'_>,
        response: &[u8],
        now: Now,
        port: &mut dyn Port,
    ) {
        const SUBJECT: &str = "$JS.EVENT.ADVISORY.API";
        if !port.has_interest(SUBJECT.as_bytes()) {
            return;
        }
        let text = String::from_utf8_lossy;
        let (account, server) = (self.account.clone(), self.server.clone());
        let what = ApiAudit {
            server: &server,
            client: Client {
                acc: &account,
                server: &server,
            },
            subject: &text(request.subject),
            request: &text(request.payload),
            response: &text(response),
        };
        self.send("api_audit", SUBJECT, what, now, port);
    }

    fn send(
        &mut self,
        what: &str,
        subject: &str,
        body: impl Serialize,
        now: Now,
        port: &mut dyn Port,
    ) {
        if !port.has_interest(subject.as_bytes()) {
            return;
        }
        let event = Envelope {
            r#type: format!("io.nats.jetstream.advisory.v1.{what}"),
            id: self.random.id(),
            timestamp: Timestamp::from_unix_nanos(now.unix_nanos),
            what: body,
            domain: self.domain.clone(),
        };
        // Serializing only strings and numbers does not fail.
        let Ok(payload) = serde_json::to_vec(&event) else {
            return;
        };
        port.publish(&Message {
            subject: subject.as_bytes(),
            payload: &payload,
            ..Message::default()
        });
    }
}
