//! A service with several replicas, which exists only while its server leads them.

use super::*;

/// Number of the server that plays the leader of a lane.
pub(super) const LANE: usize = 1;

pub(super) fn replicated(name: &str, subject: &str) -> Value {
    json!({"name": name, "subjects": [subject], "num_replicas": 3})
}

/// Creates three servers. The streams of the second one have three replicas.
pub(super) fn world() -> World {
    let mut world = World::with_replicas(&[1, 3, 1], 1);
    let created = world.request(0, "STREAM.CREATE.S", &replicated("S", "s"));
    assert_eq!(created["config"]["num_replicas"], 3, "{created}");
    world
}

#[test]
fn retired_service_ends_subscriptions_and_pull_requests() {
    let mut world = world();
    world.create(0, "ORIGIN", "origin");
    let copy = json!({"name": "COPY", "num_replicas": 3, "sources": [{"name": "ORIGIN"}]});
    let created = world.request(0, "STREAM.CREATE.COPY", &copy);
    assert_eq!(code(&created), 0, "{created}");
    let consumer =
        json!({"stream_name": "S", "config": {"durable_name": "c", "ack_policy": "explicit"}});
    let created = world.request(0, "CONSUMER.CREATE.S.c", &consumer);
    assert_eq!(code(&created), 0, "{created}");
    let waiting = world.send(0, "CONSUMER.MSG.NEXT.S.c", &json!({"batch": 5}));
    world.deliver_events();
    assert!(world.answers[&waiting].is_empty());
    let mut filters = world.servers[LANE].outputs.filters.keys();
    assert!(filters.any(|(_, filter)| filter.starts_with(b"$JS.S.")));
    let used_bytes = world.servers[LANE].shelf.used_bytes();

    world.retire(LANE);
    assert_eq!(
        world.answer(&waiting),
        "NATS/1.0 409 Leadership Change\r\n\r\n"
    );
    let Server { outputs, shelf, .. } = &world.servers[LANE];
    assert!(outputs.filters.is_empty(), "{:?}", outputs.filters);
    assert!(outputs.groups.is_empty(), "{:?}", outputs.groups);
    assert_eq!(shelf.used_bytes(), used_bytes);
    assert_eq!(outputs.count, 1, "one message: the end of the pull request");
}

#[test]
fn lead_moves_to_another_service_with_the_same_folders() {
    let mut world = world();
    world.send_to(0, "s", "one");
    world.retire(LANE);
    world.run();
    world.lead(2, LANE);
    world.run();
    let info = world.request(0, "STREAM.INFO.S", &json!({}));
    assert_eq!(info["cluster"]["leader"], "name-2", "{info}");
    assert_eq!(info["state"]["messages"], 1, "{info}");
}
