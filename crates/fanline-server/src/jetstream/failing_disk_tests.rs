//! Streams on a disk that fails while clients publish.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use fanline_engine::jetstream::{AccountFolders, Folders};
use fanline_engine::store::{Disk, DiskError, FileId};

use super::disk::{EIO, OpenFiles};
use super::setup::streams_over;
use super::store_folder::{AccountsFolder, StreamFolders};
use super::tests::{TIME_LIMIT, TempFolder, server_of, stop};
use crate::client::Client;

const WORKS: u8 = 0;
const FULL: u8 = 1;
const BROKEN: u8 = 2;
/// Writes to the file succeed, but syncs fail.
const UNSYNCED: u8 = 3;

/// Account folders on a disk that fails on demand.
struct FailingAccounts {
    folders: AccountsFolder,
    how: Arc<AtomicU8>,
}

impl AccountFolders for FailingAccounts {
    fn has(&self, account: &str) -> bool {
        self.folders.has(account)
    }

    fn of(&mut self, account: &str) -> Result<Box<dyn Folders>, DiskError> {
        Ok(Box::new(Failing {
            folders: self.folders.account(account)?,
            how: Arc::clone(&self.how),
        }))
    }
}

/// Stream folders on a disk that fails on demand.
struct Failing {
    folders: StreamFolders,
    how: Arc<AtomicU8>,
}

impl Folders for Failing {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        self.folders.list()
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        Ok(Box::new(FailingDisk {
            disk: self.folders.open(stream)?,
            files: self.folders.open_files(),
            unsynced: None,
            how: Arc::clone(&self.how),
        }))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        self.folders.remove(stream)
    }
}

struct FailingDisk {
    disk: Box<dyn Disk>,
    files: OpenFiles,
    /// The real file, while its id refers to a file that cannot be synced.
    unsynced: Option<(FileId, Arc<File>)>,
    how: Arc<AtomicU8>,
}

impl FailingDisk {
    fn check(&self) -> Result<(), DiskError> {
        match self.how.load(Ordering::Relaxed) {
            FULL => Err(DiskError::Full),
            BROKEN => Err(DiskError::Other(EIO)),
            _ => Ok(()),
        }
    }

    /// Makes syncs of a file fail: replaces it by `/dev/null`, which cannot be synced.
    fn unsync(&mut self, file: FileId) {
        let null = Arc::new(File::open("/dev/null").expect("there"));
        let written = self.files.replace(file, null);
        self.unsynced = written.map(|written| (file, written));
    }

    fn end_unsync(&mut self) {
        if let Some((file, written)) = self.unsynced.take() {
            self.files.replace(file, written);
        }
    }
}

impl Disk for FailingDisk {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        self.disk.list()
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        self.disk.open(name, create)
    }

    fn close(&mut self, file: FileId) {
        self.end_unsync();
        self.disk.close(file);
    }

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.end_unsync();
        self.check()?;
        self.disk.write_at(file, offset, bytes)?;
        if self.how.load(Ordering::Relaxed) == UNSYNCED {
            self.unsync(file);
        }
        Ok(())
    }

    fn read_at(&mut self, file: FileId, offset: u64, bytes: &mut [u8]) -> Result<usize, DiskError> {
        match &self.unsynced {
            Some((unsynced, written)) if *unsynced == file => {
                let read = written.read_at(bytes, offset);
                read.map_err(|_| DiskError::Other(EIO))
            }
            _ => self.disk.read_at(file, offset, bytes),
        }
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        self.disk.len(file)
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        self.end_unsync();
        self.disk.truncate(file, bytes)
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        self.disk.remove(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }

    fn sync_file(&mut self, file: FileId) -> Result<(), DiskError> {
        self.end_unsync();
        self.check()?;
        self.disk.sync_file(file)
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        self.disk.sync_folder()
    }
}

async fn ask(client: &Client, subject: &str, payload: &str) -> String {
    let answer = client
        .request(subject, payload.to_owned(), TIME_LIMIT)
        .await;
    let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
    String::from_utf8_lossy(answer.payload()).into_owned()
}

#[tokio::test]
async fn publishes_fail_until_the_disk_has_room() {
    let folder = TempFolder::new();
    let how = Arc::new(AtomicU8::new(WORKS));
    let failing = Arc::clone(&how);
    let server = server_of(1, &folder, move |mut parts| {
        let folders = parts.folders.take().expect("a folder");
        let how = failing;
        streams_over(Box::new(FailingAccounts { folders, how }), parts)
    });
    let client = server.client().await.expect("connected");
    let config = r#"{"name":"S","subjects":["s"],"storage":"file"}"#;
    let made = ask(&client, "$JS.API.STREAM.CREATE.S", config).await;
    assert!(made.contains("did_create"), "{made}");
    let mut acked = 0;
    for (failure, code) in [(FULL, "10023"), (BROKEN, "10077"), (UNSYNCED, "10077")] {
        let ack = ask(&client, "s", "tea").await;
        assert!(ack.contains(r#""seq":"#) && !ack.contains("error"), "{ack}");
        acked += 1;
        how.store(failure, Ordering::Relaxed);
        for _ in 0..3 {
            let refused = ask(&client, "s", "more tea").await;
            assert!(refused.contains(code), "{refused}");
        }
        let read = ask(&client, "$JS.API.STREAM.MSG.GET.S", r#"{"seq":1}"#).await;
        assert!(read.contains("dGVh"), "{read}");
        how.store(WORKS, Ordering::Relaxed);
        // The stream accepts publishes again within a short time.
        while ask(&client, "s", "tea again").await.contains("error") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        acked += 1;
    }
    stop(&server).await;
    let server = server_of(1, &folder, |mut parts| {
        let folders = parts.folders.take().expect("a folder");
        streams_over(Box::new(folders), parts)
    });
    let client = server.client().await.expect("connected");
    let info = ask(&client, "$JS.API.STREAM.INFO.S", "").await;
    let (_, messages) = info.split_once(r#""messages":"#).expect("a count");
    let messages = messages
        .split(',')
        .next()
        .and_then(|digits| digits.parse().ok());
    // A rejected message may be stored, because the result of its sync is unknown.
    assert!(messages.is_some_and(|count: u32| count >= acked), "{info}");
    stop(&server).await;
}
