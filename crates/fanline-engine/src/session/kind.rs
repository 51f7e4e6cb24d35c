//! The kinds of sessions, as the exchange sees them.

use super::gateway::{Gateway, GatewayConnections};
use super::leaf::{Leaf, LeafConnections};
use super::mqtt::{Mqtt, MqttSessions, is_internal_sid};
use super::route::{Route as RouteLink, RouteConnections, account_of, cluster_of};
use super::{Exchange, FanOut};
use std::time::Duration;

use crate::auth::AccountId;
use crate::codec::gateway::ReplyMark;
use crate::exchange;
use crate::exchange::deliver::RunMessage;
use crate::exchange::message::Message;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::{Route, SubId};
use crate::exchange::session::SessionId;
use crate::outbox::Chunk;

/// The kind of a session, with the state that only this kind has.
pub(crate) enum Kind {
    Client(Client),
    Mqtt(Box<Mqtt>),
    Leaf(Box<Leaf>),
    Route(Box<RouteLink>),
    Gateway(Box<Gateway>),
}

/// The state of NATS clients.
#[derive(Default)]
pub(crate) struct Client {
    /// Whether the server has sent its second INFO, after the first PING that follows CONNECT.
    pub(crate) has_account_info: bool,
}

/// State that connections of one kind share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) mqtt: MqttSessions,
    pub(crate) leafs: LeafConnections,
    pub(crate) routes: RouteConnections,
    pub(crate) gateways: GatewayConnections,
}

impl Kind {
    #[inline]
    pub(crate) fn is_mqtt(&self) -> bool {
        matches!(self, Kind::Mqtt(_))
    }

    #[inline]
    pub(crate) fn is_leaf(&self) -> bool {
        matches!(self, Kind::Leaf(_))
    }

    /// Returns whether the session is a connection to another server.
    #[inline]
    pub(crate) fn is_link(&self) -> bool {
        matches!(self, Kind::Leaf(_) | Kind::Route(_) | Kind::Gateway(_))
    }

    #[inline]
    pub(crate) fn route(&self) -> Option<&RouteLink> {
        match self {
            Kind::Route(route) => Some(route),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn route_mut(&mut self) -> Option<&mut RouteLink> {
        match self {
            Kind::Route(route) => Some(route),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn gateway(&self) -> Option<&Gateway> {
        match self {
            Kind::Gateway(gateway) => Some(gateway),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn gateway_mut(&mut self) -> Option<&mut Gateway> {
        match self {
            Kind::Gateway(gateway) => Some(gateway),
            _ => None,
        }
    }

    pub(crate) fn client_mut(&mut self) -> Option<&mut Client> {
        match self {
            Kind::Client(client) => Some(client),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn mqtt(&self) -> Option<&Mqtt> {
        match self {
            Kind::Mqtt(mqtt) => Some(mqtt),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        match self {
            Kind::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn leaf_mut(&mut self) -> Option<&mut Leaf> {
        match self {
            Kind::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }
}

impl exchange::Kind for Kind {
    type Shared = Shared;

    #[inline]
    fn links(&self) -> Option<LinkSet> {
        match self {
            Kind::Client(_) | Kind::Mqtt(_) => None,
            Kind::Leaf(_) => Some(LinkSet::Leafs),
            Kind::Route(route) => Some(LinkSet::Routes(route.carries.lane())),
            Kind::Gateway(_) => Some(LinkSet::Gateways),
        }
    }

    #[inline]
    fn encodes(&self) -> bool {
        self.is_mqtt()
    }

    fn is_internal(&self, sid: &[u8]) -> bool {
        self.is_mqtt() && is_internal_sid(sid)
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
        run: &[RunMessage],
    ) {
        fan_out.deliver_run_mqtt(id, route, chunk, run);
    }

    #[cold]
    fn redeliver_missed(
        shared: &mut Shared,
        account: AccountId,
        subject: &[u8],
        message: &Message<'_>,
    ) {
        shared
            .mqtt
            .events
            .redeliver_missed(account, subject, message);
    }

    fn may_forward(
        &self,
        origin: Option<&Self>,
        account: AccountId,
        subject: &[u8],
        group: &[u8],
    ) -> bool {
        match self {
            Kind::Route(route) => return route.may_send(subject, group),
            Kind::Gateway(gateway) => return gateway.may_send(account, subject, group),
            _ => {}
        }
        let is_from_route = matches!(origin, Some(Kind::Route(_)));
        let origin = origin.and_then(|origin| origin.leaf());
        self.leaf().is_some_and(|leaf| {
            // The other servers of the cluster are connected to the hub themselves.
            let is_detour = is_from_route && leaf.is_spoke();
            !leaf.is_paused()
                && !is_detour
                && origin.is_none_or(|origin| !origin.is_same_cluster(leaf))
                && (leaf.rules.is_empty() || leaf.rules.may_send(subject, group))
        })
    }

    #[inline]
    fn names_account(&self) -> bool {
        self.route()
            .is_none_or(|route| route.dedicated_to.is_none())
    }

    fn is_upstream(&self) -> bool {
        self.leaf().is_some_and(|leaf| leaf.is_spoke())
    }

    #[inline]
    fn cluster_of<'a>(&'a self, sid: &'a [u8]) -> &'a [u8] {
        match self {
            Kind::Leaf(leaf) => leaf.cluster.as_bytes(),
            Kind::Route(_) => cluster_of(sid),
            Kind::Gateway(_) | Kind::Client(_) | Kind::Mqtt(_) => b"",
        }
    }

    #[inline]
    fn takes_clusters(&self) -> bool {
        self.route().is_some_and(RouteLink::takes_clusters)
    }

    #[inline]
    fn takes_passed_on(&self) -> bool {
        self.route().is_some_and(|route| route.info.passed_on)
    }

    #[inline]
    fn account_of(&self, sid: &[u8]) -> Option<AccountId> {
        match self {
            Kind::Route(_) | Kind::Gateway(_) => account_of(sid),
            _ => None,
        }
    }

    fn traced_as(&self) -> Option<&str> {
        match self {
            Kind::Leaf(leaf) => leaf.takes_traces.then_some(&*leaf.name),
            Kind::Route(route) => route.takes_traces().then_some(&*route.info.server_name),
            Kind::Gateway(gateway) => {
                (gateway.takes_traces()).then_some(&*gateway.info.server_name)
            }
            Kind::Client(_) | Kind::Mqtt(_) => None,
        }
    }

    fn reply_link(
        shared: &Shared,
        set: LinkSet,
        account: AccountId,
        subject: &[u8],
    ) -> Option<(SessionId, Vec<u8>)> {
        match set {
            LinkSet::Replies => shared.gateways.reply_link(account, subject),
            LinkSet::Routes(lane) => {
                let (mark, _) = ReplyMark::split(subject)?;
                let link = shared.routes.link_to(lane, mark.server(), account)?;
                Some((link, subject.to_vec()))
            }
            LinkSet::Leafs | LinkSet::Gateways => None,
        }
    }

    fn reply_mark(shared: &mut Shared, account: AccountId, reply: &[u8], now: Duration) -> Vec<u8> {
        let mark = shared.gateways.reply_mark(account, reply, now);
        mark.map_or_else(Vec::new, |mark| mark.as_bytes().to_vec())
    }

    fn announce_interest(exchange: &mut Exchange, links: LinkSet) {
        match links {
            LinkSet::Leafs => exchange.announce_to_leafs(),
            LinkSet::Routes(lane) => exchange.announce_to_lane(lane),
            LinkSet::Gateways => exchange.announce_to_gateways(),
            LinkSet::Replies => {}
        }
    }
}
