//! The writing side of one connection.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use fanline_engine::codec::s2::Level;
use fanline_engine::{CloseReason, Outbox};
use tokio::io::{AsyncWrite, DuplexStream, WriteHalf};
use tokio::net::tcp::OwnedWriteHalf;

use crate::wire::{Wire, Wrote};

/// Largest number of slices in one vectored write.
const PARTS_MAX: usize = 64;

/// The destination of a connection's bytes.
pub(super) enum Writer {
    Tcp(OwnedWriteHalf),
    InProcess(RefCell<WriteHalf<DuplexStream>>),
    /// Any layers other than plain TCP.
    Wire(Rc<Wire>),
}

/// A connection as the rest of its shard uses it.
pub(super) struct Link {
    writer: Writer,
    /// `ip:port - cid:N`, the name in logs.
    name: String,
    /// Whether the last write was incomplete. The connection's own task writes the rest when the peer reads.
    drains: Cell<bool>,
    ended: Cell<Option<CloseReason>>,
    /// The waker of the connection's task, which writes pending output and closes the connection.
    task: RefCell<Option<Waker>>,
    /// Whether the peer accepted nothing while a publisher waited for it.
    stuck: Cell<bool>,
    written_bytes: Cell<u64>,
}

impl Link {
    pub(super) fn new(writer: Writer, name: String) -> Self {
        Link {
            writer,
            name,
            drains: Cell::new(false),
            ended: Cell::new(None),
            task: RefCell::new(None),
            stuck: Cell::new(false),
            written_bytes: Cell::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_draining(&self) -> bool {
        self.drains.get()
    }

    /// Returns the bytes written so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes.get()
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.get()
    }

    pub(super) fn set_stuck(&self, stuck: bool) {
        self.stuck.set(stuck);
    }

    /// Wakes the connection's task to write the rest when the peer reads.
    pub(super) fn request_drain(&self) {
        if !self.drains.replace(true) {
            self.wake();
        }
    }

    pub(super) fn end_drain(&self) {
        self.drains.set(false);
    }

    /// Wakes the connection's task to close the connection.
    pub(super) fn end(&self, reason: CloseReason) {
        self.ended.set(Some(reason));
        self.wake();
    }

    pub(super) fn ended(&self) -> Option<CloseReason> {
        self.ended.get()
    }

    /// Stores the waker of the connection's task.
    pub(super) fn register(&self, context: &Context<'_>) {
        let mut task = self.task.borrow_mut();
        match &mut *task {
            Some(waker) => waker.clone_from(context.waker()),
            None => *task = Some(context.waker().clone()),
        }
    }

    fn wake(&self) {
        if let Some(waker) = &*self.task.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Writes until the outbox is empty or the socket accepts no more.
    pub(super) fn try_write_all(&self, out: &mut Outbox) -> Wrote {
        if let Writer::Wire(wire) = &self.writer {
            let before = out.pending_bytes();
            let wrote = wire.try_write_all(out);
            self.count(before - out.pending_bytes());
            return wrote;
        }
        let mut context = Context::from_waker(Waker::noop());
        while !out.is_empty() {
            let written = match &self.writer {
                Writer::Tcp(half) => try_write_tcp(half, out),
                Writer::InProcess(half) => {
                    match poll_write_pipe(&mut half.borrow_mut(), &mut context, out) {
                        Poll::Ready(written) => written,
                        Poll::Pending => return Wrote::Blocked,
                    }
                }
                Writer::Wire(_) => return Wrote::All,
            };
            match self.advance(out, written) {
                Some(outcome) => return outcome,
                None => continue,
            }
        }
        Wrote::All
    }

    /// Writes as much as the socket accepts. If it is full, registers the task to be woken when the socket
    /// accepts more.
    pub(super) fn poll_drain(&self, context: &mut Context<'_>, out: &mut Outbox) -> Poll<Wrote> {
        if let Writer::Wire(wire) = &self.writer {
            let before = out.pending_bytes();
            let wrote = wire.poll_drain(context, out);
            self.count(before - out.pending_bytes());
            return wrote;
        }
        while !out.is_empty() {
            let written = match &self.writer {
                Writer::Tcp(half) => match half.as_ref().poll_write_ready(context) {
                    Poll::Ready(Ok(())) => try_write_tcp(half, out),
                    Poll::Ready(Err(error)) => Err(error),
                    Poll::Pending => return Poll::Pending,
                },
                Writer::InProcess(half) => {
                    match poll_write_pipe(&mut half.borrow_mut(), context, out) {
                        Poll::Ready(written) => written,
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Writer::Wire(_) => return Poll::Ready(Wrote::All),
            };
            match self.advance(out, written) {
                // The wake-up was spurious. The next iteration registers the task again.
                Some(Wrote::Blocked) | None => {}
                Some(outcome) => return Poll::Ready(outcome),
            }
        }
        Poll::Ready(Wrote::All)
    }

    fn advance(&self, out: &mut Outbox, written: io::Result<usize>) -> Option<Wrote> {
        match written {
            Ok(0) => Some(Wrote::Failed),
            Ok(bytes) => {
                self.count(bytes);
                out.advance(bytes);
                None
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(Wrote::Blocked),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(_) => Some(Wrote::Failed),
        }
    }

    /// Counts bytes as written.
    fn count(&self, bytes: usize) {
        if bytes > 0 {
            self.stuck.set(false);
            self.written_bytes
                .set(self.written_bytes.get() + bytes as u64);
        }
    }

    /// Sets the compression level of future bytes. Has no effect on a connection without compression.
    pub(super) fn set_level(&self, level: Level) {
        if let Writer::Wire(wire) = &self.writer {
            wire.set_level(level);
        }
    }

    /// Queues the close reason for layers that can carry one, such as WebSocket.
    pub(super) fn send_close(&self, reason: CloseReason) {
        if let Writer::Wire(wire) = &self.writer {
            wire.send_close(reason);
        }
    }

    /// Closes the writing direction.
    pub(super) fn shut_down(&self) {
        match &self.writer {
            Writer::Tcp(half) => {
                let socket = socket2::SockRef::from(half.as_ref());
                // This fails if the socket is closed already.
                let _ = socket.shutdown(std::net::Shutdown::Write);
            }
            Writer::InProcess(half) => {
                let mut context = Context::from_waker(Waker::noop());
                let _ = Pin::new(&mut *half.borrow_mut()).poll_shutdown(&mut context);
            }
            Writer::Wire(wire) => wire.shut_down(),
        }
    }
}

fn try_write_tcp(half: &OwnedWriteHalf, out: &Outbox) -> io::Result<usize> {
    if let Some(bytes) = out.plain() {
        return half.try_write(bytes);
    }
    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
    let count = out.parts(&mut parts);
    half.try_write_vectored(&parts[..count])
}

fn poll_write_pipe(
    half: &mut WriteHalf<DuplexStream>,
    context: &mut Context<'_>,
    out: &Outbox,
) -> Poll<io::Result<usize>> {
    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
    let count = out.parts(&mut parts);
    Pin::new(half).poll_write_vectored(context, &parts[..count])
}
