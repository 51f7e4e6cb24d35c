//! The handshake of a gateway connection, its registration, and gossip about clusters.

use std::sync::Arc;

use subtle::ConstantTimeEq;

use super::connections::Outbound;
use super::state::{GatewayOutcome, Phase};
use super::{GatewayDial, GatewayEvent, GatewaySession, GatewaySettings, KnownGateway};
use crate::codec::gateway::{
    GatewayCommand, GatewayConnect, GatewayError, GatewayInfo, PROTOCOL, hash_of,
};
use crate::codec::nats::error::CloseReason;
use crate::exchange::session::SessionId;
use crate::session::Broker;

impl Broker {
    fn gateway_settings(&self) -> Arc<GatewaySettings> {
        let gateways = self.exchange.config.gateways.as_ref();
        gateways.map_or_else(Arc::default, Arc::clone)
    }

    /// Returns this server's INFO on gateways.
    fn gateway_info(&self) -> GatewayInfo {
        let settings = self.gateway_settings();
        let server = &self.exchange.info;
        GatewayInfo {
            server_id: server.server_id.clone(),
            server_name: server.server_name.clone(),
            version: server.version.clone(),
            proto: u64::from(PROTOCOL),
            go: "none".into(),
            host: settings.host.clone(),
            port: settings.port,
            headers: server.headers,
            auth_required: !settings.user.is_empty(),
            tls_required: settings.has_tls,
            tls_verify: settings.has_tls,
            max_payload: i64::try_from(server.max_payload).unwrap_or(i64::MAX),
            gateway: settings.name.clone(),
            gateway_urls: self.own_gateway_urls(),
            gateway_url: settings.url.clone(),
            gateway_nrp: true,
            gateway_iom: true,
            ..GatewayInfo::default()
        }
    }

    /// Returns the addresses of this cluster's servers for gateways: the own one and those of routes.
    fn own_gateway_urls(&self) -> Vec<String> {
        let mut urls = vec![self.gateway_settings().url.clone()];
        for id in self.first_routes() {
            let session = self.exchange.sessions.get(id.index());
            let route = session.and_then(|session| session.kind.route());
            let url = route.map_or("", |route| &route.info.gateway_url);
            if !url.is_empty() && !urls.iter().any(|known| known == url) {
                urls.push(url.to_owned());
            }
        }
        urls
    }

    /// Returns the CONNECT of a dialed connection.
    fn gateway_connect(&self, dial: &GatewayDial) -> GatewayConnect {
        let settings = self.gateway_settings();
        GatewayConnect {
            user: dial.user.clone(),
            pass: dial.password.clone(),
            tls_required: settings.has_tls,
            name: self.exchange.info.server_id.clone(),
            gateway: settings.name.clone(),
            ..GatewayConnect::default()
        }
    }

    /// Returns the reason for which a dialer with this CONNECT is refused; `Err(None)` means its credentials.
    fn judge_gateway(
        &self,
        connect: &GatewayConnect,
    ) -> Result<(), Option<(GatewayError, CloseReason)>> {
        let settings = self.gateway_settings();
        let equal = |ours: &str, theirs: &str| ours.as_bytes().ct_eq(theirs.as_bytes());
        let user = equal(&settings.user, &connect.user);
        let is_authorized = user & equal(&settings.password, &connect.pass);
        if !settings.user.is_empty() && !bool::from(is_authorized) {
            return Err(None);
        }
        if connect.gateway.is_empty() {
            return Err(Some((GatewayError::NoGateway, CloseReason::WrongPort)));
        }
        if !settings.admits(&connect.gateway) {
            let error = GatewayError::Rejected(settings.name.clone());
            return Err(Some((error, CloseReason::WrongGateway)));
        }
        Ok(())
    }

    /// Returns whether this server or another one of the cluster has a name.
    fn is_name_in_cluster(&self, name: &str) -> bool {
        let is_named = |id: &SessionId| {
            let session = self.exchange.sessions.get(id.index());
            let route = session.and_then(|session| session.kind.route());
            route.is_some_and(|route| route.info.server_name == name)
        };
        self.exchange.info.server_name == name || self.first_routes().iter().any(is_named)
    }

    /// Sets the other clusters that the server knows. Announces new ones to the servers of this cluster, and to the
    /// clusters that have dialed it: two of these may have joined before the runtime knew either.
    pub(crate) fn set_known_gateways(&mut self, known: Vec<KnownGateway>) {
        let before = std::mem::replace(&mut self.exchange.shared.gateways.known, known.clone());
        for gateway in known.iter().filter(|gateway| !before.contains(gateway)) {
            let line = self.gossip_line(gateway);
            for id in self.first_routes() {
                self.exchange.send(id, &line);
            }
            for id in self.exchange.shared.gateways.inbound.clone() {
                self.gateway(id).announce(gateway);
            }
        }
    }

    /// Announces the other clusters that this server knows to a server of this cluster.
    pub(crate) fn announce_gateways_to_route(&mut self, id: SessionId) {
        for gateway in self.exchange.shared.gateways.known.clone() {
            let line = self.gossip_line(&gateway);
            self.exchange.send(id, &line);
        }
    }

    /// Returns the INFO that announces a cluster to the servers of this one.
    fn gossip_line(&self, gateway: &KnownGateway) -> Vec<u8> {
        // The sender is no server, because a route takes INFO of another server for gossip about that one.
        let sender = format!("GW{}", self.exchange.info.server_id);
        GatewayInfo::gossip(&sender, &gateway.gateway, &gateway.urls).line()
    }

    /// Announces the addresses of this cluster to the clusters that have dialed this server.
    pub(crate) fn announce_gateway_urls(&mut self) {
        if self.exchange.config.gateways.is_none() {
            return;
        }
        let line = self.gateway_info().line();
        for id in self.exchange.shared.gateways.inbound.clone() {
            self.exchange.send(id, &line);
        }
    }
}

impl GatewaySession<'_> {
    /// Sends INFO to a dialer. An acceptor sends its own INFO first.
    pub(crate) fn begin(&mut self) {
        if !self.state().is_dialed() {
            let line = self.broker.gateway_info().line();
            self.broker.exchange.send(self.id, &line);
        }
    }

    /// Handles CONNECT.
    pub(super) fn connect(&mut self, json: &[u8]) {
        if self.state().phase != Phase::Connecting {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        let Some(connect) = GatewayConnect::parse(json) else {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        };
        let options = &mut self.session_mut().options;
        options.user.clone_from(&connect.user);
        options.name.clone_from(&connect.name);
        match self.broker.judge_gateway(&connect) {
            Ok(()) => {}
            Err(None) => return self.broker.any(self.id).refuse_credentials(),
            Err(Some((error, reason))) => return self.refuse(&error, reason),
        }
        let state = self.state_mut();
        state.name = connect.gateway;
        state.phase = Phase::Greeting;
    }

    /// Handles INFO.
    pub(super) fn info(&mut self, json: &[u8]) {
        let Some(info) = GatewayInfo::parse(json) else {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        };
        if !self.state().is_ready() {
            return match self.state().dial.clone() {
                Some(dial) => self.register_dialed(&dial, info),
                None => self.register_accepted(info),
            };
        }
        match info.command() {
            GatewayCommand::Update => {
                let gateway = self.state().name.clone();
                if info.gateway == gateway {
                    self.discover(gateway, info.gateway_urls);
                }
            }
            GatewayCommand::Gossip => self.discover(info.gateway, info.gateway_urls),
            GatewayCommand::InterestBegins(name) if self.state().is_dialed() => {
                self.begin_interest(&name);
            }
            GatewayCommand::InterestEnds(name) if self.state().is_dialed() => {
                self.end_interest(&name);
            }
            GatewayCommand::InterestBegins(_)
            | GatewayCommand::InterestEnds(_)
            | GatewayCommand::Unknown => {}
        }
    }

    /// Reports a cluster that a peer has announced.
    fn discover(&mut self, gateway: String, urls: Vec<String>) {
        self.broker.discover_gateway(gateway, urls);
    }

    /// Registers a connection to the acceptor of this INFO.
    fn register_dialed(&mut self, dial: &GatewayDial, info: GatewayInfo) {
        let ours = self.broker.gateway_settings().name.clone();
        if info.gateway.is_empty() {
            let error = GatewayError::WrongPort(dial.gateway.clone());
            return self.refuse(&error, CloseReason::WrongPort);
        }
        if info.gateway != dial.gateway {
            let error = GatewayError::WrongName {
                ours,
                wanted: dial.gateway.clone(),
                theirs: info.gateway,
            };
            return self.refuse(&error, CloseReason::WrongGateway);
        }
        if self.is_duplicate_name(&info) {
            return;
        }
        if self
            .broker
            .exchange
            .shared
            .gateways
            .has_outbound_to(&info.gateway)
        {
            self.state_mut().outcome = GatewayOutcome::Duplicate;
            return self.broker.end(self.id, CloseReason::DuplicateRoute);
        }
        let connect = self.broker.gateway_connect(dial).line();
        let own = self.broker.gateway_info().line();
        self.broker.exchange.send(self.id, &[connect, own].concat());
        self.become_ready(info);
        let gateway = self.state().name.clone();
        let hash = hash_of(&gateway);
        let id = self.id;
        let gateways = &mut self.broker.exchange.shared.gateways;
        gateways.outbound.push(Outbound { id, gateway, hash });
        self.begin_optimistic();
        self.report_joined();
    }

    /// Registers a connection from the dialer of this INFO.
    fn register_accepted(&mut self, info: GatewayInfo) {
        if info.gateway.is_empty() {
            return self.refuse(&GatewayError::NoGateway, CloseReason::WrongPort);
        }
        if info.gateway != self.state().name {
            return self
                .end_as_violation("The name of the gateway differs between CONNECT and INFO");
        }
        if self.is_duplicate_name(&info) {
            return;
        }
        self.become_ready(info);
        for known in self.broker.exchange.shared.gateways.known.clone() {
            self.announce(&known);
        }
        let exchange = &mut self.broker.exchange;
        exchange.announce_all_to_gateway(self.id);
        exchange.shared.gateways.inbound.push(self.id);
        self.report_joined();
    }

    /// Announces a third cluster to the dialer.
    fn announce(&mut self, known: &KnownGateway) {
        if known.gateway != self.state().name {
            let server_id = &self.broker.exchange.info.server_id;
            let gossip = GatewayInfo::gossip(server_id, &known.gateway, &known.urls);
            self.broker.exchange.send(self.id, &gossip.line());
        }
    }

    /// Closes the connection if its peer has the name of a server of this cluster. Returns whether it has.
    fn is_duplicate_name(&mut self, info: &GatewayInfo) -> bool {
        let is_duplicate = self.broker.is_name_in_cluster(&info.server_name);
        if is_duplicate {
            let line = format!("Remote server has a duplicate name: {:?}", info.server_name);
            self.broker.exchange.outputs.notice(self.id, || line);
            self.broker.end(self.id, CloseReason::DuplicateServerName);
        }
        is_duplicate
    }

    fn become_ready(&mut self, info: GatewayInfo) {
        let exchange = &mut self.broker.exchange;
        if exchange.shared.gateways.is_empty() {
            exchange.begin_gateways();
        }
        let headers = exchange.info.headers;
        let session = &mut exchange.sessions[self.id.index()];
        session.awaits_auth = false;
        session.has_connected = true;
        session.takes_headers = headers && info.headers;
        session.options.name.clone_from(&info.server_name);
        let ping_at = session.pings.next_at;
        let state = session.kind.expect_gateway_mut();
        state.phase = Phase::Ready;
        state.info = info;
        exchange.rearm(self.id, ping_at);
    }

    fn report_joined(&mut self) {
        let state = self.state();
        let event = GatewayEvent::Joined {
            gateway: state.name.clone(),
            id: state.info.server_id.clone(),
            is_dialed: state.is_dialed(),
            urls: state.info.gateway_urls.clone(),
        };
        self.broker.exchange.shared.gateways.push_event(event);
    }

    /// Handles that the connection is about to be closed. Its interest has been removed.
    pub(crate) fn leave(&mut self) {
        let state = self.state();
        let (gateway, is_dialed) = (state.name.clone(), state.is_dialed());
        if !state.is_ready() {
            return;
        }
        let exchange = &mut self.broker.exchange;
        let gateways = &mut exchange.shared.gateways;
        let before = gateways.inbound.len() + gateways.outbound.len();
        gateways.inbound.retain(|id| *id != self.id);
        gateways.outbound.retain(|link| link.id != self.id);
        if gateways.inbound.len() + gateways.outbound.len() == before {
            return;
        }
        gateways.push_event(GatewayEvent::Left { gateway, is_dialed });
        if gateways.is_empty() {
            exchange.end_gateways();
        }
    }
}

impl Broker {
    /// Reports a cluster that another server has announced.
    pub(crate) fn discover_gateway(&mut self, gateway: String, urls: Vec<String>) {
        if gateway != self.gateway_settings().name && !gateway.is_empty() {
            let gateways = &mut self.exchange.shared.gateways;
            gateways.push_event(GatewayEvent::Discovered { gateway, urls });
        }
    }
}
