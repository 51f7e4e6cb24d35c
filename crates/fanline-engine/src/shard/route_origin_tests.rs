//! Leaf nodes of clusters whose servers are also behind other servers.

use std::time::Duration;

use super::route_tests::{connect, info, settings};
use super::tests::{Client, Simulation};
use crate::auth::{Auth, ConnectionKind, Peer};
use crate::codec::nats::error::CloseReason;
use crate::session::leaf::Agreed;
use crate::session::route::{Carries, RouteSettings};

/// Accepts a route of a peer that understands the clusters of leaf nodes.
pub(super) fn route(simulation: &mut Simulation) -> Client {
    route_on(simulation, 0, "")
}

/// Accepts a route on a shard. `pool` are members of the INFO about a pool.
fn route_on(simulation: &mut Simulation, shard: usize, pool: &str) -> Client {
    let route = simulation.open_route_on(shard, None);
    let own = simulation.read(route);
    assert!(own.contains("\"lnoc\":true,\"lnocu\":true"), "{own}");
    let members = format!("{{\"lnoc\":true,\"lnocu\":true,{pool}");
    let info = info("NA").replacen('{', &members, 1);
    simulation.send(route, &(connect("NA") + &info));
    simulation.read(route);
    route
}

/// Returns a server whose routes for the global account are on another shard than the leaf connections, and such a
/// route.
fn with_route_on_another_shard() -> (Simulation, Client) {
    let routes = RouteSettings {
        pool_size: 3,
        accounts: Vec::new(),
        shards: 3,
        ..settings()
    };
    // The global account has slot 2.
    let shard = usize::from(routes.shard_of(&Carries::Slot(2)));
    assert!(shard > 0);
    let mut simulation = Simulation::with_routes("NOWN", "own", 3, Auth::Open, routes);
    let pool = "\"route_pool_size\":3,\"route_pool_idx\":2,";
    let route = route_on(&mut simulation, shard, pool);
    (simulation, route)
}

/// Accepts a leaf connection of a server of this cluster.
pub(super) fn leaf(simulation: &mut Simulation, cluster: &str, name: &str) -> Client {
    let peer = Peer {
        kind: ConnectionKind::Leafnode,
        ..Peer::default()
    };
    let cid = simulation.shards[0].broker.exchange.sessions.len() as u64 + 200;
    let id = simulation.shards[0].open_leaf(cid, peer, None, Agreed::default(), Duration::ZERO);
    let leaf = Client { shard: 0, id };
    let connect = format!(
        "CONNECT {{\"name\":\"{name}\",\"cluster\":\"{cluster}\",\"headers\":true,\"protocol\":3}}\r\n"
    );
    simulation.send(leaf, &connect);
    simulation.read(leaf);
    leaf
}

#[test]
fn interest_is_announced_for_each_cluster() {
    let mut simulation = Simulation::clustered(1);
    let route = route(&mut simulation);
    let west = leaf(&mut simulation, "west", "w1");
    let other = leaf(&mut simulation, "west", "w2");
    let south = leaf(&mut simulation, "south", "s1");
    for (from, line, expected) in [
        (west, "LS+ a\r\n", "LS+ west $G a\r\n"),
        (other, "LS+ a\r\n", ""),
        (south, "LS+ a\r\n", "LS+ south $G a\r\n"),
        (west, "LS+ a q 2\r\n", "LS+ west $G a q 2\r\n"),
        (other, "LS+ a q 1\r\n", "LS+ west $G a q 3\r\n"),
        (south, "LS- a\r\n", "LS- south $G a\r\n"),
        (west, "LS- a\r\n", ""),
        (other, "LS- a\r\n", "LS- west $G a\r\n"),
        (other, "LS- a q\r\n", "LS+ west $G a q 2\r\n"),
        (west, "LS- a q\r\n", "LS- west $G a q\r\n"),
    ] {
        simulation.send(from, line);
        assert_eq!(simulation.read(route), expected, "{line}");
    }
    simulation.send(west, "LS+ b\r\n");
    simulation.read(route);
    simulation.shards[0].remove(west.id, CloseReason::ReadError);
    // Any input lets the shards exchange their batches.
    simulation.send(other, "PING\r\n");
    assert_eq!(simulation.read(route), "LS- west $G b\r\n");
}

#[test]
fn message_does_not_return_to_its_cluster() {
    let mut simulation = Simulation::clustered(1);
    let route = route(&mut simulation);
    let west = leaf(&mut simulation, "west", "w1");
    let south = leaf(&mut simulation, "south", "s1");
    for each in [west, south] {
        simulation.send(each, "LS+ in\r\n");
    }
    for each in [route, west, south] {
        simulation.read(each);
    }
    simulation.send(route, "LMSG west $G in 0 2\r\nhi\r\n");
    assert_eq!(simulation.read(west), "");
    assert_eq!(simulation.read(south), "LMSG in 2\r\nhi\r\n");
    simulation.send(route, "RMSG $G in 2\r\nhi\r\n");
    assert_eq!(simulation.read(west), "LMSG in 2\r\nhi\r\n");
    assert_eq!(simulation.read(south), "LMSG in 2\r\nhi\r\n");
    // The other direction.
    simulation.send(route, "LS+ west $G out\r\n");
    for each in [west, south] {
        simulation.read(each);
        simulation.send(each, "LMSG out 2\r\nhi\r\nLMSG out 2\r\nho\r\n");
    }
    let message = |text: &str| format!("LMSG south $G out 0 2\r\n{text}\r\n");
    assert_eq!(simulation.read(route), message("hi") + &message("ho"));
    simulation.send(route, "RS+ $G out\r\nLS- west $G out\r\n");
    simulation.send(west, "HMSG out re 12 14\r\nNATS/1.0\r\n\r\nhi\r\n");
    let expected = "LMSG west $G out re 12 14\r\nNATS/1.0\r\n\r\nhi\r\n";
    assert_eq!(simulation.read(route), expected);
}

#[test]
fn group_members_of_the_same_cluster_are_not_chosen() {
    let mut simulation = Simulation::clustered(1);
    let route = route(&mut simulation);
    choose_members(simulation, route);
    let (simulation, route) = with_route_on_another_shard();
    choose_members(simulation, route);
}

fn choose_members(mut simulation: Simulation, route: Client) {
    let west = leaf(&mut simulation, "west", "w1");
    let south = leaf(&mut simulation, "south", "s1");
    simulation.send(route, "LS+ west $G work q 5\r\n");
    simulation.read(west);
    simulation.send(west, "LMSG work | q 2\r\nhi\r\n");
    assert_eq!(simulation.read(route), "");
    // A leaf node of another cluster receives it, and a client before that.
    simulation.send(south, "LS+ work q 1\r\n");
    for each in [route, south] {
        simulation.read(each);
    }
    simulation.send(west, "LMSG work | q 2\r\nhi\r\n");
    assert_eq!(simulation.read(route), "");
    assert_eq!(simulation.read(south), "LMSG work | q 2\r\nhi\r\n");
    let client = simulation.client(0);
    simulation.send(client, "SUB work q 1\r\n");
    for each in [route, south] {
        simulation.read(each);
    }
    for _ in 0..20 {
        simulation.send(west, "LMSG work | q 2\r\nhi\r\n");
        assert_eq!(simulation.read(client), "MSG work 1 2\r\nhi\r\n");
    }
    // The server behind the route has a client among the members.
    simulation.send(client, "UNSUB 1\r\n");
    simulation.send(route, "RS+ $G work q 1\r\n");
    for each in [route, south] {
        simulation.read(each);
    }
    simulation.send(west, "LMSG work | q 2\r\nhi\r\n");
    assert_eq!(
        simulation.read(route),
        "LMSG west $G work | q 0 2\r\nhi\r\n"
    );
    assert_eq!(simulation.read(south), "");
}

#[test]
fn interest_of_the_same_cluster_behind_a_peer_is_not_announced() {
    let mut simulation = Simulation::clustered(1);
    let route = route(&mut simulation);
    let west = leaf(&mut simulation, "west", "w1");
    let south = leaf(&mut simulation, "south", "s1");
    for (line, to_west, to_south) in [
        ("LS+ west $G a\r\n", "", "LS+ a\r\n"),
        ("LS+ north $G a\r\n", "LS+ a\r\n", ""),
        ("LS- north $G a\r\n", "LS- a\r\n", ""),
        ("RS+ $G a\r\n", "LS+ a\r\n", ""),
        ("RS- $G a\r\n", "LS- a\r\n", ""),
        ("LS- west $G a\r\n", "", "LS- a\r\n"),
        ("LS+ west $G w q 2\r\n", "", "LS+ w q 2\r\n"),
        ("RS+ $G w q 1\r\n", "LS+ w q 1\r\n", "LS+ w q 3\r\n"),
        ("LS+ west $G w q 5\r\n", "", "LS+ w q 6\r\n"),
        ("LS- west $G w q\r\n", "", "LS+ w q 1\r\n"),
        ("RS- $G w q\r\n", "LS- w q\r\n", "LS- w q\r\n"),
    ] {
        simulation.send(route, line);
        assert_eq!(simulation.read(west), to_west, "{line}");
        assert_eq!(simulation.read(south), to_south, "{line}");
    }
    // Clients count as well.
    simulation.send(route, "LS+ west $G b\r\n");
    assert_eq!(simulation.read(west), "");
    let client = simulation.client(0);
    simulation.send(client, "SUB b 1\r\n");
    assert_eq!(simulation.read(west), "LS+ b\r\n");
    simulation.send(client, "UNSUB 1\r\n");
    assert_eq!(simulation.read(west), "LS- b\r\n");
    // A new connection of the cluster does not learn of it either.
    let other = leaf(&mut simulation, "west", "w2");
    simulation.send(client, "SUB c 2\r\n");
    assert_eq!(simulation.read(other), "LS+ c\r\n");
}
