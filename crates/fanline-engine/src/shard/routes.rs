//! The runtime's calls for routes.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;

use super::{Kind, Session, SessionId, Shard};
use crate::auth::Peer;
use crate::codec::compression::level_name;
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::info::ClientUrls;
use crate::codec::route::{RouteConnect, RouteInfo};
use crate::exchange::remote::LinkSet;
use crate::exchange::text::text;
use crate::session::SubscriptionStatus;
use crate::session::route::{
    Compressed, LinkCompression, Route, RouteDetail, RouteDial, RouteEvent, RouteStatus,
    account_of, cluster_of,
};

/// Largest number of subscriptions in the list of one route. Further ones are left out, because the shard serves no
/// connection while it makes the list.
const LISTED_MAX: usize = 100_000;

/// Returns the sid of a peer's subscription as nats-server shows it: the line that announced it, without its end. The
/// cluster is that of leaf nodes. On a route that is dedicated to an account, no account is named.
fn line_of(cluster: &[u8], account: Option<String>, subject: &str, queue: &str) -> String {
    let verb = if cluster.is_empty() { "R" } else { "L" };
    let (cluster, account) = (text(cluster), account.unwrap_or_default());
    let words = [verb, &cluster, &account, subject, queue];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

impl Shard {
    /// Opens a route, which was dialed if `dial` is `Some`, otherwise accepted.
    ///
    /// The shard must serve the routes that carry what this one carries, see [`shard_of`](crate::route::RouteSettings::shard_of). For an
    /// accepted route that is not known before its INFO, so any shard may serve it until then.
    pub fn open_route(
        &mut self,
        cid: u64,
        peer: Peer,
        dial: Option<RouteDial>,
        compressed: Option<Compressed>,
        opened_at: Duration,
    ) -> SessionId {
        let settings = self.broker.exchange.config.routes.clone();
        let rights = settings.as_ref().and_then(|routes| routes.rights.clone());
        let kind = Kind::Route(Box::new(Route::new(dial, compressed, rights)));
        let id = self.broker.insert_session(cid, peer, kind, true, opened_at);
        if let Some(routes) = settings {
            let deadline = opened_at + routes.auth_timeout;
            self.broker.exchange.rearm(id, deadline);
        }
        self.broker.route(id).begin();
        id
    }

    /// Returns whether there are events for [`take_route_events`](Shard::take_route_events).
    pub fn has_route_events(&self) -> bool {
        self.broker.exchange.shared.routes.has_events()
    }

    /// Takes events about peers.
    pub fn take_route_events(&mut self) -> Vec<RouteEvent> {
        self.broker.exchange.shared.routes.take_events()
    }

    /// Returns the line that starts a route: CONNECT of a dialed one, otherwise INFO.
    pub fn route_greeting(&self, dial: Option<&RouteDial>) -> Vec<u8> {
        match dial {
            Some(dial) => self.broker.route_connect(dial).line(),
            None => self.broker.route_info().line(),
        }
    }

    /// Returns the INFO with which a route is compressed.
    pub fn route_compression(&self, dial: Option<&RouteDial>, by: &LinkCompression) -> Vec<u8> {
        let mut info = match dial {
            Some(dial) => self.broker.delayed_info(dial),
            None => self.broker.route_info(),
        };
        by.name().clone_into(&mut info.compression);
        // The INFO that follows in compressed form requests the slot.
        info.route_pool_idx = 0;
        info.line()
    }

    /// Returns whether a CONNECT with this JSON is accepted from a peer.
    pub fn admits_route(&self, peer: &Peer, json: &[u8]) -> bool {
        let connect = RouteConnect::parse(json);
        connect.is_some_and(|connect| self.broker.judge_route(&connect, peer).is_ok())
    }

    /// Sets the addresses of the cluster's servers for clients, and announces them to connected clients.
    pub fn set_connect_urls(&mut self, urls: Arc<ClientUrls>) {
        self.broker.exchange.info.connect_urls = urls;
        if self.broker.exchange.info.lame_duck {
            self.hide_own_urls();
        }
        let has_account_info = |kind: &Kind| match kind {
            Kind::Client(client) => client.has_account_info,
            _ => false,
        };
        // Older clients do not expect INFO at any time, and others do so only after the first PONG.
        let recipients: Vec<SessionId> = (self.broker.exchange.sessions.iter())
            .filter(|(_, session)| session.ending.is_none() && has_account_info(&session.kind))
            .map(|(index, _)| SessionId::from_index(index))
            .collect();
        for id in recipients {
            self.broker.client(id).send_info(false);
        }
    }

    /// Takes over the name of a peer's cluster, unless this server has got a better one in the meantime.
    pub fn adopt_cluster_name(&mut self, name: &str, is_generated: bool) {
        self.broker.adopt_cluster_name(name, is_generated, None);
    }

    /// Removes this server's addresses from those that clients receive, because it accepts no more clients.
    pub(super) fn hide_own_urls(&mut self) {
        let exchange = &mut self.broker.exchange;
        let Some(routes) = &exchange.config.routes else {
            return;
        };
        Arc::make_mut(&mut exchange.info.connect_urls).remove(&routes.client_urls);
    }

    /// Announces lame duck mode to all peers. Only the first shard knows them.
    pub(super) fn announce_lame_duck_to_peers(&mut self) {
        let info = RouteInfo {
            ldm: true,
            ..self.broker.route_info()
        };
        for id in self.broker.first_routes() {
            self.broker.exchange.send(id, &info.line());
        }
    }

    /// Closes the routes that a dialing task with this number has dialed, because their address was removed.
    pub fn end_routes(&mut self, dial: u64) {
        let is_of_task = |session: &Session| {
            let route = session.kind.route();
            let own = route.and_then(|route| route.dial.as_ref());
            own.is_some_and(|own| own.id == dial)
        };
        let sessions = self.broker.exchange.sessions.iter();
        let ids: Vec<SessionId> = sessions
            .filter(|(_, session)| is_of_task(session))
            .map(|(index, _)| SessionId::from_index(index))
            .collect();
        for id in ids {
            self.broker.end(id, CloseReason::RouteRemoved);
        }
    }

    /// Returns all routes, in any phase.
    pub fn route_ids(&self) -> Vec<SessionId> {
        let sessions = self.broker.exchange.sessions.iter();
        let routes = sessions.filter(|(_, session)| session.kind.route().is_some());
        routes
            .map(|(index, _)| SessionId::from_index(index))
            .collect()
    }

    /// Returns the status of all registered routes, with a detail.
    pub fn routes(&self, detail: RouteDetail) -> Vec<RouteStatus> {
        let announced = match detail {
            RouteDetail::Announced => self.broker.exchange.announced_to_routes(),
            RouteDetail::None | RouteDetail::Subscriptions => HashMap::new(),
        };
        let status = |id| {
            let mut status = self.route_status(id)?;
            status.announced = announced.get(&id).copied().unwrap_or(0);
            if detail == RouteDetail::Subscriptions {
                status.subscriptions_list = self.route_subscriptions(id);
            }
            Some(status)
        };
        self.route_ids().into_iter().filter_map(status).collect()
    }

    fn route_status(&self, id: SessionId) -> Option<RouteStatus> {
        let session = self.broker.exchange.sessions.get(id.index())?;
        let route = session.kind.route()?;
        if !route.is_ready() || session.ending.is_some() {
            return None;
        }
        Some(RouteStatus {
            rid: session.cid,
            remote_id: route.info.server_id.clone(),
            remote_name: route.info.server_name.clone(),
            did_solicit: route.dial.is_some(),
            is_configured: route.is_explicit,
            ip: session.peer.ip.clone(),
            port: session.peer.port,
            opened_at: session.opened_at,
            active_at: session.active_at,
            rtt: session.rtt,
            pending_size: session.out.pending_bytes(),
            in_msgs: session.in_msgs,
            out_msgs: session.out_msgs,
            in_bytes: session.in_bytes,
            out_bytes: session.out_bytes,
            subscriptions: session.subscriptions,
            subscriptions_list: Vec::new(),
            announced: 0,
            is_restricted: route.info.export.is_some(),
            compression: route.level(session.rtt).map_or("off", level_name),
            account: (route.dedicated_to).map_or_else(String::new, |account| {
                self.broker.exchange.account_name(account)
            }),
        })
    }

    /// Returns the subscriptions of a peer that a route has received, at most [`LISTED_MAX`].
    fn route_subscriptions(&self, id: SessionId) -> Vec<SubscriptionStatus> {
        let exchange = &self.broker.exchange;
        let session = &exchange.sessions[id.index()];
        let Some(route) = session.kind.route() else {
            return Vec::new();
        };
        let routers = &exchange.links[LinkSet::Routes(route.carries.lane())].routers;
        let listed = exchange.subs.of_session(id.0).take(LISTED_MAX);
        let listed = listed.filter_map(|sub| {
            let sub = exchange.subs.get(sub);
            let account = account_of(sub.sid())?;
            let subject = text(&routers.get(account)?.filter_of(sub));
            let queue = text(sub.queue());
            let named = (route.dedicated_to.is_none()).then(|| exchange.account_name(account));
            Some(SubscriptionStatus {
                sid: line_of(cluster_of(sub.sid()), named, &subject, &queue),
                subject,
                queue,
                msgs: sub.delivered(),
                max: None,
                cid: session.cid,
                account,
            })
        });
        listed.collect()
    }
}
