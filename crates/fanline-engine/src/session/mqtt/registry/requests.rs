//! Requests of sessions to the JetStream service, and its answers.

use hashbrown::HashMap;
use serde_json::json;

use super::super::messages::{
    ConnectionId, ConsumerSettings, RegistryMessage, Request, RequestAction, RequestId,
};
use super::super::names;
use super::Context;
use crate::auth::AccountId;
use crate::codec::mqtt::Reason;
use crate::jetstream::{ApiError, Message, Outcome};

/// The connections of MQTT clients, by cid. Answers are sent to them.
#[derive(Default)]
pub(crate) struct Connections(HashMap<u64, (AccountId, ConnectionId)>);

impl Connections {
    pub(super) fn insert(&mut self, account: AccountId, connection: ConnectionId) {
        self.0.insert(connection.cid, (account, connection));
    }

    pub(super) fn remove(&mut self, connection: ConnectionId) {
        self.0.remove(&connection.cid);
    }

    /// Returns an answer of the JetStream service as a message, with the shard that receives it. Returns
    /// `None` if the answer is not for an MQTT session.
    #[inline]
    pub(crate) fn answer(
        &self,
        account: AccountId,
        reply: &[u8],
        outcome: Outcome<'_>,
    ) -> Option<(u16, RegistryMessage)> {
        if !reply.starts_with(names::REPLY_PREFIX.as_bytes()) {
            return None;
        }
        let (cid, request) = RequestId::parse_reply_subject(reply)?;
        let (_, to) = self.0.get(&cid).filter(|(of, _)| *of == account)?;
        let answer = RegistryMessage::Answer {
            to: *to,
            request,
            result: outcome.map_err(reason_of),
        };
        Some((to.shard, answer))
    }
}

/// Returns the reason code for an error of JetStream.
fn reason_of(error: &ApiError) -> Reason {
    const FULL: [ApiError; 2] = [
        ApiError::INSUFFICIENT_RESOURCES,
        ApiError::STORAGE_RESOURCES_EXCEEDED,
    ];
    match FULL.iter().any(|full| full.err_code == error.err_code) {
        true => Reason::QUOTA_EXCEEDED,
        false => Reason::UNSPECIFIED_ERROR,
    }
}

impl RequestAction {
    fn stream(&self) -> &'static str {
        match self {
            RequestAction::Purge { stream, .. } => stream,
            RequestAction::PutConsumer(_) | RequestAction::DeleteConsumer { .. } => names::MESSAGES,
        }
    }

    /// Returns the request as subject and body of JetStream's API, where observers can see it.
    pub(super) fn api_request(&self) -> (String, String) {
        match self {
            RequestAction::Purge { stream, filter } => (
                format!("$JS.API.STREAM.PURGE.{stream}"),
                json!({ "filter": filter }).to_string(),
            ),
            RequestAction::PutConsumer(settings) => (
                format!(
                    "$JS.API.CONSUMER.CREATE.{}.{}",
                    names::MESSAGES,
                    settings.name
                ),
                consumer_config(settings),
            ),
            RequestAction::DeleteConsumer { name } => (
                format!("$JS.API.CONSUMER.DELETE.{}.{name}", names::MESSAGES),
                String::new(),
            ),
        }
    }
}

fn consumer_config(settings: &ConsumerSettings) -> String {
    let ack_wait = u64::try_from(settings.ack_wait.as_nanos()).unwrap_or(u64::MAX);
    let mut config = json!({
        "durable_name": settings.name,
        "name": settings.name,
        "deliver_policy": "new",
        "ack_policy": "explicit",
        "ack_wait": ack_wait,
        "max_deliver": -1,
        "filter_subjects": settings.filters,
        "replay_policy": "instant",
        "max_ack_pending": settings.ack_pending_max,
        "deliver_subject": settings.deliver_subject,
        "num_replicas": 0,
        "mem_storage": settings.in_memory,
        "metadata": { "fanline.durable_only": settings.durable_only.to_string() },
    });
    if let Some(group) = settings.deliver_group {
        config["deliver_group"] = group.into();
    }
    let request = json!({
        "stream_name": names::MESSAGES,
        "config": config,
        "action": "",
    });
    request.to_string()
}

impl Context<'_> {
    /// Handles a request of a session, in the order of its messages.
    pub(super) fn perform(&mut self, request: &Request) {
        let Request {
            account, cid, id, ..
        } = *request;
        let reply = id.map(|id| id.reply_subject(cid)).unwrap_or_default();
        if !self.handler.has_stream(account, request.action.stream()) {
            let error = ApiError::STREAM_NOT_FOUND;
            let answer = (self.ports.connections()).answer(account, reply.as_bytes(), Err(&error));
            if let Some((shard, answer)) = answer {
                self.ports.send(shard, answer);
            }
            return;
        }
        let (subject, body) = request.action.api_request();
        let message = Message {
            subject: subject.as_bytes(),
            reply: reply.as_bytes(),
            payload: body.as_bytes(),
            ..Message::default()
        };
        self.ports.publish_to_others(account, &message);
        (self.handler).handle(account, &message, self.now, self.ports);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::acks::AckKind;
    use super::*;

    #[test]
    fn answers_of_jetstream() {
        let account = AccountId::GLOBAL;
        let connection = ConnectionId {
            shard: 3,
            session: 5,
            cid: 7,
        };
        let mut connections = Connections::default();
        connections.insert(account, connection);
        let bad_request = ApiError::BAD_REQUEST;
        for (outcome, expected) in [
            (Ok(0), Ok(0)),
            (Ok(42), Ok(42)),
            (
                Err(&ApiError::INSUFFICIENT_RESOURCES),
                Err(Reason::QUOTA_EXCEEDED),
            ),
            (
                Err(&ApiError::STORAGE_RESOURCES_EXCEEDED),
                Err(Reason::QUOTA_EXCEEDED),
            ),
            (Err(&bad_request), Err(Reason::UNSPECIFIED_ERROR)),
            (
                Err(&ApiError::STREAM_NOT_FOUND),
                Err(Reason::UNSPECIFIED_ERROR),
            ),
        ] {
            let answer = connections.answer(account, b"$MQTT.rply.7.a12", outcome);
            let Some((
                3,
                RegistryMessage::Answer {
                    to,
                    request,
                    result,
                },
            )) = answer
            else {
                panic!("no answer to shard 3 for {outcome:?}: {answer:?}");
            };
            assert_eq!((to, result), (connection, expected));
            assert_eq!(request, RequestId::Store(AckKind::Publish, 12));
        }
        for (account, reply) in [
            (account, "_INBOX.7.a12"),
            (account, "$MQTT.rply.8.a12"),
            (AccountId(account.0 + 2), "$MQTT.rply.7.a12"),
        ] {
            let answer = connections.answer(account, reply.as_bytes(), Ok(0));
            assert!(answer.is_none(), "{account:?} {reply}");
        }
        connections.remove(connection);
        let answer = connections.answer(account, b"$MQTT.rply.7.a12", Ok(0));
        assert!(answer.is_none());
    }

    #[test]
    fn api_requests() {
        let purge = RequestAction::Purge {
            stream: names::RELEASES,
            filter: "$MQTT.out.pubrel.hash.7".to_owned(),
        };
        let (subject, body) = purge.api_request();
        assert_eq!(subject, "$JS.API.STREAM.PURGE.$MQTT_out");
        assert_eq!(body, r#"{"filter":"$MQTT.out.pubrel.hash.7"}"#);
        let delete = RequestAction::DeleteConsumer {
            name: "hash".to_owned(),
        };
        let (subject, body) = delete.api_request();
        assert_eq!(subject, "$JS.API.CONSUMER.DELETE.$MQTT_msgs.hash");
        assert_eq!(body, "");
    }
}
