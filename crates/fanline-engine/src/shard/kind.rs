//! What the connections of a shard speak.

use super::backlog::Backlog;
use super::leafs::Leafs;
use super::mqtt::{Answers, Mqtt, is_own_of_mqtt};
use super::{Exchange, FanOut};
use crate::auth::AccountId;
use crate::codec::leaf::Leaf;
use crate::exchange;
use crate::exchange::deliver::Waiting;
use crate::exchange::message::Message;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::{Route, SubId};
use crate::outbox::Chunk;

/// What a connection has beside others: nothing if it is a plain NATS client's.
#[derive(Default)]
pub(crate) struct Kind {
    /// What it has when it speaks MQTT.
    pub(super) mqtt: Option<Box<Mqtt>>,
    /// What it has when it is a leaf connection.
    pub(super) leaf: Option<Box<Leaf>>,
    /// What waited for it when it was dropped for reading too slowly.
    pub(super) backlog: Option<Box<Backlog>>,
}

/// What connections of one kind share.
#[derive(Default)]
pub(crate) struct Shared {
    /// What came for MQTT sessions.
    pub(super) answers: Answers,
    pub(super) leafs: Leafs,
}

impl exchange::Kind for Kind {
    type Shared = Shared;

    #[inline]
    fn links(&self) -> Option<LinkSet> {
        self.leaf.as_ref().map(|_| LinkSet::Leafs)
    }

    #[inline]
    fn encodes(&self) -> bool {
        self.mqtt.is_some()
    }

    fn is_internal(&self, sid: &[u8]) -> bool {
        self.mqtt.is_some() && is_own_of_mqtt(sid)
    }

    #[inline]
    fn deliver(fan_out: &mut FanOut<'_>, id: SubId, route: &Route, message: &Message<'_>) -> bool {
        fan_out.deliver_mqtt(id, route, message)
    }

    fn deliver_run(
        fan_out: &mut FanOut<'_>,
        id: SubId,
        route: &Route,
        chunk: &Chunk,
        run: &[Waiting],
    ) {
        fan_out.deliver_run_mqtt(id, route, chunk, run);
    }

    #[cold]
    fn note_missed(shared: &mut Shared, account: AccountId, subject: &[u8], message: &Message<'_>) {
        shared.answers.note_missed(account, subject, message);
    }

    fn may_forward(&self, origin: Option<&Self>, subject: &[u8], group: &[u8]) -> bool {
        let origin = origin.and_then(|origin| origin.leaf.as_ref());
        self.leaf.as_ref().is_some_and(|leaf| {
            !leaf.is_held()
                && origin.is_none_or(|origin| !origin.is_beside(leaf))
                && (leaf.rules.is_empty() || leaf.rules.may_give(subject, group))
        })
    }

    fn traced_as(&self) -> Option<&str> {
        let leaf = self.leaf.as_ref()?;
        leaf.takes_traces.then_some(&*leaf.name)
    }

    fn announce_interest(exchange: &mut Exchange, links: LinkSet) {
        match links {
            LinkSet::Leafs => exchange.tell_leafs(),
        }
    }
}
