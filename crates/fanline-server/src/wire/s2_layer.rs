//! S2 compression of a leaf connection. The layer is above the socket or TLS, and below WebSocket frames.

use std::io::{self, IoSlice};
use std::mem;
use std::task::{Context, Poll, ready};

use fanline_engine::CloseReason;
use fanline_engine::codec::s2::{Level, PACKED_BYTES_MAX, Packer, STREAM_HEAD, Unpacker};
use tokio::io::ReadBuf;

use super::{Below, Ended, Scratch, gather};

/// Size of one read in bytes.
const INCOMING_BYTES: usize = 64 * 1024;

/// Buffers of all compressed connections of a shard.
#[derive(Default)]
pub(crate) struct S2Scratch {
    packer: Packer,
    incoming: Vec<u8>,
}

/// The compressed streams of one connection.
pub(crate) struct S2Layer {
    level: Level,
    unpacker: Unpacker,
    /// Compressed bytes that are not written yet.
    outgoing: Vec<u8>,
    at: usize,
    /// Number of plain bytes whose compressed form is in `outgoing`.
    plain_bytes: usize,
}

impl S2Layer {
    pub(crate) fn new(level: Level) -> Self {
        S2Layer {
            level,
            unpacker: Unpacker::default(),
            outgoing: STREAM_HEAD.to_vec(),
            at: 0,
            plain_bytes: 0,
        }
    }

    /// Sets the compression level of future bytes.
    pub(crate) fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    /// Adds compressed input that was already read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.unpacker.push(bytes);
    }

    /// Compresses and writes bytes from the front of `parts`. `below` writes to the layer below, and returns
    /// the number of bytes written. Returns the number of bytes of `parts` that are written.
    pub(crate) fn write(
        &mut self,
        parts: &[IoSlice<'_>],
        scratch: &mut Scratch,
        mut below: impl FnMut(&[IoSlice<'_>], &mut Scratch) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            // The stream header is not written before the first data.
            while self.plain_bytes > 0 && self.at < self.outgoing.len() {
                self.at += below(&[IoSlice::new(&self.outgoing[self.at..])], scratch)?;
            }
            let plain_bytes = mem::take(&mut self.plain_bytes);
            if plain_bytes > 0 {
                self.outgoing.clear();
                self.at = 0;
                return Ok(plain_bytes);
            }
            match parts {
                [] => {
                    below(&[], scratch)?;
                    return Ok(0);
                }
                [one] => self.pack(&one[..one.len().min(PACKED_BYTES_MAX)], scratch),
                several => {
                    let mut plain = mem::take(&mut scratch.plain);
                    self.pack(gather(several, PACKED_BYTES_MAX, &mut plain), scratch);
                    scratch.plain = plain;
                }
            }
        }
    }

    fn pack(&mut self, bytes: &[u8], scratch: &mut Scratch) {
        let packer = &mut scratch.s2.packer;
        packer.pack(self.level, bytes, &mut self.outgoing);
        self.plain_bytes = bytes.len();
    }

    pub(crate) fn poll_read(
        &mut self,
        below: &mut Below<'_>,
        incoming: &mut [u8],
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let read = self.unpacker.read(buffer.initialize_unfilled());
            let broken = |_| io::Error::other(Ended(CloseReason::ProtocolViolation));
            let read = read.map_err(broken)?;
            if read > 0 {
                buffer.advance(read);
                return Poll::Ready(Ok(()));
            }
            let mut scratch = ReadBuf::new(incoming);
            ready!(below(context, &mut scratch))?;
            if scratch.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.unpacker.push(scratch.filled());
        }
    }
}

impl S2Scratch {
    /// Lends the read buffer, which is allocated for the first connection.
    pub(crate) fn lend_incoming(&mut self) -> Vec<u8> {
        let mut incoming = mem::take(&mut self.incoming);
        incoming.resize(INCOMING_BYTES, 0);
        incoming
    }

    pub(crate) fn take_back(&mut self, incoming: Vec<u8>) {
        self.incoming = incoming;
    }
}
