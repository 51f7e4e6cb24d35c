//! Messages for queue groups whose members leave while the message is on its way from shard to shard, or from server to
//! server. Found by the simulation of clusters; `tests/it/seeds.rs` of `fanline-sim` names the seeds.

use std::time::Duration;

use super::tests::{Client, Simulation};
use crate::exchange::batch::HOPS_MAX;
use crate::outbox::Chunk;
use crate::session::route::RouteSettings;
use crate::shard::route_tests::{connect, info, settings};

/// Lets a shard read input. The other shards have not heard of it yet.
fn read_alone(simulation: &mut Simulation, from: Client, text: &str) {
    let chunk = Chunk::new(text.as_bytes().into());
    let shard = &mut simulation.shards[from.shard];
    let receipt = shard.receive(from.id, &chunk, 0..chunk.len(), Duration::ZERO);
    assert_eq!(receipt.consumed, text.len(), "{text:?}");
}

/// Accepts a route of a peer that has this interest, and perhaps understands messages that were passed on.
fn peer(simulation: &mut Simulation, id: &str, takes_passed_on: bool, interest: &str) -> Client {
    let key = format!("\"passed_on\":{takes_passed_on},\"port\"");
    let route = simulation.open_route_on(0, None);
    simulation.send(route, &(connect(id) + &info(id).replace("\"port\"", &key)));
    simulation.send(route, interest);
    simulation.read(route);
    route
}

fn count(text: &str, line: &str) -> usize {
    text.matches(line).count()
}

#[test]
fn message_leaves_a_shard_whose_last_member_has_left() {
    for (publishing, takes_passed_on) in [(0, true), (2, true), (0, false)] {
        let mut simulation = Simulation::clustered(3);
        // Plain subscribers of the peer receive each message once. If the peer does not understand messages that were
        // passed on, it must not receive one in addition to the message for plain subscriptions.
        let interest = match takes_passed_on {
            true => "RS+ $G a\r\nRS+ $G a q 1\r\n",
            false => "RS+ $G a q 1\r\n",
        };
        let route = peer(&mut simulation, "NA", takes_passed_on, interest);
        let member = simulation.client(1);
        simulation.send(member, "SUB a q 1\r\n");
        let publisher = simulation.client(publishing);
        simulation.read(route);
        read_alone(&mut simulation, member, "UNSUB 1\r\n");
        simulation.send(publisher, &"PUB a r 2\r\nhi\r\n".repeat(40));
        assert_eq!(simulation.read(member), "");
        let output = simulation.read(route);
        let chosen = count(&output, "RMSG $G a + r q 2\r\nhi\r\n");
        let plain = count(&output, "RMSG $G a r 2\r\nhi\r\n");
        let passed_on = count(&output, "RMSG $G a + r q q 2\r\nhi\r\n");
        match takes_passed_on {
            true => {
                assert_eq!((chosen + plain, passed_on), (40, plain), "{output}");
                assert!(plain > 0, "no message was for the member that has left");
            }
            false => assert_eq!((chosen, plain, passed_on), (40, 0, 0), "{output}"),
        }
    }
}

#[test]
fn message_leaves_a_shard_of_routes_that_has_lost_the_chosen_peer() {
    for others in ["RS+ $G a q 9\r\n", ""] {
        let mut simulation = Simulation::clustered(3);
        let lost = peer(&mut simulation, "NA", true, "RS+ $G a q 9\r\n");
        let other = peer(&mut simulation, "NB", true, others);
        let member = simulation.client(2);
        simulation.send(member, "SUB a q 1\r\n");
        let publisher = simulation.client(1);
        read_alone(&mut simulation, lost, "RS- $G a q\r\n");
        for route in [lost, other] {
            simulation.read(route);
        }
        simulation.send(publisher, &"PUB a 2\r\nhi\r\n".repeat(40));
        let received = count(&simulation.read(member), "MSG a 1 2\r\nhi\r\n");
        let crossed = count(&simulation.read(other), "RMSG $G a | q 2\r\nhi\r\n");
        assert_eq!(received + crossed, 40);
        assert_eq!(simulation.read(lost), "");
    }
}

#[test]
fn publisher_does_not_receive_a_message_that_comes_back() {
    let mut simulation = Simulation::clustered(3);
    let lost = peer(&mut simulation, "NA", true, "RS+ $G a q 9\r\n");
    let publisher = simulation.client(1);
    simulation.send(publisher, "CONNECT {\"echo\":false}\r\nSUB a q 1\r\n");
    read_alone(&mut simulation, lost, "RS- $G a q\r\n");
    simulation.send(publisher, &"PUB a 2\r\nhi\r\n".repeat(40));
    assert_eq!(simulation.read(publisher), "");
}

#[test]
fn only_groups_receive_a_message_that_was_passed_on() {
    for (takes_passed_on, shards) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
        let mut simulation = Simulation::clustered(shards);
        let route = peer(&mut simulation, "NA", takes_passed_on, "");
        let client = simulation.client(shards - 1);
        simulation.send(client, "SUB a 1\r\nSUB a q 2\r\nSUB a p 3\r\n");
        for (line, expected) in [
            ("RMSG $G a | q q 2", &["MSG a 2 2"][..]),
            ("RMSG $G a + r p q p p 2", &["MSG a 2 r 2", "MSG a 3 r 2"]),
            ("RMSG $G a | gone gone 2", &[]),
        ] {
            simulation.send(route, &format!("{line}\r\nhi\r\n"));
            let output = simulation.read(client);
            let lines = output.lines().filter(|line| *line != "hi");
            let (plain, mut members): (Vec<&str>, Vec<&str>) =
                lines.partition(|line| line.starts_with("MSG a 1 "));
            members.sort_unstable();
            assert_eq!(members, expected, "{line}");
            // Other peers may send a name twice, which then has no meaning.
            assert_eq!(plain.is_empty(), takes_passed_on, "{line}: {output}");
        }
    }
}

#[test]
fn message_is_passed_on_a_few_times() {
    let of = |times: u8| format!("RMSG $G a | q {}2\r\nhi\r\n", "q ".repeat(times.into()));
    for shards in [1, 2] {
        let mut simulation = Simulation::clustered(shards);
        let one = peer(&mut simulation, "NA", true, "RS+ $G a q 1\r\n");
        let other = peer(&mut simulation, "NB", true, "RS+ $G a q 1\r\n");
        // The announcement of the other peer.
        simulation.read(one);
        for times in 0..HOPS_MAX {
            simulation.send(one, &of(times));
            assert_eq!(simulation.read(other), of(times + 1));
            // If only the sender has members, it receives the message back.
            simulation.send(other, "RS- $G a q\r\n");
            simulation.send(one, &of(times));
            assert_eq!(simulation.read(one), of(times + 1));
            simulation.send(other, "RS+ $G a q 1\r\n");
        }
        for times in [HOPS_MAX, HOPS_MAX + 1, u8::MAX] {
            simulation.send(one, &of(times));
            assert_eq!((&*simulation.read(one), &*simulation.read(other)), ("", ""));
        }
    }
}

/// A route of another account may belong to another shard than the one on which the message arrives.
#[test]
fn message_that_left_a_shard_of_another_lane_is_marked() {
    let routes = RouteSettings {
        pool_size: 3,
        accounts: Vec::new(),
        shards: 2,
        ..settings()
    };
    let mut simulation = Simulation::with_routes("NOWN", "own", 2, crate::auth::Auth::Open, routes);
    // The only route of this peer carries all accounts, and belongs to shard 0.
    let single = peer(&mut simulation, "NA", true, "");
    let mut pooled = Vec::new();
    for slot in 0..3 {
        let exchange = &simulation.shards[0].broker.exchange;
        let carries = crate::session::route::Carries::Slot(slot);
        let shard = exchange.config.routes.as_ref().unwrap().shard_of(&carries);
        let route = simulation.open_route_on(usize::from(shard), None);
        let key =
            format!("\"passed_on\":true,\"route_pool_size\":3,\"route_pool_idx\":{slot},\"port\"");
        simulation.send(
            route,
            &(connect("NB") + &info("NB").replace("\"port\"", &key)),
        );
        simulation.read(route);
        pooled.push(route);
    }
    // `$G` has slot 2.
    simulation.send(pooled[2], "RS+ $G a\r\nRS+ $G a q 1\r\n");
    simulation.send(single, "RMSG $G a | q 2\r\nhi\r\n");
    assert_eq!(simulation.read(pooled[2]), "RMSG $G a | q q 2\r\nhi\r\n");
}

/// A peer that does not understand such messages would deliver them to its plain subscribers again.
#[test]
fn message_is_not_passed_on_to_plain_subscribers() {
    for has_another in [false, true] {
        let mut simulation = Simulation::clustered(2);
        let old = peer(&mut simulation, "NA", false, "RS+ $G a\r\nRS+ $G a q 1\r\n");
        let interest = if has_another { "RS+ $G a q 1\r\n" } else { "" };
        let another = peer(&mut simulation, "NB", false, interest);
        let member = simulation.client(1);
        simulation.send(member, "SUB a q 9\r\n");
        let publisher = simulation.client(0);
        for route in [old, another] {
            simulation.read(route);
        }
        read_alone(&mut simulation, member, "UNSUB 9\r\n");
        simulation.send(publisher, &"PUB a 2\r\nhi\r\n".repeat(40));
        let output = simulation.read(old);
        let (plain, chosen) = (
            count(&output, "RMSG $G a 2\r\n"),
            count(&output, "RMSG $G a | q 2\r\n"),
        );
        assert_eq!(plain + chosen, 40, "each message crosses once: {output}");
        let passed_on = count(&simulation.read(another), "RMSG $G a | q 2\r\n");
        assert_eq!(passed_on, if has_another { plain } else { 0 });
    }
}
