//! The handshake of a route, its registration, and gossip about other servers.

use std::sync::Arc;

use subtle::ConstantTimeEq;

use super::imports::Imports;
use super::state::Phase;
use super::{RouteEvent, RouteOutcome, RouteSession};
use crate::codec::nats::error::CloseReason;
use crate::codec::route::{GossipMode, PROTOCOL, RouteConnect, RouteError, RouteInfo};
use crate::exchange::RouteSettings;
use crate::exchange::remote::LinkSet;
use crate::exchange::session::SessionId;
use crate::session::Broker;

impl Broker {
    /// Returns the settings of routes.
    fn route_settings(&self) -> Arc<RouteSettings> {
        let routes = self.exchange.config.routes.as_ref();
        routes.map_or_else(Arc::default, Arc::clone)
    }

    /// Returns this server's INFO on routes.
    fn route_info(&self) -> RouteInfo {
        let settings = self.route_settings();
        let server = &self.exchange.info;
        let advertised = settings.advertise.as_ref();
        RouteInfo {
            server_id: server.server_id.clone(),
            server_name: server.server_name.clone(),
            version: server.version.clone(),
            proto: u64::from(PROTOCOL),
            go: "none".into(),
            host: settings.host.clone(),
            port: settings.port,
            ip: advertised.map_or_else(String::new, |place| format!("nats-route://{place}/")),
            headers: server.headers,
            auth_required: !settings.user.is_empty(),
            tls_required: settings.has_tls,
            tls_verify: settings.has_tls,
            max_payload: i64::try_from(server.max_payload).unwrap_or(i64::MAX),
            cluster: server.cluster.clone().unwrap_or_default(),
            domain: server.domain.clone().unwrap_or_default(),
            connect_urls: settings.client_urls.clone(),
            ..RouteInfo::default()
        }
    }
}

impl RouteSession<'_> {
    /// Sends the first line of this side: CONNECT as the dialer, INFO as the acceptor.
    pub(crate) fn begin(&mut self) {
        let server = &self.broker.exchange.info;
        let line = match &self.state().dial {
            None => self.broker.route_info().line(),
            Some(dial) => RouteConnect {
                echo: true,
                user: dial.user.clone(),
                pass: dial.password.clone(),
                tls_required: self.broker.route_settings().has_tls,
                headers: server.headers,
                name: server.server_id.clone(),
                cluster: server.cluster.clone().unwrap_or_default(),
                ..RouteConnect::default()
            }
            .line(),
        };
        self.broker.exchange.send(self.id, &line);
    }

    /// Handles CONNECT.
    pub(super) fn connect(&mut self, json: &[u8]) {
        if self.state().phase != Phase::Connecting {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        let Some(connect) = RouteConnect::parse(json) else {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        };
        let options = &mut self.session_mut().options;
        options.user.clone_from(&connect.user);
        options.name.clone_from(&connect.name);
        if !self.is_authorized(&connect) {
            return self.broker.any(self.id).refuse_credentials();
        }
        if !connect.lang.is_empty() {
            return self.refuse(&RouteError::Client, CloseReason::WrongPort);
        }
        if !connect.gateway.is_empty() {
            let error = RouteError::Gateway(connect.gateway);
            return self.refuse(&error, CloseReason::WrongGateway);
        }
        let ours = self.broker.exchange.info.cluster_name();
        if connect.cluster != ours {
            let error = RouteError::ClusterName {
                theirs: connect.cluster,
                ours: ours.to_owned(),
            };
            return self.refuse(&error, CloseReason::ClusterNameConflict);
        }
        let headers = self.broker.exchange.info.headers;
        self.session_mut().takes_headers = connect.headers && headers;
        self.state_mut().phase = Phase::Greeting;
    }

    /// Returns whether a dialer has sent the cluster's user and password.
    fn is_authorized(&self, connect: &RouteConnect) -> bool {
        let settings = self.broker.route_settings();
        if settings.user.is_empty() {
            return true;
        }
        let equal = |ours: &str, theirs: &str| ours.as_bytes().ct_eq(theirs.as_bytes());
        let user = equal(&settings.user, &connect.user);
        (user & equal(&settings.password, &connect.pass)).into()
    }

    /// Handles INFO.
    pub(super) fn info(&mut self, json: &[u8]) {
        let Some(info) = RouteInfo::parse(json) else {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        };
        let server = &self.broker.exchange.info;
        if info.server_id == server.server_id {
            // A peer never announces this server to itself, so the peer is this server.
            self.state_mut().outcome = RouteOutcome::OwnServer;
            return self.broker.end(self.id, CloseReason::DuplicateRoute);
        }
        if !info.cluster.is_empty() && info.cluster != server.cluster_name() {
            let (theirs, ours) = (info.cluster, server.cluster_name());
            let line = format!("Cluster name {theirs:?} does not match {ours:?}");
            self.broker.exchange.outputs.notice(self.id, || line);
            return self.broker.end(self.id, CloseReason::ClusterNameConflict);
        }
        if !self.state().is_ready() {
            return self.register(info);
        }
        // Gateways are not supported, so their gossip has no effect.
        if info.gateway.is_empty() && info.server_id != self.state().info.server_id {
            self.handle_gossip(info);
        }
    }

    /// Handles gossip about another server.
    fn handle_gossip(&mut self, info: RouteInfo) {
        let routes = &mut self.broker.exchange.shared.routes;
        if !info.ip.is_empty() && info.route_account.is_empty() && !routes.has_peer(&info.server_id)
        {
            routes.push_event(RouteEvent::Discovered {
                id: info.server_id,
                url: info.ip,
                gossip_mode: info.gossip_mode,
            });
        }
    }

    /// Registers the route of a peer whose INFO has arrived.
    fn register(&mut self, mut info: RouteInfo) {
        let is_dialer = self.state().dial.is_some();
        if !info.route_account.is_empty() {
            let error = RouteError::DedicatedImpossible(info.route_account);
            return self.refuse(&error, CloseReason::ProtocolViolation);
        }
        if is_dialer && info.route_pool_idx != 0 {
            let error = RouteError::PoolIndexSet(info.route_pool_idx);
            return self.refuse(&error, CloseReason::ProtocolViolation);
        }
        if !is_dialer && info.server_name == self.broker.exchange.info.server_name {
            let line = format!("Remote server has a duplicate name: {:?}", info.server_name);
            self.broker.exchange.outputs.notice(self.id, || line);
            return self.broker.end(self.id, CloseReason::DuplicateServerName);
        }
        if let Some(known) = self
            .broker
            .exchange
            .shared
            .routes
            .peers
            .get(&info.server_id)
        {
            let known = *known;
            return self.end_as_duplicate(known, info.server_id);
        }
        if info.ip.is_empty() {
            let peer = &self.session().peer;
            info.ip = match peer.ip.contains(':') {
                true => format!("nats-route://[{}]:{}/", peer.ip, info.port),
                false => format!("nats-route://{}:{}/", peer.ip, info.port),
            };
        }
        let headers = self.broker.exchange.info.headers;
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        session.awaits_auth = false;
        session.has_connected = true;
        session.takes_headers = headers && info.headers;
        session.options.name.clone_from(&info.server_name);
        let ping_at = session.pings.next_at;
        let route = session.kind.expect_route_mut();
        route.phase = Phase::Ready;
        route.info = info;
        self.broker.exchange.rearm(self.id, ping_at);
        if is_dialer {
            let gossip_mode = self.state().dial.as_ref().map(|dial| dial.gossip_mode);
            let own = RouteInfo {
                gossip_mode: gossip_mode.unwrap_or_default(),
                ..self.broker.route_info()
            };
            self.broker.exchange.send(self.id, &own.line());
        }
        self.join();
        self.gossip();
    }

    /// Adds the registered route to those that receive interest and messages.
    fn join(&mut self) {
        let info = &self.state().info;
        let (id, name) = (info.server_id.clone(), info.server_name.clone());
        let client_urls = info.connect_urls.clone();
        let exchange = &mut self.broker.exchange;
        exchange.announce_all_to_route(self.id);
        let routes = &mut exchange.shared.routes;
        routes.ready.push(self.id);
        routes.peers.insert(id.clone(), self.id);
        routes.push_event(RouteEvent::Joined {
            id,
            name,
            client_urls,
        });
    }

    /// Closes a connection to a peer that is registered already. If this side dialed, the registered route
    /// takes over that this server has the peer among its routes.
    fn end_as_duplicate(&mut self, known: SessionId, peer: String) {
        let is_explicit = self.state().is_explicit;
        let sessions = &mut self.broker.exchange.sessions;
        let known = sessions.get_mut(known.index());
        if let Some(route) = known.and_then(|session| session.kind.route_mut()) {
            route.is_explicit |= is_explicit;
        }
        self.state_mut().outcome = RouteOutcome::Duplicate(peer);
        self.broker.end(self.id, CloseReason::DuplicateRoute);
    }

    /// Announces the new peer to the other peers, if that is this server's task.
    fn gossip(&mut self) {
        let route = self.state();
        if route.info.gossip_mode == GossipMode::Disabled {
            return;
        }
        let dial = route.dial.as_ref();
        let mode_of: fn(bool) -> GossipMode = match dial {
            None => |to_explicit| match to_explicit {
                true => GossipMode::Override,
                false => GossipMode::Disabled,
            },
            Some(dial) if dial.is_explicit => |_| GossipMode::Override,
            Some(dial) if dial.gossip_mode == GossipMode::Override => |_| GossipMode::Default,
            Some(_) => return,
        };
        let info = route.info.clone();
        let others = self.broker.exchange.shared.routes.ready.clone();
        for other in others.into_iter().filter(|other| *other != self.id) {
            let session = self.broker.exchange.sessions.get(other.index());
            let Some(route) = session.and_then(|session| session.kind.route()) else {
                continue;
            };
            let info = RouteInfo {
                gossip_mode: mode_of(route.is_explicit),
                ..info.clone()
            };
            self.broker.exchange.send(other, &info.line());
        }
    }

    /// Handles that the connection is about to be closed. Its interest has been removed.
    pub(crate) fn leave(&mut self) {
        let peer = self.state().info.server_id.clone();
        let exchange = &mut self.broker.exchange;
        let routes = &mut exchange.shared.routes;
        if routes.peers.get(&peer) != Some(&self.id) {
            return;
        }
        routes.peers.remove(&peer);
        routes.ready.retain(|other| *other != self.id);
        routes.push_event(RouteEvent::Left { id: peer });
        if routes.ready.is_empty() {
            routes.announced.clear();
            routes.imports = Imports::default();
            exchange.routers.watch_all(LinkSet::Routes, false);
        }
    }
}
