//! A client that sends and parses protocol lines itself over a blocking socket, and a server for tests.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::time::Duration;

use fanline_server::{Handle, Limits, Options, Server};

/// Time limit after which a test fails instead of hanging.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits until a condition holds. `what` names the condition in the failure message.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < WAIT_MAX,
            "{what}: not within {WAIT_MAX:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

const CONNECT: &str = "CONNECT {\"verbose\":false,\"pedantic\":false,\"protocol\":1,\
    \"headers\":true,\"no_responders\":true,\"lang\":\"test\",\"version\":\"0\"}\r\n";

/// The numbers of shards with which tests are run.
pub(crate) const SHARD_COUNTS: [usize; 3] = [1, 2, 4];

/// A server that stops with the test.
pub(crate) struct TestServer {
    pub(crate) handle: Handle,
}

impl TestServer {
    pub(crate) fn start(shards: usize) -> Self {
        TestServer::with_limits(shards, Limits::default())
    }

    pub(crate) fn with_limits(shards: usize, limits: Limits) -> Self {
        TestServer::with(Options {
            limits,
            ..options(shards)
        })
    }

    pub(crate) fn with(options: Options) -> Self {
        let handle = Server::start(options).expect("the server starts");
        TestServer { handle }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.handle.addresses().clients
    }

    /// Returns a connected client that has read its INFO.
    pub(crate) fn client(&self) -> RawClient {
        RawClient::connect(self.address())
    }

    /// Returns this many clients. With as many clients as shards, each shard has one of them, because
    /// connections are assigned to the shard with the fewest.
    pub(crate) fn clients(&self, count: usize) -> Vec<RawClient> {
        (0..count).map(|_| self.client()).collect()
    }

    /// Waits until the server has stopped, for any reason.
    pub(crate) fn wait(&self) {
        block_on(async {
            let stopped = tokio::time::timeout(WAIT_MAX, self.handle.wait());
            stopped.await.expect("the server stops");
        });
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

/// Returns the options of a server on a free port.
pub(crate) fn options(shards: usize) -> Options {
    Options {
        port: 0,
        shards: NonZeroUsize::new(shards),
        ..Options::default()
    }
}

/// Runs a future.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) sid: String,
    pub(crate) reply: Option<String>,
    pub(crate) payload: Vec<u8>,
}

/// A message or another protocol line from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Message(Message),
    /// A line without its end.
    Line(String),
}

/// A connection, over TCP or another stream.
pub(crate) struct RawClient<S = TcpStream> {
    pub(crate) stream: S,
    seen: Vec<u8>,
    taken: usize,
}

impl RawClient {
    /// Opens a connection without sending anything.
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
        stream.set_write_timeout(Some(WAIT_MAX)).expect("a socket");
        RawClient::over(stream)
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        let mut client = RawClient::open(address);
        client.expect_info();
        client.send(CONNECT);
        client.settle();
        // The server sends another INFO after the first PONG.
        client.expect_info();
        client
    }
}

impl<S: Read + Write> RawClient<S> {
    /// Wraps a stream without sending anything.
    pub(crate) fn over(stream: S) -> Self {
        RawClient {
            stream,
            seen: Vec::new(),
            taken: 0,
        }
    }

    /// Reads the INFO that starts every connection.
    pub(crate) fn expect_info(&mut self) -> String {
        let line = self.line();
        assert!(line.starts_with("INFO {"), "{line}");
        line
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.stream.write_all(bytes.as_ref());
        sent.and_then(|()| self.stream.flush())
            .expect("the server reads");
    }

    pub(crate) fn publish(&mut self, subject: &str, payload: impl AsRef<[u8]>) {
        self.send(publish_frame(subject, payload.as_ref()));
    }

    /// Subscribes, and waits until the server has processed the subscription.
    pub(crate) fn subscribe(&mut self, subject: &str, sid: &str) {
        self.send(format!("SUB {subject} {sid}\r\n"));
        self.settle();
    }

    /// Pings, and returns the messages before the PONG.
    pub(crate) fn settle(&mut self) -> Vec<Message> {
        self.send("PING\r\n");
        self.until_pong()
    }

    /// Returns the messages before the next PONG.
    pub(crate) fn until_pong(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            match self.next() {
                Some(Received::Message(message)) => messages.push(message),
                Some(Received::Line(line)) if line == "PONG" => return messages,
                Some(Received::Line(line)) if line == "PING" || line.starts_with("INFO ") => {}
                other => panic!("PONG was expected, not {other:?}"),
            }
        }
    }

    /// Returns the next message, and skips other lines.
    pub(crate) fn message(&mut self) -> Message {
        loop {
            match self.next() {
                Some(Received::Message(message)) => return message,
                Some(Received::Line(line)) if line == "PING" || line.starts_with("INFO ") => {}
                other => panic!("a message was expected, not {other:?}"),
            }
        }
    }

    /// Returns the next line, which must exist.
    pub(crate) fn line(&mut self) -> String {
        match self.next() {
            Some(Received::Line(line)) => line,
            other => panic!("a line was expected, not {other:?}"),
        }
    }

    /// Reads until the connection ends, also by a reset. Returns the lines, without messages.
    pub(crate) fn lines_to_end(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(received) = self.next() {
            if let Received::Line(line) = received {
                lines.push(line);
            }
        }
        lines
    }

    /// Returns the next message or line. Returns `None` at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<Received> {
        let line = self.take_line()?;
        let words: Vec<&str> = line.split(' ').collect();
        let (subject, sid, reply, headers, total) = match words[..] {
            ["MSG", subject, sid, total] => (subject, sid, None, "0", total),
            ["MSG", subject, sid, reply, total] => (subject, sid, Some(reply), "0", total),
            ["HMSG", subject, sid, headers, total] => (subject, sid, None, headers, total),
            ["HMSG", subject, sid, reply, headers, total] => {
                (subject, sid, Some(reply), headers, total)
            }
            _ => return Some(Received::Line(line)),
        };
        let size = |word: &str| word.parse::<usize>().expect("a size");
        let body = self.take(size(total) + 2)?;
        assert!(body.ends_with(b"\r\n"), "{line}");
        Some(Received::Message(Message {
            subject: subject.into(),
            sid: sid.into(),
            reply: reply.map(Into::into),
            payload: body[size(headers)..size(total)].to_vec(),
        }))
    }

    /// Releases the read buffer. All received bytes must have been consumed.
    #[cfg(target_os = "linux")]
    pub(crate) fn forget_buffer(&mut self) {
        assert_eq!(self.taken, self.seen.len());
        (self.seen, self.taken) = (Vec::new(), 0);
    }

    fn take_line(&mut self) -> Option<String> {
        let mut scanned = self.taken;
        loop {
            let end = self.seen[scanned..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = self.take(scanned + end + 1 - self.taken)?;
                let line = line.strip_suffix(b"\r\n").expect("lines end with CRLF");
                return Some(String::from_utf8(line.to_vec()).expect("text"));
            }
            scanned = self.seen.len();
            let before = self.taken;
            if !self.read_more() {
                return None;
            }
            // A read moves unconsumed bytes to the front.
            scanned -= before - self.taken;
        }
    }

    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.seen.len() - self.taken < bytes {
            if !self.read_more() {
                return None;
            }
        }
        self.taken += bytes;
        Some(self.seen[self.taken - bytes..self.taken].to_vec())
    }

    /// Reads more bytes. Returns false at the end of the stream.
    fn read_more(&mut self) -> bool {
        self.seen.drain(..self.taken);
        self.taken = 0;
        let mut room = [0; 64 * 1024];
        match self.stream.read(&mut room) {
            Ok(read) => {
                self.seen.extend_from_slice(&room[..read]);
                read > 0
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            // TLS reports this error if the peer sends no close_notify.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => panic!("nothing came: {error}"),
        }
    }
}

pub(crate) fn publish_frame(subject: &str, payload: &[u8]) -> Vec<u8> {
    let mut frame = format!("PUB {subject} {}\r\n", payload.len()).into_bytes();
    frame.extend_from_slice(payload);
    frame.extend_from_slice(b"\r\n");
    frame
}
