//! Changes that concern the whole cluster: a server that is about to leave.

use super::route_tests::{connect, info};
use super::tests::Simulation;
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
    let urls = ["127.0.0.1:4222".to_owned(), "10.0.0.2:4222".to_owned()];
    simulation.shards[0].set_connect_urls(urls.to_vec().into());
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
    simulation.shards[0].set_connect_urls(urls.to_vec().into());
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
