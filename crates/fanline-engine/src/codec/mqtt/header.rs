//! Converts the properties of a message to NATS headers and back; the table is in `docs/formats/mqtt.md`.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::property::{Properties, Property};
use super::topic::{has_subject, subject_to_topic};
use super::{Publish, Qos, TEXT_BYTES_MAX};
use crate::headers;

const FIRST_LINE: &[u8] = b"NATS/1.0\r\n";
const CONTENT_TYPE: &str = "Content-Type";
const PAYLOAD_FORMAT: &str = "Mqtt-Payload-Format";
const CORRELATION_DATA: &str = "Mqtt-Correlation-Data";
const USER_PROPERTY: &str = "Mqtt-User-Property";
const RETAIN: &str = "Mqtt-Retain";
const QOS: &str = "Nmqtt-Pub";
/// Lifetime of a message in seconds. The header is not `Nats-TTL`, because a stream that allows no TTLs would
/// refuse the message.
const EXPIRY: &str = "Mqtt-Message-Expiry";
const TTL: &str = "Nats-TTL";
/// An encoded property that cannot be a header value.
const PROPERTY: &str = "Mqtt-Property";
/// The id hash of the publisher, if the publisher has a subscription with No Local.
const CLIENT: &str = "Nmqtt-Client";
/// The response topic of stored messages, which have no reply subject.
const RESPONSE_TOPIC: &str = "Mqtt-Response-Topic";
/// The first bytes of each header block with a QoS.
const QOS_FIRST: &[u8] = b"NATS/1.0\r\nNmqtt-Pub: ";
/// Length of a block with a QoS and no other header.
const QOS_ALONE_BYTES: usize = QOS_FIRST.len() + b"1\r\n\r\n".len();
/// Prefixes of header names with a meaning for the server. User properties must not use them.
const RESERVED: [&str; 3] = ["Nats-", "Nmqtt-", "Mqtt-"];

/// Appends the headers of a publish. A publish with only default values has no headers. The response topic is
/// not a header, because it becomes the reply subject.
pub fn write_headers(publish: &Publish<'_>, out: &mut Vec<u8>) {
    let is_plain = publish.qos == Qos::AtMostOnce && !publish.retain;
    if is_plain && publish.properties.is_empty() {
        return;
    }
    let before = out.len();
    out.extend_from_slice(FIRST_LINE);
    match publish.qos {
        Qos::AtMostOnce => {}
        Qos::AtLeastOnce => line(out, QOS, "1"),
        Qos::ExactlyOnce => line(out, QOS, "2"),
    }
    if publish.retain {
        line(out, RETAIN, "1");
    }
    for property in publish.properties.iter() {
        write_header(&property, !is_plain, out);
    }
    match out.len() == before + FIRST_LINE.len() {
        true => out.truncate(before),
        false => out.extend_from_slice(b"\r\n"),
    }
}

/// Appends the headers of a publish, with the publisher's id hash for subscriptions with No Local.
pub fn write_headers_of(publish: &Publish<'_>, client: &str, out: &mut Vec<u8>) {
    let before = out.len();
    write_headers(publish, out);
    match out.len() == before {
        true => out.extend_from_slice(FIRST_LINE),
        false => out.truncate(out.len() - 2),
    }
    line(out, CLIENT, client);
    out.extend_from_slice(b"\r\n");
}

/// Returns the QoS with which an MQTT client published a message with these headers; QoS 0 if the headers
/// contain no QoS.
#[inline]
pub fn qos_of(block: &[u8]) -> Qos {
    match block.strip_prefix(QOS_FIRST) {
        Some([b'1', ..]) => Qos::AtLeastOnce,
        Some([b'2', ..]) => Qos::ExactlyOnce,
        _ => Qos::AtMostOnce,
    }
}

/// Returns the value of a header other than the QoS.
#[inline]
fn value_of<'a>(block: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    // Most messages of MQTT clients have no other header, and several are wanted of each message.
    if block.len() == QOS_ALONE_BYTES && block.starts_with(QOS_FIRST) {
        return None;
    }
    headers::find(block, wanted.as_bytes()).map(<[u8]>::trim_ascii_end)
}

/// Returns the response topic of a stored message, if it has one.
pub fn response_topic_of(block: &[u8]) -> Option<&str> {
    std::str::from_utf8(value_of(block, RESPONSE_TOPIC)?).ok()
}

/// Returns whether the message was published with RETAIN.
pub fn was_retained(block: &[u8]) -> bool {
    value_of(block, RETAIN) == Some(b"1")
}

/// Returns the id hash of the publisher, if the headers have it.
pub fn client_of(block: &[u8]) -> Option<&[u8]> {
    value_of(block, CLIENT)
}

/// Returns the headers of a message for the log, with a TTL after which the log removes the message.
pub fn with_ttl(block: &[u8]) -> Cow<'_, [u8]> {
    let seconds = value_of(block, EXPIRY).and_then(|value| std::str::from_utf8(value).ok());
    let Some(seconds) = seconds else {
        return Cow::Borrowed(block);
    };
    let mut kept = block[..block.len().saturating_sub(2)].to_vec();
    line(&mut kept, TTL, seconds);
    kept.extend_from_slice(b"\r\n");
    Cow::Owned(kept)
}

/// Returns the lifetime of a message in seconds, counted from its publication.
pub fn ttl_of(block: &[u8]) -> Option<u32> {
    let value = value_of(block, EXPIRY).or_else(|| value_of(block, TTL))?;
    let value = std::str::from_utf8(value).ok()?;
    value.strip_suffix('s').unwrap_or(value).parse().ok()
}

fn write_header(property: &Property<'_>, is_kept: bool, out: &mut Vec<u8>) {
    match *property {
        Property::ContentType(value) if is_value(value) => line(out, CONTENT_TYPE, value),
        Property::ContentType(_) => line_encoded(property, out),
        Property::PayloadFormat(true) => line(out, PAYLOAD_FORMAT, "1"),
        Property::CorrelationData(data) => line(out, CORRELATION_DATA, &STANDARD.encode(data)),
        // Streams refuse a TTL of 0, so a message that expires at once lives for a second.
        Property::MessageExpiry(seconds) => {
            line(out, EXPIRY, itoa::Buffer::new().format(seconds.max(1)));
        }
        // In all other cases, the reply subject contains the response topic.
        Property::ResponseTopic(topic) if is_kept || !has_subject(topic) => match is_value(topic) {
            true => line(out, RESPONSE_TOPIC, topic),
            false => line_encoded(property, out),
        },
        Property::User(name, value) if is_name(name) && is_value(value) => line(out, name, value),
        Property::User(name, value) => {
            let both = [STANDARD.encode(name), STANDARD.encode(value)];
            line(out, USER_PROPERTY, &both.join("."));
        }
        _ => {}
    }
}

fn line_encoded(property: &Property<'_>, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    property.write(&mut bytes);
    line(out, PROPERTY, &STANDARD.encode(bytes));
}

fn line(out: &mut Vec<u8>, name: &str, value: &str) {
    headers::write_line(out, name, value.as_bytes());
}

/// Returns whether a user property can become a header with its own name. Only then does the receiver get the
/// same name back.
fn is_name(name: &str) -> bool {
    let starts_with = |prefix: &&str| {
        let start = name.as_bytes().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    !name.is_empty()
        && name.trim() == name
        && !name.bytes().any(|b| matches!(b, b':' | b'\r' | b'\n'))
        && !RESERVED.iter().any(starts_with)
        && !name.eq_ignore_ascii_case(CONTENT_TYPE)
}

fn is_value(value: &str) -> bool {
    value.trim() == value && !value.bytes().any(|b| matches!(b, b'\r' | b'\n'))
}

/// Appends the properties of a message for a client of 5.0, without their total length. Converts them from
/// the headers and the reply subject, which may be empty.
///
/// `expiry` is the remaining lifetime in seconds, if it is limited (3.3.2.3.3).
pub fn write_properties(block: &[u8], reply: &[u8], expiry: Option<u32>, out: &mut Vec<u8>) {
    if let Some(seconds) = expiry {
        Property::MessageExpiry(seconds).write(out);
    }
    if !reply.is_empty() {
        let mut topic = String::new();
        if subject_to_topic(reply, &mut topic).is_ok() {
            Property::ResponseTopic(&topic).write(out);
        }
    }
    let mut has_response = !reply.is_empty();
    let mut has_content_type = false;
    let mut has_correlation = false;
    for (name, value) in headers::each(block) {
        let (name, value) = (name.trim_ascii(), value.trim_ascii_end());
        // The length of the value is not checked here: Base64 text may exceed the limit of a property
        // although the encoded data does not.
        let (Some(name), Ok(encoded)) = (text(name), std::str::from_utf8(value)) else {
            continue;
        };
        match (name, text(value)) {
            // Each of these properties is written once (3.3.2.3): the first header counts.
            (CONTENT_TYPE, Some(value)) if !has_content_type => {
                has_content_type = true;
                Property::ContentType(value).write(out);
            }
            (CORRELATION_DATA, _) if !has_correlation => {
                if let Ok(data) = STANDARD.decode(encoded)
                    && data.len() <= TEXT_BYTES_MAX
                {
                    has_correlation = true;
                    Property::CorrelationData(&data).write(out);
                }
            }
            (USER_PROPERTY, _) => write_encoded(encoded, out),
            (PROPERTY, _) => {
                let bytes = STANDARD.decode(encoded).unwrap_or_default();
                match Properties::written(&bytes).iter().next() {
                    Some(Property::ContentType(value)) if !has_content_type => {
                        has_content_type = true;
                        Property::ContentType(value).write(out);
                    }
                    Some(Property::ResponseTopic(topic)) if !has_response && is_name_of(topic) => {
                        has_response = true;
                        Property::ResponseTopic(topic).write(out);
                    }
                    _ => {}
                }
            }
            (RESPONSE_TOPIC, Some(topic)) if !has_response && is_name_of(topic) => {
                has_response = true;
                Property::ResponseTopic(topic).write(out);
            }
            (RESPONSE_TOPIC, _) => {}
            (PAYLOAD_FORMAT | CORRELATION_DATA | RETAIN | QOS | EXPIRY | TTL | CLIENT, _)
            | (_, None) => {}
            (name, Some(value)) => Property::User(name, value).write(out),
        }
    }
    let says_text = |(name, value): (&str, &str)| (name.trim(), value) == (PAYLOAD_FORMAT, "1");
    if headers::each_text(block).any(says_text) {
        Property::PayloadFormat(true).write(out);
    }
}

/// Returns whether a topic is a topic name, without wildcards (MQTT-3.3.2-14).
fn is_name_of(topic: &str) -> bool {
    !topic.is_empty() && !topic.contains(['+', '#'])
}

fn write_encoded(value: &str, out: &mut Vec<u8>) {
    let decode = |part: &str| {
        let bytes = STANDARD.decode(part).ok()?;
        text(&bytes).map(str::to_owned)
    };
    if let Some((name, value)) = value.split_once('.')
        && let (Some(name), Some(value)) = (decode(name), decode(value))
    {
        Property::User(&name, &value).write(out);
    }
}

/// Returns bytes as a text that a property may contain (1.5.4).
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (bytes.len() <= TEXT_BYTES_MAX && !bytes.contains(&0)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(properties: &[u8]) -> Publish<'_> {
        Publish {
            topic: "a",
            packet_id: 0,
            qos: Qos::AtMostOnce,
            dup: false,
            retain: false,
            properties: Properties::written(properties),
            payload: b"",
        }
    }

    fn block_of(properties: &[Property<'_>]) -> Vec<u8> {
        let mut block = Vec::new();
        for property in properties {
            property.write(&mut block);
        }
        block
    }

    #[test]
    fn nothing_to_say_is_no_headers() {
        let mut out = Vec::new();
        write_headers(&publish(b""), &mut out);
        let silent = block_of(&[
            Property::PayloadFormat(false),
            Property::TopicAlias(1),
            Property::ResponseTopic("b"),
        ]);
        write_headers(&publish(&silent), &mut out);
        assert_eq!(out, b"");
    }

    #[test]
    fn headers_as_they_are_written() {
        let block = block_of(&[
            Property::User("a", "b"),
            Property::MessageExpiry(0),
            Property::User("Nats-Rollup", "all"),
        ]);
        let mut publish = publish(&block);
        publish.qos = Qos::AtLeastOnce;
        publish.retain = true;
        let mut out = Vec::new();
        write_headers(&publish, &mut out);
        let wanted = "NATS/1.0\r\nNmqtt-Pub: 1\r\nMqtt-Retain: 1\r\na: b\r\n\
                      Mqtt-Message-Expiry: 1\r\nMqtt-User-Property: TmF0cy1Sb2xsdXA=.YWxs\r\n\r\n";
        assert_eq!(String::from_utf8(out), Ok(wanted.to_owned()));
        // `Nats-TTL` is added only when the message is stored: a stream that captures the message at its
        // published subject could refuse the TTL.
        let kept = with_ttl(wanted.as_bytes()).into_owned();
        let ends = "YWxs\r\nNats-TTL: 1\r\n\r\n";
        assert!(String::from_utf8(kept).is_ok_and(|kept| kept.ends_with(ends)));
        let plain = b"NATS/1.0\r\nNats-TTL: 7s\r\n\r\n";
        assert_eq!(with_ttl(plain), Cow::Borrowed(&plain[..]));
        assert_eq!(
            (ttl_of(wanted.as_bytes()), ttl_of(plain)),
            (Some(1), Some(7))
        );
    }

    #[test]
    fn properties_come_back() {
        let properties = [
            Property::ContentType("text/plain"),
            Property::CorrelationData(b"\0\xff"),
            Property::User("k", "v"),
            Property::User("k", "w"),
            Property::User("", "empty name"),
            Property::User("a:b", " blank ends "),
            Property::User("nats-ttl", "1"),
            Property::User("content-type", "another"),
            Property::PayloadFormat(true),
        ];
        let block = block_of(&properties);
        let mut headers = Vec::new();
        write_headers(&publish(&block), &mut headers);
        let mut back = Vec::new();
        write_properties(&headers, b"", None, &mut back);
        let read: Vec<_> = Properties::written(&back).iter().collect();
        assert_eq!(read, properties);
    }

    #[test]
    fn properties_that_headers_cannot_have_come_back() {
        for (property, header) in [
            (Property::ContentType(" a\r\nb"), "Mqtt-Property: "),
            (Property::ResponseTopic("to\r\nme"), "Mqtt-Property: "),
            (
                Property::ResponseTopic("to me"),
                "Mqtt-Response-Topic: to me\r\n",
            ),
        ] {
            let block = block_of(&[property]);
            let mut headers = Vec::new();
            write_headers(&publish(&block), &mut headers);
            let text = String::from_utf8_lossy(&headers).into_owned();
            assert!(text.contains(header), "{text}");
            let mut back = Vec::new();
            write_properties(&headers, b"", None, &mut back);
            assert_eq!(back, block, "{text}");
        }
    }

    #[test]
    fn headers_of_a_nats_client() {
        let block = b"NATS/1.0 503\r\nX: 1\r\nbad line\r\nY:2\r\nZ: \xff\r\nNmqtt-Pub: 2\r\n\r\n";
        let mut out = Vec::new();
        write_properties(block, b"_INBOX.a.b", Some(5), &mut out);
        let read: Vec<_> = Properties::written(&out).iter().collect();
        let wanted = [
            Property::MessageExpiry(5),
            Property::ResponseTopic("_INBOX/a/b"),
            Property::User("X", "1"),
            Property::User("Y", "2"),
        ];
        assert_eq!(read, wanted);
    }
}
