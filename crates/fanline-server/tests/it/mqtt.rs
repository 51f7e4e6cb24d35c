//! MQTT over real sockets: both versions, all QoS levels, and exchange with NATS clients.

pub(crate) mod client;
mod stored_state;

use std::net::SocketAddr;

use fanline_server::auth::{
    Access, AccessConfig, Allowed, ConnectionKind, Permissions, SALT_BYTES, User, hash_password,
};
use fanline_server::{Auth, JetStreamOptions, MqttOptions, Options, Server, WebSocketOptions};

use crate::folder::TempFolder;
use crate::raw::{SHARD_COUNTS, TestServer, options};
use client::{Hello, MqttClient, Published, V4, V5, push_text, user};

const BOTH: [u8; 2] = [V4, V5];
/// Largest number of pings until all pending messages have arrived.
const ROUNDS_MAX: usize = 10_000;

/// Returns options with streams in a folder.
fn on_disk(folder: &TempFolder, shards: usize) -> Options {
    Options {
        jetstream: Some(JetStreamOptions {
            store_dir: Some(folder.0.clone()),
            ..JetStreamOptions::default()
        }),
        mqtt: Some(MqttOptions::default()),
        ..options(shards)
    }
}

/// Returns options with streams in memory.
fn in_memory(shards: usize) -> Options {
    Options {
        jetstream: Some(JetStreamOptions::default()),
        mqtt: Some(MqttOptions::default()),
        ..options(shards)
    }
}

fn address(server: &TestServer) -> SocketAddr {
    server.handle.addresses().mqtt.expect("MQTT is on")
}

fn client(server: &TestServer, version: u8, id: &'static str) -> MqttClient {
    MqttClient::connect(address(server), version, &Hello::new(id)).0
}

fn triple(topic: &str, payload: &str, qos: u8) -> (String, String, u8) {
    (topic.into(), payload.into(), qos)
}

#[test]
fn qos_0_crosses_both_ways() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with(in_memory(shards));
        let mut nats = server.client();
        nats.subscribe("a.*.c//d", "1");
        for version in BOTH {
            let mut subscriber = client(&server, version, "subscriber");
            assert_eq!(subscriber.subscribe(&[("a/+/c.d", 0), ("x/#", 0)]), [0, 0]);
            let mut publisher = client(&server, version, "publisher");
            publisher.publish("a/b/c.d", "one", 0);
            let wanted = triple("a/b/c.d", "one", 0);
            assert_eq!(subscriber.take(), wanted);
            let message = nats.message();
            assert_eq!(
                (message.subject.as_str(), &*message.payload),
                ("a.b.c//d", &b"one"[..])
            );
            for (subject, topic) in [("x", "x"), ("x.y./", "x/y/"), ("x./.z", "x//z")] {
                nats.publish(subject, "two");
                assert_eq!(subscriber.take(), triple(topic, "two", 0));
            }
            // Large payloads are referred to, not copied.
            let large = "l".repeat(100_000);
            publisher.publish("x/large", &large, 0);
            assert_eq!(subscriber.take(), triple("x/large", &large, 0));
            nats.publish("x.large", &large);
            assert_eq!(subscriber.take(), triple("x/large", &large, 0));
        }
    }
}

#[test]
fn many_messages_come_in_order() {
    let server = TestServer::with(in_memory(2));
    let mut subscriber = client(&server, V4, "subscriber");
    subscriber.subscribe(&[("n/#", 0)]);
    let mut nats = server.client();
    nats.subscribe("n.>", "1");
    let mut publisher = client(&server, V4, "publisher");
    for n in 0..3000_u32 {
        publisher.send_publish(&format!("n/{}", n / 100), n.to_string().as_bytes(), 0);
    }
    for n in 0..3000_u32 {
        let (topic, payload) = (format!("n/{}", n / 100), n.to_string());
        assert_eq!(subscriber.take(), triple(&topic, &payload, 0));
        assert_eq!(nats.message().payload, payload.as_bytes());
    }
}

#[test]
fn qos_1_and_2_arrive_with_the_lower_one() {
    let folder = TempFolder::new("mqtt-qos-1-and-2-arrive-with-the-lower-one");
    let server = TestServer::with(on_disk(&folder, 2));
    for version in BOTH {
        for granted in [0, 1, 2] {
            let mut subscriber = client(&server, version, "subscriber");
            assert_eq!(subscriber.subscribe(&[("q/#", granted)]), [granted]);
            let mut nats = server.client();
            nats.subscribe("q.>", "1");
            let mut publisher = client(&server, version, "publisher");
            for published in [0, 1, 2] {
                publisher.publish("q/x", "hi", published << 1);
                let qos = granted.min(published);
                assert_eq!(subscriber.take(), triple("q/x", "hi", qos));
                assert_eq!(nats.message().payload, b"hi");
            }
            nats.publish("q.y", "from afar");
            assert_eq!(subscriber.take(), triple("q/y", "from afar", 0));
            subscriber.settle();
            subscriber.unsubscribe("q/#");
            publisher.publish("q/x", "nobody", 2);
            subscriber.settle();
        }
    }
}

#[test]
fn a_window_of_messages_is_under_way_at_once() {
    let folder = TempFolder::new("mqtt-a-window-of-messages-is-under-way-at-once");
    let mut options = on_disk(&folder, 1);
    options.mqtt = Some(MqttOptions {
        max_ack_pending: 3,
        ..MqttOptions::default()
    });
    let server = TestServer::with(options);
    let mut subscriber = client(&server, V4, "subscriber");
    subscriber.subscribe(&[("w", 1)]);
    let mut publisher = client(&server, V4, "publisher");
    for n in 0..10 {
        publisher.publish("w", &n.to_string(), 2);
    }
    let first: Vec<Published> = (0..3).map(|_| subscriber.message()).collect();
    // Further messages are not sent before an acknowledgement.
    subscriber.settle();
    for message in &first {
        subscriber.send_packet(0x40, &message.id.to_be_bytes());
    }
    for n in 3..10 {
        assert_eq!(subscriber.take().1, n.to_string());
    }
}

#[test]
fn one_client_has_an_id() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with(in_memory(shards));
        for version in BOTH {
            let hello = Hello::persistent("twin", version);
            let (mut first, _) = MqttClient::connect(address(&server), version, &hello);
            first.subscribe(&[("t", 1)]);
            let mut publisher = client(&server, version, "publisher");
            publisher.publish("t", "unfinished", 2);
            let unfinished = first.message();
            let (mut second, present) = MqttClient::connect(address(&server), version, &hello);
            assert!(present);
            match version {
                V5 => assert_eq!(first.until(0xE0).body[0], 0x8E),
                _ => assert_eq!(first.packet(), None),
            }
            let again = second.message();
            assert_eq!((again.id, again.dup), (unfinished.id, true));
            second.send_packet(0x40, &again.id.to_be_bytes());
            publisher.publish("t", "next", 2);
            assert_eq!(second.take(), triple("t", "next", 1));
            second.disconnect();
            let clean = Hello::new("twin");
            MqttClient::connect(address(&server), version, &clean)
                .0
                .disconnect();
        }
    }
}

#[test]
fn properties_are_headers() {
    let server = TestServer::with(in_memory(1));
    let mut nats = server.client();
    nats.subscribe("p", "1");
    let mut subscriber = client(&server, V5, "subscriber");
    let identifier = [0x0B, 7];
    subscriber.subscribe_with(&[("p", 1)], &identifier);
    let mut publisher = client(&server, V5, "publisher");
    let mut reply = vec![0x08];
    push_text(&mut reply, b"answers/here");
    let user_properties = [user("k", "v"), user("k", "w")].concat();
    for qos in [0, 1] {
        publisher.send_publish_with(
            "p",
            b"hi",
            qos << 1,
            &[user_properties.clone(), reply.clone()].concat(),
        );
        let message = nats.message();
        assert_eq!(message.reply.as_deref(), Some("answers.here"));
        let message = subscriber.message();
        assert_eq!(message.qos, qos);
        for part in [&user_properties[..], &reply[..], &identifier[..]] {
            let has = message
                .properties
                .windows(part.len())
                .any(|found| found == part);
            assert!(has, "{part:?} {message:?}");
        }
    }
    nats.send("HPUB p 18 20\r\nNATS/1.0\r\na: b\r\n\r\nhi\r\n");
    let message = subscriber.message();
    let wanted = [user("a", "b"), identifier.to_vec()].concat();
    assert_eq!(
        (message.properties, message.payload),
        (wanted, b"hi".to_vec())
    );
}

#[test]
fn no_local_and_retain_as_published() {
    let server = TestServer::with(in_memory(1));
    let mut both = client(&server, V5, "both");
    // The subscription options are No Local with QoS 1, and Retain As Published with QoS 0.
    both.subscribe(&[("own", 0x05), ("shown", 0x08)]);
    let mut other = client(&server, V5, "other");
    both.publish("own", "mine", 2);
    both.send_publish("own", b"mine", 0);
    other.publish("own", "theirs", 2);
    assert_eq!(both.take(), triple("own", "theirs", 1));
    other.publish("shown", "kept", 1);
    assert!(both.message().retain);
    other.publish("shown", "not kept", 0);
    assert!(!both.message().retain);
}

#[test]
fn a_group_shares() {
    let server = TestServer::with(in_memory(2));
    let mut members = [client(&server, V5, "m1"), client(&server, V5, "m2")];
    for member in &mut members {
        assert_eq!(member.subscribe(&[("$share/g/jobs", 1)]), [1]);
    }
    let mut nats = server.client();
    nats.send("SUB jobs g 1\r\n");
    nats.settle();
    let mut publisher = client(&server, V5, "publisher");
    for _ in 0..300 {
        publisher.publish("jobs", "work", 0);
    }
    nats.send("UNSUB 1\r\n");
    let mut done = nats.settle().len();
    for _ in 0..20 {
        publisher.publish("jobs", "surely", 2);
    }
    // Stored messages arrive soon, and each at one member only.
    for round in 0.. {
        for member in &mut members {
            member.send(&[0xC0, 0]);
            while member.packet().expect("a packet").first != 0xD0 {
                done += 1;
            }
        }
        assert!(round < ROUNDS_MAX && done <= 320, "{done} of 320");
        if done == 320 {
            break;
        }
    }
}

/// Settings that Eclipse Paho's interoperability tests require.
#[test]
fn listener_settings_change_connack_and_limits() {
    let mut config = AccessConfig::default();
    let mut anybody = User::new("anybody", "pw");
    anybody.permissions = Some(Permissions {
        subscribe: Allowed::subscribe(None, &["test.nosubscribe"]).expect("subjects"),
        ..Permissions::default()
    });
    config.account_mut("$G").users = vec![anybody];
    let server = TestServer::with(Options {
        auth: Auth::Directory(Access::new(config).expect("a directory").into()),
        mqtt: Some(MqttOptions {
            no_auth_user: Some("anybody".into()),
            max_keep_alive: Some(60),
            obscure_not_authorized: true,
            ..MqttOptions::default()
        }),
        ..in_memory(1)
    });
    for (request, reply) in [(120, true), (0, true), (60, false), (30, false)] {
        let mut device = MqttClient::open(address(&server), V5);
        let ack = device.greet(&Hello {
            keep_alive: request,
            ..Hello::new("one")
        });
        let server_keep_alive = [0x13, 0, 60];
        let is_told = ack.windows(3).any(|property| property == server_keep_alive);
        assert_eq!(is_told, reply, "{request}");
        let granted = device.subscribe(&[("test/nosubscribe", 2), ("test/other", 2)]);
        assert_eq!(granted, [0x80, 2]);
        device.disconnect();
    }
}

#[test]
fn users_permissions_and_kinds_apply() {
    let mut config = AccessConfig::default();
    let permissions = Permissions {
        publish: Allowed::publish(Some(&["up.>"]), &[]).expect("subjects"),
        subscribe: Allowed::subscribe(Some(&["down.>"]), &[]).expect("subjects"),
        ..Permissions::default()
    };
    let mut device = User::new("device", "pw");
    device.permissions = Some(permissions);
    device.connection_kinds = vec![ConnectionKind::Mqtt];
    let mut desk = User::new("desk", "pw");
    desk.connection_kinds = vec![ConnectionKind::Standard];
    let hash = hash_password(4, [3; SALT_BYTES], "pw").expect("a hash");
    let hashed = User::new("hashed", hash.as_str());
    config.account_mut("$G").users = vec![device, desk, hashed];
    let server = TestServer::with(Options {
        auth: Auth::Directory(Access::new(config).expect("a directory").into()),
        ..in_memory(1)
    });
    let as_user = |user, password| Hello {
        user: Some((user, password)),
        ..Hello::new("one")
    };
    for (hello, version, reason) in [
        (Hello::new("one"), V4, 5),
        (as_user("device", "wrong"), V4, 5),
        (as_user("desk", "pw"), V4, 5),
        (as_user("hashed", "wrong"), V4, 5),
        (as_user("desk", "pw"), V5, 0x87),
    ] {
        let mut refused = MqttClient::open(address(&server), version);
        assert_eq!(refused.greet(&hello)[1], reason);
        assert_eq!(refused.packet(), None);
    }
    let hello = as_user("hashed", "pw");
    MqttClient::connect(address(&server), V4, &hello)
        .0
        .disconnect();
    for version in BOTH {
        let hello = as_user("device", "pw");
        let (mut device, _) = MqttClient::connect(address(&server), version, &hello);
        let refused = if version == V5 { 0x87 } else { 0x80 };
        let granted = device.subscribe(&[("up/a", 1), ("down/a", 1), ("#", 0)]);
        assert_eq!(granted, [refused, 1, refused]);
        device.publish("down/a", "not allowed", 0);
        device.send_publish("down/a", b"not allowed", 2);
        let reply = device.until(0x40).body;
        assert_eq!(reply.get(2).copied(), (version == V5).then_some(0x87));
        device.publish("up/a", "allowed", 2);
        device.disconnect();
    }
}

#[test]
fn invalid_packet_closes_only_its_connection() {
    let server = TestServer::with(in_memory(1));
    let mut witness = client(&server, V4, "witness");
    witness.subscribe(&[("ok", 0)]);
    for (version, first, body) in [
        (V4, 0x30, &b"\0\x03a b"[..]),
        (V5, 0x30, b"\0\x03a b\0"),
        (V4, 0x36, b"\0\x01a\0\x01"),
        (V4, 0x82, b"\0\x01"),
        (V4, 0xF0, b""),
        (V4, 0x30, b"\0\x09$MQTT/foo"),
    ] {
        let mut bad = client(&server, version, "bad");
        bad.send_packet(first, body);
        if version == V5 {
            assert_eq!(bad.until(0xE0).body[0], 0x90);
        }
        assert_eq!(bad.packet(), None, "{body:?}");
    }
    let mut old = MqttClient::open(address(&server), V4);
    old.send_packet(0x10, b"\0\x06MQIsdp\x03\x02\0\x3c\0\x01a");
    assert_eq!(old.packet(), None);
    // Packets sent before CONNACK are processed after it.
    let mut eager = MqttClient::open(address(&server), V4);
    let hello = client::packet(0x10, b"\0\x04MQTT\x04\x02\0\0\0\x05eager");
    let publish = client::packet(0x30, b"\0\x02okhi");
    eager.send(&[hello, publish.clone(), publish].concat());
    assert_eq!(witness.take(), triple("ok", "hi", 0));
    assert_eq!(witness.take(), triple("ok", "hi", 0));
    assert_eq!(eager.until(0x20).body, [0, 0]);
    // A client without an id is assigned one.
    let mut nameless = MqttClient::open(address(&server), V5);
    let reply = nameless.greet(&Hello::new(""));
    assert_eq!(reply[1], 0);
    assert!(reply.windows(8).any(|part| part == b"fanline-"));
}

#[test]
fn over_websocket() {
    use std::io::{Read, Write};
    let server = TestServer::with(Options {
        websocket: Some(WebSocketOptions::default()),
        ..in_memory(1)
    });
    let address = server
        .handle
        .addresses()
        .websocket
        .expect("WebSocket is on");
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    stream
        .set_read_timeout(Some(crate::raw::WAIT_MAX))
        .expect("a socket");
    stream
        .write_all(
            b"GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
              Sec-WebSocket-Protocol: mqtt\r\n\r\n",
        )
        .expect("it reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("it answers");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    assert!(head.contains("Sec-WebSocket-Protocol: mqtt\r\n"), "{head}");
    let hello = client::packet(0x10, b"\0\x04MQTT\x04\x02\0\0\0\x03web");
    let mut frame = vec![
        0x82,
        0x80 | u8::try_from(hello.len()).expect("short"),
        0,
        0,
        0,
        0,
    ];
    frame.extend_from_slice(&hello);
    stream.write_all(&frame).expect("it reads");
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).expect("it answers");
    assert_eq!(answer, [0x82, 4, 0x20, 2, 0, 0]);
}

#[test]
fn monitoring_tells_of_clients() {
    use std::io::{Read, Write};
    let server = TestServer::with(Options {
        monitoring: Some(("127.0.0.1".into(), 0)),
        ..in_memory(1)
    });
    let _device = client(&server, V4, "device");
    let _other = client(&server, V5, "other");
    let monitoring = server.handle.addresses().monitoring.expect("it is on");
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(monitoring).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        reply
    };
    let found = get("/connz?mqtt_client=device");
    assert!(found.contains("\"num_connections\": 1"), "{found}");
    assert!(found.contains("\"mqtt_client\": \"device\""), "{found}");
    assert!(found.contains("\"type\": \"mqtt\""), "{found}");
    let port = address(&server).port();
    assert!(get("/varz").contains(&format!("\"port\": {port}")));
    assert!(get("/metrics").contains("fanline_mqtt_connections 2"));
}

#[test]
fn packets_have_their_limits() {
    let server = TestServer::with(Options {
        limits: fanline_server::Limits {
            payload_bytes_max: 1000,
            ..fanline_server::Limits::default()
        },
        ..in_memory(1)
    });
    let mut large = client(&server, V5, "large");
    large.send_publish("a", &[b'x'; 1001], 0);
    assert_eq!(large.until(0xE0).body[0], 0x95);
    // With Maximum Packet Size, larger messages are not sent to the client, and later smaller ones are.
    let hello = Hello {
        properties: vec![0x27, 0, 0, 0, 40],
        ..Hello::new("small")
    };
    let (mut small, _) = MqttClient::connect(address(&server), V5, &hello);
    small.subscribe(&[("a", 1)]);
    let mut publisher = client(&server, V4, "publisher");
    publisher.publish("a", &"x".repeat(100), 0);
    publisher.publish("a", &"x".repeat(100), 2);
    publisher.publish("a", "fits", 2);
    assert_eq!(small.take(), triple("a", "fits", 1));
}

#[test]
fn mqtt_clients_may_have_credentials_of_their_own() {
    let with = |auth| MqttOptions {
        auth: Some(auth),
        ..MqttOptions::default()
    };
    let user = Auth::User {
        name: "m".into(),
        password: "p".into(),
    };
    for (auth, shown, is_admitted) in [
        (user.clone(), Some(("m", "p")), true),
        (user.clone(), Some(("m", "x")), false),
        (user, None, false),
        (Auth::Token("t".into()), Some(("any", "t")), true),
        (Auth::Token("t".into()), Some(("any", "x")), false),
    ] {
        let server = TestServer::with(Options {
            mqtt: Some(with(auth.clone())),
            ..in_memory(1)
        });
        let hello = Hello {
            user: shown,
            ..Hello::new("one")
        };
        let reply = MqttClient::open(address(&server), V4).greet(&hello);
        assert_eq!(reply[1] == 0, is_admitted, "{shown:?}");
        // NATS clients still need no credentials.
        server.client();
    }
}

#[test]
fn requests_cross_both_ways() {
    let server = TestServer::with(in_memory(2));
    let mut nats = server.client();
    let mut device = client(&server, V5, "device");
    device.subscribe(&[("ask", 1), ("answer/here", 1)]);
    nats.subscribe("_INBOX.me.*", "1");
    nats.send("PUB ask _INBOX.me.1 8\r\nquestion\r\n");
    let request = device.message();
    let mut wanted = vec![0x08];
    push_text(&mut wanted, b"_INBOX/me/1");
    assert_eq!(
        (request.properties, &*request.payload),
        (wanted, &b"question"[..])
    );
    device.publish("_INBOX/me/1", "answer", 0);
    assert_eq!(nats.message().payload, b"answer");

    nats.subscribe("service", "2");
    let mut reply = vec![0x08];
    push_text(&mut reply, b"answer/here");
    for qos in [1, 2] {
        let id = device
            .send_publish_with("service", b"question", qos << 1, &reply)
            .to_be_bytes();
        if qos == 2 {
            device.until(0x50);
            device.send_packet(0x62, &id);
        }
        let request = nats.message();
        let to = request.reply.expect("a reply subject");
        device.until(if qos == 2 { 0x70 } else { 0x40 });
        nats.publish(&to, "answer");
        assert_eq!(device.take(), triple("answer/here", "answer", 0));
    }
}

/// Only the server's own domain is accepted. nats-server accepts any domain, but refuses clients if it cannot
/// reach the domain.
#[test]
fn the_domain_of_mqtt_is_this_servers_own() {
    let with = |own: Option<&str>, wanted: &str| {
        let mut options = in_memory(1);
        if let Some(jetstream) = &mut options.jetstream {
            jetstream.domain = own.map(Into::into);
        }
        if let Some(mqtt) = &mut options.mqtt {
            mqtt.js_domain = Some(wanted.into());
        }
        options
    };
    let server = TestServer::with(with(Some("hub"), "hub"));
    let mut reader = client(&server, V5, "reader");
    assert_eq!(reader.subscribe(&[("a", 1)]), [1]);
    client(&server, V5, "device").publish("a", "kept", 2);
    assert_eq!(reader.take(), triple("a", "kept", 1));
    for own in [None, Some("hub")] {
        let error = Server::start(with(own, "other"))
            .err()
            .map(|error| error.to_string());
        let error = error.expect("it is not there");
        assert!(error.contains("js_domain \"other\""), "{error}");
    }
}

/// A client that sends an id gets no assigned id, even if its id looks like an assigned one (MQTT-3.2.2-16).
#[test]
fn id_is_assigned_only_to_clients_without_one() {
    let server = TestServer::with(in_memory(1));
    let mut named = MqttClient::open(address(&server), V5);
    let reply = named.greet(&Hello::new("fanline-1"));
    assert_eq!(reply[1], 0);
    assert!(!reply.windows(8).any(|part| part == b"fanline-"));
}

/// Tests a topic with the largest number of levels, and the longest level. Matching must not use stack space
/// for each level.
#[test]
fn topics_may_be_as_long_as_they_can_be() {
    let folder = TempFolder::new("mqtt-topics-may-be-as-long-as-they-can-be");
    let server = TestServer::with(on_disk(&folder, 2));
    let levels = vec!["a"; 32_768].join("/");
    for topic in [levels, "x".repeat(65_535), ".".repeat(65_535)] {
        for version in BOTH {
            let mut subscriber = client(&server, version, "subscriber");
            let any = topic.replace('a', "+");
            subscriber.subscribe(&[(&topic, 0)]);
            let mut publisher = client(&server, version, "publisher");
            publisher.publish(&topic, "far down", 0);
            assert_eq!(subscriber.take(), triple(&topic, "far down", 0));
            subscriber.unsubscribe(&topic);
            subscriber.subscribe(&[(&any, 1)]);
            publisher.publish(&topic, "any", 0);
            assert_eq!(subscriber.take(), triple(&topic, "any", 0));
            // The subject under which the message would be stored is too long. So the message is not stored,
            // and not acknowledged as stored.
            for (flags, answer) in [(2, 0x40), (4, 0x50)] {
                let mut publisher = client(&server, version, "sure");
                publisher.send_publish(&topic, b"", flags);
                match version {
                    V5 => assert_eq!(publisher.until(answer).body.get(2), Some(&0x90)),
                    _ => assert_eq!(publisher.packet(), None),
                }
            }
            subscriber.settle();
        }
    }
}

#[test]
fn reload_changes_receive_maximum() {
    let with = |max_ack_pending| Options {
        mqtt: Some(MqttOptions {
            max_ack_pending,
            ..MqttOptions::default()
        }),
        ..in_memory(2)
    };
    let server = TestServer::with(with(100));
    let mut before = client(&server, V5, "before");
    server.handle.reload(with(7)).expect("it may change");
    let reply = MqttClient::open(address(&server), V5).greet(&Hello::new("after"));
    // These bytes are the property Receive Maximum.
    assert!(reply.windows(3).any(|p| p == [0x21, 0, 7]), "{reply:?}");
    before.settle();
}
