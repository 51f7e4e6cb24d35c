//! Decompression of blocks.

use super::BLOCK_BYTES_MAX;
use super::unpack::S2Error::{self, Damaged};

/// Returns the uncompressed length of a block, and the offset of its elements.
///
/// # Errors
///
/// If the length is malformed, or too large.
pub(super) fn uncompressed_bytes(block: &[u8]) -> Result<(usize, usize), S2Error> {
    let mut length: u64 = 0;
    for (at, byte) in block.iter().take(5).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return match usize::try_from(length) {
                Ok(length) if length <= BLOCK_BYTES_MAX => Ok((length, at + 1)),
                _ => Err(S2Error::TooLarge),
            };
        }
    }
    Err(Damaged)
}

/// Decompresses a block into `out`, which must be empty.
///
/// # Errors
///
/// If the block is invalid. The contents of `out` are then meaningless, but never longer than the length that
/// the block declares.
pub(super) fn decode(block: &[u8], out: &mut Vec<u8>) -> Result<(), S2Error> {
    let (length, at) = uncompressed_bytes(block)?;
    out.reserve_exact(length);
    let mut elements = Elements {
        rest: &block[at..],
        distance: 0,
    };
    while let Some(element) = elements.next()? {
        let room = length - out.len();
        match element {
            Element::Literal(bytes) if bytes.len() <= room => out.extend_from_slice(bytes),
            Element::Copy { distance, bytes } if bytes <= room && distance <= out.len() => {
                repeat(out, distance, bytes);
            }
            _ => return Err(Damaged),
        }
    }
    match out.len() == length {
        true => Ok(()),
        false => Err(Damaged),
    }
}

/// Appends a copy of `bytes` bytes of the output. The copied range begins `distance` bytes before the end of
/// the output. It may extend into the appended bytes.
fn repeat(out: &mut Vec<u8>, distance: usize, bytes: usize) {
    let from = out.len() - distance;
    let end = out.len() + bytes;
    // The number of bytes that can be copied at once doubles each time.
    while out.len() < end {
        let part = (out.len() - from).min(end - out.len());
        out.extend_from_within(from..from + part);
    }
}

enum Element<'a> {
    Literal(&'a [u8]),
    /// A copy of earlier output. The distance is at least 1.
    Copy {
        distance: usize,
        bytes: usize,
    },
}

/// Iterator over the elements of a block.
struct Elements<'a> {
    rest: &'a [u8],
    /// Distance of the last copy; 0 before the first copy.
    distance: usize,
}

impl<'a> Elements<'a> {
    fn next(&mut self) -> Result<Option<Element<'a>>, S2Error> {
        let Some((tag, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        let high = usize::from(tag >> 2);
        let (distance, bytes) = match tag & 3 {
            0 => return self.literal(high).map(Some),
            1 => {
                let low = self.number(1)?;
                match (usize::from(tag & 0xe0) << 3) | low {
                    0 => (self.distance, self.repeated(high & 7)?),
                    distance => (distance, (high & 7) + 4),
                }
            }
            2 => (self.number(2)?, high + 1),
            _ => (self.number(4)?, high + 1),
        };
        if distance == 0 {
            return Err(Damaged);
        }
        self.distance = distance;
        Ok(Some(Element::Copy { distance, bytes }))
    }

    fn literal(&mut self, code: usize) -> Result<Element<'a>, S2Error> {
        let bytes = match code {
            60..=63 => self.number(code - 59)? + 1,
            _ => code + 1,
        };
        let (literal, rest) = self.rest.split_at_checked(bytes).ok_or(Damaged)?;
        self.rest = rest;
        Ok(Element::Literal(literal))
    }

    /// Returns the length of a copy that uses the last distance again.
    fn repeated(&mut self, code: usize) -> Result<usize, S2Error> {
        Ok(match code {
            5 => self.number(1)? + 8,
            6 => self.number(2)? + (1 << 8) + 4,
            7 => self.number(3)? + (1 << 16) + 4,
            _ => code + 4,
        })
    }

    /// Reads a little-endian number with this many bytes, at most four.
    fn number(&mut self, bytes: usize) -> Result<usize, S2Error> {
        let (number, rest) = self.rest.split_at_checked(bytes).ok_or(Damaged)?;
        self.rest = rest;
        let mut wide = [0; 4];
        wide[..bytes].copy_from_slice(number);
        usize::try_from(u32::from_le_bytes(wide)).map_err(|_| Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_decoded() {
        let long = [&b"\xf4\x2b\x01"[..], &[b'x'; 300]].concat();
        let cases: &[(&[u8], Result<String, S2Error>)] = &[
            // Literals: short, and with lengths of one to four bytes.
            (b"\x08abc", Ok("abc".into())),
            (b"\xf0\x02abc", Ok("abc".into())),
            (&long, Ok("x".repeat(300))),
            (b"\xf8\x02\x00\x00abc", Ok("abc".into())),
            (b"\xfc\x02\x00\x00\x00abc", Ok("abc".into())),
            // Copies with distances of 11 bits, two bytes, and four bytes; they may overlap.
            (b"\x08abc\x01\x03", Ok("abcabca".into())),
            (b"\x08abc\x0e\x03\x00", Ok("abcabca".into())),
            (b"\x00a\x0e\x01\x00", Ok("aaaaa".into())),
            (b"\x08abc\x0f\x03\x00\x00\x00", Ok("abcabca".into())),
            // Copies of 4, 9, and 260 bytes, with the last distance again.
            (b"\x04ab\x06\x02\x00\x01\x00", Ok("ab".repeat(4))),
            (
                b"\x04ab\x06\x02\x00\x15\x00\x01",
                Ok("ababababababa".into()),
            ),
            (b"\x00a\x02\x01\x00\x19\x00\x00\x00", Ok("a".repeat(262))),
            // A distance beyond the start, a distance of 0, and a repeated distance before the first copy.
            (b"\x00a\x01\x02", Err(Damaged)),
            (b"\x00a\x02\x00\x00", Err(Damaged)),
            (b"\x00a\x01\x00", Err(Damaged)),
            // Truncated blocks.
            (b"\x08ab", Err(Damaged)),
            (b"\x00a\x02\x01", Err(Damaged)),
        ];
        for (elements, expected) in cases {
            let length = expected.as_ref().map_or(4, String::len);
            let low = u8::try_from(length & 0x7f).unwrap();
            let head = match u8::try_from(length >> 7).unwrap() {
                0 => vec![low],
                high => vec![low | 0x80, high],
            };
            let block = [&head[..], elements].concat();
            let mut out = Vec::new();
            let found = decode(&block, &mut out).map(|()| String::from_utf8(out).unwrap());
            assert_eq!(&found, expected, "{elements:x?}");
        }
    }

    #[test]
    fn block_must_have_its_declared_length() {
        let cases: &[(&[u8], Result<(), S2Error>)] = &[
            (b"\x04\x08abc", Err(Damaged)),
            (b"\x02\x08abc", Err(Damaged)),
            (b"\x00", Ok(())),
            (b"", Err(Damaged)),
            (b"\xff\xff\xff\xff\xff\xff", Err(Damaged)),
            // 4 MiB and one byte.
            (b"\x81\x80\x80\x02\x00a", Err(S2Error::TooLarge)),
        ];
        for (block, expected) in cases {
            assert_eq!(decode(block, &mut Vec::new()), *expected, "{block:x?}");
        }
    }
}
