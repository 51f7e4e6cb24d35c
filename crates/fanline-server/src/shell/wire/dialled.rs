//! What happens on a connection to a hub before its session begins: INFO and TLS, whichever comes first.

use std::cell::RefCell;
use std::rc::Rc;

use fanline_engine::leaf::{LEAF_LINE_BYTES_MAX, LeafInfo};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::Shell;
use super::super::connection::prepare_tcp;
use super::opening::NotOpened;
use super::{Layers, Socket, Wire};
use crate::client::ServerAddress;
use crate::leaf::{Hub, shake_hands};

/// What is read at once of what the hub says first.
const INFO_READ_BYTES: usize = 8 * 1024;

/// Brings a connection to a hub to where its session begins; tells what the hub has said.
pub(in crate::shell) async fn open_dialled(
    shell: &Rc<Shell>,
    stream: std::net::TcpStream,
    hub: &Hub,
    address: &ServerAddress,
) -> Result<(Wire, LeafInfo), NotOpened> {
    prepare_tcp(&stream)?;
    let mut socket = Socket::Tcp(TcpStream::from_std(stream)?);
    let is_first = hub.begins_with_tls();
    if is_first {
        socket = encrypt(socket, hub, address).await?;
    }
    let said = timeout(hub.options.first_info_timeout, read_info(&socket)).await;
    let (info, early) = said.map_err(|_| NotOpened::Late("the first INFO"))??;
    if !info.is_of_leaf_port() {
        return Err(NotOpened::Refused("attempted to connect to wrong port"));
    }
    if !is_first && (info.tls_required || hub.wants_tls(address)) {
        socket = encrypt(socket, hub, address).await?;
    }
    let wire = Wire {
        socket,
        room: Rc::clone(&shell.room),
        layers: RefCell::new(Layers {
            early,
            ..Layers::default()
        }),
    };
    Ok((wire, info))
}

async fn encrypt(socket: Socket, hub: &Hub, address: &ServerAddress) -> Result<Socket, NotOpened> {
    let Socket::Tcp(stream) = socket else {
        return Ok(socket);
    };
    let stream = shake_hands(hub, address, stream).await;
    let stream = stream.map_err(NotOpened::Tls)?;
    Ok(Socket::Tls(RefCell::new(Box::new(stream))))
}

/// The first line, which has to be INFO, and what came behind it.
async fn read_info(socket: &Socket) -> Result<(LeafInfo, Vec<u8>), NotOpened> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            let rest = bytes.split_off(end + 1);
            let json = bytes.strip_prefix(b"INFO ").map(<[u8]>::trim_ascii);
            let info = json.and_then(LeafInfo::parse);
            let info = info.ok_or(NotOpened::Refused("its first line is no INFO"))?;
            return Ok((info, rest));
        }
        if bytes.len() > LEAF_LINE_BYTES_MAX {
            return Err(NotOpened::Refused("its first line does not end"));
        }
        if !socket.read_more(&mut bytes, INFO_READ_BYTES).await? {
            return Err(NotOpened::Refused("closed before it said anything"));
        }
    }
}
