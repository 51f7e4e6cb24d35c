//! Layers between a session and its socket if the connection is not plain TCP: TLS, compression, and
//! WebSocket. A unix socket has no layers.
//!
//! Output stays in the outbox until its framed and encrypted form is written. The limits of slow consumers
//! therefore apply as on plain TCP.

mod frames;
mod records;
mod s2_layer;
mod send_buffer;
mod socket;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use fanline_engine::codec::s2::Level;
use fanline_engine::codec::websocket::Deflater;
use fanline_engine::{CloseReason, Outbox};
use tokio::io::{AsyncRead, ReadBuf};

use crate::colocated;
pub(crate) use frames::Frames;
pub(crate) use records::Records;
pub(crate) use s2_layer::S2Layer;
use s2_layer::S2Scratch;
use send_buffer::SendBuffer;

pub(crate) use socket::{Carrier, Socket, prepare_tcp};

/// Largest number of slices in one vectored write.
const PARTS_MAX: usize = 64;
/// Size of one read in bytes before the session begins.
const READ_BYTES: usize = 4 * 1024;
/// Size of one read of ciphertext in bytes.
const INCOMING_BYTES: usize = 192 * 1024;
/// Largest number of bytes encrypted at once: four TLS records.
const ENCRYPTED_BYTES_MAX: usize = 64 * 1024;

/// Buffers that all connections of a shard use in turn.
pub(crate) struct Scratch {
    /// Ciphertext as read.
    incoming: Box<[u8]>,
    /// Plain bytes to encrypt, if they come from several slices.
    plain: Vec<u8>,
    /// Encrypted bytes.
    ciphertext: Vec<u8>,
    deflater: Deflater,
    s2: S2Scratch,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch {
            incoming: vec![0; INCOMING_BYTES].into(),
            plain: Vec::new(),
            ciphertext: Vec::new(),
            deflater: Deflater::default(),
            s2: S2Scratch::default(),
        }
    }
}

/// Buffers that are allocated when the first connection needs them.
pub(crate) type SharedScratch = Rc<RefCell<Option<Box<Scratch>>>>;

/// The read function of the layer below.
type Below<'a> = dyn FnMut(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>> + 'a;

/// An error of a layer below the session, with the reason for which the connection closes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Ended(CloseReason);

/// Returns the close reason that a read error contains.
pub(crate) fn close_reason(error: &io::Error) -> CloseReason {
    let ended = error.get_ref().and_then(|inner| inner.downcast_ref());
    ended.map_or(CloseReason::ReadError, |Ended(reason)| *reason)
}

/// The layers of one connection.
pub(crate) struct Wire {
    pub(crate) socket: Socket,
    scratch: SharedScratch,
    pub(crate) layers: RefCell<Layers>,
    /// Whether the peer is another server on this machine.
    is_colocated: bool,
}

#[derive(Default)]
pub(crate) struct Layers {
    /// Input read before the layers were complete.
    pub(crate) early: Vec<u8>,
    pub(crate) records: Option<Records>,
    pub(crate) s2: Option<Box<S2Layer>>,
    pub(crate) frames: Option<Box<Frames>>,
    /// Input of the session, read before it began.
    pub(crate) unread: Vec<u8>,
    /// Adapts the size of the send buffer. It is set only if the connection has no layers and its peer is a
    /// hub on this machine.
    pub(crate) send_buffer: Option<SendBuffer>,
}

impl Wire {
    pub(crate) fn new(socket: Socket, scratch: &SharedScratch, layers: Layers) -> Self {
        Wire {
            socket,
            scratch: Rc::clone(scratch),
            layers: layers.into(),
            is_colocated: false,
        }
    }

    /// Takes the socket, to add a layer or to pass the socket on. Leaves a closed pipe in its place.
    pub(crate) fn take_socket(&mut self) -> Socket {
        let nowhere = Socket::Pipe(RefCell::new(tokio::io::duplex(1).0));
        std::mem::replace(&mut self.socket, nowhere)
    }

    /// Writes until the outbox and all pending control bytes are written, or the socket accepts no more.
    pub(crate) fn try_write_all(&self, out: &mut Outbox) -> Wrote {
        loop {
            match self.write_some(out) {
                Ok(true) => {}
                Ok(false) => return Wrote::All,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Wrote::Blocked,
                    io::ErrorKind::Interrupted => {}
                    _ => return Wrote::Failed,
                },
            }
        }
    }

    /// Writes as much as the socket accepts. If it is full, registers the task to be woken when the socket
    /// accepts more.
    pub(crate) fn poll_drain(&self, context: &mut Context<'_>, out: &mut Outbox) -> Poll<Wrote> {
        loop {
            match self.try_write_all(out) {
                Wrote::Blocked => match ready!(self.socket.poll_write_ready(context)) {
                    Ok(()) => {}
                    Err(_) => return Poll::Ready(Wrote::Failed),
                },
                wrote => return Poll::Ready(wrote),
            }
        }
    }

    /// Writes once. Returns false when there is nothing to write.
    fn write_some(&self, out: &mut Outbox) -> io::Result<bool> {
        let mut layers = self.layers.borrow_mut();
        let Layers {
            records,
            s2,
            frames,
            send_buffer,
            ..
        } = &mut *layers;
        let mut scratch = self.scratch.borrow_mut();
        let scratch = scratch.get_or_insert_default();
        if let Some(frames) = frames {
            frames.prepare(out, &mut scratch.deflater);
        }
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let count = match frames {
            Some(frames) => frames.parts(out, &mut parts),
            None => out.parts(&mut parts),
        };
        let parts = &parts[..count];
        if let Some(send_buffer) = send_buffer {
            send_buffer.follow(parts, &self.socket);
        }
        let mut below = |parts: &[IoSlice<'_>], scratch: &mut Scratch| match records {
            Some(records) => records.write(&self.socket, parts, scratch),
            None if parts.is_empty() => self.socket.try_flush().map(|()| 0),
            None => match self.socket.try_write_vectored(parts)? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                written => Ok(written),
            },
        };
        let written = match s2 {
            Some(s2) => s2.write(parts, scratch, below)?,
            None => below(parts, scratch)?,
        };
        if self.is_colocated {
            colocated::note_moved(written);
        }
        match frames {
            Some(frames) => frames.advance(out, written),
            // The output may have been dropped from the outbox after it was compressed.
            None => out.advance(written.min(out.pending_bytes())),
        }
        Ok(written > 0)
    }

    /// Sets the compression level of future bytes. Has no effect on a connection without compression.
    pub(crate) fn set_level(&self, level: Level) {
        if let Some(s2) = &mut self.layers.borrow_mut().s2 {
            s2.set_level(level);
        }
    }

    /// Queues a close reason after all output.
    pub(crate) fn send_close(&self, reason: CloseReason) {
        if let Some(frames) = &mut self.layers.borrow_mut().frames {
            frames.queue_close(reason);
        }
    }

    /// Closes the writing direction.
    pub(crate) fn shut_down(&self) {
        if let Some(records) = &mut self.layers.borrow_mut().records {
            records.close(&self.socket);
        }
        self.socket.shut_down();
    }

    /// Records that the peer is another server.
    pub(crate) fn mark_server_link(&mut self) {
        self.is_colocated = self.socket.is_on_this_host();
    }

    /// Starts to adapt the send buffer to the traffic, for a hub on this machine.
    pub(crate) fn adapt_send_buffer(&mut self) {
        let layers = self.layers.get_mut();
        let is_plain = layers.records.is_none() && layers.s2.is_none() && layers.frames.is_none();
        layers.send_buffer = (is_plain && self.is_colocated).then(SendBuffer::new);
    }

    /// Returns whether a layer has output of its own, which is not in the outbox.
    pub(crate) fn has_pending_control(&self) -> bool {
        let layers = self.layers.borrow();
        let frames = layers.frames.as_ref();
        frames.is_some_and(|frames| frames.has_pending_control())
            || layers
                .records
                .as_ref()
                .is_some_and(Records::has_pending_control)
    }

    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut layers = self.layers.borrow_mut();
        let Layers {
            early,
            records,
            s2,
            frames,
            unread,
            ..
        } = &mut *layers;
        if !unread.is_empty() {
            let taken = unread.len().min(buffer.remaining());
            buffer.put_slice(&unread[..taken]);
            unread.drain(..taken);
            return Poll::Ready(Ok(()));
        }
        let mut below = |context: &mut Context<'_>, buffer: &mut ReadBuf<'_>| match records {
            Some(records) => {
                let mut scratch = self.scratch.borrow_mut();
                let scratch = scratch.get_or_insert_default();
                records.poll_read(&self.socket, &mut scratch.incoming, context, buffer)
            }
            None if !early.is_empty() => {
                let taken = early.len().min(buffer.remaining());
                buffer.put_slice(&early[..taken]);
                early.drain(..taken);
                Poll::Ready(Ok(()))
            }
            None => {
                let read = ready!(self.socket.poll_read(context, buffer.initialize_unfilled()))?;
                buffer.advance(read);
                Poll::Ready(Ok(()))
            }
        };
        let mut below = |context: &mut Context<'_>, buffer: &mut ReadBuf<'_>| match s2 {
            Some(s2) => {
                let mut incoming = self.with_s2_scratch(S2Scratch::lend_incoming);
                let outcome = s2.poll_read(&mut below, &mut incoming, context, buffer);
                self.with_s2_scratch(|s2| s2.take_back(incoming));
                outcome
            }
            None => below(context, buffer),
        };
        match frames {
            Some(frames) => frames.poll_read(&mut below, context, buffer),
            None => below(context, buffer),
        }
    }

    fn with_s2_scratch<T>(&self, work: impl FnOnce(&mut S2Scratch) -> T) -> T {
        work(&mut self.scratch.borrow_mut().get_or_insert_default().s2)
    }

    /// Appends input that arrives before the session begins. Returns false at the end of the stream. Cancel
    /// safe. Uses no buffer while it waits, because an anonymous peer may open ten thousand connections.
    pub(crate) async fn read_more(&self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        poll_fn(|context| {
            let mut scratch = [0; READ_BYTES];
            let mut scratch = ReadBuf::new(&mut scratch);
            ready!(self.poll_read(context, &mut scratch))?;
            bytes.extend_from_slice(scratch.filled());
            Poll::Ready(Ok(!scratch.filled().is_empty()))
        })
        .await
    }

    /// Writes bytes before the session begins.
    pub(crate) async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = Outbox::default();
        out.append(bytes);
        match poll_fn(|context| self.poll_drain(context, &mut out)).await {
            Wrote::All => Ok(()),
            Wrote::Blocked | Wrote::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Copies the first bytes of the slices into one buffer, at most `bytes_max`.
fn gather<'a>(parts: &[IoSlice<'_>], bytes_max: usize, plain: &'a mut Vec<u8>) -> &'a [u8] {
    plain.clear();
    for part in parts {
        let taken = part.len().min(bytes_max - plain.len());
        plain.extend_from_slice(&part[..taken]);
    }
    plain
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    All,
    Blocked,
    Failed,
}

/// The reading side of a connection.
pub(crate) trait Input: AsyncRead + Unpin {
    /// Returns whether a read has produced output that is not in the outbox, such as a WebSocket pong.
    fn has_pending_control(&self) -> bool {
        false
    }
}

impl Input for tokio::net::tcp::OwnedReadHalf {}
impl Input for tokio::io::ReadHalf<tokio::io::DuplexStream> {}

/// The reading side of a [`Wire`].
pub(crate) struct WireReader(pub(crate) Rc<Wire>);

impl AsyncRead for WireReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = self.0.poll_read(context, buffer);
        if self.0.is_colocated {
            colocated::note_moved(buffer.filled().len() - before);
        }
        outcome
    }
}

impl Input for WireReader {
    fn has_pending_control(&self) -> bool {
        self.0.has_pending_control()
    }
}
