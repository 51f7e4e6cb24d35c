//! JetStream of a server in a cluster, as other servers see it. Here the last shard stands for its service.

use std::time::Duration;

use super::route_tests::{connect, info, settings};
use super::tests::{Client, Simulation};
use crate::auth::Auth;
use crate::exchange::batch::{BatchCursor, BatchEntry, FROM_ROUTE};
use crate::outbox::Chunk;
use crate::session::route::RouteSettings;

/// The shard that stands for the service.
const SERVICE: u16 = 1;

fn with_jetstream() -> Simulation {
    let routes = RouteSettings {
        jetstream: Some(SERVICE),
        ..settings()
    };
    Simulation::with_routes("NOWN", "own", 2, Auth::Open, routes)
}

/// Accepts a route with this INFO, and returns it with its output.
fn accepted(simulation: &mut Simulation, info: &str) -> (Client, String) {
    let route = simulation.open_route_on(0, None);
    simulation.read(route);
    simulation.send(route, &connect("NA"));
    simulation.send(route, info);
    let output = simulation.read(route);
    (route, output)
}

#[test]
fn service_announces_its_streams_and_clients_announce_what_they_watch() {
    let mut simulation = with_jetstream();
    let [client, service] = [0, SERVICE.into()].map(|shard| simulation.client(shard));
    let (route, output) = accepted(&mut simulation, &info("NA"));
    assert_eq!(output, "");
    for (from, input, expected) in [
        (service, "SUB $JS.API.> 1\r\n", ""),
        (client, "SUB $JS.API.> 1\r\n", "RS+ $G $JS.API.>\r\n"),
        (client, "UNSUB 1\r\n", "RS- $G $JS.API.>\r\n"),
        (client, "SUB $JS.OWNER.NA.S 2\r\n", ""),
        (client, "SUB $SYS.JETSTREAM.NA.> 3\r\n", ""),
        (
            service,
            "SUB $JS.OWNER.NOWN.S 2\r\n",
            "RS+ $G $JS.OWNER.NOWN.S\r\n",
        ),
        (
            service,
            "SUB $JS.API.STREAM.*.S 3\r\n",
            "RS+ $G $JS.API.STREAM.*.S\r\n",
        ),
    ] {
        simulation.send(from, input);
        assert_eq!(simulation.read(route), expected, "{input:?}");
    }
}

#[test]
fn service_recognizes_requests_from_routes() {
    let mut simulation = with_jetstream();
    let [client, service] = [0, SERVICE.into()].map(|shard| simulation.client(shard));
    simulation.send(service, "SUB $JS.> 1\r\nSUB a 2\r\n");
    let (route, _) = accepted(&mut simulation, &info("NA"));
    for (from, text, expected) in [
        (client, "PUB $JS.API.INFO 2\r\nhi\r\n", false),
        (route, "RMSG $G $JS.API.INFO 2\r\nhi\r\n", true),
        (route, "RMSG $G $JS.ACK.S.c.1.1.1.1.0 2\r\nhi\r\n", false),
        (route, "RMSG $G a 2\r\nhi\r\n", false),
    ] {
        let chunk = Chunk::new(text.as_bytes().into());
        let shard = &mut simulation.shards[0];
        shard.receive(from.id, &chunk, 0..chunk.len(), Duration::ZERO);
        let batch = std::mem::take(shard.outgoing(SERVICE.into()));
        let mut cursor = BatchCursor::default();
        let mut found = Vec::new();
        while let Some(entry) = batch.read(&mut cursor) {
            if let BatchEntry::Message(crossing) = entry {
                found.push(crossing.hops & FROM_ROUTE != 0);
            }
        }
        assert_eq!(found, [expected], "{text:?}");
    }
}

#[test]
fn nats_server_with_jetstream_is_refused() {
    let theirs = info("NA").replace("\"headers\"", "\"jetstream\":true,\"headers\"");
    let mut simulation = with_jetstream();
    let (_, output) = accepted(&mut simulation, &theirs);
    let expected = "-ERR 'Rejecting server \"name-NA\" with JetStream of nats-server, because server \"own\" has \
                    JetStream of Fanline'\r\n";
    assert_eq!(output, expected);
    let mut without = Simulation::clustered(1);
    let (_, output) = accepted(&mut without, &theirs);
    assert_eq!(output, "");
}
