//! Parses and writes the subjects and payloads of acknowledgements.

use serde::Deserialize;

use super::write;
use crate::time::Nanos;

/// The parsed subject of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSubject<'a> {
    /// Name of the stream.
    pub stream: &'a [u8],
    /// Name of the consumer.
    pub consumer: &'a [u8],
    /// Sequence of the record in the stream.
    pub stream_sequence: u64,
    /// Number of the delivery among all deliveries of the consumer.
    pub consumer_sequence: u64,
    /// Number of deliveries of this record, including this one.
    pub deliveries: u64,
    /// Time at which the record was stored, in nanoseconds since 1970 UTC.
    pub unix_nanos: i64,
    /// Number of records that remained to be delivered after this delivery.
    pub pending: u64,
}

/// The subject of an acknowledgement, split into tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckTokens<'a>([&'a [u8]; 7]);

impl<'a> AckTokens<'a> {
    pub(crate) fn of(subject: &'a [u8]) -> Option<Self> {
        let rest = subject.strip_prefix(b"$JS.ACK.")?;
        let mut tokens = [&b""[..]; 9];
        let mut count = 0;
        for token in rest.split(|b| *b == b'.') {
            if let Some(place) = tokens.get_mut(count) {
                *place = token;
            }
            count += 1;
        }
        // The short form has seven tokens after `$JS.ACK.`. The long form has two more before them, and may
        // have more at the end.
        let [_, _, last @ ..] = tokens;
        match (count, tokens) {
            (7, [first @ .., _, _]) => Some(AckTokens(first)),
            (9.., _) => Some(AckTokens(last)),
            _ => None,
        }
    }

    pub(crate) fn stream(&self) -> &'a [u8] {
        self.0[0]
    }

    pub(crate) fn consumer(&self) -> &'a [u8] {
        self.0[1]
    }

    pub(super) fn parse(&self) -> Option<AckSubject<'a>> {
        let [stream, consumer, numbers @ ..] = self.0;
        let mut parsed = [0; 5];
        for (number, token) in parsed.iter_mut().zip(numbers) {
            *number = write::parse_number(token)?;
        }
        AckSubject::of(stream, consumer, parsed)
    }
}

impl<'a> AckSubject<'a> {
    /// Parses `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer
    /// sequence>.<time>.<pending>`, or the long form with a domain and an account after `ACK`.
    pub fn parse(subject: &'a [u8]) -> Option<Self> {
        AckSubject::parse_short(subject).or_else(|| AckTokens::of(subject)?.parse())
    }

    /// Parses the short form, as the server writes it.
    fn parse_short(subject: &'a [u8]) -> Option<Self> {
        let (stream, rest) = split_token(subject.strip_prefix(b"$JS.ACK.")?)?;
        let (consumer, numbers) = split_token(rest)?;
        AckSubject::parse_numbers(stream, consumer, numbers)
    }

    /// Parses the tokens after the consumer's name, in the form in which the server writes them.
    pub(super) fn parse_numbers(stream: &'a [u8], consumer: &'a [u8], text: &[u8]) -> Option<Self> {
        let mut numbers = [0; 5];
        write::parse_dotted(text, &mut numbers)?;
        AckSubject::of(stream, consumer, numbers)
    }

    fn of(stream: &'a [u8], consumer: &'a [u8], numbers: [u64; 5]) -> Option<Self> {
        let [
            deliveries,
            stream_sequence,
            consumer_sequence,
            unix_nanos,
            pending,
        ] = numbers;
        Some(AckSubject {
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

/// Returns the first token, and all bytes after its dot.
fn split_token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = text.iter().position(|byte| *byte == b'.')?;
    Some((&text[..dot], &text[dot + 1..]))
}

/// The payload of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ack<'a> {
    /// The record was processed.
    Done,
    /// The record was processed, and the bytes are a pull request for more records.
    Next(&'a [u8]),
    /// The record was not processed and is to be redelivered, after a delay in nanoseconds if there is one.
    Nak(Option<u64>),
    /// The record is still being processed.
    Progress,
    /// The record must not be redelivered, for this reason.
    Terminate(&'a [u8]),
    /// An unknown payload.
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
                    Ack::Nak(delay(options.trim_ascii()))
                } else if let Some(reason) = payload.strip_prefix(b"+TERM") {
                    Ack::Terminate(reason.trim_ascii())
                } else {
                    Ack::Unknown
                }
            }
        }
    }
}

/// Parses `{"delay":<nanoseconds>}` or a duration such as `300ms`. All other texts mean no delay.
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

/// Appends the tokens that follow the consumer's name in an acknowledgement's subject.
pub(super) fn write_subject(
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

/// The subjects of the acknowledgements of successive first deliveries. Each replaces the one before in one buffer;
/// most differ in a few digits only.
pub(super) struct SubjectRun {
    /// Length of the part before the numbers.
    prefix: usize,
    unix_nanos: i64,
    /// The end of the stream sequence, of the consumer sequence, and of the time.
    ends: [usize; 3],
}

impl SubjectRun {
    /// Begins after a subject whose numbers follow `prefix` bytes.
    pub(super) fn after(subject: &[u8], prefix: usize, unix_nanos: i64) -> Self {
        let numbers = subject.iter().enumerate().skip(prefix);
        let mut dots = numbers.filter(|(_, byte)| **byte == b'.').skip(1);
        SubjectRun {
            prefix,
            unix_nanos,
            ends: std::array::from_fn(|_| dots.next().map_or(prefix, |(at, _)| at)),
        }
    }

    /// Replaces the subject by that of the next delivery. Both sequences are one above those of the last one, and
    /// `pending` is usually one below.
    pub(super) fn advance(
        &mut self,
        subject: &mut Vec<u8>,
        (stream_sequence, consumer_sequence): (u64, u64),
        unix_nanos: i64,
        pending: u64,
    ) {
        if !self.advance_in_place(subject, unix_nanos) {
            subject.truncate(self.prefix);
            write_subject(
                subject,
                1,
                stream_sequence,
                consumer_sequence,
                unix_nanos,
                pending,
            );
            *self = SubjectRun::after(subject, self.prefix, unix_nanos);
        }
    }

    /// Returns `false` if a number changes its length; the numbers are then undefined.
    fn advance_in_place(&mut self, subject: &mut [u8], unix_nanos: i64) -> bool {
        let [stream_sequence, consumer_sequence, time] = self.ends;
        if unix_nanos != self.unix_nanos {
            self.unix_nanos = unix_nanos;
            let number = u64::try_from(unix_nanos).unwrap_or(0);
            if !write::overwrite(&mut subject[consumer_sequence + 1..time], number) {
                return false;
            }
        }
        write::increment(&mut subject[..stream_sequence])
            && write::increment(&mut subject[..consumer_sequence])
            && write::decrement(&mut subject[time..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advanced_subjects_equal_written_ones() {
        const FIRST: i64 = 1_795_300_481_173_765_211;
        for pending in [1_200_u64, 3] {
            let text = |step: u64| {
                let mut out = b"$JS.ACK.S.C.".to_vec();
                let time = FIRST + i64::try_from(step / 7).unwrap();
                let (sequence, number) = (95 + step, 7 + step);
                write_subject(
                    &mut out,
                    1,
                    sequence,
                    number,
                    time,
                    pending.saturating_sub(step),
                );
                (out, (sequence, number), time)
            };
            let mut subject = text(0).0;
            let mut run = SubjectRun::after(&subject, b"$JS.ACK.S.C.".len(), FIRST);
            for step in 1..1_500 {
                let (expected, sequences, time) = text(step);
                run.advance(&mut subject, sequences, time, pending.saturating_sub(step));
                assert_eq!(subject, expected, "{step}");
            }
        }
    }

    #[test]
    fn ack_subjects_are_parsed_and_written() {
        let expected = AckSubject {
            stream: b"S",
            consumer: b"C",
            stream_sequence: 7,
            consumer_sequence: 9,
            deliveries: 2,
            unix_nanos: 1_795_300_481_173_765_211,
            pending: 4,
        };
        let mut written = b"$JS.ACK.S.C.".to_vec();
        write_subject(&mut written, 2, 7, 9, 1_795_300_481_173_765_211, 4);
        assert_eq!(written, b"$JS.ACK.S.C.2.7.9.1795300481173765211.4");
        assert_eq!(AckSubject::parse(&written), Some(expected));
        for long in [
            "$JS.ACK._.hash.S.C.2.7.9.1795300481173765211.4",
            "$JS.ACK.hub.hash.S.C.2.7.9.1795300481173765211.4.random",
        ] {
            assert_eq!(AckSubject::parse(long.as_bytes()), Some(expected), "{long}");
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
            assert_eq!(AckSubject::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn payloads_are_parsed() {
        for (payload, expected) in [
            ("", Ack::Done),
            ("+ACK", Ack::Done),
            ("+OK", Ack::Done),
            ("-NAK", Ack::Nak(None)),
            (r#"-NAK {"delay":300}"#, Ack::Nak(Some(300))),
            ("-NAK 300ms", Ack::Nak(Some(300_000_000))),
            ("-NAK 300", Ack::Nak(None)),
            (r#"-NAK {"delay":"abc"}"#, Ack::Nak(None)),
            (r#"-NAK {"delay":-5}"#, Ack::Nak(None)),
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
