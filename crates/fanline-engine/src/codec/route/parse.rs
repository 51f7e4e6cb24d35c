//! In-place parser of route connections. Like the parser of clients, it has no state: the caller passes all
//! bytes from the first unconsumed one on.

use std::ops::Range;

use super::{ROUTE_LINE_BYTES_MAX, ROUTE_PAYLOAD_BYTES_MAX};
use crate::codec::line::{first, last, may_be_any_of, unquoted};
use crate::codec::nats::parse::{
    Fault, MALFORMED, ParseLimits, Publish, TOO_LARGE, TOO_LONG, UNKNOWN, find_newline, parse_size,
    scan_usual, scan_usual_headers,
};

/// The result of parsing the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum RouteParsed<'a> {
    /// A complete verb with its payload, and the length of both in bytes.
    Verb(RouteVerb<'a>, usize),
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
pub enum RouteVerb<'a> {
    /// `RMSG`, `HMSG`, or `LMSG`.
    Message(RouteMessage<'a>),
    /// `RS+` or `LS+`.
    Subscribe(RouteInterest<'a>),
    /// `RS-` or `LS-`.
    Unsubscribe(RouteInterest<'a>),
    /// `A+` or `A-`, without effect on a route.
    Account {
        /// Name of the account.
        account: &'a [u8],
        /// Whether there may be interest in the account.
        is_wanted: bool,
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
pub struct RouteMessage<'a> {
    /// Cluster of the leaf node that the message comes from; empty for other messages.
    pub origin: &'a [u8],
    /// Name of the account; empty on a dedicated connection.
    pub account: &'a [u8],
    /// Subject, reply, sizes, and positions, as in a publish of a client.
    pub publish: Publish<'a>,
    /// The queue groups that receive the message, separated by blanks. One member of each group receives it.
    pub groups: &'a [u8],
}

/// The arguments of a line of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteInterest<'a> {
    /// Cluster of the leaf nodes that have the interest; empty for other interest.
    pub origin: &'a [u8],
    /// Name of the account; empty on a dedicated connection.
    pub account: &'a [u8],
    /// The filter, unchecked.
    pub filter: &'a [u8],
    /// Queue group; empty without one.
    pub queue: &'a [u8],
    /// The number of members, which may be 0; 1 without a queue group, and 0 in `RS-` and `LS-`.
    pub weight: u32,
}

const LIMITS: ParseLimits = ParseLimits {
    control_line_bytes_max: ROUTE_LINE_BYTES_MAX,
    payload_bytes_max: ROUTE_PAYLOAD_BYTES_MAX,
    headers: true,
};

/// The names of verbs, in lower case.
const NAMES: [&[u8]; 15] = [
    b"rmsg", b"hmsg", b"lmsg", b"rs+", b"rs-", b"ls+", b"ls-", b"a+", b"a-", b"ping", b"pong",
    b"connect", b"info", b"+ok", b"-err",
];

/// Parses one verb at the front of `input`. On a dedicated connection, lines do not name the account.
pub fn parse_route(input: &[u8], is_dedicated: bool) -> RouteParsed<'_> {
    if let Some((message, taken)) = usual_message(input, is_dedicated) {
        return RouteParsed::Verb(RouteVerb::Message(message), taken);
    }
    if let Some((verb, taken)) = usual_interest(input, is_dedicated) {
        return RouteParsed::Verb(verb, taken);
    }
    if !may_be_any_of(&NAMES, input) {
        return RouteParsed::Wrong(UNKNOWN);
    }
    let searched = &input[..input.len().min(ROUTE_LINE_BYTES_MAX)];
    let Some(newline) = find_newline(searched) else {
        return match input.len() < ROUTE_LINE_BYTES_MAX {
            true => RouteParsed::Partial { frame_bytes: 0 },
            false => RouteParsed::Wrong(TOO_LONG),
        };
    };
    let line_end = newline + 1;
    let line = &input[..newline];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (name, args) = first(line);
    let name = name.to_ascii_lowercase();
    if let Some(verb) = MessageVerb::of(&name) {
        return message(input, args, line_end, verb, is_dedicated);
    }
    match plain_verb(&name, args, is_dedicated) {
        Some(verb) => RouteParsed::Verb(verb, line_end),
        None if NAMES.contains(&&*name) => RouteParsed::Wrong(MALFORMED),
        None => RouteParsed::Wrong(UNKNOWN),
    }
}

/// Parses a message without queue groups and origin in the usual form. Nearly all messages have this form.
#[inline]
fn usual_message(input: &[u8], is_dedicated: bool) -> Option<(RouteMessage<'_>, usize)> {
    /// Length of `RMSG ` and of `HMSG `.
    const NAME_BYTES: usize = 5;
    let with_headers = match input.first_chunk()? {
        b"RMSG " => false,
        b"HMSG " => true,
        _ => return None,
    };
    let account_bytes = match is_dedicated {
        true => 0,
        false => input[NAME_BYTES..].iter().position(|b| *b <= b' ')?,
    };
    let account = &input[NAME_BYTES..NAME_BYTES + account_bytes];
    let mut from = NAME_BYTES;
    if !is_dedicated {
        from += account_bytes + 1;
        if account.is_empty() || input[from - 1] != b' ' {
            return None;
        }
    }
    let args = match with_headers {
        false => scan_usual(input, from)?,
        true => scan_usual_headers(input, from)?,
    };
    let (publish, taken) = args.publish(input, LIMITS)?;
    // The limit applies to the whole line.
    (publish.body.start <= ROUTE_LINE_BYTES_MAX).then_some(())?;
    let message = RouteMessage {
        origin: &[],
        account,
        publish,
        groups: &[],
    };
    Some((message, taken))
}

/// Splits the groups of a message into their names, and how often the message was passed on from group to group; see
/// [`passed_on`](super::passed_on). Only one member of each group receives a message that was passed on.
pub fn split_passed_on(groups: &[u8]) -> (&[u8], u8) {
    let (first_name, _) = first(groups);
    let (mut names, mut times) = (groups, 0_u8);
    loop {
        let (before, name) = last(names);
        let before = before.trim_ascii_end();
        if before.is_empty() || name != first_name {
            return (names, times);
        }
        (names, times) = (before, times.saturating_add(1));
    }
}

/// Parses interest without a queue group and origin in the usual form. A peer may announce millions of such lines.
fn usual_interest(input: &[u8], is_dedicated: bool) -> Option<(RouteVerb<'_>, usize)> {
    /// Length of `RS+ ` and of `RS- `.
    const NAME_BYTES: usize = 4;
    let subscribes = match input.first_chunk()? {
        b"RS+ " => true,
        b"RS- " => false,
        _ => return None,
    };
    let searched = &input[NAME_BYTES..input.len().min(ROUTE_LINE_BYTES_MAX)];
    let newline = find_newline(searched)?;
    let args = searched[..newline].strip_suffix(b"\r")?;
    let (account, filter) = match is_dedicated {
        true => (&[][..], args),
        false => {
            let blank = args.iter().position(|byte| *byte == b' ')?;
            (&args[..blank], &args[blank + 1..])
        }
    };
    // Other blanks separate arguments, too.
    let has_blank = |arg: &[u8]| arg.iter().any(|byte| *byte <= b' ');
    let is_usual = !(filter.is_empty() || has_blank(account) || has_blank(filter))
        && account.is_empty() == is_dedicated;
    let interest = RouteInterest {
        origin: &[],
        account,
        filter,
        queue: &[],
        weight: u32::from(subscribes),
    };
    let verb = match subscribes {
        true => RouteVerb::Subscribe(interest),
        false => RouteVerb::Unsubscribe(interest),
    };
    is_usual.then_some((verb, NAME_BYTES + newline + 1))
}

fn plain_verb<'a>(name: &[u8], args: &'a [u8], is_dedicated: bool) -> Option<RouteVerb<'a>> {
    Some(match name {
        b"rs+" => RouteVerb::Subscribe(interest(args, false, is_dedicated, true)?),
        b"ls+" => RouteVerb::Subscribe(interest(args, true, is_dedicated, true)?),
        b"rs-" => RouteVerb::Unsubscribe(interest(args, false, is_dedicated, false)?),
        b"ls-" => RouteVerb::Unsubscribe(interest(args, true, is_dedicated, false)?),
        b"a+" | b"a-" => RouteVerb::Account {
            account: args.trim_ascii(),
            is_wanted: name == b"a+",
        },
        b"ping" => RouteVerb::Ping,
        b"pong" => RouteVerb::Pong,
        b"connect" => RouteVerb::Connect(args.trim_ascii()),
        b"info" => RouteVerb::Info(args.trim_ascii()),
        b"+ok" => RouteVerb::Ok,
        b"-err" => RouteVerb::Error(unquoted(args)),
        _ => return None,
    })
}

/// Parses the arguments of a line of interest. Only a line that subscribes has weights.
fn interest(
    args: &[u8],
    has_origin: bool,
    is_dedicated: bool,
    has_weight: bool,
) -> Option<RouteInterest<'_>> {
    let (origin, args) = first_if(has_origin, args);
    let (account, args) = first_if(!is_dedicated, args);
    let (filter, args) = first(args);
    let (queue, args) = first(args);
    let (weight, rest) = first_if(has_weight, args);
    let is_whole = !filter.is_empty()
        && rest.is_empty()
        && (!has_weight || queue.is_empty() == weight.is_empty());
    if !is_whole {
        return None;
    }
    let weight = match (has_weight, queue) {
        (false, _) => 0,
        (true, []) => 1,
        (true, _) => u32::try_from(parse_size(weight)?).unwrap_or(u32::MAX),
    };
    Some(RouteInterest {
        origin,
        account,
        filter,
        queue,
        weight,
    })
}

/// Returns the first argument if the line has it, and the rest.
fn first_if(has_it: bool, line: &[u8]) -> (&[u8], &[u8]) {
    match has_it {
        true => first(line),
        false => (&[], line),
    }
}

/// The verbs of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageVerb {
    Rmsg,
    Hmsg,
    Lmsg,
}

impl MessageVerb {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"rmsg" => MessageVerb::Rmsg,
            b"hmsg" => MessageVerb::Hmsg,
            b"lmsg" => MessageVerb::Lmsg,
            _ => return None,
        })
    }
}

fn message<'a>(
    input: &'a [u8],
    args: &'a [u8],
    line_end: usize,
    verb: MessageVerb,
    is_dedicated: bool,
) -> RouteParsed<'a> {
    let Some(head) = head(args, verb, is_dedicated) else {
        return RouteParsed::Wrong(MALFORMED);
    };
    if head.total > ROUTE_PAYLOAD_BYTES_MAX {
        return RouteParsed::Wrong(TOO_LARGE);
    }
    let end = line_end + head.total + 2;
    if input.len() < end {
        return RouteParsed::Partial { frame_bytes: end };
    }
    if &input[end - 2..end] != b"\r\n" {
        return RouteParsed::Wrong(UNKNOWN);
    }
    let message = RouteMessage {
        origin: head.origin,
        account: head.account,
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
    RouteParsed::Verb(RouteVerb::Message(message), end)
}

/// The parsed arguments of a message.
struct Head<'a> {
    origin: &'a [u8],
    account: &'a [u8],
    subject: &'a [u8],
    reply: &'a [u8],
    groups: &'a [u8],
    header_bytes: usize,
    total: usize,
}

fn head(args: &[u8], verb: MessageVerb, is_dedicated: bool) -> Option<Head<'_>> {
    let (rest, total) = last(args);
    let total = parse_size(total)?;
    let (rest, header_bytes) = match verb {
        MessageVerb::Rmsg => (rest, 0),
        MessageVerb::Hmsg | MessageVerb::Lmsg => {
            let (rest, bytes) = last(rest);
            (rest, parse_size(bytes)?)
        }
    };
    let (origin, rest) = first_if(verb == MessageVerb::Lmsg, rest);
    let (account, rest) = first_if(!is_dedicated, rest);
    let (subject, rest) = first(rest);
    let (mark, behind) = first(rest);
    // A single argument is a reply, whatever it looks like.
    let (reply, groups) = match (mark, behind) {
        (reply, []) => (reply, &[][..]),
        (b"+", behind) => first(behind),
        (b"|", groups) => (&[][..], groups),
        _ => return None,
    };
    let is_whole = !subject.is_empty() && header_bytes <= total;
    is_whole.then_some(Head {
        origin,
        account,
        subject,
        reply,
        groups: groups.trim_ascii(),
        header_bytes,
        total,
    })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
