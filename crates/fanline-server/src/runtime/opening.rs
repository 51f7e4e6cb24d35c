//! Handshakes before a session: PROXY protocol, TLS, compression, and WebSocket. Each has a time limit, and
//! needs no more than a few kilobytes of memory while it waits.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use fanline_engine::Peer;
use fanline_engine::auth::ConnectionKind;
use fanline_engine::codec::leaf::{LEAF_LINE_BYTES_MAX, LeafInfo};
use fanline_engine::codec::mqtt::CONNECT_BYTES_MAX;
use fanline_engine::codec::proxy::{PROXY_BYTES_MAX, Proxied, proxied};
use fanline_engine::codec::websocket::{
    Compression, MESSAGE_BYTES_MAX, Upgrade, UpgradeResult, UpgradeRules, upgrade,
};
use fanline_engine::leaf::{Agreed, Compressed, LinkCompression};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::warn;

use super::Runtime;
use super::connection::peer_at;
use crate::ipc::{Command, Incoming, LeafHandover, Listener, Transport, WebSocketListener};
use crate::options::TlsHandshake;
use crate::tls::{ListenersTls, Tls};
use crate::wire::{Frames, Layers, Records, S2Layer, Socket, Wire, prepare_tcp};

/// Time limit of a PROXY header.
const PROXY_TIME_MAX: Duration = Duration::from_secs(5);
/// Time that the server waits for the first byte of a PROXY header. A proxy sends its header at once. A
/// client that sends nothing in this time has no header and waits for INFO.
const PROXY_SILENCE_MAX: Duration = Duration::from_secs(1);
/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

const TLS_REQUIRED: &str = "-ERR 'Secure Connection - TLS Required'\r\n";
const THROTTLED: &str = "-ERR 'Connection throttling is active. Please try again later.'\r\n";

/// A connection whose handshake is done.
pub(super) struct Opened {
    pub(super) wire: Wire,
    pub(super) peer: Peer,
    /// The connection's name in logs.
    pub(super) name: String,
    /// The compression agreed with a leaf node.
    pub(super) agreed: Agreed,
}

/// The reason why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotOpened {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0} took too long")]
    Late(&'static str),
    #[error("TLS handshake error: {0}")]
    Tls(String),
    #[error("{0}")]
    Refused(&'static str),
    #[error("{0}")]
    Declined(String),
    /// A proxy did not connect to the hub.
    #[error("{0}")]
    Unreached(String),
    #[error("the shard of leaf nodes serves it")]
    HandedOver,
}

/// A handshake in progress.
struct Opening<'a> {
    runtime: &'a Rc<Runtime>,
    wire: Wire,
    cid: u64,
    peer: Peer,
    /// The client's address according to `X-Forwarded-For`.
    forwarded_for: Option<IpAddr>,
    is_full: bool,
    agreed: Agreed,
}

/// Performs the handshake of an accepted connection.
pub(super) async fn open(
    runtime: &Rc<Runtime>,
    incoming: Incoming,
    listener: Listener,
    cid: u64,
    is_full: bool,
) -> Result<Opened, NotOpened> {
    let Accepted {
        socket,
        peer,
        records,
        granted,
        early,
    } = accept(incoming)?;
    let layers = Layers {
        records,
        ..Layers::default()
    };
    let mut opening = Opening {
        runtime,
        wire: Wire::new(socket, &runtime.scratch, layers),
        cid,
        peer,
        forwarded_for: None,
        is_full,
        agreed: Agreed::default(),
    };
    let websocket = runtime.common.listeners.websocket.as_ref();
    let opened = match (granted, listener, websocket) {
        (Some(granted), ..) => opening.granted(&granted, early).await,
        (None, Listener::WebSocket, Some(listener)) => opening.websocket(listener).await,
        (None, Listener::Mqtt, _) => opening.mqtt().await,
        (None, Listener::Leafs, _) => opening.leaf().await,
        (None, Listener::Routes, _) => opening.route().await,
        (None, Listener::Gateways, _) => opening.gateway().await,
        (None, ..) => opening.client().await,
    };
    let name = opening.name();
    let of_servers = match opening.peer.kind {
        ConnectionKind::Route => "route ",
        ConnectionKind::Gateway => "gateway ",
        _ => "",
    };
    if let Err(NotOpened::Tls(error)) = &opened {
        warn!("{name} - TLS {of_servers}handshake error: {error}");
    }
    if opening.peer.kind.is_leaf() || !of_servers.is_empty() {
        opening.wire.mark_server_link();
    }
    opened.map(|()| Opened {
        wire: opening.wire,
        peer: opening.peer,
        name,
        agreed: opening.agreed,
    })
}

/// An accepted connection, and its parameters so far.
struct Accepted {
    socket: Socket,
    peer: Peer,
    records: Option<Records>,
    granted: Option<Box<Upgrade>>,
    early: Vec<u8>,
}

impl Accepted {
    fn new(socket: Socket, peer: Peer) -> Self {
        Accepted {
            socket,
            peer,
            records: None,
            granted: None,
            early: Vec::new(),
        }
    }
}

fn accept(incoming: Incoming) -> io::Result<Accepted> {
    match incoming {
        Incoming::Tcp(stream) => {
            let peer = peer_at(stream.peer_addr()?);
            prepare_tcp(&stream)?;
            let socket = Socket::Tcp(TcpStream::from_std(stream)?);
            Ok(Accepted::new(socket, peer))
        }
        #[cfg(unix)]
        Incoming::Unix(stream) => {
            stream.set_nonblocking(true)?;
            let stream = tokio::net::UnixStream::from_std(stream)?;
            Ok(Accepted::new(Socket::Unix(stream), Peer::default()))
        }
        Incoming::Upgraded(upgraded) => {
            let socket = Socket::Pipe(RefCell::new(upgraded.stream));
            let peer = Peer {
                vouched: upgraded.identity,
                ..peer_at(upgraded.address)
            };
            Ok(Accepted {
                granted: Some(upgraded.agreed),
                ..Accepted::new(socket, peer)
            })
        }
        Incoming::LeafHandover(handed) => Ok(Accepted {
            socket: Socket::Tcp(TcpStream::from_std(handed.stream)?),
            peer: handed.peer,
            records: handed.records,
            granted: Some(handed.granted),
            early: handed.early,
        }),
    }
}

impl Opening<'_> {
    fn name(&self) -> String {
        let Peer { ip, port, .. } = &self.peer;
        let cid = self.cid;
        match (self.peer.kind, ip.as_str()) {
            (ConnectionKind::WebSocket, ip) => match self.forwarded_for {
                Some(IpAddr::V6(client)) => format!("[{client}]/{ip}:{port} - wid:{cid}"),
                Some(client) => format!("{client}/{ip}:{port} - wid:{cid}"),
                None => format!("{ip}:{port} - wid:{cid}"),
            },
            (ConnectionKind::MqttWebSocket, ip) => format!("{ip}:{port} - mid_ws:{cid}"),
            (ConnectionKind::Mqtt, ip) => format!("{ip}:{port} - mid:{cid}"),
            (ConnectionKind::Leafnode, ip) => format!("{ip}:{port} - lid:{cid}"),
            (ConnectionKind::LeafnodeWebSocket, ip) => format!("{ip}:{port} - lid_ws:{cid}"),
            (ConnectionKind::Route, ip) => format!("{ip}:{port} - rid:{cid}"),
            (ConnectionKind::Gateway, ip) => format!("{ip}:{port} - gid:{cid}"),
            (_, "") => format!("unix - cid:{cid}"),
            (_, ip) => format!("{ip}:{port} - cid:{cid}"),
        }
    }

    /// Performs the handshake of a NATS client.
    async fn client(&mut self) -> Result<(), NotOpened> {
        let listeners = &self.runtime.common.listeners;
        let is_remote = matches!(self.wire.socket, Socket::Tcp(_));
        if listeners.proxy_protocol && is_remote {
            let header = timeout(PROXY_TIME_MAX, self.read_proxy_header()).await;
            header.map_err(|_| NotOpened::Late("the PROXY protocol"))??;
        }
        // A client above the connection limit receives the error without TLS. A unix socket needs no TLS.
        let ListenersTls {
            clients,
            allow_non_tls,
            ..
        } = &*self.runtime.tls();
        match clients.as_ref().filter(|_| is_remote && !self.is_full) {
            Some(tls) => self.client_tls(tls, *allow_non_tls).await,
            None => Ok(()),
        }
    }

    /// Performs the handshake of a leaf node.
    async fn leaf(&mut self) -> Result<(), NotOpened> {
        self.peer.kind = ConnectionKind::Leafnode;
        if let Some(tls) = &self.runtime.tls().leafs {
            self.client_tls(tls, false).await?;
        }
        self.agree_on_compression().await
    }

    /// Performs the handshake of a route, which begins with TLS if it is configured.
    async fn route(&mut self) -> Result<(), NotOpened> {
        self.peer.kind = ConnectionKind::Route;
        match &self.runtime.tls().routes {
            Some(tls) => self.accept_tls(&tls.accepted, true).await,
            None => Ok(()),
        }
    }

    /// Performs the handshake of a gateway connection, which begins with TLS if it is configured.
    async fn gateway(&mut self) -> Result<(), NotOpened> {
        self.peer.kind = ConnectionKind::Gateway;
        match &self.runtime.tls().gateways {
            Some(tls) => self.accept_tls(&tls.accepted, true).await,
            None => Ok(()),
        }
    }

    /// Sends INFO to a leaf node, and compresses the connection if the leaf node requests it. The session
    /// handles any other response.
    async fn agree_on_compression(&mut self) -> Result<(), NotOpened> {
        let wanted = self.runtime.engine.borrow().leaf_compression();
        if wanted == LinkCompression::Off {
            return Ok(());
        }
        if !self.peer.is_greeted {
            let greeting = self.greeting();
            self.wire.send(&greeting).await?;
            self.peer.is_greeted = true;
        }
        let greeted_at = self.runtime.now();
        self.agreed.greeted_at = Some(greeted_at);
        let mut received = Vec::new();
        let time = self.runtime.config().limits.auth_timeout_of(true);
        let line_bytes = timeout(time, self.read_compression_request(&mut received)).await;
        let line_bytes = line_bytes.unwrap_or(Ok(None))?.unwrap_or(0);
        let request = received[..line_bytes].strip_prefix(COMPRESSION_REQUEST);
        let request = request.and_then(|json| LeafInfo::parse(json.trim_ascii()));
        let by = request.and_then(|request| wanted.agree(&request.compression));
        let layers = self.wire.layers.get_mut();
        let Some(by) = by else {
            layers.unread = received;
            return Ok(());
        };
        let rest = &received[line_bytes..];
        if layers.frames.is_some() && !rest.is_empty() {
            return Err(NotOpened::Refused("it goes on before it was answered"));
        }
        let rtt = self.runtime.now().saturating_sub(greeted_at);
        let mut s2 = S2Layer::new(by.level(rtt));
        s2.push(rest);
        layers.s2 = Some(Box::new(s2));
        self.agreed.compressed = Some(Compressed { by, rtt });
        // The session sends INFO again, compressed.
        self.peer.is_greeted = false;
        Ok(())
    }

    /// Reads until it is clear whether the first line of the leaf node is a request for compression. Returns
    /// the length of this request, or `None` for any other input.
    async fn read_compression_request(&self, received: &mut Vec<u8>) -> io::Result<Option<usize>> {
        loop {
            let compared = received.len().min(COMPRESSION_REQUEST.len());
            if received[..compared] != COMPRESSION_REQUEST[..compared]
                || received.len() > LEAF_LINE_BYTES_MAX
            {
                return Ok(None);
            }
            if let Some(end) = received.iter().position(|b| *b == b'\n') {
                return Ok(Some(end + 1));
            }
            if !self.wire.read_more(received).await? {
                return Ok(None);
            }
        }
    }

    /// Returns the INFO that starts a connection.
    fn greeting(&mut self) -> Vec<u8> {
        self.runtime.add_nonce(&mut self.peer);
        let engine = self.runtime.engine.borrow();
        match self.peer.kind {
            kind if kind.is_leaf() => engine.leaf_greeting(self.cid, &self.peer),
            _ => engine.greeting(self.cid, &self.peer),
        }
    }

    /// Reads the client's address from a PROXY header, which may be missing.
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
            let is_silent = bytes.is_empty();
            let more = self.wire.socket.read_more(&mut bytes, wanted);
            let is_open = match is_silent {
                true => match timeout(PROXY_SILENCE_MAX, more).await {
                    Ok(read) => read?,
                    Err(_) => break,
                },
                false => more.await?,
            };
            if !is_open {
                return Err(NotOpened::Refused("closed before it began"));
            }
        }
        self.wire.layers.get_mut().early = bytes;
        Ok(())
    }

    /// Performs TLS before or after INFO, or not at all if that is allowed.
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
            let greeting = self.greeting();
            self.wire.socket.write_all(&greeting).await?;
            self.peer.is_greeted = true;
        }
        let began = timeout(options.timeout, self.begins_with_tls()).await;
        match began.unwrap_or(Ok(false))? {
            true => self.accept_tls(tls, is_first).await,
            // `handshake_first` takes precedence over `allow_non_tls`.
            false if allow_non_tls && !is_first => Ok(()),
            false => {
                self.wire.socket.write_all(TLS_REQUIRED.as_bytes()).await?;
                Err(NotOpened::Refused("TLS is required"))
            }
        }
    }

    /// Waits for the first byte, and returns whether it starts a TLS handshake.
    async fn begins_with_tls(&mut self) -> Result<bool, NotOpened> {
        let Layers { early, .. } = self.wire.layers.get_mut();
        if early.is_empty() && !self.wire.socket.read_more(early, FIRST_BYTES).await? {
            return Err(NotOpened::Refused("closed before it began"));
        }
        Ok(early.first() == Some(&TLS_HANDSHAKE))
    }

    async fn accept_tls(&mut self, tls: &Tls, is_first: bool) -> Result<(), NotOpened> {
        if !tls.may_begin() {
            let is_of_server = matches!(
                self.peer.kind,
                ConnectionKind::Route | ConnectionKind::Gateway
            );
            if !self.peer.kind.is_mqtt() && !is_of_server {
                self.wire.socket.write_all(THROTTLED.as_bytes()).await?;
            }
            return Err(NotOpened::Refused("too many handshakes"));
        }
        let early = std::mem::take(&mut self.wire.layers.get_mut().early);
        let records = Records::begin(&self.wire.socket, tls.config(), early);
        let records = timeout(tls.options().timeout, records)
            .await
            .map_err(|_| NotOpened::Late("the TLS handshake"))?
            .map_err(|error| NotOpened::Tls(error.to_string()))?;
        let tls_peer = tls
            .peer(records.session(), is_first)
            .map_err(|what| NotOpened::Tls(what.into()))?;
        self.peer.tls = Some(Box::new(tls_peer));
        self.wire.layers.get_mut().records = Some(records);
        Ok(())
    }

    /// Performs the handshake of an MQTT client.
    async fn mqtt(&mut self) -> Result<(), NotOpened> {
        self.peer.kind = ConnectionKind::Mqtt;
        match &self.runtime.tls().mqtt {
            Some(tls) => self.accept_tls(tls, true).await,
            None => Ok(()),
        }
    }

    /// Performs the handshake of a WebSocket client.
    async fn websocket(&mut self, listener: &WebSocketListener) -> Result<(), NotOpened> {
        self.peer.kind = ConnectionKind::WebSocket;
        if let Some(tls) = &self.runtime.tls().websocket {
            self.accept_tls(tls, true).await?;
        }
        let upgraded = timeout(listener.handshake_timeout, self.upgrade(&listener.rules)).await;
        upgraded.map_err(|_| NotOpened::Late("the WebSocket handshake"))?
    }

    async fn upgrade(&mut self, rules: &UpgradeRules) -> Result<(), NotOpened> {
        let mut bytes = Vec::new();
        let agreed = loop {
            match upgrade(&bytes, rules) {
                UpgradeResult::Granted(agreed) => break agreed,
                UpgradeResult::Refused(refusal) => {
                    self.wire.send(refusal.response().as_bytes()).await?;
                    self.wire.shut_down();
                    return Err(NotOpened::Refused(refusal.status));
                }
                UpgradeResult::Partial => {}
            }
            if !self.wire.read_more(&mut bytes).await? {
                return Err(NotOpened::Refused("closed before it was upgraded"));
            }
        };
        let frames = bytes.split_off(agreed.request_bytes);
        self.wire.send(agreed.response.as_bytes()).await?;
        match agreed.is_leaf {
            true => self.hand_over(agreed, frames),
            false => self.granted(&agreed, frames).await,
        }
    }

    /// Hands a leaf connection to the shard that serves leaf nodes.
    fn hand_over(&mut self, granted: Box<Upgrade>, early: Vec<u8>) -> Result<(), NotOpened> {
        let Socket::Tcp(stream) = self.wire.take_socket() else {
            return Err(NotOpened::Refused("leaf nodes come over TCP"));
        };
        let handed = LeafHandover {
            stream: stream.into_std()?,
            records: self.wire.layers.get_mut().records.take(),
            peer: std::mem::take(&mut self.peer),
            granted,
            early,
        };
        if let Some(shards) = self.runtime.common.shards.get() {
            // A shard that has ended drops the connection.
            let _ = shards[0].send(Command::Serve {
                transport: Transport::Wire(
                    Incoming::LeafHandover(Box::new(handed)),
                    Listener::Leafs,
                ),
                cid: self.cid,
                is_full: false,
                arrival: None,
            });
        }
        Err(NotOpened::HandedOver)
    }

    /// Continues after the upgrade was granted. `early` are the bytes after the request.
    async fn granted(&mut self, granted: &Upgrade, early: Vec<u8>) -> Result<(), NotOpened> {
        self.begin_frames(granted, early);
        match granted.is_leaf && granted.compression == Compression::Off {
            true => self.agree_on_compression().await,
            false => Ok(()),
        }
    }

    /// Starts WebSocket framing. `early` are the bytes of frames that have arrived.
    fn begin_frames(&mut self, agreed: &Upgrade, early: Vec<u8>) {
        let mut payload_bytes_max = self.runtime.config().limits.payload_bytes_max;
        if agreed.is_mqtt {
            // An MQTT message in a frame includes its packet header.
            payload_bytes_max = payload_bytes_max.saturating_add(CONNECT_BYTES_MAX);
        }
        if agreed.is_leaf {
            // Another server may put any number of messages into one frame.
            payload_bytes_max = MESSAGE_BYTES_MAX;
        }
        let frames = Frames::new(agreed, payload_bytes_max, early);
        self.wire.layers.get_mut().frames = Some(Box::new(frames));
        self.peer.kind = match (agreed.is_mqtt, agreed.is_leaf) {
            (true, _) => ConnectionKind::MqttWebSocket,
            (false, true) => ConnectionKind::LeafnodeWebSocket,
            (false, false) => ConnectionKind::WebSocket,
        };
        self.peer.cookies = agreed.cookies.clone();
        // Any client may send this header, so its address is used for logs only. Access rules use the address
        // of the socket.
        self.forwarded_for = agreed.forwarded_for;
    }
}

/// Largest number of bytes that are read to recognize TLS.
const FIRST_BYTES: usize = 4 * 1024;
/// The beginning of a leaf node's request for compression.
const COMPRESSION_REQUEST: &[u8] = b"INFO ";
