//! Reads and writes the data types of section 1.5 of the MQTT specifications.

use super::reason::Wrong;
use super::{TEXT_BYTES_MAX, VARIABLE_MAX};

/// The bytes of a packet that are not read yet. Reading never goes beyond their end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], Wrong> {
        let Some((taken, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(Wrong::malformed("the packet ends too early"));
        };
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Wrong> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Wrong> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Wrong> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads a variable byte integer (1.5.5).
    pub(super) fn variable(&mut self) -> Result<u32, Wrong> {
        match read_variable(self.rest) {
            Variable::Whole { value, bytes } => {
                // MQTT-1.5.5-1.
                if bytes != variable_bytes(value) {
                    return Err(Wrong::malformed("an integer is longer than it has to be"));
                }
                self.rest = &self.rest[bytes..];
                Ok(value)
            }
            Variable::Partial => Err(Wrong::malformed("the packet ends too early")),
            Variable::TooLong => Err(Wrong::malformed("an integer has more than four bytes")),
        }
    }

    /// Reads binary data (1.5.6).
    pub(super) fn binary(&mut self) -> Result<&'a [u8], Wrong> {
        let bytes = self.u16()?;
        self.take(usize::from(bytes))
    }

    /// Reads a UTF-8 string (1.5.4). Rust's UTF-8 excludes surrogates too (MQTT-1.5.4-1).
    pub(super) fn text(&mut self) -> Result<&'a str, Wrong> {
        let bytes = self.binary()?;
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(Wrong::malformed("a text is not UTF-8"));
        };
        // MQTT-1.5.4-2.
        if bytes.contains(&0) {
            return Err(Wrong::malformed("a text has a null character"));
        }
        Ok(text)
    }
}

/// The result of reading a variable byte integer from incomplete input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Whole { value: u32, bytes: usize },
    Partial,
    TooLong,
}

pub(super) fn read_variable(input: &[u8]) -> Variable {
    let mut value = 0;
    for (at, byte) in input.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Variable::Whole {
                value,
                bytes: at + 1,
            };
        }
    }
    match input.len() < 4 {
        true => Variable::Partial,
        false => Variable::TooLong,
    }
}

/// Returns the length of a variable byte integer in bytes.
pub(super) fn variable_bytes(value: u32) -> usize {
    match value {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        _ => 4,
    }
}

/// Encodes a variable byte integer on the stack. A value above `VARIABLE_MAX` is replaced by that maximum, so
/// callers must check the value first.
pub(super) fn write_variable(value: u32) -> ([u8; 4], usize) {
    let value = value.min(VARIABLE_MAX);
    let bytes = variable_bytes(value);
    let mut written = [0; 4];
    let mut left = value;
    for (at, byte) in written[..bytes].iter_mut().enumerate() {
        let [low, ..] = (left & 0x7F).to_le_bytes();
        left >>= 7;
        *byte = match at + 1 < bytes {
            true => low | 0x80,
            false => low,
        };
    }
    (written, bytes)
}

pub(super) fn push_variable(out: &mut Vec<u8>, value: u32) {
    let (written, bytes) = write_variable(value);
    out.extend_from_slice(&written[..bytes]);
}

/// Appends binary data or text. Truncates data that is too long, so callers must check the length first.
pub(super) fn push_binary(out: &mut Vec<u8>, data: &[u8]) {
    let data = &data[..data.len().min(TEXT_BYTES_MAX)];
    let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_integers() {
        // The limits in table 1-1.
        for (value, bytes) in [
            (0, &[0x00][..]),
            (127, &[0x7F]),
            (128, &[0x80, 0x01]),
            (16_383, &[0xFF, 0x7F]),
            (16_384, &[0x80, 0x80, 0x01]),
            (2_097_151, &[0xFF, 0xFF, 0x7F]),
            (2_097_152, &[0x80, 0x80, 0x80, 0x01]),
            (VARIABLE_MAX, &[0xFF, 0xFF, 0xFF, 0x7F]),
        ] {
            let (written, count) = write_variable(value);
            assert_eq!(&written[..count], bytes);
            assert_eq!(Reader::new(bytes).variable(), Ok(value));
            for end in 0..count {
                assert_eq!(read_variable(&bytes[..end]), Variable::Partial);
            }
        }
        assert_eq!(read_variable(&[0xFF; 4]), Variable::TooLong);
        assert!(
            Reader::new(&[0x80, 0x00]).variable().is_err(),
            "MQTT-1.5.5-1"
        );
    }

    #[test]
    fn texts() {
        let read = |bytes: &[u8]| Reader::new(bytes).text().map(str::to_owned);
        assert_eq!(read(&[0, 2, 0xC3, 0xA9]), Ok("\u{e9}".to_owned()));
        // MQTT-1.5.4-3: a byte order mark is an ordinary character.
        assert_eq!(read(&[0, 3, 0xEF, 0xBB, 0xBF]), Ok("\u{feff}".to_owned()));
        for wrong in [
            &[0, 1, 0xFF][..],
            &[0, 3, 0xED, 0xA0, 0x80],
            &[0, 1, 0],
            &[0, 2, b'a'],
            &[0],
        ] {
            assert_eq!(
                read(wrong).map_err(|w| w.reason.byte()),
                Err(0x81),
                "{wrong:?}"
            );
        }
    }
}
