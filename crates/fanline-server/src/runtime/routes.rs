//! The connections of routes: the lines of an accepted one up to INFO, which decide about the shard that serves
//! it, and its session.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use fanline_engine::Peer;
use fanline_engine::auth::ConnectionKind;
use fanline_engine::codec::route::parse::{RouteParsed, RouteVerb, parse_route};
use fanline_engine::codec::route::{ROUTE_LINE_BYTES_MAX, RouteInfo};
use fanline_engine::route::{Carries, RouteDial, RouteEnded};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::{debug, error, info};

use super::Runtime;
use super::connection::{peer_at, serve_session};
use super::dialled::open_dialled_route;
use super::link::{Link, Writer};
use super::opening::{NotOpened, Opened};
use crate::cluster::DialledRoute;
use crate::ipc::{Command, GreetedRoute, Transport};
use crate::wire::{Input, Layers, Socket, Wire, WireReader, prepare_tcp};

/// Serves an accepted route after the handshake of TLS, or passes it to the shard that serves what it carries.
pub(super) async fn serve_accepted(runtime: &Rc<Runtime>, opened: Opened, cid: u64) {
    let Opened {
        mut wire,
        peer,
        name,
        ..
    } = opened;
    info!("{name} - Route connection created");
    let greeted_at = runtime.now();
    let (received, carries) = match greet(runtime, &wire).await {
        Ok(greeted) => greeted,
        Err(error) => return debug!("{name} - was not opened: {error}"),
    };
    let Socket::Tcp(stream) = wire.take_socket() else {
        return;
    };
    let Ok(stream) = stream.into_std() else {
        return;
    };
    let greeted = GreetedRoute {
        stream,
        records: wire.layers.get_mut().records.take(),
        peer: Peer {
            is_greeted: true,
            ..peer
        },
        name,
        greeted_at,
        received,
    };
    let settings = &runtime.config().routes;
    let home = carries.and_then(|carries| Some(settings.as_ref()?.shard_of(&carries)));
    let home = home.map_or(runtime.index, usize::from);
    if home == runtime.index {
        return serve_greeted(runtime, greeted, cid).await;
    }
    if let Some(shards) = runtime.common.shards.get() {
        // A shard that has ended drops the connection.
        let _ = shards[home].send(Command::Serve {
            transport: Transport::GreetedRoute(greeted.into()),
            cid,
            is_full: false,
            arrival: None,
        });
    }
}

/// Sends INFO, and reads up to the dialer's INFO. Returns the input, and what the route is to carry. The session
/// handles any other input, and a dialer that is late.
async fn greet(runtime: &Runtime, wire: &Wire) -> Result<(Vec<u8>, Option<Carries>), NotOpened> {
    let greeting = runtime.engine.borrow().route_greeting();
    wire.send(&greeting).await?;
    let mut received = Vec::new();
    let config = runtime.config();
    let time = config
        .routes
        .as_ref()
        .map_or(Duration::ZERO, |own| own.auth_timeout);
    let info = timeout(time, read_info(runtime, wire, &mut received)).await;
    let info = info.unwrap_or(Ok(None))?;
    Ok((received, info.map(|info| info.carries())))
}

/// The next step of a handshake.
enum Step {
    Continue(usize),
    Answer(Range<usize>),
    Read,
    Done(Option<RouteInfo>),
}

/// Reads until INFO has arrived, and responds to pings. Returns `None` if the dialer sends something else.
async fn read_info(
    runtime: &Runtime,
    wire: &Wire,
    received: &mut Vec<u8>,
) -> io::Result<Option<RouteInfo>> {
    let mut at = 0;
    loop {
        let admits = |json: &[u8]| runtime.engine.borrow().admits_route(json);
        let step = match parse_route(&received[at..], false) {
            RouteParsed::Verb(RouteVerb::Connect(json), taken) if at == 0 && admits(json) => {
                Step::Continue(taken)
            }
            RouteParsed::Verb(RouteVerb::Ping, taken) if at > 0 => Step::Answer(at..at + taken),
            RouteParsed::Verb(RouteVerb::Info(json), _) if at > 0 => {
                Step::Done(RouteInfo::parse(json))
            }
            RouteParsed::Partial { .. } if received.len() <= ROUTE_LINE_BYTES_MAX => Step::Read,
            _ => Step::Done(None),
        };
        match step {
            Step::Continue(taken) => at += taken,
            Step::Answer(ping) => {
                received.drain(ping);
                wire.send(b"PONG\r\n").await?;
            }
            Step::Read => {
                if !wire.read_more(received).await? {
                    return Ok(None);
                }
            }
            Step::Done(info) => return Ok(info),
        }
    }
}

/// Serves an accepted route whose INFO has arrived.
pub(super) async fn serve_greeted(runtime: &Rc<Runtime>, greeted: GreetedRoute, cid: u64) {
    let GreetedRoute {
        stream,
        records,
        peer,
        name,
        greeted_at,
        received,
    } = greeted;
    let Ok(stream) = TcpStream::from_std(stream) else {
        return;
    };
    if records.is_none() {
        let (read, write) = stream.into_split();
        let link = Link::new(Writer::Tcp(write), name);
        let id = runtime.open_route(cid, peer, None, greeted_at);
        serve_session(runtime, read, link, id, &received).await;
        return;
    }
    let layers = Layers {
        records,
        unread: received,
        ..Layers::default()
    };
    let mut wire = Wire::new(Socket::Tcp(stream), &runtime.scratch, layers);
    wire.mark_server_link();
    let wire = Rc::new(wire);
    let link = Link::new(Writer::Wire(Rc::clone(&wire)), name);
    let id = runtime.open_route(cid, peer, None, greeted_at);
    serve_session(runtime, WireReader(wire), link, id, &[]).await;
}

/// Serves a dialed route. Reports its end to the task that dialed it.
pub(super) async fn serve_dialed(runtime: &Rc<Runtime>, dialled: DialledRoute, cid: u64) {
    let DialledRoute {
        stream,
        dial,
        host,
        done,
    } = dialled;
    let ended = open_and_serve(runtime, stream, (dial, &host), cid).await;
    // The send fails if the dialing task has stopped.
    let _ = done.send(ended.unwrap_or_default());
}

async fn open_and_serve(
    runtime: &Rc<Runtime>,
    stream: std::net::TcpStream,
    (dial, host): (RouteDial, &str),
    cid: u64,
) -> io::Result<RouteEnded> {
    let address = stream.peer_addr()?;
    let name = format!("{address} - rid:{cid}");
    let peer = Peer {
        kind: ConnectionKind::Route,
        ..peer_at(address)
    };
    let Some(tls) = &runtime.tls().routes else {
        prepare_tcp(&stream)?;
        let (read, write) = TcpStream::from_std(stream)?.into_split();
        let link = Link::new(Writer::Tcp(write), name);
        return Ok(serve_open(runtime, read, link, (peer, dial), cid).await);
    };
    let wire = match open_dialled_route(runtime, stream, tls, host).await {
        Ok(wire) => Rc::new(wire),
        Err(error) => {
            error!("{name} - TLS route handshake error: {error}");
            return Ok(RouteEnded::default());
        }
    };
    let link = Link::new(Writer::Wire(Rc::clone(&wire)), name);
    Ok(serve_open(runtime, WireReader(wire), link, (peer, dial), cid).await)
}

/// Serves a dialed route after the handshake of TLS. Returns facts about its end.
async fn serve_open(
    runtime: &Rc<Runtime>,
    read: impl Input,
    link: Link,
    (peer, dial): (Peer, RouteDial),
    cid: u64,
) -> RouteEnded {
    info!("{} - Route connection created", link.name());
    let id = runtime.open_route(cid, peer, Some(dial), runtime.now());
    let ended = serve_session(runtime, read, link, id, &[]).await;
    let ended = ended.and_then(|ended| ended.route);
    ended.map_or_else(RouteEnded::default, |ended| *ended)
}
