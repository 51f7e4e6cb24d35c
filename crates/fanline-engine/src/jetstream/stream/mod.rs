//! A stream: its records, and the effects of publishes.
//!
//! # Calling order
//!
//! [`publish`](Stream::publish) and the methods of the API handle events. After one or more of them, call
//! [`settle`](Stream::settle), which serves consumers, and [`poll_sync`](Stream::poll_sync). Pass the result
//! of a sync to [`handle_synced`](Stream::handle_synced). Then call [`release_acks`](Stream::release_acks)
//! and [`next_timeout`](Stream::next_timeout), which returns the time at which to call
//! [`handle_timeout`](Stream::handle_timeout).

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
pub use messages::{Purge, Selection};
pub use source::SourceStatus;

use acks::Acks;
pub(super) use append::refused;
use batch::{AtomicBatches, FastBatches};
use check::Edits;
use commit::SyncMarks;
use dedupe::Dedupe;
use schedule::Schedules;
use source::Source;

use super::consumer::Consumers;
use super::{ApiError, BatchLimits, Discard, Message, Now, Port, Republish, StreamConfig};
use crate::random::Seed;
use crate::store::{Discard as StoreDiscard, NewRecord, Store, StoreLimits, StoreState};
use crate::subject::Filter;
use crate::subject::transform::Transform;

/// A stream with its log and its consumers.
pub struct Stream {
    config: StreamConfig,
    created: i64,
    store: Store,
    transform: Option<Transform>,
    republish: Option<Republisher>,
    acks: Acks,
    sync_marks: SyncMarks,
    /// Whether records were removed, other than by acknowledgements, since the states of consumers were last
    /// saved.
    has_removed: bool,
    /// Mark up to which the log must be durable before states of consumers are written. These states may omit
    /// records that were removed before this mark.
    states_after: u64,
    /// Recent message ids; `None` until the first message with an id, which most streams never receive.
    dedupe: Option<Dedupe>,
    schedules: Schedules,
    /// Sequences of markers. A marker records that all records of a subject have expired.
    markers: HashSet<u64>,
    atomic: AtomicBatches,
    fast: FastBatches,
    batches_elsewhere: OpenBatches,
    batch_limits: BatchLimits,
    consumers: Consumers,
    /// Sequences that a consumer no longer needs; empty between calls.
    unneeded: Vec<u64>,
    /// Streams of the account that copy from this one, each with the first sequence that it has not copied.
    copies: BTreeMap<Box<str>, u64>,
    /// The origin of a mirror, or the sources.
    sources: Vec<Source>,
    /// Whether a remote origin was removed, so that the set of inboxes has changed.
    inboxes_changed: bool,
    saved_progress: source::SavedProgress,
    /// Time of the last call that handled an event.
    clock: Now,
    /// Time of the last message that was not stored because no consumer needed it.
    skipped_at: Option<i64>,
    edits: Edits,
}

/// Settings of a stream that are not in its configuration.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub struct StreamContext<'a> {
    /// Account of the stream.
    pub account: &'a str,
    /// The server's JetStream domain, if any.
    pub domain: Option<&'a str>,
    /// Seed for the ids of its consumers.
    pub seed: Seed,
}

/// State of republishing.
struct Republisher {
    transform: Transform,
    headers_only: bool,
    subject: Vec<u8>,
    headers: Vec<u8>,
}

impl Stream {
    /// Creates a stream with its log, which may contain records. The caller has checked the configuration.
    ///
    /// # Errors
    /// A transform is invalid, or the log cannot be read.
    pub fn new(
        config: StreamConfig,
        mut store: Store,
        created: i64,
        place: &StreamContext<'_>,
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
            sync_marks: SyncMarks::default(),
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
            unneeded: Vec::new(),
            copies: BTreeMap::new(),
            sources: source::all(&config)?,
            inboxes_changed: false,
            saved_progress: source::SavedProgress::default(),
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

    /// Returns its configuration.
    pub fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// Returns the time of its creation in nanoseconds since 1970 UTC.
    pub fn created(&self) -> i64 {
        self.created
    }

    /// Returns its totals.
    pub fn state(&mut self) -> StoreState {
        let mut state = self.store.state();
        state.last_unix_nanos = state.last_unix_nanos.max(self.skipped_at);
        state
    }

    /// Returns the size of its records in bytes.
    pub fn bytes(&self) -> u64 {
        self.store.total_bytes()
    }

    /// Returns the size in bytes that a message would have as a record, as limits count it.
    pub fn bytes_of(&self, message: &Message<'_>) -> u64 {
        self.store.record_bytes(&NewRecord {
            subject: message.subject,
            headers: message.headers,
            payload: message.payload,
            ..NewRecord::default()
        })
    }

    /// Returns the log, for queries.
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Returns whether the stream stores messages to a subject.
    pub fn stores_subject(&self, subject: &[u8]) -> bool {
        let mut filters = self.config.subjects.iter();
        filters.any(|filter| Filter::parse(filter.as_bytes()).is_ok_and(|f| f.matches(subject)))
    }

    /// Applies a new configuration, which the caller has checked against the current one. Removes records
    /// that exceed its limits.
    ///
    /// # Errors
    /// A transform is invalid, or the log cannot be read; the old configuration stays.
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

    /// Returns a pseudo-random number for `{{random(n)}}`.
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
            subject: Vec::new(),
            headers: Vec::new(),
        })
    }
}

fn subject_transform(config: &StreamConfig) -> Result<Option<Transform>, ApiError> {
    let transform = config.subject_transform.as_ref();
    // A transform without a destination does not change the subject.
    let transform = transform.filter(|transform| !transform.dest.is_empty());
    let transform = transform
        .map(|t| Transform::new(&t.src, &t.dest))
        .transpose();
    transform.map_err(ApiError::stream_transform_invalid_destination)
}

/// Returns the limits that the log enforces.
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
