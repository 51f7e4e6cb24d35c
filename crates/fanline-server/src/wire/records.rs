//! TLS records in both directions.

use std::io::{self, IoSlice};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use tokio::io::ReadBuf;

use super::{ENCRYPTED_BYTES_MAX, Scratch, Socket, gather};

/// Largest incomplete handshake message, in bytes. A longer one closes the connection.
const HANDSHAKE_BYTES_MAX: usize = 80 * 1024;
/// Size of one read in bytes during a handshake.
const HANDSHAKE_READ_BYTES: usize = 8 * 1024;
/// Space in bytes for headers and tags of the records of one write.
const OVERHEAD_BYTES: usize = 1024;

/// The TLS session of one connection after its handshake. It has buffers only for incomplete records and
/// unwritten ciphertext.
pub(crate) struct Records {
    session: UnbufferedServerConnection,
    /// An incomplete record.
    partial: Vec<u8>,
    /// Decrypted bytes that did not fit into the reader's buffer.
    decrypted: Vec<u8>,
    /// Ciphertext that is not written yet.
    outgoing: Vec<u8>,
    /// Number of plain bytes whose ciphertext is in `outgoing`.
    plain_bytes: usize,
    peer_closed: bool,
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Records {
    /// Performs the handshake. `early` is input that was already read.
    pub(crate) async fn begin(
        socket: &Socket,
        config: Arc<ServerConfig>,
        early: Vec<u8>,
    ) -> io::Result<Self> {
        let mut records = Records {
            session: UnbufferedServerConnection::new(config).map_err(invalid)?,
            partial: Vec::new(),
            decrypted: Vec::new(),
            outgoing: Vec::new(),
            plain_bytes: 0,
            peer_closed: false,
        };
        let mut bytes = early;
        loop {
            let outcome = records.take(&mut bytes, &mut ReadBuf::new(&mut []));
            // If the handshake failed, an alert is in the outgoing bytes and reports it to the peer.
            let outgoing = mem::take(&mut records.outgoing);
            socket.write_all(&outgoing).await?;
            outcome?;
            if !records.session.is_handshaking() {
                return Ok(records);
            }
            bytes = mem::take(&mut records.partial);
            let is_too_long = bytes.len() > HANDSHAKE_BYTES_MAX;
            if is_too_long || !socket.read_more(&mut bytes, HANDSHAKE_READ_BYTES).await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    pub(crate) fn session(&self) -> &rustls::CommonState {
        &self.session
    }

    pub(crate) fn has_pending_control(&self) -> bool {
        !self.outgoing.is_empty()
    }

    pub(crate) fn poll_read(
        &mut self,
        socket: &Socket,
        incoming: &mut [u8],
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        /// Smallest size of one read in bytes.
        const READ_BYTES_MIN: usize = 4 * 1024;
        let before = buffer.filled().len();
        loop {
            if !self.decrypted.is_empty() {
                let taken = self.decrypted.len().min(buffer.remaining());
                buffer.put_slice(&self.decrypted[..taken]);
                self.decrypted.drain(..taken);
            }
            if buffer.filled().len() > before || self.peer_closed {
                return Poll::Ready(Ok(()));
            }
            let partial_bytes = self.partial.len();
            if partial_bytes > HANDSHAKE_BYTES_MAX {
                return Poll::Ready(Err(invalid("a record that does not end")));
            }
            // Decrypted bytes are fewer than encrypted bytes, so they should fit into the buffer.
            let wanted = buffer
                .remaining()
                .saturating_sub(partial_bytes)
                .max(READ_BYTES_MIN);
            let end = (partial_bytes + wanted).min(incoming.len());
            let read = match socket.poll_read(context, &mut incoming[partial_bytes..end]) {
                Poll::Ready(read) => read?,
                Poll::Pending => {
                    if partial_bytes == 0 {
                        self.partial = Vec::new();
                        self.decrypted = Vec::new();
                    }
                    return Poll::Pending;
                }
            };
            if read == 0 {
                return Poll::Ready(Ok(()));
            }
            incoming[..partial_bytes].copy_from_slice(&self.partial);
            self.take(&mut incoming[..partial_bytes + read], buffer)?;
        }
    }

    /// Processes records. Decrypted bytes go to `buffer`, and to `decrypted` if they do not fit.
    fn take(&mut self, bytes: &mut [u8], buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let mut from = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(&mut bytes[from..]);
            let mut is_done = false;
            match state {
                Err(error) => {
                    self.collect_alert();
                    return Err(invalid(error));
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(invalid)?;
                        discard += record.discard;
                        let fits = record.payload.len().min(buffer.remaining());
                        buffer.put_slice(&record.payload[..fits]);
                        self.decrypted.extend_from_slice(&record.payload[fits..]);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.outgoing)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                Ok(
                    ConnectionState::WriteTraffic(_)
                    | ConnectionState::BlockedHandshake
                    | ConnectionState::Closed,
                ) => is_done = true,
                Ok(_) => return Err(invalid("something that was not offered")),
            }
            from += discard;
            if is_done {
                break;
            }
        }
        self.partial.clear();
        self.partial.extend_from_slice(&bytes[from..]);
        Ok(())
    }

    /// Collects the alert for an error of the peer. Called only after an error, because otherwise the session
    /// would look for more input in bytes that are gone, and panic.
    fn collect_alert(&mut self) {
        while self.session.wants_write() {
            let status = self.session.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(data)) = status.state else {
                return;
            };
            if encode(data, &mut self.outgoing).is_err() {
                return;
            }
        }
    }

    /// Encrypts bytes from the front of `parts`, and writes their ciphertext. Returns the number of these
    /// bytes when all their ciphertext is written. If the socket accepts only a part of the ciphertext,
    /// returns the error `WouldBlock`, and the next call writes the rest first.
    pub(crate) fn write(
        &mut self,
        socket: &Socket,
        parts: &[IoSlice<'_>],
        scratch: &mut Scratch,
    ) -> io::Result<usize> {
        if !self.outgoing.is_empty() {
            let written = write_from(socket, &self.outgoing)?;
            if written < self.outgoing.len() {
                self.outgoing.drain(..written);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.outgoing = Vec::new();
            let plain_bytes = mem::take(&mut self.plain_bytes);
            if plain_bytes > 0 {
                return Ok(plain_bytes);
            }
        }
        let Scratch {
            plain, ciphertext, ..
        } = scratch;
        let bytes = match parts {
            [] => return Ok(0),
            [one] => &one[..one.len().min(ENCRYPTED_BYTES_MAX)],
            several => gather(several, ENCRYPTED_BYTES_MAX, plain),
        };
        ciphertext.clear();
        self.encrypt(bytes, ciphertext)?;
        let written = write_from(socket, ciphertext)?;
        if written < ciphertext.len() {
            self.outgoing.extend_from_slice(&ciphertext[written..]);
            self.plain_bytes = bytes.len();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(bytes.len())
    }

    fn encrypt(&mut self, plain: &[u8], ciphertext: &mut Vec<u8>) -> io::Result<()> {
        self.with_traffic(
            ciphertext,
            |traffic, scratch| traffic.encrypt(plain, scratch),
            plain.len(),
        )
    }

    /// Sends close_notify if the socket accepts it.
    pub(crate) fn close(&mut self, socket: &Socket) {
        if !self.outgoing.is_empty() {
            return;
        }
        let mut ciphertext = Vec::new();
        if self
            .with_traffic(
                &mut ciphertext,
                |traffic, scratch| traffic.queue_close_notify(scratch),
                0,
            )
            .is_ok()
        {
            // Best effort.
            let _ = write_from(socket, &ciphertext);
        }
    }

    /// Appends the ciphertext that `encrypt` produces for this many bytes.
    fn with_traffic<F>(
        &mut self,
        ciphertext: &mut Vec<u8>,
        encrypt: F,
        plain_bytes: usize,
    ) -> io::Result<()>
    where
        F: FnOnce(
            &mut WriteTraffic<'_, rustls::server::ServerConnectionData>,
            &mut [u8],
        ) -> Result<usize, EncryptError>,
    {
        loop {
            // `partial` may contain a part of a handshake message, so the session processes it, too.
            let UnbufferedStatus { discard, state } =
                self.session.process_tls_records(&mut self.partial);
            match state.map_err(invalid)? {
                ConnectionState::EncodeTlsData(data) => encode(data, ciphertext)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_closed = true,
                ConnectionState::WriteTraffic(mut traffic) => {
                    let from = ciphertext.len();
                    ciphertext.resize(from + plain_bytes + OVERHEAD_BYTES, 0);
                    let ciphertext_bytes =
                        encrypt(&mut traffic, &mut ciphertext[from..]).map_err(invalid)?;
                    ciphertext.truncate(from + ciphertext_bytes);
                    return Ok(());
                }
                _ => return Err(io::ErrorKind::BrokenPipe.into()),
            }
            self.partial.drain(..discard);
        }
    }
}

fn encode<Data>(mut data: EncodeTlsData<'_, Data>, outgoing: &mut Vec<u8>) -> io::Result<()> {
    let from = outgoing.len();
    let needed = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(size)) => size.required_size,
        _ => return Ok(()),
    };
    outgoing.resize(from + needed, 0);
    match data.encode(&mut outgoing[from..]) {
        Ok(_) => Ok(()),
        Err(error) => Err(invalid(error)),
    }
}

/// Writes as much as the socket accepts.
fn write_from(socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < bytes.len() {
        match socket.try_write_vectored(&[IoSlice::new(&bytes[at..])]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => at += written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}
