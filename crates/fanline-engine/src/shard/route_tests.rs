use std::sync::Arc;
use std::time::Duration;

use super::tests::{Client, Simulation};
use super::{ServerInfo, SessionId, ShardConfig};
use crate::auth::{Access, AccessConfig, AccountId, Auth, ConnectionKind, Peer};
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::info::ClientUrls;
use crate::limits::Limits;
use crate::session::connections::REMOVED_AT_ONCE_MAX;
use crate::session::leaf::Agreed;
use crate::session::route::{
    Carries, GossipMode, RouteDetail, RouteDial, RouteEvent, RouteInfo, RouteOutcome, RouteSettings,
};

/// The id of the server under test.
const OWN: &str = "NOWN";

impl Simulation {
    /// Creates a server of the cluster `c`.
    pub(super) fn clustered(shards: usize) -> Self {
        Simulation::member(OWN, "own", shards, Auth::Open)
    }

    fn member(id: &str, name: &str, shards: usize, auth: Auth) -> Self {
        Simulation::with_routes(id, name, shards, auth, settings())
    }

    pub(super) fn with_routes(
        id: &str,
        name: &str,
        shards: usize,
        auth: Auth,
        routes: RouteSettings,
    ) -> Self {
        let config = ShardConfig {
            limits: Limits::default(),
            auth,
            shards,
            traces: false,
            leafs: None,
            routes: Some(Arc::new(routes)),
            gateways: None,
        };
        let info = ServerInfo {
            server_id: id.into(),
            server_name: name.into(),
            cluster: Some("c".into()),
            headers: true,
            ..ServerInfo::default()
        };
        Simulation::of(config, &info)
    }

    pub(super) fn change_routes(&mut self, change: impl Fn(&mut RouteSettings)) {
        for shard in &mut self.shards {
            let exchange = &mut shard.broker.exchange;
            let mut routes = (**exchange.config.routes.as_ref().unwrap()).clone();
            change(&mut routes);
            exchange.config = Arc::new(ShardConfig {
                routes: Some(Arc::new(routes)),
                ..(*exchange.config).clone()
            });
        }
    }

    /// Opens a route: a dialed one with `dial`, otherwise an accepted one.
    fn open_route(&mut self, dial: Option<RouteDial>) -> Client {
        self.open_route_on(0, dial)
    }

    pub(super) fn open_route_on(&mut self, shard: usize, dial: Option<RouteDial>) -> Client {
        let peer = Peer {
            kind: ConnectionKind::Route,
            ip: "10.0.0.2".into(),
            port: 40_000,
            ..Peer::default()
        };
        let cid = self.shards[shard].broker.exchange.sessions.len() as u64 + 100;
        let id = self.shards[shard].open_route(cid, peer, dial, None, Duration::ZERO);
        Client { shard, id }
    }

    pub(super) fn events(&mut self) -> Vec<RouteEvent> {
        let shards = self.shards.iter_mut();
        shards.flat_map(|shard| shard.take_route_events()).collect()
    }

    pub(super) fn outcome(&self, route: Client) -> RouteOutcome {
        let session = &self.shards[route.shard].broker.exchange.sessions[route.id.index()];
        session.kind.route().unwrap().outcome.clone()
    }
}

pub(super) fn settings() -> RouteSettings {
    RouteSettings {
        host: "127.0.0.1".into(),
        port: 6222,
        auth_timeout: Duration::from_secs(2),
        client_urls: urls("127.0.0.1:4222"),
        ..RouteSettings::default()
    }
}

/// Returns an address for clients.
fn urls(plain: &str) -> ClientUrls {
    ClientUrls {
        plain: vec![plain.into()],
        websocket: Vec::new(),
    }
}

/// Returns the CONNECT of a peer.
pub(super) fn connect(id: &str) -> String {
    format!("CONNECT {{\"name\":\"{id}\",\"cluster\":\"c\",\"headers\":true}}\r\n")
}

/// Returns the INFO of a peer.
pub(super) fn info(id: &str) -> String {
    format!(
        "INFO {{\"server_id\":\"{id}\",\"server_name\":\"name-{id}\",\"cluster\":\"c\",\"port\":6222,\"headers\":true,\"connect_urls\":[\"10.0.0.2:4222\"]}} \r\n"
    )
}

/// Accepts a route, and discards its first output, except for interest.
fn accepted(simulation: &mut Simulation, id: &str) -> Client {
    let route = simulation.open_route(None);
    let own = simulation.read(route);
    assert!(own.starts_with("INFO {\"server_id\":\"NOWN\""), "{own}");
    simulation.send(route, &(connect(id) + &info(id)));
    route
}

pub(super) fn explicit() -> RouteDial {
    RouteDial {
        id: 1,
        user: "ada".into(),
        password: "secret".into(),
        is_explicit: true,
        ..RouteDial::default()
    }
}

#[test]
fn acceptor_sends_info_first_and_interest_after_the_peers_info() {
    let mut simulation = Simulation::clustered(1);
    let client = simulation.client(0);
    simulation.send(client, "SUB a.* 1\r\nSUB a.* q 2\r\nSUB a.* q 3\r\n");
    let route = simulation.open_route(None);
    let own = simulation.read(route);
    let json = own.strip_prefix("INFO ").unwrap().trim();
    let parsed = RouteInfo::parse(json.as_bytes()).unwrap();
    assert_eq!((&*parsed.server_id, &*parsed.cluster), (OWN, "c"));
    assert_eq!(parsed.connect_urls, ["127.0.0.1:4222"]);
    assert_eq!((parsed.port, parsed.route_pool_size), (6222, 0));
    simulation.send(route, &connect("NA"));
    assert_eq!(simulation.read(route), "");
    simulation.send(route, "PING\r\n");
    assert_eq!(simulation.read(route), "PONG\r\n");
    simulation.send(route, &info("NA"));
    let output = simulation.read(route);
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["RS+ $G a.*", "RS+ $G a.* q 2"]);
    assert_eq!(
        simulation.events(),
        [RouteEvent::Joined {
            id: "NA".into(),
            name: "name-NA".into(),
            carries: Carries::default(),
            client_urls: urls("10.0.0.2:4222"),
        }]
    );
}

#[test]
fn dialer_sends_connect_first_and_info_after_the_peers_info() {
    let mut simulation = Simulation::clustered(1);
    let client = simulation.client(0);
    simulation.send(client, "SUB a 1\r\n");
    let route = simulation.open_route(Some(RouteDial {
        gossip_mode: GossipMode::Override,
        ..explicit()
    }));
    let output = simulation.read(route);
    assert!(output.starts_with("CONNECT {\"echo\":true,"), "{output}");
    assert!(output.contains("\"user\":\"ada\",\"pass\":\"secret\""));
    assert!(output.contains("\"name\":\"NOWN\",\"cluster\":\"c\""));
    simulation.send(route, &info("NA"));
    let output = simulation.read(route);
    let (line, rest) = output.split_once("\r\n").unwrap();
    assert!(line.starts_with("INFO {\"server_id\":\"NOWN\""), "{line}");
    assert!(line.contains("\"gossip_mode\":2"), "{line}");
    assert_eq!(rest, "RS+ $G a\r\n");
    let status = simulation.shards[0].routes(RouteDetail::None);
    assert_eq!(status.len(), 1);
    assert_eq!(&*status[0].remote_name, "name-NA");
    assert!(status[0].did_solicit && status[0].is_configured);
}

#[test]
fn messages_and_interest_cross_both_ways() {
    for shards in [1, 2, 3] {
        let mut simulation = Simulation::clustered(shards);
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB before.* 1\r\n");
        let route = accepted(&mut simulation, "NA");
        assert_eq!(simulation.read(route), "RS+ $G before.*\r\n");
        simulation.send(client, "SUB later 2\r\nSUB later 3\r\n");
        assert_eq!(simulation.read(route), "RS+ $G later\r\n");
        simulation.send(client, "UNSUB 2\r\n");
        assert_eq!(simulation.read(route), "");
        simulation.send(client, "UNSUB 3\r\n");
        assert_eq!(simulation.read(route), "RS- $G later\r\n");
        // Messages come in.
        simulation.send(
            route,
            "RMSG $G before.x 2\r\nhi\r\nHMSG $G before.y r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        );
        assert_eq!(
            simulation.read(client),
            "MSG before.x 1 2\r\nhi\r\nHMSG before.y 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
        );
        // Messages go out once each, even if several filters match.
        simulation.send(
            route,
            "RS+ $G there.*\r\nRS+ $G there.>\r\nRS+ $G there.a\r\n",
        );
        for _ in 0..3 {
            simulation.send(client, "PUB there.a r 2\r\nhi\r\n");
            assert_eq!(simulation.read(route), "RMSG $G there.a r 2\r\nhi\r\n");
        }
        simulation.send(client, &"PUB there.a 2\r\nhi\r\n".repeat(5));
        assert_eq!(
            simulation.read(route),
            "RMSG $G there.a 2\r\nhi\r\n".repeat(5)
        );
        simulation.send(client, "HPUB there.b 12 14\r\nNATS/1.0\r\n\r\nhi\r\n");
        assert_eq!(
            simulation.read(route),
            "HMSG $G there.b 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
        );
        simulation.send(
            route,
            "RS- $G there.*\r\nRS- $G there.>\r\nRS- $G there.a\r\n",
        );
        simulation.send(client, "PUB there.a 2\r\nhi\r\n");
        assert_eq!(simulation.read(route), "");
    }
}

#[test]
fn message_from_a_route_takes_one_hop() {
    for shards in [1, 2] {
        let mut simulation = Simulation::clustered(shards);
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB a 1\r\n");
        let [one, two] = ["NA", "NB"].map(|id| accepted(&mut simulation, id));
        for route in [one, two] {
            simulation.send(route, "RS+ $G a\r\nRS+ $G only\r\n");
            simulation.read(route);
        }
        let from_one = "RMSG $G a 2\r\nhi\r\n".repeat(4) + "RMSG $G only 2\r\nhi\r\n";
        simulation.send(one, &from_one);
        assert_eq!(simulation.read(client), "MSG a 1 2\r\nhi\r\n".repeat(4));
        assert_eq!(simulation.read(one) + &simulation.read(two), "");
        // A client's message goes to both.
        simulation.send(client, "PUB only 2\r\nhi\r\n");
        for route in [one, two] {
            assert_eq!(simulation.read(route), "RMSG $G only 2\r\nhi\r\n");
        }
    }
}

#[test]
fn weights_of_queue_groups_are_announced_with_each_change() {
    for shards in [1, 2] {
        let mut simulation = Simulation::clustered(shards);
        let clients = [0, shards - 1].map(|shard| simulation.client(shard));
        let route = accepted(&mut simulation, "NA");
        for (client, input, expected) in [
            (0, "SUB a q 1\r\n", "RS+ $G a q 1\r\n"),
            (1, "SUB a q 1\r\n", "RS+ $G a q 2\r\n"),
            (1, "SUB a q 2\r\n", "RS+ $G a q 3\r\n"),
            (1, "UNSUB 2\r\n", "RS+ $G a q 2\r\n"),
            (0, "UNSUB 1\r\n", "RS+ $G a q 1\r\n"),
            (1, "UNSUB 1\r\n", "RS- $G a q\r\n"),
        ] {
            simulation.send(clients[client], input);
            assert_eq!(simulation.read(route), expected, "{input:?}");
        }
    }
}

#[test]
fn group_member_is_chosen_in_the_whole_cluster_by_weight() {
    for shards in [1, 2] {
        let mut simulation = Simulation::clustered(shards);
        let local = simulation.client(0);
        let publisher = simulation.client(shards - 1);
        simulation.send(local, "SUB a q 1\r\n");
        let [one, two] = ["NA", "NB"].map(|id| accepted(&mut simulation, id));
        simulation.send(one, "RS+ $G a q 3\r\n");
        simulation.send(two, "RS+ $G a q 6\r\nRS+ $G a\r\n");
        for route in [one, two] {
            simulation.read(route);
        }
        simulation.send(publisher, &"PUB a 2\r\nhi\r\n".repeat(1000));
        let count = |text: String, line: &str| text.matches(line).count();
        let local = count(simulation.read(local), "MSG a 1 2\r\n");
        let one = count(simulation.read(one), "RMSG $G a | q 2\r\n");
        let two_lines = simulation.read(two);
        let two = count(two_lines.clone(), "RMSG $G a | q 2\r\n");
        let plain = count(two_lines, "RMSG $G a 2\r\n");
        // The plain subscription and the group's member at the same peer share one line.
        assert_eq!((local + one + two, two + plain), (1000, 1000));
        for (found, expected) in [(local, 100), (one, 300), (two, 600)] {
            assert!(found.abs_diff(expected) < 80, "{found} of {expected}");
        }
    }
}

#[test]
fn routed_message_reaches_only_listed_groups() {
    for shards in [1, 2] {
        let mut simulation = Simulation::clustered(shards);
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB a 1\r\nSUB a q1 2\r\nSUB a q2 3\r\n");
        let route = accepted(&mut simulation, "NA");
        for (line, expected) in [
            ("RMSG $G a 2", &["MSG a 1 2"][..]),
            ("RMSG $G a | q1 2", &["MSG a 1 2", "MSG a 2 2"]),
            (
                "RMSG $G a + r q1 q2 2",
                &["MSG a 1 r 2", "MSG a 2 r 2", "MSG a 3 r 2"],
            ),
            ("RMSG $G a | other 2", &["MSG a 1 2"]),
        ] {
            simulation.send(route, &format!("{line}\r\nhi\r\n"));
            let output = simulation.read(client);
            let mut lines: Vec<&str> = output.lines().filter(|line| *line != "hi").collect();
            lines.sort_unstable();
            assert_eq!(lines, expected, "{line}");
        }
    }
}

#[test]
fn group_without_a_member_sends_the_message_to_another_peer() {
    let mut simulation = Simulation::clustered(2);
    let [one, two] = ["NA", "NB"].map(|id| accepted(&mut simulation, id));
    simulation.send(two, "RS+ $G a q 1\r\n");
    for route in [one, two] {
        simulation.read(route);
    }
    // The sender has not yet heard that this server's last member has left.
    simulation.send(one, "RMSG $G a + r q 2\r\nhi\r\n");
    assert_eq!(simulation.read(two), "RMSG $G a + r q 2\r\nhi\r\n");
    // If the only members are at the sender, it gets the message back.
    simulation.send(two, "RS- $G a q\r\n");
    simulation.send(one, "RS+ $G a q 1\r\nRMSG $G a + r q 2\r\nhi\r\n");
    assert_eq!(simulation.read(one), "RMSG $G a + r q 2\r\nhi\r\n");
    let client = simulation.client(1);
    simulation.send(client, "SUB a q 1\r\n");
    for route in [one, two] {
        simulation.read(route);
    }
    simulation.send(one, &"RMSG $G a | q 2\r\nhi\r\n".repeat(20));
    assert_eq!(simulation.read(client), "MSG a 1 2\r\nhi\r\n".repeat(20));
    assert_eq!(simulation.read(two), "");
}

#[test]
fn much_interest_of_a_lost_peer_is_removed_in_steps() {
    let mut simulation = Simulation::clustered(2);
    let [lost, other] = ["NA", "NB"].map(|id| accepted(&mut simulation, id));
    let client = simulation.client(1);
    let interest = |number| format!("RS+ $G a.{number}\r\nRS+ $G g.{number} q 1\r\n");
    let lines: String = (0..REMOVED_AT_ONCE_MAX).map(interest).collect();
    simulation.send(lost, &lines);
    simulation.send(other, "RS+ $G g.0 q 1\r\n");
    for route in [lost, other] {
        simulation.read(route);
    }
    simulation.shards[0].end(lost.id, CloseReason::ClientClosed);
    simulation.exchange();
    // Other members of a queue group receive its messages at once.
    simulation.send(client, &"PUB g.0 0\r\n\r\n".repeat(20));
    assert_eq!(
        simulation.read(other),
        "RMSG $G g.0 | q 0\r\n\r\n".repeat(20)
    );
    simulation.send(client, "PUB a.0 0\r\n\r\n");
    assert_eq!(simulation.read(lost), "");
    let mut portions = 1;
    while simulation.shards[0].remove_some_subscriptions(lost.id) {
        portions += 1;
    }
    simulation.exchange();
    assert_eq!(portions, 4);
    for shard in &mut simulation.shards {
        assert!(!shard.has_subscriber(AccountId::GLOBAL, b"a.0"));
        assert!(!shard.has_subscriber(AccountId::GLOBAL, b"g.1"));
    }
    let ended = simulation.shards[0].remove(lost.id, CloseReason::ClientClosed);
    assert!(ended.is_some_and(|ended| ended.status.subscriptions == 2 * REMOVED_AT_ONCE_MAX));
}

#[test]
fn reply_interest_is_announced_before_the_request() {
    for shards in [1, 2] {
        let mut simulation = Simulation::clustered(shards);
        let route = accepted(&mut simulation, "NA");
        simulation.send(route, "RS+ $G ask\r\n");
        simulation.read(route);
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB in.1 1\r\nPUB ask in.1 1\r\n?\r\n");
        assert_eq!(
            simulation.read(route),
            "RS+ $G in.1\r\nRMSG $G ask in.1 1\r\n?\r\n"
        );
        simulation.send(route, "RMSG $G in.1 1\r\n!\r\n");
        assert_eq!(simulation.read(client), "MSG in.1 1 1\r\n!\r\n");
    }
}

#[test]
fn interest_of_a_lost_peer_is_gone() {
    for shards in [1, 2] {
        let mut simulation = Simulation::clustered(shards);
        let client = simulation.client(shards - 1);
        let [one, two] = ["NA", "NB"].map(|id| accepted(&mut simulation, id));
        simulation.send(one, "RS+ $G a\r\nRS+ $G a q 2\r\n");
        simulation.events();
        simulation.shards[0].remove(one.id, CloseReason::ReadError);
        // Any input lets the shards exchange their batches.
        simulation.send(two, "PING\r\n");
        assert_eq!(simulation.read(two), "PONG\r\n");
        simulation.send(client, "SUB in 1\r\nPUB a in 2\r\nhi\r\n");
        let output = simulation.read(client);
        assert!(output.starts_with("HMSG in 1 "), "no 503: {output}");
        assert_eq!(
            simulation.events(),
            [RouteEvent::Left {
                id: "NA".into(),
                carries: Carries::default(),
            }]
        );
        // Others still hear of changes, and a peer may come back.
        assert_eq!(simulation.read(two), "RS+ $G in\r\n");
        let again = accepted(&mut simulation, "NA");
        assert_eq!(simulation.read(again), "RS+ $G in\r\n");
        simulation.send(client, "PING\r\n");
        simulation.read(client);
        for route in [two, again] {
            simulation.shards[0].remove(route.id, CloseReason::ReadError);
        }
        simulation.send(client, "UNSUB 1\r\nSUB other 2\r\n");
        let last = accepted(&mut simulation, "NA");
        assert_eq!(simulation.read(last), "RS+ $G other\r\n");
    }
}

/// Input of a peer, the answer to it, and the reason for the end of the connection.
const REFUSED: [(&str, &str, CloseReason); 12] = [
    (
        "INFO {\"server_id\":\"NA\"}\r\n",
        "-ERR 'Authorization Violation'\r\n",
        CloseReason::AuthenticationFailure,
    ),
    (
        "PING\r\n",
        "-ERR 'Authorization Violation'\r\n",
        CloseReason::AuthenticationFailure,
    ),
    (
        "RMSG $G a 2\r\nhi\r\n",
        "-ERR 'Authorization Violation'\r\n",
        CloseReason::AuthenticationFailure,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"wrong\",\"cluster\":\"c\"}\r\n",
        "-ERR 'Authorization Violation'\r\n",
        CloseReason::AuthenticationFailure,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"secret\",\"lang\":\"go\"}\r\n",
        "-ERR 'attempted to connect to route port'\r\n",
        CloseReason::WrongPort,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"secret\",\"gateway\":\"g\"}\r\n",
        "-ERR 'Rejecting connection from gateway \"g\" on the Route port'\r\n",
        CloseReason::WrongGateway,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"secret\",\"cluster\":\"d\"}\r\n",
        "-ERR 'Rejecting connection, cluster name \"d\" does not match \"c\"'\r\n",
        CloseReason::ClusterNameConflict,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"secret\",\"cluster\":\"c\"}\r\nRS+ $G a\r\n",
        "",
        CloseReason::ProtocolViolation,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"secret\",\"cluster\":\"c\"}\r\n\
             INFO {\"server_id\":\"NA\",\"server_name\":\"own\"}\r\n",
        "",
        CloseReason::DuplicateServerName,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"secret\",\"cluster\":\"c\"}\r\n\
             INFO {\"server_id\":\"NA\",\"route_account\":\"$SYS\"}\r\n",
        "-ERR 'Not possible to have a dedicated route for account \"$SYS\" between those servers'\r\n",
        CloseReason::ProtocolViolation,
    ),
    (
        "CONNECT {\"user\":\"ada\",\"pass\":\"secret\",\"cluster\":\"c\"}\r\n\
             INFO {\"server_id\":\"NOWN\"}\r\n",
        "",
        CloseReason::DuplicateRoute,
    ),
    (
        "GET / HTTP/1.1\r\n",
        "-ERR 'Unknown Protocol Operation'\r\n",
        CloseReason::ProtocolViolation,
    ),
];

#[test]
fn peers_are_refused_with_nats_servers_errors() {
    let mut simulation = Simulation::clustered(1);
    simulation.change_routes(|routes| {
        routes.user = "ada".into();
        routes.password = "secret".into();
    });
    for (input, answer, reason) in REFUSED {
        let route = simulation.open_route(None);
        simulation.read(route);
        simulation.send(route, input);
        assert_eq!(simulation.read(route), answer, "{input:?}");
        assert_eq!(simulation.is_ended(route), Some(reason), "{input:?}");
        assert_eq!(
            simulation.shards[0].routes(RouteDetail::None).len(),
            0,
            "{input:?}"
        );
    }
    assert_eq!(simulation.events(), []);
}

#[test]
fn silent_peer_is_closed_after_the_timeout() {
    let mut simulation = Simulation::clustered(1);
    let accepted = simulation.open_route(None);
    let dialed = simulation.open_route(Some(explicit()));
    for route in [accepted, dialed] {
        simulation.read(route);
    }
    simulation.shards[0].handle_timeout(Duration::from_millis(1999));
    assert_eq!(simulation.is_ended(accepted), None);
    simulation.shards[0].handle_timeout(Duration::from_secs(2));
    for route in [accepted, dialed] {
        let reason = CloseReason::AuthenticationTimeout;
        assert_eq!(simulation.is_ended(route), Some(reason));
        assert_eq!(simulation.read(route), "-ERR 'Authentication Timeout'\r\n");
    }
}

#[test]
fn second_route_of_a_peer_is_a_duplicate() {
    let mut simulation = Simulation::clustered(1);
    let client = simulation.client(0);
    let first = accepted(&mut simulation, "NA");
    let second = simulation.open_route(Some(explicit()));
    simulation.read(second);
    simulation.send(second, &info("NA"));
    assert_eq!(
        simulation.is_ended(second),
        Some(CloseReason::DuplicateRoute)
    );
    assert_eq!(
        simulation.outcome(second),
        RouteOutcome::Duplicate("NA".into())
    );
    let ended = simulation.shards[0].remove(second.id, CloseReason::ClientClosed);
    assert_eq!(ended.unwrap().route.unwrap().peer_name, "");
    // The first route stays, and is now one of a configured peer.
    assert_eq!(simulation.is_ended(first), None);
    assert!(simulation.shards[0].routes(RouteDetail::None)[0].is_configured);
    simulation.send(first, "RS+ $G a\r\n");
    simulation.send(client, "PUB a 2\r\nhi\r\n");
    assert_eq!(simulation.read(first), "RMSG $G a 2\r\nhi\r\n");
    let itself = simulation.open_route(Some(explicit()));
    simulation.send(itself, &info(OWN));
    assert_eq!(simulation.outcome(itself), RouteOutcome::OwnServer);
}

/// Returns the gossip in a route's output: the server, its address, and the mode.
fn gossip_of(output: &str) -> Vec<(String, String, GossipMode)> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("INFO "));
    let infos = lines.map(|json| RouteInfo::parse(json.trim().as_bytes()).unwrap());
    infos
        .filter(|info| info.server_id != OWN)
        .map(|info| (info.server_id, info.ip, info.gossip_mode))
        .collect()
}

#[test]
fn new_peer_is_announced_as_the_reference_says() {
    let dial = |is_explicit, gossip_mode| {
        Some(RouteDial {
            is_explicit,
            gossip_mode,
            ..RouteDial::default()
        })
    };
    let with_mode =
        |mode: u8| info("NB").replace("\"port\"", &format!("\"gossip_mode\":{mode},\"port\""));
    for (known, new, new_info, expected) in [
        (None, None, info("NB"), Some(GossipMode::Disabled)),
        (
            dial(true, GossipMode::Default),
            None,
            info("NB"),
            Some(GossipMode::Override),
        ),
        (None, None, with_mode(1), None),
        (None, None, with_mode(2), Some(GossipMode::Disabled)),
        (
            None,
            dial(true, GossipMode::Default),
            info("NB"),
            Some(GossipMode::Override),
        ),
        (None, dial(false, GossipMode::Default), info("NB"), None),
        (None, dial(false, GossipMode::Disabled), info("NB"), None),
        (
            None,
            dial(false, GossipMode::Override),
            info("NB"),
            Some(GossipMode::Default),
        ),
    ] {
        let mut simulation = Simulation::clustered(1);
        let first = simulation.open_route(known.clone());
        if known.is_none() {
            simulation.send(first, &connect("NA"));
        }
        simulation.send(first, &info("NA"));
        simulation.read(first);
        let second = simulation.open_route(new.clone());
        if new.is_none() {
            simulation.send(second, &connect("NB"));
        }
        simulation.send(second, &new_info);
        let found = gossip_of(&simulation.read(first));
        let url = "nats-route://10.0.0.2:6222/".to_owned();
        let expected: Vec<_> = (expected.into_iter())
            .map(|mode| ("NB".to_owned(), url.clone(), mode))
            .collect();
        assert_eq!(found, expected, "{known:?} {new:?} {new_info}");
        assert_eq!(gossip_of(&simulation.read(second)), [], "{known:?} {new:?}");
    }
}

#[test]
fn gossip_about_servers_is_reported() {
    let mut simulation = Simulation::clustered(1);
    let route = accepted(&mut simulation, "NA");
    let known = accepted(&mut simulation, "NB");
    simulation.events();
    let about = |id: &str| {
        info(id).replace(
            "\"port\"",
            "\"ip\":\"nats-route://10.0.0.3:6222/\",\"gossip_mode\":2,\"port\"",
        )
    };
    // Gossip without an address, and about the peer itself, has no effect.
    simulation.send(route, &(about("NC") + &info("ND") + &about("NA")));
    assert_eq!(
        simulation.events(),
        [RouteEvent::Discovered {
            id: "NC".into(),
            url: "nats-route://10.0.0.3:6222/".into(),
            gossip_mode: GossipMode::Override,
            carries: Carries::Slot(0),
        }]
    );
    assert_eq!(simulation.is_ended(route), None);
    // A gateway's gossip has no effect.
    let gateway = "INFO {\"server_id\":\"GWNX\",\"gateway\":\"g\",\"ip\":\"x\"}\r\n";
    simulation.send(known, gateway);
    assert_eq!(simulation.events(), []);
    assert_eq!(simulation.is_ended(known), None);
}

#[test]
fn accounts_are_separate() {
    let mut config = AccessConfig::default();
    config.account_mut("A");
    let access = Access::new(config).unwrap();
    let account = access.account_id("A").unwrap();
    let auth = Auth::Directory(Arc::new(access));
    for shards in [1, 2] {
        let mut simulation = Simulation::member(OWN, "own", shards, auth.clone());
        let [global, other] = [0, 1].map(|_| simulation.client(shards - 1));
        let id: SessionId = other.id;
        simulation.shards[shards - 1].broker.bind(id, account);
        simulation.send(global, "SUB a 1\r\n");
        simulation.send(other, "SUB a 1\r\nSUB b 2\r\n");
        let route = accepted(&mut simulation, "NA");
        let output = simulation.read(route);
        let mut lines: Vec<&str> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["RS+ $G a", "RS+ A a", "RS+ A b"]);
        simulation.send(
            route,
            "RMSG A a 1\r\n1\r\nRMSG $G a 1\r\n2\r\nRMSG nobody a 1\r\n3\r\nRMSG A a 1\r\n4\r\nRMSG $G b 1\r\n5\r\n",
        );
        assert_eq!(simulation.read(global), "MSG a 1 1\r\n2\r\n");
        assert_eq!(
            simulation.read(other),
            "MSG a 1 1\r\n1\r\nMSG a 1 1\r\n4\r\n"
        );
        simulation.send(
            route,
            "RS+ A c\r\nRS+ nobody c\r\nRS+ $G c q 1\r\nRS- $G c q\r\n",
        );
        simulation.send(global, "PUB c 1\r\n1\r\n");
        simulation.send(other, "PUB c 1\r\n2\r\n");
        assert_eq!(simulation.read(route), "RMSG A c 1\r\n2\r\n");
        simulation.shards[0].remove(route.id, CloseReason::ReadError);
        simulation.send(other, "PING\r\n");
        simulation.read(other);
        simulation.send(other, "SUB in 9\r\nPUB c in 1\r\n2\r\n");
        assert!(simulation.read(other).starts_with("HMSG in 9 "));
    }
}

#[test]
fn stream_delivery_shows_its_subject() {
    let mut simulation = Simulation::clustered(1);
    let client = simulation.client(0);
    simulation.send(client, "SUB in.1 1\r\n");
    let route = accepted(&mut simulation, "NA");
    simulation.send(
        route,
        "RMSG $G in.1 $JS.ACK.s.c.1.2.3.4.5@orders.new 2\r\nhi\r\n",
    );
    assert_eq!(
        simulation.read(client),
        "MSG orders.new 1 $JS.ACK.s.c.1.2.3.4.5 2\r\nhi\r\n"
    );
}

#[test]
fn hub_of_this_server_does_not_receive_routed_messages() {
    let mut simulation = Simulation::clustered(1);
    let route = accepted(&mut simulation, "NA");
    let peer = Peer {
        kind: ConnectionKind::Leafnode,
        ..Peer::default()
    };
    let id = simulation.shards[0].open_leaf(7, peer, None, Agreed::default(), Duration::ZERO);
    let leaf = Client { shard: 0, id };
    simulation.send(
        leaf,
        "CONNECT {\"name\":\"edge\",\"cluster\":\"edge\",\"headers\":true,\"protocol\":3}\r\n\
         LS+ a\r\nLS+ b q 2\r\n",
    );
    simulation.read(leaf);
    let output = simulation.read(route);
    assert!(output.contains("RS+ $G a\r\n"), "{output}");
    assert!(output.contains("RS+ $G b q 2\r\n"), "{output}");
    simulation.send(route, "RMSG $G a 2\r\nhi\r\nRMSG $G b | q 2\r\nhi\r\n");
    assert_eq!(
        simulation.read(leaf),
        "LMSG a 2\r\nhi\r\nLMSG b | q 2\r\nhi\r\n"
    );
    simulation.send(route, "RS+ $G up\r\n");
    assert_eq!(simulation.read(leaf), "LS+ up\r\n");
    simulation.send(leaf, "LMSG up 2\r\nhi\r\n");
    assert_eq!(simulation.read(route), "RMSG $G up 2\r\nhi\r\n");
    // A leaf connection that leads to this server's own hub.
    let session = &mut simulation.shards[0].broker.exchange.sessions[id.index()];
    session.kind.leaf_mut().unwrap().is_remote_hub = true;
    simulation.send(route, "RMSG $G a 2\r\nhi\r\n");
    assert_eq!(simulation.read(leaf), "");
    simulation.send(leaf, "LMSG up 2\r\nhi\r\n");
    assert_eq!(simulation.read(route), "");
}

#[test]
fn clients_learn_the_addresses_of_the_cluster() {
    let mut simulation = Simulation::clustered(1);
    let [modern, silent, old] = [0; 3].map(|shard| simulation.open(shard));
    let browser = simulation.open_as(0, ConnectionKind::WebSocket);
    simulation.send(browser, "CONNECT {\"protocol\":1}\r\nPING\r\n");
    simulation.send(modern, "CONNECT {\"protocol\":1}\r\nPING\r\n");
    simulation.send(silent, "CONNECT {\"protocol\":1}\r\n");
    simulation.send(old, "CONNECT {}\r\nPING\r\n");
    for client in [modern, silent, old, browser] {
        assert!(!simulation.read(client).contains("connect_urls"));
    }
    let mut urls = urls("10.0.0.1:4222");
    urls.join(&ClientUrls {
        plain: vec!["10.0.0.2:4222".into(), "10.0.0.1:4222".into()],
        websocket: vec!["10.0.0.2:8080".into()],
    });
    simulation.shards[0].set_connect_urls(Arc::new(urls));
    assert!((simulation.read(browser)).contains("\"connect_urls\":[\"10.0.0.2:8080\"]"));
    let expected = "\"connect_urls\":[\"10.0.0.1:4222\",\"10.0.0.2:4222\"]";
    let output = simulation.read(modern);
    assert!(
        output.starts_with("INFO ") && output.contains(expected),
        "{output}"
    );
    for client in [silent, old] {
        assert_eq!(simulation.read(client), "");
    }
    simulation.send(silent, "PING\r\n");
    assert!(simulation.read(silent).contains(expected));
    let later = simulation.open(0);
    assert!(simulation.read(later).contains(expected));
}

/// Several servers, whose routes carry bytes only when a test says so.
pub(super) struct Mesh {
    pub(super) servers: Vec<Simulation>,
    /// The two ends of each connection: a server, and its session.
    routes: Vec<[(usize, Client); 2]>,
}

impl Mesh {
    fn new(servers: usize, shards: usize) -> Self {
        Mesh::with(servers, shards, &Auth::Open)
    }

    pub(super) fn with(servers: usize, shards: usize, auth: &Auth) -> Self {
        let names = (0..servers).map(|at| (format!("N{at}"), format!("server-{at}")));
        let servers = names.map(|(id, name)| Simulation::member(&id, &name, shards, auth.clone()));
        let mut mesh = Mesh {
            servers: servers.collect(),
            routes: Vec::new(),
        };
        for dialer in 0..mesh.servers.len() {
            for acceptor in 0..dialer {
                mesh.dial(dialer, acceptor);
            }
        }
        mesh.settle();
        mesh
    }

    fn dial(&mut self, dialer: usize, acceptor: usize) {
        let from = self.servers[dialer].open_route(Some(explicit()));
        let to = self.servers[acceptor].open_route(None);
        self.routes.push([(dialer, from), (acceptor, to)]);
    }

    /// Passes all bytes between the servers until there are none.
    pub(super) fn settle(&mut self) {
        loop {
            let mut moved = false;
            for [one, two] in self.routes.clone() {
                for ((from, source), (to, target)) in [(one, two), (two, one)] {
                    let bytes = self.servers[from].read(source);
                    if !bytes.is_empty() && self.servers[to].is_ended(target).is_none() {
                        self.servers[to].send(target, &bytes);
                        moved = true;
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }
}

#[test]
fn three_servers_are_one_to_their_clients() {
    for shards in [1, 2] {
        let mut mesh = Mesh::new(3, shards);
        let clients: Vec<Client> = (0..3)
            .map(|at| mesh.servers[at].client(shards - 1))
            .collect();
        for (at, client) in clients.iter().enumerate() {
            mesh.servers[at].send(*client, "SUB all 1\r\nSUB one q 2\r\n");
        }
        mesh.settle();
        for (at, client) in clients.iter().enumerate() {
            assert_eq!(
                mesh.servers[at].shards[0].routes(RouteDetail::None).len(),
                2
            );
            mesh.servers[at].send(*client, "PUB all 1\r\nx\r\n");
        }
        mesh.settle();
        for (at, client) in clients.iter().enumerate() {
            let output = mesh.servers[at].read(*client);
            assert_eq!(output, "MSG all 1 1\r\nx\r\n".repeat(3), "server {at}");
        }
        mesh.servers[0].send(clients[0], &"PUB one 1\r\nx\r\n".repeat(300));
        mesh.settle();
        let counts: Vec<usize> = (0..3)
            .map(|at| {
                mesh.servers[at]
                    .read(clients[at])
                    .matches("MSG one")
                    .count()
            })
            .collect();
        assert_eq!(counts.iter().sum::<usize>(), 300, "{counts:?}");
        assert!(counts.iter().all(|count| *count > 60), "{counts:?}");
    }
}

#[test]
fn crossing_dials_leave_at_least_one_side_aware_of_the_duplicate() {
    let mut mesh = Mesh::new(1, 1);
    let second = Simulation::member("N1", "server-1", 1, Auth::Open);
    mesh.servers.push(second);
    mesh.dial(0, 1);
    mesh.dial(1, 0);
    mesh.settle();
    let mut kept = 0;
    for server in &mut mesh.servers {
        assert!(server.shards[0].routes(RouteDetail::None).len() <= 1);
        kept += server.shards[0].routes(RouteDetail::None).len();
    }
    assert!(kept >= 1, "neither server has registered the other");
}
