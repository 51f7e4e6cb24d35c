//! Effects of a panic: the connection closes, or the server stops if the shard may be half changed.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use fanline_engine::Peer;
use fanline_engine::auth::ConnectionKind;
use tokio::io::{AsyncRead, DuplexStream, ReadBuf, ReadHalf};
use tokio::time::timeout;

use super::Runtime;
use super::connection::serve;
use super::link::{Link, Writer};
use crate::client::{Client, ConnectOptions};
use crate::ipc::Command;
use crate::server::Handle;
use crate::wire::Input;
use crate::{Options, Server};

const TIME_LIMIT: Duration = Duration::from_secs(20);
/// The client's bytes that trigger the panic.
const TRIGGER: &[u8] = b"PUB panic 0";

/// Reads like any other input until it meets the trigger.
struct Panicking {
    read: ReadHalf<DuplexStream>,
    panics: Box<dyn Fn()>,
}

impl AsyncRead for Panicking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.read).poll_read(context, buffer);
        let new = &buffer.filled()[before..];
        if new.windows(TRIGGER.len()).any(|part| part == TRIGGER) {
            (self.panics)();
        }
        outcome
    }
}

impl Input for Panicking {}

fn start() -> Handle {
    let options = Options {
        port: 0,
        shards: 1.try_into().ok(),
        ..Options::default()
    };
    Server::start(options).expect("the server starts")
}

/// Returns a client whose connection task calls `panics` on the trigger.
async fn client(server: &Handle, panics: fn(&Rc<Runtime>)) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let run = move |runtime: &Rc<Runtime>| {
        let runtime = Rc::clone(runtime);
        tokio::task::spawn_local(async move {
            let (read, write) = tokio::io::split(theirs);
            let link = Link::new(Writer::InProcess(write.into()), "panicking".into());
            let on_it = Rc::clone(&runtime);
            let read = Panicking {
                read,
                panics: Box::new(move || panics(&on_it)),
            };
            let peer = Peer {
                kind: ConnectionKind::InProcess,
                ..Peer::default()
            };
            serve(&runtime, read, link, peer, 1_000, false).await;
        });
    };
    let run = Command::Run(Box::new(run));
    assert!(server.shared.shards[0].send(run).is_ok());
    let options = ConnectOptions::default();
    Client::over(ours, &options).await.expect("connected")
}

/// Regression: a task that panicked outside of the handshake left its session behind, with the subscriptions
/// and the socket.
#[tokio::test]
async fn panic_outside_the_shard_closes_only_its_connection() {
    let server = start();
    let unlucky = client(&server, |_| panic!("in a frame")).await;
    let subscription = unlucky.subscribe("wanted").await.expect("subscribed");
    unlucky.flush().await.expect("answered");
    let other = server.client().await.expect("connected");
    unlucky.publish("panic", "").await.expect("sent");
    let closed = timeout(TIME_LIMIT, unlucky.closed()).await;
    closed.expect("it is closed");
    drop(subscription);
    // The session of the closed connection is gone, with its subscriptions.
    let reply = other.request("wanted", "", TIME_LIMIT).await;
    let error = reply.expect_err("nobody is subscribed");
    assert!(error.to_string().contains("no responders"), "{error}");
    assert!(!server.has_panicked());
    server.shutdown();
    timeout(TIME_LIMIT, server.wait()).await.expect("it stops");
}

/// Regression: other connections continued with the state that the panic had left.
#[tokio::test]
async fn panic_while_the_shard_is_borrowed_stops_the_server() {
    let server = start();
    let panics: [fn(&Rc<Runtime>); 2] = [
        |runtime| {
            let _shard = runtime.engine.borrow_mut();
            panic!("in the shard");
        },
        |runtime| {
            runtime.engine.borrow_mut();
            panic!("after the shard");
        },
    ];
    let harmless = client(&server, panics[1]).await;
    harmless.publish("panic", "").await.expect("sent");
    let closed = timeout(TIME_LIMIT, harmless.closed()).await;
    closed.expect("it is closed");
    assert!(!server.has_panicked());
    let unlucky = client(&server, panics[0]).await;
    let other = server.client().await.expect("connected");
    unlucky.publish("panic", "").await.expect("sent");
    timeout(TIME_LIMIT, server.wait()).await.expect("it stops");
    assert!(server.has_panicked());
    timeout(TIME_LIMIT, other.closed())
        .await
        .expect("it is closed");
}
