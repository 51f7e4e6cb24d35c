//! A stream: what it keeps, and what a publish means to it.
//!
//! # In which order it is called
//!
//! [`publish`](Stream::publish) for each message that has come, and the methods of the API. Then, once
//! for all of them, [`settle`](Stream::settle), in which consumers are served, [`poll_sync`](Stream::poll_sync),
//! whose result comes back by [`handle_synced`](Stream::handle_synced), [`release_acks`](Stream::release_acks), and
//! [`next_timeout`](Stream::next_timeout), at which [`handle_timeout`](Stream::handle_timeout) is due.

mod acks;
mod append;
mod batch;
mod check;
mod commit;
mod counter;
mod decimal;
mod dedupe;
mod direct;
mod headers;
mod messages;
mod publish;
mod retention;
mod schedule;
mod source;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod timers;
mod ttl;

use std::collections::{BTreeMap, HashSet};

pub use batch::OpenBatches;
pub use direct::DirectGet;
pub use messages::{Purge, Wanted};
pub use source::SourceStatus;

use acks::Acks;
pub(super) use append::refused;
use batch::{AtomicBatches, FastBatches};
use check::Edits;
use commit::Barrier;
use dedupe::Dedupe;
use schedule::Schedules;
use source::Source;

use super::consumer::Consumers;
use super::{ApiError, BatchLimits, Discard, Message, Now, Port, Republish, StreamConfig};
use crate::random::Seed;
use crate::store::{Discard as StoreDiscard, NewRecord, Store, StoreLimits, StoreState};
use crate::subject::Filter;
use crate::subject::transform::Transform;

/// A persisted stream and its consumers.
pub struct Stream {
    config: StreamConfig,
    created: i64,
    store: Store,
    transform: Option<Transform>,
    republish: Option<Republisher>,
    acks: Acks,
    barrier: Barrier,
    /// Records were removed, other than by acknowledgements, since consumers' states were saved last.
    has_removed: bool,
    /// States of consumers are written once the log is safe up to this mark: they may count on those removals.
    states_after: u64,
    /// Made when the first message with an id comes: most streams never see one.
    dedupe: Option<Dedupe>,
    schedules: Schedules,
    /// Sequences of the records that only say that a subject has expired.
    markers: HashSet<u64>,
    atomic: AtomicBatches,
    fast: FastBatches,
    batches_elsewhere: OpenBatches,
    batch_limits: BatchLimits,
    consumers: Consumers,
    /// Records that a consumer is done with; empty between calls.
    done: Vec<u64>,
    /// The streams of the account that copy from it, and from which sequence on each still needs its records.
    copies: BTreeMap<Box<str>, u64>,
    /// Where it copies from: the mirror's origin, or its sources.
    sources: Vec<Source>,
    /// An origin elsewhere was given up, so that its inlets are no more.
    inlets_moved: bool,
    sources_kept: source::Kept,
    /// When it was last called.
    clock: Now,
    /// When it last took a message that nobody was interested in.
    skipped_at: Option<i64>,
    edits: Edits,
}

/// Where a stream is.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub struct Place<'a> {
    /// The account that it belongs to.
    pub account: &'a str,
    /// The server's JetStream domain, if it has a name.
    pub domain: Option<&'a str>,
    /// Ids of its consumers are derived from this.
    pub seed: Seed,
}

/// What publishes records once more.
struct Republisher {
    transform: Transform,
    headers_only: bool,
    topic: Vec<u8>,
    headers: Vec<u8>,
}

impl Stream {
    /// A stream over its log, which holds what was stored before. The configuration has been checked.
    ///
    /// # Errors
    /// A transform that is none, or a log that cannot be read.
    pub fn new(
        config: StreamConfig,
        mut store: Store,
        created: i64,
        place: &Place<'_>,
        now: Now,
    ) -> Result<Self, ApiError> {
        store
            .set_limits(&limits(&config))
            .map_err(ApiError::stream_create)?;
        if store.last_sequence() == 0 && config.first_seq > 1 {
            store
                .skip_to(config.first_seq)
                .map_err(ApiError::stream_create)?;
        }
        let mut stream = Stream {
            transform: subject_transform(&config)?,
            republish: config
                .republish
                .as_ref()
                .filter(|republish| !republish.dest.is_empty())
                .map(Republisher::new)
                .transpose()?,
            acks: Acks::new(&config.name, place.domain),
            barrier: Barrier::default(),
            has_removed: false,
            states_after: 0,
            dedupe: None,
            schedules: Schedules::default(),
            markers: HashSet::new(),
            atomic: AtomicBatches::default(),
            fast: FastBatches::default(),
            batches_elsewhere: OpenBatches::default(),
            batch_limits: BatchLimits::default(),
            consumers: Consumers::new(&config.name, place.account, config.retention, place.seed),
            done: Vec::new(),
            copies: BTreeMap::new(),
            sources: source::all(&config)?,
            inlets_moved: false,
            sources_kept: source::Kept::default(),
            clock: now,
            skipped_at: None,
            edits: Edits::default(),
            config,
            created,
            store,
        };
        stream.recover().map_err(ApiError::stream_create)?;
        Ok(stream)
    }

    fn recover(&mut self) -> Result<(), crate::store::StoreError> {
        self.recover_subjects()?;
        self.recover_sources()
    }

    /// What it was asked to be.
    pub fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// When it was made: nanoseconds since 1970 UTC.
    pub fn created(&self) -> i64 {
        self.created
    }

    /// What it holds, in numbers.
    pub fn state(&mut self) -> StoreState {
        let mut state = self.store.state();
        state.last_unix_nanos = state.last_unix_nanos.max(self.skipped_at);
        state
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.store.total_bytes()
    }

    /// How many a message would count for.
    pub fn bytes_of(&self, message: &Message<'_>) -> u64 {
        self.store.record_bytes(&NewRecord {
            subject: message.topic,
            headers: message.headers,
            payload: message.payload,
            ..NewRecord::default()
        })
    }

    /// Its log, to look things up in.
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Whether it stores what is published to a topic.
    pub fn takes(&self, topic: &[u8]) -> bool {
        let mut filters = self.config.subjects.iter();
        filters.any(|filter| Filter::parse(filter.as_bytes()).is_ok_and(|f| f.matches(topic)))
    }

    /// Puts another configuration in force, which has been checked against this one. What exceeds its
    /// limits goes.
    ///
    /// # Errors
    /// A transform that is none, or a log that cannot be read; the old configuration stays.
    pub fn update(
        &mut self,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        self.clock = now;
        let transform = subject_transform(&config)?;
        let republish = config
            .republish
            .as_ref()
            .filter(|republish| !republish.dest.is_empty())
            .map(Republisher::new)
            .transpose()?;
        let sources = source::all(&config)?;
        self.store
            .set_limits(&limits(&config))
            .map_err(ApiError::stream_update)?;
        self.transform = transform;
        self.republish = republish;
        let left_markers = self.leaves_markers();
        self.config = config;
        if self.leaves_markers() && !left_markers {
            self.recover_markers();
        }
        self.replace_sources(sources, port)
            .map_err(ApiError::stream_update)?;
        self.settle_removed(port);
        self.consumers.set_retention(self.config.retention);
        self.remove_unneeded().map_err(ApiError::stream_update)?;
        Ok(())
    }

    /// A number that is as good as any other, for `{{random(n)}}`.
    fn random(&self) -> u32 {
        let mixed = (self.store.last_sequence() + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        u32::try_from(mixed >> 32).unwrap_or_default()
    }
}

impl Republisher {
    fn new(config: &Republish) -> Result<Self, ApiError> {
        let transform = Transform::new(&config.src, &config.dest);
        Ok(Republisher {
            transform: transform.map_err(|error| {
                let text = format!("stream configuration for republish with transform from '{}' to '{}' is invalid: {error}", config.src, config.dest);
                ApiError::stream_invalid_config(text)
            })?,
            headers_only: config.headers_only,
            topic: Vec::new(),
            headers: Vec::new(),
        })
    }
}

fn subject_transform(config: &StreamConfig) -> Result<Option<Transform>, ApiError> {
    let transform = config.subject_transform.as_ref();
    // Without a destination the subject stays.
    let transform = transform.filter(|transform| !transform.dest.is_empty());
    let transform = transform
        .map(|t| Transform::new(&t.src, &t.dest))
        .transpose();
    transform.map_err(ApiError::stream_transform_invalid_destination)
}

/// What the log enforces by itself.
fn limits(config: &StreamConfig) -> StoreLimits {
    let limit = |value: i64| u64::try_from(value).ok().filter(|value| *value > 0);
    StoreLimits {
        messages_max: limit(config.max_msgs),
        bytes_max: limit(config.max_bytes),
        age_nanos_max: Some(config.max_age.0).filter(|nanos| *nanos > 0),
        messages_per_subject_max: limit(config.max_msgs_per_subject),
        discard: match config.discard {
            Discard::Old => StoreDiscard::Old,
            Discard::New if config.discard_new_per_subject => StoreDiscard::NewPerSubject,
            Discard::New => StoreDiscard::New,
        },
    }
}
