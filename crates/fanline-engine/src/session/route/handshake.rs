//! The handshake of a route, its registration, and gossip about other servers.

use std::sync::Arc;

use subtle::ConstantTimeEq;

use super::connections::{Load, Registered};
use super::state::Phase;
use super::{RouteDial, RouteEvent, RouteOutcome, RouteSession};
use crate::auth::Peer;
use crate::codec::compression::LinkCompression;
use crate::codec::gateway::hash_of;
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::info::ClientUrls;
use crate::codec::route::{
    Carries, GossipMode, PROTOCOL, ROUTE_POOL_SIZE_MAX, RouteConnect, RouteError, RouteInfo,
};
use crate::exchange::RouteSettings;
use crate::exchange::remote::LinkSet;
use crate::exchange::route_settings::Lane;
use crate::exchange::session::SessionId;
use crate::session::{Broker, Kind};

impl Broker {
    /// Returns the settings of routes.
    pub(super) fn route_settings(&self) -> Arc<RouteSettings> {
        let routes = self.exchange.config.routes.as_ref();
        routes.map_or_else(Arc::default, Arc::clone)
    }

    /// Returns this server's INFO on routes.
    pub(crate) fn route_info(&self) -> RouteInfo {
        let settings = self.route_settings();
        let server = &self.exchange.info;
        let advertised = settings.advertise.as_ref();
        let rights = settings.rights.as_ref().map(|rights| rights.lists());
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
            cluster_dynamic: server.cluster_is_generated,
            domain: server.domain.clone().unwrap_or_default(),
            gateway_url: (self.exchange.config.gateways.as_ref())
                .map_or_else(String::new, |own| own.url.clone()),
            connect_urls: settings.client_urls.plain.clone(),
            ws_connect_urls: settings.client_urls.websocket.clone(),
            compression: (settings.compression.as_ref())
                .map_or("off", LinkCompression::name)
                .into(),
            route_pool_size: i64::from(settings.pool_size),
            lnoc: true,
            lnocu: true,
            passed_on: true,
            import: rights.clone().map(|[import, _]| import.into()),
            export: rights.map(|[_, export]| export.into()),
            ..RouteInfo::default()
        }
    }

    /// Returns the CONNECT of a dialed route.
    pub(crate) fn route_connect(&self, dial: &RouteDial) -> RouteConnect {
        let server = &self.exchange.info;
        RouteConnect {
            echo: true,
            user: dial.user.clone(),
            pass: dial.password.clone(),
            tls_required: self.route_settings().has_tls,
            headers: server.headers,
            name: server.server_id.clone(),
            cluster: server.cluster.clone().unwrap_or_default(),
            cluster_dynamic: server.cluster_is_generated,
            lnoc: true,
            ..RouteConnect::default()
        }
    }

    /// Returns the INFO that a dialer sends after that of the acceptor, which learns from it what the route is
    /// to carry.
    pub(crate) fn delayed_info(&self, dial: &RouteDial) -> RouteInfo {
        let mut own = RouteInfo {
            gossip_mode: dial.gossip_mode,
            ..self.route_info()
        };
        match &dial.carries {
            Carries::Slot(slot) => own.route_pool_idx = i64::from(*slot),
            Carries::Account(name) => own.route_account.clone_from(name),
        }
        own
    }

    /// Returns the reason for which a dialer with this CONNECT is refused; `Err(None)` means its credentials.
    pub(crate) fn judge_route(
        &self,
        connect: &RouteConnect,
        peer: &Peer,
    ) -> Result<(), Option<(RouteError, CloseReason)>> {
        let settings = self.route_settings();
        let equal = |ours: &str, theirs: &str| ours.as_bytes().ct_eq(theirs.as_bytes());
        let is_authorized = match &settings.certificates {
            Some(rules) => {
                let names = peer.tls.as_ref().and_then(|tls| tls.names.as_ref());
                rules.authorize(names, &settings.user)
            }
            None => {
                let user = equal(&settings.user, &connect.user);
                settings.user.is_empty()
                    || bool::from(user & equal(&settings.password, &connect.pass))
            }
        };
        if !is_authorized {
            return Err(None);
        }
        if !connect.lang.is_empty() {
            return Err(Some((RouteError::Client, CloseReason::WrongPort)));
        }
        if !connect.gateway.is_empty() {
            let error = RouteError::Gateway(connect.gateway.clone());
            return Err(Some((error, CloseReason::WrongGateway)));
        }
        if self.compare_name(&connect.cluster, connect.cluster_dynamic) == Name::Conflict {
            let error = RouteError::ClusterName {
                theirs: connect.cluster.clone(),
                ours: self.exchange.info.cluster_name().to_owned(),
            };
            return Err(Some((error, CloseReason::ClusterNameConflict)));
        }
        Ok(())
    }

    /// Compares the name of a peer's cluster with that of this server. A generated name yields to a configured
    /// one, and to a greater generated one.
    fn compare_name(&self, theirs: &str, is_generated: bool) -> Name {
        let server = &self.exchange.info;
        let ours = server.cluster_name();
        if theirs == ours {
            Name::Same
        } else if server.cluster_is_generated
            && !theirs.is_empty()
            && (!is_generated || theirs > ours)
        {
            Name::Adopted
        } else {
            Name::Conflict
        }
    }

    /// Takes over the name of a peer's cluster, unless this server has got a better one. Closes the routes to
    /// servers with another name, except one, and the connections to hubs, which know this server by its name.
    pub(crate) fn adopt_cluster_name(
        &mut self,
        name: &str,
        is_generated: bool,
        except: Option<SessionId>,
    ) {
        if self.compare_name(name, is_generated) != Name::Adopted {
            return;
        }
        self.exchange.info.cluster = Some(name.to_owned());
        self.exchange.info.cluster_is_generated = is_generated;
        let is_other = |kind: &Kind| match kind {
            Kind::Route(route) => route.info.cluster != name,
            Kind::Leaf(leaf) => leaf.remote().is_some(),
            Kind::Client(_) | Kind::Mqtt(_) | Kind::Gateway(_) => false,
        };
        let sessions = self.exchange.sessions.iter();
        let others: Vec<SessionId> = sessions
            .filter(|(_, session)| is_other(&session.kind))
            .map(|(index, _)| SessionId::from_index(index))
            .filter(|id| Some(*id) != except)
            .collect();
        for id in others {
            self.end(id, CloseReason::ClusterNameConflict);
        }
    }
}

/// The name of a peer's cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Same,
    /// This server takes it over.
    Adopted,
    Conflict,
}

/// Returns the number of slots that this server uses with a peer; 0 if one of both has no pool.
fn pool_size(ours: u32, info: &RouteInfo) -> u32 {
    let theirs = u32::try_from(info.route_pool_size.max(0)).unwrap_or(u32::MAX);
    match ours.min(theirs) {
        0 => 0,
        _ => ours.max(theirs).min(ROUTE_POOL_SIZE_MAX),
    }
}

impl RouteSession<'_> {
    /// Sends the first line of this side: CONNECT as the dialer, INFO as the acceptor.
    pub(crate) fn begin(&mut self) {
        if self.session().peer.is_greeted {
            return;
        }
        let line = match &self.state().dial {
            None => self.broker.route_info().line(),
            Some(dial) => self.broker.route_connect(dial).line(),
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
        let peer = &self.session().peer;
        match self.broker.judge_route(&connect, peer) {
            Ok(()) => {}
            Err(None) => return self.broker.any(self.id).refuse_credentials(),
            Err(Some((error, reason))) => return self.refuse(&error, reason),
        }
        self.adopt_name(&connect.cluster, connect.cluster_dynamic);
        let headers = self.broker.exchange.info.headers;
        self.session_mut().takes_headers = connect.headers && headers;
        self.state_mut().phase = Phase::Greeting;
    }

    /// Takes over the name of the peer's cluster if it is better than that of this server.
    fn adopt_name(&mut self, name: &str, is_generated: bool) {
        if self.broker.compare_name(name, is_generated) != Name::Adopted {
            return;
        }
        let id = Some(self.id);
        self.broker.adopt_cluster_name(name, is_generated, id);
        let routes = &mut self.broker.exchange.shared.routes;
        routes.push_event(RouteEvent::ClusterNamed {
            name: name.to_owned(),
            is_generated,
        });
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
        if !info.cluster.is_empty() {
            let name = &info.cluster;
            if self.broker.compare_name(name, info.cluster_dynamic) == Name::Conflict {
                let line = format!(
                    "Cluster name {name:?} does not match {:?}",
                    server.cluster_name()
                );
                self.broker.exchange.outputs.notice(self.id, || line);
                return self.broker.end(self.id, CloseReason::ClusterNameConflict);
            }
            self.adopt_name(name, info.cluster_dynamic);
        }
        if !self.state().is_ready() {
            return self.register(info);
        }
        if !info.gateway.is_empty() {
            return self.handle_gateway_gossip(info);
        }
        if info.server_id != self.state().info.server_id {
            return self.handle_gossip(info);
        }
        if info.ldm {
            let event = RouteEvent::LeavesSoon { id: info.server_id };
            self.broker.exchange.shared.routes.push_event(event);
            return;
        }
        let known = &mut self.state_mut().info;
        if (&known.import, &known.export) != (&info.import, &info.export) {
            // The peer may have refused interest that its new permissions allow.
            (known.import, known.export) = (info.import, info.export);
            self.announce_again();
        }
    }

    /// Handles gossip about another server, or about a dedicated route of one. A server that was learned of by
    /// gossip need not dial its dedicated routes itself.
    fn handle_gossip(&mut self, info: RouteInfo) {
        let is_wanted = match &info.route_account {
            account if account.is_empty() => true,
            account => self.broker.route_settings().accounts.contains(account),
        };
        if !info.ip.is_empty() && is_wanted {
            let routes = &mut self.broker.exchange.shared.routes;
            routes.push_event(RouteEvent::Discovered {
                carries: info.carries(),
                id: info.server_id,
                url: info.ip,
                gossip_mode: info.gossip_mode,
            });
        }
    }

    /// Handles gossip about another cluster.
    fn handle_gateway_gossip(&mut self, info: RouteInfo) {
        if self.broker.exchange.config.gateways.is_some() {
            return (self.broker).discover_gateway(info.gateway, info.gateway_urls);
        }
        let line = format!(
            "Received information about gateway {:?} from {}, but gateway is not configured",
            info.gateway, info.server_id
        );
        self.broker.exchange.outputs.notice(self.id, || line);
    }

    /// Returns what a route is to carry whose peer has sent this INFO.
    fn load_of(&self, info: &RouteInfo) -> Result<(Carries, Load), RouteError> {
        let settings = self.broker.route_settings();
        // A Fanline server does not mention its JetStream on routes.
        if info.jetstream && settings.jetstream.is_some() {
            return Err(RouteError::JetStream {
                theirs: info.server_name.clone(),
                ours: self.broker.exchange.info.server_name.clone(),
            });
        }
        let size = pool_size(settings.pool_size, info);
        let index = info.route_pool_idx;
        let invalid = |slot| RouteError::InvalidPoolIndex { slot, size };
        let carries = match &self.state().dial {
            Some(_) if index != 0 => return Err(RouteError::PoolIndexSet(index)),
            Some(dial) => dial.carries.clone(),
            None if u32::try_from(index).is_err() => return Err(invalid(index)),
            None => info.carries(),
        };
        let load = match &carries {
            Carries::Account(name) if size == 0 => {
                return Err(RouteError::DedicatedImpossible(name.clone()));
            }
            Carries::Account(name) => {
                let known = self.broker.exchange.access.account_id(name);
                let account = known.ok_or_else(|| RouteError::UnknownAccount(name.clone()))?;
                if settings.slot_of(name.as_bytes()).is_some() {
                    return Err(RouteError::NoRouteForAccount(name.clone()));
                }
                Load::Account(account)
            }
            Carries::Slot(0) if size == 0 => Load::All,
            Carries::Slot(slot) if *slot < size => Load::Slot(*slot),
            Carries::Slot(slot) => return Err(invalid(i64::from(*slot))),
        };
        Ok((carries, load))
    }

    /// Refuses a route that cannot carry what it is to carry.
    fn refuse_load(&mut self, error: &RouteError) {
        let is_dialed = self.state().dial.is_some();
        let is_superfluous = matches!(
            error,
            RouteError::InvalidPoolIndex { .. } | RouteError::DedicatedImpossible(_)
        );
        if is_dialed && is_superfluous {
            self.state_mut().outcome = RouteOutcome::Superfluous;
        }
        match error {
            // The peer has a smaller pool than before.
            RouteError::InvalidPoolIndex { .. } if is_dialed => {
                self.broker.end(self.id, CloseReason::DuplicateRoute);
            }
            RouteError::UnknownAccount(_) => self.refuse(error, CloseReason::MissingAccount),
            _ => self.refuse(error, CloseReason::ProtocolViolation),
        }
    }

    /// Registers the route of a peer whose INFO has arrived.
    fn register(&mut self, mut info: RouteInfo) {
        let is_dialer = self.state().dial.is_some();
        let (carries, load) = match self.load_of(&info) {
            Ok(load) => load,
            Err(error) => return self.refuse_load(&error),
        };
        let exchange = &mut self.broker.exchange;
        if !is_dialer && info.server_name == exchange.info.server_name {
            let line = format!("Remote server has a duplicate name: {:?}", info.server_name);
            exchange.outputs.notice(self.id, || line);
            return self.broker.end(self.id, CloseReason::DuplicateServerName);
        }
        let lane = carries.lane();
        if !exchange.serves(LinkSet::Routes(lane)) {
            // The runtime has passed the connection to the wrong shard.
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        let mut ready = exchange.shared.routes.lane(lane).ready.iter();
        let is_same = |route: &&Registered| route.peer == info.server_id && route.load == load;
        if let Some(known) = ready.find(is_same).map(|route| route.id) {
            return self.end_as_duplicate(known, info.server_id);
        }
        if info.cluster.is_empty() {
            let own = self.broker.exchange.info.cluster_name();
            own.clone_into(&mut info.cluster);
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
        route.carries = carries;
        route.dedicated_to = match load {
            Load::Account(account) => Some(account),
            Load::All | Load::Slot(_) => None,
        };
        self.broker.exchange.rearm(self.id, ping_at);
        if let Some(dial) = &self.state().dial {
            let mut own = self.broker.delayed_info(dial);
            if let Some(compressed) = &self.state().compressed {
                compressed.by.name().clone_into(&mut own.compression);
            }
            self.broker.exchange.send(self.id, &own.line());
        }
        self.join(load);
        self.gossip(load);
    }

    /// Adds the registered route to those that receive interest and messages.
    fn join(&mut self, load: Load) {
        let route = self.state();
        let (info, carries) = (&route.info, route.carries.clone());
        let (id, name) = (info.server_id.clone(), info.server_name.clone());
        let client_urls = ClientUrls {
            plain: info.connect_urls.clone(),
            websocket: info.ws_connect_urls.clone(),
        };
        let is_first_of_pool = route.dial.is_some() && load == Load::Slot(0);
        let lane = carries.lane();
        let exchange = &mut self.broker.exchange;
        exchange.announce_all_to_route(self.id, lane, load);
        let routes = &mut exchange.shared.routes;
        routes.count += 1;
        routes.lane_mut(lane).ready.push(Registered {
            id: self.id,
            hash: hash_of(&id),
            peer: id.clone(),
            load,
        });
        routes.push_event(RouteEvent::Joined {
            id,
            name,
            carries,
            client_urls,
        });
        if matches!(load, Load::All | Load::Slot(0)) {
            self.broker.announce_gateways_to_route(self.id);
            self.broker.announce_gateway_urls();
        }
        let exchange = &mut self.broker.exchange;
        if is_first_of_pool {
            // A peer that refuses the password does not answer.
            exchange.send(self.id, b"PING\r\n");
        }
    }

    /// Handles that the peer has responded to a ping. The first response of a peer with a pool lets the
    /// runtime dial its other slots.
    pub(super) fn prove(&mut self) {
        let route = self.state_mut();
        let is_due = route.is_ready() && !std::mem::replace(&mut route.is_proven, true);
        let Some(dial) = route.dial.as_ref().filter(|_| is_due) else {
            return;
        };
        let (dial, is_first) = (dial.id, dial.carries == Carries::Slot(0));
        let settings = self.broker.route_settings();
        let pool_size = pool_size(settings.pool_size, &self.state().info);
        if is_first && pool_size > 0 {
            let routes = &mut self.broker.exchange.shared.routes;
            let accounts = settings.accounts.clone();
            routes.push_event(RouteEvent::Proven {
                dial,
                pool_size,
                accounts,
            });
        }
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

    /// Announces the new peer to the other peers, if that is this server's task. Peers without a pool have one
    /// route; of others, the route of slot 0 and dedicated ones are announced, each to the peers that have the same.
    fn gossip(&mut self, load: Load) {
        let route = self.state();
        let is_announced = !matches!(route.carries, Carries::Slot(1..));
        if route.info.gossip_mode == GossipMode::Disabled || !is_announced {
            return;
        }
        let mode = match route.dial.as_ref() {
            None => None,
            Some(dial) if dial.is_explicit => Some(GossipMode::Override),
            Some(dial) if dial.gossip_mode == GossipMode::Override => Some(GossipMode::Default),
            Some(_) => return,
        };
        let mut info = route.info.clone();
        info.route_pool_idx = 0;
        let receivers = match &route.carries {
            Carries::Slot(_) => self.broker.first_routes(),
            Carries::Account(name) => {
                info.route_account.clone_from(name);
                self.broker.routes_like(route.carries.lane(), load)
            }
        };
        self.broker.introduce(info, mode, receivers);
    }

    /// Handles that the connection is about to be closed. Its interest has been removed.
    pub(crate) fn leave(&mut self) {
        let route = self.state();
        let (peer, carries) = (route.info.server_id.clone(), route.carries.clone());
        let lane = carries.lane();
        let exchange = &mut self.broker.exchange;
        let mut ready = exchange.shared.routes.lane(lane).ready.iter();
        if ready.any(|route| route.id == self.id) {
            let is_first = carries == Carries::Slot(0);
            exchange.leave_lane(self.id, lane);
            let event = RouteEvent::Left { id: peer, carries };
            exchange.shared.routes.push_event(event);
            if is_first {
                self.broker.announce_gateway_urls();
            }
        }
    }
}

impl Broker {
    /// Returns the route of each peer that carries slot 0. Only the first shard serves them.
    pub(crate) fn first_routes(&self) -> Vec<SessionId> {
        let lane = Carries::default().lane();
        let is_first = |route: &&Registered| matches!(route.load, Load::All | Load::Slot(0));
        let ready = self.exchange.shared.routes.lane(lane).ready.iter();
        ready.filter(is_first).map(|route| route.id).collect()
    }

    /// Returns the routes of a lane that carry this.
    fn routes_like(&self, lane: Lane, load: Load) -> Vec<SessionId> {
        let ready = self.exchange.shared.routes.lane(lane).ready.iter();
        let same = ready.filter(|route| route.load == load);
        same.map(|route| route.id).collect()
    }

    /// Announces a peer to other peers. The mode of the gossip depends on its receiver if it is `None`.
    fn introduce(&mut self, info: RouteInfo, mode: Option<GossipMode>, receivers: Vec<SessionId>) {
        for other in receivers {
            let session = self.exchange.sessions.get(other.index());
            let Some(route) = session.and_then(|session| session.kind.route()) else {
                continue;
            };
            if route.info.server_id == info.server_id {
                continue;
            }
            // The acceptor of a new peer lets only servers forward it that it has dialed itself.
            let by_receiver = match route.is_explicit {
                true => GossipMode::Override,
                false => GossipMode::Disabled,
            };
            let info = RouteInfo {
                gossip_mode: mode.unwrap_or(by_receiver),
                ..info.clone()
            };
            self.exchange.send(other, &info.line());
        }
    }
}
