//! Recovery of stored streams at the start of the server.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use super::account::JetStream;
use super::assets::{AssetDocument, CONSUMER, COPY, SOURCES, STATE, STREAM};
use super::consumer::{Consumers, Context};
use super::streams::Key;
use super::{ApiError, ConsumerConfig, Now, Port, StreamConfig};
use crate::store::documents::{Documents, Found};
use crate::store::{DiskError, Recovery};

impl JetStream {
    /// Recovers all streams in the folders. An unreadable stream does not stop the others.
    pub(super) fn recover(&mut self, now: Now, port: &mut dyn Port) {
        let listed = self.folders.as_mut().map(|folders| folders.list());
        let names = match listed {
            None => return,
            Some(Ok(names)) => names,
            Some(Err(error)) => {
                return self.report(format!("cannot list the folders of streams: {error}"));
            }
        };
        for name in names {
            if let Err(error) = self.recover_stream(&name, now, port) {
                self.report(format!("stream {name} could not be recovered: {error}"));
                self.unrecovered
                    .insert(name, error.description.into_owned());
            }
        }
        self.remove_unneeded();
    }

    /// Removes records that no consumer or copy needs. It runs after the recovery of all streams, because
    /// only then the copies of each stream are known.
    fn remove_unneeded(&mut self) {
        let all = self.streams.iter();
        let all: Vec<_> = all
            .map(|(key, stream)| (key, stream.config().name.clone()))
            .collect();
        for (key, name) in all {
            let copies = self.copies_of(&name);
            let Some(stream) = self.streams.get_mut(key) else {
                continue;
            };
            let removed = stream
                .set_copies(&copies)
                .and_then(|()| stream.remove_unneeded())
                .and_then(|()| stream.remove_acknowledged());
            if let Err(error) = removed {
                self.report(format!(
                    "stream {name}: unneeded records could not be removed: {error}"
                ));
            }
        }
    }

    fn recover_stream(
        &mut self,
        name: &str,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        // The documents come first: one contains the options with which to open the log.
        let (_, found) = self.open_documents(name)?;
        if found.documents.is_empty() && found.damaged.is_empty() {
            // The stream was never confirmed: the server stopped while creating it.
            let folders = self.folders.as_mut();
            let removed = folders.map_or(Ok(()), |folders| folders.remove(name));
            return removed.map_err(ApiError::stream_delete);
        }
        let document: Option<AssetDocument<StreamConfig>> = read(&found, STREAM)?;
        let Some(AssetDocument { created, config }) = document else {
            return Err(ApiError::stream_create(
                "the folder has no stream configuration",
            ));
        };
        if config.name != name {
            return Err(ApiError::STREAM_MISMATCH);
        }
        let (parts, found, recovery) = self.open_parts(&config)?;
        let mut problems = problems(&found, &recovery);
        let key = self.add_stream(parts, config, created, now, port)?;
        let Some(stream) = self.streams.touch(key) else {
            return Ok(());
        };
        if let Some(progress) = content(&found, SOURCES) {
            stream.restore_sources(progress);
        }
        if let Some(from) = recovery.unsynced_from {
            let finished = stream.finish_rollups(from, port);
            finished.map_err(ApiError::stream_create)?;
        }
        // Handles the removals of the recovery before consumers exist, because consumers must not handle
        // them.
        stream.settle_removed(port);
        stream.with_consumers(now, port, |consumers, context| {
            for name in consumer_names(&found) {
                if let Err(error) = recover_consumer(consumers, &found, name, context) {
                    problems.push(format!("consumer {name} could not be recovered: {error}"));
                }
            }
        });
        if stream.consumers().has_unsaved()
            && let Err(error) = self.save_consumers(key, now, port)
        {
            problems.push(format!(
                "the states of its consumers could not be saved: {error}"
            ));
        }
        for problem in problems {
            self.report(format!("stream {name}: {problem}"));
        }
        self.note_consumer_leaders(key);
        Ok(())
    }

    /// Syncs the states of consumers whose positions were beyond the log's end, before new records are
    /// stored.
    fn save_consumers(&mut self, key: Key, now: Now, port: &mut dyn Port) -> Result<(), DiskError> {
        self.persist_consumer_states(key, true, now, port);
        let documents = self.streams.with_documents(key);
        let documents = documents.and_then(|(_, documents)| documents);
        documents.map_or(Ok(()), Documents::sync_now)
    }
}

/// Describes what was wrong with a folder.
fn problems(found: &Found, recovery: &Recovery) -> Vec<String> {
    let damaged = found.damaged.iter();
    let mut problems: Vec<String> = damaged
        .map(|name| format!("document {name} is damaged"))
        .collect();
    if recovery.index_was_bad {
        problems.push("its index was damaged and has been rebuilt".to_owned());
    }
    let lost = &recovery.lost;
    if lost.messages > 0 || lost.bytes > 0 {
        let (messages, bytes) = (lost.messages, lost.bytes);
        problems.push(format!("{messages} records are damaged, {bytes} bytes"));
    }
    let places = recovery.damages.iter();
    problems.extend(places.map(|at| format!("damage in {} at {}", at.file, at.offset)));
    problems
}

/// Returns the names of all consumers with at least one remaining document.
fn consumer_names(found: &Found) -> BTreeSet<&str> {
    let names = found.documents.iter().map(|(name, _)| name.as_str());
    let first = names.map(|name| name.strip_prefix(COPY).unwrap_or(name));
    first
        .filter_map(|name| name.strip_prefix(CONSUMER))
        .collect()
}

fn recover_consumer(
    consumers: &mut Consumers,
    found: &Found,
    name: &str,
    context: &mut Context<'_>,
) -> Result<(), ApiError> {
    let document: Option<AssetDocument<ConsumerConfig>> =
        read(found, &format!("{CONSUMER}{name}"))?;
    let Some(AssetDocument { created, config }) = document else {
        return Ok(());
    };
    let state = content(found, &format!("{STATE}{name}"));
    let restored = state.map(|state| consumers.restore(config.clone(), created, state, context));
    if let Some(Ok(_)) = restored {
        return Ok(());
    }
    // Without a state, the consumer begins where its deliver policy determines. Records are redelivered rather
    // than lost.
    let made = consumers.create(config, created, context);
    made.map(|_| ()).map_err(ApiError::consumer_create)
}

/// Reads a document or its second copy.
fn read<T: DeserializeOwned>(found: &Found, name: &str) -> Result<Option<T>, ApiError> {
    let json = content(found, name).or_else(|| content(found, &format!("{COPY}{name}")));
    let value = json.map(serde_json::from_slice).transpose();
    value.map_err(ApiError::stream_create)
}

fn content<'a>(found: &'a Found, name: &str) -> Option<&'a [u8]> {
    let document = found.documents.iter().find(|(known, _)| known == name);
    document.map(|(_, content)| content.as_slice())
}
