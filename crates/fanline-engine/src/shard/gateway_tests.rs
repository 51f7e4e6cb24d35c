use std::sync::Arc;
use std::time::Duration;

use super::tests::{Client, Simulation};
use super::{ServerInfo, ShardConfig};
use crate::auth::{Access, AccessConfig, Account, Auth, ConnectionKind, Peer};
use crate::codec::gateway::{GatewayInfo, ReplyMark};
use crate::codec::nats::error::CloseReason;
use crate::limits::Limits;
use crate::session::gateway::{
    GatewayDial, GatewayEvent, GatewayMode, GatewayOutcome, GatewaySettings, KnownGateway,
};
use crate::session::leaf::Agreed;
use crate::session::route::RouteSettings;

/// The id of the server under test, which is in the cluster `c`.
const OWN: &str = "NOWN";

impl Simulation {
    /// Creates a server of the cluster `c`, with gateways to the cluster `b`.
    fn connected(shards: usize, change: impl Fn(&mut GatewaySettings)) -> Self {
        let mut gateways = GatewaySettings {
            name: "c".into(),
            host: "127.0.0.1".into(),
            port: 7222,
            url: "127.0.0.1:7222".into(),
            auth_timeout: Duration::from_secs(2),
            configured: vec!["b".into()],
            ..GatewaySettings::default()
        };
        change(&mut gateways);
        let routes = RouteSettings {
            port: 6222,
            auth_timeout: Duration::from_secs(2),
            pool_size: 3,
            shards: u16::try_from(shards).unwrap(),
            ..RouteSettings::default()
        };
        let config = ShardConfig {
            limits: Limits::default(),
            auth: Auth::Open,
            shards,
            traces: false,
            leafs: None,
            routes: Some(Arc::new(routes)),
            gateways: Some(Arc::new(gateways)),
        };
        let info = ServerInfo {
            server_id: OWN.into(),
            server_name: "own".into(),
            cluster: Some("c".into()),
            headers: true,
            ..ServerInfo::default()
        };
        Simulation::of(config, &info)
    }

    /// Opens a gateway connection: a dialed one with `dial`, otherwise an accepted one.
    fn open_gateway(&mut self, dial: Option<GatewayDial>) -> Client {
        let peer = Peer {
            kind: ConnectionKind::Gateway,
            ip: "10.0.0.2".into(),
            port: 40_000,
            ..Peer::default()
        };
        let shard = &mut self.shards[0];
        let cid = shard.broker.exchange.sessions.len() as u64 + 100;
        let id = shard.open_gateway(cid, peer, dial, Duration::ZERO);
        Client { shard: 0, id }
    }

    fn gateway_events(&mut self) -> Vec<GatewayEvent> {
        self.shards[0].take_gateway_events()
    }

    /// Lets time pass on all shards.
    fn pass(&mut self, now: Duration) {
        self.now = now;
        for shard in &mut self.shards {
            shard.note_time(now);
            shard.handle_timeout(now);
        }
        self.exchange();
    }
}

fn to(gateway: &str) -> Option<GatewayDial> {
    Some(GatewayDial {
        gateway: gateway.into(),
        user: "ada".into(),
        password: "secret".into(),
        is_configured: true,
    })
}

fn connect(gateway: &str) -> String {
    format!("CONNECT {{\"name\":\"N{gateway}\",\"gateway\":\"{gateway}\"}}\r\n")
}

fn info_with(gateway: &str, more: &str) -> String {
    format!(
        "INFO {{\"server_id\":\"N{gateway}\",\"server_name\":\"{gateway}1\",\"headers\":true,\
         \"gateway\":\"{gateway}\",\"gateway_urls\":[\"10.0.0.2:7222\"],\"gateway_nrp\":true{more}}}\r\n"
    )
}

fn info(gateway: &str) -> String {
    info_with(gateway, ",\"gateway_iom\":true")
}

/// Opens an accepted connection from a cluster, and discards its first output.
fn inbound(simulation: &mut Simulation, gateway: &str) -> Client {
    let accepted = simulation.open_gateway(None);
    simulation.send(accepted, &(connect(gateway) + &info(gateway)));
    simulation.read(accepted);
    accepted
}

/// Opens a dialed connection to a cluster, and discards its first output.
fn outbound(simulation: &mut Simulation, gateway: &str) -> Client {
    let dialed = simulation.open_gateway(to(gateway));
    simulation.send(dialed, &info(gateway));
    simulation.read(dialed);
    dialed
}

/// Opens an accepted route that carries the account `$G`, and discards its first output.
fn route(simulation: &mut Simulation, id: &str) -> Client {
    slot(simulation, id, 2)
}

/// Opens an accepted route of a slot, and discards its first output.
fn slot(simulation: &mut Simulation, id: &str, slot: usize) -> Client {
    let shard = slot % simulation.shards.len();
    let route = simulation.open_route_on(shard, None);
    simulation.send(
        route,
        &format!(
            "CONNECT {{\"name\":\"{id}\",\"cluster\":\"c\",\"headers\":true}}\r\n\
             INFO {{\"server_id\":\"{id}\",\"server_name\":\"name-{id}\",\"cluster\":\"c\",\"headers\":true,\
             \"route_pool_size\":3,\"route_pool_idx\":{slot},\"gateway_url\":\"10.0.0.3:7222\"}}\r\n"
        ),
    );
    simulation.read(route);
    route
}

/// Returns the lines of an output, without those of JSON.
fn lines(output: &str) -> Vec<&str> {
    output
        .lines()
        .filter(|line| !line.starts_with("INFO"))
        .collect()
}

fn mark(gateway: &str, id: &str) -> String {
    String::from_utf8(ReplyMark::of(gateway, id).as_bytes().to_vec()).unwrap()
}

#[test]
fn acceptor_announces_all_interest_of_each_account() {
    let mut simulation = Simulation::connected(2, |_| {});
    let client = simulation.client(1);
    simulation.send(client, "SUB a.* 1\r\nSUB a.* q 2\r\nSUB a.* q 3\r\n");
    slot(&mut simulation, "NR", 0);
    let peer = route(&mut simulation, "NR");
    simulation.send(peer, "RS+ $G b\r\nRS+ $G a.* q 7\r\n");
    let accepted = simulation.open_gateway(None);
    let own = simulation.read(accepted);
    let own = GatewayInfo::parse(own.strip_prefix("INFO ").unwrap().trim().as_bytes()).unwrap();
    assert_eq!((&*own.server_id, &*own.gateway), (OWN, "c"));
    assert_eq!(own.gateway_urls, ["127.0.0.1:7222", "10.0.0.3:7222"]);
    assert!(own.gateway_iom && own.gateway_nrp);
    simulation.send(accepted, &(connect("b") + &info("b") + "PING\r\n"));
    let output = simulation.read(accepted);
    let commands: Vec<u8> = (output.lines().filter_map(|line| line.strip_prefix("INFO ")))
        .filter_map(|json| GatewayInfo::parse(json.trim().as_bytes()))
        .map(|info| info.gateway_cmd)
        .collect();
    assert_eq!(commands, [2, 3, 2, 3], "{output}");
    let mut sent = lines(&output);
    sent.sort_unstable();
    assert_eq!(sent, ["PONG", "RS+ $G a.*", "RS+ $G a.* q 1", "RS+ $G b"]);
    simulation.send(client, "UNSUB 3\r\nUNSUB 1\r\nSUB b 4\r\nSUB d 5\r\n");
    let output = simulation.read(accepted);
    assert_eq!(lines(&output), ["RS- $G a.*", "RS+ $G d"]);
    simulation.send(peer, "RS- $G b\r\nRS- $G a.* q\r\n");
    assert_eq!(simulation.read(accepted), "");
    simulation.send(client, "UNSUB 2\r\nUNSUB 4\r\n");
    let output = simulation.read(accepted);
    let mut sent = lines(&output);
    sent.sort_unstable();
    assert_eq!(sent, ["RS- $G a.* q", "RS- $G b"]);
    let events = simulation.gateway_events();
    assert!(matches!(
        &events[..],
        [GatewayEvent::Joined { gateway, is_dialed: false, .. }] if gateway == "b"
    ));
}

#[test]
fn dialer_answers_the_acceptors_info() {
    let mut simulation = Simulation::connected(1, |_| {});
    let dialed = simulation.open_gateway(to("b"));
    assert_eq!(simulation.read(dialed), "");
    simulation.send(dialed, &info("b"));
    let output = simulation.read(dialed);
    let (connect, own) = output.split_once("\r\n").unwrap();
    assert!(connect.starts_with("CONNECT {\"echo\":false,"), "{connect}");
    assert!(
        connect.contains("\"user\":\"ada\",\"pass\":\"secret\""),
        "{connect}"
    );
    assert!(connect.contains("\"name\":\"NOWN\",\"cluster\":\"\",\"gateway\":\"c\""));
    assert!(own.starts_with("INFO {\"server_id\":\"NOWN\""), "{own}");
    let expected = GatewayEvent::Joined {
        gateway: "b".into(),
        id: "Nb".into(),
        is_dialed: true,
        urls: vec!["10.0.0.2:7222".into()],
    };
    assert_eq!(simulation.gateway_events(), [expected]);
    // A second connection to the same cluster is not needed.
    let second = simulation.open_gateway(to("b"));
    simulation.send(second, &info("b"));
    assert_eq!(
        simulation.is_ended(second),
        Some(CloseReason::DuplicateRoute)
    );
    let session = &simulation.shards[0].broker.exchange.sessions[second.id.index()];
    let ended = session.kind.gateway().unwrap().ended();
    assert_eq!(ended.outcome, GatewayOutcome::Duplicate);
}

#[test]
fn wrong_peers_are_refused() {
    let secret = |own: &mut GatewaySettings| {
        (own.user, own.password) = ("ada".into(), "secret".into());
        own.rejects_unknown = true;
    };
    let login = "CONNECT {\"user\":\"ada\",\"pass\":\"secret\"";
    for (input, error, reason) in [
        (
            connect("b"),
            "Authorization Violation",
            CloseReason::AuthenticationFailure,
        ),
        (
            info("b"),
            "Authorization Violation",
            CloseReason::AuthenticationFailure,
        ),
        (
            format!("{login}}}\r\n"),
            "attempted to connect to gateway port",
            CloseReason::WrongPort,
        ),
        (
            format!("{login},\"gateway\":\"x\"}}\r\n"),
            "Connection to gateway \\\"c\\\" rejected",
            CloseReason::WrongGateway,
        ),
        (
            format!("{login},\"gateway\":\"b\"}}\r\nINFO {{}}\r\n"),
            "attempted to connect to gateway port",
            CloseReason::WrongPort,
        ),
        (
            format!("{login},\"gateway\":\"b\"}}\r\n{}RS+ $G a\r\n", info("b")),
            "",
            CloseReason::ProtocolViolation,
        ),
        (
            format!("{login},\"gateway\":\"b\"}}\r\nRMSG $G a 0\r\n\r\n"),
            "",
            CloseReason::ProtocolViolation,
        ),
        (
            format!("{login},\"gateway\":\"b\"}}\r\n{}NO\r\n", info("b")),
            "Unknown Protocol Operation",
            CloseReason::ProtocolViolation,
        ),
        (
            format!(
                "{login},\"gateway\":\"b\"}}\r\n{}",
                info("b").replace("b1", "own")
            ),
            "",
            CloseReason::DuplicateServerName,
        ),
    ] {
        let mut simulation = Simulation::connected(1, secret);
        let accepted = simulation.open_gateway(None);
        simulation.read(accepted);
        simulation.send(accepted, &input);
        let output = simulation.read(accepted);
        assert_eq!(simulation.is_ended(accepted), Some(reason), "{input}");
        let error = error.replace("\\\"", "\"");
        let expected = if error.is_empty() {
            error
        } else {
            format!("-ERR '{error}'\r\n")
        };
        assert!(output.ends_with(&expected), "{input}: {output}");
    }
}

#[test]
fn wrong_acceptors_are_refused() {
    for (input, error, reason) in [
        (
            "INFO {\"server_id\":\"NX\"}\r\n".to_owned(),
            "-ERR 'Attempt to connect to gateway \"b\" using wrong port'\r\n",
            CloseReason::WrongPort,
        ),
        (
            info("x"),
            "-ERR 'Connection from \"c\" rejected, wanted to connect to \"b\", this is \"x\"'\r\n",
            CloseReason::WrongGateway,
        ),
        (
            info("b") + "RMSG $G a 0\r\n\r\n",
            "",
            CloseReason::ProtocolViolation,
        ),
        (
            info("b") + "LS+ x $G a\r\n",
            "",
            CloseReason::ProtocolViolation,
        ),
        (
            info("b") + "-ERR 'Authorization Violation'\r\n",
            "",
            CloseReason::ParseError,
        ),
    ] {
        let mut simulation = Simulation::connected(1, |_| {});
        let dialed = simulation.open_gateway(to("b"));
        simulation.send(dialed, &input);
        let output = simulation.read(dialed);
        assert!(output.ends_with(error), "{input}: {output}");
        assert_eq!(simulation.is_ended(dialed), Some(reason), "{input}");
        assert!(simulation.shards[0].gateways(false).is_empty());
    }
}

#[test]
fn messages_cross_to_clusters_with_interest() {
    for shards in [1, 3] {
        let mut simulation = Simulation::connected(shards, |_| {});
        let (b, d) = (
            outbound(&mut simulation, "b"),
            outbound(&mut simulation, "d"),
        );
        let client = simulation.client(shards - 1);
        simulation.send(b, "RS+ $G a\r\nRS+ $G a.> q 1\r\nRS+ X a\r\n");
        simulation.send(d, "RS+ $G a\r\n");
        simulation.send(
            client,
            "PUB a 1\r\n1\r\nPUB a r 1\r\n2\r\nPUB other 0\r\n\r\nPUB a.b 1\r\n3\r\n",
        );
        let both = "RMSG $G a 1\r\n1\r\nRMSG $G a r 1\r\n2\r\n";
        assert_eq!(
            simulation.read(b),
            format!("{both}RMSG $G a.b | q 1\r\n3\r\n")
        );
        assert_eq!(simulation.read(d), both);
        simulation.send(b, "RS- $G a\r\nRS- $G a.> q\r\n");
        simulation.send(client, "PUB a 0\r\n\r\nPUB a.b 0\r\n\r\n");
        assert_eq!(simulation.read(b), "");
        assert_eq!(simulation.read(d), "RMSG $G a 0\r\n\r\n");
        // Neither a route nor another gateway leads on to a cluster.
        let peer = route(&mut simulation, "NR");
        simulation.send(peer, "RMSG $G a 0\r\n\r\n");
        let accepted = inbound(&mut simulation, "e");
        simulation.send(accepted, "RMSG $G a 0\r\n\r\n");
        assert_eq!(simulation.read(d), "");
        simulation.shards[0].end(d.id, CloseReason::ReadError);
        simulation.exchange();
        simulation.send(client, "PUB a r 0\r\n\r\n");
        assert_eq!(simulation.read(d), "");
    }
}

#[test]
fn group_prefers_its_own_cluster_and_then_the_nearest_one() {
    let mut simulation = Simulation::connected(2, |_| {});
    let (b, d) = (
        outbound(&mut simulation, "b"),
        outbound(&mut simulation, "d"),
    );
    for (gateway, rtt) in [(b, 5), (d, 3)] {
        simulation.send(gateway, "RS+ $G a q 1\r\n");
        let session = &mut simulation.shards[0].broker.exchange.sessions[gateway.id.index()];
        session.rtt = Some(Duration::from_millis(rtt));
    }
    let (client, member) = (simulation.client(1), simulation.client(0));
    simulation.send(client, "PUB a 0\r\n\r\n");
    assert_eq!(simulation.read(b), "");
    assert_eq!(simulation.read(d), "RMSG $G a | q 0\r\n\r\n");
    let peer = route(&mut simulation, "NR");
    simulation.send(peer, "RS+ $G a q 1\r\n");
    simulation.send(client, "PUB a 0\r\n\r\n");
    assert_eq!(simulation.read(peer), "RMSG $G a | q 0\r\n\r\n");
    simulation.send(peer, "RS- $G a q\r\n");
    simulation.send(member, "SUB a q 1\r\n");
    simulation.read(peer);
    simulation.send(client, "PUB a 0\r\n\r\n");
    assert_eq!(simulation.read(member), "MSG a 1 0\r\n\r\n");
    assert_eq!(
        (simulation.read(b), simulation.read(d)),
        (String::new(), String::new())
    );
}

#[test]
fn messages_of_other_clusters_reach_the_whole_cluster() {
    for shards in [1, 3] {
        let mut simulation = Simulation::connected(shards, |_| {});
        let accepted = inbound(&mut simulation, "b");
        let member = simulation.client(shards - 1);
        simulation.send(member, "SUB a 1\r\nSUB a q 2\r\n");
        let peer = route(&mut simulation, "NR");
        simulation.send(peer, "RS+ $G a\r\nRS+ $G a p 1\r\n");
        simulation.send(accepted, "RMSG $G a 2\r\nhi\r\n");
        assert_eq!(simulation.read(member), "MSG a 1 2\r\nhi\r\n");
        assert_eq!(simulation.read(peer), "RMSG $G a 2\r\nhi\r\n");
        simulation.send(accepted, "RMSG $G a | p q 2\r\nhi\r\n");
        assert_eq!(
            simulation.read(member),
            "MSG a 1 2\r\nhi\r\nMSG a 2 2\r\nhi\r\n"
        );
        assert_eq!(simulation.read(peer), "RMSG $G a | p 2\r\nhi\r\n");
        simulation.send(
            accepted,
            "RMSG X a 2\r\nhi\r\nHMSG $G a r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        );
        let headers = "12 14\r\nNATS/1.0\r\n\r\nhi\r\n";
        assert_eq!(simulation.read(member), format!("HMSG a 1 r {headers}"));
        assert_eq!(simulation.read(peer), format!("HMSG $G a r {headers}"));
        assert_eq!(simulation.is_ended(accepted), None);
    }
}

#[test]
fn reply_to_recent_interest_is_marked() {
    for shards in [1, 2] {
        let mut simulation = Simulation::connected(shards, |_| {});
        let (b, accepted) = (
            outbound(&mut simulation, "b"),
            inbound(&mut simulation, "b"),
        );
        simulation.send(b, "RS+ $G svc\r\n");
        let client = simulation.client(shards - 1);
        simulation.send(
            client,
            "SUB in.* 1\r\nPUB svc in.1 2\r\nhi\r\nPUB svc out 2\r\nhi\r\n",
        );
        let own = mark("c", OWN);
        let expected = format!("RMSG $G svc {own}in.1 2\r\nhi\r\nRMSG $G svc out 2\r\nhi\r\n");
        assert_eq!(simulation.read(b), expected);
        assert_eq!(lines(&simulation.read(accepted)), ["RS+ $G in.*"]);
        simulation.send(accepted, &format!("RMSG $G {own}in.1 2\r\nok\r\n"));
        assert_eq!(simulation.read(client), "MSG in.1 1 2\r\nok\r\n");
        simulation.pass(Duration::from_secs(2));
        simulation.send(client, "PUB svc in.1 2\r\nhi\r\n");
        assert_eq!(simulation.read(b), "RMSG $G svc in.1 2\r\nhi\r\n");
    }
}

#[test]
fn response_to_a_marked_reply_returns_with_its_mark() {
    for shards in [1, 3] {
        let mut simulation = Simulation::connected(shards, |_| {});
        let (b, accepted) = (
            outbound(&mut simulation, "b"),
            inbound(&mut simulation, "b"),
        );
        let d = outbound(&mut simulation, "d");
        let responder = simulation.client(shards - 1);
        simulation.send(responder, "SUB svc 1\r\n");
        let theirs = mark("b", "NX");
        simulation.send(accepted, &format!("RMSG $G svc {theirs}in.1 2\r\nhi\r\n"));
        assert_eq!(simulation.read(responder), "MSG svc 1 in.1 2\r\nhi\r\n");
        // The interest has arrived meanwhile, and another cluster wants the subject, too.
        simulation.send(b, "RS+ $G in.*\r\n");
        simulation.send(d, "RS+ $G in.*\r\n");
        simulation.send(responder, "PUB in.1 2\r\nok\r\n");
        assert_eq!(
            simulation.read(b),
            format!("RMSG $G {theirs}in.1 2\r\nok\r\n")
        );
        assert_eq!(simulation.read(d), "");
        simulation.pass(Duration::from_secs(2));
        simulation.send(responder, "PUB in.1 2\r\nok\r\n");
        assert_eq!(simulation.read(b), "RMSG $G in.1 2\r\nok\r\n");
        assert_eq!(simulation.read(d), "RMSG $G in.1 2\r\nok\r\n");
    }
}

#[test]
fn mark_crosses_routes_in_both_directions() {
    for shards in [1, 2, 3] {
        let mut simulation = Simulation::connected(shards, |_| {});
        let (b, accepted) = (
            outbound(&mut simulation, "b"),
            inbound(&mut simulation, "b"),
        );
        let peer = route(&mut simulation, "NR");
        simulation.send(peer, "RS+ $G svc\r\n");
        let theirs = mark("b", "NX");
        for body in ["hi".to_owned(), "x".repeat(10_000)] {
            let size = body.len();
            simulation.send(
                accepted,
                &format!("RMSG $G svc {theirs}in.1 {size}\r\n{body}\r\n"),
            );
            let expected = format!("RMSG $G svc {theirs}in.1 {size}\r\n{body}\r\n");
            assert_eq!(simulation.read(peer), expected);
        }
        // A response to the other server of the cluster.
        let its = mark("c", "NR");
        simulation.send(accepted, &format!("RMSG $G {its}in.2 r 2\r\nok\r\n"));
        assert_eq!(
            simulation.read(peer),
            format!("RMSG $G {its}in.2 r 2\r\nok\r\n")
        );
        // A response to an unknown server, and to another cluster.
        simulation.send(
            accepted,
            &format!("RMSG $G {}in.2 2\r\nok\r\n", mark("c", "NZ")),
        );
        simulation.send(
            accepted,
            &format!("RMSG $G {}in.2 2\r\nok\r\n", mark("z", "NR")),
        );
        assert_eq!(simulation.read(peer), "");
        // A request that another server has received from another cluster, and a response.
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB svc 1\r\nSUB in.* q 2\r\n");
        simulation.read(peer);
        simulation.send(peer, &format!("RMSG $G svc {theirs}in.3 2\r\nhi\r\n"));
        assert_eq!(simulation.read(client), "MSG svc 1 in.3 2\r\nhi\r\n");
        simulation.send(client, "PUB in.3 2\r\nok\r\n");
        assert_eq!(
            simulation.read(b),
            format!("RMSG $G {theirs}in.3 2\r\nok\r\n")
        );
        simulation.read(client);
        let own = mark("c", OWN);
        simulation.send(peer, &format!("RMSG $G {own}in.4 2\r\nok\r\n"));
        assert_eq!(simulation.read(client), "MSG in.4 2 2\r\nok\r\n");
    }
}

#[test]
fn optimistic_cluster_receives_everything_it_has_not_refused() {
    let mut simulation = Simulation::connected(2, |_| {});
    let b = simulation.open_gateway(to("b"));
    simulation.send(b, &info_with("b", ""));
    simulation.read(b);
    let client = simulation.client(1);
    let mut check = |input: &str, expected: &str| {
        simulation.send(b, input);
        simulation.send(client, "PUB a 0\r\n\r\nPUB b 0\r\n\r\n");
        let output = simulation.read(b);
        let subjects: String = output
            .split("\r\n")
            .filter_map(|line| line.split(' ').nth(2))
            .collect();
        assert_eq!(subjects, expected, "{input}");
    };
    check("", "ab");
    check("RS- $G a\r\n", "b");
    check("RS- $G b\r\n", "");
    check("RS+ $G *\r\n", "ab");
    check("A- $G\r\n", "");
    check("A+ $G\r\n", "ab");
    check("RS- $G a\r\n", "b");
    let command = |command: u8| {
        format!(
            "INFO {{\"gateway\":\"b\",\"gateway_cmd\":{command},\"gateway_cmd_payload\":\"JEc=\"}}\r\n"
        )
    };
    check(&command(2), "b");
    check("RS+ $G a\r\n", "ab");
    check(&command(3), "a");
    check("RS- $G a\r\n", "");
    check("A+ $G\r\n", "");
    let status = simulation.shards[0].gateways(true);
    let accounts = &status[0].accounts;
    assert_eq!(
        (&*accounts[0].name, accounts[0].mode),
        ("$G", GatewayMode::InterestOnly)
    );
    assert_eq!(
        (&*accounts[1].name, accounts[1].mode),
        ("$SYS", GatewayMode::Optimistic)
    );
}

#[test]
fn other_clusters_are_announced() {
    let mut simulation = Simulation::connected(1, |_| {});
    let known = KnownGateway {
        gateway: "d".into(),
        urls: vec!["10.0.0.9:7222".into()],
    };
    let early = slot(&mut simulation, "NE", 0);
    let [waiting, itself] = ["a", "d"].map(|name| {
        let dialer = simulation.open_gateway(None);
        simulation.send(dialer, &(connect(name) + &info(name)));
        dialer
    });
    simulation.read(itself);
    simulation.shards[0].set_known_gateways(vec![known.clone()]);
    assert_eq!(simulation.read(itself), "");
    let late = simulation.open_route_on(0, None);
    simulation.send(late, "CONNECT {\"name\":\"NL\",\"cluster\":\"c\"}\r\n");
    simulation.send(
        late,
        "INFO {\"server_id\":\"NL\",\"cluster\":\"c\",\"route_pool_size\":3}\r\n",
    );
    let accepted = simulation.open_gateway(None);
    simulation.send(accepted, &(connect("b") + &info("b")));
    for (peer, sender) in [
        (early, "GWNOWN"),
        (late, "GWNOWN"),
        (accepted, OWN),
        (waiting, OWN),
    ] {
        let output = simulation.read(peer);
        let mut all = output.lines().filter_map(|line| line.strip_prefix("INFO "));
        let gossip = all
            .find_map(|json| {
                let info = GatewayInfo::parse(json.trim().as_bytes())?;
                (info.gateway_cmd == 1).then_some(info)
            })
            .expect(&output);
        assert_eq!((&*gossip.server_id, &*gossip.gateway), (sender, "d"));
        assert_eq!(gossip.gateway_urls, known.urls);
    }
    simulation.gateway_events();
    let b = outbound(&mut simulation, "b");
    let gossip = |gateway: &str| {
        format!(
            "INFO {{\"server_id\":\"GWX\",\"gateway\":\"{gateway}\",\"gateway_urls\":[\"h:1\"],\"gateway_cmd\":1}}\r\n"
        )
    };
    simulation.gateway_events();
    for peer in [b, early] {
        simulation.send(peer, &(gossip("e") + &gossip("c")));
        let expected = GatewayEvent::Discovered {
            gateway: "e".into(),
            urls: vec!["h:1".into()],
        };
        assert_eq!(simulation.gateway_events(), [expected]);
    }
    assert_eq!(simulation.is_ended(early), None);
}

#[test]
fn new_accounts_are_announced() {
    let mut simulation = Simulation::connected(1, |_| {});
    let accepted = inbound(&mut simulation, "b");
    let access = Access::new(AccessConfig {
        accounts: vec![Account {
            name: "X".into(),
            ..Account::default()
        }],
        ..AccessConfig::default()
    });
    let access = Arc::new(access.unwrap());
    simulation.shards[0].replace_access(access, Duration::ZERO);
    let output = simulation.read(accepted);
    let commands: Vec<(u8, String)> = (output.lines())
        .filter_map(|line| GatewayInfo::parse(line.strip_prefix("INFO ")?.trim().as_bytes()))
        .map(|info| (info.gateway_cmd, info.gateway_cmd_payload))
        .collect();
    let of_account = |command| (command, "WA==".to_owned());
    assert!(
        commands.ends_with(&[of_account(2), of_account(3)]),
        "{output}"
    );
}

#[test]
fn leaf_node_reaches_other_clusters_but_cannot_use_marks() {
    let mut simulation = Simulation::connected(2, |_| {});
    let (b, accepted) = (
        outbound(&mut simulation, "b"),
        inbound(&mut simulation, "b"),
    );
    let peer = route(&mut simulation, "NR");
    let id = simulation.shards[0].open_leaf(
        7,
        Peer {
            kind: ConnectionKind::Leafnode,
            ..Peer::default()
        },
        None,
        Agreed::default(),
        Duration::ZERO,
    );
    let leaf = Client { shard: 0, id };
    simulation.send(
        leaf,
        "CONNECT {\"name\":\"edge\",\"cluster\":\"edge\",\"headers\":true,\"protocol\":3}\r\nLS+ svc\r\n",
    );
    simulation.read(leaf);
    assert_eq!(lines(&simulation.read(accepted)), ["RS+ $G svc"]);
    simulation.send(b, "RS+ $G up\r\n");
    assert_eq!(simulation.read(leaf), "LS+ up\r\n");
    simulation.send(leaf, "LMSG up 2\r\nhi\r\n");
    assert_eq!(simulation.read(b), "RMSG $G up 2\r\nhi\r\n");
    // The leaf node learns of the interest in the response before it receives the request.
    let theirs = mark("b", "NX");
    simulation.send(accepted, &format!("RMSG $G svc {theirs}in.1 2\r\nhi\r\n"));
    assert_eq!(
        simulation.read(leaf),
        "LS+ in.1\r\nLMSG svc in.1 2\r\nhi\r\n"
    );
    simulation.send(leaf, "LMSG in.1 2\r\nok\r\n");
    assert_eq!(
        simulation.read(b),
        format!("RMSG $G {theirs}in.1 2\r\nok\r\n")
    );
    simulation.read(peer);
    let its = mark("c", "NR");
    simulation.send(
        leaf,
        &format!("LMSG {its}secret 2\r\nhi\r\nLMSG up {theirs}up 2\r\nhi\r\n"),
    );
    assert_eq!(simulation.read(peer), "");
    assert_eq!(simulation.read(b), "");
}
