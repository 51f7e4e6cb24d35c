//! The measurement of one row on one server.

use std::net::SocketAddr;
use std::path::Path;
use std::slice::from_ref;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::rows::{ASYNC, End, Items, Load, Publish, Recover, Storage};
use crate::comparison::cost::{Cost, SETTLE, WARM_UP};
use crate::comparison::site::{Site, disk_bytes};
use crate::generator::consume::{Consuming, How};
use crate::generator::jetstream::Api;
use crate::generator::window::{RequestSequence, Until, Window, is_message, is_stored};
use crate::generator::{Outcome, frames};
use crate::report::metric::{Metric, Sample};
use crate::servers::process::{OneCore, Server};
use crate::servers::{Program, System};

const STREAM: &str = "bench";
const SUBJECT: &str = "bench.a";
const BUCKET: &str = "KV_bench";
const KEYS: usize = 1000;
const VALUE_BYTES: usize = 128;

/// Number of messages that are consumed at a time. It is a multiple of the size of a fetch.
const CONSUMED: u64 = 1_000_000;
const CONSUMED_QUICK: u64 = 200_000;

/// The measured server with its load.
pub(super) struct Stage<'a> {
    pub(super) program: &'a Program,
    pub(super) load: &'a Load,
    pub(super) site: &'a Site,
    /// About how long to measure loads without a fixed number of messages.
    pub(super) duration: Duration,
    pub(super) quick: bool,
}

impl Stage<'_> {
    fn start(&self, folder: &str) -> Result<Server> {
        if self.program.system == System::Nats
            && let Some(config) = self.load.config(folder)
        {
            std::fs::write(Path::new(folder).join("server.conf"), config)?;
        }
        let options = self.load.options(self.program.system, folder);
        Server::start(&self.program.with(options))
    }

    /// Starts the server in an empty directory.
    fn start_empty(&self) -> Result<(Server, String)> {
        let folder = self.site.empty(self.program.system)?;
        Ok((self.start(&folder)?, folder))
    }

    /// Measures requests after a warm-up. Also returns the number of all requests.
    fn measure(&self, server: &Server, window: &mut Window) -> Result<(Sample, u64)> {
        let warm_up = window.run(Until::Time(WARM_UP))?;
        let cost = Cost::start(from_ref(server))?;
        let answers = window.run(Until::Time(self.duration))?;
        let requests = warm_up.messages + answers.messages;
        Ok((cost.of(from_ref(server), &answers)?, requests))
    }

    /// Publishes, and waits for acknowledgements.
    pub(super) fn publish(&self, publish: Publish) -> Result<Sample> {
        let (server, folder) = self.start_empty()?;
        let address = server.address();
        create_stream(address, self.load.storage)?;
        let mut window =
            Window::open(address, publications(publish), publish.in_flight, is_stored)?;
        let _one_core = match publish.one_core {
            true => Some(OneCore::share_with(&server)?),
            false => None,
        };
        let memory_before = server.memory()?.resident;
        let (mut sample, messages) = self.measure(&server, &mut window)?;
        let kept = Api::open(address)?.messages(STREAM)?;
        ensure!(kept == messages, "{kept} of {messages} messages were kept");
        if publish.in_flight > 1 {
            let grown = server.memory()?.resident.saturating_sub(memory_before);
            sample.set(Metric::MessageMemory, grown as f64 / messages as f64);
            if self.load.storage == Storage::File {
                let disk = disk_bytes(Path::new(&folder))? as f64;
                sample.set(Metric::MessageDisk, disk / messages as f64);
            }
        }
        Ok(sample)
    }

    /// Consumes messages that were published before.
    pub(super) fn consume(&self, how: How) -> Result<Sample> {
        let (server, _) = self.start_empty()?;
        let address = server.address();
        let messages = if self.quick { CONSUMED_QUICK } else { CONSUMED };
        create_stream(address, self.load.storage)?;
        fill(address, messages, publications(ASYNC))?;
        let consuming = Consuming::open(address, STREAM, how)?;
        let cost = Cost::start(from_ref(&server))?;
        let elapsed = consuming.consume(messages)?;
        cost.of(from_ref(&server), &Outcome::untimed(messages, elapsed))
    }

    /// Puts values into a bucket, with `in_flight` requests at a time.
    pub(super) fn put(&self, in_flight: usize) -> Result<Sample> {
        let (server, _) = self.start_empty()?;
        create_bucket(server.address(), self.load.storage)?;
        let mut window = Window::open(server.address(), values(), in_flight, is_stored)?;
        Ok(self.measure(&server, &mut window)?.0)
    }

    /// Gets the values that were put before.
    pub(super) fn get(&self, in_flight: usize) -> Result<Sample> {
        let (server, _) = self.start_empty()?;
        let address = server.address();
        create_bucket(address, self.load.storage)?;
        fill(address, KEYS as u64, values())?;
        let gets = RequestSequence::new(KEYS, b"", |key| {
            format!("$JS.API.DIRECT.GET.{BUCKET}.$KV.bench.key{key:04}")
        });
        let mut window = Window::open(address, gets, in_flight, is_message)?;
        Ok(self.measure(&server, &mut window)?.0)
    }

    /// Creates `count` items, and measures the memory that each of them takes, after the server had time to free
    /// what it needed to create them.
    pub(super) fn hold(&self, items: Items, count: usize) -> Result<Sample> {
        let count = if self.quick { count / 10 } else { count };
        let (server, _) = self.start_empty()?;
        let (address, storage) = (server.address(), self.load.storage);
        let messages = count as u64;
        if items != Items::Streams {
            create_stream(address, storage)?;
        }
        if items == Items::Unacked {
            fill(address, messages, publications(ASYNC))?;
        }
        let api = Api::open(address)?;
        thread::sleep(SETTLE);
        let before = server.memory()?.resident;
        let cost = Cost::start(from_ref(&server))?;
        let start = Instant::now();
        match items {
            Items::Records => fill(address, messages, publications(ASYNC))?,
            Items::Subjects => {
                let subjects = count;
                fill(
                    address,
                    messages,
                    publications(Publish { subjects, ..ASYNC }),
                )?;
            }
            Items::Unacked => {
                Consuming::open(address, STREAM, How::FetchUnacked)?.consume(messages)?;
            }
            Items::Consumers => (0..count).try_for_each(|index| create_consumer(&api, index))?,
            Items::Streams => (0..count).try_for_each(|index| {
                let name = format!("bench{index}");
                create_stream_of(&api, storage, &name, &format!("{name}.>"))
            })?,
        }
        let elapsed = start.elapsed();
        let mut sample = cost.of(from_ref(&server), &Outcome::untimed(messages, elapsed))?;
        thread::sleep(SETTLE);
        let grown = server.memory()?.resident.saturating_sub(before);
        sample.set(Metric::ItemMemory, grown as f64 / messages as f64);
        Ok(sample)
    }

    /// Measures the start of a server on the data of an earlier process. The first call publishes that data.
    pub(super) fn recover(&self, recover: Recover) -> Result<Sample> {
        let messages = match self.quick {
            true => recover.messages_quick,
            false => recover.messages,
        };
        let (bare, _) = self.start_empty()?;
        let bare_bytes = bare.memory()?.resident;
        drop(bare);
        let folder = self.site.existing(self.program.system)?;
        if std::fs::read_dir(&folder)?.next().is_none() {
            let server = self.start(&folder)?;
            create_stream(server.address(), Storage::File)?;
            let subjects = match recover.distinct {
                true => usize::try_from(messages)?,
                false => 1,
            };
            let publish = Publish { subjects, ..ASYNC };
            fill(server.address(), messages, publications(publish))?;
            end(server, recover.end)?;
        }
        let begun = Instant::now();
        let server = self.start(&folder)?;
        let kept = Api::open(server.address())?.messages(STREAM)?;
        let ready = begun.elapsed();
        ensure!(kept == messages, "{kept} of {messages} messages were kept");
        let mut sample = Sample::default();
        sample.set(Metric::Ready, ready.as_nanos() as f64);
        let memory = server.memory()?;
        let grown = memory.resident.saturating_sub(bare_bytes) as f64 / messages as f64;
        if recover.distinct {
            let subject_bytes = distinct_subject(0).len() as f64;
            sample.set(Metric::SubjectMemory, grown - subject_bytes);
        } else {
            sample.set(Metric::MessageMemory, grown);
        }
        let disk = disk_bytes(Path::new(&folder))? as f64;
        sample.set(Metric::MessageDisk, disk / messages as f64);
        sample.set(Metric::PeakMemory, memory.peak as f64);
        end(server, recover.end)?;
        Ok(sample)
    }
}

fn create_stream(address: SocketAddr, storage: Storage) -> Result<()> {
    create_stream_of(&Api::open(address)?, storage, STREAM, "bench.>")
}

fn create_stream_of(api: &Api, storage: Storage, name: &str, subject: &str) -> Result<()> {
    // Without `max_consumers`, nats-server allows 1,000.
    let config = json!({
        "name": name, "subjects": [subject], "storage": storage, "num_replicas": 1,
        "retention": "limits", "discard": "old", "max_age": 0, "max_msgs": -1, "max_bytes": -1,
        "max_consumers": 20_000,
    });
    api.ask(&format!("STREAM.CREATE.{name}"), &config)?;
    Ok(())
}

/// Creates a key-value bucket with the configuration that official clients use.
fn create_bucket(address: SocketAddr, storage: Storage) -> Result<()> {
    let config = json!({
        "name": BUCKET, "subjects": ["$KV.bench.>"], "storage": storage, "num_replicas": 1,
        "retention": "limits", "discard": "new", "max_msgs_per_subject": 1, "max_age": 0,
        "max_msgs": -1, "max_bytes": -1, "allow_rollup_hdrs": true, "deny_delete": true,
        "allow_direct": true, "duplicate_window": 120_000_000_000_u64,
    });
    Api::open(address)?.ask(&format!("STREAM.CREATE.{BUCKET}"), &config)?;
    Ok(())
}

fn publications(publish: Publish) -> RequestSequence {
    let payload = frames::payload(publish.payload_bytes);
    if publish.subjects == 1 {
        RequestSequence::new(publish.in_flight, &payload, |_| SUBJECT.to_owned())
    } else {
        RequestSequence::new(publish.subjects, &payload, distinct_subject)
    }
}

fn distinct_subject(index: usize) -> String {
    format!("bench.{index:08}")
}

fn fill(address: SocketAddr, messages: u64, requests: RequestSequence) -> Result<()> {
    Window::open(address, requests, ASYNC.in_flight, is_stored)?.run(Until::Count(messages))?;
    Ok(())
}

fn values() -> RequestSequence {
    let payload = frames::payload(VALUE_BYTES);
    RequestSequence::new(KEYS, &payload, |key| format!("$KV.bench.key{key:04}"))
}

fn create_consumer(api: &Api, index: usize) -> Result<()> {
    let name = format!("consumer{index}");
    let config = json!({"name": name, "durable_name": name, "ack_policy": "explicit"});
    let body = json!({"stream_name": STREAM, "config": config});
    api.ask(&format!("CONSUMER.CREATE.{STREAM}.{name}"), &body)?;
    Ok(())
}

fn end(server: Server, how: End) -> Result<()> {
    match how {
        End::Stopped => server.stop(),
        End::Killed => {
            drop(server);
            Ok(())
        }
    }
}
