//! In-place parser of leaf connections. Like the parser of clients, it has no state: the caller passes all
//! bytes from the first unconsumed one on.

use std::ops::Range;

use super::LEAF_LINE_BYTES_MAX;
use crate::codec::line::{first, last, may_be_any_of, unquoted};
use crate::codec::nats::parse::{
    Fault, MALFORMED, ParseLimits, Publish, TOO_LARGE, TOO_LONG, UNKNOWN, find_newline, parse_size,
    scan_usual, scan_usual_headers,
};

/// The result of parsing the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum LeafParsed<'a> {
    /// A complete verb with its payload, and the length of both in bytes.
    Verb(LeafVerb<'a>, usize),
    /// An incomplete verb; see [`Parsed::Partial`](crate::Parsed::Partial).
    Partial {
        /// Length of the whole frame; 0 while the line is incomplete.
        frame_bytes: usize,
    },
    /// An invalid line.
    Wrong(Fault),
}

/// A verb that either side may send.
#[derive(Debug, PartialEq, Eq)]
pub enum LeafVerb<'a> {
    /// `LMSG` or `HMSG`.
    Message(LeafMessage<'a>),
    /// `LS+ <subject> [<queue> <weight>]`.
    Subscribe {
        /// The filter, unchecked.
        filter: &'a [u8],
        /// Queue group; empty without one.
        queue: &'a [u8],
        /// The number of members; 1 without a queue group.
        weight: u32,
    },
    /// `LS- <subject> [<queue>]`.
    Unsubscribe {
        /// The filter.
        filter: &'a [u8],
        /// Queue group; empty without one.
        queue: &'a [u8],
    },
    /// `CONNECT {json}`.
    Connect(&'a [u8]),
    /// `INFO {json}`.
    Info(&'a [u8]),
    /// `PING`.
    Ping,
    /// `PONG`.
    Pong,
    /// `+OK`, ignored.
    Ok,
    /// `-ERR '…'`, without the quotes.
    Error(&'a [u8]),
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafMessage<'a> {
    /// Subject, reply, sizes, and positions, as in a publish of a client.
    pub publish: Publish<'a>,
    /// The queue groups that receive the message, separated by spaces. One member of each group receives it.
    pub groups: &'a [u8],
}

/// The names of verbs, in lower case.
const NAMES: [&[u8]; 10] = [
    b"lmsg", b"hmsg", b"ls+", b"ls-", b"ping", b"pong", b"connect", b"info", b"+ok", b"-err",
];

/// Parses one verb at the front of `input`.
pub fn parse_leaf(input: &[u8], payload_bytes_max: usize) -> LeafParsed<'_> {
    let limits = ParseLimits {
        control_line_bytes_max: LEAF_LINE_BYTES_MAX,
        payload_bytes_max,
        headers: true,
    };
    if let Some((publish, taken)) = usual_message(input, limits) {
        let message = LeafMessage {
            publish,
            groups: &[],
        };
        return LeafParsed::Verb(LeafVerb::Message(message), taken);
    }
    if !may_be_any_of(&NAMES, input) {
        return LeafParsed::Wrong(UNKNOWN);
    }
    let searched = &input[..input.len().min(LEAF_LINE_BYTES_MAX)];
    let Some(newline) = find_newline(searched) else {
        return match input.len() < LEAF_LINE_BYTES_MAX {
            true => LeafParsed::Partial { frame_bytes: 0 },
            false => LeafParsed::Wrong(TOO_LONG),
        };
    };
    let line_end = newline + 1;
    let line = &input[..newline];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (name, args) = first(line);
    match name.to_ascii_lowercase().as_slice() {
        b"lmsg" => message(input, args, line_end, false, limits),
        b"hmsg" => message(input, args, line_end, true, limits),
        name => match plain_verb(name, args) {
            Some(verb) => LeafParsed::Verb(verb, line_end),
            None if NAMES.contains(&name) => LeafParsed::Wrong(MALFORMED),
            None => LeafParsed::Wrong(UNKNOWN),
        },
    }
}

/// Parses a message without queue groups in the usual form. Nearly all messages have this form.
#[inline]
fn usual_message(input: &[u8], limits: ParseLimits) -> Option<(Publish<'_>, usize)> {
    let args = match input.first_chunk()? {
        b"LMSG " => scan_usual(input, 5)?,
        b"HMSG " => scan_usual_headers(input, 5)?,
        _ => return None,
    };
    let (publish, taken) = args.publish(input, limits)?;
    (!matches!(publish.reply, b"+" | b"|")).then_some((publish, taken))
}

fn plain_verb<'a>(name: &[u8], args: &'a [u8]) -> Option<LeafVerb<'a>> {
    Some(match name {
        b"ls+" => subscribe(args)?,
        b"ls-" => {
            let (filter, rest) = first(args);
            let (queue, rest) = first(rest);
            if filter.is_empty() || !rest.is_empty() {
                return None;
            }
            LeafVerb::Unsubscribe { filter, queue }
        }
        b"ping" => LeafVerb::Ping,
        b"pong" => LeafVerb::Pong,
        b"connect" => LeafVerb::Connect(args.trim_ascii()),
        b"info" => LeafVerb::Info(args.trim_ascii()),
        b"+ok" => LeafVerb::Ok,
        b"-err" => LeafVerb::Error(unquoted(args)),
        _ => return None,
    })
}

fn subscribe(args: &[u8]) -> Option<LeafVerb<'_>> {
    let (filter, rest) = first(args);
    let (queue, rest) = first(rest);
    let (weight, rest) = first(rest);
    if filter.is_empty() || !rest.is_empty() || queue.is_empty() != weight.is_empty() {
        return None;
    }
    let weight = match queue {
        [] => 1,
        _ => u32::try_from(parse_size(weight)?)
            .unwrap_or(u32::MAX)
            .max(1),
    };
    Some(LeafVerb::Subscribe {
        filter,
        queue,
        weight,
    })
}

fn message<'a>(
    input: &'a [u8],
    args: &'a [u8],
    line_end: usize,
    with_headers: bool,
    limits: ParseLimits,
) -> LeafParsed<'a> {
    let Some(head) = head(args, with_headers) else {
        return LeafParsed::Wrong(MALFORMED);
    };
    if head.total > limits.payload_bytes_max {
        return LeafParsed::Wrong(TOO_LARGE);
    }
    let end = line_end + head.total + 2;
    if input.len() < end {
        return LeafParsed::Partial { frame_bytes: end };
    }
    if &input[end - 2..end] != b"\r\n" {
        return LeafParsed::Wrong(UNKNOWN);
    }
    let message = LeafMessage {
        publish: Publish {
            subject: head.subject,
            reply: head.reply,
            header_bytes: head.header_bytes,
            // The received arguments cannot be forwarded: subscribers receive another form.
            args: Range::default(),
            body: line_end..end,
        },
        groups: head.groups,
    };
    LeafParsed::Verb(LeafVerb::Message(message), end)
}

/// The parsed arguments of a message.
struct Head<'a> {
    subject: &'a [u8],
    reply: &'a [u8],
    groups: &'a [u8],
    header_bytes: usize,
    total: usize,
}

fn head(args: &[u8], with_headers: bool) -> Option<Head<'_>> {
    let (rest, total) = last(args);
    let total = parse_size(total)?;
    let (rest, header_bytes) = match with_headers {
        false => (rest, 0),
        true => {
            let (rest, bytes) = last(rest);
            (rest, parse_size(bytes)?)
        }
    };
    let (subject, rest) = first(rest);
    let (mark, behind) = first(rest);
    let (reply, groups) = match (mark, behind) {
        (reply, []) if !matches!(reply, b"+" | b"|") => (reply, &[][..]),
        (b"+", behind) => first(behind),
        (b"|", groups) => (&[][..], groups),
        _ => return None,
    };
    let is_whole =
        !subject.is_empty() && header_bytes <= total && (mark != b"+" || !reply.is_empty());
    is_whole.then_some(Head {
        subject,
        reply,
        groups: groups.trim_ascii(),
        header_bytes,
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1024;

    /// Parses a message. Returns subject, reply, groups, number of header bytes, and the body.
    fn parts_of(input: &str) -> (String, String, String, usize, String) {
        let LeafParsed::Verb(LeafVerb::Message(message), taken) = parse_leaf(input.as_bytes(), MAX)
        else {
            panic!("{input:?} is no message");
        };
        assert_eq!(taken, input.len(), "{input:?}");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let LeafMessage { publish, groups } = message;
        let body = text(&input.as_bytes()[publish.body.clone()]);
        (
            text(publish.subject),
            text(publish.reply),
            text(groups),
            publish.header_bytes,
            body,
        )
    }

    #[test]
    fn messages_in_every_form() {
        for (input, subject, reply, groups, headers, body) in [
            ("LMSG a 2\r\nhi\r\n", "a", "", "", 0, "hi\r\n"),
            ("LMSG a r 2\r\nhi\r\n", "a", "r", "", 0, "hi\r\n"),
            (
                "LMSG a + r q1 q2 2\r\nhi\r\n",
                "a",
                "r",
                "q1 q2",
                0,
                "hi\r\n",
            ),
            ("LMSG a + r 2\r\nhi\r\n", "a", "r", "", 0, "hi\r\n"),
            ("LMSG a | q 2\r\nhi\r\n", "a", "", "q", 0, "hi\r\n"),
            ("lmsg\ta  |  q \t2 \nhi\r\n", "a", "", "q", 0, "hi\r\n"),
            (
                "HMSG a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
                "a",
                "",
                "",
                12,
                "NATS/1.0\r\n\r\nhi\r\n",
            ),
            (
                "HMSG a r 12 12\r\nNATS/1.0\r\n\r\n\r\n",
                "a",
                "r",
                "",
                12,
                "NATS/1.0\r\n\r\n\r\n",
            ),
            (
                "HMSG a + r q 12 12\r\nNATS/1.0\r\n\r\n\r\n",
                "a",
                "r",
                "q",
                12,
                "NATS/1.0\r\n\r\n\r\n",
            ),
            (
                "HMSG a | q 12 12\r\nNATS/1.0\r\n\r\n\r\n",
                "a",
                "",
                "q",
                12,
                "NATS/1.0\r\n\r\n\r\n",
            ),
        ] {
            let expected = (
                subject.into(),
                reply.into(),
                groups.into(),
                headers,
                body.into(),
            );
            assert_eq!(parts_of(input), expected, "{input:?}");
        }
    }

    #[test]
    fn other_verbs() {
        for (input, expected) in [
            ("PING\r\n", LeafVerb::Ping),
            ("pong\r\n", LeafVerb::Pong),
            ("+OK\r\n", LeafVerb::Ok),
            ("-ERR 'no'\r\n", LeafVerb::Error(b"no")),
            ("INFO {\"a\":1} \r\n", LeafVerb::Info(b"{\"a\":1}")),
            ("CONNECT {}\r\n", LeafVerb::Connect(b"{}")),
            (
                "LS+ a.>\r\n",
                LeafVerb::Subscribe {
                    filter: b"a.>",
                    queue: b"",
                    weight: 1,
                },
            ),
            (
                "LS+ a q 3\r\n",
                LeafVerb::Subscribe {
                    filter: b"a",
                    queue: b"q",
                    weight: 3,
                },
            ),
            (
                "LS- a q\r\n",
                LeafVerb::Unsubscribe {
                    filter: b"a",
                    queue: b"q",
                },
            ),
        ] {
            let parsed = parse_leaf(input.as_bytes(), MAX);
            assert_eq!(parsed, LeafParsed::Verb(expected, input.len()), "{input:?}");
        }
    }

    #[test]
    fn invalid_lines_are_refused_and_partial_ones_wait() {
        for (input, fault) in [
            ("GET / HTTP/1.1\r\n", UNKNOWN),
            ("\u{16}\u{3}\u{1}", UNKNOWN),
            ("SUB a 1\r\n", UNKNOWN),
            ("LS+\r\n", MALFORMED),
            ("LS+ a q\r\n", MALFORMED),
            ("LS+ a q x\r\n", MALFORMED),
            ("LS- a q 1\r\n", MALFORMED),
            ("LMSG a\r\n", MALFORMED),
            ("LMSG a x\r\n", MALFORMED),
            ("LMSG a + 2\r\nhi\r\n", MALFORMED),
            ("LMSG a b c 2\r\nhi\r\n", MALFORMED),
            ("HMSG a 9 2\r\nhi\r\n", MALFORMED),
            ("LMSG a 2\r\nhi!!", UNKNOWN),
            ("LMSG a 1025\r\n", TOO_LARGE),
            ("LMSG a 99999999999999999999\r\n", TOO_LARGE),
        ] {
            let parsed = parse_leaf(input.as_bytes(), MAX);
            assert_eq!(parsed, LeafParsed::Wrong(fault), "{input:?}");
        }
        for (input, frame_bytes) in [("LMS", 0), ("LMSG a 2\r\nhi", 14), ("INFO {", 0), ("", 0)] {
            let parsed = parse_leaf(input.as_bytes(), MAX);
            assert_eq!(parsed, LeafParsed::Partial { frame_bytes }, "{input:?}");
        }
        let endless = [&b"LS+ "[..], &vec![b'a'; LEAF_LINE_BYTES_MAX]].concat();
        assert_eq!(parse_leaf(&endless, MAX), LeafParsed::Wrong(TOO_LONG));
    }
}
