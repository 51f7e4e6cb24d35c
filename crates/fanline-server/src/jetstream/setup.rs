//! Creates the JetStream service from options.

use std::path::Path;
use std::sync::Arc;

use fanline_engine::jetstream::{
    API_LEVEL, AccountFolders, ClusterSettings, Folders, Handler, JetStreams, ServerLimits,
    Settings, Strictness,
};
use fanline_engine::store::{Disk, DiskError, Key};
use fanline_engine::{AccountLimits, ServerInfo};
use tracing::info;
#[cfg(feature = "replication")]
use tracing::warn;

#[cfg(feature = "replication")]
use super::lanes::{Lanes, Replication};
use super::store_folder::{AccountsFolder, StoreFolder, StoreFolderError, StreamFolders};
use super::{Parts, StartJetStream, machine, start, store_folder, store_key};
use crate::error::StartError;
use crate::ipc::Common;
use crate::options::{Cipher, JetStreamOptions};

/// Returns a function that starts the JetStream service. Locks the store folder for this server.
pub(crate) fn starter(
    options: &JetStreamOptions,
    cluster: Option<ClusterSettings>,
    routes: usize,
) -> Result<StartJetStream, StartError> {
    let options = options.clone();
    let store = options.store_dir.as_deref().map(take).transpose()?;
    let key = store.as_ref().map(|store| key_of(store, &options));
    let key = key.transpose()?.flatten();
    Ok(Box::new(move |common: &Arc<Common>, info: &ServerInfo| {
        let limits = limits(&options, store.as_ref());
        log_start(&options, limits, store.as_ref());
        let settings = Settings {
            key,
            cluster,
            ..settings(&options, limits, info)
        };
        #[cfg(feature = "replication")]
        if settings.cluster.is_some() && store.is_some() {
            if settings.key.is_none() {
                return start(common, store, move |store, files| {
                    let store = store.unwrap_or_else(|| Path::new("."));
                    let replication =
                        Replication::open(store, files, &settings.server_name, routes)?;
                    Ok(move |parts: Parts<'_>| with_lanes(settings, replication, parts))
                });
            }
            warn!("Streams have one replica, because this server encrypts its store");
        }
        #[cfg(not(feature = "replication"))]
        let _ = routes;
        start(common, store, move |_, _| {
            Ok(move |parts: Parts<'_>| streams(settings, parts))
        })
    }))
}

fn take(store_dir: &Path) -> Result<StoreFolder, StartError> {
    StoreFolder::open(store_dir).map_err(|error| match error {
        StoreFolderError::InUse(process) => StartError::StoreInUse {
            path: store_folder::path_of(store_dir),
            process,
        },
        StoreFolderError::Io(source) => StartError::StoreFolder {
            path: store_folder::path_of(store_dir),
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
        account: String::new(),
        domain: options.domain.clone(),
        server_id: info.server_id.clone(),
        server_name: info.server_name.clone(),
        cluster: None,
        server_version: info.version.clone(),
        strictness: match options.strict {
            true => Strictness::Strict,
            false => Strictness::Lenient,
        },
        limits: AccountLimits::default(),
        server_limits: limits,
        asset_limits: options.asset_limits,
        sync: options.sync,
        key: None,
    }
}

/// Returns the limits of all streams together. By default these are three quarters of the machine's memory
/// and of the free disk space.
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

/// Creates the streams of all accounts.
fn streams(settings: Settings, parts: Parts<'_>) -> JetStreams {
    let folders = parts.folders.clone();
    let folders = folders.map(|folders| Box::new(folders) as Box<dyn AccountFolders>);
    granted(settings, folders, parts)
}

/// Creates the streams of all accounts, with those that are replicated.
#[cfg(feature = "replication")]
fn with_lanes(settings: Settings, replication: Replication, parts: Parts<'_>) -> Lanes {
    let folders = parts.folders.clone();
    let folders = folders.map(|folders| Box::new(folders) as Box<dyn AccountFolders>);
    let own = JetStreams::new(settings.clone(), folders, parts.seed);
    Lanes::new(settings, replication, own, parts)
}

/// Creates the streams of all accounts in the given folders, which may fail on purpose.
#[cfg(test)]
pub(super) fn streams_over(folders: Box<dyn AccountFolders>, parts: Parts<'_>) -> JetStreams {
    let settings = settings(
        &JetStreamOptions::default(),
        ServerLimits::default(),
        &ServerInfo::default(),
    );
    granted(settings, Some(folders), parts)
}

fn granted(
    settings: Settings,
    folders: Option<Box<dyn AccountFolders>>,
    parts: Parts<'_>,
) -> JetStreams {
    let Parts {
        seed,
        now,
        access,
        ports,
        ..
    } = parts;
    let mut jetstreams = JetStreams::new(settings, folders, seed);
    jetstreams.set_accounts(access, now, ports);
    jetstreams
}

impl AccountFolders for AccountsFolder {
    fn has(&self, account: &str) -> bool {
        AccountsFolder::has(self, account)
    }

    fn of(&mut self, account: &str) -> Result<Box<dyn Folders>, DiskError> {
        Ok(Box::new(self.account(account)?))
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
