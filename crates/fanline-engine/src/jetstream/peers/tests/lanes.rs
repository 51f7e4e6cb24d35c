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

#[test]
fn messages_and_consumers_in_memory_survive_a_change_of_the_leader() {
    let mut world = world();
    let config = json!({"name": "M", "subjects": ["m"], "num_replicas": 3, "storage": "memory"});
    let created = world.request(0, "STREAM.CREATE.M", &config);
    assert_eq!(created["config"]["storage"], "memory", "{created}");
    for stream in ["S", "M"] {
        for (name, durable) in [("durable", true), ("ephemeral", false)] {
            let mut consumer = json!({"stream_name": stream, "config": {"name": name, "ack_policy": "explicit", "mem_storage": true}});
            if durable {
                consumer["config"]["durable_name"] = name.into();
            }
            let created = world.request(0, &format!("CONSUMER.CREATE.{stream}.{name}"), &consumer);
            assert_eq!(code(&created), 0, "{created}");
        }
    }
    world.send_to(2, "m", "one");
    world.send_to(0, "m", "two");
    world.retire(LANE);
    world.run();
    world.lead(2, LANE);
    world.run();
    let info = world.request(0, "STREAM.INFO.M", &json!({}));
    assert_eq!(info["state"]["messages"], 2, "{info}");
    assert_eq!(info["config"]["storage"], "memory", "{info}");
    for stream in ["S", "M"] {
        let durable = world.request(0, &format!("CONSUMER.INFO.{stream}.durable"), &json!({}));
        assert_eq!(durable["config"]["mem_storage"], true, "{durable}");
        let ephemeral = world.request(0, &format!("CONSUMER.INFO.{stream}.ephemeral"), &json!({}));
        assert_eq!(code(&ephemeral), 10014, "{ephemeral}");
    }
    assert_eq!(
        world.servers[2].streams.take_problems(),
        Vec::<String>::new()
    );
    // A deleted stream leaves nothing that a later leader would find.
    let deleted = world.request(0, "STREAM.DELETE.M", &json!({}));
    assert_eq!(deleted["success"], true, "{deleted}");
    world.retire(2);
    world.run();
    world.lead(LANE, 2);
    world.run();
    let missing = world.request(0, "STREAM.INFO.M", &json!({}));
    assert_eq!(code(&missing), 10059, "{missing}");
}

#[test]
fn replicated_streams_wait_for_their_group_instead_of_the_disk() {
    let mut world = world();
    for sync in ["none", "interval", "commit"] {
        let mut config = replicated(sync, sync);
        config["sync"] = sync.into();
        let created = world.request(0, &format!("STREAM.CREATE.{sync}"), &config);
        assert_eq!(code(&created), 0, "{created}");
        let streams = &world.servers[LANE].streams;
        let config = streams.config_of(AccountId::GLOBAL, sync).unwrap();
        let own = streams.running(AccountId::GLOBAL).unwrap();
        assert_eq!(own.sync_mode(config), crate::store::SyncMode::None);
    }
    let mut config = replicated("A", "a");
    config["persist_mode"] = "async".into();
    let refused = world.request(0, "STREAM.CREATE.A", &config);
    assert_eq!(code(&refused), 10052, "{refused}");
}

/// Without a wait for the disk, the state of the consumer would be written only later.
#[test]
fn confirmed_acknowledgement_survives_a_change_of_the_leader() {
    let mut world = world();
    let consumer =
        json!({"stream_name": "S", "config": {"durable_name": "c", "ack_policy": "explicit"}});
    let created = world.request(0, "CONSUMER.CREATE.S.c", &consumer);
    assert_eq!(code(&created), 0, "{created}");
    world.send_to(0, "s", "one");
    world.send(0, "CONSUMER.MSG.NEXT.S.c", &json!({"batch": 1}));
    world.deliver_events();
    let ack = Packet {
        subject: b"$JS.ACK.S.c.1.1.1.1700000000000000000.0".to_vec(),
        reply: b"_INBOX.ack".to_vec(),
        payload: b"+ACK".to_vec(),
    };
    world.publish(0, AccountId::GLOBAL, ack);
    world.deliver_events();
    assert_eq!(world.answer("_INBOX.ack"), Value::Null);
    world.retire(LANE);
    world.run();
    world.lead(2, LANE);
    world.run();
    let info = world.request(0, "CONSUMER.INFO.S.c", &json!({}));
    assert_eq!(info["ack_floor"]["stream_seq"], 1, "{info}");
}

#[test]
fn consumers_have_at_most_the_replicas_of_their_stream() {
    let mut world = world();
    let mut queue = replicated("Q", "q");
    queue["retention"] = "workqueue".into();
    world.request(0, "STREAM.CREATE.Q", &queue);
    world.create(0, "OWN", "own");
    let mut create = |stream: &str, replicas: i64| {
        let name = format!("c{}", replicas.unsigned_abs());
        let config =
            json!({"durable_name": name, "ack_policy": "explicit", "num_replicas": replicas});
        let request = json!({"stream_name": stream, "config": config});
        let created = world.request(2, &format!("CONSUMER.CREATE.{stream}.{name}"), &request);
        if code(&created) == 0 {
            assert_eq!(created["config"]["num_replicas"], replicas, "{created}");
        }
        (
            code(&created),
            created["cluster"]["raft_group"]
                .as_str()
                .map(|name| name[..5].to_owned()),
        )
    };
    assert_eq!(create("S", 0), (0, Some("C-R3F".to_owned())));
    assert_eq!(create("S", 1), (0, None));
    assert_eq!(create("S", 2), (0, Some("C-R2F".to_owned())));
    assert_eq!(create("S", 4), (10126, None));
    assert_eq!(create("S", -1), (10133, None));
    assert_eq!(create("OWN", 2), (10126, None));
    assert_eq!(create("Q", 1), (10134, None));
    assert_eq!(create("Q", 3), (0, Some("C-R3F".to_owned())));
}

#[test]
fn refused_messages_get_an_error_and_are_not_stored() {
    let mut world = world();
    let Server {
        streams, outputs, ..
    } = &mut world.servers[LANE];
    outputs.published.clear();
    let message = Message {
        subject: b"s",
        reply: b"acknowledgement",
        payload: b"one too many",
        ..Message::default()
    };
    let error = ApiError::STREAM_TOO_MANY_REQUESTS;
    streams.refuse_publish(AccountId::GLOBAL, &message, &error, world.now, outputs);
    let [(_, answer)] = &outputs.published[..] else {
        panic!("one answer: {:?}", outputs.published);
    };
    let text = String::from_utf8_lossy(&answer.payload);
    assert!(text.contains(r#""err_code":10167"#), "{text}");
    let info = world.request(0, "STREAM.INFO.S", &json!({}));
    assert_eq!(info["state"]["messages"], 0, "{info}");
}
