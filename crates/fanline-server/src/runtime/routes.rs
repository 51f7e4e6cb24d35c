//! The connections of routes: their lines up to INFO, which agree on compression and decide about the shard, and
//! their sessions.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use fanline_engine::auth::ConnectionKind;
use fanline_engine::codec::route::parse::{RouteParsed, RouteVerb, parse_route};
use fanline_engine::codec::route::{ROUTE_LINE_BYTES_MAX, RouteInfo};
use fanline_engine::route::{Compressed, RouteDial, RouteEnded};
use fanline_engine::{Ended, Peer};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{debug, error, info};

use super::Runtime;
use super::connection::{peer_at, serve_session};
use super::dialled::open_dialled_route;
use super::link::{Link, Writer};
use super::opening::Opened;
use crate::cluster::DialledRoute;
use crate::ipc::{Command, GreetedRoute, RouteChange, Transport};
use crate::wire::{Layers, S2Layer, Socket, Wire, WireReader, prepare_tcp};

/// A route before its session.
struct Greeting<'a> {
    runtime: &'a Rc<Runtime>,
    wire: Wire,
    peer: Peer,
    /// The connection's name in logs.
    name: String,
    dial: Option<RouteDial>,
    begun_at: Duration,
    /// The input for the session.
    received: Vec<u8>,
    compressed: Option<Compressed>,
}

/// The next step of a greeting.
enum Step {
    Skip(usize),
    Answer(Range<usize>),
    Read,
    Agree(Box<RouteInfo>, Range<usize>),
    End,
}

impl<'a> Greeting<'a> {
    fn new(
        runtime: &'a Rc<Runtime>,
        wire: Wire,
        peer: Peer,
        name: String,
        dial: Option<RouteDial>,
    ) -> Self {
        info!("{name} - Route connection created");
        Greeting {
            runtime,
            wire,
            peer: Peer {
                is_greeted: true,
                ..peer
            },
            name,
            dial,
            begun_at: runtime.now(),
            received: Vec::new(),
            compressed: None,
        }
    }

    /// Sends the first line, and reads up to the INFO of the other side. Returns that INFO. If the other side
    /// sends anything else or is late, the session handles it.
    async fn perform(&mut self) -> io::Result<Option<RouteInfo>> {
        let dial = self.dial.as_ref();
        let line = self.runtime.engine.borrow().route_greeting(dial);
        self.wire.send(&line).await?;
        let config = self.runtime.config();
        let time = (config.routes.as_ref()).map_or(Duration::ZERO, |own| own.auth_timeout);
        timeout(time, self.read_info()).await.unwrap_or(Ok(None))
    }

    async fn read_info(&mut self) -> io::Result<Option<RouteInfo>> {
        let mut at = 0;
        loop {
            match self.next_step(at) {
                Step::Skip(taken) => at += taken,
                Step::Answer(ping) => {
                    self.received.drain(ping);
                    self.wire.send(b"PONG\r\n").await?;
                }
                Step::Read => {
                    if !self.wire.read_more(&mut self.received).await? {
                        return Ok(None);
                    }
                }
                Step::Agree(info, line) => {
                    if !self.agree(&info, line).await? {
                        return Ok(Some(*info));
                    }
                }
                Step::End => return Ok(None),
            }
        }
    }

    /// Returns the next step; `at` is the offset of the next line. A dialer begins with CONNECT.
    fn next_step(&self, at: usize) -> Step {
        let has_connected = self.dial.is_some() || at > 0;
        let engine = &self.runtime.engine;
        let admits = |json: &[u8]| engine.borrow().admits_route(&self.peer, json);
        match parse_route(&self.received[at..], false) {
            RouteParsed::Verb(RouteVerb::Connect(json), taken)
                if !has_connected && admits(json) =>
            {
                Step::Skip(taken)
            }
            RouteParsed::Verb(RouteVerb::Ping, taken) if has_connected => {
                Step::Answer(at..at + taken)
            }
            RouteParsed::Verb(RouteVerb::Info(json), taken) if has_connected => {
                let info = RouteInfo::parse(json);
                info.map_or(Step::End, |info| Step::Agree(info.into(), at..at + taken))
            }
            RouteParsed::Partial { .. } if self.received.len() <= ROUTE_LINE_BYTES_MAX => {
                Step::Read
            }
            _ => Step::End,
        }
    }

    /// Agrees on compression with a side that has sent this INFO. Returns false if the connection is not going
    /// to be compressed, or is compressed already. Otherwise, another INFO follows.
    async fn agree(&mut self, info: &RouteInfo, line: Range<usize>) -> io::Result<bool> {
        let config = self.runtime.config();
        let ours = config
            .routes
            .as_ref()
            .and_then(|own| own.compression.as_ref());
        let by = ours.filter(|_| self.compressed.is_none());
        let Some(by) = by.and_then(|ours| ours.agree(&info.compression)) else {
            return Ok(false);
        };
        let dial = self.dial.as_ref();
        let own = self.runtime.engine.borrow().route_compression(dial, &by);
        if dial.is_some() {
            self.wire.send(&own).await?;
        }
        let rtt = self.runtime.now().saturating_sub(self.begun_at);
        let mut s2 = S2Layer::new(by.level(rtt));
        // The other side sends nothing between its INFO and compressed bytes.
        s2.push(&self.received[line.end..]);
        self.received.truncate(line.start);
        self.wire.layers.get_mut().s2 = Some(Box::new(s2));
        if dial.is_none() {
            self.wire.send(&own).await?;
        }
        self.compressed = Some(Compressed { by, rtt });
        Ok(true)
    }

    /// Serves the session. Returns facts about its end.
    async fn serve(self, cid: u64) -> Option<Ended> {
        let Greeting {
            runtime,
            mut wire,
            received,
            name,
            ..
        } = self;
        let (dial, begun_at) = (self.dial, self.begun_at);
        let open = || runtime.open_route(cid, self.peer, dial, self.compressed, begun_at);
        let layers = wire.layers.get_mut();
        if layers.records.is_none() && layers.s2.is_none() {
            match wire.take_socket() {
                Socket::Tcp(stream) => {
                    let (read, write) = stream.into_split();
                    let link = Link::new(Writer::Tcp(write), name);
                    return serve_session(runtime, read, link, open(), &received).await;
                }
                socket => wire.socket = socket,
            }
        }
        wire.layers.get_mut().unread = received;
        wire.mark_server_link();
        let wire = Rc::new(wire);
        let link = Link::new(Writer::Wire(Rc::clone(&wire)), name);
        serve_session(runtime, WireReader(wire), link, open(), &[]).await
    }

    /// Passes the connection to another shard.
    fn pass_on(mut self, shard: usize, cid: u64) {
        let Socket::Tcp(stream) = self.wire.take_socket() else {
            return;
        };
        let Ok(stream) = stream.into_std() else {
            return;
        };
        let layers = self.wire.layers.get_mut();
        let greeted = GreetedRoute {
            stream,
            records: layers.records.take(),
            s2: layers.s2.take(),
            peer: self.peer,
            name: self.name,
            begun_at: self.begun_at,
            received: self.received,
            compressed: self.compressed,
        };
        if let Some(shards) = self.runtime.common.shards.get() {
            // A shard that has ended drops the connection.
            let _ = shards[shard].send(Command::Serve {
                transport: Transport::GreetedRoute(greeted.into()),
                cid,
                is_full: false,
                arrival: None,
            });
        }
    }
}

/// Serves an accepted route after the handshake of TLS, or passes it to the shard that serves what it carries.
pub(super) async fn serve_accepted(runtime: &Rc<Runtime>, opened: Opened, cid: u64) {
    let Opened {
        wire, peer, name, ..
    } = opened;
    let mut greeting = Greeting::new(runtime, wire, peer, name, None);
    let info = match greeting.perform().await {
        Ok(info) => info,
        Err(error) => return debug!("{} - was not opened: {error}", greeting.name),
    };
    let config = runtime.config();
    let home = info.and_then(|info| Some(config.routes.as_ref()?.shard_of(&info.carries())));
    match home.map_or(runtime.index, usize::from) {
        home if home == runtime.index => drop(greeting.serve(cid).await),
        home => greeting.pass_on(home, cid),
    }
}

/// Serves an accepted route that another shard has greeted.
pub(super) async fn serve_greeted(runtime: &Rc<Runtime>, greeted: GreetedRoute, cid: u64) {
    let Ok(stream) = TcpStream::from_std(greeted.stream) else {
        return;
    };
    let layers = Layers {
        records: greeted.records,
        s2: greeted.s2,
        ..Layers::default()
    };
    let greeting = Greeting {
        runtime,
        wire: Wire::new(Socket::Tcp(stream), &runtime.scratch, layers),
        peer: greeted.peer,
        name: greeted.name,
        dial: None,
        begun_at: greeted.begun_at,
        received: greeted.received,
        compressed: greeted.compressed,
    };
    greeting.serve(cid).await;
}

/// Applies a change of routes.
pub(super) fn apply(runtime: &Runtime, change: RouteChange) {
    let mut engine = runtime.engine.borrow_mut();
    match change {
        RouteChange::Close(dial) => engine.end_routes(dial),
        RouteChange::AdoptName(name, is_generated) => {
            engine.adopt_cluster_name(&name, is_generated);
        }
    }
    drop(engine);
    runtime.settle(0);
    runtime.flush();
}

/// Serves a dialed route. Reports its end to the task that dialed it.
pub(super) async fn serve_dialed(runtime: &Rc<Runtime>, dialled: DialledRoute, cid: u64) {
    let DialledRoute {
        stream,
        dial,
        host,
        done,
    } = dialled;
    let ended = open_and_serve(runtime, stream, (dial, &host), &done, cid).await;
    let ended = ended.ok().flatten().and_then(|ended| ended.route);
    let ended = ended.map_or_else(RouteEnded::default, |ended| *ended);
    // The send fails if the dialing task has stopped.
    let _ = done.send(ended);
}

async fn open_and_serve(
    runtime: &Rc<Runtime>,
    stream: std::net::TcpStream,
    (dial, host): (RouteDial, &str),
    done: &oneshot::Sender<RouteEnded>,
    cid: u64,
) -> io::Result<Option<Ended>> {
    let address = stream.peer_addr()?;
    let name = format!("{address} - rid:{cid}");
    let peer = Peer {
        kind: ConnectionKind::Route,
        ..peer_at(address)
    };
    let wire = match &runtime.tls().routes {
        None => {
            prepare_tcp(&stream)?;
            let socket = Socket::Tcp(TcpStream::from_std(stream)?);
            Wire::new(socket, &runtime.scratch, Layers::default())
        }
        Some(tls) => match open_dialled_route(runtime, stream, tls, host).await {
            Ok(wire) => wire,
            Err(error) => {
                error!("{name} - TLS route handshake error: {error}");
                return Ok(None);
            }
        },
    };
    let mut greeting = Greeting::new(runtime, wire, peer, name, Some(dial));
    greeting.perform().await?;
    // A reload may have removed the address in the meantime.
    match done.is_closed() {
        true => Ok(None),
        false => Ok(greeting.serve(cid).await),
    }
}
