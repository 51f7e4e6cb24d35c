//! Handshakes with dialed servers before the session begins: with a hub proxy, TLS, WebSocket, INFO, and
//! compression, with a server of the cluster TLS.

use std::cell::RefCell;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fanline_engine::codec::leaf::{LEAF_LINE_BYTES_MAX, LeafInfo};
use fanline_engine::codec::s2::Level;
use fanline_engine::codec::websocket::{
    Compression, MESSAGE_BYTES_MAX, UpgradeRequest, UpgradeResponse,
};
use fanline_engine::leaf::{Agreed, Compressed};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::Runtime;
use super::opening::NotOpened;
use crate::identity::random_u64;
use crate::leaf::{Hub, LeafAddress, Proxy, tls_handshake};
use crate::tls::RouteTls;
use crate::wire::{Carrier, Frames, Layers, S2Layer, Socket, Wire, prepare_tcp};

/// Performs the handshake with a hub, through its proxy if it has one. Returns the hub's INFO and the agreed
/// compression.
pub(super) async fn open_dialled(
    runtime: &Rc<Runtime>,
    stream: std::net::TcpStream,
    hub: &Hub,
    address: &LeafAddress,
    reached_by: Instant,
) -> Result<(Wire, LeafInfo, Agreed), NotOpened> {
    prepare_tcp(&stream)?;
    let stream = TcpStream::from_std(stream)?;
    let socket = match &hub.proxy {
        None => Socket::Tcp(stream),
        Some(proxy) => {
            match timeout_at(reached_by, connect_through_proxy(proxy, stream, address)).await {
                Ok(connected) => connected.map_err(NotOpened::Unreached)?,
                Err(_) => return Err(NotOpened::Unreached(proxy.wrong("i/o timeout"))),
            }
        }
    };
    let mut wire = Wire::new(socket, &runtime.scratch, Layers::default());
    let time = hub.options.first_info_timeout;
    let mut is_clear = address.websocket_path.is_none();
    if let Some(path) = &address.websocket_path {
        if hub.wants_tls(address) {
            wire.encrypt(hub, address).await?;
        }
        let upgraded = timeout(time, wire.upgrade(hub, address, path)).await;
        upgraded.map_err(|_| NotOpened::Late("the upgrade to WebSocket"))??;
    } else if hub.begins_with_tls() {
        wire.encrypt(hub, address).await?;
        is_clear = false;
    }
    let received = timeout(time, wire.read_info()).await;
    let info = received.map_err(|_| NotOpened::Late("the first INFO"))??;
    if !info.is_of_leaf_port() {
        return Err(NotOpened::Refused("attempted to connect to wrong port"));
    }
    if is_clear && (info.tls_required || hub.wants_tls(address)) {
        wire.encrypt(hub, address).await?;
    }
    let agreed = timeout(time, wire.agree_on_compression(runtime, hub, &info)).await;
    let (again, agreed) = agreed.map_err(|_| NotOpened::Late("the compressed INFO"))??;
    wire.mark_server_link();
    wire.adapt_send_buffer();
    Ok((wire, again.unwrap_or(info), agreed))
}

/// Performs the handshake of TLS with a server of the cluster, whose certificate must be for `host`.
pub(super) async fn open_dialled_route(
    runtime: &Rc<Runtime>,
    stream: std::net::TcpStream,
    tls: &RouteTls,
    host: &str,
) -> Result<Wire, String> {
    let failed = |error: std::io::Error| error.to_string();
    prepare_tcp(&stream).map_err(failed)?;
    let stream = TcpStream::from_std(stream).map_err(failed)?;
    let stream = tls.connect(host, stream).await?;
    let socket = Socket::Tls(RefCell::new(Box::new(stream)));
    let mut wire = Wire::new(socket, &runtime.scratch, Layers::default());
    wire.mark_server_link();
    Ok(wire)
}

/// Connects to the hub through a proxy.
async fn connect_through_proxy(
    proxy: &Proxy,
    mut stream: TcpStream,
    address: &LeafAddress,
) -> Result<Socket, String> {
    if !proxy.is_tls() {
        proxy.open_tunnel(&mut stream, &address.server).await?;
        return Ok(Socket::Tcp(stream));
    }
    let mut tls_stream = proxy.tls_handshake(stream).await?;
    proxy.open_tunnel(&mut tls_stream, &address.server).await?;
    Ok(Socket::Tls(RefCell::new(Box::new(tls_stream))))
}

impl Wire {
    async fn encrypt(&mut self, hub: &Hub, address: &LeafAddress) -> Result<(), NotOpened> {
        let stream: Box<dyn Carrier> = match self.take_socket() {
            Socket::Tcp(stream) => Box::new(stream),
            // TLS to the proxy ends at the proxy, so TLS to the hub is a second layer within it.
            Socket::Tls(stream) => stream.into_inner(),
            _ => return Err(NotOpened::Refused("it is no connection to a hub")),
        };
        let stream = tls_handshake(hub, address, stream).await;
        self.socket = Socket::Tls(RefCell::new(Box::new(stream.map_err(NotOpened::Tls)?)));
        Ok(())
    }

    /// Requests the upgrade to WebSocket. All later bytes are in frames.
    async fn upgrade(
        &mut self,
        hub: &Hub,
        address: &LeafAddress,
        path: &str,
    ) -> Result<(), NotOpened> {
        let key: [u8; 16] = std::array::from_fn(|_| random_u64().to_le_bytes()[0]);
        let request = UpgradeRequest {
            host: address.server.host_and_port(),
            path: path.to_owned(),
            compression: hub.options.websocket_compression,
            no_masking: hub.options.websocket_no_masking,
            key: BASE64.encode(key),
        };
        self.send(request.text().as_bytes()).await?;
        let mut bytes = Vec::new();
        let granted = loop {
            match request.parse_response(&bytes) {
                UpgradeResponse::Granted(granted) => break granted,
                UpgradeResponse::Refused(why) => return Err(NotOpened::Declined(why)),
                UpgradeResponse::Partial => {}
            }
            if !self.read_more(&mut bytes).await? {
                return Err(NotOpened::Refused("closed before it was upgraded"));
            }
        };
        let early = bytes.split_off(granted.request_bytes);
        let frames = Frames::new(&granted, MESSAGE_BYTES_MAX, early);
        self.layers.get_mut().frames = Some(Box::new(frames));
        Ok(())
    }

    /// Agrees on compression if both sides want it. The hub then sends its INFO again.
    async fn agree_on_compression(
        &mut self,
        runtime: &Runtime,
        hub: &Hub,
        info: &LeafInfo,
    ) -> Result<(Option<LeafInfo>, Agreed), NotOpened> {
        let is_deflated = |frames: &Frames| frames.compression() == Compression::Deflate;
        let is_compressed = self
            .layers
            .get_mut()
            .frames
            .as_deref()
            .is_some_and(is_deflated);
        let by = hub.options.compression.agree(&info.compression);
        let Some(by) = by.filter(|_| !is_compressed) else {
            return Ok((None, Agreed::default()));
        };
        let requested_at = runtime.now();
        self.send(info.compression_request(by.name()).as_bytes())
            .await?;
        let layers = self.layers.get_mut();
        if !layers.unread.is_empty() {
            return Err(NotOpened::Refused("it goes on before it was answered"));
        }
        layers.s2 = Some(Box::new(S2Layer::new(Level::Uncompressed)));
        let again = self.read_info().await?;
        let rtt = runtime.now().saturating_sub(requested_at);
        self.set_level(by.level(rtt));
        let agreed = Agreed {
            greeted_at: None,
            compressed: Some(Compressed { by, rtt }),
        };
        Ok((Some(again), agreed))
    }

    /// Reads the next line, which must be INFO. Bytes after the line stay for later reads.
    async fn read_info(&mut self) -> Result<LeafInfo, NotOpened> {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.iter().position(|b| *b == b'\n') {
                self.layers.get_mut().unread = bytes.split_off(end + 1);
                let json = bytes.strip_prefix(b"INFO ").map(<[u8]>::trim_ascii);
                let info = json.and_then(LeafInfo::parse);
                return info.ok_or(NotOpened::Refused("its first line is no INFO"));
            }
            if bytes.len() > LEAF_LINE_BYTES_MAX {
                return Err(NotOpened::Refused("its first line does not end"));
            }
            if !self.read_more(&mut bytes).await? {
                return Err(NotOpened::Refused("closed before it said anything"));
            }
        }
    }
}
