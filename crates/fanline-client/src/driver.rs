//! The task of a connection. At each wake-up it reads, delivers messages, and writes the buffer.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::codec::{Decoder, ServerOp};
use super::error::Disconnect;
use super::limits::{
    PING_INTERVAL, PINGS_OUT_MAX, READ_BYTES, READS_PER_POLL_MAX, WRITE_BUFFER_BYTES_MAX,
};
use super::shared::{Event, Shared, Wakeup};

pub(super) struct Driver<S> {
    stream: S,
    decoder: Decoder,
    shared: Arc<Shared>,
    /// Bytes that the task is writing. Meanwhile, callers append new bytes to the shared buffer.
    writing: BytesMut,
    /// Receivers to notify after a batch, when no lock is held.
    wakeups: Vec<Wakeup>,
    keep_alive: Interval,
    pings_out: u32,
    /// The text of the last `-ERR`, if the server has sent no other operation after it. If the server now
    /// closes the connection, this text is the reason.
    error_last: Option<String>,
    needs_flush: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    pub(super) fn new(stream: S, decoder: Decoder, shared: Arc<Shared>) -> Self {
        let mut keep_alive = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Driver {
            stream,
            decoder,
            shared,
            writing: BytesMut::new(),
            wakeups: Vec::new(),
            keep_alive,
            pings_out: 0,
            error_last: None,
            needs_flush: false,
        }
    }

    /// Runs until the connection ends, then notifies all waiters.
    pub(super) async fn run(mut self) {
        // First deliver messages that arrived in the same read as the end of the handshake.
        let result = match self.deliver_all() {
            Ok(()) => std::future::poll_fn(|context| self.poll(context)).await,
            Err(reason) => Err(reason),
        };
        let reason = result.err().unwrap_or(Disconnect::Closed);
        self.shared.close(reason);
    }

    /// Reads and writes. Returns `Pending` while the connection is open, `Ok` when this side has closed it,
    /// and an error when it ended for another reason.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        while self.keep_alive.poll_tick(context).is_ready() {
            self.ping()?;
        }
        if let Err(reason) = self.poll_read(context) {
            return Poll::Ready(Err(reason));
        }
        self.poll_write(context)
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<(), Disconnect> {
        for _ in 0..READS_PER_POLL_MAX {
            self.decoder.buffer.reserve(READ_BYTES);
            let read = pin!(self.stream.read_buf(&mut self.decoder.buffer)).poll(context);
            match read {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(self.ended(Disconnect::ServerClosed)),
                Poll::Ready(Ok(_)) => self.deliver_all()?,
                Poll::Ready(Err(error)) => return Err(self.ended(error.into())),
            }
        }
        // More bytes may be available, so run again after other tasks have run.
        context.waker().wake_by_ref();
        Ok(())
    }

    fn ended(&mut self, reason: Disconnect) -> Disconnect {
        match (reason, self.error_last.take()) {
            (Disconnect::ServerClosed, Some(text)) => Disconnect::ServerError(text),
            (reason, _) => reason,
        }
    }

    /// Delivers every complete message. All messages of one read are delivered under one lock.
    fn deliver_all(&mut self) -> Result<(), Disconnect> {
        let Driver {
            decoder,
            shared,
            wakeups,
            ..
        } = self;
        let mut others = Vec::new();
        let outcome = shared.with_routes(|routes| {
            loop {
                match decoder.next().map_err(Disconnect::Protocol)? {
                    Some(ServerOp::Message { sid, message }) => {
                        wakeups.extend(routes.deliver(sid, message));
                    }
                    // A flush ensures that messages sent before its PONG are delivered. So handle other
                    // operations only after the messages of this read are delivered.
                    Some(other) => others.push(other),
                    None => return Ok(()),
                }
            }
        });
        for wakeup in wakeups.drain(..) {
            match wakeup {
                Wakeup::Subscriber(waker) => waker.wake(),
                // The requester may have given up in the meantime.
                Wakeup::Requester(sender, message) => drop(sender.send(message)),
            }
        }
        for op in others {
            self.handle(op);
        }
        outcome
    }

    fn handle(&mut self, op: ServerOp) {
        self.error_last = None;
        match op {
            ServerOp::Ping => self.shared.with_outgoing(|outgoing| {
                // A server that sends PINGs but does not read gets no PONG, so that the buffer stays bounded.
                if outgoing.buffer.len() < WRITE_BUFFER_BYTES_MAX {
                    outgoing.buffer.extend_from_slice(b"PONG\r\n");
                }
            }),
            ServerOp::Pong => {
                self.pings_out = 0;
                let waiter = self
                    .shared
                    .with_outgoing(|outgoing| outgoing.pongs.pop_front());
                if let Some(Some(waiter)) = waiter {
                    // The flush may have been cancelled in the meantime.
                    let _ = waiter.send(());
                }
            }
            ServerOp::Info(info) => self.shared.set_info(*info),
            ServerOp::Error(text) => {
                let _ = self.shared.events.send(Event::ServerError(text.clone()));
                self.error_last = Some(text);
            }
            ServerOp::Ok | ServerOp::Message { .. } => {}
        }
    }

    fn ping(&mut self) -> Result<(), Disconnect> {
        if self.pings_out >= PINGS_OUT_MAX {
            return Err(Disconnect::Stale);
        }
        self.pings_out += 1;
        self.shared.with_outgoing(|outgoing| {
            outgoing.pongs.push_back(None);
            outgoing.buffer.extend_from_slice(b"PING\r\n");
        });
        Ok(())
    }

    /// Writes until both buffers are empty. Returns `Ready` only if the connection has ended.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        loop {
            if self.writing.is_empty() {
                let Driver {
                    writing, shared, ..
                } = self;
                let (finish, taken) = shared.with_outgoing(|outgoing| {
                    std::mem::swap(&mut outgoing.buffer, writing);
                    outgoing.driver = writing.is_empty().then(|| context.waker().clone());
                    (outgoing.finish, !writing.is_empty())
                });
                if taken {
                    shared.notify_room();
                } else {
                    if self.needs_flush {
                        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
                        self.needs_flush = false;
                    }
                    if finish {
                        return Pin::new(&mut self.stream)
                            .poll_shutdown(context)
                            .map_err(Into::into);
                    }
                    return Poll::Pending;
                }
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.writing))?;
            if written == 0 {
                return Poll::Ready(Err(Disconnect::ServerClosed));
            }
            self.needs_flush = true;
            if written == self.writing.len() {
                // `clear` keeps the allocated memory. This buffer is exchanged with the shared buffer later.
                self.writing.clear();
            } else {
                self.writing.advance(written);
            }
        }
    }
}
