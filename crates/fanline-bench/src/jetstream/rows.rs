//! The measured rows and their targets. Runs and reports use the same list.

use anyhow::Result;

use super::measure::Stage;
use crate::comparison::{self, Case, Shown, at_least, at_most, case};
use crate::generator::consume::How;
use crate::report::metric::{Metric, Sample};
use crate::report::target::Limit;
use crate::servers::System;

pub(crate) struct Load {
    pub(crate) storage: Storage,
    /// It has no effect on streams in memory.
    sync: Sync,
    shown: Shown,
    pub(super) measure: Measure,
}

/// Place where messages are stored, as in a stream's configuration.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Storage {
    Memory,
    File,
}

/// The times at which the servers sync the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Fanline before each acknowledgement, nats-server every two minutes.
    Default,
    /// Both before each acknowledgement.
    Both,
    /// Both every two minutes.
    Neither,
}

/// Items of which a server holds many.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items {
    /// Records of one stream with one subject.
    Records,
    /// Records of one stream, each with its own subject.
    Subjects,
    /// Messages of one consumer that are delivered and not acknowledged.
    Unacked,
    /// Durable consumers of one stream without messages.
    Consumers,
    Streams,
}

#[derive(Clone, Copy)]
pub(crate) struct Publish {
    pub(crate) payload_bytes: usize,
    pub(crate) in_flight: usize,
    pub(crate) subjects: usize,
    /// Whether server and generator share a core, so that no other core must be woken.
    pub(crate) one_core: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Recover {
    pub(crate) messages: u64,
    /// Number of messages with `--quick`.
    pub(crate) messages_quick: u64,
    /// Whether each message has its own subject.
    pub(crate) distinct: bool,
    pub(crate) end: End,
}

/// The way in which the previous server process ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Stopped,
    Killed,
}

impl comparison::Work for Load {
    fn shown(&self) -> Shown {
        self.shown
    }
}

const SYNCHRONOUS: Shown = Shown::rate("Synchronous publish", "acked/s").headline(Metric::P50);
const ASYNCHRONOUS: Shown = Shown::rate("Asynchronous publish", "acked/s");
const CONSUME: Shown = Shown::rate("Consume", "messages/s");
const PUTS: Shown = Shown::rate("Key-value store", "puts/s");
const GETS: Shown = Shown::rate("Key-value store", "gets/s");
const START: Shown = Shown::rate("Start on existing data", "messages/s").headline(Metric::Ready);
const HOLD: Shown = Shown::rate("Memory", "items/s").headline(Metric::ItemMemory);

impl Load {
    /// Returns the options of a server that stores its files in `folder`.
    pub(crate) fn options(&self, system: System, folder: &str) -> Vec<String> {
        let options: &[&str] = match (system, self.sync) {
            (System::NatsSynced, _) | (System::Nats, Sync::Both) => {
                &["-c", &format!("{folder}/server.conf")]
            }
            (System::Nats, _) => &["-js", "-sd", folder],
            // mosquitto has no streams, so no row measures it.
            (System::Mosquitto, _) => &[],
            (System::Fanline, Sync::Neither) => &["--store-dir", folder, "--sync", "2m"],
            (System::Fanline, _) => &["--store-dir", folder, "--sync", "commit"],
        };
        options.iter().map(|&option| option.to_owned()).collect()
    }

    pub(crate) fn config(&self, folder: &str) -> Option<String> {
        (self.sync == Sync::Both)
            .then(|| format!("jetstream {{ store_dir: \"{folder}\", sync_interval: always }}\n"))
    }

    /// Describes how both servers are started, for the report.
    pub(crate) fn note(&self, title: &str) -> String {
        let nats = self.options(System::Nats, "DIR").join(" ");
        let config = self.config("DIR");
        let config = config.map(|config| format!(" with `{}` there", config.trim_end()));
        let fanline = self.options(System::Fanline, "DIR").join(" ");
        format!(
            "{title}: nats-server `{nats}`{}, Fanline `{fanline}`.",
            config.unwrap_or_default()
        )
    }
}

const SYNC: Publish = Publish {
    payload_bytes: 16,
    in_flight: 1,
    subjects: 1,
    one_core: false,
};

pub(crate) const ASYNC: Publish = Publish {
    payload_bytes: 128,
    in_flight: 1000,
    ..SYNC
};

const ASYNC_SUBJECTS: Publish = Publish {
    subjects: 100_000,
    ..ASYNC
};

type Measure = fn(&Stage<'_>) -> Result<Sample>;

const fn memory(shown: Shown, measure: Measure) -> Load {
    Load {
        storage: Storage::Memory,
        sync: Sync::Default,
        shown,
        measure,
    }
}

const fn file(shown: Shown, measure: Measure) -> Load {
    Load {
        storage: Storage::File,
        ..memory(shown, measure)
    }
}

const CPU: Limit = at_most(Metric::ServerCpu, 0.25);
const CPU_ALONE: &[Limit] = &[CPU];
const RATE_4: &[Limit] = &[at_least(Metric::Rate, 4.0), CPU];
const RATE_5: &[Limit] = &[at_least(Metric::Rate, 5.0), CPU];
const RATE_6: &[Limit] = &[at_least(Metric::Rate, 6.0), CPU];

const RECOVER: Recover = Recover {
    messages: 10_000_000,
    messages_quick: 1_000_000,
    distinct: false,
    end: End::Stopped,
};

const RECOVER_SUBJECTS: Recover = Recover {
    messages: 1_000_000,
    messages_quick: 100_000,
    distinct: true,
    ..RECOVER
};

const SYNC_ONE_CORE: Publish = Publish {
    one_core: true,
    ..SYNC
};

const fn async_file(sync: Sync) -> Load {
    Load {
        sync,
        ..file(ASYNCHRONOUS, |stage| stage.publish(ASYNC))
    }
}

const RECOVER_KILLED: Recover = Recover {
    end: End::Killed,
    ..RECOVER
};

const LATENCY: &[Limit] = &[at_least(Metric::Rate, 1.3), CPU];
const RECOVERED: &[Limit] = &[
    at_most(Metric::Ready, 0.5),
    Limit::at_most(Metric::MessageMemory, 24.0),
];
/// 120 bytes for a subject, and 24 bytes for its message.
const SUBJECTS: &[Limit] = &[Limit::at_most(Metric::SubjectMemory, 144.0)];

const ITEM: &[Limit] = &[at_most(Metric::ItemMemory, 1.0)];
const GET_ONE: &[Limit] = &[at_most(Metric::P50, 0.8), CPU];

/// Every row, in the order of the reports.
#[rustfmt::skip]
pub(crate) const ROWS: &[Case<Load>] = &[
    case("sync-memory", "sync publish, 16 B, memory", memory(SYNCHRONOUS, |stage| stage.publish(SYNC)), LATENCY),
    case("sync-memory-core", "the same, all on one core", memory(SYNCHRONOUS, |stage| stage.publish(SYNC_ONE_CORE)), LATENCY),
    case("async-memory", "async publish, 128 B, memory", memory(ASYNCHRONOUS, |stage| stage.publish(ASYNC)), RATE_5),
    case("async-file", "async publish, 128 B, file, synced before ack", file(ASYNCHRONOUS, |stage| stage.publish(ASYNC)), RATE_4),
    case("async-file-interval", "async publish, 128 B, file, both unsynced", async_file(Sync::Neither), &[at_least(Metric::Rate, 3.5), CPU]),
    case("async-file-always", "async publish, 128 B, file, both synced", async_file(Sync::Both), &[at_least(Metric::Rate, 80.0), CPU]),
    case("async-subjects", "async publish, 128 B, file, 100,000 subjects", file(ASYNCHRONOUS, |stage| stage.publish(ASYNC_SUBJECTS)), RATE_4),
    case("async-subjects-memory", "async publish, 128 B, memory, 100,000 subjects", memory(ASYNCHRONOUS, |stage| stage.publish(ASYNC_SUBJECTS)), CPU_ALONE),
    case("ordered-push", "ordered consumer, pushed, 128 B, file", file(CONSUME, |stage| stage.consume(How::OrderedPush)), RATE_6),
    case("ordered-pull", "ordered consumer, pulled, 128 B, file", file(CONSUME, |stage| stage.consume(How::OrderedPull)), RATE_6),
    case("fetch", "durable fetch of 1,000, no acks, 128 B, file", file(CONSUME, |stage| stage.consume(How::Fetch { acks: false })), RATE_6),
    case("fetch-acks", "durable fetch of 1,000, acks, 128 B, file", file(CONSUME, |stage| stage.consume(How::Fetch { acks: true })), RATE_5),
    case("ordered-push-memory", "ordered consumer, pushed, 128 B, memory", memory(CONSUME, |stage| stage.consume(How::OrderedPush)), RATE_6),
    case("ordered-pull-memory", "ordered consumer, pulled, 128 B, memory", memory(CONSUME, |stage| stage.consume(How::OrderedPull)), RATE_6),
    case("fetch-memory", "durable fetch of 1,000, no acks, 128 B, memory", memory(CONSUME, |stage| stage.consume(How::Fetch { acks: false })), RATE_6),
    case("fetch-acks-memory", "durable fetch of 1,000, acks, 128 B, memory", memory(CONSUME, |stage| stage.consume(How::Fetch { acks: true })), RATE_5),
    case("kv-put", "KV put, 128 B, 1,000 keys, 16 at a time, file", file(PUTS, |stage| stage.put(16)), CPU_ALONE),
    case("kv-get", "KV get, 128 B, 1,000 keys, 16 at a time, file", file(GETS, |stage| stage.get(16)), CPU_ALONE),
    case("kv-put-1-memory", "KV put, 128 B, 1,000 keys, one at a time, memory", memory(PUTS, |stage| stage.put(1)), CPU_ALONE),
    case("kv-get-1", "KV get, 128 B, 1,000 keys, one at a time, file", file(GETS, |stage| stage.get(1)), GET_ONE),
    case("kv-get-1-memory", "KV get, 128 B, 1,000 keys, one at a time, memory", memory(GETS, |stage| stage.get(1)), GET_ONE),
    case("kv-get-64", "KV get, 128 B, 1,000 keys, 64 at a time, file", file(GETS, |stage| stage.get(64)), RATE_4),
    case("kv-get-64-memory", "KV get, 128 B, 1,000 keys, 64 at a time, memory", memory(GETS, |stage| stage.get(64)), RATE_4),
    case("recover", "start on 10 M messages (quick: 1 M), 128 B", file(START, |stage| stage.recover(RECOVER)), RECOVERED),
    case("recover-killed", "the same after kill -9", file(START, |stage| stage.recover(RECOVER_KILLED)), &[]),
    case("recover-subjects", "start on 1 M subjects (quick: 100,000), 128 B", file(START, |stage| stage.recover(RECOVER_SUBJECTS)), SUBJECTS),
    case("hold-records", "1 M records of 128 B, memory", memory(HOLD, |stage| stage.hold(Items::Records, 1_000_000)), ITEM),
    case("hold-records-file", "1 M records of 128 B, file", file(HOLD, |stage| stage.hold(Items::Records, 1_000_000)), ITEM),
    case("hold-subjects", "1 M subjects with 128 B, memory", memory(HOLD, |stage| stage.hold(Items::Subjects, 1_000_000)), ITEM),
    case("hold-subjects-file", "1 M subjects with 128 B, file", file(HOLD, |stage| stage.hold(Items::Subjects, 1_000_000)), ITEM),
    case("hold-unacked", "1 M pending acknowledgements", memory(HOLD, |stage| stage.hold(Items::Unacked, 1_000_000)), ITEM),
    case("hold-consumers", "10,000 consumers on one stream, file", file(HOLD, |stage| stage.hold(Items::Consumers, 10_000)), ITEM),
    case("hold-consumers-memory", "10,000 consumers on one stream, memory", memory(HOLD, |stage| stage.hold(Items::Consumers, 10_000)), ITEM),
    case("hold-streams", "10,000 streams, file", file(HOLD, |stage| stage.hold(Items::Streams, 10_000)), ITEM),
    case("hold-streams-memory", "10,000 streams, memory", memory(HOLD, |stage| stage.hold(Items::Streams, 10_000)), ITEM),
];
