//! The socket below all layers.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use socket2::{SockAddr, SockRef};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::client::TlsStream;

/// Largest read in bytes before the session begins.
const READ_BYTES_MAX: usize = 8 * 1024;

/// Size in bytes of the send buffer for a peer on this machine. The system's default grows to megabytes,
/// which have left the processor's cache when the peer reads them. The rest of the output waits in the
/// outbox, which may refer to input buffers instead of copying them.
pub(crate) const LOCAL_SEND_BUFFER_BYTES: usize = 256 * 1024;

/// A stack of layers to a hub.
pub(crate) trait Carrier: AsyncRead + AsyncWrite + Unpin {
    /// Waits until the lowest layer accepts more.
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

/// Sets the options that all connections need.
pub(crate) fn prepare_tcp(stream: &std::net::TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    if is_on_this_host(stream)? {
        SockRef::from(stream).set_send_buffer_size(LOCAL_SEND_BUFFER_BYTES)?;
    }
    Ok(())
}

/// Returns whether the peer is on this machine.
pub(crate) fn is_on_this_host<S>(stream: &S) -> io::Result<bool>
where
    for<'a> SockRef<'a>: From<&'a S>,
{
    let socket = SockRef::from(stream);
    let ip = |address: SockAddr| address.as_socket().map(|address| address.ip());
    Ok(ip(socket.peer_addr()?) == ip(socket.local_addr()?))
}

/// A socket, or a pipe to one.
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    /// TLS of a connection that this side has opened.
    Tls(RefCell<Box<dyn Carrier>>),
    /// A pipe to a connection that another part of this process reads and writes.
    Pipe(RefCell<DuplexStream>),
}

impl Socket {
    pub(crate) fn poll_read(
        &self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let read = match self {
                Socket::Tcp(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_read(scratch)
                }
                #[cfg(unix)]
                Socket::Unix(stream) => {
                    ready!(stream.poll_read_ready(context))?;
                    stream.try_read(scratch)
                }
                Socket::Tls(tls) => {
                    let mut buffer = ReadBuf::new(scratch);
                    ready!(Pin::new(&mut **tls.borrow_mut()).poll_read(context, &mut buffer))?;
                    Ok(buffer.filled().len())
                }
                Socket::Pipe(pipe) => {
                    let mut buffer = ReadBuf::new(scratch);
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

    pub(crate) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.try_write_vectored(parts),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.try_write_vectored(parts),
            Socket::Tls(tls) => {
                // Ciphertext of earlier writes is written first.
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

    /// Writes ciphertext that is not written yet.
    pub(crate) fn try_flush(&self) -> io::Result<()> {
        let Socket::Tls(tls) = self else {
            return Ok(());
        };
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut **tls.borrow_mut()).poll_flush(&mut context) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => stream.poll_write_ready(context),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.poll_write_ready(context),
            Socket::Tls(tls) => tls.borrow().poll_writable(context),
            // A pipe does not report whether it has room, so the task checks again after a delay.
            Socket::Pipe(_) => {
                let waker = context.waker().clone();
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(RECHECK_INTERVAL).await;
                    waker.wake();
                });
                Poll::Pending
            }
        }
    }

    /// Returns whether the peer is on this machine and directly connected over TCP.
    pub(crate) fn is_on_this_host(&self) -> bool {
        matches!(self, Socket::Tcp(stream) if is_on_this_host(stream).unwrap_or(false))
    }

    /// Sets the size of the send buffer in bytes.
    pub(crate) fn set_send_buffer(&self, bytes: usize) {
        if let Socket::Tcp(stream) = self {
            // Best effort: any size works.
            let _ = SockRef::from(stream).set_send_buffer_size(bytes);
        }
    }

    pub(crate) fn shut_down(&self) {
        // This fails if the socket is closed already.
        let _ = match self {
            Socket::Tcp(stream) => SockRef::from(stream).shutdown(std::net::Shutdown::Write),
            #[cfg(unix)]
            Socket::Unix(stream) => SockRef::from(stream).shutdown(std::net::Shutdown::Write),
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

    /// Appends one read. Returns false at the end of the stream. Cancel safe.
    pub(crate) async fn read_more(
        &self,
        bytes: &mut Vec<u8>,
        room_bytes: usize,
    ) -> io::Result<bool> {
        // No buffer is used while this waits.
        std::future::poll_fn(|context| {
            let mut scratch = [0; READ_BYTES_MAX];
            let wanted = room_bytes.min(READ_BYTES_MAX);
            let read = ready!(self.poll_read(context, &mut scratch[..wanted]))?;
            bytes.extend_from_slice(&scratch[..read]);
            Poll::Ready(Ok(read > 0))
        })
        .await
    }

    /// Writes all bytes.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
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

/// Interval of checks whether a pipe has room again.
const RECHECK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);
