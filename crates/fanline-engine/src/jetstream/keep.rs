//! Streams and consumers come, change and go, and what is kept of them beside their records.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::account::JetStream;
use super::advisory::Action;
use super::consumer::{ConsumerId, Consumers};
use super::documents as document;
use super::stream::{Place, Stream};
use super::streams::Key;
use super::{
    ApiError, ConsumerConfig, Now, Port, Storage, StreamConfig, Timestamp, stored_metadata,
};
use crate::store::{Store, StoreError};

/// The document that says what a stream is.
const STREAM: &str = "stream";
/// Documents that say what a consumer is begin with this.
const CONSUMER: &str = "consumer.";
/// Documents that say how far a consumer is begin with this.
const STATE: &str = "state.";

/// What a document says of a stream or a consumer.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    created: i64,
    config: T,
}

impl JetStream {
    /// Makes a stream with an empty log.
    pub(super) fn make_stream(
        &mut self,
        config: StreamConfig,
        created: i64,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<Key, ApiError> {
        let store = self.make_store(&config)?;
        self.add_stream(store, config, created, now, port)
    }

    /// Makes a stream of a log.
    pub(super) fn add_stream(
        &mut self,
        mut store: Store,
        config: StreamConfig,
        created: i64,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<Key, ApiError> {
        if config.storage == Storage::File {
            let kept = Kept {
                created,
                config: &config,
            };
            write(&mut store, STREAM, &kept).map_err(ApiError::stream_create)?;
        }
        let place = Place {
            account: &self.settings.account,
            domain: self.settings.domain.as_deref(),
        };
        let stream = Stream::new(config, store, created, &place, now)?;
        for subject in &stream.config().subjects {
            port.subscribe(subject.as_bytes());
        }
        Ok(self.streams.insert(stream))
    }

    /// Puts another configuration in force, which has been checked.
    pub(super) fn change_stream(
        &mut self,
        key: Key,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        self.streams.leave(key);
        let changed = match self.streams.touch(key) {
            Some(stream) => change(stream, config, now, port),
            None => Err(ApiError::STREAM_NOT_FOUND),
        };
        self.streams.enter(key);
        changed
    }

    /// Deletes a stream with its consumers and all that is kept of it.
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
        let stream = self.streams.remove(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
        self.usage.remove(key);
        self.batches = self.batches.without(stream.open_batches());
        for subject in &stream.config().subjects {
            port.unsubscribe(subject.as_bytes());
        }
        let config = stream.config().clone();
        drop(stream);
        self.remove_folder(&config)?;
        self.advisories
            .stream(Action::Delete, &config.name, now, port);
        Ok(())
    }

    /// Removes what is on disk of a stream.
    pub(super) fn remove_folder(&mut self, config: &StreamConfig) -> Result<(), ApiError> {
        match &mut self.folders {
            Some(folders) if config.storage == Storage::File => folders
                .remove(&config.name)
                .map_err(ApiError::stream_delete),
            _ => Ok(()),
        }
    }

    /// Makes a consumer; its configuration has been checked in every way.
    pub(super) fn make_consumer(
        &mut self,
        key: Key,
        config: ConsumerConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<ConsumerId, ApiError> {
        let stream = self.streams.touch(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
        let created = now.unix_nanos;
        stream.with_consumers(now, port, |consumers, context| {
            keep_consumer(context.store, created, &config)?;
            let made = consumers.create(config, created, context);
            made.map_err(ApiError::consumer_create)
        })
    }

    /// Puts another configuration in force, which has been checked.
    pub(super) fn change_consumer(
        &mut self,
        (key, id): (Key, ConsumerId),
        config: ConsumerConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        let stream = self.streams.touch(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
        stream.with_consumers(now, port, |consumers, context| {
            let created = consumers.get(id).map_or(now.unix_nanos, |c| c.created());
            keep_consumer(context.store, created, &config)?;
            let until = config.pause_until.map(|until| until.unix_nanos());
            let updated = consumers.update(id, config, context);
            consumers.pause(id, until, context);
            updated.map_err(ApiError::consumer_create)
        })
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
        let consumer = stream
            .consumers()
            .get(of.1)
            .ok_or(ApiError::CONSUMER_NOT_FOUND)?;
        let mut config = ConsumerConfig {
            pause_until: until,
            ..consumer.config().clone()
        };
        let level = config.required_level();
        stored_metadata(&mut config.metadata, level);
        self.change_consumer(of, config, now, port)
    }

    /// Writes down how far the consumers of a stream are, if that is due, or in any case.
    pub(super) fn keep_consumers(&mut self, key: Key, all: bool, now: Now, port: &mut dyn Port) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let is_kept = stream.config().storage == Storage::File;
        let mut failed = None;
        stream.with_consumers(now, port, |consumers, context| {
            consumers.save(now, all, &mut |consumer, state| {
                if is_kept && !consumer.config().mem_storage {
                    let document = format!("{STATE}{}", consumer.name());
                    if let Err(error) = document::write(context.store, &document, state) {
                        failed = Some(error);
                    }
                }
            });
        });
        if let Some(error) = failed {
            let name = stream.config().name.clone();
            self.report(format!(
                "stream {name}: a consumer's state is not kept: {error}"
            ));
        }
    }

    /// Takes back all streams that the folders hold. One that cannot be read does not stop the others.
    pub(super) fn recover(&mut self, now: Now, port: &mut dyn Port) {
        let listed = self.folders.as_mut().map(|folders| folders.list());
        let names = match listed {
            None => return,
            Some(Ok(names)) => names,
            Some(Err(error)) => {
                return self.report(format!("the folders of streams cannot be listed: {error}"));
            }
        };
        for name in names {
            if let Err(error) = self.recover_stream(&name, now, port) {
                self.report(format!("stream {name} is not taken back: {error}"));
            }
        }
    }

    fn recover_stream(
        &mut self,
        name: &str,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        let (mut store, problems) = self.open_store(name)?;
        for problem in problems {
            self.report(format!("stream {name}: {problem}"));
        }
        let kept: Option<Kept<StreamConfig>> = read(&mut store, STREAM)?;
        let Some(Kept { created, config }) = kept else {
            return Err(ApiError::stream_create("it does not say what it is"));
        };
        if config.name != name {
            return Err(ApiError::STREAM_MISMATCH);
        }
        let key = self.add_stream(store, config, created, now, port)?;
        let Some(stream) = self.streams.touch(key) else {
            return Ok(());
        };
        let mut problems = Vec::new();
        let recovered = stream.with_consumers(now, port, |consumers, context| {
            let documents = document::names(context.store).map_err(ApiError::stream_create)?;
            let names = documents
                .iter()
                .filter_map(|name| name.strip_prefix(CONSUMER));
            for name in names {
                if let Err(error) = recover_consumer(consumers, name, context) {
                    problems.push(format!("consumer {name} is not taken back: {error}"));
                }
            }
            Ok(())
        });
        recovered.and_then(|()| stream.remove_unneeded().map_err(ApiError::stream_create))?;
        for problem in problems {
            self.report(format!("stream {name}: {problem}"));
        }
        Ok(())
    }
}

fn change(
    stream: &mut Stream,
    config: StreamConfig,
    now: Now,
    port: &mut dyn Port,
) -> Result<(), ApiError> {
    let was = stream.config().clone();
    let created = stream.created();
    stream.update(config, now, port)?;
    let config = stream.config().clone();
    // First what is new, so that what stays is never without interest.
    for subject in config.subjects.iter().filter(|s| !was.subjects.contains(s)) {
        port.subscribe(subject.as_bytes());
    }
    for subject in was.subjects.iter().filter(|s| !config.subjects.contains(s)) {
        port.unsubscribe(subject.as_bytes());
    }
    if config.storage == Storage::File {
        let kept = Kept { created, config };
        write(stream.store(), STREAM, &kept).map_err(ApiError::stream_update)?;
    }
    Ok(())
}

fn recover_consumer(
    consumers: &mut Consumers,
    name: &str,
    context: &mut super::consumer::Context<'_>,
) -> Result<(), ApiError> {
    let kept: Option<Kept<ConsumerConfig>> = read(context.store, &format!("{CONSUMER}{name}"))?;
    let Some(Kept { created, config }) = kept else {
        return Ok(());
    };
    let state = document::read(context.store, &format!("{STATE}{name}"));
    let restored = match state {
        Ok(Some(state)) => consumers
            .restore(config.clone(), created, &state, context)
            .map_err(ApiError::consumer_create),
        Ok(None) => Err(ApiError::CONSUMER_NOT_FOUND),
        Err(error) => Err(ApiError::consumer_create(error)),
    };
    // Without its state it begins anew: records come twice rather than never.
    match restored {
        Ok(_) => Ok(()),
        Err(_) => {
            let made = consumers.create(config, created, context);
            made.map(|_| ()).map_err(ApiError::consumer_create)
        }
    }
}

/// Writes down what a consumer is.
fn keep_consumer(store: &mut Store, created: i64, config: &ConsumerConfig) -> Result<(), ApiError> {
    if config.mem_storage {
        return Ok(());
    }
    let kept = Kept { created, config };
    let name = format!("{CONSUMER}{}", config.name);
    write(store, &name, &kept).map_err(ApiError::consumer_create)
}

/// Removes what is kept of a consumer. What cannot be removed is taken back at the next start, where
/// nobody uses it.
pub(super) fn forget_consumer(store: &mut Store, name: &str) {
    for kind in [CONSUMER, STATE] {
        let _ = document::remove(store, &format!("{kind}{name}"));
    }
}

fn write(store: &mut Store, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
    // Of strings and numbers only, it can be written.
    let json = serde_json::to_vec(value).unwrap_or_default();
    document::write(store, name, &json)
}

fn read<T: DeserializeOwned>(store: &mut Store, name: &str) -> Result<Option<T>, ApiError> {
    let json = document::read(store, name).map_err(ApiError::stream_create)?;
    let value = json.map(|json| serde_json::from_slice(&json)).transpose();
    value.map_err(ApiError::stream_create)
}
