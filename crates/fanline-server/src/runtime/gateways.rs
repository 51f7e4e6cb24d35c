//! The connections of gateways.

use std::io;
use std::rc::Rc;

use fanline_engine::auth::ConnectionKind;
use fanline_engine::gateway::{GatewayDial, GatewayEnded};
use fanline_engine::{Ended, Peer};
use tokio::net::TcpStream;
use tracing::{error, info};

use super::Runtime;
use super::connection::{peer_at, serve_session};
use super::dialled::open_dialled_route;
use super::link::{Link, Writer};
use super::opening::Opened;
use crate::gateway::DialledGateway;
use crate::ipc::GatewayCommand;
use crate::wire::{Layers, Socket, Wire, WireReader, prepare_tcp};

/// Performs a command about gateways.
pub(super) fn apply(runtime: &Runtime, command: GatewayCommand) {
    match command {
        GatewayCommand::Status { with_filters, to } => {
            drop(to.send(runtime.engine.borrow().gateways(with_filters)));
        }
        GatewayCommand::SetKnown(known) => {
            runtime.engine.borrow_mut().set_known_gateways(known);
            runtime.flush();
        }
    }
}

/// Serves an accepted gateway connection after the handshake of TLS.
pub(super) async fn serve_accepted(runtime: &Rc<Runtime>, opened: Opened, cid: u64) {
    let Opened {
        wire, peer, name, ..
    } = opened;
    info!("{name} - Processing inbound gateway connection");
    serve(runtime, wire, peer, name, (None, cid)).await;
}

/// Serves a dialed gateway connection. Reports its end to the task that dialed it.
pub(super) async fn serve_dialed(runtime: &Rc<Runtime>, dialled: DialledGateway, cid: u64) {
    let DialledGateway {
        stream,
        dial,
        host,
        done,
    } = dialled;
    let ended = open_and_serve(runtime, stream, (dial, &host), cid).await;
    let ended = ended.ok().flatten().and_then(|ended| ended.gateway);
    let ended = ended.map_or_else(GatewayEnded::default, |ended| *ended);
    // The send fails if the dialing task has stopped.
    let _ = done.send(ended);
}

async fn open_and_serve(
    runtime: &Rc<Runtime>,
    stream: std::net::TcpStream,
    (dial, host): (GatewayDial, &str),
    cid: u64,
) -> io::Result<Option<Ended>> {
    let address = stream.peer_addr()?;
    let name = format!("{address} - gid:{cid}");
    let peer = Peer {
        kind: ConnectionKind::Gateway,
        ..peer_at(address)
    };
    info!(
        "{name} - Creating outbound gateway connection to {:?}",
        dial.gateway
    );
    let wire = match &runtime.tls().gateways {
        None => {
            prepare_tcp(&stream)?;
            let socket = Socket::Tcp(TcpStream::from_std(stream)?);
            Wire::new(socket, &runtime.scratch, Layers::default())
        }
        Some(tls) => match open_dialled_route(runtime, stream, tls, host).await {
            Ok(wire) => wire,
            Err(error) => {
                error!("{name} - TLS gateway handshake error: {error}");
                return Ok(None);
            }
        },
    };
    Ok(serve(runtime, wire, peer, name, (Some(dial), cid)).await)
}

/// Serves a session. Returns facts about its end.
async fn serve(
    runtime: &Rc<Runtime>,
    mut wire: Wire,
    peer: Peer,
    name: String,
    (dial, cid): (Option<GatewayDial>, u64),
) -> Option<Ended> {
    let open = || runtime.open_gateway(cid, peer, dial);
    if wire.layers.get_mut().records.is_none() {
        match wire.take_socket() {
            Socket::Tcp(stream) => {
                let (read, write) = stream.into_split();
                let link = Link::new(Writer::Tcp(write), name);
                return serve_session(runtime, read, link, open(), &[]).await;
            }
            socket => wire.socket = socket,
        }
    }
    wire.mark_server_link();
    let wire = Rc::new(wire);
    let link = Link::new(Writer::Wire(Rc::clone(&wire)), name);
    serve_session(runtime, WireReader(wire), link, open(), &[]).await
}
