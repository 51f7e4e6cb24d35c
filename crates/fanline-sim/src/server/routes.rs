//! The connections of routes: their lines up to INFO, which decide about the shard, and their sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use fanline_engine::auth::{AccountId, ConnectionKind};
use fanline_engine::codec::route::RouteInfo;
use fanline_engine::codec::route::parse::{RouteParsed, RouteVerb, parse_route};
use fanline_engine::route::{Carries, RouteDetail, RouteDial, RouteEnded, RouteEvent};
use fanline_engine::{Peer, Shard};

use super::shard::Connection;
use super::{ConnectionKey, Server};

/// The connection of a route before its session.
pub(super) struct Greeting {
    cid: u64,
    dial: Option<RouteDial>,
    peer: Peer,
    begun_at: Duration,
    received: Vec<u8>,
    /// The offset of the next line.
    at: usize,
}

/// The next step of a greeting.
enum Step {
    Read,
    Answer,
    /// The session opens, at a shard that INFO decides about.
    Open(Option<Carries>),
}

/// Interest that a server knows of its peers: the id of the peer, account, filter, and queue group. Each is listed as
/// often as the server knows it.
type KnownInterest = Vec<(String, AccountId, String, String)>;

impl Greeting {
    /// Handles the lines that have arrived. A dialer begins with CONNECT.
    fn step(&mut self, shard: &Shard) -> Step {
        loop {
            let has_connected = self.dial.is_some() || self.at > 0;
            match parse_route(&self.received[self.at..], false) {
                RouteParsed::Verb(RouteVerb::Connect(json), taken)
                    if !has_connected && shard.admits_route(&self.peer, json) =>
                {
                    self.at += taken;
                }
                RouteParsed::Verb(RouteVerb::Ping, taken) if has_connected => {
                    self.received.drain(self.at..self.at + taken);
                    return Step::Answer;
                }
                RouteParsed::Verb(RouteVerb::Info(json), _) if has_connected => {
                    let info = RouteInfo::parse(json);
                    return Step::Open(info.map(|info| info.carries()));
                }
                RouteParsed::Partial { .. } => return Step::Read,
                _ => return Step::Open(None),
            }
        }
    }
}

impl Server {
    /// Opens the connection of a route with a server at `ip`. An accepted one begins on any shard.
    pub(crate) fn open_route(
        &mut self,
        dial: Option<RouteDial>,
        accepting_shard: usize,
        ip: &str,
        room_bytes: usize,
    ) -> ConnectionKey {
        let shard = match &dial {
            None => accepting_shard,
            Some(dial) => self.home_of(&dial.carries),
        };
        self.connections_opened += 1;
        let peer = Peer {
            kind: ConnectionKind::Route,
            ip: ip.into(),
            port: 40_000,
            is_greeted: true,
            ..Peer::default()
        };
        let mut connection = Connection::new(shard, room_bytes);
        let greeting = self.threads[shard].shard.route_greeting(dial.as_ref());
        connection.socket.to_client.extend(greeting);
        connection.is_route = true;
        connection.greeting = Some(Greeting {
            cid: self.connections_opened,
            dial,
            peer,
            begun_at: self.now.since_start,
            received: Vec::new(),
            at: 0,
        });
        self.connections.push(Some(connection));
        ConnectionKey(self.connections.len() - 1)
    }

    /// Returns the shard that serves the routes that carry this.
    fn home_of(&self, carries: &Carries) -> usize {
        let routes = self.config.routes.as_ref();
        routes.map_or(0, |routes| usize::from(routes.shard_of(carries)))
    }

    /// Reads up to `bytes_max` of a route without a session. Returns whether there was anything.
    pub(super) fn greet(&mut self, key: ConnectionKey, bytes_max: usize) -> bool {
        let Some(connection) = self.connections[key.0].as_mut() else {
            return false;
        };
        let Some(greeting) = &mut connection.greeting else {
            return false;
        };
        let new = connection.socket.read_at_server(bytes_max);
        if new.is_empty() {
            let is_at_end = connection.socket.is_client_gone;
            if is_at_end {
                self.open_session(key, None);
            }
            return is_at_end;
        }
        greeting.received.extend(new);
        loop {
            match greeting.step(&self.threads[connection.shard].shard) {
                Step::Read => return true,
                Step::Answer => connection.socket.to_client.extend(b"PONG\r\n"),
                Step::Open(carries) => {
                    let home = carries.map(|carries| self.home_of(&carries));
                    self.open_session(key, home);
                    return true;
                }
            }
        }
    }

    /// Opens the session of a route, on another shard if the route was accepted and belongs there.
    fn open_session(&mut self, key: ConnectionKey, home: Option<usize>) {
        let Some(connection) = self.connections[key.0].as_mut() else {
            return;
        };
        let Some(greeting) = connection.greeting.take() else {
            return;
        };
        if let (None, Some(home)) = (&greeting.dial, home) {
            connection.shard = home;
        }
        let shard = connection.shard;
        let session = self.threads[shard].shard.open_route(
            greeting.cid,
            greeting.peer,
            greeting.dial,
            None,
            greeting.begun_at,
        );
        connection.session = Some(session);
        self.take_input(key, session, &greeting.received);
    }

    /// Opens the sessions of routes whose greeting takes too long, which then end. Returns whether there were any.
    pub(super) fn end_late_greetings(&mut self, shard: usize) -> bool {
        let Some(routes) = &self.config.routes else {
            return false;
        };
        let now = self.now.since_start;
        let is_late = |connection: &Connection| {
            let greeting = connection.greeting.as_ref();
            let limit = greeting.map(|greeting| greeting.begun_at + routes.auth_timeout);
            connection.shard == shard && limit.is_some_and(|limit| limit <= now)
        };
        let all = self.connections.iter().enumerate();
        let late: Vec<usize> = all
            .filter(|(_, connection)| connection.as_ref().is_some_and(is_late))
            .map(|(at, _)| at)
            .collect();
        for at in &late {
            self.open_session(ConnectionKey(*at), None);
        }
        !late.is_empty()
    }

    /// Takes the events about peers.
    pub(crate) fn take_route_events(&mut self) -> Vec<RouteEvent> {
        std::mem::take(&mut self.route_events)
    }

    /// Takes the routes that have ended.
    pub(crate) fn take_ended_routes(&mut self) -> Vec<(ConnectionKey, RouteEnded)> {
        std::mem::take(&mut self.ended_routes)
    }

    /// Returns whether events or ended routes wait for the dialer.
    pub(crate) fn has_news_of_routes(&self) -> bool {
        !self.route_events.is_empty() || !self.ended_routes.is_empty()
    }

    /// Returns whether the connection of a route is open, with a session or before it.
    pub(crate) fn has_route(&self, key: ConnectionKey) -> bool {
        let connection = self.connections.get(key.0).and_then(Option::as_ref);
        connection.is_some_and(|it| it.session.is_some() || it.greeting.is_some())
    }

    /// Returns the number of routes in any phase, and the number of registered ones for each peer.
    pub(crate) fn count_routes(&self) -> (usize, BTreeMap<String, usize>) {
        let mut all = 0;
        let mut by_peer: BTreeMap<String, usize> = BTreeMap::new();
        for thread in &self.threads {
            all += thread.shard.route_ids().len();
            for route in thread.shard.routes(RouteDetail::None) {
                *by_peer.entry(route.remote_id).or_default() += 1;
            }
        }
        (all, by_peer)
    }

    /// Returns the interest that this server knows of its peers.
    pub(crate) fn known_interest(&self) -> KnownInterest {
        let mut known = Vec::new();
        for thread in &self.threads {
            let routes = thread.shard.routes(RouteDetail::None);
            for id in thread.shard.route_ids() {
                let cid = thread.shard.cid(id);
                let Some(route) = routes.iter().find(|route| Some(route.rid) == cid) else {
                    continue;
                };
                for subscription in thread.shard.subscriptions(id) {
                    // The sid of a peer's subscription begins with the account.
                    let mut account = [0; 4];
                    let bytes = subscription.sid.as_bytes().iter();
                    account
                        .iter_mut()
                        .zip(bytes)
                        .for_each(|(to, byte)| *to = *byte);
                    known.push((
                        route.remote_id.clone(),
                        AccountId(u32::from_le_bytes(account)),
                        subscription.subject,
                        subscription.queue,
                    ));
                }
            }
        }
        known.sort();
        known
    }

    /// Returns whether any shard takes a subject of an account to have subscribers.
    pub(crate) fn has_subscriber(&mut self, account: AccountId, subject: &str) -> bool {
        let mut shards = self.threads.iter_mut();
        shards.any(|thread| thread.shard.has_subscriber(account, subject.as_bytes()))
    }
}
