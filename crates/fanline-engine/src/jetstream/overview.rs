//! What JetStream tells of itself as a whole: what monitoring shows.

use serde::Serialize;

use super::account::JetStream;
use super::accounts::AccountOverview;
use super::consumer::ConsumerInfo;
use super::info::{ApiStats, ClusterInfo, StateInfo, StreamInfo};
use super::limits::ServerLimits;
use super::stream::{SourceStatus, Stream};
use super::streams::Key;
use super::{Now, Port, Storage, StreamConfig, Timestamp};

/// How much is to be told beside the sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverviewWanted {
    /// Each stream.
    pub streams: bool,
    /// Each consumer of each stream.
    pub consumers: bool,
    /// Each consumer that belongs to another stream.
    pub direct_consumers: bool,
    /// What each of them was asked to be.
    pub config: bool,
}

/// All of JetStream in numbers.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// What it may use.
    pub limits: ServerLimits,
    /// How many accounts it is the sum of.
    pub accounts: u64,
    /// Bytes of streams in memory.
    pub memory: u64,
    /// Bytes of streams on disk.
    pub storage: u64,
    /// Bytes that streams in memory have set aside.
    pub reserved_memory: i64,
    /// Bytes that streams on disk have set aside.
    pub reserved_storage: i64,
    /// How the API is used.
    pub api: ApiStats,
    /// Streams.
    pub streams: u64,
    /// Consumers of all streams.
    pub consumers: u64,
    /// Records of all streams.
    pub messages: u64,
    /// Records that the disk has lost.
    pub lost: u64,
    /// The streams in the order in which they were made, if they are wanted.
    pub stream_detail: Vec<StreamOverview>,
}

/// A stream, as monitoring shows it.
#[derive(Clone, Debug, Serialize)]
pub struct StreamOverview {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// Who holds it.
    pub cluster: ClusterInfo,
    /// What it was asked to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<StreamConfig>,
    /// What it holds.
    pub state: StateInfo,
    /// Its consumers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consumer_detail: Vec<ConsumerInfo>,
    /// Its consumers that belong to other streams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub direct_consumer_detail: Vec<ConsumerInfo>,
    /// How far it has copied its origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<SourceStatus>,
    /// How far it has copied its sources.
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
    /// All accounts together, without their streams.
    pub fn sum(accounts: &[AccountOverview]) -> Overview {
        let mut sum = Overview::default();
        for AccountOverview { overview: one, .. } in accounts {
            // The server's, and so the same for all.
            sum.limits = one.limits;
            sum.accounts += 1;
            sum.memory += one.memory;
            sum.storage += one.storage;
            sum.reserved_memory = sum.reserved_memory.saturating_add(one.reserved_memory);
            sum.reserved_storage = sum.reserved_storage.saturating_add(one.reserved_storage);
            sum.api.total += one.api.total;
            sum.api.errors += one.api.errors;
            sum.streams += one.streams;
            sum.consumers += one.consumers;
            sum.messages += one.messages;
            sum.lost += one.lost;
        }
        sum
    }
}

impl JetStream {
    /// What there is, in numbers, and what else is wanted of it.
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
        let leader = self.settings.server_name.clone();
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
            cluster: ClusterInfo { leader },
            config: wanted.config.then_some(info.config),
            state: info.state,
            consumer_detail,
            direct_consumer_detail,
            mirror: info.mirror,
            sources: info.sources,
        })
    }
}
