//! The measured rows and their targets. Runs and reports use the same list.

use crate::generator::consume::How;
use crate::report::metric::Metric;
use crate::report::{Case, Target, alone_at_most, at_least, at_most};
use crate::servers::System;

/// One kind of load.
pub(crate) struct Row {
    /// Name for `--row`.
    pub(crate) name: &'static str,
    /// Title in reports.
    pub(crate) title: &'static str,
    pub(crate) storage: Storage,
    /// Time at which Fanline acknowledges a message. It has no effect on streams in memory.
    pub(crate) fanline: FanlineSync,
    /// Time at which nats-server syncs the disk. It has no effect on streams in memory.
    pub(crate) nats: NatsSync,
    pub(crate) work: Work,
    pub(crate) targets: &'static [Target],
}

/// Place where messages are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Memory,
    File,
}

/// The time at which Fanline acknowledges a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FanlineSync {
    /// After the message is on disk.
    Commit,
    /// Immediately. The disk is synced as often as nats-server syncs it.
    Interval,
}

/// The time at which nats-server syncs the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NatsSync {
    /// Every two minutes.
    Default,
    /// Before each acknowledgement.
    Always,
}

/// The generator's work for a row.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Publish and wait for acknowledgements.
    Publish(Publish),
    /// Consume messages that were published before.
    Consume(How),
    /// Put values into a bucket, with `in_flight` requests at a time.
    Put { in_flight: usize },
    /// Get the values that were put before.
    Get { in_flight: usize },
    /// Start a server on existing data.
    Recover(Recover),
}

/// Parameters of publishing.
#[derive(Clone, Copy)]
pub(crate) struct Publish {
    pub(crate) payload_bytes: usize,
    pub(crate) in_flight: usize,
    pub(crate) subjects: usize,
    /// Whether server and generator share a core, so that no other core must be woken.
    pub(crate) one_core: bool,
}

/// The data on which a server is started.
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

impl Row {
    /// Returns the row as a case of a report.
    pub(crate) fn case(&self) -> Case {
        let (rate, headline) = match self.work {
            Work::Publish(publish) if publish.in_flight == 1 => ("acked/s", Metric::P50),
            Work::Publish(_) => ("acked/s", Metric::Rate),
            Work::Consume(_) => ("messages/s", Metric::Rate),
            Work::Put { .. } => ("puts/s", Metric::Rate),
            Work::Get { .. } => ("gets/s", Metric::Rate),
            Work::Recover(_) => ("messages/s", Metric::Ready),
        };
        Case {
            name: self.name,
            title: self.title,
            rate,
            headline,
            targets: self.targets,
        }
    }

    /// Returns the options of a server that stores its files in `folder`.
    pub(crate) fn options(&self, system: System, folder: &str) -> Vec<String> {
        let options: &[&str] = match (system, self.nats) {
            (System::Nats, NatsSync::Default) => &["-js", "-sd", folder],
            (System::Nats, NatsSync::Always) => &["-c", &format!("{folder}/server.conf")],
            // mosquitto has no streams, so no row measures it.
            (System::Mosquitto, _) => &[],
            (System::Fanline, _) => {
                let sync = match self.fanline {
                    FanlineSync::Commit => "commit",
                    FanlineSync::Interval => "2m",
                };
                &["--store-dir", folder, "--sync", sync]
            }
        };
        options.iter().map(|&option| option.to_owned()).collect()
    }

    /// Returns nats-server's configuration file, if it needs one.
    pub(crate) fn config(&self, folder: &str) -> Option<String> {
        (self.nats == NatsSync::Always)
            .then(|| format!("jetstream {{ store_dir: \"{folder}\", sync_interval: always }}\n"))
    }

    /// Describes how both servers are started, for the report.
    pub(crate) fn remark(&self) -> String {
        let nats = self.options(System::Nats, "DIR").join(" ");
        let config = self.config("DIR");
        let config = config.map(|config| format!(" with `{}` there", config.trim_end()));
        let fanline = self.options(System::Fanline, "DIR").join(" ");
        let title = self.title;
        format!(
            "{title}: nats-server `{nats}`{}, Fanline `{fanline}`.",
            config.unwrap_or_default()
        )
    }
}

impl Storage {
    /// Returns the name in a stream's configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
        }
    }
}

const SYNC: Publish = Publish {
    payload_bytes: 16,
    in_flight: 1,
    subjects: 1,
    one_core: false,
};

const ASYNC: Publish = Publish {
    payload_bytes: 128,
    in_flight: 1000,
    subjects: 1,
    one_core: false,
};

const ASYNC_SUBJECTS: Publish = Publish {
    subjects: 100_000,
    ..ASYNC
};

/// Returns a row with default settings, except that Fanline acknowledges after the disk write.
const fn row(
    name: &'static str,
    title: &'static str,
    storage: Storage,
    work: Work,
    targets: &'static [Target],
) -> Row {
    Row {
        name,
        title,
        storage,
        fanline: FanlineSync::Commit,
        nats: NatsSync::Default,
        work,
        targets,
    }
}

const RATE_2: &[Target] = &[at_least(Metric::Rate, 2.0)];

const RECOVER: Recover = Recover {
    messages: 10_000_000,
    messages_quick: 1_000_000,
    distinct: false,
    end: End::Stopped,
};

/// Every row, in the order of the reports.
pub(crate) const ROWS: &[Row] = &[
    row(
        "sync-memory",
        "sync publish, 16 B, memory",
        Storage::Memory,
        Work::Publish(SYNC),
        &[at_most(Metric::P50, 0.7)],
    ),
    row(
        "sync-memory-core",
        "the same, all on one core",
        Storage::Memory,
        Work::Publish(Publish {
            one_core: true,
            ..SYNC
        }),
        &[at_most(Metric::P50, 0.7)],
    ),
    row(
        "async-memory",
        "async publish, 128 B, memory",
        Storage::Memory,
        Work::Publish(ASYNC),
        &[at_least(Metric::Rate, 3.0)],
    ),
    row(
        "async-file",
        "async publish, 128 B, file, synced before ack",
        Storage::File,
        Work::Publish(ASYNC),
        RATE_2,
    ),
    Row {
        fanline: FanlineSync::Interval,
        ..row(
            "async-file-interval",
            "async publish, 128 B, file, both unsynced",
            Storage::File,
            Work::Publish(ASYNC),
            &[at_least(Metric::Rate, 3.5)],
        )
    },
    Row {
        nats: NatsSync::Always,
        ..row(
            "async-file-always",
            "async publish, 128 B, file, both synced",
            Storage::File,
            Work::Publish(ASYNC),
            &[at_least(Metric::Rate, 80.0)],
        )
    },
    row(
        "async-subjects",
        "async publish, 128 B, file, 100,000 subjects",
        Storage::File,
        Work::Publish(ASYNC_SUBJECTS),
        RATE_2,
    ),
    row(
        "async-subjects-memory",
        "async publish, 128 B, memory, 100,000 subjects",
        Storage::Memory,
        Work::Publish(ASYNC_SUBJECTS),
        &[],
    ),
    row(
        "ordered-push",
        "ordered consumer, pushed, 128 B, file",
        Storage::File,
        Work::Consume(How::OrderedPush),
        RATE_2,
    ),
    row(
        "ordered-pull",
        "ordered consumer, pulled, 128 B, file",
        Storage::File,
        Work::Consume(How::OrderedPull),
        RATE_2,
    ),
    row(
        "fetch",
        "durable fetch of 1,000, no acks, 128 B, file",
        Storage::File,
        Work::Consume(How::Fetch { acks: false }),
        RATE_2,
    ),
    row(
        "fetch-acks",
        "durable fetch of 1,000, acks, 128 B, file",
        Storage::File,
        Work::Consume(How::Fetch { acks: true }),
        RATE_2,
    ),
    row(
        "ordered-push-memory",
        "ordered consumer, pushed, 128 B, memory",
        Storage::Memory,
        Work::Consume(How::OrderedPush),
        RATE_2,
    ),
    row(
        "ordered-pull-memory",
        "ordered consumer, pulled, 128 B, memory",
        Storage::Memory,
        Work::Consume(How::OrderedPull),
        RATE_2,
    ),
    row(
        "fetch-memory",
        "durable fetch of 1,000, no acks, 128 B, memory",
        Storage::Memory,
        Work::Consume(How::Fetch { acks: false }),
        RATE_2,
    ),
    row(
        "fetch-acks-memory",
        "durable fetch of 1,000, acks, 128 B, memory",
        Storage::Memory,
        Work::Consume(How::Fetch { acks: true }),
        RATE_2,
    ),
    row(
        "kv-put",
        "KV put, 128 B, 1,000 keys, 16 at a time, file",
        Storage::File,
        Work::Put { in_flight: 16 },
        &[],
    ),
    row(
        "kv-get",
        "KV get, 128 B, 1,000 keys, 16 at a time, file",
        Storage::File,
        Work::Get { in_flight: 16 },
        &[],
    ),
    row(
        "recover",
        "start on 10 M messages (quick: 1 M), 128 B",
        Storage::File,
        Work::Recover(RECOVER),
        &[
            at_most(Metric::Ready, 0.5),
            alone_at_most(Metric::MessageMemory, 24.0),
        ],
    ),
    row(
        "recover-killed",
        "the same after kill -9",
        Storage::File,
        Work::Recover(Recover {
            end: End::Killed,
            ..RECOVER
        }),
        &[],
    ),
    row(
        "recover-subjects",
        "start on 1 M subjects (quick: 100,000), 128 B",
        Storage::File,
        Work::Recover(Recover {
            messages: 1_000_000,
            messages_quick: 100_000,
            distinct: true,
            end: End::Stopped,
        }),
        // 120 bytes for a subject, and 24 bytes for its message.
        &[alone_at_most(Metric::SubjectMemory, 144.0)],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_names_are_unique() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|other| other.name != row.name));
        }
    }
}
