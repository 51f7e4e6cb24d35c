//! Frames (RFC 6455, section 5).

/// The purpose of a frame, with the numbers of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in RFC 6455, section 11.8")]
pub enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    /// Returns the opcode with this number; `None` if it is reserved.
    pub fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    /// Returns whether frames with this opcode are control frames, not parts of a message.
    pub fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

const FINAL: u8 = 0x80;
const COMPRESSED: u8 = 0x40;

/// The head of a frame without a mask, as a server sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHead {
    bytes: [u8; 10],
    len: u8,
}

impl FrameHead {
    /// Returns the bytes of the head.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Returns the head of a message of `payload_bytes` bytes in a single frame.
pub fn frame_head(opcode: Opcode, is_compressed: bool, payload_bytes: usize) -> FrameHead {
    let mut bytes = [0; 10];
    bytes[0] = FINAL | opcode as u8;
    if is_compressed {
        bytes[0] |= COMPRESSED;
    }
    let len = match (u8::try_from(payload_bytes), u16::try_from(payload_bytes)) {
        (Ok(short @ 0..=125), _) => {
            bytes[1] = short;
            2
        }
        (_, Ok(medium)) => {
            bytes[1] = 126;
            bytes[2..4].copy_from_slice(&medium.to_be_bytes());
            4
        }
        _ => {
            bytes[1] = 127;
            bytes[2..10].copy_from_slice(&(payload_bytes as u64).to_be_bytes());
            10
        }
    };
    FrameHead { bytes, len }
}

/// Returns a control frame with a payload of at most 125 bytes, such as a pong.
pub fn control_frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut frame = frame_head(opcode, false, payload.len()).as_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

/// Converts a server's frame to a client's frame: inserts the mask, and applies it to the payload.
pub fn mask_frame(frame: &mut Vec<u8>, mask: [u8; 4]) {
    const MASKED: u8 = 0x80;
    let Some(second) = frame.get_mut(1) else {
        return;
    };
    let head_bytes = match *second {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    *second |= MASKED;
    frame.splice(head_bytes..head_bytes, mask);
    unmask(&mut frame[head_bytes + mask.len()..], mask, 0);
}

/// Applies or removes a mask. `at` is the offset of `bytes` in the payload. Processes eight bytes at once, in
/// a form that the compiler vectorizes further.
pub fn unmask(bytes: &mut [u8], mask: [u8; 4], at: usize) {
    let mut turned = mask;
    turned.rotate_left(at % 4);
    let [a, b, c, d] = turned;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        word.copy_from_slice(&(u64::from_ne_bytes(eight) ^ wide).to_ne_bytes());
    }
    for (byte, mask) in words.into_remainder().iter_mut().zip(turned.iter().cycle()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads_have_the_shortest_form() {
        let head = |bytes| frame_head(Opcode::Binary, false, bytes).as_bytes().to_vec();
        assert_eq!(head(0), [0x82, 0]);
        assert_eq!(head(125), [0x82, 125]);
        assert_eq!(head(126), [0x82, 126, 0, 126]);
        assert_eq!(head(65_535), [0x82, 126, 255, 255]);
        assert_eq!(head(65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
        let compressed = frame_head(Opcode::Binary, true, 1);
        assert_eq!(compressed.as_bytes(), [0xc2, 1]);
        assert_eq!(control_frame(Opcode::Pong, b"hi"), [0x8a, 2, b'h', b'i']);
    }

    #[test]
    fn masked_frame_is_read_by_a_server() {
        for bytes in [0, 5, 126, 70_000] {
            let payload = vec![7; bytes];
            let mut frame = frame_head(Opcode::Binary, false, bytes).as_bytes().to_vec();
            frame.extend_from_slice(&payload);
            mask_frame(&mut frame, [1, 2, 3, 4]);
            let mut unframer = super::super::Unframer::new(true, false, 100_000);
            let (mut at, mut found) = (0, Vec::new());
            while at < frame.len() {
                let (taken, event) = unframer.next(&mut frame[at..]).unwrap();
                if let super::super::Event::Data { range, .. } = event {
                    found.extend_from_slice(&frame[at..][range]);
                }
                at += taken;
            }
            assert_eq!(found, payload, "{bytes}");
        }
    }

    #[test]
    fn opcodes_round_trip() {
        for number in 0..16 {
            let opcode = Opcode::of(number);
            assert_eq!(
                opcode.is_some(),
                [0, 1, 2, 8, 9, 10].contains(&number),
                "{number}"
            );
            assert!(opcode.is_none_or(|opcode| opcode as u8 == number));
        }
    }

    proptest! {
        #[test]
        fn masking_is_byte_by_byte(
            bytes in prop::collection::vec(any::<u8>(), 0..70),
            mask in any::<[u8; 4]>(),
            at in 0usize..9,
        ) {
            let naive: Vec<u8> =
                bytes.iter().enumerate().map(|(i, byte)| byte ^ mask[(at + i) % 4]).collect();
            let mut masked = bytes;
            unmask(&mut masked, mask, at);
            prop_assert_eq!(masked, naive);
        }
    }
}
