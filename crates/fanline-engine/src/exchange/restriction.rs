//! Permissions of a session. For a session without restrictions, a permission check reads one field only.

use std::sync::Arc;
use std::time::Duration;

use super::replies::Replies;
use crate::auth::{AllowResponses, Grant, Peer, Rights, RightsId};

/// Permission state of a restricted session.
pub(crate) struct Restriction {
    rights: Arc<Rights>,
    /// Rights from the connection itself, which must also allow each operation.
    within: Option<Arc<Rights>>,
    /// Reply subjects that the session may respond to.
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

    /// Returns whether the session may publish to a subject. The permission for responses is not considered.
    pub(crate) fn may_publish(&self, subject: &[u8]) -> bool {
        self.rights.may_publish(subject)
            && (self.within.as_ref()).is_none_or(|within| within.may_publish(subject))
    }

    /// Returns the user's rights, unless further rights apply to the session. A session with further rights,
    /// for example that of a guest client of the server itself, is checked for each message.
    pub(crate) fn sole_rights(&self) -> Option<&Arc<Rights>> {
        Some(&self.rights).filter(|_| self.within.is_none())
    }

    /// Returns the id of the rights under which permitted subjects may be cached.
    pub(crate) fn rights_id(&self) -> Option<RightsId> {
        self.sole_rights().map(RightsId::of)
    }

    pub(crate) fn may_subscribe(&self, filter: &[u8], queue: &[u8]) -> bool {
        self.rights.may_subscribe(filter, queue)
            && (self.within.as_ref()).is_none_or(|within| within.may_subscribe(filter, queue))
    }

    /// Returns whether permissions may deny single messages of a subscription.
    pub(crate) fn filters(&self, filter: &[u8], queue: &[u8]) -> bool {
        self.rights.filters(filter, queue)
            || (self.within.as_ref()).is_some_and(|within| within.filters(filter, queue))
    }

    /// Returns the rule for responses. A session with further rights has none.
    fn responses(&self) -> Option<AllowResponses> {
        self.rights.responses().filter(|_| self.within.is_none())
    }

    /// Records the reply subject of a message that the session receives.
    #[cold]
    pub(crate) fn note_reply(&mut self, reply: &[u8], now: Duration) {
        if let Some(rule) = self.responses() {
            self.replies.note(reply, rule, now);
        }
    }

    /// Returns whether the session may publish to a subject as a response, and counts the response.
    pub(crate) fn use_up_reply(&mut self, subject: &[u8], now: Duration) -> bool {
        self.responses()
            .is_some_and(|rule| self.replies.use_up(subject, rule, now))
    }

    /// Returns whether a session may receive a message. Called if its subscription may match subjects that
    /// are denied.
    #[cold]
    pub(crate) fn may_receive(&self, subject: &[u8], queue: &[u8]) -> bool {
        self.rights.may_receive(subject, queue)
            && (self.within.as_ref()).is_none_or(|within| within.may_receive(subject, queue))
    }
}
