//! Changes that concern the whole cluster: its name, and servers that are about to leave.

use std::sync::Arc;

use super::route_tests::{connect, info};
use super::tests::Simulation;
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::info::ClientUrls;
use crate::session::route::{RouteEvent, RouteInfo};

#[test]
fn lame_duck_mode_is_announced_to_peers_and_clients() {
    let mut simulation = Simulation::clustered(1);
    let routes = ["NA", "NB"].map(|id| {
        let route = simulation.open_route_on(0, None);
        simulation.send(route, &(connect(id) + &info(id)));
        route
    });
    for route in routes {
        simulation.read(route);
    }
    let client = simulation.open(0);
    simulation.send(client, "CONNECT {\"protocol\":1}\r\nPING\r\n");
    let urls = Arc::new(ClientUrls {
        plain: vec!["127.0.0.1:4222".into(), "10.0.0.2:4222".into()],
        websocket: Vec::new(),
    });
    simulation.shards[0].set_connect_urls(Arc::clone(&urls));
    simulation.read(client);
    simulation.shards[0].announce_lame_duck();
    for route in routes {
        let output = simulation.read(route);
        let json = output.strip_prefix("INFO ").unwrap().trim();
        let info = RouteInfo::parse(json.as_bytes()).unwrap();
        assert!(info.ldm && info.server_id == "NOWN", "{output}");
    }
    let expected = "\"connect_urls\":[\"10.0.0.2:4222\"]";
    let output = simulation.read(client);
    assert!(
        output.contains("\"ldm\":true") && output.contains(expected),
        "{output}"
    );
    // A peer that joins or leaves does not bring the address back.
    simulation.shards[0].set_connect_urls(urls);
    let output = simulation.read(client);
    assert!(output.contains(expected), "{output}");
}

#[test]
fn lame_duck_mode_of_a_peer_is_reported() {
    let mut simulation = Simulation::clustered(1);
    let route = simulation.open_route_on(0, None);
    simulation.send(route, &(connect("NA") + &info("NA")));
    simulation.events();
    let line = info("NA").replace("\"port\"", "\"ldm\":true,\"port\"");
    simulation.send(route, &line);
    let event = RouteEvent::LeavesSoon { id: "NA".into() };
    assert_eq!(simulation.events(), [event]);
    assert_eq!(simulation.is_ended(route), None);
}

/// Returns the first two lines of a peer of this cluster.
fn greeting(cluster: &str, is_generated: bool) -> String {
    let generated = format!("\"cluster\":\"{cluster}\",\"cluster_dynamic\":{is_generated}");
    (connect("NA") + &info("NA")).replace("\"cluster\":\"c\"", &generated)
}

#[test]
fn generated_cluster_name_yields_to_a_better_one() {
    for (ours, theirs, expected) in [
        ((false, "c"), (false, "d"), None),
        ((false, "c"), (true, "d"), None),
        ((true, "c"), (false, "a"), Some(("a", false))),
        ((true, "c"), (true, "d"), Some(("d", true))),
        ((true, "c"), (true, "b"), None),
        ((true, "c"), (false, ""), None),
        ((true, "c"), (true, "c"), Some(("c", true))),
    ] {
        let mut simulation = Simulation::clustered(1);
        simulation.shards[0]
            .broker
            .exchange
            .info
            .cluster_is_generated = ours.0;
        let before = simulation.open_route_on(0, None);
        simulation.send(before, &(connect("NB") + &info("NB")));
        let route = simulation.open_route_on(0, None);
        simulation.read(route);
        simulation.events();
        simulation.send(route, &greeting(theirs.1, theirs.0));
        let reason = CloseReason::ClusterNameConflict;
        let refused = expected.is_none().then_some(reason);
        assert_eq!(simulation.is_ended(route), refused, "{ours:?} {theirs:?}");
        let (name, is_generated) = expected.unwrap_or((ours.1, ours.0));
        let server = &simulation.shards[0].broker.exchange.info;
        assert_eq!(server.cluster.as_deref(), Some(name), "{ours:?} {theirs:?}");
        assert_eq!(
            server.cluster_is_generated, is_generated,
            "{ours:?} {theirs:?}"
        );
        // A server with another name is not a peer any more.
        let is_renamed = name != ours.1;
        let closed = is_renamed.then_some(reason);
        assert_eq!(simulation.is_ended(before), closed, "{ours:?} {theirs:?}");
        let event = RouteEvent::ClusterNamed {
            name: name.into(),
            is_generated,
        };
        assert_eq!(
            simulation.events().contains(&event),
            is_renamed,
            "{theirs:?}"
        );
    }
}

#[test]
fn other_shards_take_over_only_a_better_name() {
    let mut simulation = Simulation::clustered(1);
    simulation.shards[0]
        .broker
        .exchange
        .info
        .cluster_is_generated = true;
    for (name, is_generated, expected) in [
        ("d", true, "d"),
        ("b", true, "d"),
        ("a", false, "a"),
        ("z", false, "a"),
    ] {
        simulation.shards[0].adopt_cluster_name(name, is_generated);
        let server = &simulation.shards[0].broker.exchange.info;
        assert_eq!(server.cluster.as_deref(), Some(expected), "{name}");
    }
}
