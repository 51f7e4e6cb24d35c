//! Permissions of peers, and reloads that change them.

use std::sync::Arc;

use super::ShardConfig;
use super::route_tests::{connect, info, settings};
use super::tests::{Client, Simulation};
use crate::auth::{Allowed, Auth, Permissions, Rights};
use crate::codec::nats::error::CloseReason;
use crate::session::route::RouteSettings;

/// Returns the rights of a cluster that imports the first subjects and exports the second ones.
fn rights(import: Allowed, export: Allowed) -> Option<Arc<Rights>> {
    let permissions = Permissions {
        publish: import,
        subscribe: export,
        responses: None,
    };
    Some(Arc::new(Rights::new(&permissions)))
}

fn allowed(allow: Option<&[&str]>, deny: &[&str]) -> Allowed {
    Allowed::publish(allow, deny).unwrap()
}

fn restricted() -> Option<Arc<Rights>> {
    rights(
        allowed(Some(&["in.>"]), &["in.secret"]),
        allowed(Some(&["out.>"]), &["out.secret"]),
    )
}

fn server(rights: Option<Arc<Rights>>) -> Simulation {
    let routes = RouteSettings {
        rights,
        ..settings()
    };
    Simulation::with_routes("NOWN", "own", 1, Auth::Open, routes)
}

fn route(simulation: &mut Simulation) -> Client {
    let route = simulation.open_route_on(0, None);
    simulation.send(route, &(connect("NA") + &info("NA")));
    route
}

fn reload(simulation: &mut Simulation, change: impl Fn(&mut RouteSettings)) {
    let shard = &mut simulation.shards[0];
    let exchange = &shard.broker.exchange;
    let (info, access) = (exchange.info.clone(), Arc::clone(&exchange.access));
    let mut routes = (**exchange.config.routes.as_ref().unwrap()).clone();
    change(&mut routes);
    let config = ShardConfig {
        routes: Some(Arc::new(routes)),
        gateways: None,
        ..ShardConfig::clone(&exchange.config)
    };
    shard.reload(Arc::new(config), info, access, std::time::Duration::ZERO);
}

/// Sorts the lines, whose order is undefined after a reload.
fn sorted(output: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = output
        .lines()
        .filter(|line| !line.starts_with("INFO"))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn only_imported_interest_is_announced() {
    let mut simulation = server(restricted());
    let client = simulation.client(0);
    simulation.send(
        client,
        "SUB in.a 1\r\nSUB in.secret 2\r\nSUB other 3\r\nSUB in.* q 4\r\nSUB > 5\r\n",
    );
    let route = route(&mut simulation);
    let output = simulation.read(route);
    assert!(
        output.contains(r#""import":{"allow":["in.>"],"deny":["in.secret"]},"export":{"allow":["out.>"],"deny":["out.secret"]}"#),
        "{output}"
    );
    assert_eq!(sorted(&output), ["RS+ $G in.* q 1", "RS+ $G in.a"]);
    simulation.send(client, "SUB in.b 6\r\nSUB b 7\r\nUNSUB 3\r\nUNSUB 1\r\n");
    let output = simulation.read(route);
    assert_eq!(sorted(&output), ["RS+ $G in.b", "RS- $G in.a"]);
}

#[test]
fn only_imported_messages_arrive() {
    let mut simulation = server(restricted());
    let client = simulation.client(0);
    simulation.send(client, "SUB > 1\r\n");
    let route = route(&mut simulation);
    let messages = "RMSG $G in.a 1\r\na\r\nRMSG $G in.secret 1\r\nb\r\nRMSG $G c 1\r\nc\r\nRMSG $G in.a 1\r\nd\r\n";
    simulation.send(route, messages);
    let expected = "MSG in.a 1 1\r\na\r\nMSG in.a 1 1\r\nd\r\n";
    assert_eq!(simulation.read(client), expected);
}

#[test]
fn only_exported_messages_leave() {
    let mut simulation = server(restricted());
    let client = simulation.client(0);
    let route = route(&mut simulation);
    simulation.read(route);
    simulation.send(
        route,
        "RS+ $G out.*\r\nRS+ $G other\r\nRS+ $G out.secret\r\nRS+ $G out.* q 1\r\n",
    );
    simulation.send(
        client,
        "PUB out.a 1\r\na\r\nPUB out.secret 1\r\nb\r\nPUB other 1\r\nc\r\n",
    );
    assert_eq!(simulation.read(route), "RMSG $G out.a | q 1\r\na\r\n");
}

#[test]
fn reload_changes_what_may_cross() {
    let mut simulation = server(None);
    let client = simulation.client(0);
    simulation.send(client, "SUB in.a 1\r\nSUB other 2\r\n");
    let route = route(&mut simulation);
    simulation.send(route, "RS+ $G out.a\r\nRS+ $G other\r\n");
    simulation.read(route);
    reload(&mut simulation, |routes| routes.rights = restricted());
    let output = simulation.read(route);
    assert!(
        output.starts_with("INFO ") && output.contains("\"import\""),
        "{output}"
    );
    assert_eq!(sorted(&output), ["RS- $G other"]);
    simulation.send(client, "PUB out.a 1\r\na\r\nPUB other 1\r\nb\r\n");
    assert_eq!(simulation.read(route), "RMSG $G out.a 1\r\na\r\n");
    reload(&mut simulation, |routes| routes.rights = None);
    let output = simulation.read(route);
    assert!(
        output.starts_with("INFO ") && !output.contains("\"import\""),
        "{output}"
    );
    assert_eq!(sorted(&output), ["RS+ $G other"]);
    // The peer announces its interest again, because it has got another INFO.
    simulation.send(route, "RS+ $G out.a\r\nRS+ $G other\r\n");
    simulation.send(client, "PUB other 1\r\nb\r\n");
    assert_eq!(simulation.read(route), "RMSG $G other 1\r\nb\r\n");
}

#[test]
fn peer_with_other_permissions_receives_all_interest_again() {
    let mut simulation = server(None);
    let client = simulation.client(0);
    simulation.send(client, "SUB a 1\r\nSUB a q 2\r\n");
    let route = route(&mut simulation);
    simulation.read(route);
    simulation.send(route, &info("NA"));
    assert_eq!(simulation.read(route), "");
    let changed = info("NA").replace("\"port\"", "\"export\":{\"allow\":[\"a\"]},\"port\"");
    simulation.send(route, &changed);
    assert_eq!(
        sorted(&simulation.read(route)),
        ["RS+ $G a", "RS+ $G a q 1"]
    );
}

#[test]
fn other_divisions_of_accounts_close_routes() {
    for (is_closed, change) in [
        (
            true,
            (|routes| routes.pool_size = 3) as fn(&mut RouteSettings),
        ),
        (true, |routes| routes.accounts = vec!["$G".into()]),
        (false, |routes| routes.password = "other".into()),
    ] {
        let mut simulation = server(None);
        let route = route(&mut simulation);
        reload(&mut simulation, change);
        let reason = is_closed.then_some(CloseReason::RouteRemoved);
        assert_eq!(simulation.is_ended(route), reason);
    }
}
