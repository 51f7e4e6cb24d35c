//! Reports of service latency.

use std::time::Duration;

use serde_json::{Value, json};

use super::tests::{Client, World};
use crate::auth::{
    Access, AccessConfig, Auth, Export, ExportKind, Import, ImportKind, Latency, ResponseKind,
    Sampling,
};
use crate::limits::Limits;

/// Returns simulated shards with a service of A that B imports, and three clients: responder, requester, and
/// a subscriber to the reports.
fn world(shards: usize, sampling: Sampling) -> (World, [Client; 3]) {
    let mut config = AccessConfig::default();
    config.account_mut("A").exports.push(Export {
        kind: ExportKind::Service {
            response: ResponseKind::Single,
            response_threshold: None,
            latency: Some(Latency {
                subject: "latency".into(),
                sampling,
            }),
        },
        subject: "svc".into(),
        accounts: None,
        account_token_position: None,
        allow_trace: false,
    });
    config.account_mut("B").imports.push(Import {
        kind: ImportKind::Service { share: false },
        account: "A".into(),
        subject: "svc".into(),
        to: None,
        allow_trace: false,
    });
    let access = Access::new(config).unwrap();
    let ids = ["A", "A", "B"].map(|name| access.account_id(name).unwrap());
    let mut world = World::with(shards, Limits::default(), Auth::Directory(access.into()));
    let clients = ids.map(|account| {
        let client = world.client(0);
        world.shards[0].broker.bind(client.id, account);
        client
    });
    world.say(clients[1], "SUB latency 1\r\n");
    world.say(clients[2], "SUB in 1\r\n");
    (world, clients)
}

/// Returns the only report that a subscriber has received.
fn report(world: &mut World, listener: Client) -> Value {
    let told = world.read(listener);
    let (line, json) = told.split_once("\r\n").expect("a report");
    assert!(line.starts_with("MSG latency 1 "), "{told}");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn response_latency_is_reported_to_the_exporter() {
    for shards in [1, 2] {
        let (mut world, [service, listener, asker]) = world(shards, Sampling::Percent(100));
        world.say(service, "SUB svc 1\r\n");
        world.say(asker, "PUB svc in 2\r\nhi\r\n");
        assert_eq!(world.read(listener), "");
        let asked = world.read(service);
        let reply = asked.split(' ').nth(3).unwrap();
        world.say(service, &format!("PUB {reply} 2\r\nho\r\n"));
        assert_eq!(world.read(asker), "MSG in 1 2\r\nho\r\n");
        let told = report(&mut world, listener);
        assert_eq!(told["type"], "io.nats.server.metric.v1.service_latency");
        assert_eq!(told["status"], 200);
        assert_eq!(told["description"], Value::Null);
        assert_eq!(told["requestor"]["acc"], "B");
        // The requester shares its identity only if the import allows it.
        assert_eq!(told["requestor"]["id"], Value::Null);
        assert_eq!(told["responder"]["acc"], "A");
        assert_eq!(told["id"].as_str().map(str::len), Some(22));
        for key in ["start", "timestamp"] {
            assert!(told[key].is_string(), "{told}");
        }
        for key in ["service", "system", "total"] {
            assert!(told[key].is_u64(), "{told}");
        }
    }
}

#[test]
fn missing_responses_are_reported() {
    let (mut world, [service, listener, asker]) = world(1, Sampling::Percent(100));
    world.say(asker, "PUB svc in 2\r\nhi\r\n");
    assert_eq!(report(&mut world, listener)["status"], 503);
    world.say(service, "SUB svc 1\r\n");
    world.say(asker, "PUB svc 2\r\nhi\r\n");
    let told = report(&mut world, listener);
    assert_eq!(
        (&told["status"], &told["description"]),
        (&json!(400), &json!("Bad Request"))
    );
    world.say(asker, "PUB svc in 2\r\nhi\r\n");
    // Longer than the response threshold.
    let later = Duration::from_secs(3600);
    world.shards[0].handle_timeout(later);
    assert_eq!(report_among(&world.read(listener))["status"], 504);
}

/// Returns the report in output that also contains pings.
fn report_among(told: &str) -> Value {
    let json = told.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(json.expect("a report")).expect("JSON")
}

#[test]
fn sampling_selects_reports() {
    let (mut world, [service, listener, asker]) = world(1, Sampling::Headers);
    world.say(service, "SUB svc 1\r\n");
    world.say(asker, "PUB svc 2\r\nhi\r\n");
    assert_eq!(world.read(listener), "");
    let headers = "NATS/1.0\r\nX-B3-Sampled: 1\r\n\r\n";
    let bytes = headers.len();
    world.say(asker, &format!("HPUB svc {bytes} {bytes}\r\n{headers}\r\n"));
    let told = report(&mut world, listener);
    assert_eq!(told["header"], json!({ "X-B3-Sampled": ["1"] }));
    let (mut world, [service, listener, asker]) = self::world(1, Sampling::Percent(0));
    world.say(service, "SUB svc 1\r\n");
    world.say(asker, "PUB svc 2\r\nhi\r\n");
    assert_eq!(world.read(listener), "");
}
