//! Three servers that replicate, and their streams.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::cluster::mesh::{self, Mesh, Plan, SERVERS};
use crate::comparison::site::Site;
use crate::generator::jetstream::Api;
use crate::servers::Program;
use crate::servers::process::Server;

/// Time limit for servers to form groups, for an election, and for replicas to catch up.
const LIMIT: Duration = Duration::from_secs(60);

/// Time limit of one request. Servers without a leader do not answer.
const REQUEST_LIMIT: Duration = Duration::from_secs(3);

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct Trio(Mesh);

impl Trio {
    /// Starts three servers in empty folders.
    pub(super) fn start(program: &Program, site: &Site) -> Result<Self> {
        Ok(Self(Plan::with_streams(program, site)?.start_all()?))
    }

    pub(super) fn servers(&self) -> &[Server] {
        &self.0.servers
    }

    pub(super) fn address(&self, number: usize) -> SocketAddr {
        self.0.address(number)
    }

    /// Creates a stream with three replicas, as soon as the servers can do it, and waits until all replicas are
    /// current. Returns the number of its leader.
    pub(super) fn create(&self, name: &str) -> Result<usize> {
        Client::open(self.address(0))?.create_stream(name)?;
        eventually(&format!("leader and replicas of {name}"), || {
            let api = Api::open_within(self.address(0), REQUEST_LIMIT)?;
            let info = api.ask(&format!("STREAM.INFO.{name}"), &Value::Null)?;
            let leader =
                (0..SERVERS).find(|number| info["cluster"]["leader"] == mesh::name(*number));
            let leader = leader.with_context(|| format!("no leader: {}", info["cluster"]))?;
            let replicas = info["cluster"]["replicas"].as_array();
            let mut behind = replicas.into_iter().flatten();
            let behind = behind.find(|replica| replica["current"] == false);
            ensure!(behind.is_none(), "a replica is not current: {behind:?}");
            Ok(leader)
        })
    }

    /// Ends a server with SIGKILL.
    pub(super) fn kill(&mut self, number: usize) {
        drop(self.0.servers.remove(number));
    }
}

/// A client that repeats its requests until servers can carry them out.
pub(super) struct Client {
    address: SocketAddr,
    api: Api,
}

impl Client {
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let api = Api::open_within(address, REQUEST_LIMIT)?;
        Ok(Self { address, api })
    }

    pub(super) fn create_stream(&mut self, name: &str) -> Result<()> {
        // Without `max_consumers`, nats-server allows 1,000.
        let config = json!({
            "name": name, "subjects": [format!("{name}.>")], "storage": "file", "num_replicas": SERVERS,
            "retention": "limits", "discard": "old", "max_age": 0, "max_msgs": -1, "max_bytes": -1,
            "max_consumers": 20_000,
        });
        self.create(&format!("STREAM.CREATE.{name}"), &config)
    }

    pub(super) fn create_consumer(&mut self, stream: &str, name: &str) -> Result<()> {
        let config = json!({"name": name, "durable_name": name, "ack_policy": "explicit"});
        let body = json!({"stream_name": stream, "config": config});
        self.create(&format!("CONSUMER.CREATE.{stream}.{name}"), &body)
    }

    /// Creates something. What exists already with the same configuration is no error.
    fn create(&mut self, endpoint: &str, config: &Value) -> Result<()> {
        eventually(endpoint, || {
            let answer = self.api.ask(endpoint, config);
            if answer.is_err() {
                // A late answer must not be taken for that of the next request.
                self.api = Api::open_within(self.address, REQUEST_LIMIT)?;
            }
            answer.map(drop)
        })
    }
}

/// Repeats an attempt until it succeeds.
pub(super) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if start.elapsed() > LIMIT => {
                return Err(error.context(format!("{what}: not after {} s", LIMIT.as_secs())));
            }
            Err(_) => thread::sleep(RETRY_INTERVAL),
        }
    }
}
