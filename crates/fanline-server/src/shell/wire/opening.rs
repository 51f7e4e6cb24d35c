//! What happens before a session begins: the PROXY protocol, TLS, the upgrade to WebSocket. Each
//! has its time, and none holds more than a few kilobytes while it waits.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use fanline_engine::access::ConnectionKind;
use fanline_engine::proxy::{PROXY_BYTES_MAX, Proxied, proxied};
use fanline_engine::websocket::{Asked, Upgrade, UpgradeRules, upgrade};
use fanline_engine::{Outbox, Peer};
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::warn;

use super::super::connection::{peer_at, prepare_tcp};
use super::super::{Incoming, Listener, Shell, WebSocketListener};
use super::frames::Frames;
use super::records::Records;
use super::{Layers, Socket, Wire, Wrote};
use crate::options::TlsHandshake;
use crate::tls::Tls;

/// How long a header of the PROXY protocol may take to come.
const PROXY_TIME_MAX: Duration = Duration::from_secs(5);
/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

const TLS_REQUIRED: &str = "-ERR 'Secure Connection - TLS Required'\r\n";
const THROTTLED: &str = "-ERR 'Connection throttling is active. Please try again later.'\r\n";

/// A connection whose session may begin.
pub(in crate::shell) struct Opened {
    pub(in crate::shell) wire: Wire,
    pub(in crate::shell) peer: Peer,
    /// What it is called in logs.
    pub(in crate::shell) name: String,
}

/// Why it may not.
#[derive(Debug, thiserror::Error)]
pub(in crate::shell) enum NotOpened {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0} took too long")]
    Late(&'static str),
    #[error("TLS handshake error: {0}")]
    Tls(String),
    #[error("{0}")]
    Refused(&'static str),
}

/// A connection that is being opened.
struct Opening<'a> {
    shell: &'a Rc<Shell>,
    wire: Wire,
    cid: u64,
    peer: Peer,
    is_full: bool,
}

/// Brings a connection to where its session begins.
pub(in crate::shell) async fn open(
    shell: &Rc<Shell>,
    incoming: Incoming,
    listener: Listener,
    cid: u64,
    is_full: bool,
) -> Result<Opened, NotOpened> {
    let (socket, peer, agreed) = accept(incoming)?;
    let wire = Wire {
        socket,
        room: Rc::clone(&shell.room),
        layers: RefCell::new(Layers::default()),
    };
    let mut opening = Opening {
        shell,
        wire,
        cid,
        peer,
        is_full,
    };
    let websocket = shell.common.listeners.websocket.as_ref();
    let opened = match (agreed, listener, websocket) {
        (Some(agreed), ..) => {
            opening.begin_frames(&agreed, Vec::new());
            Ok(())
        }
        (None, Listener::WebSocket, Some(listener)) => opening.websocket(listener).await,
        (None, ..) => opening.client().await,
    };
    let name = opening.name();
    if let Err(NotOpened::Tls(error)) = &opened {
        warn!("{name} - TLS handshake error: {error}");
    }
    opened.map(|()| Opened {
        wire: opening.wire,
        peer: opening.peer,
        name,
    })
}

fn accept(incoming: Incoming) -> io::Result<(Socket, Peer, Option<Box<Upgrade>>)> {
    match incoming {
        Incoming::Tcp(stream) => {
            let peer = peer_at(stream.peer_addr()?);
            prepare_tcp(&stream)?;
            Ok((Socket::Tcp(TcpStream::from_std(stream)?), peer, None))
        }
        #[cfg(unix)]
        Incoming::Unix(stream) => {
            stream.set_nonblocking(true)?;
            let stream = tokio::net::UnixStream::from_std(stream)?;
            Ok((Socket::Unix(stream), Peer::default(), None))
        }
        Incoming::Upgraded(upgraded) => {
            let socket = Socket::Pipe(RefCell::new(upgraded.stream));
            let peer = Peer {
                vouched: upgraded.vouched,
                ..peer_at(upgraded.address)
            };
            Ok((socket, peer, Some(upgraded.agreed)))
        }
    }
}

impl Opening<'_> {
    fn name(&self) -> String {
        let Peer { ip, port, .. } = &self.peer;
        let cid = self.cid;
        let is_websocket = self.peer.kind == ConnectionKind::WebSocket;
        match (is_websocket, ip.as_str()) {
            (true, ip) => format!("{ip}:{port} - wid:{cid}"),
            (false, "") => format!("unix - cid:{cid}"),
            (false, ip) => format!("{ip}:{port} - cid:{cid}"),
        }
    }

    /// A NATS client.
    async fn client(&mut self) -> Result<(), NotOpened> {
        let listeners = &self.shell.common.listeners;
        let is_remote = matches!(self.wire.socket, Socket::Tcp(_));
        if listeners.proxy_protocol && is_remote {
            let header = timeout(PROXY_TIME_MAX, self.read_proxy_header()).await;
            header.map_err(|_| NotOpened::Late("the PROXY protocol"))??;
        }
        // Who is turned away anyway is told so in clear; a unix socket needs no encryption.
        let tls = listeners.tls.as_ref();
        match tls.filter(|_| is_remote && !self.is_full) {
            Some(tls) => self.client_tls(tls, listeners.allow_non_tls).await,
            None => Ok(()),
        }
    }

    /// Learns from a proxy whose connection it is. The header may be missing.
    async fn read_proxy_header(&mut self) -> Result<(), NotOpened> {
        let mut bytes = Vec::new();
        loop {
            match proxied(&bytes) {
                Proxied::Partial => {}
                Proxied::Not => break,
                Proxied::Wrong(what) => return Err(NotOpened::Refused(what)),
                Proxied::Header {
                    bytes: taken,
                    source,
                } => {
                    bytes.drain(..taken);
                    if let Some(source) = source {
                        self.peer = peer_at(source);
                    }
                    break;
                }
            }
            let wanted = PROXY_BYTES_MAX.saturating_sub(bytes.len());
            if !self.wire.socket.read_more(&mut bytes, wanted).await? {
                return Err(NotOpened::Refused("closed before it began"));
            }
        }
        self.wire.layers.get_mut().early = bytes;
        Ok(())
    }

    /// TLS before INFO or after it, or none if that is allowed.
    async fn client_tls(&mut self, tls: &Tls, allow_non_tls: bool) -> Result<(), NotOpened> {
        let options = tls.options();
        let is_first = match options.handshake {
            TlsHandshake::AfterInfo => false,
            TlsHandshake::First => true,
            TlsHandshake::FirstWithin(time) => {
                let began = timeout(time, self.begins_with_tls()).await;
                began.unwrap_or(Ok(false))?
            }
        };
        if !is_first {
            self.shell.give_nonce(&mut self.peer);
            let greeting = self.shell.engine.borrow().greeting(self.cid, &self.peer);
            self.wire.socket.write_all(&greeting).await?;
            self.peer.is_greeted = true;
        }
        let began = timeout(options.timeout, self.begins_with_tls()).await;
        match began.unwrap_or(Ok(false))? {
            true => self.shake_hands(tls, is_first).await,
            false if allow_non_tls => Ok(()),
            false => {
                self.wire.socket.write_all(TLS_REQUIRED.as_bytes()).await?;
                Err(NotOpened::Refused("TLS is required"))
            }
        }
    }

    /// Whether what comes first is TLS. Waits for it.
    async fn begins_with_tls(&mut self) -> Result<bool, NotOpened> {
        let Layers { early, .. } = self.wire.layers.get_mut();
        if early.is_empty() && !self.wire.socket.read_more(early, FIRST_BYTES).await? {
            return Err(NotOpened::Refused("closed before it began"));
        }
        Ok(early.first() == Some(&TLS_HANDSHAKE))
    }

    async fn shake_hands(&mut self, tls: &Tls, is_first: bool) -> Result<(), NotOpened> {
        if !tls.may_begin() {
            self.wire.socket.write_all(THROTTLED.as_bytes()).await?;
            return Err(NotOpened::Refused("too many handshakes"));
        }
        let early = std::mem::take(&mut self.wire.layers.get_mut().early);
        let records = Records::begin(&self.wire.socket, tls.current(), early);
        let records = timeout(tls.options().timeout, records)
            .await
            .map_err(|_| NotOpened::Late("the TLS handshake"))?
            .map_err(|error| NotOpened::Tls(error.to_string()))?;
        let told = tls
            .peer(records.session(), is_first)
            .map_err(|what| NotOpened::Tls(what.into()))?;
        self.peer.tls = Some(Box::new(told));
        self.wire.layers.get_mut().records = Some(records);
        Ok(())
    }

    /// A client over WebSocket.
    async fn websocket(&mut self, listener: &WebSocketListener) -> Result<(), NotOpened> {
        self.peer.kind = ConnectionKind::WebSocket;
        if let Some(tls) = &listener.tls {
            self.shake_hands(tls, true).await?;
        }
        let asked = timeout(listener.handshake_timeout, self.upgrade(&listener.rules)).await;
        asked.map_err(|_| NotOpened::Late("the WebSocket handshake"))?
    }

    async fn upgrade(&mut self, rules: &UpgradeRules) -> Result<(), NotOpened> {
        let mut bytes = Vec::new();
        let agreed = loop {
            match upgrade(&bytes, rules) {
                Asked::Granted(agreed) => break agreed,
                Asked::Refused(refusal) => {
                    self.say(&refusal.response()).await?;
                    self.wire.shut_down();
                    return Err(NotOpened::Refused(refusal.status));
                }
                Asked::Partial => {}
            }
            if !self.read_more(&mut bytes).await? {
                return Err(NotOpened::Refused("closed before it was upgraded"));
            }
        };
        let frames = bytes.split_off(agreed.request_bytes);
        self.say(&agreed.response).await?;
        self.begin_frames(&agreed, frames);
        Ok(())
    }

    /// What comes from now on are frames; these bytes of them have come already.
    fn begin_frames(&mut self, agreed: &Upgrade, early: Vec<u8>) {
        let payload_bytes_max = self.shell.config().limits.payload_bytes_max;
        let frames = Frames::new(agreed, payload_bytes_max, early);
        self.wire.layers.get_mut().frames = Some(Box::new(frames));
        self.peer.kind = ConnectionKind::WebSocket;
        self.peer.cookies = agreed.cookies.clone();
        if let Some(ip) = agreed.forwarded_for {
            self.peer.ip = ip.to_canonical().to_string();
        }
    }

    /// Reads more of a request; false at the end.
    async fn read_more(&mut self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let from = bytes.len();
        bytes.resize(from + REQUEST_READ_BYTES, 0);
        let read = poll_fn(|context| {
            let mut room = ReadBuf::new(&mut bytes[from..]);
            let outcome = self.wire.poll_read(context, &mut room);
            outcome.map_ok(|()| room.filled().len())
        });
        let read = read.await?;
        bytes.truncate(from + read);
        Ok(read > 0)
    }

    async fn say(&mut self, text: &str) -> Result<(), NotOpened> {
        let mut out = Outbox::default();
        out.append(text.as_bytes());
        match poll_fn(|context| self.wire.poll_drain(context, &mut out)).await {
            Wrote::All => Ok(()),
            Wrote::Blocked | Wrote::Failed => {
                Err(io::Error::from(io::ErrorKind::BrokenPipe).into())
            }
        }
    }
}

/// What is read to see whether it is TLS.
const FIRST_BYTES: usize = 4 * 1024;
/// What is read of a request at once.
const REQUEST_READ_BYTES: usize = 4 * 1024;
