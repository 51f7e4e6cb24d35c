//! What lies between a session and its socket when that is not plain TCP: TLS, WebSocket, both, or
//! nothing at all on a unix socket.
//!
//! What an outbox holds is framed and encrypted where it lies, and taken off the outbox when all
//! that stands for it has been written. So slow peers are seen as they are on plain TCP.

mod dialled;
mod frames;
mod opening;
mod records;
mod socket;

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use fanline_engine::websocket::Deflater;
use fanline_engine::{CloseReason, Outbox};
use tokio::io::{AsyncRead, ReadBuf};

use super::link::Wrote;
use frames::Frames;
use records::Records;

pub(super) use dialled::open_dialled;
pub(super) use opening::{Opened, open};
pub(super) use socket::Socket;

/// Parts in one vectored write.
const PARTS_MAX: usize = 64;
/// What is read and decrypted at once.
const INCOMING_BYTES: usize = 192 * 1024;
/// What is encrypted at once: four records.
const SEALED_BYTES_MAX: usize = 64 * 1024;

/// Where all connections of a shard do what they do with bytes, one at a time.
pub(super) struct Room {
    /// Ciphertext as read.
    incoming: Box<[u8]>,
    /// What is about to be encrypted, when it lies in several places.
    plain: Vec<u8>,
    /// What was just encrypted.
    sealed: Vec<u8>,
    deflater: Deflater,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            incoming: vec![0; INCOMING_BYTES].into(),
            plain: Vec::new(),
            sealed: Vec::new(),
            deflater: Deflater::default(),
        }
    }
}

/// A room that is made when the first connection needs it.
pub(super) type SharedRoom = Rc<RefCell<Option<Box<Room>>>>;

/// Why a connection ends, said by what lies below its session.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Ended(CloseReason);

/// The reason in an error of reading.
pub(super) fn close_reason(error: &io::Error) -> CloseReason {
    let told = error.get_ref().and_then(|inner| inner.downcast_ref());
    told.map_or(CloseReason::ReadError, |Ended(reason)| *reason)
}

/// A connection below its session.
pub(super) struct Wire {
    socket: Socket,
    room: SharedRoom,
    layers: RefCell<Layers>,
}

#[derive(Default)]
struct Layers {
    /// What was read before it was known whose it is.
    early: Vec<u8>,
    records: Option<Records>,
    frames: Option<Box<Frames>>,
}

impl Wire {
    /// Writes until the outbox is empty, and what is owed to the peer besides, or the peer takes
    /// no more.
    pub(super) fn try_write_all(&self, out: &mut Outbox) -> Wrote {
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

    /// The same when the peer takes more; wakes the task then.
    pub(super) fn poll_drain(&self, context: &mut Context<'_>, out: &mut Outbox) -> Poll<Wrote> {
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

    /// Writes once. False when there is nothing to write.
    fn write_some(&self, out: &mut Outbox) -> io::Result<bool> {
        let mut layers = self.layers.borrow_mut();
        let Layers {
            records, frames, ..
        } = &mut *layers;
        let mut room = self.room.borrow_mut();
        let room = room.get_or_insert_default();
        if let Some(frames) = frames {
            frames.prepare(out, &mut room.deflater);
        }
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let count = match frames {
            Some(frames) => frames.parts(out, &mut parts),
            None => out.parts(&mut parts),
        };
        let parts = &parts[..count];
        let written = match records {
            Some(records) => records.write(&self.socket, parts, room)?,
            None if count == 0 => {
                self.socket.try_flush()?;
                return Ok(false);
            }
            None => match self.socket.try_write_vectored(parts)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => written,
            },
        };
        match frames {
            Some(frames) => frames.advance(out, written),
            None => out.advance(written),
        }
        Ok(written > 0)
    }

    /// Has the peer told why the connection ends, once all else is written.
    pub(super) fn say_goodbye(&self, reason: CloseReason) {
        if let Some(frames) = &mut self.layers.borrow_mut().frames {
            frames.say_goodbye(reason);
        }
    }

    /// Tells the peer that nothing more comes.
    pub(super) fn shut_down(&self) {
        if let Some(records) = &mut self.layers.borrow_mut().records {
            records.close(&self.socket);
        }
        self.socket.shut_down();
    }

    /// Whether something is to be written that no outbox holds.
    fn owes_answer(&self) -> bool {
        let layers = self.layers.borrow();
        let frames = layers.frames.as_ref();
        frames.is_some_and(|frames| frames.owes_answer())
            || layers.records.as_ref().is_some_and(Records::owes_answer)
    }

    fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut layers = self.layers.borrow_mut();
        let Layers {
            early,
            records,
            frames,
        } = &mut *layers;
        let mut below = |context: &mut Context<'_>, buffer: &mut ReadBuf<'_>| match records {
            Some(records) => {
                let mut room = self.room.borrow_mut();
                let room = room.get_or_insert_default();
                records.poll_read(&self.socket, &mut room.incoming, context, buffer)
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
        match frames {
            Some(frames) => frames.poll_read(&mut below, context, buffer),
            None => below(context, buffer),
        }
    }
}

/// The reading side of a connection.
pub(super) trait Input: AsyncRead + Unpin {
    /// Whether reading has left something to be written that no outbox holds.
    fn owes_answer(&self) -> bool {
        false
    }
}

impl Input for tokio::net::tcp::OwnedReadHalf {}
impl Input for tokio::io::ReadHalf<tokio::io::DuplexStream> {}

/// The reading side of a [`Wire`].
pub(super) struct WireReader(pub(super) Rc<Wire>);

impl AsyncRead for WireReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(context, buffer)
    }
}

impl Input for WireReader {
    fn owes_answer(&self) -> bool {
        self.0.owes_answer()
    }
}
