//! Decoder of a client's frames.

use std::borrow::Cow;
use std::ops::Range;

use super::close::may_be_sent;
use super::frame::{Opcode, unmask};

/// Largest payload of a control frame in bytes (RFC 6455, section 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;
/// Longest head of a frame in bytes.
const HEAD_BYTES_MAX: usize = 14;

/// A protocol error of the client: close code and text. If nats-server reports the same error, the text is
/// the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Wrong {
    /// The close code.
    pub code: u16,
    /// Description of the error.
    pub text: Cow<'static, str>,
}

fn wrong(text: impl Into<Cow<'static, str>>) -> Wrong {
    let text = text.into();
    Wrong { code: 1002, text }
}

/// The meaning of one decoded piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Part of a head, or a piece without an effect.
    Nothing,
    /// Part of a message, unmasked.
    Data {
        /// Range of the payload in the decoded bytes.
        range: Range<usize>,
        /// Whether the message is compressed.
        is_compressed: bool,
        /// Whether this is the end of the message.
        ends_message: bool,
    },
    /// A ping. The caller responds with a pong of the same bytes.
    Ping(Vec<u8>),
    /// A pong.
    Pong,
    /// A close frame: a code and a reason, or empty. The caller responds with a close frame of the same
    /// bytes.
    Close(Vec<u8>),
}

/// A decoder of frames that arrive in pieces.
#[derive(Debug)]
pub struct Unframer {
    is_masked: bool,
    takes_compressed: bool,
    takes_text: bool,
    message_bytes_max: u64,
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    frame: Option<Frame>,
    message: Option<Message>,
    control: Vec<u8>,
}

/// A frame whose head is complete.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    mask: [u8; 4],
    at: u64,
    len: u64,
}

/// A message whose last frame has not arrived.
#[derive(Clone, Copy, Debug)]
struct Message {
    is_compressed: bool,
    bytes: u64,
}

impl Unframer {
    /// Creates a decoder. `is_masked` says whether the client masks its frames. `message_bytes_max` limits
    /// the size of a message as received, before decompression.
    pub fn new(is_masked: bool, takes_compressed: bool, message_bytes_max: usize) -> Self {
        Unframer {
            is_masked,
            takes_compressed,
            takes_text: true,
            message_bytes_max: message_bytes_max as u64,
            head: [0; HEAD_BYTES_MAX],
            head_len: 0,
            frame: None,
            message: None,
            control: Vec::new(),
        }
    }

    /// Refuses text messages, for a protocol with binary messages only, such as MQTT (MQTT-6.0.0-1).
    #[must_use]
    pub fn binary_only(mut self) -> Self {
        self.takes_text = false;
        self
    }

    /// Decodes the next piece at the front of `bytes`. Returns the number of consumed bytes, which is at
    /// least one unless `bytes` is empty, and the meaning of the piece.
    ///
    /// # Errors
    ///
    /// If the client violates the protocol. No more frames can be decoded in that case.
    pub fn next(&mut self, bytes: &mut [u8]) -> Result<(usize, Event), Wrong> {
        let Some(frame) = self.frame else {
            return self.take_head(bytes);
        };
        let left = usize::try_from(frame.len - frame.at).unwrap_or(usize::MAX);
        let taken = left.min(bytes.len());
        if self.is_masked {
            // The mask has four bytes, so only the position modulo 4 matters.
            let at = usize::try_from(frame.at % 4).unwrap_or(0);
            unmask(&mut bytes[..taken], frame.mask, at);
        }
        let is_whole = taken == left;
        if frame.opcode.is_control() {
            self.control.extend_from_slice(&bytes[..taken]);
        }
        match is_whole {
            true => self.frame = None,
            false => {
                self.frame = Some(Frame {
                    at: frame.at + taken as u64,
                    ..frame
                });
            }
        }
        Ok((taken, self.event(frame, taken, is_whole)?))
    }

    fn event(&mut self, frame: Frame, taken: usize, is_whole: bool) -> Result<Event, Wrong> {
        if frame.opcode.is_control() {
            return match is_whole {
                true => self.control_event(frame.opcode),
                false => Ok(Event::Nothing),
            };
        }
        let ends_message = is_whole && frame.is_final;
        let is_compressed = self.message.is_some_and(|message| message.is_compressed);
        if ends_message {
            self.message = None;
        }
        Ok(Event::Data {
            range: 0..taken,
            is_compressed,
            ends_message,
        })
    }

    fn control_event(&mut self, opcode: Opcode) -> Result<Event, Wrong> {
        let payload = std::mem::take(&mut self.control);
        match opcode {
            Opcode::Ping => Ok(Event::Ping(payload)),
            Opcode::Close => check_close(&payload).map(|()| Event::Close(payload)),
            _ => Ok(Event::Pong),
        }
    }

    /// Consumes the available bytes of a head.
    fn take_head(&mut self, bytes: &[u8]) -> Result<(usize, Event), Wrong> {
        let wanted = match self.head_len {
            0 | 1 => 2,
            _ => head_bytes(self.head[1]),
        };
        let taken = (wanted - self.head_len).min(bytes.len());
        self.head[self.head_len..self.head_len + taken].copy_from_slice(&bytes[..taken]);
        self.head_len += taken;
        let is_whole = self.head_len >= 2 && self.head_len == head_bytes(self.head[1]);
        if self.head_len == 2 {
            self.check_start()?;
        }
        if !is_whole {
            return Ok((taken, Event::Nothing));
        }
        self.head_len = 0;
        let frame = self.begin_frame()?;
        if frame.len > 0 {
            self.frame = Some(frame);
            return Ok((taken, Event::Nothing));
        }
        // A frame without a payload is complete now.
        let event = self.event(frame, 0, true)?;
        Ok((taken, event))
    }

    /// Checks the first two bytes of a head.
    fn check_start(&self) -> Result<(), Wrong> {
        let [first, second, ..] = self.head;
        let is_compressed = first & 0x40 != 0;
        if first & 0x30 != 0 {
            return Err(wrong("RSV2 and RSV3 must be clear"));
        }
        if is_compressed && !self.takes_compressed {
            return Err(wrong(
                "compressed frame received without negotiated permessage-deflate",
            ));
        }
        match (second & 0x80 != 0, self.is_masked) {
            (false, true) => return Err(wrong("mask bit missing")),
            (true, false) => {
                return Err(wrong(
                    "mask bit set although unmasked frames were negotiated",
                ));
            }
            _ => {}
        }
        let opcode = opcode(first)?;
        if opcode.is_control() {
            return check_control(first, second);
        }
        if opcode == Opcode::Text && !self.takes_text {
            return Err(Wrong {
                code: 1003,
                text: "text frame received, expected a binary one".into(),
            });
        }
        let begins_message = matches!(opcode, Opcode::Text | Opcode::Binary);
        if begins_message && self.message.is_some() {
            return Err(wrong(
                "new message started before final frame for previous message was received",
            ));
        }
        if !begins_message && (self.message.is_none() || is_compressed) {
            return Err(wrong("invalid continuation frame"));
        }
        Ok(())
    }

    fn begin_frame(&mut self) -> Result<Frame, Wrong> {
        let [first, second, ..] = self.head;
        let opcode = opcode(first)?;
        let (len, after) = payload_bytes(&self.head, second & 0x7f)?;
        let mut mask = [0; 4];
        if self.is_masked {
            mask.copy_from_slice(&self.head[after..after + 4]);
        }
        if !opcode.is_control() {
            let message = self.message.get_or_insert(Message {
                is_compressed: first & 0x40 != 0,
                bytes: 0,
            });
            message.bytes = message.bytes.saturating_add(len);
            if message.bytes > self.message_bytes_max {
                return Err(Wrong {
                    code: 1009,
                    text: "the message is too large".into(),
                });
            }
        }
        Ok(Frame {
            opcode,
            is_final: first & 0x80 != 0,
            mask,
            at: 0,
            len,
        })
    }
}

fn opcode(first: u8) -> Result<Opcode, Wrong> {
    let number = first & 0x0f;
    Opcode::of(number).ok_or_else(|| wrong(format!("unknown opcode {number}")))
}

/// Checks a control frame (RFC 6455, section 5.5).
fn check_control(first: u8, second: u8) -> Result<(), Wrong> {
    if usize::from(second & 0x7f) > CONTROL_BYTES_MAX {
        return Err(wrong(format!(
            "control frame length bigger than maximum allowed of {CONTROL_BYTES_MAX} bytes"
        )));
    }
    if first & 0x80 == 0 {
        return Err(wrong("control frame does not have final bit set"));
    }
    match first & 0x40 != 0 {
        true => Err(wrong("control frame must not be compressed")),
        false => Ok(()),
    }
}

/// Returns the length in bytes of a head with this second byte.
fn head_bytes(second: u8) -> usize {
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + extended + if second & 0x80 != 0 { 4 } else { 0 }
}

/// Returns the length of the payload, and the offset of the mask in the head.
fn payload_bytes(head: &[u8; HEAD_BYTES_MAX], short: u8) -> Result<(u64, usize), Wrong> {
    let [_, _, a, b, c, d, e, f, g, h, ..] = *head;
    let not_shortest = || wrong("payload length is not in its shortest form");
    match short {
        126 => match u64::from(u16::from_be_bytes([a, b])) {
            len if len < 126 => Err(not_shortest()),
            len => Ok((len, 4)),
        },
        127 => match u64::from_be_bytes([a, b, c, d, e, f, g, h]) {
            len if len >> 63 != 0 => Err(wrong("invalid 64-bit payload length")),
            len if len <= u64::from(u16::MAX) => Err(not_shortest()),
            len => Ok((len, 10)),
        },
        short => Ok((u64::from(short), 2)),
    }
}

fn check_close(payload: &[u8]) -> Result<(), Wrong> {
    let [high, low, reason @ ..] = payload else {
        return match payload {
            [] => Ok(()),
            _ => Err(wrong("close frame payload cannot be 1 byte")),
        };
    };
    let code = u16::from_be_bytes([*high, *low]);
    if !may_be_sent(code) {
        return Err(wrong(format!("invalid close status code {code}")));
    }
    if std::str::from_utf8(reason).is_err() {
        return Err(Wrong {
            code: 1007,
            text: "invalid utf8 body in close frame".into(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASK: [u8; 4] = [1, 2, 3, 4];

    /// Returns a frame in the form that a client sends.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            len @ 0..=125 => bytes.push(0x80 | u8::try_from(len).unwrap()),
            len @ 126..=65_535 => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&u16::try_from(len).unwrap().to_be_bytes());
            }
            len => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&MASK);
        let from = bytes.len();
        bytes.extend_from_slice(payload);
        unmask(&mut bytes[from..], MASK, 0);
        bytes
    }

    /// Returns the events of some bytes, with the data of each message joined.
    fn read(unframer: &mut Unframer, bytes: &[u8], step: usize) -> Result<Vec<Event>, Wrong> {
        let mut events = Vec::new();
        for part in bytes.chunks(step) {
            let mut part = part.to_vec();
            let mut at = 0;
            while at < part.len() {
                let (taken, event) = unframer.next(&mut part[at..])?;
                assert!(taken > 0);
                match event {
                    Event::Nothing => {}
                    Event::Data { range, .. } => {
                        let data = part[at..][range].to_vec();
                        match events.last_mut() {
                            Some(Event::Ping(last)) if last.first() == Some(&b'=') => {
                                last.extend(data);
                            }
                            _ if data.is_empty() => {}
                            // A ping with this prefix represents data in the result.
                            _ => events.push(Event::Ping([b"=".to_vec(), data].concat())),
                        }
                    }
                    event => events.push(event),
                }
                at += taken;
            }
        }
        Ok(events)
    }

    fn data(text: &[u8]) -> Event {
        Event::Ping([b"=", text].concat())
    }

    #[test]
    fn frames_are_decoded_from_any_pieces() {
        let bytes = [
            frame(0x82, b"hello "),
            frame(0x01, b"wor"),
            frame(0x89, b"are you there"),
            frame(0x80, b"ld"),
            frame(0x8a, b""),
            frame(0x82, &[7; 70_000]),
            frame(0x88, b"\x03\xe8bye"),
        ]
        .concat();
        for step in [1, 2, 3, 7, 1000, bytes.len()] {
            let events = read(&mut Unframer::new(true, false, 1 << 20), &bytes, step);
            let expected = vec![
                data(b"hello wor"),
                Event::Ping(b"are you there".to_vec()),
                data(b"ld"),
                Event::Pong,
                data(&[7; 70_000]),
                Event::Close(b"\x03\xe8bye".to_vec()),
            ];
            assert_eq!(events, Ok(expected), "{step}");
        }
    }

    #[test]
    fn errors_have_code_and_text() {
        let cases: &[(&[u8], u16)] = &[
            (&frame(0x83, b""), 1002),
            (&frame(0x8b, b""), 1002),
            (&frame(0xa2, b""), 1002),
            (&frame(0x92, b""), 1002),
            (&frame(0xc2, b""), 1002),
            (&frame(0x09, b""), 1002),
            (&frame(0x89, &[0; 126]), 1002),
            (&frame(0x80, b"x"), 1002),
            (&[0x82, 0x01, b'x'], 1002),
            (&[0x82, 0xfe, 0, 125, 0, 0, 0, 0], 1002),
            (&[0x82, 0xff, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0], 1002),
            (&[0x82, 0xff, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1002),
            (&frame(0x88, b"x"), 1002),
            (&frame(0x88, b"\x03\xed"), 1002),
            (&frame(0x88, b"\x03\xe8\xff"), 1007),
            (&frame(0x82, &[0; 1001]), 1009),
            (&[frame(0x02, b"x"), frame(0x82, b"x")].concat(), 1002),
            (
                &[frame(0x02, &[0; 900]), frame(0x80, &[0; 101])].concat(),
                1009,
            ),
        ];
        for (bytes, code) in cases {
            let error = read(&mut Unframer::new(true, false, 1000), bytes, bytes.len());
            assert_eq!(error.map_err(|wrong| wrong.code), Err(*code), "{bytes:?}");
        }
    }

    #[test]
    fn text_is_refused_in_binary_mode() {
        let text = frame(0x81, b"x");
        let mut unframer = Unframer::new(true, false, 1000).binary_only();
        let error = read(&mut unframer, &text, text.len());
        assert_eq!(error.map_err(|wrong| wrong.code), Err(1003));
        let mut unframer = Unframer::new(true, false, 1000).binary_only();
        assert!(read(&mut unframer, &frame(0x82, b"x"), 7).is_ok());
    }

    #[test]
    fn unmasked_frames_need_negotiation() {
        let plain = b"\x82\x02hi";
        let events = read(&mut Unframer::new(false, false, 1000), plain, 1);
        assert_eq!(events, Ok(vec![data(b"hi")]));
        let masked = frame(0x82, b"hi");
        assert!(read(&mut Unframer::new(false, false, 1000), &masked, 1).is_err());
    }

    #[test]
    fn compression_applies_to_the_whole_message() {
        let mut unframer = Unframer::new(true, true, 1000);
        let mut bytes = [frame(0x42, b"ab"), frame(0x80, b"c"), frame(0x82, b"d")].concat();
        let mut seen = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (taken, event) = unframer.next(&mut bytes[at..]).unwrap();
            at += taken;
            if let Event::Data {
                is_compressed,
                ends_message,
                ..
            } = event
            {
                seen.push((is_compressed, ends_message));
            }
        }
        assert_eq!(seen, [(true, false), (true, true), (false, true)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), step in 1usize..9) {
            let _ = read(&mut Unframer::new(true, true, 1000), &bytes, step);
        }
    }
}
