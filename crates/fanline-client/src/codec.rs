//! The client's side of the NATS protocol: decodes the server's bytes, which may be split anywhere, and
//! encodes messages into a buffer.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::headers::{self, Headers};
use super::info::ServerInfo;
use super::limits::{LINE_BYTES_MAX, MESSAGE_BYTES_MAX};
use super::message::Message;

/// An operation of the server.
#[derive(Debug)]
pub(super) enum ServerOp {
    Info(Box<ServerInfo>),
    Message { sid: u64, message: Message },
    Ok,
    Error(String),
    Ping,
    Pong,
}

impl ServerOp {
    /// Returns a description of the operation in one line, for tests.
    fn describe(&self) -> String {
        match self {
            ServerOp::Info(info) => format!("info {}", info.server_name),
            ServerOp::Message { sid, message } => format!(
                "msg {sid} {} {:?} {:?} {:?} {:?}",
                message.subject(),
                message.reply(),
                message.headers().and_then(|headers| headers.get("A")),
                message.status(),
                String::from_utf8_lossy(message.payload()),
            ),
            ServerOp::Ok => "ok".into(),
            ServerOp::Error(text) => format!("err {text}"),
            ServerOp::Ping => "ping".into(),
            ServerOp::Pong => "pong".into(),
        }
    }
}

/// Decodes a server's bytes, which arrive in pieces. Returns a line for each operation, and the protocol
/// error if there was one. Used by the fuzz target.
#[doc(hidden)]
pub fn decode_all<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<String>, Option<&'static str>) {
    let (mut decoder, mut decoded) = (Decoder::default(), Vec::new());
    for piece in pieces {
        decoder.buffer.extend_from_slice(piece);
        loop {
            match decoder.next() {
                Ok(Some(op)) => decoded.push(op.describe()),
                Ok(None) => break,
                Err(error) => return (decoded, Some(error)),
            }
        }
    }
    (decoded, None)
}

/// A violation of the protocol, after which decoding cannot continue.
pub(super) type ProtocolError = &'static str;

/// A decoder of [`ServerOp`]s. Append bytes to [`Decoder::buffer`], then call [`Decoder::next`] until it
/// returns `None`.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub(super) buffer: BytesMut,
    /// Number of bytes at the start of the buffer that are known to contain no line end.
    scanned: usize,
    /// The message whose protocol line has arrived and whose payload has not.
    head: Option<Head>,
}

/// The fields of a `MSG` or `HMSG` line. The ranges are offsets from the line's first byte.
#[derive(Debug)]
struct Head {
    sid: u64,
    subject: Range<u32>,
    reply: Range<u32>,
    /// Number of bytes of the line, including its CR LF.
    line: u32,
    headers: Option<u32>,
    /// Number of header and payload bytes together.
    total: u32,
}

impl Decoder {
    /// Decodes the next operation, or returns `None` when more bytes are needed.
    pub(super) fn next(&mut self) -> Result<Option<ServerOp>, ProtocolError> {
        if let Some(head) = self.head.take() {
            return self.finish_message(head);
        }
        let Some(end) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return if self.scanned > LINE_BYTES_MAX {
                Err("a line without end")
            } else {
                Ok(None)
            };
        };
        let line_bytes = self.scanned + end + 1;
        self.scanned = 0;
        let line = self.buffer[..line_bytes].trim_ascii_end();
        let (verb, rest) = split_verb(line);
        let op = match verb {
            b"MSG" | b"HMSG" => {
                let head = parse_head(line, line_bytes, verb == b"HMSG")?;
                return self.finish_message(head);
            }
            b"PING" => ServerOp::Ping,
            b"PONG" => ServerOp::Pong,
            b"+OK" => ServerOp::Ok,
            b"-ERR" => ServerOp::Error(unquote(rest)),
            b"INFO" => {
                let info = serde_json::from_slice(rest).map_err(|_| "INFO is not JSON")?;
                ServerOp::Info(Box::new(info))
            }
            _ => return Err("an unknown verb"),
        };
        let _ = self.buffer.split_to(line_bytes);
        Ok(Some(op))
    }

    fn finish_message(&mut self, head: Head) -> Result<Option<ServerOp>, ProtocolError> {
        let end = head.line + head.total;
        let frame_bytes = end as usize + 2;
        if self.buffer.len() < frame_bytes {
            self.head = Some(head);
            return Ok(None);
        }
        let frame = self.buffer.split_to(frame_bytes).freeze();
        if !frame.ends_with(b"\r\n") {
            return Err("a payload longer than announced");
        }
        let payload_start = head.line + head.headers.unwrap_or(0);
        let (headers, status) = match head.headers {
            Some(_) => {
                let (headers, status) =
                    headers::decode(&frame[head.line as usize..payload_start as usize]);
                (Some(Box::new(headers)), status)
            }
            None => (None, None),
        };
        let Head {
            sid,
            subject,
            reply,
            ..
        } = head;
        let payload = payload_start..end;
        let mut message = Message {
            frame,
            names: None,
            subject,
            reply,
            payload,
            headers,
            status,
        };
        if std::str::from_utf8(&message.frame[..head.line as usize]).is_err() {
            make_utf8(&mut message);
        }
        Ok(Some(ServerOp::Message { sid, message }))
    }
}

fn split_verb(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line
        .iter()
        .position(|byte| is_blank(*byte))
        .unwrap_or(line.len());
    (&line[..end], line[end..].trim_ascii_start())
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Removes the single quotes around a text, such as that of `-ERR`.
fn unquote(text: &[u8]) -> String {
    let text = text.strip_prefix(b"'").unwrap_or(text);
    String::from_utf8_lossy(text.strip_suffix(b"'").unwrap_or(text)).into_owned()
}

fn parse_head(line: &[u8], line_bytes: usize, has_headers: bool) -> Result<Head, ProtocolError> {
    // At most five words: subject, sid, reply, header size, and total size.
    let mut words: [Range<u32>; 5] = [const { 0..0 }; 5];
    let mut count = 0;
    let mut at = if has_headers {
        "HMSG".len()
    } else {
        "MSG".len()
    };
    while at < line.len() {
        if is_blank(line[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < line.len() && !is_blank(line[at]) {
            at += 1;
        }
        let word = words.get_mut(count).ok_or("too many words in a MSG line")?;
        *word = offset(start)?..offset(at)?;
        count += 1;
    }
    let sizes = if has_headers { 2 } else { 1 };
    let reply = match count.checked_sub(2 + sizes) {
        Some(0) => 0..0,
        Some(1) => words[2].clone(),
        _ => return Err("a MSG line with the wrong number of words"),
    };
    let number = |range: &Range<u32>| parse_number(&line[range.start as usize..range.end as usize]);
    let sid = number(&words[1])?;
    let total = number(&words[count - 1])?;
    let headers = if has_headers {
        Some(number(&words[count - 2])?)
    } else {
        None
    };
    if headers.is_some_and(|headers| headers > total) {
        return Err("headers longer than the message");
    }
    let total = offset(total)?;
    if total as usize > MESSAGE_BYTES_MAX {
        return Err("a message larger than this client accepts");
    }
    let headers = headers.map(offset).transpose()?;
    Ok(Head {
        sid,
        subject: words[0].clone(),
        reply,
        line: offset(line_bytes)?,
        headers,
        total,
    })
}

fn offset(at: impl TryInto<u32>) -> Result<u32, ProtocolError> {
    at.try_into()
        .map_err(|_| "a message larger than this client accepts")
}

fn parse_number(digits: &[u8]) -> Result<u64, ProtocolError> {
    // A number of nineteen digits always fits into 64 bits.
    if digits.is_empty() || digits.len() > 19 {
        return Err("an invalid number");
    }
    digits.iter().try_fold(0u64, |number, digit| match digit {
        b'0'..=b'9' => Ok(number * 10 + u64::from(digit - b'0')),
        _ => Err("an invalid number"),
    })
}

/// Replaces invalid UTF-8 in subject and reply. The replacement moves all bytes after it, so the frame is
/// rebuilt. This case is rare.
fn make_utf8(message: &mut Message) {
    let text = |range: &Range<u32>| {
        String::from_utf8_lossy(&message.frame[range.start as usize..range.end as usize])
            .into_owned()
    };
    let (subject, reply) = (text(&message.subject), text(&message.reply));
    let payload = message.payload();
    let mut frame = Vec::with_capacity(subject.len() + reply.len() + payload.len());
    for part in [subject.as_bytes(), reply.as_bytes(), payload] {
        frame.extend_from_slice(part);
    }
    // A line is at most `LINE_BYTES_MAX` and grows at most threefold, so every offset fits.
    let [subject_end, reply_end, end] = [subject.len(), subject.len() + reply.len(), frame.len()]
        .map(|at| u32::try_from(at).unwrap_or(u32::MAX));
    message.frame = Bytes::from(frame);
    (message.subject, message.reply, message.payload) =
        (0..subject_end, subject_end..reply_end, reply_end..end);
}

/// Appends `PUB` or `HPUB`.
pub(super) fn encode_publish(
    out: &mut BytesMut,
    subject: &str,
    reply: Option<&str>,
    headers: Option<&Headers>,
    payload: &[u8],
) {
    let header_bytes = headers.map(Headers::encoded_bytes);
    out.reserve(subject.len() + reply.map_or(0, str::len) + payload.len() + 64);
    out.extend_from_slice(if header_bytes.is_some() {
        b"HPUB "
    } else {
        b"PUB "
    });
    for word in std::iter::once(subject).chain(reply) {
        out.extend_from_slice(word.as_bytes());
        out.put_u8(b' ');
    }
    if let Some(bytes) = header_bytes {
        encode_number(out, bytes as u64);
        out.put_u8(b' ');
    }
    encode_number(out, (header_bytes.unwrap_or(0) + payload.len()) as u64);
    out.extend_from_slice(b"\r\n");
    if let Some(headers) = headers {
        headers.encode(out);
    }
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// Appends `SUB`.
pub(super) fn encode_subscribe(out: &mut BytesMut, filter: &str, queue: Option<&str>, sid: u64) {
    out.extend_from_slice(b"SUB ");
    for word in std::iter::once(filter).chain(queue) {
        out.extend_from_slice(word.as_bytes());
        out.put_u8(b' ');
    }
    encode_number(out, sid);
    out.extend_from_slice(b"\r\n");
}

/// Appends `UNSUB`.
pub(super) fn encode_unsubscribe(out: &mut BytesMut, sid: u64, max: Option<u64>) {
    out.extend_from_slice(b"UNSUB ");
    encode_number(out, sid);
    if let Some(max) = max {
        out.put_u8(b' ');
        encode_number(out, max);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal. This is several times faster than `write!`, and every message contains at
/// least one number.
fn encode_number(out: &mut BytesMut, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(decoder: &mut Decoder, seen: &mut Vec<String>) -> Result<(), ProtocolError> {
        while let Some(op) = decoder.next()? {
            seen.push(op.describe());
        }
        Ok(())
    }

    const TALK: &[u8] = b"INFO {\"server_name\":\"s\",\"max_payload\":1} \r\n+OK\r\nPING\nPONG\r\n\
        MSG a.b 1 5\r\nhello\r\nMSG a.b 22 in.box 0\r\n\r\nMSG\ta  3 \t 4\r\n\r\n\r\n\r\n\
        HMSG h 4 18 20\r\nNATS/1.0\r\nA: 1\r\n\r\nhi\r\n\
        HMSG h 5 r 16 16\r\nNATS/1.0 503\r\n\r\n\r\n\
        MSG \xff 6 1\r\nx\r\n-ERR 'Stale Connection'\r\n-ERR bare\r\nMSG z 7 2\nok\r\n";

    const SEEN: &[&str] = &[
        "info s",
        "ok",
        "ping",
        "pong",
        "msg 1 a.b None None None \"hello\"",
        "msg 22 a.b Some(\"in.box\") None None \"\"",
        "msg 3 a None None None \"\\r\\n\\r\\n\"",
        "msg 4 h None Some(\"1\") None \"hi\"",
        "msg 5 h Some(\"r\") None Some(503) \"\"",
        "msg 6 \u{fffd} None None None \"x\"",
        "err Stale Connection",
        "err bare",
        "msg 7 z None None None \"ok\"",
    ];

    #[test]
    fn decodes_alike_for_every_split() {
        for split in 0..=TALK.len() {
            let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
            for part in [&TALK[..split], &TALK[split..]] {
                decoder.buffer.extend_from_slice(part);
                decode(&mut decoder, &mut seen).expect("valid protocol");
            }
            assert_eq!(seen, SEEN, "split at {split}");
        }
    }

    #[test]
    fn decodes_one_byte_at_a_time() {
        let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
        for byte in TALK {
            decoder.buffer.put_u8(*byte);
            decode(&mut decoder, &mut seen).expect("valid protocol");
        }
        assert_eq!(seen, SEEN);
    }

    #[test]
    fn rejects_invalid_protocol() {
        for wrong in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b"msgs a 1 1\r\n",
            b"MSG\r\n",
            b"MSG a 1\r\n",
            b"MSG a 1 2 3 4 5 6\r\n",
            b"MSG a x 1\r\n",
            b"MSG a 1 -1\r\n",
            b"MSG a 1 99999999999999999999999\r\n",
            b"MSG a 1 67108865\r\n",
            b"MSG a 1 1\r\nab\r\n",
            b"HMSG a 1 5\r\n",
            b"HMSG a 1 9 5\r\n",
            b"INFO\r\n",
            b"INFO {\r\n",
        ] {
            let mut decoder = Decoder::default();
            decoder.buffer.extend_from_slice(wrong);
            let result = decode(&mut decoder, &mut Vec::new());
            assert!(result.is_err(), "{:?}", String::from_utf8_lossy(wrong));
        }
        let mut endless = Decoder::default();
        endless
            .buffer
            .extend_from_slice(&vec![b'a'; LINE_BYTES_MAX + 1]);
        assert!(endless.next().is_err());
    }

    #[test]
    fn encodes_each_verb() {
        let mut headers = Headers::new();
        headers.append("A", "1").expect("valid");
        let mut out = BytesMut::new();
        encode_publish(&mut out, "a.b", None, None, b"hello");
        encode_publish(&mut out, "a", Some("r"), None, b"");
        encode_publish(&mut out, "a", Some("r"), Some(&headers), b"hi");
        encode_subscribe(&mut out, "a.*", None, 1);
        encode_subscribe(&mut out, "a.>", Some("q"), u64::MAX);
        encode_unsubscribe(&mut out, 10, None);
        encode_unsubscribe(&mut out, 10, Some(100));
        assert_eq!(
            out,
            "PUB a.b 5\r\nhello\r\nPUB a r 0\r\n\r\nHPUB a r 18 20\r\nNATS/1.0\r\nA: 1\r\n\r\nhi\r\n\
             SUB a.* 1\r\nSUB a.> q 18446744073709551615\r\nUNSUB 10\r\nUNSUB 10 100\r\n"
        );
    }
}
