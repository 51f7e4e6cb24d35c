//! The measurement of one row on one server.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::rows::{ASYNC, End, Items, Load, Publish, Recover, Storage, Work};
use crate::comparison::cost::{Cost, SETTLE, WARM_UP};
use crate::comparison::one_core::OneCore;
use crate::comparison::site::{Site, disk_bytes};
use crate::generator::consume::{Consuming, How};
use crate::generator::frames;
use crate::generator::jetstream::Api;
use crate::generator::window::{RequestSequence, Until, Window, is_message, is_stored};
use crate::report::metric::{Metric, Sample};
use crate::servers::process::Server;
use crate::servers::{Program, System};

const STREAM: &str = "bench";
const SUBJECT: &str = "bench.a";
const BUCKET: &str = "KV_bench";
const KEYS: usize = 1000;
const VALUE_BYTES: usize = 128;

/// Number of messages that are consumed at a time. It is a multiple of the size of a fetch.
const CONSUMED: u64 = 1_000_000;
const CONSUMED_QUICK: u64 = 200_000;

/// Runs a row's load on `program` for about `duration`.
pub(crate) fn measure(
    program: &Program,
    load: &Load,
    site: &Site,
    duration: Duration,
    quick: bool,
) -> Result<Sample> {
    if let Work::Recover(recover) = load.work {
        return recovered(program, load, site, recover, quick);
    }
    let folder = site.empty(program.system)?;
    let server = start(program, load, &folder)?;
    match load.work {
        Work::Publish(publish) => published(&server, load, publish, duration, Path::new(&folder)),
        Work::Consume(how) => consumed(&server, load.storage, how, quick),
        Work::Put { in_flight } => {
            create_bucket(server.address(), load.storage)?;
            let mut window = Window::open(server.address(), values(), in_flight, is_stored)?;
            Ok(measure_window(&server, &mut window, duration)?.0)
        }
        Work::Get { in_flight } => got(&server, load.storage, in_flight, duration),
        Work::Hold { items, count } => {
            let count = if quick { count / 10 } else { count };
            held(&server, load.storage, items, count)
        }
        Work::Recover(_) => Ok(Sample::default()),
    }
}

fn start(program: &Program, load: &Load, folder: &str) -> Result<Server> {
    if program.system == System::Nats
        && let Some(config) = load.config(folder)
    {
        std::fs::write(Path::new(folder).join("server.conf"), config)?;
    }
    Server::start(&program.with(load.options(program.system, folder)))
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

fn published(
    server: &Server,
    load: &Load,
    publish: Publish,
    duration: Duration,
    folder: &Path,
) -> Result<Sample> {
    let address = server.address();
    create_stream(address, load.storage)?;
    let mut window = Window::open(address, publications(publish), publish.in_flight, is_stored)?;
    let _one_core = match publish.one_core {
        true => Some(OneCore::share_with(server)?),
        false => None,
    };
    let memory_before = server.memory()?.resident;
    let (mut sample, messages) = measure_window(server, &mut window, duration)?;
    let kept = Api::open(address)?.messages(STREAM)?;
    ensure!(kept == messages, "{kept} of {messages} messages were kept");
    if publish.in_flight > 1 {
        let grown = server.memory()?.resident.saturating_sub(memory_before);
        sample.set(Metric::MessageMemory, grown as f64 / messages as f64);
        if load.storage == Storage::File {
            let disk = disk_bytes(folder)? as f64;
            sample.set(Metric::MessageDisk, disk / messages as f64);
        }
    }
    Ok(sample)
}

fn fill(address: SocketAddr, messages: u64, requests: RequestSequence) -> Result<()> {
    Window::open(address, requests, ASYNC.in_flight, is_stored)?.run(Until::Count(messages))?;
    Ok(())
}

fn consumed(server: &Server, storage: Storage, how: How, quick: bool) -> Result<Sample> {
    let address = server.address();
    let messages = if quick { CONSUMED_QUICK } else { CONSUMED };
    create_stream(address, storage)?;
    fill(address, messages, publications(ASYNC))?;
    let consuming = Consuming::open(address, STREAM, how)?;
    let cost = Cost::start(server)?;
    let elapsed = consuming.consume(messages)?;
    let mut sample = cost.end(server, messages)?;
    sample.set_rate(messages, elapsed);
    Ok(sample)
}

fn values() -> RequestSequence {
    let payload = frames::payload(VALUE_BYTES);
    RequestSequence::new(KEYS, &payload, |key| format!("$KV.bench.key{key:04}"))
}

fn got(server: &Server, storage: Storage, in_flight: usize, duration: Duration) -> Result<Sample> {
    let address = server.address();
    create_bucket(address, storage)?;
    fill(address, KEYS as u64, values())?;
    let gets = RequestSequence::new(KEYS, b"", |key| {
        format!("$JS.API.DIRECT.GET.{BUCKET}.$KV.bench.key{key:04}")
    });
    let mut window = Window::open(address, gets, in_flight, is_message)?;
    Ok(measure_window(server, &mut window, duration)?.0)
}

/// Measures the memory of `count` items, after the server had time to free what it needed to create them.
fn held(server: &Server, storage: Storage, items: Items, count: usize) -> Result<Sample> {
    let address = server.address();
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
    let cost = Cost::start(server)?;
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
    let mut sample = cost.end(server, messages)?;
    sample.set_rate(messages, elapsed);
    thread::sleep(SETTLE);
    let grown = server.memory()?.resident.saturating_sub(before);
    sample.set(Metric::ItemMemory, grown as f64 / messages as f64);
    Ok(sample)
}

fn create_consumer(api: &Api, index: usize) -> Result<()> {
    let name = format!("consumer{index}");
    let config = json!({"name": name, "durable_name": name, "ack_policy": "explicit"});
    let body = json!({"stream_name": STREAM, "config": config});
    api.ask(&format!("CONSUMER.CREATE.{STREAM}.{name}"), &body)?;
    Ok(())
}

/// Measures requests after a warm-up. Also returns the number of all requests.
fn measure_window(
    server: &Server,
    window: &mut Window,
    duration: Duration,
) -> Result<(Sample, u64)> {
    let warm_up = window.run(Until::Time(WARM_UP))?;
    let cost = Cost::start(server)?;
    let answers = window.run(Until::Time(duration))?;
    let requests = warm_up.requests + answers.requests;
    Ok((cost.of_answers(server, &answers)?, requests))
}

/// Measures the start of a server on the data of an earlier process. The first call publishes that data.
fn recovered(
    program: &Program,
    load: &Load,
    site: &Site,
    recover: Recover,
    quick: bool,
) -> Result<Sample> {
    let messages = match quick {
        true => recover.messages_quick,
        false => recover.messages,
    };
    let bare = start(program, load, &site.empty(program.system)?)?;
    let bare_bytes = bare.memory()?.resident;
    drop(bare);
    let folder = site.existing(program.system)?;
    if std::fs::read_dir(&folder)?.next().is_none() {
        let server = start(program, load, &folder)?;
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
    let server = start(program, load, &folder)?;
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

fn end(server: Server, how: End) -> Result<()> {
    match how {
        End::Stopped => server.stop(),
        End::Killed => {
            drop(server);
            Ok(())
        }
    }
}
