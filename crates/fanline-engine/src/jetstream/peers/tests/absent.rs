//! Streams whose group has no leader.

use super::lanes::{LANE, replicated, world};
use super::*;

/// Lets the lane have no leader, and the other servers know its streams.
fn without_leader() -> World {
    let mut world = world();
    world.create(0, "OWN", "own");
    world.retire(LANE);
    world.run();
    for at in [0, 2] {
        let absent = BTreeMap::from([("$G".to_owned(), BTreeSet::from(["S".to_owned()]))]);
        world.servers[at].streams.set_absent(absent);
    }
    world
}

#[test]
fn requests_for_streams_without_a_leader_are_refused() {
    let mut world = without_leader();
    let consumer = json!({"stream_name": "S", "config": {"durable_name": "c"}});
    for at in [0, 2] {
        for (path, payload) in [
            ("STREAM.INFO.S", &json!({})),
            ("STREAM.DELETE.S", &json!({})),
            ("STREAM.UPDATE.S", &replicated("S", "s")),
            ("CONSUMER.CREATE.S.c", &consumer),
        ] {
            let refused = world.request(at, path, payload);
            assert_eq!(code(&refused), 10008, "{path}: {refused}");
        }
        let delegated = world.delegate((at, &[]), "STREAM.INFO.S", &json!({}));
        world.run();
        assert_eq!(code(&world.answer(&delegated)), 10008);
        let pull = world.request(at, "CONSUMER.MSG.NEXT.S.c", &json!({}));
        assert!(pull.as_str().unwrap().starts_with("NATS/1.0 503"), "{pull}");
        let other = world.request(at, "STREAM.INFO.OWN", &json!({}));
        assert_eq!(code(&other), 0, "{other}");
        let missing = world.request(at, "STREAM.INFO.none", &json!({}));
        assert_eq!(code(&missing), 10059, "{missing}");
    }
}

#[test]
fn lists_contain_streams_without_a_leader() {
    let mut world = without_leader();
    for at in [0, 2] {
        let names = world.request(at, "STREAM.NAMES", &json!({}));
        assert_eq!(
            (&names["streams"], &names["total"]),
            (&json!(["OWN", "S"]), &json!(2))
        );
        let list = world.request(at, "STREAM.LIST", &json!({}));
        assert_eq!(list["streams"][0]["config"]["name"], "OWN", "{list}");
        assert_eq!(
            (&list["missing"], &list["total"]),
            (&json!(["S"]), &json!(2))
        );
    }
    // Another server knows it from the member.
    world.servers[0].streams.set_absent(BTreeMap::new());
    let names = world.request(0, "STREAM.NAMES", &json!({}));
    assert_eq!(names["streams"], json!(["OWN", "S"]));
    let list = world.request(0, "STREAM.LIST", &json!({}));
    assert_eq!(list["missing"], json!(["S"]), "{list}");
}

#[test]
fn nothing_is_created_beside_a_stream_without_a_leader() {
    let mut world = without_leader();
    let sent: Vec<String> = [
        (0, "STREAM.CREATE.S", stream("S", "x")),
        (0, "STREAM.CREATE.S", replicated("S", "s")),
        (0, "STREAM.CREATE.T", stream("T", "t")),
        (2, "STREAM.CREATE.U", stream("U", "u")),
        (2, "STREAM.CREATE.V", replicated("V", "v")),
        (0, "STREAM.UPDATE.OWN", stream("OWN", "other")),
    ]
    .iter()
    .map(|(at, path, config)| world.send(*at, path, config))
    .collect();
    world.run();
    for reply in sent {
        let refused = world.answer(&reply);
        assert_eq!(code(&refused), 10008, "{refused}");
    }
    for name in ["S", "T", "U", "V"] {
        assert!(world.owners(name).is_empty(), "{name}");
    }
    // What changes no subjects is possible.
    let same = world.request(0, "STREAM.UPDATE.OWN", &stream("OWN", "own"));
    assert_eq!(code(&same), 0, "{same}");
}

#[test]
fn requests_that_wait_for_a_leader_reach_it() {
    let mut world = without_leader();
    let same = world.send(0, "STREAM.CREATE.S", &replicated("S", "s"));
    let other = world.send(2, "STREAM.CREATE.T", &stream("T", "t"));
    let overlapping = world.send(2, "STREAM.CREATE.U", &stream("U", "s"));
    world.deliver_events();
    for reply in [&same, &other, &overlapping] {
        assert!(world.answers[reply].is_empty());
    }
    world.lead(LANE, LANE);
    world.run();
    assert_eq!(world.answer(&same)["cluster"]["leader"], "name-1");
    assert_eq!(world.answer(&other)["cluster"]["leader"], "name-2");
    assert_eq!(code(&world.answer(&overlapping)), 10065);
    // The marker of the leader counts, although the stream is still among those that may have none.
    let info = world.request(2, "STREAM.INFO.S", &json!({}));
    assert_eq!(info["cluster"]["leader"], "name-1", "{info}");
}
