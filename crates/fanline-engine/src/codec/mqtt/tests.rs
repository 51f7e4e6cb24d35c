//! Packets of the specifications, and whole connections.

use std::time::Duration;

use proptest::prelude::*;

use super::testing::{packet, plain_connect, publish, subscribe, written};
use super::*;
use crate::limits::MqttLimits;
use crate::outbox::Outbox;

const V4: Version = Version::V4;
const V5: Version = Version::V5;

fn whole(bytes: &[u8]) -> Frame<'_> {
    match frame(bytes, usize::MAX) {
        Framed::Whole(frame) => frame,
        other => panic!("{other:?}"),
    }
}

fn reason_of(version: Version, bytes: &[u8]) -> Option<u8> {
    decode(&whole(bytes), version)
        .err()
        .map(|wrong| wrong.reason.byte())
}

/// A malformed packet: version, first byte, body, expected reason code, and violated clause.
type Malformed = (Version, u8, &'static [u8], u8, &'static str);

fn check_malformed(cases: &[Malformed]) {
    for (version, first, body, reason, clause) in cases {
        let bytes = packet(*first, body);
        assert_eq!(reason_of(*version, &bytes), Some(*reason), "{clause}");
    }
}

#[test]
fn malformed_publishes_have_their_reasons() {
    check_malformed(&[
        (V4, 0x36, b"\0\x01a\0\x01", 0x81, "MQTT-3.3.1-4"),
        (V4, 0x38, b"\0\x01a", 0x81, "MQTT-3.3.1-2"),
        (V4, 0x32, b"\0\x01a\0\0", 0x82, "MQTT-2.2.1-3"),
        (V4, 0x32, b"\0\x01a\0", 0x81, "cut off"),
        (V4, 0x30, b"\0\x03a/+", 0x90, "MQTT-3.3.2-2"),
        (V4, 0x30, b"\0\0", 0x82, "an empty name"),
        (V5, 0x30, b"\0\0\0", 0x82, "and no alias"),
        (V5, 0x30, b"\0\x01a\x03\x23\0\0", 0x94, "MQTT-3.3.2-8"),
        (
            V5,
            0x30,
            b"\0\x01a\x05\x21\0\x01\x01\0",
            0x81,
            "2.2.2.2: not of a PUBLISH",
        ),
        (V5, 0x30, b"\0\x01a\x04\x01\0\x01\0", 0x82, "2.2.2.2: twice"),
        (V5, 0x30, b"\0\x01a\x02\x01\x02", 0x82, "neither 0 nor 1"),
        (V5, 0x30, b"\0\x01a\x01\x7f", 0x81, "an unknown property"),
        (
            V5,
            0x30,
            b"\0\x01a\x09\x01\0",
            0x81,
            "properties behind the end",
        ),
        (V5, 0x30, b"\0\x01a\x80\0", 0x81, "MQTT-1.5.5-1"),
        (
            V5,
            0x30,
            b"\0\x01a\x07\x26\0\x01\xff\0\x01b",
            0x81,
            "MQTT-1.5.7-1: the name",
        ),
        (
            V5,
            0x30,
            b"\0\x01a\x07\x26\0\x01b\0\x01\0",
            0x81,
            "MQTT-1.5.7-1: the value",
        ),
        (
            V5,
            0x30,
            b"\0\x01a\x04\x08\0\x01\xff",
            0x81,
            "MQTT-3.3.2-13",
        ),
        (
            V5,
            0x30,
            b"\0\x01a\x04\x03\0\x01\xff",
            0x81,
            "MQTT-3.3.2-19",
        ),
    ]);
}

#[test]
fn malformed_packets_have_their_reasons() {
    check_malformed(&[
        (V4, 0x60, b"\0\x01", 0x81, "MQTT-3.6.1-1"),
        (V4, 0x80, b"\0\x01\0\x01a\0", 0x81, "MQTT-3.8.1-1"),
        (V4, 0x82, b"\0\x01", 0x82, "MQTT-3.8.3-2"),
        (V4, 0x82, b"\0\x01\0\x01a\x03", 0x82, "a QoS of 3"),
        (V4, 0x82, b"\0\x01\0\x01a\x04", 0x81, "3.1.1 has no options"),
        (V5, 0x82, b"\0\x01\0\0\x01a\x40", 0x81, "MQTT-3.8.3-5"),
        (V5, 0x82, b"\0\x01\0\0\x01a\x30", 0x82, "retain handling 3"),
        (
            V5,
            0x82,
            b"\0\x01\0\0\x0a$share/g/a\x04",
            0x82,
            "MQTT-3.8.3-4",
        ),
        (
            V5,
            0x82,
            b"\0\x01\x02\x0b\0\0\x01a\0",
            0x82,
            "an identifier of 0",
        ),
        (V4, 0xA2, b"\0\x01", 0x82, "MQTT-3.10.3-2"),
        (V4, 0xA0, b"\0\x01\0\x01a", 0x81, "MQTT-3.10.1-1"),
        (
            V4,
            0x11,
            b"\0\x04MQTT\x04\x02\0\0\0\0",
            0x81,
            "flags of CONNECT",
        ),
        (V4, 0x42, b"\0\x01", 0x81, "flags of PUBACK"),
        (V4, 0x52, b"\0\x01", 0x81, "flags of PUBREC"),
        (V4, 0x71, b"\0\x01", 0x81, "flags of PUBCOMP"),
        (V5, 0xF1, b"", 0x81, "MQTT-3.15.1-1"),
        (V4, 0x82, b"\0\x01\0\x01\xff\0", 0x81, "MQTT-3.8.3-1"),
        (V4, 0xA2, b"\0\x01\0\x01\0", 0x81, "MQTT-3.10.3-1"),
        (V4, 0x82, b"\0\0\0\x01a\0", 0x82, "3.1.1 MQTT-2.3.1-1"),
        (V4, 0xA2, b"\0\0\0\x01a", 0x82, "3.1.1 MQTT-2.3.1-1"),
        (V4, 0xC1, b"", 0x81, "flags of PINGREQ"),
        (V4, 0xC0, b"x", 0x81, "more than PINGREQ has"),
        (V4, 0xE1, b"", 0x81, "MQTT-3.14.1-1"),
        (V4, 0xF0, b"", 0x81, "3.1.1 has no AUTH"),
        (V4, 0x00, b"", 0x81, "type 0"),
        (V4, 0x20, b"\0\0", 0x82, "only a server says CONNACK"),
        (V5, 0x40, b"\0\x01\x92", 0x82, "not a reason of PUBACK"),
    ]);
}

#[test]
fn malformed_connects_have_their_reasons() {
    let body = |name: &[u8], level: u8, flags: u8, rest: &[u8]| {
        let head = [name, &[level, flags, 0, 60]].concat();
        [&head[..], rest].concat()
    };
    let name = b"\0\x04MQTT";
    for (body, reason, clause) in [
        (
            body(b"\0\x06MQIsdp", 3, 2, b"\0\x01a"),
            0x81,
            "MQTT-3.1.2-1",
        ),
        (body(name, 3, 2, b"\0\x01a"), 0x84, "MQTT-3.1.2-2"),
        (body(name, 6, 2, b"\0\x01a"), 0x84, "MQTT-3.1.2-2"),
        (body(name, 4, 3, b"\0\x01a"), 0x81, "MQTT-3.1.2-3"),
        (body(name, 4, 0x0A, b"\0\x01a"), 0x81, "MQTT-3.1.2-11"),
        (body(name, 4, 0x22, b"\0\x01a"), 0x81, "MQTT-3.1.2-13"),
        (
            body(name, 4, 0x1E, b"\0\x01a\0\x01w\0\0"),
            0x81,
            "MQTT-3.1.2-12",
        ),
        (
            body(name, 4, 0x42, b"\0\x01a\0\0"),
            0x81,
            "3.1.1 MQTT-3.1.2-22",
        ),
        (
            body(name, 4, 0x06, b"\0\x01a\0\x01#\0\0"),
            0x90,
            "a will to a filter",
        ),
        (body(name, 4, 2, b"\0\x01ab"), 0x81, "more than it says"),
        (
            body(name, 5, 2, b"\x03\x21\0\0\0\x01a"),
            0x82,
            "a receive maximum of 0",
        ),
        (
            body(name, 5, 2, b"\x05\x27\0\0\0\0\0\x01a"),
            0x82,
            "MQTT-3.1.2-24",
        ),
        (body(name, 5, 2, b"\x02\x19\x02\0\x01a"), 0x82, "3.1.2.11.6"),
    ] {
        let bytes = packet(0x10, &body);
        assert_eq!(reason_of(V4, &bytes), Some(reason), "{clause}");
    }
    // In 5.0, a password without a user name is allowed.
    let alone = packet(0x10, &body(name, 5, 0x42, b"\0\0\x01a\0\x01p"));
    assert_eq!(reason_of(V4, &alone), None);
}

#[test]
fn a_packet_is_too_large_before_it_is_all_there() {
    let refused = match frame(b"\x30\xff\xff\xff\x7f", 1024) {
        Framed::Wrong(wrong) => wrong.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused, Reason::PACKET_TOO_LARGE);
    assert_eq!(
        frame(b"\x30\x05\0", 1024),
        Framed::Partial { frame_bytes: 7 }
    );
}

fn qos() -> impl Strategy<Value = Qos> {
    prop_oneof![
        Just(Qos::AtMostOnce),
        Just(Qos::AtLeastOnce),
        Just(Qos::ExactlyOnce)
    ]
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(V4), Just(V5)]
}

proptest! {
    #[test]
    fn a_publish_comes_back(
        version in version(),
        qos in qos(),
        topic in "[a-z/]{1,40}",
        (id, dup, retain) in (1_u16.., any::<bool>(), any::<bool>()),
        users in prop::collection::vec(("[a-z]{0,9}", "[a-zé ]{0,9}"), 0..4),
        identifier in 1_u32..=VARIABLE_MAX,
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut block = Vec::new();
        let mut own = Vec::new();
        if version == V5 {
            for (name, value) in &users {
                Property::User(name, value).write(&mut block);
            }
            Property::SubscriptionId(identifier).write(&mut own);
        }
        let head = PublishHead {
            version,
            topic: &topic,
            packet_id: id,
            qos,
            dup: dup && qos != Qos::AtMostOnce,
            retain,
            properties: Properties::written(&block),
            own_properties: Properties::written(&own),
            payload_bytes: payload.len(),
        };
        let mut out = Outbox::default();
        prop_assert!(head.write(&mut out, usize::MAX));
        out.append(&payload);
        let bytes = written(&mut out);
        let frame = whole(&bytes);
        prop_assert_eq!(frame.bytes, bytes.len());
        let both = [&block[..], &own[..]].concat();
        let wanted = Publish {
            topic: &topic,
            packet_id: if qos == Qos::AtMostOnce { 0 } else { id },
            qos,
            dup: head.dup,
            retain,
            properties: Properties::written(&both),
            payload: &payload,
        };
        prop_assert_eq!(decode(&frame, version), Ok(Packet::Publish(wanted)));
        prop_assert!(!head.write(&mut out, bytes.len() - 1));
        prop_assert!(out.is_empty());
    }

    #[test]
    fn a_connect_comes_back(
        version in version(),
        (clean_start, keep_alive) in (any::<bool>(), any::<u16>()),
        client_id in "[a-z]{0,30}",
        will in prop::option::of(("[a-z/]{1,9}", qos(), any::<bool>(), any::<u32>())),
        user in prop::option::of("[a-z]{0,9}"),
        has_password in any::<bool>(),
        expiry in any::<u32>(),
    ) {
        let (mut block, mut will_block) = (Vec::new(), Vec::new());
        if version == V5 {
            Property::SessionExpiry(expiry).write(&mut block);
            let delay = will.as_ref().map_or(0, |(_, _, _, delay)| *delay);
            Property::WillDelay(delay).write(&mut will_block);
        }
        let password = has_password && (version == V5 || user.is_some());
        let connect = Connect {
            version,
            clean_start,
            keep_alive,
            client_id: &client_id,
            will: will.as_ref().map(|(topic, qos, retain, _)| ConnectWill {
                topic: topic.as_str(),
                payload: b"bye",
                qos: *qos,
                retain: *retain,
                properties: Properties::written(&will_block),
            }),
            user: user.as_deref(),
            password: password.then_some(&b"secret"[..]),
            properties: Properties::written(&block),
        };
        let bytes = testing::connect(&connect);
        prop_assert_eq!(decode(&whole(&bytes), V4), Ok(Packet::Connect(connect)));
    }

    #[test]
    fn any_bytes_are_decoded_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in version(),
    ) {
        if let Framed::Whole(frame) = frame(&bytes, 1024) {
            let _ = decode(&frame, version);
        }
    }
}

#[test]
fn filters_come_back() {
    let options = |byte| SubscriptionOptions::from_byte(byte).unwrap();
    let filters = [
        SubscribeFilter {
            filter: "a/#",
            options: options(0x02),
        },
        SubscribeFilter {
            filter: "$share/g/b",
            options: options(0x01),
        },
    ];
    for version in [V4, V5] {
        let bytes = subscribe(version, 9, Properties::default(), &filters);
        let Ok(Packet::Subscribe(read)) = decode(&whole(&bytes), version) else {
            panic!("{version:?}");
        };
        assert_eq!((read.packet_id, read.filters.count()), (9, 2));
        assert!(read.filters.iter().eq(filters));
    }
}

/// Returns the connection of an admitted client, and its output.
fn open(version: Version, settings: MqttLimits) -> (Connection, Outbox) {
    let (mut connection, mut out) = (Connection::new(settings, Duration::ZERO), Outbox::default());
    let bytes = testing::connect(&plain_connect(version));
    let received = connection.receive(&bytes, Duration::ZERO, &mut out);
    assert!(matches!(received, Received::Verb(Verb::Connect(_), _)));
    connection.accept(&Accepted::default(), Duration::ZERO, &mut out);
    let told = written(&mut out);
    assert_eq!((told[0], told[2], told[3]), (0x20, 0, 0));
    (connection, out)
}

/// Regression: the client received a DISCONNECT, which must not precede CONNACK (MQTT-3.14.0-1).
#[test]
fn a_client_that_takes_no_conn_ack_is_refused_by_a_shorter_one() {
    for (packet_bytes_max, refusal) in [(5, &[0x20, 3, 0, 0x95, 0][..]), (4, &[])] {
        let mut maximum = [0x27, 0, 0, 0, 0];
        maximum[4] = packet_bytes_max;
        let mut connect = plain_connect(V5);
        connect.properties = Properties::written(&maximum);
        connect.will = Some(ConnectWill {
            topic: "gone",
            payload: b"bye",
            qos: Qos::AtMostOnce,
            retain: false,
            properties: Properties::default(),
        });
        let mut connection = Connection::new(MqttLimits::default(), Duration::ZERO);
        let mut out = Outbox::default();
        take(&mut connection, &testing::connect(&connect), &mut out);
        let ended = connection.accept(&Accepted::default(), Duration::ZERO, &mut out);
        assert_eq!(
            ended.map(|ended| ended.0.reason),
            Some(Reason::PACKET_TOO_LARGE)
        );
        assert_eq!(written(&mut out), refusal);
        assert!(connection.take_will().is_none());
    }
}

fn take<'a>(connection: &mut Connection, bytes: &'a [u8], out: &mut Outbox) -> Verb<'a> {
    match connection.receive(bytes, Duration::ZERO, out) {
        Received::Verb(verb, taken) => {
            assert_eq!(taken, bytes.len());
            verb
        }
        other => panic!("{other:?}"),
    }
}

fn ended(connection: &mut Connection, bytes: &[u8], out: &mut Outbox) -> u8 {
    match connection.receive(bytes, Duration::ZERO, out) {
        Received::Ended(Ended(wrong)) => wrong.reason.byte(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn publish_is_acknowledged_when_it_is_stored() {
    for version in [V4, V5] {
        let (mut connection, mut out) = open(version, MqttLimits::default());
        let once = publish(version, Qos::AtLeastOnce, 3, "a");
        assert!(matches!(
            take(&mut connection, &once, &mut out),
            Verb::Publish(_)
        ));
        assert!(out.is_empty());
        connection.acknowledge(3, Reason::SUCCESS, &mut out);
        assert_eq!(written(&mut out), [0x40, 2, 0, 3]);
        connection.acknowledge(3, Reason::SUCCESS, &mut out);
        assert!(out.is_empty(), "nothing waits for a second one");

        let exactly = publish(version, Qos::ExactlyOnce, 4, "a");
        assert!(matches!(
            take(&mut connection, &exactly, &mut out),
            Verb::Hold(_)
        ));
        assert!(out.is_empty());
        connection.held(4, Reason::SUCCESS, &mut out);
        assert_eq!(written(&mut out), [0x50, 2, 0, 4]);
        let release = packet(0x62, &[0, 4]);
        let verb = take(&mut connection, &release, &mut out);
        assert_eq!(verb, Verb::Release { packet_id: 4 });
        assert!(out.is_empty());
        connection.released(4, &mut out);
        assert_eq!(written(&mut out), [0x70, 2, 0, 4]);
    }
}

#[test]
fn a_message_that_cannot_be_kept_is_refused() {
    let (mut connection, mut out) = open(V5, MqttLimits::default());
    take(
        &mut connection,
        &publish(V5, Qos::AtLeastOnce, 3, "a"),
        &mut out,
    );
    let over = connection.acknowledge(3, Reason::QUOTA_EXCEEDED, &mut out);
    assert_eq!(over, None);
    assert_eq!(written(&mut out), [0x40, 3, 0, 3, 0x97]);

    let (mut connection, mut out) = open(V4, MqttLimits::default());
    take(
        &mut connection,
        &publish(V4, Qos::AtLeastOnce, 3, "a"),
        &mut out,
    );
    let over = connection.acknowledge(3, Reason::QUOTA_EXCEEDED, &mut out);
    assert!(over.is_some() && out.is_empty());
}

#[test]
fn a_delivery_is_written_and_acknowledged() {
    let (mut connection, mut out) = open(V4, MqttLimits::default());
    let delivery = |qos, dup| Delivery {
        topic: "a/b",
        qos,
        retain: false,
        properties: Properties::default(),
        identifiers: &[],
        payload_bytes: 2,
        token: 77,
        packet_id: Some(1),
        dup,
    };
    let sent = connection.deliver(&delivery(Qos::AtMostOnce, false), &mut out);
    assert_eq!(
        (sent, written(&mut out)),
        (Ok(0), b"\x30\x07\0\x03a/b".to_vec())
    );
    let sent = connection.deliver(&delivery(Qos::ExactlyOnce, false), &mut out);
    let bytes = b"\x34\x09\0\x03a/b\0\x01".to_vec();
    assert_eq!((sent, written(&mut out)), (Ok(1), bytes));
    let sent = connection.deliver(&delivery(Qos::ExactlyOnce, true), &mut out);
    assert_eq!((sent, out.is_empty()), (Err(Refused::UnderWay), true));
    let received = packet(0x50, &[0, 1]);
    let verb = take(&mut connection, &received, &mut out);
    let (token, packet_id) = (77, 1);
    assert_eq!(verb, Verb::Note { token, packet_id });
    assert!(out.is_empty());
    connection.noted(1, &mut out);
    assert_eq!(written(&mut out), [0x62, 2, 0, 1]);
    let complete = packet(0x70, &[0, 1]);
    let verb = take(&mut connection, &complete, &mut out);
    assert_eq!(verb, Verb::Complete { token, packet_id });
    assert_eq!(connection.in_flight(), 0);
}

#[test]
fn violations_end_the_connection() {
    let small = MqttLimits {
        receive_maximum: 1,
        reject_qos2_publish: true,
        ..MqttLimits::default()
    };
    let once = publish(V5, Qos::AtLeastOnce, 1, "a");
    let (mut connection, mut out) = open(V5, small.clone());
    take(&mut connection, &once, &mut out);
    assert_eq!(ended(&mut connection, &once, &mut out), 0x93);
    assert_eq!(written(&mut out)[..1], [0xE0]);
    assert!(connection.take_will().is_none());

    for (version, bytes, reason, clause) in [
        (
            V5,
            publish(V5, Qos::ExactlyOnce, 1, "a"),
            0x9B,
            "MQTT-3.2.2-11",
        ),
        (
            V5,
            testing::connect(&plain_connect(V5)),
            0x82,
            "MQTT-3.1.0-2",
        ),
        (
            V4,
            testing::connect(&plain_connect(V4)),
            0x82,
            "3.1.1 MQTT-3.1.0-2",
        ),
        (V5, packet(0xF0, b""), 0x82, "AUTH without a method"),
        (
            V5,
            packet(0x30, b"\0\x01a\x02\x0b\x01"),
            0x82,
            "MQTT-3.3.4-6",
        ),
        (
            V5,
            packet(0x30, b"\0\x01a\x04\x08\0\x01#"),
            0x82,
            "MQTT-3.3.2-14",
        ),
        (
            V5,
            packet(0x30, b"\0\0\x03\x23\0\x01"),
            0x82,
            "an alias that was not set",
        ),
        (
            V5,
            packet(0x30, b"\0\x01a\x03\x23\xff\xff"),
            0x94,
            "MQTT-3.3.2-9",
        ),
        (
            V5,
            packet(0xE0, b"\0\x05\x11\0\0\0\x01"),
            0x82,
            "3.14.2.2.2",
        ),
    ] {
        let (mut connection, mut out) = open(version, small.clone());
        assert_eq!(ended(&mut connection, &bytes, &mut out), reason, "{clause}");
        // MQTT-4.13.1-1 applies to 5.0. In 3.1.1, a server sends no packet for an error.
        assert_eq!(written(&mut out).is_empty(), version == V4, "{clause}");
    }
}

#[test]
fn connects_that_are_refused() {
    let connect = |bytes: &[u8]| {
        let mut connection = Connection::new(MqttLimits::default(), Duration::ZERO);
        let mut out = Outbox::default();
        let reason = ended(&mut connection, bytes, &mut out);
        (reason, written(&mut out))
    };
    let mut nameless = plain_connect(V4);
    (nameless.client_id, nameless.clean_start) = ("", false);
    let told = connect(&testing::connect(&nameless));
    assert_eq!(told, (0x85, vec![0x20, 2, 0, 2]), "3.1.1 MQTT-3.1.3-8");
    let level = packet(0x10, b"\0\x04MQTT\x03\x02\0\x3c\0\x01a");
    assert_eq!(connect(&level), (0x84, vec![0x20, 2, 0, 1]));
    let old = packet(0x10, b"\0\x06MQIsdp\x03\x02\0\x3c\0\x01a");
    assert_eq!(connect(&old), (0x81, Vec::new()));
    assert_eq!(
        connect(&packet(0xC0, b"")),
        (0x82, Vec::new()),
        "MQTT-3.1.0-1"
    );
    let mut block = Vec::new();
    Property::AuthenticationMethod("x").write(&mut block);
    let mut enhanced = plain_connect(V5);
    enhanced.properties = Properties::written(&block);
    let (reason, told) = connect(&testing::connect(&enhanced));
    assert_eq!((reason, told[0], told[3]), (0x8C, 0x20, 0x8C));
}

#[test]
fn an_alias_stands_for_its_topic() {
    let (mut connection, mut out) = open(V5, MqttLimits::default());
    let set = packet(0x30, b"\0\x03a/b\x03\x23\0\x02");
    take(&mut connection, &set, &mut out);
    let used = packet(0x30, b"\0\0\x03\x23\0\x02hi");
    let Verb::Publish(publish) = take(&mut connection, &used, &mut out) else {
        panic!("not a publish");
    };
    assert_eq!(connection.topic_of(&publish), "a/b");
}

#[test]
fn a_will_is_left_unless_the_client_takes_leave() {
    let disconnect = packet(0xE0, b"");
    let with_will = packet(0xE0, b"\x04");
    for (version, last, is_left) in [
        (V4, Some(&disconnect), false),
        (V5, Some(&disconnect), false),
        (V5, Some(&with_will), true),
        (V4, None, true),
    ] {
        let mut connect = plain_connect(version);
        connect.will = Some(ConnectWill {
            topic: "gone",
            payload: b"bye",
            qos: Qos::AtLeastOnce,
            retain: true,
            properties: Properties::default(),
        });
        let mut connection = Connection::new(MqttLimits::default(), Duration::ZERO);
        let mut out = Outbox::default();
        let bytes = testing::connect(&connect);
        take(&mut connection, &bytes, &mut out);
        connection.accept(&Accepted::default(), Duration::ZERO, &mut out);
        if let Some(last) = last {
            assert_eq!(take(&mut connection, last, &mut out), Verb::Disconnect);
        }
        assert_eq!(connection.take_will().is_some(), is_left, "{version:?}");
        assert!(connection.take_will().is_none());
    }
}

#[test]
fn silence_ends_a_connection_after_one_and_a_half_keep_alives() {
    let (mut connection, mut out) = open(V5, MqttLimits::default());
    let at = Duration::from_secs;
    assert_eq!(connection.next_timeout(), Some(at(90)));
    let ping = packet(0xC0, b"");
    connection.receive(&ping, at(80), &mut out);
    assert_eq!(written(&mut out), [0xD0, 0]);
    assert_eq!(connection.handle_timeout(at(90), &mut out), None);
    let over = connection.handle_timeout(at(170), &mut out);
    assert_eq!(over.map(|Ended(wrong)| wrong.reason.byte()), Some(0x8D));
    assert_eq!(written(&mut out)[2], 0x8D);
    assert_eq!(connection.next_timeout(), None);
}

#[test]
fn messages_in_flight_are_sent_again() {
    let (mut connection, mut out) = open(V5, MqttLimits::default());
    connection.restore(5, 50, Qos::AtLeastOnce, false);
    connection.restore(6, 60, Qos::ExactlyOnce, true);
    connection.restore_held([9].into_iter());
    let mut published = Vec::new();
    connection.again(&mut out, |_, id, token, _| published.push((id, token)));
    assert_eq!(published, [(5, 50)]);
    assert_eq!(written(&mut out), [0x62, 2, 0, 6]);
    let release = packet(0x62, &[0, 9]);
    let verb = take(&mut connection, &release, &mut out);
    assert_eq!(verb, Verb::Release { packet_id: 9 });
}
