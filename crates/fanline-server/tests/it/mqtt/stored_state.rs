//! State that outlives a connection: retained messages, wills, sessions, and messages in flight.

use super::client::{Hello, MqttClient, V4, V5};
use super::{BOTH, address, client, in_memory, on_disk, triple};
use crate::folder::TempFolder;
use crate::raw::TestServer;

#[test]
fn retained_message_reaches_later_subscribers() {
    let folder = TempFolder::new("mqtt-retained-messages-are-for-those-who-come-later");
    {
        let server = TestServer::with(on_disk(&folder, 2));
        let mut publisher = client(&server, V4, "publisher");
        publisher.publish("r/1", "first", 1);
        publisher.publish("r/1", "one", 3);
        publisher.publish("r/2", "two", 5);
        publisher.publish("r/3", "three", 3);
        publisher.publish("r/3", "", 3);
        publisher.publish("r", "parent", 3);
        server.handle.shutdown();
        server.wait();
    }
    let server = TestServer::with(on_disk(&folder, 2));
    for version in BOTH {
        let mut late = client(&server, version, "late");
        late.subscribe(&[("r/#", 1)]);
        let mut came: Vec<_> = (0..3).map(|_| late.message()).collect();
        for message in &came {
            assert!(message.retain, "{message:?}");
            if message.qos > 0 {
                late.send_packet(0x40, &message.id.to_be_bytes());
            }
        }
        came.sort_by(|a, b| a.topic.cmp(&b.topic));
        let came: Vec<_> = came
            .iter()
            .map(|m| (m.topic.as_str(), &*m.payload, m.qos))
            .collect();
        let wanted = [
            ("r", &b"parent"[..], 1),
            ("r/1", &b"one"[..], 1),
            ("r/2", &b"two"[..], 1),
        ];
        assert_eq!(came, wanted);
        // A client with an existing subscription receives a retained message as an ordinary message.
        let mut publisher = client(&server, version, "publisher");
        publisher.publish("r/2", "two", 5);
        assert!(!late.message().retain);
    }
}

#[test]
fn a_thousand_retained_messages() {
    let folder = TempFolder::new("mqtt-a-thousand-retained-messages");
    let server = TestServer::with(on_disk(&folder, 2));
    let mut publisher = client(&server, V4, "publisher");
    for n in 0..1000 {
        publisher.send_publish(&format!("many/{n}"), n.to_string().as_bytes(), 3);
    }
    for _ in 0..1000 {
        publisher.until(0x40);
    }
    let mut late = client(&server, V4, "late");
    late.subscribe(&[("many/+", 0)]);
    let mut came: Vec<u32> = (0..1000)
        .map(|_| late.take().1.parse().expect("a number"))
        .collect();
    came.sort_unstable();
    assert!(came.into_iter().eq(0..1000));
}

#[test]
fn will_is_sent_unless_the_client_disconnects() {
    let server = TestServer::with(in_memory(2));
    let mut watcher = client(&server, V4, "watcher");
    watcher.subscribe(&[("gone/+", 1)]);
    let mut nats = server.client();
    nats.subscribe("gone.c", "1");
    nats.settle();
    for version in BOTH {
        let with_will = |id, topic| Hello {
            will: Some((topic, "bye", 1, true, Vec::new())),
            ..Hello::new(id)
        };
        let polite = MqttClient::connect(address(&server), version, &with_will("p", "gone/p")).0;
        polite.disconnect();
        let (crashed, _) =
            MqttClient::connect(address(&server), version, &with_will("c", "gone/c"));
        drop(crashed);
        assert_eq!(watcher.take(), triple("gone/c", "bye", 1));
        // Regression: the size of a will with headers did not include the headers.
        assert_eq!(nats.message().payload, b"bye");
        let mut wrong = MqttClient::connect(address(&server), version, &with_will("w", "gone/w")).0;
        wrong.send_packet(0x00, b"no such packet");
        assert_eq!(watcher.take(), triple("gone/w", "bye", 1));
    }
    let mut late = client(&server, V4, "late");
    late.subscribe(&[("gone/+", 0)]);
    assert_eq!([late.take().0, late.take().0].len(), 2);
}

#[test]
fn a_session_outlives_its_connection_and_the_server() {
    for version in BOTH {
        let folder = TempFolder::new(&format!("mqtt-session-{version}"));
        let id = if version == V4 { "four" } else { "five" };
        let unfinished = {
            let server = TestServer::with(on_disk(&folder, 2));
            let hello = Hello::persistent(id, version);
            let (mut subscriber, present) = MqttClient::connect(address(&server), version, &hello);
            assert!(!present);
            subscriber.subscribe(&[("s/#", 2), ("zero", 0)]);
            let mut publisher = client(&server, version, "publisher");
            publisher.publish("s/1", "taken", 2);
            assert_eq!(subscriber.take(), triple("s/1", "taken", 1));
            publisher.publish("s/1", "not acknowledged", 4);
            let unfinished = subscriber.message();
            drop(subscriber);
            publisher.publish("s/2", "while away", 2);
            server.handle.shutdown();
            server.wait();
            unfinished
        };
        let server = TestServer::with(on_disk(&folder, 2));
        let mut publisher = client(&server, version, "publisher");
        publisher.publish("s/3", "after the restart", 4);
        let hello = Hello::persistent(id, version);
        let (mut subscriber, present) = MqttClient::connect(address(&server), version, &hello);
        assert!(present);
        let again = subscriber.message();
        assert_eq!(
            (again.id, again.payload),
            (unfinished.id, unfinished.payload)
        );
        let id = again.id.to_be_bytes();
        subscriber.send_packet(0x50, &id);
        let mut came = Vec::new();
        // Counts PUBRELs: for the first message, and for `s/3`.
        let mut released = 0;
        while came.len() < 2 || released < 2 {
            let packet = subscriber.packet().expect("a packet");
            match packet.first & 0xF0 {
                0x60 => {
                    released += 1;
                    subscriber.send_packet(0x70, &packet.body[..2]);
                }
                _ => {
                    let at = 2 + usize::from(packet.body[1]);
                    let packet_id = packet.body[at..at + 2].to_vec();
                    came.push(String::from_utf8_lossy(&packet.body[2..at]).into_owned());
                    let first = if packet.first & 4 != 0 { 0x50 } else { 0x40 };
                    subscriber.send_packet(first, &packet_id);
                }
            }
        }
        assert_eq!(came, ["s/2", "s/3"]);
        let mut other = MqttClient::connect(address(&server), version, &Hello::new("x")).0;
        other.publish("zero", "still subscribed", 0);
        assert_eq!(subscriber.take(), triple("zero", "still subscribed", 0));
        subscriber.disconnect();
        // A clean start begins a new session.
        let clean = Hello {
            persistent: false,
            ..Hello::persistent(if version == V4 { "four" } else { "five" }, version)
        };
        let (subscriber, present) = MqttClient::connect(address(&server), version, &clean);
        assert!(!present);
        subscriber.disconnect();
    }
}

#[test]
fn pending_qos_2_message_is_released_after_a_restart() {
    let folder = TempFolder::new("mqtt-what-was-held-is-released-after-a-restart");
    let id = {
        let server = TestServer::with(on_disk(&folder, 1));
        let hello = Hello::persistent("holder", V4);
        let (mut publisher, _) = MqttClient::connect(address(&server), V4, &hello);
        let id = publisher.send_publish("h", b"once", 4).to_be_bytes();
        assert_eq!(publisher.until(0x50).body, id);
        drop(publisher);
        server.handle.shutdown();
        server.wait();
        id
    };
    let server = TestServer::with(on_disk(&folder, 1));
    let mut subscriber = client(&server, V4, "subscriber");
    subscriber.subscribe(&[("h", 2)]);
    let hello = Hello::persistent("holder", V4);
    let (mut publisher, present) = MqttClient::connect(address(&server), V4, &hello);
    assert!(present);
    for _ in 0..2 {
        publisher.send_packet(0x62, &id);
        assert_eq!(publisher.until(0x70).body, id);
    }
    assert_eq!(subscriber.take(), triple("h", "once", 2));
    subscriber.settle();
}

#[test]
fn delayed_will_is_canceled_by_a_reconnect() {
    let server = TestServer::with(in_memory(2));
    let mut watcher = client(&server, V4, "watcher");
    watcher.subscribe(&[("late/+", 0)]);
    // Two sessions, and wills with a delay and without.
    let hello = |id, topic, delay: u8| Hello {
        will: Some((topic, "bye", 0, false, vec![0x18, 0, 0, 0, delay])),
        ..Hello::persistent(id, V5)
    };
    let (waits, _) = MqttClient::connect(address(&server), V5, &hello("waits", "late/w", 250));
    drop(waits);
    let (gone, _) = MqttClient::connect(address(&server), V5, &hello("gone", "late/g", 0));
    drop(gone);
    assert_eq!(watcher.take(), triple("late/g", "bye", 0));
    // A clean start ends the session, so the will is due.
    let clean = Hello {
        persistent: false,
        ..hello("waits", "late/w", 250)
    };
    let (again, present) = MqttClient::connect(address(&server), V5, &clean);
    assert!(!present);
    assert_eq!(watcher.take(), triple("late/w", "bye", 0));
    again.disconnect();
    watcher.settle();
}

/// The session does not store a retained message. But the client may have received the message before it
/// disconnected (MQTT-4.4.0-1).
#[test]
fn retained_message_in_flight_is_redelivered() {
    let folder = TempFolder::new("mqtt-a-retained-message-that-was-begun-comes-again");
    let server = TestServer::with(on_disk(&folder, 2));
    for (version, id) in [(V4, "four"), (V5, "five")] {
        let mut publisher = client(&server, version, "publisher");
        publisher.publish("begun/1", "one", 3);
        publisher.publish("begun/2", "two", 5);
        let hello = Hello::persistent(id, version);
        let (mut reader, _) = MqttClient::connect(address(&server), version, &hello);
        reader.subscribe(&[("begun/+", 2)]);
        let mut begun = [reader.message(), reader.message()];
        for message in &mut begun {
            assert!(message.retain && !message.dup, "{message:?}");
            message.dup = true;
        }
        publisher.publish("begun/1", "", 3);
        assert_eq!(reader.message().payload, b"");
        // The reader disconnects twice without an acknowledgement.
        for _ in 0..2 {
            drop(reader);
            let next = MqttClient::connect(address(&server), version, &hello);
            assert!(next.1);
            reader = next.0;
            let again = [reader.message(), reader.message()];
            assert_eq!(again, begun);
            assert_eq!(reader.message().payload, b"");
        }
        for message in &begun {
            let id = message.id.to_be_bytes();
            reader.send_packet(if message.qos == 1 { 0x40 } else { 0x50 }, &id);
            if message.qos == 2 {
                assert_eq!(reader.until(0x62).body[..2], id);
                reader.send_packet(0x70, &id);
            }
        }
        reader.settle();
        reader.disconnect();
        let (mut reader, _) = MqttClient::connect(address(&server), version, &hello);
        assert_eq!(reader.message().payload, b"");
        reader.settle();
        publisher.publish("begun/2", "", 3);
    }
}

/// PUBCOMP means that the message is on disk, so it must not be sent when the disk is full. A client that
/// removes stored messages must still be admitted.
#[test]
fn a_full_disk_completes_nothing_and_can_be_emptied() {
    for version in BOTH {
        let folder = TempFolder::new(&format!("mqtt-a-full-disk-{version}"));
        let mut options = on_disk(&folder, 1);
        if let Some(jetstream) = &mut options.jetstream {
            jetstream.file_bytes_max = Some(1_000_000);
        }
        let server = TestServer::with(options);
        let hello = Hello::persistent("away", version);
        let (mut away, _) = MqttClient::connect(address(&server), version, &hello);
        away.subscribe(&[("f", 1)]);
        away.disconnect();
        let mut publisher = client(&server, version, "publisher");
        let payload = "x".repeat(50_000);
        let mut completed = 0;
        let last = loop {
            let id = publisher.send_publish("f", payload.as_bytes(), 4);
            publisher.until(0x50);
            publisher.send_packet(0x62, &id.to_be_bytes());
            match publisher.packet() {
                Some(packet) if packet.first == 0x70 => completed += 1,
                last => break last,
            }
            assert!(completed < 100, "the disk is never full");
        };
        match version {
            V5 => assert_eq!(last.map(|packet| packet.body[0]), Some(0x97)),
            _ => assert_eq!(last, None),
        }
        let (mut away, present) = MqttClient::connect(address(&server), version, &hello);
        assert!(present);
        for _ in 0..completed {
            assert_eq!(away.take(), triple("f", &payload, 1));
        }
        away.settle();
    }
}

/// A client with permission to publish may write a session record of its own, with times beyond the clock's
/// range.
#[test]
fn a_session_that_ends_when_no_clock_can_show_it() {
    let folder = TempFolder::new("mqtt-a-session-that-ends-when-no-clock-can-show-it");
    let hello = Hello::persistent("somebody", V5);
    {
        let server = TestServer::with(on_disk(&folder, 1));
        let (mut somebody, _) = MqttClient::connect(address(&server), V5, &hello);
        somebody.subscribe(&[("a", 1)]);
        let record = format!(
            r#"{{"id":"late","clean":false,"subs":{{}},"version":5,"ended_at":{},"expiry":5}}"#,
            u64::MAX
        );
        let mut writer = server.client();
        writer.subscribe("acknowledged", "1");
        let bytes = record.len();
        writer.send(format!(
            "PUB $MQTT.sess.late acknowledged {bytes}\r\n{record}\r\n"
        ));
        writer.message();
        server.handle.shutdown();
        server.wait();
    }
    let server = TestServer::with(on_disk(&folder, 1));
    let (mut somebody, present) = MqttClient::connect(address(&server), V5, &hello);
    assert!(present);
    let mut publisher = client(&server, V5, "publisher");
    publisher.publish("a", "heard", 2);
    assert_eq!(somebody.take(), triple("a", "heard", 1));
}
