//! Totals of JetStream for monitoring.

use serde::Serialize;

use super::account::JetStream;
use super::accounts::AccountOverview;
use super::consumer::ConsumerInfo;
use super::group::ClusterInfo;
use super::info::{ApiStats, StateInfo, StreamInfo};
use super::limits::ServerLimits;
use super::stream::{SourceStatus, Stream};
use super::streams::Key;
use super::{Now, Port, Storage, StreamConfig, Timestamp};

/// Details to include in an overview.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverviewWanted {
    /// Each stream.
    pub streams: bool,
    /// Each consumer of each stream.
    pub consumers: bool,
    /// Each consumer that a mirror or source created to copy from a stream.
    pub direct_consumers: bool,
    /// Configurations of streams and consumers.
    pub config: bool,
}

/// Totals of JetStream.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Limits of the server.
    pub limits: ServerLimits,
    /// Number of accounts in the totals.
    pub accounts: u64,
    /// Bytes of streams in memory.
    pub memory: u64,
    /// Bytes of streams on disk.
    pub storage: u64,
    /// Bytes reserved by streams in memory.
    pub reserved_memory: i64,
    /// Bytes reserved by streams on disk.
    pub reserved_storage: i64,
    /// Statistics of the API.
    pub api: ApiStats,
    /// Number of streams.
    pub streams: u64,
    /// Number of consumers of all streams.
    pub consumers: u64,
    /// Number of records of all streams.
    pub messages: u64,
    /// Number of records lost on disk.
    pub lost: u64,
    /// Streams in order of creation, if requested.
    pub stream_detail: Vec<StreamOverview>,
}

/// A stream, for monitoring.
#[derive(Clone, Debug, Serialize)]
pub struct StreamOverview {
    /// Name.
    pub name: String,
    /// Time of its creation.
    pub created: Timestamp,
    /// Server of the stream.
    pub cluster: ClusterInfo,
    /// Configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<StreamConfig>,
    /// State.
    pub state: StateInfo,
    /// Its consumers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consumer_detail: Vec<ConsumerInfo>,
    /// Consumers that mirrors or sources created to copy from the stream.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub direct_consumer_detail: Vec<ConsumerInfo>,
    /// Progress of copying its origin, for a mirror.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<SourceStatus>,
    /// Progress of copying its sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceStatus>,
}

impl Overview {
    fn add(&mut self, stream: &mut Stream) {
        let state = stream.state();
        match stream.config().storage {
            Storage::Memory => self.memory += state.bytes,
            Storage::File => self.storage += state.bytes,
        }
        self.streams += 1;
        self.messages += state.messages;
        self.lost += state.lost.messages;
        let consumers = stream.consumers().iter();
        self.consumers += consumers.filter(|(_, c)| !c.config().direct).count() as u64;
    }
}

impl Overview {
    /// Adds other streams of the same account.
    pub fn join(&mut self, other: Overview) {
        self.memory += other.memory;
        self.storage += other.storage;
        self.reserved_memory = self.reserved_memory.saturating_add(other.reserved_memory);
        self.reserved_storage = self.reserved_storage.saturating_add(other.reserved_storage);
        self.api.total += other.api.total;
        self.api.errors += other.api.errors;
        self.streams += other.streams;
        self.consumers += other.consumers;
        self.messages += other.messages;
        self.lost += other.lost;
        self.stream_detail.extend(other.stream_detail);
    }

    /// Returns the sum of all accounts, without details of streams.
    pub fn sum(accounts: &[AccountOverview]) -> Overview {
        let mut sum = Overview::default();
        for AccountOverview { overview: one, .. } in accounts {
            // The limits are those of the server, so all accounts report the same ones.
            sum.limits = one.limits;
            sum.accounts += 1;
            sum.join(Overview {
                stream_detail: Vec::new(),
                ..one.clone()
            });
        }
        sum
    }
}

impl JetStream {
    /// Returns the totals, and the requested details.
    pub fn overview(&mut self, wanted: OverviewWanted, now: Now, port: &mut dyn Port) -> Overview {
        let reserved = self.reserved(None);
        let mut overview = Overview {
            limits: self.settings.server_limits,
            reserved_memory: reserved.memory,
            reserved_storage: reserved.storage,
            api: self.stats,
            ..Overview::default()
        };
        let mut keys: Vec<(i64, Key)> = self
            .streams
            .iter()
            .map(|(key, stream)| (stream.created(), key))
            .collect();
        keys.sort_unstable();
        for (_, key) in keys {
            if let Some(stream) = self.streams.get_mut(key) {
                overview.add(stream);
            }
            if wanted.streams || wanted.consumers || wanted.direct_consumers {
                let detail = self.stream_overview(key, wanted, now, port);
                overview.stream_detail.extend(detail);
            }
        }
        overview
    }

    fn stream_overview(
        &mut self,
        key: Key,
        wanted: OverviewWanted,
        now: Now,
        port: &mut dyn Port,
    ) -> Option<StreamOverview> {
        let cluster = self.cluster_info(key);
        let stream = self.streams.get_mut(key)?;
        let info = StreamInfo::of(stream, None, now);
        let (mut consumer_detail, mut direct_consumer_detail) = (Vec::new(), Vec::new());
        stream.with_consumers(now, port, |consumers, context| {
            let ids: Vec<_> = consumers
                .iter()
                .map(|(id, c)| (id, c.config().direct))
                .collect();
            for (id, is_direct) in ids {
                let (is_wanted, into) = match is_direct {
                    false => (wanted.consumers, &mut consumer_detail),
                    true => (wanted.direct_consumers, &mut direct_consumer_detail),
                };
                if is_wanted && let Some(mut info) = consumers.info(id, context) {
                    info.config = info.config.filter(|_| wanted.config);
                    into.push(info);
                }
            }
        });
        Some(StreamOverview {
            name: info.config.name.clone(),
            created: info.created,
            cluster,
            config: wanted.config.then_some(info.config),
            state: info.state,
            consumer_detail,
            direct_consumer_detail,
            mirror: info.mirror,
            sources: info.sources,
        })
    }
}
