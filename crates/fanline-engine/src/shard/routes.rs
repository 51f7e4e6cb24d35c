//! The runtime's calls for routes.

use std::sync::Arc;
use std::time::Duration;

use super::{Kind, SessionId, Shard};
use crate::auth::Peer;
use crate::session::route::{Route, RouteDial, RouteEvent, RouteStatus};

impl Shard {
    /// Opens a route, which was dialed if `dial` is `Some`, otherwise accepted.
    ///
    /// Only the first shard serves routes.
    pub fn open_route(
        &mut self,
        cid: u64,
        peer: Peer,
        dial: Option<RouteDial>,
        now: Duration,
    ) -> SessionId {
        let kind = Kind::Route(Box::new(Route::new(dial)));
        let id = self.broker.insert_session(cid, peer, kind, true, now);
        if let Some(routes) = &self.broker.exchange.config.routes {
            let deadline = now + routes.auth_timeout;
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

    /// Sets the addresses of the cluster's servers for clients, and announces them to connected clients.
    pub fn set_connect_urls(&mut self, urls: Arc<[String]>) {
        self.broker.exchange.info.connect_urls = urls;
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

    /// Returns all routes, in any phase.
    pub fn route_ids(&self) -> Vec<SessionId> {
        let sessions = self.broker.exchange.sessions.iter();
        let routes = sessions.filter(|(_, session)| session.kind.route().is_some());
        routes
            .map(|(index, _)| SessionId::from_index(index))
            .collect()
    }

    /// Returns the status of all registered routes.
    pub fn routes(&self) -> Vec<RouteStatus> {
        let all = self.route_ids().into_iter();
        all.filter_map(|id| self.route_status(id)).collect()
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
        })
    }
}
