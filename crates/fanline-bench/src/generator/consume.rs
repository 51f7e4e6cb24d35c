//! Consumers of a stream. They check that they receive all messages once and in order.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::connection::Connection;
use super::incoming::{Delivered, Incoming};
use super::jetstream::Api;

/// The subject to which all messages are delivered.
const INBOX: &str = "_INBOX.FanlineBenchConsumer00";

/// Number of messages that an ordered consumer requests in advance, as official clients do. When half of them
/// have arrived, it requests more.
const AHEAD: u64 = 500;

/// Number of messages that a durable consumer fetches with one request.
const FETCHED: u64 = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Messages are pushed with flow control, and not acknowledged.
    OrderedPush,
    /// Messages are pulled in advance, and not acknowledged.
    OrderedPull,
    /// A durable consumer fetches messages. It fetches again after all messages have arrived.
    Fetch {
        /// Whether each message is acknowledged before the next fetch.
        acks: bool,
    },
    /// The same, but no message is acknowledged, although all of them could be.
    FetchUnacked,
}

/// A connected client that is ready to consume a stream.
pub(crate) struct Consuming {
    address: SocketAddr,
    connection: Connection,
    stream: String,
    how: How,
}

impl Consuming {
    /// Connects, and creates a durable consumer if `how` needs one. An ordered consumer is created for each
    /// measurement.
    pub(crate) fn open(address: SocketAddr, stream: &str, how: How) -> Result<Self> {
        let connection = Connection::open(address)?;
        connection.subscribe(INBOX, None, 1)?;
        let consuming = Self {
            address,
            connection,
            stream: stream.to_owned(),
            how,
        };
        if let How::Fetch { .. } | How::FetchUnacked = how {
            consuming.create()?;
        }
        Ok(consuming)
    }

    fn name(&self) -> &'static str {
        match self.how {
            How::OrderedPush | How::OrderedPull => "ordered",
            How::Fetch { .. } | How::FetchUnacked => "durable",
        }
    }

    fn create(&self) -> Result<()> {
        let name = self.name();
        let mut config = json!({"name": name, "deliver_policy": "all", "replay_policy": "instant"});
        let more = match self.how {
            How::OrderedPush => json!({
                "ack_policy": "none", "max_deliver": 1, "mem_storage": true, "num_replicas": 1,
                "deliver_subject": INBOX, "flow_control": true,
                "idle_heartbeat": 5_000_000_000_u64, "inactive_threshold": 300_000_000_000_u64,
            }),
            How::OrderedPull => json!({
                "ack_policy": "none", "max_deliver": -1, "mem_storage": true, "num_replicas": 1,
                "inactive_threshold": 300_000_000_000_u64,
            }),
            How::Fetch { acks } => json!({
                "durable_name": name, "ack_policy": if acks { "explicit" } else { "none" },
            }),
            How::FetchUnacked => json!({
                "durable_name": name, "ack_policy": "explicit", "max_ack_pending": -1,
                "ack_wait": 3_600_000_000_000_u64,
            }),
        };
        merge(&mut config, more);
        let body = json!({"stream_name": self.stream, "config": config});
        let endpoint = format!("CONSUMER.CREATE.{}.{name}", self.stream);
        Api::open(self.address)?.ask(&endpoint, &body)?;
        Ok(())
    }

    /// Consumes all `messages` messages of the stream. Returns the time from the first request to the last
    /// message, or to the acknowledgement of the last message.
    pub(crate) fn consume(&self, messages: u64) -> Result<Duration> {
        let start = Instant::now();
        if let How::OrderedPush | How::OrderedPull = self.how {
            self.create()?;
        }
        let mut stream = self.connection.stream();
        let mut pulling = Pulling::new(self.how, &self.stream, self.name(), messages);
        pulling.begin(stream)?;
        let mut incoming = Incoming::new(stream);
        let mut received = 0;
        let mut out = Vec::new();
        while received < messages {
            incoming.read()?;
            while let Some(delivered) = incoming.next()? {
                if !delivered.headers.is_empty() {
                    answer_status(&delivered, &mut out)?;
                    continue;
                }
                received += 1;
                if received == messages {
                    ensure!(delivered.reply().ends_with(b".0"), "more was pending");
                }
                if self.how == (How::Fetch { acks: true }) {
                    acknowledge(delivered.reply(), &mut out);
                }
                pulling.count(&mut out);
            }
            stream.write_all(&out)?;
            out.clear();
        }
        self.connection.flush()?;
        if self.how == (How::Fetch { acks: true }) {
            self.wait_until_acknowledged()?;
        }
        Ok(start.elapsed())
    }

    fn wait_until_acknowledged(&self) -> Result<()> {
        let api = Api::open(self.address)?;
        let endpoint = format!("CONSUMER.INFO.{}.{}", self.stream, self.name());
        let deadline = Instant::now() + Duration::from_secs(5);
        while api.ask(&endpoint, &Value::Null)?["num_ack_pending"] != 0 {
            ensure!(Instant::now() < deadline, "acknowledgements were lost");
        }
        Ok(())
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn acknowledge(reply: &[u8], out: &mut Vec<u8>) {
    for part in [b"PUB ", reply, b" 4\r\n+ACK\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Answers a flow control request, which is a message of its own or part of a heartbeat. Any other status is
/// an error.
fn answer_status(status: &Delivered<'_>, out: &mut Vec<u8>) -> Result<()> {
    const STALLED: &[u8] = b"Nats-Consumer-Stalled: ";
    if !status.headers.starts_with(b"NATS/1.0 100") {
        bail!("status {}", String::from_utf8_lossy(status.headers));
    }
    let lines = status.headers.split(|byte| *byte == b'\n');
    let mut stalled = lines.filter_map(|line| line.strip_prefix(STALLED));
    let to = match stalled.next() {
        Some(to) => to.trim_ascii(),
        None => status.reply(),
    };
    if !to.is_empty() {
        for part in [b"PUB ", to, b" 0\r\n\r\n"] {
            out.extend_from_slice(part);
        }
    }
    Ok(())
}

/// The pull requests of a consumer: requests more messages before it runs out of them.
struct Pulling {
    how: How,
    /// A request for a number of messages: the protocol line and the payload.
    request: Vec<u8>,
    /// Number of requested messages that have not arrived.
    due: u64,
    /// Number of messages that were not requested yet.
    left: u64,
    per_request: u64,
    /// When at most this number of messages are due, more messages are requested.
    low: u64,
}

impl Pulling {
    fn new(how: How, stream: &str, consumer: &str, messages: u64) -> Self {
        let (per_request, low) = match how {
            How::OrderedPush => (0, 0),
            How::OrderedPull => (AHEAD / 2, AHEAD / 2),
            How::Fetch { .. } | How::FetchUnacked => (FETCHED, 0),
        };
        let body = json!({"batch": per_request, "expires": 30_000_000_000_u64}).to_string();
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let request = super::frames::request(&subject, INBOX, body.as_bytes());
        Self {
            how,
            request,
            due: 0,
            left: messages,
            per_request,
            low,
        }
    }

    fn begin(&mut self, mut stream: &TcpStream) -> Result<()> {
        let mut out = Vec::new();
        match self.how {
            How::OrderedPush => {}
            How::OrderedPull => {
                self.ask(&mut out);
                self.ask(&mut out);
            }
            How::Fetch { .. } | How::FetchUnacked => self.ask(&mut out),
        }
        stream.write_all(&out)?;
        Ok(())
    }

    /// Counts a received message, and requests more messages if necessary.
    fn count(&mut self, out: &mut Vec<u8>) {
        if self.how == How::OrderedPush {
            return;
        }
        self.due -= 1;
        if self.due == self.low && self.left > 0 {
            self.ask(out);
        }
    }

    fn ask(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.request);
        self.due += self.per_request;
        self.left = self.left.saturating_sub(self.per_request);
    }
}
