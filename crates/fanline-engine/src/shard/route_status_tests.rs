//! Routes in monitoring: the interest that they have received, and the number of subscriptions announced to peers.

use super::Shard;
use super::route_origin_tests::{leaf, route};
use super::route_pool_tests::{accepted, account, client_in, kinds, pooled};
use super::tests::{Client, Simulation};
use crate::session::route::{Carries, RouteDetail, RouteStatus};

/// Returns the status of a route, with a detail.
fn status(simulation: &Simulation, route: Client, detail: RouteDetail) -> RouteStatus {
    let shard: &Shard = &simulation.shards[route.shard];
    let cid = shard.broker.exchange.sessions[route.id.index()].cid;
    let mut all = shard.routes(detail).into_iter();
    all.find(|status| status.rid == cid).unwrap()
}

/// Returns the number of subscriptions that were announced on a route.
fn announced(simulation: &Simulation, route: Client) -> usize {
    status(simulation, route, RouteDetail::Announced).announced
}

#[test]
fn announced_subscriptions_are_the_lines_of_a_route() {
    for shards in [1, 2] {
        let mut simulation = pooled(shards);
        let routes = kinds().map(|(carries, ..)| accepted(&mut simulation, "NA", &carries));
        for (at, (_, name, _)) in kinds().into_iter().enumerate() {
            let client = client_in(&mut simulation, shards - 1, name);
            let input = "SUB a 1\r\nSUB a 2\r\nSUB a q 3\r\nSUB a q 4\r\nSUB b.* 5\r\nPING\r\n";
            simulation.send(client, input);
            for (nth, route) in routes.into_iter().enumerate() {
                let expected = if nth <= at { 3 } else { 0 };
                assert_eq!(announced(&simulation, route), expected, "{name}");
            }
        }
        // A later route of the same account has the same count.
        let later = accepted(&mut simulation, "NB", &account("P"));
        assert_eq!(simulation.read(later).matches("RS+").count(), 3);
        assert_eq!(announced(&simulation, later), 3);
        let client = client_in(&mut simulation, 0, "P");
        simulation.send(client, "SUB c 1\r\nPING\r\n");
        assert_eq!(announced(&simulation, later), 4);
        simulation.send(client, "UNSUB 1\r\nPING\r\n");
        assert_eq!(announced(&simulation, later), 3);
    }
}

#[test]
fn clusters_of_leaf_nodes_count_once_each() {
    let mut simulation = Simulation::clustered(1);
    let distinct = route(&mut simulation);
    let merged = accepted(&mut simulation, "NB", &Carries::default());
    let (west, south) = (
        leaf(&mut simulation, "west", "w1"),
        leaf(&mut simulation, "south", "s1"),
    );
    let client = simulation.client(0);
    for (from, line, expected) in [
        (west, "LS+ a\r\n", (1, 1)),
        (south, "LS+ a\r\n", (2, 1)),
        (client, "SUB a 1\r\n", (3, 1)),
        (client, "SUB b 2\r\n", (4, 2)),
        (west, "LS- a\r\n", (3, 2)),
        (client, "UNSUB 1\r\n", (2, 2)),
    ] {
        simulation.send(from, line);
        let counts = [distinct, merged].map(|route| announced(&simulation, route));
        assert_eq!(counts, [expected.0, expected.1], "{line}");
    }
}

#[test]
fn received_interest_is_listed() {
    let mut simulation = pooled(2);
    let shared = accepted(&mut simulation, "NA", &Carries::Slot(0));
    let dedicated = accepted(&mut simulation, "NA", &account("P"));
    simulation.send(
        shared,
        "RS+ A foo.*\r\nRS+ A bar q 3\r\nRS+ A gone\r\nRS- A gone\r\n",
    );
    simulation.send(dedicated, "RS+ foo.*\r\nRS+ bar q 3\r\n");
    for (route, sids) in [
        (shared, ["R A bar q", "R A foo.*"]),
        (dedicated, ["R bar q", "R foo.*"]),
    ] {
        let status = status(&simulation, route, RouteDetail::Subscriptions);
        let mut list = status.subscriptions_list;
        list.sort_by(|one, other| one.subject.cmp(&other.subject));
        let rows = list
            .iter()
            .map(|sub| (&*sub.subject, &*sub.queue, &*sub.sid));
        let expected = [("bar", "q", sids[0]), ("foo.*", "", sids[1])];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        assert!(list.iter().all(|sub| sub.cid == status.rid));
        let all = simulation.shards[route.shard].routes(RouteDetail::None);
        assert!(all[0].subscriptions_list.is_empty() && all[0].announced == 0);
    }
    let mut simulation = Simulation::clustered(1);
    let route = route(&mut simulation);
    simulation.send(route, "LS+ west $G a\r\n");
    let status = status(&simulation, route, RouteDetail::Subscriptions);
    assert_eq!(status.subscriptions_list[0].sid, "L west $G a");
}
