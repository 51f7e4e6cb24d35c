//! Requests of the JetStream service to other accounts. For example, a mirror requests the records of a
//! stream in another account.

use super::ShardPorts;
use crate::accounts::{BRIDGES_MAX, Request};
use crate::auth::AccountId;
use crate::exchange::router::{BridgeTarget, REPLIES, Terms};
use crate::jetstream::Message;

impl ShardPorts {
    /// Publishes a request in the account of its responder, with a reply subject that leads back.
    pub(super) fn request(
        &mut self,
        importer: AccountId,
        (target, terms): (&BridgeTarget, Terms),
        message: &Message<'_>,
        bridges: u8,
    ) {
        let request = Request {
            importer,
            exporter: target.account,
            reply: message.reply,
            terms,
        };
        let key = self.secrets.number();
        let at = self.requests.expect(request, None, key, self.now);
        let mut reply = Vec::new();
        self.requests
            .write_subject(at, ("", self.index), &mut reply);
        let message = Message {
            subject: &target.subject,
            reply: &reply,
            ..*message
        };
        self.post(target.account, &target.subject, &message, bridges + 1);
    }

    /// Delivers a response to a requester in another account. Drops the response if the requester is gone.
    pub(super) fn answer(
        &mut self,
        exporter: AccountId,
        subject: &[u8],
        message: &Message<'_>,
        bridges: u8,
    ) {
        let Some(at) = self.requests.find(subject, exporter) else {
            return;
        };
        let Some(pending) = self.requests.answered(at) else {
            return;
        };
        let (importer, reply) = (pending.importer, pending.reply.clone());
        let is_last = pending.ends_with(message.headers.len() + message.payload.len());
        if is_last {
            self.requests.remove(at);
        }
        let message = Message {
            subject: &reply,
            ..*message
        };
        if bridges < BRIDGES_MAX {
            self.post(importer, &reply, &message, bridges + 1);
        }
    }

    /// Handles a message from a shard, if it is a response to a request of the JetStream service. Returns
    /// whether it is.
    pub(super) fn take_answer(&mut self, account: AccountId, message: &Message<'_>) -> bool {
        let is_answer = is_for(message.subject, self.index);
        if is_answer {
            self.answer(account, message.subject, message, 0);
        }
        is_answer
    }

    /// Drops requests that have timed out.
    pub(super) fn expire_requests(&mut self) {
        self.requests.expire(self.now, &mut None, |_, _| true);
    }
}

/// Returns whether a subject is the reply subject of a request from this shard.
fn is_for(subject: &[u8], shard: u16) -> bool {
    let mut tokens = subject.split(|b| *b == b'.');
    let is_answer = subject.starts_with(REPLIES.as_bytes());
    is_answer
        && tokens.nth(1).is_some_and(|token| {
            let number = std::str::from_utf8(token).ok();
            number.and_then(|number| number.parse().ok()) == Some(shard)
        })
}
