//! Acknowledgements: where they are sent to, and what they say.

use serde::Deserialize;

use super::write;
use crate::time::Nanos;

/// Where an acknowledgement is sent to, in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckTopic<'a> {
    /// The stream that it is about.
    pub stream: &'a [u8],
    /// The consumer that it is about.
    pub consumer: &'a [u8],
    /// The record's sequence in the stream.
    pub stream_sequence: u64,
    /// The number of the delivery.
    pub consumer_sequence: u64,
    /// How often the record had been delivered then.
    pub deliveries: u64,
    /// When the record was stored: nanoseconds since 1970 UTC.
    pub unix_nanos: i64,
    /// How many records were still to be delivered then.
    pub pending: u64,
}

/// The tokens behind the prefix of an acknowledgement's subject, from the stream's name on.
fn tokens(topic: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let rest = topic.strip_prefix(b"$JS.ACK.")?;
    // The short form has seven tokens here. The long one has two more in front, and may have more
    // behind.
    let skipped = match rest.split(|b| *b == b'.').count() {
        7 => 0,
        count if count >= 9 => 2,
        _ => return None,
    };
    Some(rest.split(|b| *b == b'.').skip(skipped))
}

impl<'a> AckTopic<'a> {
    /// Returns the names of the stream and the consumer that an acknowledgement is sent to, whatever the
    /// rest of its subject is.
    pub(crate) fn names(topic: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let mut tokens = tokens(topic)?;
        Some((tokens.next()?, tokens.next()?))
    }

    /// Reads `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>`,
    /// or the longer form with a domain and an account after `ACK`.
    pub fn parse(topic: &'a [u8]) -> Option<Self> {
        let mut tokens = tokens(topic)?;
        let (stream, consumer) = (tokens.next()?, tokens.next()?);
        let mut number = || tokens.next().and_then(write::parse_number);
        let (deliveries, stream_sequence, consumer_sequence) = (number()?, number()?, number()?);
        let (unix_nanos, pending) = (number()?, number()?);
        Some(AckTopic {
            stream,
            consumer,
            stream_sequence,
            consumer_sequence,
            deliveries,
            unix_nanos: i64::try_from(unix_nanos).ok()?,
            pending,
        })
    }
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ack<'a> {
    /// Done.
    Done,
    /// Done, and a pull request for more.
    Next(&'a [u8]),
    /// Not done: again, after so many nanoseconds.
    Again(Option<u64>),
    /// Still at work.
    Progress,
    /// Never again, and why.
    Terminate(&'a [u8]),
    /// Nothing that is known.
    Unknown,
}

impl<'a> Ack<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Self {
        match payload {
            b"" | b"+ACK" | b"+OK" => Ack::Done,
            b"+WPI" => Ack::Progress,
            _ => {
                if let Some(body) = payload.strip_prefix(b"+NXT") {
                    Ack::Next(body.trim_ascii())
                } else if let Some(options) = payload.strip_prefix(b"-NAK") {
                    Ack::Again(delay(options.trim_ascii()))
                } else if let Some(reason) = payload.strip_prefix(b"+TERM") {
                    Ack::Terminate(reason.trim_ascii())
                } else {
                    Ack::Unknown
                }
            }
        }
    }
}

/// `{"delay":<nanoseconds>}`, or a duration such as `300ms`; what cannot be read means at once.
fn delay(options: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Options {
        #[serde(default)]
        delay: i64,
    }
    let delay = match serde_json::from_slice::<Options>(options) {
        Ok(options) => u64::try_from(options.delay).ok(),
        Err(_) => {
            let delay: Nanos = std::str::from_utf8(options).ok()?.parse().ok()?;
            u64::try_from(delay.0).ok()
        }
    };
    delay.filter(|delay| *delay > 0)
}

/// Appends what comes after the consumer's name in the topic of an acknowledgement.
pub(super) fn write_topic(
    out: &mut Vec<u8>,
    deliveries: u32,
    stream_sequence: u64,
    consumer_sequence: u64,
    unix_nanos: i64,
    pending: u64,
) {
    write::number(out, u64::from(deliveries));
    let unix_nanos = u64::try_from(unix_nanos).unwrap_or(0);
    for number in [stream_sequence, consumer_sequence, unix_nanos, pending] {
        out.push(b'.');
        write::number(out, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics() {
        let expected = AckTopic {
            stream: b"S",
            consumer: b"C",
            stream_sequence: 7,
            consumer_sequence: 9,
            deliveries: 2,
            unix_nanos: 1_795_300_481_173_765_211,
            pending: 4,
        };
        let mut written = b"$JS.ACK.S.C.".to_vec();
        write_topic(&mut written, 2, 7, 9, 1_795_300_481_173_765_211, 4);
        assert_eq!(written, b"$JS.ACK.S.C.2.7.9.1795300481173765211.4");
        assert_eq!(AckTopic::parse(&written), Some(expected));
        for long in [
            "$JS.ACK._.hash.S.C.2.7.9.1795300481173765211.4",
            "$JS.ACK.hub.hash.S.C.2.7.9.1795300481173765211.4.random",
        ] {
            assert_eq!(AckTopic::parse(long.as_bytes()), Some(expected), "{long}");
        }
        for bad in [
            "",
            "$JS.ACK",
            "$JS.ACK.",
            "$JS.ACK.S.C",
            "$JS.ACK.S.C.2.7.9.1",
            "$JS.ACK.S.C.2.x.9.1.4",
            "$JS.ACK.S.C.2.99999999999999999999.9.1.4",
            "$JS.ACK.S.C.2.7.9.1.4.5",
        ] {
            assert_eq!(AckTopic::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn payloads() {
        for (payload, expected) in [
            ("", Ack::Done),
            ("+ACK", Ack::Done),
            ("+OK", Ack::Done),
            ("-NAK", Ack::Again(None)),
            (r#"-NAK {"delay":300}"#, Ack::Again(Some(300))),
            ("-NAK 300ms", Ack::Again(Some(300_000_000))),
            ("-NAK 300", Ack::Again(None)),
            (r#"-NAK {"delay":"abc"}"#, Ack::Again(None)),
            (r#"-NAK {"delay":-5}"#, Ack::Again(None)),
            ("+WPI", Ack::Progress),
            ("+TERM", Ack::Terminate(b"")),
            ("+TERM bad stuff", Ack::Terminate(b"bad stuff")),
            ("+NXT", Ack::Next(b"")),
            ("+NXT 2", Ack::Next(b"2")),
            (r#"+NXT {"batch":2}"#, Ack::Next(br#"{"batch":2}"#)),
            ("garbage", Ack::Unknown),
        ] {
            assert_eq!(Ack::parse(payload.as_bytes()), expected, "{payload}");
        }
    }
}
