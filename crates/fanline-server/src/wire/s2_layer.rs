//! The S2 stream that a link's bytes are packed into when both sides have agreed on it. It lies right above the
//! socket or its TLS: where there are frames of WebSocket, they are in it.

use std::io::{self, IoSlice};
use std::mem;
use std::task::{Context, Poll, ready};

use fanline_engine::CloseReason;
use fanline_engine::codec::s2::{Level, PACKED_BYTES_MAX, Packer, STREAM_HEAD, Unpacker};
use tokio::io::ReadBuf;

use super::{Below, Ended, Scratch, gather};

/// What is read at once.
const INCOMING_BYTES: usize = 64 * 1024;

/// What all links of a shard pack and unpack in.
#[derive(Default)]
pub(crate) struct S2Scratch {
    packer: Packer,
    incoming: Vec<u8>,
}

/// One link's streams.
pub(crate) struct S2Layer {
    level: Level,
    unpacker: Unpacker,
    /// What was packed and is not written yet.
    outgoing: Vec<u8>,
    at: usize,
    /// How much of what is to be written that stands for.
    covers: usize,
}

impl S2Layer {
    pub(crate) fn new(level: Level) -> Self {
        S2Layer {
            level,
            unpacker: Unpacker::default(),
            outgoing: STREAM_HEAD.to_vec(),
            at: 0,
            covers: 0,
        }
    }

    /// Sets the level of compression from now on.
    pub(crate) fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    /// Takes what has come of the stream already.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.unpacker.push(bytes);
    }

    /// Packs and writes from the front of `parts`; `below` writes some of what it gets. Returns how much of
    /// them is written, nothing when there are none.
    pub(crate) fn write(
        &mut self,
        parts: &[IoSlice<'_>],
        scratch: &mut Scratch,
        mut below: impl FnMut(&[IoSlice<'_>], &mut Scratch) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            // What begins the stream waits for something to follow.
            while self.covers > 0 && self.at < self.outgoing.len() {
                self.at += below(&[IoSlice::new(&self.outgoing[self.at..])], scratch)?;
            }
            let covered = mem::take(&mut self.covers);
            if covered > 0 {
                self.outgoing.clear();
                self.at = 0;
                return Ok(covered);
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
        self.covers = bytes.len();
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
    /// Lends the room that is read into, which is made when the first link needs it.
    pub(crate) fn lend_incoming(&mut self) -> Vec<u8> {
        let mut incoming = mem::take(&mut self.incoming);
        incoming.resize(INCOMING_BYTES, 0);
        incoming
    }

    pub(crate) fn take_back(&mut self, incoming: Vec<u8>) {
        self.incoming = incoming;
    }
}
