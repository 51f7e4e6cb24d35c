//! Restores of streams.

use std::time::Duration;

use super::TRANSFERS_MAX;
use super::archive::{Frame, Reader};
use crate::jetstream::account::JetStream;
use crate::jetstream::assets::{STATE, persist_consumer_config};
use crate::jetstream::stores::StreamParts;
use crate::jetstream::streams::Key;
use crate::jetstream::{
    ApiError, ConsumerConfig, Message, Now, Port, Storage, StreamConfig, api::created_reply,
    check_consumer_name,
};

/// Maximum memory of an account's restores for incomplete frames, and for consumers, which are created when
/// the backup ends. A restore that exceeds it is refused.
const BUFFERED_BYTES_MAX: usize = 1 << 28;
/// Memory of a consumer in addition to the bytes of its configuration and state.
const CONSUMER_OVERHEAD_BYTES: usize = 512;

/// A restore that is in progress.
pub(in crate::jetstream) struct Restore {
    id: String,
    pub(super) config: StreamConfig,
    parts: StreamParts,
    reader: Reader,
    consumers: Vec<(Vec<u8>, Vec<u8>)>,
    consumers_bytes: usize,
    is_complete: bool,
    pub(super) last_message: Duration,
}

impl JetStream {
    /// Begins to restore a stream, and returns the subject to which the backup must be sent. The caller has
    /// checked the configuration.
    pub(in crate::jetstream) fn start_restore(
        &mut self,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<String, ApiError> {
        if self.transfers.restores.len() >= TRANSFERS_MAX {
            return Err(ApiError::stream_restore("too many restores at once"));
        }
        let parts = self.create_parts(&config)?;
        let id = self.random.id();
        let deliver = format!("$JS.SNAPSHOT.RESTORE.{}.{id}", config.name);
        self.advisories
            .transfer("restore_create", (&config.name, None), now, port);
        self.transfers.restores.push(Restore {
            id,
            config,
            parts,
            reader: Reader::default(),
            consumers: Vec::new(),
            consumers_bytes: 0,
            is_complete: false,
            last_message: now.since_start,
        });
        Ok(deliver)
    }

    /// Handles a chunk. An empty chunk ends the restore.
    pub(super) fn handle_restore_chunk(
        &mut self,
        id: &str,
        message: &Message<'_>,
        now: Now,
        port: &mut dyn Port,
    ) {
        let restores = &mut self.transfers.restores;
        let Some(at) = restores.iter().position(|restore| restore.id == id) else {
            return;
        };
        let mut restore = restores.swap_remove(at);
        restore.last_message = now.since_start;
        let reply = if message.payload.is_empty() {
            self.finish_restore(restore, now, port)
        } else {
            // A small chunk may expand to many records, so the account's limits apply to the decompressed
            // data.
            let storage = restore.config.storage;
            let others = self.restored_bytes(storage);
            let has_room = |bytes: u64| {
                let bytes = others.saturating_add(bytes);
                self.usage.check(storage, bytes, &self.settings)
            };
            let buffered = total_buffered_bytes(&self.transfers.restores);
            let may_buffer = BUFFERED_BYTES_MAX.saturating_sub(buffered);
            match restore.take(message.payload, may_buffer, &has_room) {
                Ok(()) => {
                    self.transfers.restores.push(restore);
                    Vec::new()
                }
                Err(error) => {
                    self.abandon_restore(restore);
                    error_reply(&error)
                }
            }
        };
        if !message.reply.is_empty() {
            port.publish(&Message {
                subject: message.reply,
                payload: &reply,
                ..Message::default()
            });
        }
    }

    /// Returns the size in bytes of all streams that are being restored.
    fn restored_bytes(&self, storage: Storage) -> u64 {
        let restores = self.transfers.restores.iter();
        restores
            .filter(|restore| restore.config.storage == storage)
            .map(|restore| restore.parts.store.total_bytes())
            .sum()
    }

    fn finish_restore(&mut self, restore: Restore, now: Now, port: &mut dyn Port) -> Vec<u8> {
        if !restore.is_complete {
            self.abandon_restore(restore);
            return error_reply(&ApiError::stream_restore("the backup has no end"));
        }
        let Restore {
            config,
            mut parts,
            consumers,
            ..
        } = restore;
        let name = config.name.clone();
        // The records must be durable before the reply confirms the stream.
        let synced = parts.store.sync_now(now.since_start);
        let added = synced
            .map_err(ApiError::stream_restore)
            .and_then(|()| self.persist_stream(parts, config, now, port));
        let key = match added {
            Ok(key) => key,
            Err(error) => return error_reply(&error),
        };
        for (document, state) in &consumers {
            if let Err(error) = self.restore_consumer(key, document, state, now, port) {
                self.report(format!(
                    "stream {name}: a consumer of the backup could not be restored: {error}"
                ));
            }
        }
        self.note_consumer_leaders(key);
        self.advisories
            .transfer("restore_complete", (&name, None), now, port);
        created_reply(self, key, now)
    }

    /// Restores a consumer. If its state is invalid, the consumer begins where its deliver policy determines.
    fn restore_consumer(
        &mut self,
        key: Key,
        document: &[u8],
        state: &[u8],
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        let (created, config): (i64, ConsumerConfig) =
            serde_json::from_slice(document).map_err(ApiError::stream_restore)?;
        self.streams.touch(key);
        let found = self.streams.with_documents(key);
        let (stream, mut documents) = found.ok_or(ApiError::STREAM_NOT_FOUND)?;
        // Backups may be forged. Two consumers with the same name would share documents.
        check_consumer_name(&config.name)?;
        if config.name.is_empty() || stream.consumers().find(&config.name).is_some() {
            return Err(ApiError::stream_restore(
                "two consumers have the same name, or one has none",
            ));
        }
        let durability = stream.config().durability();
        documents = documents.filter(|_| durability.stores(&config));
        persist_consumer_config(documents.as_deref_mut(), created, &config)?;
        if let Some(documents) = documents {
            documents.put(&format!("{STATE}{}", config.name), state.to_vec());
        }
        stream.with_consumers(now, port, |consumers, context| {
            let restored = consumers.restore(config.clone(), created, state, context);
            match restored {
                Ok(_) => Ok(()),
                Err(_) => consumers
                    .create(config, created, context)
                    .map(|_| ())
                    .map_err(ApiError::consumer_create),
            }
        })
    }

    /// Removes the files of a failed restore.
    pub(super) fn abandon_restore(&mut self, restore: Restore) {
        let Restore { config, parts, .. } = restore;
        drop(parts);
        if let Err(error) = self.remove_folder(&config) {
            let name = &config.name;
            self.report(format!(
                "the partial restore of stream {name} could not be removed: {error}"
            ));
        }
    }
}

impl Restore {
    /// Returns the memory for consumers and an incomplete frame.
    fn buffered_bytes(&self) -> usize {
        self.reader.buffered_bytes() + self.consumers_bytes
    }

    /// Handles a chunk, with at most `may_buffer` bytes of memory. `has_room` checks whether the account's
    /// limits allow a stream of this size.
    fn take(
        &mut self,
        chunk: &[u8],
        may_buffer: usize,
        has_room: &dyn Fn(u64) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        self.reader.push(chunk);
        loop {
            let may_buffer = may_buffer.saturating_sub(self.consumers_bytes);
            let next = self.reader.next(may_buffer);
            let Some(frame) = next.map_err(ApiError::stream_restore)? else {
                return Ok(());
            };
            match frame {
                Frame::Record(sequence, record) => {
                    let store = &mut self.parts.store;
                    // Backups may be forged, and the subject becomes part of protocol lines.
                    let has_space = record.subject.iter().any(u8::is_ascii_whitespace);
                    if record.subject.is_empty() || has_space {
                        return Err(ApiError::stream_restore("a record has no valid subject"));
                    }
                    has_room(store.total_bytes() + store.record_bytes(&record))?;
                    let appended = store.append_at(sequence, &record);
                    appended.map_err(ApiError::stream_restore)?;
                }
                Frame::Consumer(config, state) => {
                    let bytes = config.len() + state.len() + CONSUMER_OVERHEAD_BYTES;
                    self.consumers_bytes += bytes;
                    if bytes > may_buffer {
                        return Err(ApiError::stream_restore("its consumers are too large"));
                    }
                    self.consumers.push((config.to_vec(), state.to_vec()));
                }
                Frame::Skip(next) => {
                    self.parts
                        .store
                        .skip_to(next)
                        .map_err(ApiError::stream_restore)?;
                }
                Frame::End => self.is_complete = true,
            }
        }
    }
}

fn total_buffered_bytes(restores: &[Restore]) -> usize {
    restores.iter().map(Restore::buffered_bytes).sum()
}

fn error_reply(error: &ApiError) -> Vec<u8> {
    crate::jetstream::api::failed_reply("stream_create", error)
}
