//! Reports of service latency.

use std::time::Duration;

use serde_json::{Value, json};

use super::tests::{Client, Simulation};
use crate::auth::{
    Access, AccessConfig, Auth, Export, ExportKind, Import, ImportKind, Latency, ResponseKind,
    Sampling,
};
use crate::limits::Limits;

/// Returns simulated shards with a service of A that B imports, and three clients: responder, requester, and
/// a subscriber to the reports.
fn simulation(shards: usize, sampling: Sampling) -> (Simulation, [Client; 3]) {
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
    let mut simulation =
        Simulation::with(shards, Limits::default(), Auth::Directory(access.into()));
    let clients = ids.map(|account| {
        let client = simulation.client(0);
        simulation.shards[0].broker.bind(client.id, account);
        client
    });
    simulation.send(clients[1], "SUB latency 1\r\n");
    simulation.send(clients[2], "SUB in 1\r\n");
    (simulation, clients)
}

/// Returns the only report that a subscriber has received.
fn report(simulation: &mut Simulation, listener: Client) -> Value {
    let output = simulation.read(listener);
    let (line, json) = output.split_once("\r\n").expect("a report");
    assert!(line.starts_with("MSG latency 1 "), "{output}");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn response_latency_is_reported_to_the_exporter() {
    for shards in [1, 2] {
        let (mut simulation, [service, listener, requester]) =
            simulation(shards, Sampling::Percent(100));
        simulation.send(service, "SUB svc 1\r\n");
        simulation.send(requester, "PUB svc in 2\r\nhi\r\n");
        assert_eq!(simulation.read(listener), "");
        let request = simulation.read(service);
        let reply = request.split(' ').nth(3).unwrap();
        simulation.send(service, &format!("PUB {reply} 2\r\nho\r\n"));
        assert_eq!(simulation.read(requester), "MSG in 1 2\r\nho\r\n");
        let latency = report(&mut simulation, listener);
        assert_eq!(latency["type"], "io.nats.server.metric.v1.service_latency");
        assert_eq!(latency["status"], 200);
        assert_eq!(latency["description"], Value::Null);
        assert_eq!(latency["requestor"]["acc"], "B");
        // The requester shares its identity only if the import allows it.
        assert_eq!(latency["requestor"]["id"], Value::Null);
        assert_eq!(latency["responder"]["acc"], "A");
        assert_eq!(latency["id"].as_str().map(str::len), Some(22));
        for key in ["start", "timestamp"] {
            assert!(latency[key].is_string(), "{latency}");
        }
        for key in ["service", "system", "total"] {
            assert!(latency[key].is_u64(), "{latency}");
        }
    }
}

#[test]
fn missing_responses_are_reported() {
    let (mut simulation, [service, listener, requester]) = simulation(1, Sampling::Percent(100));
    simulation.send(requester, "PUB svc in 2\r\nhi\r\n");
    assert_eq!(report(&mut simulation, listener)["status"], 503);
    simulation.send(service, "SUB svc 1\r\n");
    simulation.send(requester, "PUB svc 2\r\nhi\r\n");
    let latency = report(&mut simulation, listener);
    assert_eq!(
        (&latency["status"], &latency["description"]),
        (&json!(400), &json!("Bad Request"))
    );
    simulation.send(requester, "PUB svc in 2\r\nhi\r\n");
    // Longer than the response threshold.
    let later = Duration::from_secs(3600);
    simulation.shards[0].handle_timeout(later);
    assert_eq!(report_among(&simulation.read(listener))["status"], 504);
}

/// Returns the report in output that also contains pings.
fn report_among(output: &str) -> Value {
    let json = output.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(json.expect("a report")).expect("JSON")
}

#[test]
fn sampling_selects_reports() {
    let (mut simulation, [service, listener, requester]) = simulation(1, Sampling::Headers);
    simulation.send(service, "SUB svc 1\r\n");
    simulation.send(requester, "PUB svc 2\r\nhi\r\n");
    assert_eq!(simulation.read(listener), "");
    let headers = "NATS/1.0\r\nX-B3-Sampled: 1\r\n\r\n";
    let bytes = headers.len();
    simulation.send(
        requester,
        &format!("HPUB svc {bytes} {bytes}\r\n{headers}\r\n"),
    );
    let latency = report(&mut simulation, listener);
    assert_eq!(latency["header"], json!({ "X-B3-Sampled": ["1"] }));
    let (mut simulation, [service, listener, requester]) =
        self::simulation(1, Sampling::Percent(0));
    simulation.send(service, "SUB svc 1\r\n");
    simulation.send(requester, "PUB svc 2\r\nhi\r\n");
    assert_eq!(simulation.read(listener), "");
}
