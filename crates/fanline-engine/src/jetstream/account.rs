//! The JetStream of one account: handles the messages to its streams and its API, and publishes replies,
//! events, and deliveries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::advisory::{Advisories, Elected};
use super::asset_limits::AssetLimits;
use super::consumer::AckTokens;
use super::folders::Folders;
use super::info::ApiStats;
use super::limits::{Reserved, ServerLimits, Usage, Used};
use super::origin_inboxes::OriginInboxes;
use super::peers::{Elsewhere, stream_filters};
use super::receivers::Receivers;
use super::stream::{OpenBatches, Stream};
use super::streams::{Key, OWN_PREFIX, Streams};
use super::transfer::Transfers;
use super::{
    ACK_PREFIX, ApiError, ClusterSettings, GroupState, Message, Now, Port, StreamConfig,
    Strictness, api,
};
use crate::limits::AccountLimits;
use crate::random::{Purpose, Random, Seed};
use crate::store::documents::Documents;
use crate::store::{self, Filters, Record, SyncMode};
use crate::subject::Filter;

/// Subjects of all JetStream requests.
const FILTERS: [&str; 2] = ["$JS.API.>", "$JS.SNAPSHOT.>"];

/// Fixed settings of an account's JetStream.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The account's name, for acknowledgements and events.
    pub account: String,
    /// The server's JetStream domain. Requests to `$JS.<domain>.API.>` are answered like those to
    /// `$JS.API.>`.
    pub domain: Option<String>,
    /// The server's id, for events.
    pub server_id: String,
    /// The server's name, reported as the leader of every stream.
    pub server_name: String,
    /// The server's cluster; `None` if it is in none.
    pub cluster: Option<ClusterSettings>,
    /// The server's version, for metadata.
    pub server_version: String,
    /// How unknown fields of requests are treated.
    pub strictness: Strictness,
    /// Limits of the account.
    pub limits: AccountLimits,
    /// Limits of all accounts together.
    pub server_limits: ServerLimits,
    /// Limits of each stream and each consumer.
    pub asset_limits: AssetLimits,
    /// When records are synced. The configuration of a stream may override it.
    pub sync: SyncMode,
    /// Key that encrypts everything on disk.
    pub key: Option<store::Key>,
}

/// All streams of one account.
///
/// # Calling order
///
/// Call [`handle`](Self::handle), [`handle_interest`](Self::handle_interest),
/// [`handle_synced`](Self::handle_synced), and [`handle_timeout`](Self::handle_timeout) for one or more
/// events. Then call [`settle`](Self::settle) once, which serves consumers, [`poll_sync`](Self::poll_sync)
/// until it returns `None`, [`release_acks`](Self::release_acks), and [`next_timeout`](Self::next_timeout).
/// Call [`close`](Self::close) last.
pub struct JetStream {
    pub(super) settings: Settings,
    pub(super) streams: Streams,
    pub(super) folders: Option<Box<dyn Folders>>,
    pub(super) advisories: Advisories,
    pub(super) random: Random,
    pub(super) stats: ApiStats,
    pub(super) transfers: Transfers,
    pub(super) usage: Usage,
    /// Bytes that other accounts have reserved. The caller updates them before each request that may create
    /// or change a stream.
    pub(super) reserved_elsewhere: Reserved,
    /// Open batches of all streams.
    pub(super) batches: OpenBatches,
    receivers: Receivers,
    inboxes: OriginInboxes,
    /// `$JS.<domain>.API.`
    domain_prefix: Option<Box<[u8]>>,
    touched: Vec<Key>,
    /// Streams that may have something to sync.
    pub(super) unsynced: BTreeSet<Key>,
    /// Streams that have nothing left to sync, and may have acknowledgements to release.
    pub(super) unreleased: Vec<Key>,
    problems: Vec<String>,
    /// Streams that could not be recovered, each with the reason. Their files remain until a client deletes
    /// the stream.
    pub(super) unrecovered: BTreeMap<String, String>,
    /// The servers that replicate the streams.
    pub(super) group: Arc<GroupState>,
    /// Streams and consumers whose leader has not been reported.
    pub(super) elected: Vec<Elected>,
    /// Whether another server must lead, and the name of the preferred one.
    pub(super) step_down: Option<Option<String>>,
}

impl JetStream {
    /// Recovers the streams in the folders and subscribes to JetStream requests. If `folders` is `None`,
    /// requests to create streams on disk are refused. `seed` makes generated names differ from those of
    /// other runs.
    pub fn new(
        settings: Settings,
        folders: Option<Box<dyn Folders>>,
        seed: impl Into<Seed>,
        now: Now,
        port: &mut dyn Port,
    ) -> Self {
        let seed = seed.into();
        let random = Random::new(seed, Purpose::Streams);
        let domain = settings.domain.as_deref();
        let advisories = Advisories::new(
            &settings.account,
            &settings.server_id,
            domain,
            Random::new(seed, Purpose::Advisories),
        );
        let mut jetstream = JetStream {
            domain_prefix: domain.map(|domain| format!("$JS.{domain}.API.").into_bytes().into()),
            streams: Streams::default(),
            folders,
            advisories,
            random,
            stats: ApiStats::default(),
            transfers: Transfers::default(),
            usage: Usage::default(),
            reserved_elsewhere: Reserved::default(),
            batches: OpenBatches::default(),
            receivers: Receivers::default(),
            inboxes: OriginInboxes::default(),
            touched: Vec::new(),
            unsynced: BTreeSet::new(),
            unreleased: Vec::new(),
            problems: Vec::new(),
            unrecovered: BTreeMap::new(),
            group: Arc::default(),
            elected: Vec::new(),
            step_down: None,
            settings,
        };
        for filter in FILTERS {
            port.subscribe(filter.as_bytes());
        }
        if let Some(prefix) = &jetstream.domain_prefix {
            port.subscribe(&[prefix, &b">"[..]].concat());
        }
        jetstream.recover(now, port);
        jetstream
    }

    /// Handles a message to a subject that JetStream subscribes to.
    pub fn handle(&mut self, message: &Message<'_>, now: Now, port: &mut dyn Port) {
        if let Some(key) = self.inboxes.stream(message.subject) {
            if let Some(stream) = self.streams.touch(key) {
                stream.handle_origin_message(message, now, port);
            }
            return;
        }
        if let Some(subject) = self.store_subject(message.subject) {
            // Clients in other domains access key-value and object buckets of this domain with a subject that
            // begins with this domain's API prefix.
            return self.handle(
                &Message {
                    subject,
                    ..*message
                },
                now,
                port,
            );
        }
        if message.subject.starts_with(OWN_PREFIX) {
            self.handle_own(message, now, port);
            if !self.streams.may_store_own() {
                return;
            }
        }
        if let Some(key) = self.streams.find_stream_of(message.subject) {
            self.publish(key, message, now, port);
        }
    }

    /// Stores a message in a stream.
    fn publish(&mut self, key: Key, message: &Message<'_>, now: Now, port: &mut dyn Port) {
        let Some(stream) = self.streams.touch(key) else {
            return;
        };
        let storage = stream.config().storage;
        let bytes = stream.bytes_of(message);
        if let Err(error) = self.usage.check(storage, bytes, &self.settings) {
            return stream.refuse(message, &error, port);
        }
        let elsewhere = self.batches.without(stream.open_batches());
        stream.set_batches_elsewhere(elsewhere);
        stream.publish(message, now, port);
        self.batches = elsewhere.and(stream.open_batches());
        if self.settings.limits.bounds(storage) {
            self.usage.set(key, storage, stream.bytes());
        }
    }

    /// Handles the messages after the first one of a run: successive messages with one subject, which does
    /// not begin with `$JS.`.
    pub(super) fn handle_run(
        &mut self,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        port: &mut dyn Port,
    ) {
        let Some(mut message) = run.next() else {
            return;
        };
        let is_copied = self.inboxes.stream(message.subject).is_some();
        // No message of a run changes the stream that stores its subject.
        let key = self.streams.last_stream_of(message.subject);
        let key = key.filter(|_| !is_copied);
        loop {
            let special = match key {
                Some(key) => self.publish_run(key, message, run, now, port),
                None => Some(message),
            };
            if let Some(special) = special {
                self.handle(&special, now, port);
            }
            match run.next() {
                Some(next) => message = next,
                None => return,
            }
        }
    }

    /// Stores the messages of a run, up to the first one that needs more than a simple publish. Returns that
    /// message.
    fn publish_run<'a>(
        &mut self,
        key: Key,
        first: Message<'a>,
        run: &mut dyn Iterator<Item = Message<'a>>,
        now: Now,
        port: &mut dyn Port,
    ) -> Option<Message<'a>> {
        let stream = self.streams.touch(key)?;
        let storage = stream.config().storage;
        // Without a limit of the account, usage changes only in `settle`, so one check suffices.
        let has_room = !self.settings.limits.bounds(storage)
            && self.usage.check(storage, 0, &self.settings).is_ok();
        match has_room {
            true => stream.publish_run(first, run, now, port),
            false => Some(first),
        }
    }

    /// Returns whether [`handle`](Self::handle) and the following [`settle`](Self::settle) process a message
    /// to this subject quickly and without waiting for a disk. True for publishes to streams in memory, pull
    /// requests of their consumers, and acknowledgements.
    pub fn is_quick(&self, subject: &[u8]) -> bool {
        let key = if subject.starts_with(OWN_PREFIX) {
            quick_request_stream(subject)
                .and_then(|name| std::str::from_utf8(name).ok())
                .and_then(|name| self.streams.find(name))
        } else {
            self.streams.stream_of(subject)
        };
        let stream = key.and_then(|key| self.streams.get(key));
        stream.is_some_and(|stream| {
            let config = stream.config();
            !config.is_in_folder() && self.streams.readers(&config.name).is_empty()
        })
    }

    /// Returns the stream that stores messages to a subject.
    pub(super) fn stream_of(&mut self, subject: &[u8]) -> Option<&mut Stream> {
        let key = self.streams.find_stream_of(subject)?;
        self.streams.get_mut(key)
    }

    /// Returns whether a message to a subject that is no request concerns a stream here.
    pub(super) fn takes(&self, subject: &[u8]) -> bool {
        let named = if subject.starts_with(ACK_PREFIX) {
            AckTokens::of(subject).map(|tokens| tokens.stream())
        } else if subject.starts_with(b"$JS.FC.") {
            subject.split(|b| *b == b'.').nth(2)
        } else {
            None
        };
        let named = named.and_then(|name| std::str::from_utf8(name).ok());
        named.is_some_and(|name| self.has_stream(name))
            || self.inboxes.stream(subject).is_some()
            || self.store_subject(subject).is_some()
            || self.streams.stream_of(subject).is_some()
    }

    /// Returns whether there is a stream of this name.
    pub(super) fn has_stream(&self, name: &str) -> bool {
        self.streams.find(name).is_some()
    }

    /// Handles a message to a subject that begins with `$JS.`.
    fn handle_own(&mut self, message: &Message<'_>, now: Now, port: &mut dyn Port) {
        let subject = message.subject;
        if let Some(path) = subject.strip_prefix(b"$JS.API.") {
            api::handle(self, path, message, now, port);
        } else if subject.starts_with(ACK_PREFIX) {
            self.handle_ack(message, now, port);
        } else if subject.starts_with(b"$JS.FC.") {
            self.handle_flow_control(message, now, port);
        } else if subject.starts_with(b"$JS.SNAPSHOT.") {
            self.handle_transfer(message, now, port);
        } else if let Some(prefix) = &self.domain_prefix
            && let Some(path) = subject.strip_prefix(&**prefix)
        {
            api::handle(self, path, message, now, port);
        }
    }

    /// Answers a request with what other servers of the cluster contribute.
    pub(super) fn answer_request(
        &mut self,
        message: &Message<'_>,
        elsewhere: &Elsewhere,
        now: Now,
        port: &mut dyn Port,
    ) {
        let of_domain = self.domain_prefix.as_deref();
        let of_domain = of_domain.and_then(|prefix| message.subject.strip_prefix(prefix));
        let path = message.subject.strip_prefix(b"$JS.API.").or(of_domain);
        if let Some(path) = path {
            api::answer(self, path, message, elsewhere, now, port);
        }
    }

    /// Returns the filters that a stream of this name announces to the other servers of the cluster. Outside of a
    /// cluster there are none.
    pub(super) fn filters_for_peers(&self, stream: &str) -> Vec<String> {
        if self.settings.cluster.is_none() {
            return Vec::new();
        }
        let of_domain = self.domain_prefix.as_deref().map(String::from_utf8_lossy);
        let prefixes = ["$JS.API."].into_iter().chain(of_domain.as_deref());
        let prefixes: Vec<&str> = prefixes.collect();
        stream_filters(&self.settings.server_id, stream, &prefixes)
    }

    /// Checks that an existing stream keeps its number of replicas.
    pub(super) fn check_replica_update(
        &self,
        is: &StreamConfig,
        requested: &StreamConfig,
    ) -> Result<(), ApiError> {
        match self.settings.cluster {
            Some(_) if is.num_replicas != requested.num_replicas => {
                Err(ApiError::STREAM_REPLICAS_NOT_UPDATABLE)
            }
            Some(_) => Ok(()),
            None => self.check_replicas(requested),
        }
    }

    /// Checks that a stream has as many replicas as the streams of this server.
    pub(super) fn check_replicas(&self, config: &StreamConfig) -> Result<(), ApiError> {
        let cluster = self.settings.cluster.as_ref();
        let own = cluster.map_or(1, |cluster| cluster.replicas.max(1));
        match config.num_replicas == own {
            true => Ok(()),
            false => Err(ApiError::STREAM_REPLICAS_NOT_SUPPORTED),
        }
    }

    /// Returns the subject under which to store a message to `$JS.<domain>.API.$KV.…` or `….$OBJ.…`: the part
    /// after the API prefix.
    fn store_subject<'a>(&self, subject: &'a [u8]) -> Option<&'a [u8]> {
        let path = subject.strip_prefix(&**self.domain_prefix.as_ref()?)?;
        let is_store = path.starts_with(b"$KV.") || path.starts_with(b"$OBJ.");
        is_store.then_some(path)
    }

    /// Handles successive acknowledgements, whose subjects begin with [`ACK_PREFIX`].
    pub(super) fn handle_acks(
        &mut self,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        port: &mut dyn Port,
    ) {
        let is_api = |prefix: &[u8]| prefix.starts_with(ACK_PREFIX);
        if self.streams.may_store_own() || self.domain_prefix.as_deref().is_some_and(is_api) {
            return run.for_each(|message| self.handle(&message, now, port));
        }
        let mut next = run.next();
        while let Some(first) = next {
            next = match self.handle_ack(&first, now, port) {
                None => run.next(),
                Some(stream) => stream.with_consumers(now, port, |consumers, context| {
                    consumers.handle_acks(first.subject, run, context)
                }),
            };
        }
    }

    /// Handles an acknowledgement. Returns its stream if it has such a consumer.
    fn handle_ack(
        &mut self,
        message: &Message<'_>,
        now: Now,
        port: &mut dyn Port,
    ) -> Option<&mut Stream> {
        let stream = AckTokens::of(message.subject)
            .and_then(|tokens| std::str::from_utf8(tokens.stream()).ok())
            .and_then(|name| self.streams.find(name))
            .and_then(|key| self.streams.touch(key));
        let known = stream.and_then(|stream| {
            let is_known = stream.with_consumers(now, port, |consumers, context| {
                consumers.handle_ack(message, context)
            });
            is_known.then_some(stream)
        });
        if known.is_none() {
            api::no_responders(message, port);
        }
        known
    }

    fn handle_flow_control(&mut self, message: &Message<'_>, now: Now, port: &mut dyn Port) {
        let name = message.subject.split(|b| *b == b'.').nth(2);
        let stream = name
            .and_then(|name| std::str::from_utf8(name).ok())
            .and_then(|name| self.streams.find(name))
            .and_then(|key| self.streams.touch(key));
        let is_known = stream.is_some_and(|stream| {
            stream.with_consumers(now, port, |consumers, context| {
                consumers.handle_flow_control(message.subject, context)
            })
        });
        if !is_known {
            api::no_responders(message, port);
        }
    }

    /// Handles the first subscription to a filter, or the end of the last one.
    pub fn handle_interest(&mut self, filter: &[u8], now: Now, port: &mut dyn Port) {
        // Consumers created since the last call of `settle` are not in `receivers` yet.
        for key in self.streams.touched().to_vec() {
            self.note_receivers(key);
        }
        let Ok(parsed) = Filter::parse(filter) else {
            return;
        };
        for key in self.receivers.of(parsed) {
            if let Some(stream) = self.streams.touch(key) {
                stream.with_consumers(now, port, |consumers, context| {
                    consumers.handle_interest(filter, context);
                });
            }
        }
        self.begin_snapshots(now, port);
    }

    /// Updates the index of deliver subjects after changes of a stream's consumers.
    pub(super) fn note_receivers(&mut self, key: Key) {
        let receivers = &mut self.receivers;
        if let Some(stream) = self.streams.get_mut(key) {
            stream.take_receivers(&mut |subject, is_there| {
                receivers.change(key, subject, is_there);
            });
        }
    }

    /// Runs due timers.
    pub fn handle_timeout(&mut self, now: Now, port: &mut dyn Port) {
        while let Some(key) = self.streams.take_due(now.since_start) {
            if let Some(stream) = self.streams.touch(key) {
                let elsewhere = self.batches.without(stream.open_batches());
                stream.handle_timeout(now, port);
                self.batches = elsewhere.and(stream.open_batches());
            }
        }
        self.expire_transfers(now, port);
    }

    /// Performs the work that follows from the handled events: delivers records, copies them, and saves the
    /// states of consumers.
    pub fn settle(&mut self, now: Now, port: &mut dyn Port) {
        let mut touched = std::mem::take(&mut self.touched);
        self.streams.take_touched(&mut touched);
        for key in touched.drain(..) {
            self.settle_stream(key, now, port);
        }
        self.touched = touched;
    }

    fn settle_stream(&mut self, key: Key, now: Now, port: &mut dyn Port) {
        self.copy(key, now, port);
        if self.settings.cluster.is_some() {
            self.find_origins(key, port);
        }
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        stream.update_remote_sources(now, &mut self.random, port);
        if let Some(subjects) = stream.take_changed_inboxes() {
            self.inboxes.set(key, subjects);
        }
        stream.settle(now, port);
        let (storage, bytes) = (stream.config().storage, stream.bytes());
        self.usage.set(key, storage, bytes);
        self.remove_unused(key, now, port);
        self.note_receivers(key);
        self.persist_sources(key, false, now);
        self.persist_consumer_states(key, false, now, port);
        self.confirm_acks(key, false, now, port);
        self.streams.set_timer(key);
        self.unsynced.insert(key);
    }

    /// Lets a stream read the origins that are on other servers of the cluster.
    fn find_origins(&mut self, key: Key, port: &mut dyn Port) {
        let Some(stream) = self.streams.get(key) else {
            return;
        };
        let origins = stream
            .origins()
            .filter(|name| self.streams.find(name).is_none());
        let origins: Vec<String> = origins.map(str::to_owned).collect();
        if let Some(stream) = self.streams.get_mut(key) {
            stream.read_elsewhere(&origins, port);
        }
    }

    /// Copies new records from the stream's origins into this stream, and from this stream into the streams
    /// that copy it.
    fn copy(&mut self, key: Key, now: Now, port: &mut dyn Port) {
        let Some(stream) = self.streams.get(key) else {
            return;
        };
        let readers = self.streams.readers(&stream.config().name);
        let copies = self.copies_of(&stream.config().name);
        let mut pairs: Vec<(Key, Key)> = readers.iter().map(|reader| (*reader, key)).collect();
        let origins = stream
            .origins()
            .filter_map(|origin| self.streams.find(origin));
        pairs.extend(origins.map(|origin| (key, origin)));
        if let Some(stream) = self.streams.get_mut(key) {
            // If the disk cannot remove records now, the removal is retried at the next change of the
            // stream's consumers.
            let _ = stream.set_copies(&copies);
        }
        for (reader, origin) in pairs {
            let Some((into, from)) = self.streams.pair(reader, origin) else {
                continue;
            };
            let was = into.state().last_sequence;
            let has_more = into.pull(from, now, port);
            if has_more || into.state().last_sequence != was {
                self.streams.touch(reader);
            }
        }
    }

    /// Returns the names of the streams that copy from this stream.
    pub(super) fn copies_of(&self, origin: &str) -> Vec<String> {
        let readers = self.streams.readers(origin).iter();
        let copies = readers.filter_map(|reader| self.streams.get(*reader));
        copies.map(|copy| copy.config().name.clone()).collect()
    }

    fn remove_unused(&mut self, key: Key, now: Now, port: &mut dyn Port) {
        let mut unused = Vec::new();
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        stream.with_consumers(now, port, |consumers, _| consumers.take_unused(&mut unused));
        for id in unused {
            self.delete_consumer(key, id, now, port);
        }
    }

    /// Calls `each` for the records of a stream whose subjects match, in order, until it returns `false`.
    /// Unreadable records are skipped.
    pub(super) fn read(
        &mut self,
        stream: &str,
        filters: &[&[u8]],
        from: u64,
        each: &mut dyn FnMut(&Record<'_>) -> bool,
    ) {
        let key = self.streams.find(stream);
        let stream = key.and_then(|key| self.streams.get_mut(key));
        let filters = Filters::new(filters.iter().copied());
        let (Some(stream), Ok(mut filters)) = (stream, filters) else {
            return;
        };
        let (store, mut next) = (stream.store(), from);
        while let Ok(Some(sequence)) = store.next_matching(&mut filters, next) {
            next = sequence + 1;
            if let Ok(Some(record)) = store.read(sequence)
                && !each(&record)
            {
                return;
            }
        }
    }

    /// Deletes the consumers that a removed stream created at its remote origins.
    pub(super) fn delete_origin_consumers(&mut self, key: Key, port: &mut dyn Port) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.delete_origin_consumers(port);
        }
        self.inboxes.set(key, Vec::new());
    }

    /// Notifies waiting requesters and subscribers that the server stops. Call it before connections close.
    pub fn notify_shutdown(&mut self, now: Now, port: &mut dyn Port) {
        let keys: Vec<Key> = self.streams.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.delete_origin_consumers(key, port);
            if let Some(stream) = self.streams.touch(key) {
                stream.with_consumers(now, port, |consumers, context| {
                    consumers.notify_shutdown(context);
                });
            }
        }
    }

    /// Writes and syncs everything, and blocks until it is done. Call it once, before the server stops.
    /// Reports each stream that fails to close, and continues with the other streams.
    pub fn close(&mut self, now: Now, port: &mut dyn Port) {
        let keys: Vec<Key> = self.streams.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.persist_sources(key, true, now);
            self.persist_consumer_states(key, true, now, port);
            self.confirm_acks(key, true, now, port);
            let Some((stream, documents, answers)) = self.streams.with_answers(key) else {
                continue;
            };
            // A consumer's state may omit removed records. The log is therefore closed first, which syncs the
            // removals.
            let closed = stream.close(port);
            match closed.and_then(|()| documents.map_or(Ok(()), Documents::sync_now)) {
                Ok(()) => answers.release_all(port),
                Err(error) => {
                    let name = stream.config().name.clone();
                    self.report(format!(
                        "stream {name} could not be closed cleanly: {error}"
                    ));
                    self.fail_answers(key, error, port);
                }
            }
        }
    }

    /// Cancels all subscriptions, when the account loses JetStream.
    pub(super) fn unsubscribe_all(&mut self, port: &mut dyn Port) {
        let keys: Vec<Key> = self.streams.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.delete_origin_consumers(key, port);
            self.unsubscribe_stream(key, port);
        }
        self.unsubscribe_api(port);
    }

    /// Cancels all subscriptions, and ends waiting pull requests, because another server leads the streams now. Writes
    /// nothing, and sends nothing else. The caller drops the object afterward.
    pub(super) fn retire(&mut self, now: Now, port: &mut dyn Port) {
        let keys: Vec<Key> = self.streams.iter().map(|(key, _)| key).collect();
        for key in keys {
            if let Some(stream) = self.streams.get_mut(key) {
                stream.stop_reading(port);
                stream.with_consumers(now, port, |consumers, context| {
                    consumers.notify_leadership_change(context);
                });
            }
            self.unsubscribe_stream(key, port);
        }
        self.unsubscribe_api(port);
    }

    fn unsubscribe_api(&self, port: &mut dyn Port) {
        for filter in FILTERS {
            port.unsubscribe(filter.as_bytes());
        }
        if let Some(prefix) = &self.domain_prefix {
            port.unsubscribe(&[prefix, &b">"[..]].concat());
        }
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) and [`settle`](Self::settle) must
    /// be called next, counted from the server's start.
    pub fn next_timeout(&self) -> Option<Duration> {
        if self.streams.has_touched() {
            return Some(Duration::ZERO);
        }
        let timers = [self.streams.next_timer(), self.transfers.next_timeout()];
        timers.into_iter().flatten().min()
    }

    /// Returns, as text, the problems since the last call that were not reported to any client.
    pub fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    pub(super) fn report(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Sets the bytes that other accounts use. They count toward the server's limits.
    pub(super) fn set_elsewhere(&mut self, used: Used) {
        self.usage.set_elsewhere(used);
    }

    /// Sets the bytes that other accounts have reserved.
    pub(super) fn set_reserved_elsewhere(&mut self, reserved: Reserved) {
        self.reserved_elsewhere = reserved;
    }

    /// Returns the bytes that the account's streams use.
    pub(super) fn used(&self) -> Used {
        self.usage.used()
    }

    /// Sets the limits of the account.
    pub(super) fn set_limits(&mut self, limits: AccountLimits) {
        self.settings.limits = limits;
    }

    /// Returns the bytes that the account's streams have reserved, without those of `except`.
    pub(super) fn reserved(&self, except: Option<Key>) -> Reserved {
        let mut reserved = Reserved::default();
        let others = self.streams.iter().filter(|(key, _)| Some(*key) != except);
        others.for_each(|(_, stream)| reserved.add(stream.config()));
        reserved
    }
}

/// Returns the stream that a request's subject names, if requests of this kind are processed quickly.
fn quick_request_stream(subject: &[u8]) -> Option<&[u8]> {
    const QUICK: [&[u8]; 2] = [b"$JS.API.CONSUMER.MSG.NEXT.", b"$JS.API.DIRECT.GET."];
    if let Some(ack) = AckTokens::of(subject) {
        return Some(ack.stream());
    }
    let rest = QUICK
        .iter()
        .find_map(|prefix| subject.strip_prefix(*prefix))?;
    // A direct get whose subject ends with the stream's name may request a batch, which takes longer.
    let end = rest.iter().position(|byte| *byte == b'.')?;
    Some(&rest[..end])
}
