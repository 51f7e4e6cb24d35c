//! What a service shows about the group that replicates its streams.

use super::lanes::{LANE, replicated, world};
use super::*;
use crate::jetstream::{Follower, GroupState};

fn group() -> GroupState {
    let follower = |name: &str| Follower {
        name: name.to_owned(),
        current: true,
        active: 5,
        ..Follower::default()
    };
    GroupState {
        leader: "n1".to_owned(),
        leader_since_unix_nanos: 1_700_000_000_000_000_000,
        traffic_account: "$SYS".to_owned(),
        followers: vec![
            Follower {
                current: false,
                offline: true,
                lag: 7,
                ..follower("n3")
            },
            follower("n2"),
        ],
    }
}

#[test]
fn descriptions_show_the_group() {
    let mut world = world();
    world.servers[LANE].streams.set_group(group());
    let info = world.request(0, "STREAM.INFO.S", &json!({}));
    let name = info["cluster"]["raft_group"].as_str().unwrap().to_owned();
    assert!(name.starts_with("S-R3F-") && name.len() == 14, "{name}");
    let replicas = json!([
        {"name": "n2", "current": true, "active": 5, "peer": "44jzkV9D"},
        {"name": "n3", "current": false, "offline": true, "active": 5, "lag": 7, "peer": "BXScrY9i"},
    ]);
    let cluster = json!({
        "name": "c", "raft_group": name, "leader": "n1", "leader_since": "2023-11-14T22:13:20Z",
        "system_account": true, "traffic_account": "$SYS", "replicas": replicas,
    });
    assert_eq!(info["cluster"], cluster);
    let list = world.request(2, "STREAM.LIST", &json!({}));
    assert_eq!(list["streams"][0]["cluster"], cluster, "{list}");
    let durable =
        json!({"stream_name": "S", "config": {"durable_name": "c", "ack_policy": "explicit"}});
    let consumer = world.request(2, "CONSUMER.CREATE.S.c", &durable);
    assert_eq!(consumer["cluster"]["replicas"], replicas, "{consumer}");
    let of_consumer = consumer["cluster"]["raft_group"].as_str().unwrap();
    assert!(of_consumer.starts_with("C-R3F-"), "{of_consumer}");
    // Without a number of replicas, an ephemeral consumer has one.
    let ephemeral = json!({"stream_name": "S", "config": {"name": "e", "mem_storage": true}});
    let consumer = world.request(2, "CONSUMER.CREATE.S.e", &ephemeral);
    assert_eq!(
        consumer["cluster"],
        json!({"name": "c", "leader": "name-1"})
    );
    // The group of a stream that is created again is another one.
    world.request(0, "STREAM.DELETE.S", &json!({}));
    world.now.unix_nanos += 1;
    let again = world.request(0, "STREAM.CREATE.S", &replicated("S", "s"));
    assert_ne!(again["cluster"]["raft_group"], name.as_str(), "{again}");
}

#[test]
fn leaders_of_streams_and_consumers_are_reported() {
    let mut world = world();
    let durable =
        json!({"stream_name": "S", "config": {"durable_name": "c", "ack_policy": "explicit"}});
    world.request(2, "CONSUMER.CREATE.S.c", &durable);
    let ephemeral = json!({"stream_name": "S", "config": {"name": "e"}});
    world.request(2, "CONSUMER.CREATE.S.e", &ephemeral);
    let created = world.take_events("LEADER_ELECTED");
    world.retire(LANE);
    world.lead(2, LANE);
    world.run();
    let opened = world.take_events("LEADER_ELECTED");
    let prefix = "$JS.EVENT.ADVISORY";
    let subjects = |events: &[(AccountId, String, Value)]| -> Vec<(AccountId, String)> {
        let of = events
            .iter()
            .map(|(account, subject, _)| (*account, subject.clone()));
        of.collect()
    };
    let expected = [AccountId::GLOBAL, AccountId::SYSTEM].map(|account| {
        [
            (account, format!("{prefix}.CONSUMER.LEADER_ELECTED.S.c")),
            (account, format!("{prefix}.STREAM.LEADER_ELECTED.S")),
        ]
    });
    for events in [&created, &opened] {
        let mut found = subjects(events);
        found.sort();
        assert_eq!(found, expected.concat());
    }
    let (_, _, body) = &opened[0];
    assert_eq!(
        body["type"],
        "io.nats.jetstream.advisory.v1.stream_leader_elected"
    );
    assert_eq!(
        (&body["stream"], &body["account"]),
        (&json!("S"), &Value::Null)
    );
    assert_eq!(body["leader"], "name-2");
    let of_system = opened
        .iter()
        .find(|(account, ..)| *account == AccountId::SYSTEM);
    assert_eq!(of_system.unwrap().2["account"], "$G");
}

#[test]
fn reported_members_include_the_leader() {
    let mut world = world();
    world.servers[LANE].streams.set_group(group());
    world.take_events("LEADER_ELECTED");
    world.request(0, "STREAM.CREATE.T", &replicated("T", "t"));
    let events = world.take_events("LEADER_ELECTED");
    let members = events[0].2["replicas"].as_array().unwrap();
    let names: Vec<&str> = members
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(
        (names, &events[0].2["leader"]),
        (vec!["n1", "n2", "n3"], &json!("n1"))
    );
}

#[test]
fn leaders_step_down_on_request() {
    let mut world = world();
    world.servers[LANE].streams.set_group(group());
    world.create(0, "OWN", "own");
    let durable =
        json!({"stream_name": "S", "config": {"durable_name": "c", "ack_policy": "explicit"}});
    world.request(2, "CONSUMER.CREATE.S.c", &durable);
    let ephemeral = json!({"stream_name": "S", "config": {"name": "e"}});
    world.request(2, "CONSUMER.CREATE.S.e", &ephemeral);
    let mut check = |path: &str, payload: Value, expected: (u64, &str, Option<Option<&str>>)| {
        let path = path.replacen('.', ".LEADER.STEPDOWN.", 1);
        let answer = world.request(0, &path, &payload);
        let (error, text, wanted) = expected;
        assert_eq!(code(&answer), error, "{path} {payload}: {answer}");
        assert_eq!(answer["success"] == true, error == 0, "{answer}");
        if !text.is_empty() {
            assert_eq!(answer["error"]["description"], text);
        }
        let wanted = wanted.map(|preferred| preferred.map(str::to_owned));
        let streams = &mut world.servers[LANE].streams;
        assert_eq!(streams.take_step_down(), wanted, "{path} {payload}");
        assert_eq!(streams.take_step_down(), None);
    };
    let preferred = |name: &str| json!({"placement": {"preferred": name}});
    check("STREAM.S", json!({}), (0, "", Some(None)));
    check("STREAM.S", Value::Null, (0, "", Some(None)));
    check("STREAM.S", preferred("n2"), (0, "", Some(Some("n2"))));
    let known = "preferred server \"n1\" is already leader";
    check("STREAM.S", preferred("n1"), (10005, known, None));
    let unknown = "preferred server \"x\" not known";
    check("STREAM.S", preferred("x"), (10005, unknown, None));
    check(
        "STREAM.S",
        json!({"placement": {"cluster": "c"}}),
        (0, "", Some(None)),
    );
    let none = "no replacement peer connected";
    check(
        "STREAM.S",
        json!({"placement": {"cluster": "d"}}),
        (10005, none, None),
    );
    check("STREAM.S", json!({"placement": 5}), (10025, "", None));
    check("STREAM.none", json!({}), (10059, "", None));
    check("STREAM.OWN", json!({}), (0, "", None));
    check("CONSUMER.S.c", preferred("n3"), (0, "", Some(Some("n3"))));
    check("CONSUMER.S.e", json!({}), (0, "", None));
    check("CONSUMER.S.none", json!({}), (10014, "", None));
}

#[test]
fn servers_of_streams_are_fixed() {
    let mut world = world();
    world.servers[LANE].streams.set_group(group());
    world.create(0, "OWN", "own");
    let durable =
        json!({"stream_name": "S", "config": {"durable_name": "c", "ack_policy": "explicit"}});
    world.request(2, "CONSUMER.CREATE.S.c", &durable);
    for (path, payload, expected) in [
        ("STREAM.PEER.REMOVE.S", json!({}), 10003),
        ("STREAM.PEER.REMOVE.S", json!({"peer": "n2"}), 10075),
        ("STREAM.PEER.REMOVE.S", json!({"peer": "44jzkV9D"}), 10075),
        ("STREAM.PEER.EVACUATE.S", json!({"peer": "n1"}), 10075),
        ("STREAM.PEER.REMOVE.S", json!({"peer": "x"}), 10040),
        ("STREAM.PEER.REMOVE.none", json!({"peer": "n2"}), 10059),
        ("STREAM.PEER.REMOVE.OWN", json!({"peer": "name-0"}), 10075),
        ("CONSUMER.PEER.REMOVE.S.c", json!({"peer": "n3"}), 10075),
        ("CONSUMER.PEER.REMOVE.S.none", json!({"peer": "n3"}), 10014),
        ("STREAM.CANCEL_MOVE.S", json!({}), 10129),
        (
            "STREAM.UPDATE.S",
            json!({"name": "S", "subjects": ["s"], "num_replicas": 1}),
            10061,
        ),
    ] {
        let refused = world.request(0, path, &payload);
        assert_eq!(code(&refused), expected, "{path} {payload}: {refused}");
    }
}
