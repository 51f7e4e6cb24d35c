//! The input is one byte and the bytes from a client. The bits of the first byte choose how the rest of the
//! server behaves toward the connection.

use std::time::Duration;

use fanline_engine::codec::mqtt::{
    Accepted, Connection, Framed, Names, Properties, Publish, Reason, Received, Verb, frame,
    subject_to_topic, topic_to_subject, write_headers, write_properties,
};
use fanline_engine::{MqttLimits, Outbox};

/// A small limit, so that inputs reach it.
const PACKET_BYTES_MAX: usize = 4096;

/// Checks that a connection returns the same results wherever its input is cut, that ranges are inside the
/// input, and that it writes complete packets.
pub fn check(data: &[u8]) {
    let Some((manners, input)) = data.split_first() else {
        return;
    };
    let whole = run(*manners, input, input.len());
    let cut = run(*manners, input, 3);
    assert_eq!(whole, cut);
}

/// Returns the results of a connection, and its output for the client.
fn run(manners: u8, input: &[u8], step: usize) -> (Vec<String>, Vec<u8>) {
    let settings = MqttLimits {
        packet_bytes_max: PACKET_BYTES_MAX,
        receive_maximum: 4,
        reject_qos2_publish: manners & 1 != 0,
        ..MqttLimits::default()
    };
    let now = Duration::from_secs(1);
    let mut connection = Connection::new(settings, now);
    let mut out = Outbox::default();
    let mut results = Vec::new();
    let (mut from, mut end) = (0, 0);
    let is_over = loop {
        match connection.receive(&input[from..end], now, &mut out) {
            Received::Verb(verb, taken) => {
                assert!(taken > 0 && taken <= end - from);
                results.push(format!("{verb:?}"));
                from += taken;
                if perform(&mut connection, &verb, manners, &mut out) {
                    break true;
                }
            }
            Received::Partial { frame_bytes } => {
                assert!(frame_bytes == 0 || frame_bytes > end - from);
                if end == input.len() {
                    break false;
                }
                end = input.len().min(end + step.max(1));
            }
            Received::Ended(ended) => {
                results.push(format!("{ended:?}"));
                break true;
            }
        }
    };
    let written = out.plain().unwrap_or_default().to_vec();
    check_written(&written);
    if is_over {
        connection.close(Reason::SERVER_SHUTTING_DOWN, "", &mut out);
        assert_eq!(out.pending_bytes(), written.len(), "output after the end");
    }
    if let Some(will) = connection.take_will() {
        check_message(&will.topic, &will.publish());
    }
    (results, written)
}

/// Performs a verb as the server would. Returns whether the connection is over.
fn perform(connection: &mut Connection, verb: &Verb<'_>, manners: u8, out: &mut Outbox) -> bool {
    let now = Duration::from_secs(1);
    let reason = match manners & 2 {
        0 => Reason::SUCCESS,
        _ => Reason::QUOTA_EXCEEDED,
    };
    match verb {
        Verb::Connect(_) if manners & 4 != 0 => {
            connection.refuse(Reason::NOT_AUTHORIZED, out);
            return true;
        }
        Verb::Connect(_) => {
            connection.accept(&Accepted::default(), now, out);
        }
        Verb::Publish(publish) => {
            check_message(connection.topic_of(publish), publish);
            if publish.packet_id != 0 {
                return connection
                    .acknowledge(publish.packet_id, reason, out)
                    .is_some();
            }
        }
        Verb::Store(publish) => {
            check_message(connection.topic_of(publish), publish);
            return connection.stored(publish.packet_id, reason, out).is_some();
        }
        Verb::Release { packet_id } => connection.released(*packet_id, out),
        Verb::StoreRelease { packet_id, .. } => connection.release_stored(*packet_id, out),
        Verb::Subscribe(subscribe) => {
            let granted = |filter: fanline_engine::codec::mqtt::SubscribeFilter<'_>| {
                Reason::granted(connection.granted(filter.options.qos))
            };
            let reasons: Vec<Reason> = subscribe.filters.iter().map(granted).collect();
            assert_eq!(reasons.len(), subscribe.filters.count());
            connection.subscribed(subscribe.packet_id, &reasons, out);
        }
        Verb::Unsubscribe(unsubscribe) => {
            let reasons = vec![Reason::SUCCESS; unsubscribe.filters.iter().count()];
            assert_eq!(reasons.len(), unsubscribe.filters.count());
            connection.unsubscribed(unsubscribe.packet_id, &reasons, out);
        }
        Verb::Disconnect => return true,
        Verb::Done { .. } | Verb::Complete { .. } | Verb::Nothing => {}
    }
    false
}

/// Converts a topic to a subject and back, and the properties of a PUBLISH to headers and back. Checks that
/// the topic and the user properties are unchanged.
fn check_message(topic: &str, publish: &Publish<'_>) {
    let mut subject = Vec::new();
    if topic_to_subject(topic, &mut subject).is_ok() {
        let mut back = String::new();
        assert_eq!(subject_to_topic(&subject, &mut back), Ok(()));
        assert_eq!(back, topic);
        assert_eq!(Names::default().subject(topic), Ok(&subject[..]));
    }
    let mut headers = Vec::new();
    write_headers(publish, &mut headers);
    let mut block = Vec::new();
    write_properties(&headers, b"", None, &mut block);
    let users = |properties: Properties<'_>| -> Vec<String> {
        let all = properties.iter().map(|property| format!("{property:?}"));
        all.filter(|shown| shown.starts_with("User(")).collect()
    };
    let back = Properties::written(&block);
    assert_eq!(users(back), users(publish.properties));
}

/// Checks that the output for a client consists of complete packets.
fn check_written(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match frame(bytes, usize::MAX) {
            Framed::Whole(frame) => bytes = &bytes[frame.bytes..],
            other => panic!("{other:?}"),
        }
    }
}
