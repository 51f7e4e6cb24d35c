//! Creates, changes, and deletes streams and consumers, and maintains their documents.

use serde::{Deserialize, Serialize};

use super::account::JetStream;
use super::advisory::Action;
use super::consumer::{Consumer, ConsumerId};
use super::stores::StreamParts;
use super::stream::{Stream, StreamContext};
use super::streams::Key;
use super::{
    ApiError, ConsumerConfig, Durability, Now, Port, StreamConfig, Timestamp, stored_metadata,
};
use crate::store::DiskError;
use crate::store::documents::Documents;

/// Name of the document with the configuration of a stream.
pub(super) const STREAM: &str = "stream";
/// Prefix of documents with the configuration of a consumer.
pub(super) const CONSUMER: &str = "consumer.";
/// Prefix of documents with the state of a consumer.
pub(super) const STATE: &str = "state.";

/// Name of the document with the progress of a stream's sources.
pub(super) const SOURCES: &str = "sources";

/// Prefix of the second copy of a configuration. Each configuration is stored twice, in case one is damaged.
pub(super) const COPY: &str = "copy.";

/// Document of a stream's or consumer's configuration.
#[derive(Serialize, Deserialize)]
pub(super) struct AssetDocument<T> {
    pub(super) created: i64,
    pub(super) config: T,
}

impl JetStream {
    /// Creates a stream with an empty log.
    pub(super) fn create_empty_stream(
        &mut self,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<Key, ApiError> {
        let parts = self.create_parts(&config)?;
        self.persist_stream(parts, config, now, port)
    }

    /// Creates a stream with the given storage and persists its configuration. On failure, its folder is
    /// removed.
    pub(super) fn persist_stream(
        &mut self,
        parts: StreamParts,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<Key, ApiError> {
        let name = config.name.clone();
        let is_in_folder = parts.documents.is_some();
        let result = self.write_stream(parts, config, now, port);
        if let (Err(_), true, Some(folders)) = (&result, is_in_folder, &mut self.folders) {
            // If the folder cannot be removed now, the next start removes it, because its creation was not
            // confirmed.
            let _ = folders.remove(&name);
        }
        result
    }

    fn write_stream(
        &mut self,
        mut parts: StreamParts,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<Key, ApiError> {
        let created = now.unix_nanos;
        if let Some(documents) = &mut parts.documents {
            let config = &config;
            let document = AssetDocument { created, config };
            write(documents, STREAM, &document, true).map_err(ApiError::stream_create)?;
        }
        self.add_stream(parts, config, created, now, port)
    }

    /// Adds a stream, with its log and documents, to the table of streams.
    pub(super) fn add_stream(
        &mut self,
        parts: StreamParts,
        config: StreamConfig,
        created: i64,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<Key, ApiError> {
        let place = StreamContext {
            account: &self.settings.account,
            domain: self.settings.domain.as_deref(),
            seed: self.random.seed(),
        };
        let mut stream = Stream::new(config, parts.store, created, &place, now)?;
        stream.set_batch_limits(self.settings.asset_limits.batches);
        for subject in &stream.config().subjects {
            port.subscribe(subject.as_bytes());
        }
        let for_peers = self.filters_for_peers(&stream.config().name);
        for filter in own_filters(&stream.config().name).iter().chain(&for_peers) {
            port.subscribe(filter.as_bytes());
        }
        let key = self.streams.insert(stream, parts.documents);
        self.note_stream_leader(key);
        Ok(key)
    }

    /// Applies a changed configuration that the caller has checked.
    pub(super) fn change_stream(
        &mut self,
        key: Key,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        self.streams.leave(key);
        self.streams.touch(key);
        let changed = match self.streams.with_documents(key) {
            Some((stream, documents)) => change(stream, documents, config, now, port),
            None => Err(ApiError::STREAM_NOT_FOUND),
        };
        self.streams.enter(key);
        changed
    }

    /// Deletes a stream with its consumers and files.
    pub(super) fn delete_stream(
        &mut self,
        key: Key,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        let stream = self.streams.get(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
        let consumers: Vec<ConsumerId> = stream.consumers().iter().map(|(id, _)| id).collect();
        for id in consumers {
            self.delete_consumer(key, id, now, port);
        }
        self.delete_origin_consumers(key, port);
        self.unsubscribe_stream(key, port);
        let removed = self.streams.remove(key);
        let (stream, mut answers) = removed.ok_or(ApiError::STREAM_NOT_FOUND)?;
        self.usage.remove(key);
        self.batches = self.batches.without(stream.open_batches());
        let config = stream.config().clone();
        drop(stream);
        if let Err(error) = self.remove_folder(&config) {
            answers.fail(&error, port);
            return Err(error);
        }
        // The pending answers confirm changes of a stream that no longer exists, so they need not wait for a sync.
        answers.release_all(port);
        let advisories = &mut self.advisories;
        advisories.stream(Action::Delete, &config.name, now, port);
        Ok(())
    }

    /// Cancels the subscriptions of a stream and its consumers.
    pub(super) fn unsubscribe_stream(&self, key: Key, port: &mut dyn Port) {
        let Some(stream) = self.streams.get(key) else {
            return;
        };
        for subject in &stream.config().subjects {
            port.unsubscribe(subject.as_bytes());
        }
        let for_peers = self.filters_for_peers(&stream.config().name);
        for filter in own_filters(&stream.config().name).iter().chain(&for_peers) {
            port.unsubscribe(filter.as_bytes());
        }
    }

    /// Deletes the files of a stream that could not be recovered. Returns whether there was such a stream.
    pub(super) fn delete_unrecovered(&mut self, name: &str) -> Result<bool, ApiError> {
        if !self.unrecovered.contains_key(name) {
            return Ok(false);
        }
        if let Some(folders) = &mut self.folders {
            folders.remove(name).map_err(ApiError::stream_delete)?;
        }
        Ok(self.unrecovered.remove(name).is_some())
    }

    /// Removes a stream's folder.
    pub(super) fn remove_folder(&mut self, config: &StreamConfig) -> Result<(), ApiError> {
        match &mut self.folders {
            Some(folders) if config.is_in_folder() => folders
                .remove(&config.name)
                .map_err(ApiError::stream_delete),
            _ => Ok(()),
        }
    }

    /// Creates a consumer with a configuration that the caller has checked.
    pub(super) fn create_consumer(
        &mut self,
        key: Key,
        config: ConsumerConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<ConsumerId, ApiError> {
        self.streams.touch(key);
        let found = self.streams.with_documents(key);
        let (stream, documents) = found.ok_or(ApiError::STREAM_NOT_FOUND)?;
        let (created, name) = (now.unix_nanos, config.name.clone());
        let durability = stream.config().durability();
        let mut documents = documents.filter(|_| durability.stores(&config));
        let result = stream.with_consumers(now, port, |consumers, context| {
            let made = consumers.create(config.clone(), created, context);
            let id = made.map_err(ApiError::consumer_create)?;
            // The starting position depends on the records that the stream has now. After a crash it could
            // not be computed again, so it is stored.
            if let (Some(consumer), Some(documents)) = (consumers.get(id), &mut documents) {
                let mut state = Vec::new();
                consumer.encode_state(&mut state);
                documents.put(&state_of(consumer), state);
            }
            let persisted = persist_consumer_config(documents.as_deref_mut(), created, &config);
            if persisted.is_err() {
                consumers.delete(id, context);
            }
            persisted.map(|()| id)
        });
        match &result {
            Ok(id) => self.note_consumer_leader(key, *id),
            Err(_) => remove_consumer_documents(documents, &name),
        }
        result
    }

    /// Applies a changed configuration that the caller has checked.
    pub(super) fn change_consumer(
        &mut self,
        (key, id): (Key, ConsumerId),
        config: ConsumerConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        self.streams.touch(key);
        let found = self.streams.with_documents(key);
        let (stream, documents) = found.ok_or(ApiError::STREAM_NOT_FOUND)?;
        let consumer = stream.consumers().get(id);
        let created = consumer.map_or(now.unix_nanos, |consumer| consumer.created());
        let durability = stream.config().durability();
        let was_stored = consumer.is_some_and(|it| durability.stores(it.config()));
        let is_stored = durability.stores(&config);
        match (documents, consumer) {
            (Some(documents), _) if was_stored && !is_stored => {
                remove_consumer_documents(Some(documents), &config.name);
            }
            (Some(documents), Some(consumer)) if is_stored => {
                if !was_stored {
                    let mut state = Vec::new();
                    consumer.encode_state(&mut state);
                    documents.put(&state_of(consumer), state);
                }
                persist_consumer_config(Some(documents), created, &config)?;
            }
            _ => {}
        }
        let filters_change =
            consumer.is_some_and(|consumer| !consumer.config().filters().eq(config.filters()));
        stream.with_consumers(now, port, |consumers, context| {
            let until = config.pause_until.map(|until| until.unix_nanos());
            let updated = consumers.update(id, config, context);
            consumers.pause(id, until, context);
            updated.map_err(ApiError::consumer_create)
        })?;
        if filters_change {
            // If the disk cannot remove records now, the removal is retried at the next change of
            // consumers.
            let _ = stream.remove_unneeded();
        }
        Ok(())
    }

    /// Pauses a consumer until a time, or resumes it.
    pub(super) fn pause_consumer(
        &mut self,
        of: (Key, ConsumerId),
        until: Option<Timestamp>,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        let stream = self.streams.get(of.0).ok_or(ApiError::STREAM_NOT_FOUND)?;
        let consumer = stream.consumers().get(of.1);
        let mut config = ConsumerConfig {
            pause_until: until,
            ..consumer
                .ok_or(ApiError::CONSUMER_NOT_FOUND)?
                .config()
                .clone()
        };
        let level = config.required_level();
        stored_metadata(&mut config.metadata, level);
        self.change_consumer(of, config, now, port)
    }

    /// Deletes a consumer and its documents.
    pub(super) fn delete_consumer(
        &mut self,
        key: Key,
        id: ConsumerId,
        now: Now,
        port: &mut dyn Port,
    ) {
        self.streams.touch(key);
        let Some((stream, documents)) = self.streams.with_documents(key) else {
            return;
        };
        let deleted = stream.with_consumers(now, port, |consumers, context| {
            consumers.delete(id, context)
        });
        let Some(consumer) = deleted else {
            return;
        };
        remove_consumer_documents(documents, consumer.name());
        // If the disk cannot remove records now, the removal is retried at the next change of consumers.
        let _ = stream.remove_unneeded();
        if !consumer.config().direct {
            let stream = stream.config().name.clone();
            let names = (stream.as_str(), consumer.name());
            self.advisories.consumer(Action::Delete, names, now, port);
        }
        self.note_receivers(key);
    }

    /// Writes the progress of a stream's sources if a write is due; with `all`, always.
    pub(super) fn persist_sources(&mut self, key: Key, all: bool, now: Now) {
        if let Some((stream, Some(documents))) = self.streams.with_documents(key)
            && let Some(progress) = stream.progress_to_save(now.since_start, all)
        {
            documents.put(SOURCES, progress);
        }
    }

    /// Writes the states of a stream's consumers that are due; with `all`, every changed state.
    pub(super) fn persist_consumer_states(
        &mut self,
        key: Key,
        all: bool,
        now: Now,
        port: &mut dyn Port,
    ) {
        let Some((stream, mut documents)) = self.streams.with_documents(key) else {
            return;
        };
        let mut has_saved = false;
        let durability = stream.config().durability();
        stream.with_consumers(now, port, |consumers, _| {
            consumers.save(now, all, &mut |consumer, state| {
                if let Some(documents) = &mut documents {
                    persist_consumer_state(documents, consumer, durability, state);
                    has_saved = true;
                }
            });
        });
        if has_saved {
            stream.note_states();
        }
    }
}

/// Returns the filters of acknowledgements and flow control messages of a stream. Each filter contains the
/// stream's name, so that leaf connections pass on only the messages of this server's streams.
fn own_filters(stream: &str) -> [String; 2] {
    [format!("$JS.ACK.{stream}.>"), format!("$JS.FC.{stream}.>")]
}

fn change(
    stream: &mut Stream,
    documents: Option<&mut Documents>,
    config: StreamConfig,
    now: Now,
    port: &mut dyn Port,
) -> Result<(), ApiError> {
    let was = stream.config().clone();
    let created = stream.created();
    stream.update(config, now, port)?;
    let config = stream.config().clone();
    // Subscribes to new filters before it unsubscribes from old ones. A subject that an old filter and a new
    // filter match has interest all the time.
    for subject in config.subjects.iter().filter(|s| !was.subjects.contains(s)) {
        port.subscribe(subject.as_bytes());
    }
    for subject in was.subjects.iter().filter(|s| !config.subjects.contains(s)) {
        port.unsubscribe(subject.as_bytes());
    }
    match documents {
        Some(documents) => {
            let document = AssetDocument { created, config };
            write(documents, STREAM, &document, true).map_err(ApiError::stream_update)
        }
        None => Ok(()),
    }
}

/// Writes the configuration of a consumer that is stored. For a durable consumer, also syncs it.
pub(super) fn persist_consumer_config(
    documents: Option<&mut Documents>,
    created: i64,
    config: &ConsumerConfig,
) -> Result<(), ApiError> {
    let Some(documents) = documents else {
        return Ok(());
    };
    let document = AssetDocument { created, config };
    let name = format!("{CONSUMER}{}", config.name);
    write(documents, &name, &document, config.is_durable()).map_err(ApiError::consumer_create)
}

/// Writes the state of a consumer, if it is stored.
pub(super) fn persist_consumer_state(
    documents: &mut Documents,
    consumer: &Consumer,
    durability: Durability,
    state: &[u8],
) {
    if durability.stores(consumer.config()) {
        documents.put(&state_of(consumer), state.to_vec());
    }
}

/// Returns the name of the document with a consumer's state.
fn state_of(consumer: &Consumer) -> String {
    format!("{STATE}{}", consumer.name())
}

/// Removes the documents of a consumer.
fn remove_consumer_documents(documents: Option<&mut Documents>, name: &str) {
    let Some(documents) = documents else { return };
    for of in [CONSUMER, &format!("{COPY}{CONSUMER}"), STATE] {
        documents.remove(&format!("{of}{name}"));
    }
}

fn write(
    documents: &mut Documents,
    name: &str,
    value: &impl Serialize,
    at_once: bool,
) -> Result<(), DiskError> {
    // Serializing only strings and numbers does not fail.
    let json = serde_json::to_vec(value).unwrap_or_default();
    documents.put(&format!("{COPY}{name}"), json.clone());
    documents.put(name, json);
    match at_once {
        true => documents.sync_now(),
        false => Ok(()),
    }
}
