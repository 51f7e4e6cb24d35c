//! What a wire ends in.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::client::TlsStream;

use crate::shell::connection::is_on_this_host;

/// What is read at once before a session begins.
const READ_BYTES_MAX: usize = 8 * 1024;

/// What bytes to a hub are carried by, in as many layers as it takes.
pub(crate) trait Carrier: AsyncRead + AsyncWrite + Unpin {
    /// Waits until the lowest layer takes more.
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Carrier for TcpStream {
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(context)
    }
}

impl<C: Carrier> Carrier for TlsStream<C> {
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_ref().0.poll_writable(context)
    }
}

impl Carrier for Box<dyn Carrier> {
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_writable(context)
    }
}

/// A socket, or a pipe to one.
pub(in crate::shell) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    /// One that this side has opened, and that is encrypted.
    Tls(RefCell<Box<dyn Carrier>>),
    /// To a connection that another part of this process reads and writes.
    Pipe(RefCell<DuplexStream>),
}

impl Socket {
    pub(super) fn poll_read(
        &self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let read = match self {
                Socket::Tcp(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_read(room)
                }
                #[cfg(unix)]
                Socket::Unix(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_read(room)
                }
                Socket::Tls(tls) => {
                    let mut buffer = ReadBuf::new(room);
                    ready!(Pin::new(&mut **tls.borrow_mut()).poll_read(context, &mut buffer))?;
                    Ok(buffer.filled().len())
                }
                Socket::Pipe(pipe) => {
                    let mut buffer = ReadBuf::new(room);
                    ready!(Pin::new(&mut *pipe.borrow_mut()).poll_read(context, &mut buffer))?;
                    Ok(buffer.filled().len())
                }
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    pub(super) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write_vectored(parts),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.try_write_vectored(parts),
            Socket::Tls(tls) => {
                // What was encrypted before goes first.
                self.try_flush()?;
                let mut context = Context::from_waker(Waker::noop());
                let mut tls = tls.borrow_mut();
                match Pin::new(&mut **tls).poll_write_vectored(&mut context, parts) {
                    Poll::Ready(written) => written,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
            Socket::Pipe(pipe) => {
                let mut context = Context::from_waker(Waker::noop());
                match Pin::new(&mut *pipe.borrow_mut()).poll_write_vectored(&mut context, parts) {
                    Poll::Ready(written) => written,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        }
    }

    /// Writes what is encrypted and was not written yet.
    pub(super) fn try_flush(&self) -> io::Result<()> {
        let Socket::Tls(tls) = self else {
            return Ok(());
        };
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut **tls.borrow_mut()).poll_flush(&mut context) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(super) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => stream.poll_write_ready(context),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.poll_write_ready(context),
            Socket::Tls(tls) => tls.borrow().poll_writable(context),
            // An empty write says nothing of whether there is room.
            Socket::Pipe(_) => {
                let waker = context.waker().clone();
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    waker.wake();
                });
                Poll::Pending
            }
        }
    }

    /// Whether the peer is on this machine, and nothing lies between it and this socket.
    pub(super) fn is_on_this_host(&self) -> bool {
        matches!(self, Socket::Tcp(stream) if is_on_this_host(stream).unwrap_or(false))
    }

    /// Sets how much the system holds of what is written.
    pub(super) fn set_send_buffer(&self, bytes: usize) {
        if let Socket::Tcp(stream) = self {
            // With another size it works, too.
            let _ = socket2::SockRef::from(stream).set_send_buffer_size(bytes);
        }
    }

    pub(super) fn shut_down(&self) {
        // It may be closed already, which is as good.
        let _ = match self {
            Socket::Tcp(stream) => {
                socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write)
            }
            #[cfg(unix)]
            Socket::Unix(stream) => {
                socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write)
            }
            Socket::Tls(tls) => {
                let mut context = Context::from_waker(Waker::noop());
                let _ = Pin::new(&mut **tls.borrow_mut()).poll_shutdown(&mut context);
                Ok(())
            }
            Socket::Pipe(pipe) => {
                let mut context = Context::from_waker(Waker::noop());
                let _ = Pin::new(&mut *pipe.borrow_mut()).poll_shutdown(&mut context);
                Ok(())
            }
        };
    }

    /// Reads more behind what is there; false at the end. Cancel safe.
    pub(super) async fn read_more(
        &self,
        bytes: &mut Vec<u8>,
        room_bytes: usize,
    ) -> io::Result<bool> {
        // It holds no buffer while it waits.
        std::future::poll_fn(|context| {
            let mut room = [0; READ_BYTES_MAX];
            let wanted = room_bytes.min(READ_BYTES_MAX);
            let read = ready!(self.poll_read(context, &mut room[..wanted]))?;
            bytes.extend_from_slice(&room[..read]);
            Poll::Ready(Ok(read > 0))
        })
        .await
    }

    /// Writes all of it.
    pub(super) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write_vectored(&[IoSlice::new(bytes)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::future::poll_fn(|context| self.poll_write_ready(context)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// How often it is looked whether a pipe has room again.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(1);
