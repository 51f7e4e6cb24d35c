//! JetStream as the work of the keeper's thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::ServerInfo;
use fanline_engine::jetstream::{
    API_LEVEL, AccountLimits, Folders, JetStream, Now, Overview, OverviewWanted, Port,
    ServerLimits, Settings, StreamId, Strictness,
};
use fanline_engine::store::{Disk, DiskError, Key, SyncId};
use tracing::info;

use super::store_folder::{OWN, StoreFolder, StoreFolderError, StreamFolders};
use super::work::{StreamSync, Work};
use super::{ACCOUNT, Parts, machine, start, store_key};
use crate::options::{Cipher, JetStreamOptions};
use crate::server::{StartError, StartKeeper};
use crate::shell::Common;

/// What starts the keeper of a server that has JetStream. The store folder is this server's from
/// here on.
pub(crate) fn starter(options: &JetStreamOptions) -> Result<StartKeeper, StartError> {
    let options = options.clone();
    let store = options.store_dir.as_deref().map(take).transpose()?;
    let key = store.as_ref().map(|store| key_of(store, &options));
    let key = key.transpose()?.flatten();
    Ok(Box::new(move |common: &Arc<Common>, info: &ServerInfo| {
        let limits = limits(&options, store.as_ref());
        log_start(&options, limits, store.as_ref());
        let settings = Settings {
            key,
            ..settings(&options, limits, info)
        };
        start(common, store, move |parts| streams(settings, parts))
    }))
}

/// What streams are kept in below the folder that was asked for.
pub(crate) fn store_folder(store_dir: &Path) -> PathBuf {
    store_dir.join(OWN)
}

fn take(store_dir: &Path) -> Result<StoreFolder, StartError> {
    StoreFolder::open(store_dir).map_err(|error| match error {
        StoreFolderError::InUse(process) => StartError::StoreInUse {
            path: store_folder(store_dir),
            process,
        },
        StoreFolderError::Io(source) => StartError::StoreFolder {
            path: store_folder(store_dir),
            source,
        },
    })
}

fn key_of(store: &StoreFolder, options: &JetStreamOptions) -> Result<Option<Key>, StartError> {
    let key = store_key::open(store.path(), options.encryption.as_ref());
    key.map_err(|source| StartError::StoreKey {
        path: store.path().to_owned(),
        source,
    })
}

fn settings(options: &JetStreamOptions, limits: ServerLimits, info: &ServerInfo) -> Settings {
    Settings {
        account: ACCOUNT.into(),
        domain: options.domain.clone(),
        server_id: info.server_id.clone(),
        server_name: info.server_name.clone(),
        server_version: info.version.clone(),
        strictness: match options.strict {
            true => Strictness::Strict,
            false => Strictness::Lenient,
        },
        limits: AccountLimits::default(),
        server_limits: limits,
        sync: options.sync,
        key: None,
    }
}

/// What all streams may use together: three quarters of what the machine has, if nobody says.
fn limits(options: &JetStreamOptions, store: Option<&StoreFolder>) -> ServerLimits {
    let part = |bytes: u64| bytes / 4 * 3;
    let free = || store.and_then(|store| machine::disk_bytes_free(store.path()));
    ServerLimits {
        memory_bytes_max: options
            .memory_bytes_max
            .or_else(|| machine::memory_bytes().map(part)),
        storage_bytes_max: options.file_bytes_max.or_else(|| free().map(part)),
    }
}

fn log_start(options: &JetStreamOptions, limits: ServerLimits, store: Option<&StoreFolder>) {
    let bytes = |max: Option<u64>| max.map_or_else(|| "unlimited".into(), machine::shown);
    info!("Starting JetStream");
    info!("---------------- JETSTREAM ----------------");
    info!("  Strict:          {}", options.strict);
    info!("  Max Memory:      {}", bytes(limits.memory_bytes_max));
    info!("  Max Storage:     {}", bytes(limits.storage_bytes_max));
    if let Some(store) = store {
        info!("  Store Directory: {:?}", store.path());
    }
    if let Some(encryption) = options.encryption.as_ref().filter(|_| store.is_some()) {
        let cipher = match encryption.cipher {
            Cipher::Aes => "AES-GCM",
            Cipher::ChaCha => "ChaCha20-Poly1305",
        };
        info!("  Encryption:      {cipher}");
    }
    if let Some(domain) = &options.domain {
        info!("  Domain:          {domain}");
    }
    info!("  API Level:       {API_LEVEL}");
    info!("-------------------------------------------");
}

/// All streams of the one account.
fn streams(settings: Settings, parts: Parts<'_>) -> JetStream {
    let Parts {
        folders,
        seed,
        now,
        port,
    } = parts;
    let folders = folders.map(|folders| Box::new(folders) as Box<dyn Folders>);
    JetStream::new(settings, folders, seed, now, port)
}

/// The same over folders that fail.
#[cfg(test)]
pub(super) fn streams_over(folders: Box<dyn Folders>, parts: Parts<'_>) -> JetStream {
    let settings = settings(
        &JetStreamOptions::default(),
        ServerLimits::default(),
        &ServerInfo::default(),
    );
    let Parts {
        seed, now, port, ..
    } = parts;
    JetStream::new(settings, Some(folders), seed, now, port)
}

impl Work for JetStream {
    fn overview(&mut self, wanted: OverviewWanted, now: Now, port: &mut dyn Port) -> Overview {
        self.overview(wanted, now, port)
    }

    fn next_sync(&mut self, now: Duration, port: &mut dyn Port) -> Option<StreamSync> {
        let sync = self.next_sync(now, port)?;
        Some(StreamSync {
            stream: sync.stream.0,
            name: sync.name,
            request: sync.request,
        })
    }

    fn handle_synced(
        &mut self,
        stream: u64,
        id: SyncId,
        result: Result<(), DiskError>,
        now: Now,
        port: &mut dyn Port,
    ) {
        let stream = StreamId(stream);
        self.handle_synced(stream, id, result, now, port);
    }

    fn close(&mut self, now: Now, port: &mut dyn Port) {
        self.close(now, port);
    }

    fn take_problems(&mut self) -> Vec<String> {
        self.take_problems()
    }
}

impl Folders for StreamFolders {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        StreamFolders::list(self)
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        StreamFolders::open(self, stream)
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        StreamFolders::remove(self, stream)
    }
}
