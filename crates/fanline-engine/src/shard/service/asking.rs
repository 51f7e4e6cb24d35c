//! Questions of the JetStream service's to other accounts, as a copy asks for the records of another account's stream.

use super::Outside;
use crate::accounts::{BRIDGES_MAX, Request};
use crate::auth::AccountId;
use crate::exchange::router::{Exit, REPLIES, Terms};
use crate::jetstream::Message;

impl Outside {
    /// Publishes a request in the account that answers it, with a reply that leads back.
    pub(super) fn ask(
        &mut self,
        importer: AccountId,
        (exit, terms): (&Exit, Terms),
        message: &Message<'_>,
        bridges: u8,
    ) {
        let request = Request {
            importer,
            exporter: exit.account,
            reply: message.reply,
            terms,
        };
        let key = self.secrets.number();
        let at = self.requests.expect(request, None, key, self.now);
        let mut reply = Vec::new();
        self.requests.write_subject(at, self.index, &mut reply);
        let message = Message {
            topic: &exit.subject,
            reply: &reply,
            ..*message
        };
        self.post(exit.account, &exit.subject, &message, bridges + 1);
    }

    /// Gives an answer to whoever has asked in another account. What nobody waits for is lost.
    pub(super) fn answer(
        &mut self,
        exporter: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        bridges: u8,
    ) {
        let Some(at) = self.requests.find(topic, exporter) else {
            return;
        };
        let Some(waiting) = self.requests.answered(at) else {
            return;
        };
        let (importer, reply) = (waiting.importer, waiting.reply.clone());
        let is_last = waiting.ends_with(message.headers.len() + message.payload.len());
        if is_last {
            self.requests.forget(at);
        }
        let message = Message {
            topic: &reply,
            ..*message
        };
        if bridges < BRIDGES_MAX {
            self.post(importer, &reply, &message, bridges + 1);
        }
    }

    /// Takes a message that a shard has passed on, if it is an answer to one of the JetStream service's questions.
    pub(super) fn take_answer(&mut self, account: AccountId, message: &Message<'_>) -> bool {
        let is_answer = is_for(message.topic, self.index);
        if is_answer {
            self.answer(account, message.topic, message, 0);
        }
        is_answer
    }

    /// Forgets the questions whose time is over.
    pub(super) fn expire_requests(&mut self) {
        self.requests.expire(self.now, &mut None, |_, _| true);
    }
}

/// Whether a topic is that of an answer to this shard.
fn is_for(topic: &[u8], shard: u16) -> bool {
    let mut tokens = topic.split(|b| *b == b'.');
    let is_answer = topic.starts_with(REPLIES.as_bytes());
    is_answer
        && tokens.nth(1).is_some_and(|token| {
            let number = std::str::from_utf8(token).ok();
            number.and_then(|number| number.parse().ok()) == Some(shard)
        })
}
