//! Decompression of a stream that arrives in pieces, one block at a time.

use super::decode::{decode, uncompressed_bytes};
use super::{
    BLOCK_BYTES_MAX, CHECKSUM_BYTES, COMPRESSED, HEAD_BYTES, SKIPPABLE, SNAPPY_HEAD, STREAM,
    STREAM_HEAD, UNCOMPRESSED, masked_checksum,
};

/// Largest accepted chunk in bytes: the longest possible result of compressing one block.
const CHUNK_BYTES_MAX: usize = BLOCK_BYTES_MAX + BLOCK_BYTES_MAX / 6 + 64;
/// Capacity above which empty buffers are released.
const ROOM_BYTES_KEPT: usize = 64 * 1024;

/// The reason why a stream cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum S2Error {
    /// The stream does not begin with a head, or it contains a chunk of an unknown kind.
    #[error("the data is not an S2 stream")]
    Unknown,
    /// A block does not match its checksum or its length.
    #[error("the S2 stream is damaged")]
    Damaged,
    /// A block is larger than [`BLOCK_BYTES_MAX`].
    #[error("a block of the S2 stream is larger than 4 MiB")]
    TooLarge,
}

/// A stream decompressor. It holds at most one compressed chunk with the rest of the piece in which the chunk
/// ends, and one decompressed block. A block is decompressed only after the previous block was read.
#[derive(Debug, Default)]
pub struct Unpacker {
    input: Vec<u8>,
    at: usize,
    /// Remaining bytes of a skipped chunk.
    skipped: usize,
    block: Vec<u8>,
    block_at: usize,
    has_begun: bool,
}

impl Unpacker {
    /// Adds the next piece. Before this call, the caller should [read](Unpacker::read) all earlier output.
    pub fn push(&mut self, piece: &[u8]) {
        self.input.drain(..self.at);
        self.at = 0;
        self.input.extend_from_slice(piece);
    }

    /// Writes decompressed bytes to `room`. Returns their number; 0 means that more input is needed.
    ///
    /// # Errors
    ///
    /// If the stream is invalid. No more bytes can be read in that case.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize, S2Error> {
        while self.block_at == self.block.len() {
            if !self.next_chunk()? {
                self.release_buffers();
                return Ok(0);
            }
        }
        let waiting = &self.block[self.block_at..];
        let read = waiting.len().min(room.len());
        room[..read].copy_from_slice(&waiting[..read]);
        self.block_at += read;
        Ok(read)
    }

    /// Returns whether the decompressor holds no input and no output.
    pub fn is_between_chunks(&self) -> bool {
        self.at == self.input.len() && self.skipped == 0 && self.block_at == self.block.len()
    }

    /// Decodes the next chunk, if it is complete.
    fn next_chunk(&mut self) -> Result<bool, S2Error> {
        let passed = self.skipped.min(self.input.len() - self.at);
        self.skipped -= passed;
        self.at += passed;
        let rest = &self.input[self.at..];
        let Some((&[kind, a, b, c], rest)) = rest.split_first_chunk::<HEAD_BYTES>() else {
            return Ok(false);
        };
        let length = usize::try_from(u32::from_le_bytes([a, b, c, 0])).unwrap_or(usize::MAX);
        let is_of_data = matches!(kind, COMPRESSED | UNCOMPRESSED);
        if !is_of_data && kind < SKIPPABLE || (!self.has_begun && kind != STREAM) {
            return Err(S2Error::Unknown);
        }
        if !is_of_data && kind != STREAM {
            self.at += HEAD_BYTES;
            self.skipped = length;
            return Ok(true);
        }
        if kind == STREAM && length != STREAM_HEAD.len() - HEAD_BYTES {
            return Err(S2Error::Unknown);
        }
        if length > CHUNK_BYTES_MAX {
            return Err(S2Error::TooLarge);
        }
        let Some(body) = rest.get(..length) else {
            return check_beginning(kind, rest).map(|()| false);
        };
        self.at += HEAD_BYTES + length;
        self.block.clear();
        self.block_at = 0;
        if kind == STREAM {
            self.has_begun = true;
            let known = [STREAM_HEAD, SNAPPY_HEAD];
            let is_known = known.iter().any(|head| &head[HEAD_BYTES..] == body);
            return is_known.then_some(true).ok_or(S2Error::Unknown);
        }
        let (checksum, body) = body.split_first_chunk().ok_or(S2Error::Damaged)?;
        match kind {
            COMPRESSED => decode(body, &mut self.block)?,
            _ if body.len() > BLOCK_BYTES_MAX => return Err(S2Error::TooLarge),
            _ => self.block.extend_from_slice(body),
        }
        match masked_checksum(&self.block) == u32::from_le_bytes(*checksum) {
            true => Ok(true),
            false => Err(S2Error::Damaged),
        }
    }

    /// Releases large buffers between two messages.
    fn release_buffers(&mut self) {
        if self.block.capacity() > ROOM_BYTES_KEPT {
            self.block = Vec::new();
            self.block_at = 0;
        }
        if self.at == self.input.len() && self.input.capacity() > ROOM_BYTES_KEPT {
            self.input = Vec::new();
            self.at = 0;
        }
    }
}

/// Checks the start of an incomplete chunk. This refuses a block that is too large before all of the block
/// has arrived.
fn check_beginning(kind: u8, rest: &[u8]) -> Result<(), S2Error> {
    match rest.get(CHECKSUM_BYTES..) {
        Some(block) if kind == COMPRESSED => match uncompressed_bytes(block) {
            Err(S2Error::TooLarge) => Err(S2Error::TooLarge),
            // The rest of the block may still arrive.
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(stream: &[u8]) -> Result<Vec<u8>, S2Error> {
        let mut unpacker = Unpacker::default();
        unpacker.push(stream);
        let (mut found, mut room) = (Vec::new(), [0; 100]);
        loop {
            match unpacker.read(&mut room)? {
                0 => return Ok(found),
                read => found.extend_from_slice(&room[..read]),
            }
        }
    }

    #[test]
    fn stream_of_nats_server_is_decompressed() {
        // The first bytes of a recorded leaf connection.
        let stream = b"\xff\x06\x00\x00S2sTwO\x00g\x00\x00\xfc\x93\x14G\x9b\x01\\LS+ $SYS.REQ.USER.INFO\r\n\
            2\x18\x00DACCOUNT.PING.CONNZn!\x00\x0cSTAT\x15\x00\x08\x14SERVERFA\x00lLDS.bocA3kYGm5O5UuKSjnmNFe\r\n\
            \xff\x06\x00\x00S2sTwO\x01\n\x00\x00\xf5o\x1b\xe4PONG\r\n";
        let found = read_all(stream).map(|bytes| String::from_utf8(bytes).unwrap());
        let expected = "LS+ $SYS.REQ.USER.INFO\r\nLS+ $SYS.REQ.ACCOUNT.PING.CONNZ\r\n\
            LS+ $SYS.REQ.ACCOUNT.PING.STATZ\r\nLS+ $SYS.REQ.SERVER.PING.CONNZ\r\n\
            LS+ $LDS.bocA3kYGm5O5UuKSjnmNFe\r\nPONG\r\n";
        assert_eq!(found.as_deref(), Ok(expected));
    }

    #[test]
    fn chunks_are_decoded() {
        let pong = &b"\x01\n\x00\x00\xf5o\x1b\xe4PONG\r\n"[..];
        let check = |chunks: &[&[u8]], expected: Result<&[u8], S2Error>| {
            let found = read_all(&chunks.concat());
            assert_eq!(found.as_deref(), expected.as_deref(), "{chunks:x?}");
        };
        check(
            &[SNAPPY_HEAD, pong, STREAM_HEAD, pong],
            Ok(b"PONG\r\nPONG\r\n"),
        );
        // Padding, and an unknown kind that may be skipped.
        check(
            &[STREAM_HEAD, b"\xfe\x03\x00\x00abc", pong],
            Ok(b"PONG\r\n"),
        );
        check(
            &[STREAM_HEAD, b"\x99\x01\x00\x00a\x80\x00\x00\x00", pong],
            Ok(b"PONG\r\n"),
        );
        check(&[STREAM_HEAD, b"\x7f\x00\x00\x00"], Err(S2Error::Unknown));
        check(&[pong], Err(S2Error::Unknown));
        check(&[b"CONNECT {}\r\n"], Err(S2Error::Unknown));
        check(&[b"\xff\x06\x00\x00zZzZzZ"], Err(S2Error::Unknown));
        check(
            &[STREAM_HEAD, b"\x01\n\x00\x00\xf5o\x1b\xe5PONG\r\n"],
            Err(S2Error::Damaged),
        );
        check(&[STREAM_HEAD, b"\x01\x02\x00\x00ab"], Err(S2Error::Damaged));
        // A chunk of 16 MB is refused before its contents arrive.
        check(&[STREAM_HEAD, b"\x00\xff\xff\xff"], Err(S2Error::TooLarge));
        check(
            &[
                STREAM_HEAD,
                b"\x00\x20\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f",
            ],
            Err(S2Error::TooLarge),
        );
    }

    #[test]
    fn decompression_bombs_expand_one_block_at_a_time() {
        // 30 bytes that decompress to 4 MB, repeated a thousand times.
        let mut block = vec![0x80, 0x80, 0x80, 0x02, 0x00, b'a', 0x02, 0x01, 0x00];
        let left = u32::try_from(BLOCK_BYTES_MAX - 2 - 65_540).unwrap();
        block.push((7 << 2) | 1);
        block.push(0);
        block.extend_from_slice(&left.to_le_bytes()[..3]);
        let mut bytes = Vec::new();
        decode(&block, &mut bytes).unwrap();
        assert_eq!(bytes.len(), BLOCK_BYTES_MAX);
        let mut stream = STREAM_HEAD.to_vec();
        super::super::write_chunk(COMPRESSED, &bytes, &block, &mut stream);
        let chunk = stream[STREAM_HEAD.len()..].to_vec();
        for _ in 1..1000 {
            stream.extend_from_slice(&chunk);
        }
        let mut unpacker = Unpacker::default();
        unpacker.push(&stream);
        let mut room = [0; 1000];
        for _ in 0..10 {
            assert_eq!(unpacker.read(&mut room), Ok(1000));
        }
        assert!(unpacker.block.capacity() <= BLOCK_BYTES_MAX && !unpacker.is_between_chunks());
    }
}
