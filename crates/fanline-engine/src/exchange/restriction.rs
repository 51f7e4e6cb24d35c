//! What a session with permissions may do. Sessions without have none of this: they pay for a look at
//! one field.

use std::sync::Arc;
use std::time::Duration;

use super::replies::Replies;
use crate::auth::{AllowResponses, Grant, Peer, Rights, RightsId};

/// What a session with permissions has beside others.
pub(crate) struct Restriction {
    rights: Arc<Rights>,
    /// Rights that it must have too.
    within: Option<Arc<Rights>>,
    /// Where it may answer.
    replies: Replies,
}

impl Restriction {
    pub(crate) fn new(grant: &Grant, peer: &Peer) -> Option<Box<Self>> {
        let within = peer
            .vouched
            .as_ref()
            .and_then(|vouched| vouched.within.clone());
        let (rights, within) = match (grant.rights.clone(), within) {
            (Some(rights), within) => (rights, within),
            (None, Some(within)) => (within, None),
            (None, None) => return None,
        };
        Some(Box::new(Restriction {
            rights,
            within,
            replies: Replies::default(),
        }))
    }

    /// Whether a subject may be published to, answers aside.
    pub(crate) fn may_publish(&self, subject: &[u8]) -> bool {
        self.rights.may_publish(subject)
            && (self.within.as_ref()).is_none_or(|within| within.may_publish(subject))
    }

    /// The rights that alone say what may be published. A session that is bound by others too, as only the
    /// server's own guests are, is checked for each message.
    pub(crate) fn sole_rights(&self) -> Option<&Arc<Rights>> {
        Some(&self.rights).filter(|_| self.within.is_none())
    }

    /// Under which rights subjects that were permitted before are permitted again.
    pub(crate) fn rights_id(&self) -> Option<RightsId> {
        self.sole_rights().map(RightsId::of)
    }

    pub(crate) fn may_subscribe(&self, filter: &[u8], queue: &[u8]) -> bool {
        self.rights.may_subscribe(filter, queue)
            && (self.within.as_ref()).is_none_or(|within| within.may_subscribe(filter, queue))
    }

    /// Whether single messages of a subscription may be denied to it.
    pub(crate) fn filters(&self, filter: &[u8], queue: &[u8]) -> bool {
        self.rights.filters(filter, queue)
            || (self.within.as_ref()).is_some_and(|within| within.filters(filter, queue))
    }

    /// A session that may do less than its user may not answer either.
    fn responses(&self) -> Option<AllowResponses> {
        self.rights.responses().filter(|_| self.within.is_none())
    }

    /// Notes the reply subject of a message that the session receives.
    #[cold]
    pub(crate) fn note_reply(&mut self, reply: &[u8], now: Duration) {
        if let Some(rule) = self.responses() {
            self.replies.note(reply, rule, now);
        }
    }

    /// Whether a subject may be published to this once, as an answer, which is then counted.
    pub(crate) fn use_up_reply(&mut self, subject: &[u8], now: Duration) -> bool {
        self.responses()
            .is_some_and(|rule| self.replies.use_up(subject, rule, now))
    }

    /// Whether a message may be delivered to a subscription that matches more than the session may have.
    #[cold]
    pub(crate) fn may_receive(&self, subject: &[u8], queue: &[u8]) -> bool {
        self.rights.may_receive(subject, queue)
            && (self.within.as_ref()).is_none_or(|within| within.may_receive(subject, queue))
    }
}
