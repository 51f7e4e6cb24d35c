//! Traces of single messages, observed on whole shards.

use std::fmt::Write as _;

use serde_json::Value;

use super::account_tests::{SERVICE, ask, client, export, import, simulation};
use super::route_tests::{connect, info};
use super::tests::{Client, Simulation};
use crate::auth::{AccessConfig, ExportKind, ImportKind, Mapping};

/// Returns an HPUB of a message that requests a trace.
fn traced(subject: &str, header: &str) -> String {
    let headers = format!("NATS/1.0\r\nNats-Trace-Dest: t\r\n{header}\r\n");
    let bytes = headers.len();
    format!("HPUB {subject} {bytes} {}\r\n{headers}hi\r\n", bytes + 2)
}

const ONLY: &str = "Nats-Trace-Only: true\r\n";

/// Returns the events of all traces that a subscriber has received, each as a word and its fields.
fn reports(simulation: &mut Simulation, listener: Client) -> Vec<String> {
    let sent = simulation.read(listener);
    let all = sent.lines().filter(|line| line.starts_with('{'));
    let all = all.map(|json| serde_json::from_str::<Value>(json).unwrap());
    all.flat_map(|trace| {
        let events = trace["events"].as_array().cloned().unwrap_or_default();
        events.iter().map(shown).collect::<Vec<_>>()
    })
    .collect()
}

fn shown(event: &Value) -> String {
    let mut text = event["type"].as_str().unwrap().to_owned();
    for (key, value) in event.as_object().unwrap() {
        if !matches!(key.as_str(), "type" | "ts" | "cid" | "kind") {
            let _ = write!(text, " {key}={}", value.as_str().unwrap());
        }
    }
    text
}

#[test]
fn trace_reports_deliveries() {
    let mut simulation = Simulation::new(1);
    let [listener, reader, publisher] = [0, 0, 0].map(|shard| simulation.client(shard));
    simulation.send(listener, "SUB t 1\r\n");
    simulation.send(reader, "SUB a.* 1\r\nSUB a.b g 2\r\nUNSUB 2 1\r\n");
    for is_only in [true, false] {
        let header = if is_only { ONLY } else { "" };
        simulation.send(publisher, &traced("a.b", header));
        assert_eq!(simulation.read(reader).is_empty(), is_only);
        assert_eq!(
            reports(&mut simulation, listener),
            ["in acc=$G subj=a.b", "eg sub=a.*", "eg queue=g sub=a.b"]
        );
    }
    // Other messages are delivered, even one that follows in the same input.
    simulation.send(publisher, &(traced("c", ONLY) + "PUB a.b 1\r\nx\r\n"));
    assert_eq!(simulation.read(reader), "MSG a.b 1 1\r\nx\r\n");
    assert_eq!(reports(&mut simulation, listener), ["in acc=$G subj=c"]);
}

#[test]
fn other_shards_report_their_deliveries() {
    for is_only in [true, false] {
        let mut simulation = Simulation::new(2);
        let [listener, publisher] = [0, 0].map(|shard| simulation.client(shard));
        let reader = simulation.client(1);
        simulation.send(listener, "SUB t 1\r\n");
        simulation.send(reader, "SUB a 1\r\nSUB a g 2\r\n");
        let header = if is_only { ONLY } else { "" };
        simulation.send(publisher, &traced("a", header));
        assert_eq!(simulation.read(reader).is_empty(), is_only);
        assert_eq!(
            reports(&mut simulation, listener),
            [
                "in acc=$G subj=a",
                "eg hop=2 name=shard-1",
                "in acc=$G name=another shard subj=a",
                "eg sub=a",
                "eg queue=g sub=a",
            ]
        );
    }
}

#[test]
fn trace_crosses_accounts_that_allow_it() {
    for allows_trace in [false, true] {
        let mut config = AccessConfig::default();
        let mut service = export(SERVICE, "svc");
        service.allow_trace = allows_trace;
        let mut stream = import(ImportKind::Stream, "A", "news.>", Some("from.>"));
        stream.allow_trace = allows_trace;
        let a = config.account_mut("A");
        a.exports = vec![service, export(ExportKind::Stream, "news.>")];
        a.mappings = vec![Mapping::new("old.*", "news.$1").unwrap()];
        config.account_mut("B").imports = vec![stream, ask("A", "svc", Some("ask"))];
        let (mut simulation, access) = simulation(1, config);
        let [a, b] = ["A", "B"].map(|name| client(&mut simulation, &access, 0, name));
        simulation.send(a, "SUB t 1\r\nSUB svc 2\r\n");
        simulation.send(b, "SUB t 1\r\nSUB from.* 2\r\n");
        let seen = |line: &str| allows_trace.then(|| line.to_owned());
        simulation.send(a, &traced("old.x", ""));
        let mut expected = vec!["in acc=A subj=old.x".to_owned(), "sm to=news.x".into()];
        expected.push("se acc=B to=from.x".into());
        expected.extend(seen("eg acc=B sub=from.*"));
        assert_eq!(reports(&mut simulation, a), expected);
        assert!(simulation.read(b).contains("from.x"));
        simulation.send(b, &traced("ask", ONLY));
        let mut expected = vec!["in acc=B subj=ask".to_owned()];
        expected.push("si acc=A from=ask to=svc".into());
        expected.extend(seen("eg acc=A sub=svc"));
        assert_eq!(reports(&mut simulation, b), expected);
        assert_eq!(simulation.read(a), "");
    }
}

#[test]
fn trace_crosses_routes_whose_peers_continue_it() {
    for (version, header) in [(3, ""), (3, ONLY), (2, ""), (2, ONLY)] {
        let mut simulation = Simulation::clustered(1);
        let client = simulation.client(0);
        simulation.send(client, "SUB t 1\r\nSUB a 2\r\n");
        let route = simulation.open_route_on(0, None);
        let info = info("NA").replace("\"port\"", &format!("\"proto\":{version},\"port\""));
        simulation.send(route, &(connect("NA") + &info + "RS+ $G b\r\n"));
        simulation.read(route);
        simulation.send(client, &traced("b", header));
        let sent = simulation.read(route);
        let mut expected = vec!["in acc=$G subj=b"];
        if version == 3 {
            expected.push("eg hop=64 name=name-NA");
        }
        assert_eq!(
            sent.contains("Nats-Trace-Hop: 64\r\n"),
            version == 3,
            "{sent}"
        );
        assert_eq!(sent.is_empty(), (version, header) == (2, ONLY), "{sent}");
        assert_eq!(reports(&mut simulation, client), expected);
        let message = traced("a", header).replacen("HPUB a", "HMSG $G a", 1);
        simulation.send(route, &message);
        let output = simulation.read(client);
        assert_eq!(output.contains("HMSG a 2"), header.is_empty(), "{output}");
        assert!(
            output.contains("\"name\":\"name-NA\"") && output.contains("\"sub\":\"a\""),
            "{output}"
        );
    }
}
