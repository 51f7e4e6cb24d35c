//! In-place parser of verbs. It has no state: the caller passes all bytes from the first unconsumed one on,
//! and the parser returns the number of consumed bytes.

use std::ops::Range;

use super::error::{ClientError, CloseReason};

/// Largest number of digits of a size. A longer number is refused before its value is computed.
const SIZE_DIGITS_MAX: usize = 9;

/// Length of the longest verb name.
const NAME_BYTES_MAX: usize = 7;

/// The result of parsing the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete verb with its payload, and the length of both in bytes.
    Verb(Verb<'a>, usize),
    /// An incomplete verb. If the payload's size is known, `frame_bytes` is the number of bytes that the
    /// caller needs before it calls again.
    Partial {
        /// Length of the whole frame; 0 while the line is incomplete.
        frame_bytes: usize,
    },
    /// Input that a client must not send.
    Wrong(Fault),
}

/// A protocol error: the message to the client, and the reason for the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Error sent as `-ERR`, if any.
    pub error: Option<ClientError>,
    /// Reason for the end of the connection.
    pub reason: CloseReason,
}

/// A verb of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// `PUB` or `HPUB`.
    Publish(Publish<'a>),
    /// `SUB <subject> [queue] <sid>`; `queue` may be empty.
    Subscribe {
        /// The filter, unchecked.
        filter: &'a [u8],
        /// Queue group; may be empty.
        queue: &'a [u8],
        /// Subscription id, any token.
        sid: &'a [u8],
    },
    /// `UNSUB <sid> [max]`.
    Unsubscribe {
        /// Subscription id.
        sid: &'a [u8],
        /// Total number of deliveries after which the subscription ends; `None` ends it at once.
        max: Option<u64>,
    },
    /// `CONNECT {json}`.
    Connect(&'a [u8]),
    /// `INFO {json}`, ignored.
    Info(&'a [u8]),
    /// `PING`.
    Ping,
    /// `PONG`.
    Pong,
    /// `+OK`, ignored.
    Ok,
    /// `-ERR …`: the client closes the connection.
    Error(&'a [u8]),
}

/// A published message in its received form.
///
/// In the usual form, the bytes after the subject are exactly those that a delivery has after the sid:
/// `[reply ][header_bytes ]total_bytes\r\n` and the payload. They are then forwarded unchanged. For any other
/// form, `args` is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Subject, unchecked.
    pub subject: &'a [u8],
    /// Reply subject; may be empty.
    pub reply: &'a [u8],
    /// Number of header bytes at the front of the payload; 0 without headers.
    pub header_bytes: usize,
    /// Range of the arguments after the subject, with their CRLF. Empty unless they have the usual form.
    pub args: Range<usize>,
    /// Range of headers and payload with their CRLF, directly after `args`.
    pub body: Range<usize>,
}

impl Publish<'_> {
    /// Returns the size of headers and payload in bytes.
    pub fn payload_bytes(&self) -> usize {
        self.body.len() - 2
    }
}

/// Limits that the parser enforces before the input is buffered.
#[derive(Clone, Copy, Debug)]
pub struct ParseLimits {
    /// Largest size in bytes of a line's arguments.
    pub control_line_bytes_max: usize,
    /// Largest size in bytes of headers and payload.
    pub payload_bytes_max: usize,
    /// Whether the client may send `HPUB`.
    pub headers: bool,
}

pub(in crate::codec) const UNKNOWN: Fault = Fault {
    error: Some(ClientError::UnknownOperation),
    reason: CloseReason::ProtocolViolation,
};
pub(in crate::codec) const MALFORMED: Fault = Fault {
    error: None,
    reason: CloseReason::ProtocolViolation,
};
pub(in crate::codec) const TOO_LONG: Fault = Fault {
    error: Some(ClientError::ControlLineExceeded),
    reason: CloseReason::MaximumControlLineExceeded,
};
pub(in crate::codec) const TOO_LARGE: Fault = Fault {
    error: Some(ClientError::PayloadExceeded),
    reason: CloseReason::MaximumPayloadExceeded,
};
const NO_HEADERS: Fault = Fault {
    error: None,
    reason: CloseReason::ProtocolViolation,
};

const PARTIAL: Parsed<'static> = Parsed::Partial { frame_bytes: 0 };

/// Parses one verb at the front of `input`.
#[inline]
pub fn parse(input: &[u8], limits: ParseLimits) -> Parsed<'_> {
    match parse_usual_publish(input, limits) {
        Some((publish, taken)) => Parsed::Verb(Verb::Publish(publish), taken),
        None => parse_rarer(input, limits),
    }
}

/// Parses a complete publish in the usual form, and returns it with its length. Nearly all traffic has this
/// form; [`parse`] handles all other input. A caller should try this function first, because it returns its
/// parts in registers instead of in a large enum.
#[inline(always)]
pub fn parse_usual_publish(input: &[u8], limits: ParseLimits) -> Option<(Publish<'_>, usize)> {
    // Converts the letters to lower case, and leaves the space unchanged.
    let name = u32::from_le_bytes(*input.first_chunk()?) | u32::from_le_bytes(*b"   \0");
    if name != u32::from_le_bytes(*b"pub ") {
        return None;
    }
    scan_usual(input, 4)?.publish(input, limits)
}

/// Parses all input that is not a `PUB` in the usual form. Not inlined, so that the caller's loop stays
/// small.
#[inline(never)]
fn parse_rarer(input: &[u8], limits: ParseLimits) -> Parsed<'_> {
    match input.first_chunk() {
        Some(b"PING\r\n") => return Parsed::Verb(Verb::Ping, 6),
        Some(b"PONG\r\n") => return Parsed::Verb(Verb::Pong, 6),
        _ => {}
    }
    if let Some([h, p, u, b, b' ']) = input.first_chunk()
        && (h | 0x20, p | 0x20, u | 0x20, b | 0x20) == (b'h', b'p', b'u', b'b')
        && limits.headers
        && let Some(args) = scan_usual_headers(input, 5)
        && let Some((publish, taken)) = args.publish(input, limits)
    {
        return Parsed::Verb(Verb::Publish(publish), taken);
    }
    parse_any(input, limits)
}

/// Arguments of a publish in the usual form: single spaces, CRLF, no other white space.
pub(crate) struct UsualArgs {
    from: usize,
    subject_end: usize,
    reply_end: usize,
    header_bytes: usize,
    size: usize,
    line_end: usize,
}

impl UsualArgs {
    /// Returns the publish if it is complete and within the limits.
    #[inline(always)]
    pub(crate) fn publish<'a>(
        self,
        input: &'a [u8],
        limits: ParseLimits,
    ) -> Option<(Publish<'a>, usize)> {
        let end = self.line_end + self.size + 2;
        if self.line_end - self.from - 2 > limits.control_line_bytes_max
            || self.size > limits.payload_bytes_max
            || input.get(end - 2..end)? != b"\r\n"
        {
            return None;
        }
        let reply = match self.reply_end > self.subject_end {
            true => &input[self.subject_end + 1..self.reply_end],
            false => &[],
        };
        let publish = Publish {
            subject: &input[self.from..self.subject_end],
            reply,
            header_bytes: self.header_bytes,
            args: self.subject_end + 1..self.line_end,
            body: self.line_end..end,
        };
        Some((publish, end))
    }
}

/// Scans the arguments of a `PUB`. Returns `None` if the line is incomplete or not in the usual form. The
/// general parser handles such a line.
#[inline(always)]
pub(crate) fn scan_usual(input: &[u8], from: usize) -> Option<UsualArgs> {
    let subject_end = find_blank(input, from)?;
    if subject_end == from || input[subject_end] != b' ' {
        return None;
    }
    let second = subject_end + 1;
    let mut last = second;
    let mut end = find_blank(input, second)?;
    let mut reply_end = subject_end;
    if end > second && input[end] == b' ' {
        reply_end = end;
        last = end + 1;
        end = find_blank(input, last)?;
    }
    Some(UsualArgs {
        from,
        subject_end,
        reply_end,
        header_bytes: 0,
        size: usual_size(&input[last..end])?,
        line_end: usual_line_end(input, end)?,
    })
}

/// Scans the arguments of an `HPUB`, which has one more size. One function for both `PUB` and `HPUB` would
/// make each `PUB` slower.
pub(crate) fn scan_usual_headers(input: &[u8], from: usize) -> Option<UsualArgs> {
    let token = |from: usize| {
        let end = find_blank(input, from)?;
        (end > from && input[end] == b' ').then_some(end)
    };
    let subject_end = token(from)?;
    let second = subject_end + 1;
    let second_end = token(second)?;
    let mut reply_end = subject_end;
    let mut headers = second..second_end;
    let mut end = find_blank(input, second_end + 1)?;
    if input[end] == b' ' {
        reply_end = second_end;
        headers = second_end + 1..end;
        end = find_blank(input, end + 1)?;
    }
    let size = usual_size(&input[headers.end + 1..end])?;
    let header_bytes = usual_size(&input[headers])?;
    if header_bytes == 0 || header_bytes > size {
        return None;
    }
    Some(UsualArgs {
        from,
        subject_end,
        reply_end,
        header_bytes,
        size,
        line_end: usual_line_end(input, end)?,
    })
}

#[inline(always)]
fn usual_line_end(input: &[u8], end: usize) -> Option<usize> {
    (input[end] == b'\r' && *input.get(end + 1)? == b'\n').then_some(end + 2)
}

/// Parses a size that a delivery repeats unchanged. It must not have more digits than a size that the server
/// writes.
#[inline]
fn usual_size(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > SIZE_DIGITS_MAX {
        return None;
    }
    let mut size = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        size = size * 10 + usize::from(digit - b'0');
    }
    Some(size)
}

struct PublishHead<'a> {
    subject: &'a [u8],
    reply: &'a [u8],
    header_bytes: usize,
    args: Range<usize>,
    line_end: usize,
}

impl<'a> PublishHead<'a> {
    fn with_payload(self, input: &'a [u8], size: usize, limits: ParseLimits) -> Parsed<'a> {
        if size > limits.payload_bytes_max {
            return Parsed::Wrong(TOO_LARGE);
        }
        let end = self.line_end + size + 2;
        // A wrong byte in place of CR is an error, whether or not the next byte has arrived.
        if input.get(end - 2).is_some_and(|b| *b != b'\r') {
            return Parsed::Wrong(UNKNOWN);
        }
        if input.len() < end {
            return Parsed::Partial { frame_bytes: end };
        }
        if input[end - 1] != b'\n' {
            return Parsed::Wrong(UNKNOWN);
        }
        let publish = Publish {
            subject: self.subject,
            reply: self.reply,
            header_bytes: self.header_bytes,
            args: self.args,
            body: self.line_end..end,
        };
        Parsed::Verb(Verb::Publish(publish), end)
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Returns the first control character or space at or after `from`. Searches eight bytes at a time.
#[inline]
fn find_blank(input: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = input.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        // Sets the high bit of each byte below 0x21. Bytes above the first such byte may be set wrongly, but
        // the lowest set bit is always exact.
        let found = word.wrapping_sub(ONES * 0x21) & !word & HIGHS;
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    input
        .get(at..)?
        .iter()
        .position(|b| *b < 0x21)
        .map(|i| at + i)
}

/// Returns the first line feed. Searches eight bytes at a time.
#[inline]
pub(crate) fn find_newline(input: &[u8]) -> Option<usize> {
    let (words, rest) = input.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let others = u64::from_le_bytes(*word) ^ (ONES * u64::from(b'\n'));
        // Sets the high bit of each zero byte. Bytes above the first such byte may be set wrongly, but the
        // lowest set bit is always exact.
        let found = others.wrapping_sub(ONES) & !others & HIGHS;
        if found != 0 {
            return Some(i * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let at = rest.iter().position(|b| *b == b'\n')?;
    Some(words.len() * 8 + at)
}

/// The name of a verb.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Pub,
    Hpub,
    Sub,
    Unsub,
    Connect,
    Info,
    Ping,
    Pong,
    Ok,
    Err,
}

/// Names by frequency, each with whether white space must follow the name.
const NAMES: [(&[u8], Name, bool); 10] = [
    (b"pub", Name::Pub, true),
    (b"hpub", Name::Hpub, true),
    (b"sub", Name::Sub, true),
    (b"unsub", Name::Unsub, true),
    (b"ping", Name::Ping, false),
    (b"pong", Name::Pong, false),
    (b"connect", Name::Connect, false),
    (b"info", Name::Info, false),
    (b"+ok", Name::Ok, false),
    (b"-err", Name::Err, true),
];

/// Parses any verb in any form.
fn parse_any(input: &[u8], limits: ParseLimits) -> Parsed<'_> {
    let (name, args_from) = match find_name(input) {
        Ok(Some(found)) => found,
        Ok(None) => return PARTIAL,
        Err(()) => return Parsed::Wrong(UNKNOWN),
    };
    // Blanks before the arguments do not count towards the line limit, so they have their own limit.
    // Otherwise a client could make the buffer grow without bound.
    if args_from > NAME_BYTES_MAX + limits.control_line_bytes_max {
        return Parsed::Wrong(TOO_LONG);
    }
    let searched = &input[args_from
        ..input
            .len()
            .min(args_from + limits.control_line_bytes_max + 2)];
    let Some(newline) = find_newline(searched) else {
        // A line of exactly the maximum length may be split between CR and LF.
        let line = searched.strip_suffix(b"\r").unwrap_or(searched);
        return if line.len() > limits.control_line_bytes_max {
            Parsed::Wrong(TOO_LONG)
        } else {
            PARTIAL
        };
    };
    let line_end = args_from + newline + 1;
    let line = &input[args_from..line_end - 1];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > limits.control_line_bytes_max {
        return Parsed::Wrong(TOO_LONG);
    }
    let verb = match name {
        Name::Pub | Name::Hpub => {
            return parse_publish(input, args_from, line, line_end, name == Name::Hpub, limits);
        }
        Name::Sub => parse_subscribe(line),
        Name::Unsub => parse_unsubscribe(line),
        Name::Connect => Some(Verb::Connect(line)),
        Name::Info => Some(Verb::Info(line)),
        Name::Err => Some(Verb::Error(line)),
        Name::Ping => Some(Verb::Ping),
        Name::Pong => Some(Verb::Pong),
        Name::Ok => Some(Verb::Ok),
    };
    match verb {
        Some(verb) => Parsed::Verb(verb, line_end),
        None => Parsed::Wrong(MALFORMED),
    }
}

/// Returns the verb's name and the start of its arguments. Returns `None` if more bytes are needed, and an
/// error as soon as no name matches.
fn find_name(input: &[u8]) -> Result<Option<(Name, usize)>, ()> {
    let Some(first) = input.first().map(u8::to_ascii_lowercase) else {
        return Ok(None);
    };
    for (name, found, has_args) in NAMES {
        if name[0] != first {
            continue;
        }
        let given = &input[..input.len().min(name.len())];
        if !given.eq_ignore_ascii_case(&name[..given.len()]) {
            continue;
        }
        if given.len() < name.len() {
            return Ok(None);
        }
        return match input.get(name.len()) {
            None => Ok(None),
            Some(b' ' | b'\t') => {
                let args = &input[name.len()..];
                let blanks = args
                    .iter()
                    .take_while(|b| matches!(b, b' ' | b'\t'))
                    .count();
                Ok(Some((found, name.len() + blanks)))
            }
            Some(_) if has_args => Err(()),
            Some(_) => Ok(Some((found, name.len()))),
        };
    }
    Err(())
}

/// Returns the ranges of up to five arguments. No verb has five, so a fifth argument is an error.
fn split_args(line: &[u8]) -> ([Range<usize>; 5], usize) {
    let mut args = [const { 0..0 }; 5];
    let mut count = 0;
    let mut at = 0;
    while at < line.len() && count < args.len() {
        let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r');
        at += line[at..].iter().take_while(|b| is_blank(b)).count();
        let len = line[at..].iter().take_while(|b| !is_blank(b)).count();
        if len > 0 {
            args[count] = at..at + len;
            count += 1;
            at += len;
        }
    }
    (args, count)
}

fn parse_publish<'a>(
    input: &'a [u8],
    args_from: usize,
    line: &'a [u8],
    line_end: usize,
    with_headers: bool,
    limits: ParseLimits,
) -> Parsed<'a> {
    if with_headers && !limits.headers {
        return Parsed::Wrong(NO_HEADERS);
    }
    let (args, count) = split_args(line);
    let sizes = if with_headers { 2 } else { 1 };
    if count < 1 + sizes || count > 2 + sizes {
        return Parsed::Wrong(MALFORMED);
    }
    let Some(total) = parse_size(&line[args[count - 1].clone()]) else {
        return Parsed::Wrong(MALFORMED);
    };
    let mut header_bytes = 0;
    if with_headers {
        match parse_size(&line[args[count - 2].clone()]) {
            Some(size) if size <= total => header_bytes = size,
            _ => return Parsed::Wrong(MALFORMED),
        }
    }
    let reply = if count == 2 + sizes {
        &line[args[1].clone()]
    } else {
        &[]
    };
    // Arguments in the usual form can be forwarded unchanged.
    let canonical = with_headers == (header_bytes > 0)
        && (1..count)
            .all(|i| args[i].start == args[i - 1].end + 1 && line[args[i - 1].end] == b' ')
        && args[count - 1].end == line.len()
        && line_end == args_from + line.len() + 2;
    let head = PublishHead {
        subject: &line[args[0].clone()],
        reply,
        header_bytes,
        args: if canonical {
            args_from + args[1].start..line_end
        } else {
            0..0
        },
        line_end,
    };
    head.with_payload(input, total, limits)
}

fn parse_subscribe(line: &[u8]) -> Option<Verb<'_>> {
    let (args, count) = split_args(line);
    let arg = |i: usize| &line[args[i].clone()];
    match count {
        2 => Some(Verb::Subscribe {
            filter: arg(0),
            queue: &[],
            sid: arg(1),
        }),
        3 => Some(Verb::Subscribe {
            filter: arg(0),
            queue: arg(1),
            sid: arg(2),
        }),
        _ => None,
    }
}

fn parse_unsubscribe(line: &[u8]) -> Option<Verb<'_>> {
    let (args, count) = split_args(line);
    match count {
        1 => Some(Verb::Unsubscribe {
            sid: &line[args[0].clone()],
            max: None,
        }),
        2 => {
            // As in nats-server, an invalid or too long maximum ends the subscription at once.
            let digits = &line[args[1].clone()];
            let max = parse_size(digits).filter(|_| digits.len() <= SIZE_DIGITS_MAX);
            let max = max.map(|max| max as u64);
            Some(Verb::Unsubscribe {
                sid: &line[args[0].clone()],
                max,
            })
        }
        _ => None,
    }
}

/// Parses decimal digits. If there are too many digits, returns a huge number, which the payload limit
/// refuses.
pub(crate) fn parse_size(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() > SIZE_DIGITS_MAX {
        return Some(usize::MAX >> 1);
    }
    let value = |n: usize, digit: &u8| n * 10 + usize::from(digit - b'0');
    Some(digits.iter().fold(0, value))
}

#[cfg(test)]
mod tests;
