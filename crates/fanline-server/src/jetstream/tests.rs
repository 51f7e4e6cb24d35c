//! Tests of the JetStream thread with a small handler, over clients.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use fanline_engine::auth::AccountId;
use fanline_engine::jetstream::{
    AccountSync, Handler, Message, Now, Port, Ports, StreamId, StreamSync,
};
use fanline_engine::store::{Disk, DiskError, FileId, SyncId, SyncRequest};
use tokio::time::timeout;

use super::disk::{FolderDisk, OpenFiles};
use super::store_folder::{self, StoreFolderError};
use super::{Parts, StoreFolder, ThreadHandler, start};
use crate::Options;
use crate::server::{self, Handle};

pub(super) const TIME_LIMIT: Duration = Duration::from_secs(20);
const STREAM: &str = "ECHO";
const ACCOUNT: &str = "$G";
const STREAM_ID: StreamId = StreamId(7);

/// A folder that is removed at the end of the test.
pub(super) struct TempFolder(PathBuf);

impl TempFolder {
    pub(super) fn new() -> Self {
        let name = format!("fanline-jetstream-{:x}", crate::identity::random_u64());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        TempFolder(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // If this fails, the folder remains, which does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Handler that replies to messages below `echo`: immediately, later, after a message to itself, or after a
/// sync.
struct Echo {
    disk: Box<dyn Disk>,
    file: FileId,
    written: u64,
    /// Replies to send at a time: the time, the reply subject, and the payload.
    later: VecDeque<(Duration, Vec<u8>, Vec<u8>)>,
    /// Replies that wait for the current sync.
    syncing: Vec<(Vec<u8>, Vec<u8>)>,
    unsynced: Vec<(Vec<u8>, Vec<u8>)>,
    /// Replies whose sync is done.
    synced: Vec<(Vec<u8>, Vec<u8>)>,
    syncs: u64,
    has_panicked: bool,
}

impl Echo {
    fn new(parts: Parts<'_>) -> Self {
        let folders = parts.folders.expect("a folder");
        let streams = folders.account(ACCOUNT).expect("there");
        let mut disk = streams.open(STREAM).expect("opened");
        let file = disk.open("log", true).expect("a file");
        parts.ports.of(AccountId::GLOBAL).subscribe(b"echo.>");
        Echo {
            written: disk.len(file).expect("a length"),
            disk,
            file,
            later: VecDeque::new(),
            syncing: Vec::new(),
            unsynced: Vec::new(),
            synced: Vec::new(),
            syncs: 0,
            has_panicked: false,
        }
    }
}

fn answer(reply: &[u8], payload: &[u8], port: &mut dyn Port) {
    let message = Message {
        subject: reply,
        payload,
        ..Message::default()
    };
    port.publish(&message);
}

impl ThreadHandler for Echo {}

impl Handler for Echo {
    fn handle(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        assert!(!self.has_panicked, "it is not used any more");
        let port = ports.of(account);
        let (reply, payload) = (message.reply, message.payload);
        match message.subject {
            b"echo.now" => answer(reply, payload, port),
            b"echo.self" => port.publish(&Message {
                subject: b"echo.now",
                ..*message
            }),
            b"echo.later" => {
                let at = now.since_start + Duration::from_millis(1);
                self.later.push_back((at, reply.into(), payload.into()));
            }
            b"echo.kept" => {
                let written = self.disk.write_at(self.file, self.written, payload);
                written.expect("the disk takes it");
                self.written += payload.len() as u64;
                self.unsynced.push((reply.into(), payload.into()));
            }
            b"echo.panic" => {
                self.has_panicked = true;
                panic!("in the middle of JetStream's work");
            }
            _ => {}
        }
    }

    fn handle_interest(&mut self, _: AccountId, _: &[u8], _: bool, _: Now, _: &mut dyn Ports) {}

    fn handle_timeout(&mut self, now: Now, ports: &mut dyn Ports) {
        let port = ports.of(AccountId::GLOBAL);
        while let Some((at, reply, payload)) = self.later.front()
            && *at <= now.since_start
        {
            answer(reply, payload, port);
            self.later.pop_front();
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.later.front().map(|(at, ..)| *at)
    }

    /// Returns `true` for most subjects, so that a shard's thread does the work, even if the reply is
    /// delayed.
    fn is_quick(&self, _: AccountId, subject: &[u8]) -> bool {
        subject != b"echo.kept"
    }

    fn settle(&mut self, _: Now, _: &mut dyn Ports) {}

    fn poll_sync(&mut self, _: Duration) -> Option<AccountSync> {
        if self.unsynced.is_empty() || !self.syncing.is_empty() {
            return None;
        }
        self.syncing = std::mem::take(&mut self.unsynced);
        self.syncs += 1;
        Some(AccountSync {
            account: AccountId::GLOBAL,
            account_name: ACCOUNT.into(),
            sync: StreamSync {
                stream: STREAM_ID,
                name: STREAM.into(),
                request: SyncRequest {
                    id: SyncId(self.syncs),
                    files: vec![self.file],
                    folder: true,
                },
            },
        })
    }

    fn handle_synced(
        &mut self,
        account: AccountId,
        stream: StreamId,
        id: SyncId,
        result: Result<(), DiskError>,
        _: Duration,
    ) {
        assert_eq!((account, stream), (AccountId::GLOBAL, STREAM_ID));
        assert_eq!(id, SyncId(self.syncs));
        result.expect("synced");
        self.synced.append(&mut self.syncing);
    }

    fn release_acks(&mut self, _: Duration, ports: &mut dyn Ports) {
        let port = ports.of(AccountId::GLOBAL);
        for (reply, payload) in self.synced.drain(..) {
            answer(&reply, &payload, port);
        }
    }

    fn close(&mut self, _: Now, ports: &mut dyn Ports) {
        assert!(!self.has_panicked, "it is not used any more");
        let port = ports.of(AccountId::GLOBAL);
        self.disk.sync_file(self.file).expect("synced");
        for (reply, payload) in self.syncing.drain(..).chain(self.unsynced.drain(..)) {
            answer(&reply, &payload, port);
        }
    }
}

fn server(shards: usize, folder: &TempFolder) -> Handle {
    server_of(shards, folder, Echo::new)
}

pub(super) fn server_of<H: ThreadHandler + 'static>(
    shards: usize,
    folder: &TempFolder,
    make: impl FnOnce(Parts<'_>) -> H + Send + 'static,
) -> Handle {
    let store = StoreFolder::open(&folder.0).expect("it is free");
    let options = Options {
        port: 0,
        shards: shards.try_into().ok(),
        ..Options::default()
    };
    let jetstream = move |common: &_, _: &_| start(common, Some(store), |_, _| Ok(make));
    server::start(options, Some(Box::new(jetstream))).expect("the server starts")
}

pub(super) async fn stop(server: &Handle) {
    server.shutdown();
    timeout(TIME_LIMIT, server.wait()).await.expect("it stops");
}

#[tokio::test]
async fn messages_reach_jetstream_and_get_replies() {
    for shards in [1, 3] {
        let folder = TempFolder::new();
        let server = server(shards, &folder);
        let mut kept = Vec::new();
        // Two clients for each shard.
        for _ in 0..shards * 2 {
            let client = server.client().await.expect("connected");
            for subject in ["echo.now", "echo.self", "echo.later", "echo.kept"] {
                for payload in [&b""[..], b"tea", &[b'x'; 100_000]] {
                    let reply = client.request(subject, payload.to_vec(), TIME_LIMIT).await;
                    assert_eq!(reply.expect("an answer").payload(), payload, "{subject}");
                    if subject == "echo.kept" {
                        kept.extend_from_slice(payload);
                    }
                }
            }
        }
        stop(&server).await;
        let log = folder.0.join("jetstream/fanline/streams/$G/ECHO/log");
        assert!(fs::read(log).expect("there is a log") == kept);
    }
}

/// Story: a shard's thread processes a small batch itself. A panic there ended only the client's task. The
/// server continued, and the JetStream thread used the half-changed state.
#[tokio::test]
async fn panic_while_a_shard_does_the_work_stops_the_server() {
    let folder = TempFolder::new();
    let server = server(1, &folder);
    let client = server.client().await.expect("connected");
    let reply = client.request("echo.now", "tea", TIME_LIMIT).await;
    assert_eq!(reply.expect("an answer").payload(), &b"tea"[..]);
    client.publish("echo.panic", "").await.expect("sent");
    timeout(TIME_LIMIT, server.wait()).await.expect("it stops");
    assert!(server.has_panicked());
}

#[test]
fn store_folder_in_use_is_refused() {
    let folder = TempFolder::new();
    let first = StoreFolder::open(&folder.0).expect("it is free");
    let second = StoreFolder::open(&folder.0);
    assert!(matches!(second, Err(StoreFolderError::InUse(Some(id))) if id == std::process::id()));
    drop(first);
    StoreFolder::open(&folder.0).expect("it is free again");
    let file = folder.0.join("file");
    fs::write(&file, "").expect("written");
    let no_folder = StoreFolder::open(&file);
    assert!(matches!(no_folder, Err(StoreFolderError::Io(_))));
}

/// Several values of `store_dir` lead to one store, and report the same folder.
#[test]
fn store_is_found_with_the_folder_that_it_reports() {
    let folder = TempFolder::new();
    let at = |path: &str| folder.0.join(path);
    for (made, reported, others) in [
        (
            "new",
            "new/jetstream",
            &["new/jetstream", "new/jetstream/"][..],
        ),
        ("b/jetstream", "b/jetstream", &["b"]),
    ] {
        let store = StoreFolder::open(&at(made)).expect("it is free");
        let path = store.path().to_owned();
        assert_eq!(path, at(reported).join("fanline"), "{made}");
        assert_eq!(store_folder::reported(&at(made)), at(reported), "{made}");
        drop(store);
        for other in others {
            let store = StoreFolder::open(&at(other)).expect("it is free");
            assert_eq!(store.path(), path, "{other}");
        }
    }
    // The folder of the first versions, and the folder that they reported.
    fs::create_dir_all(at("old/fanline/streams/$G")).expect("made");
    fs::write(at("old/fanline/lock"), "1\n").expect("written");
    for store_dir in ["old", "old/fanline"] {
        let store = StoreFolder::open(&at(store_dir)).expect("it is free");
        assert_eq!(store.path(), at("old/fanline"), "{store_dir}");
        assert!(store.path().join("streams/$G").is_dir());
        assert_eq!(store_folder::reported(&at(store_dir)), at("old"));
    }
    drop(StoreFolder::open(&at("old/jetstream")).expect("another store"));
    let Err(StoreFolderError::Io(error)) = StoreFolder::open(&at("old")) else {
        panic!("either may be meant");
    };
    assert!(error.to_string().contains("also holds streams"), "{error}");
}

#[test]
fn streams_come_and_go_in_folders() {
    let folder = TempFolder::new();
    let store = StoreFolder::open(&folder.0).expect("it is free");
    let accounts = store.accounts(&OpenFiles::default()).expect("there");
    assert!(!accounts.has("$G"));
    let streams = accounts.account("$G").expect("there");
    assert!(accounts.has("$G"));
    assert_eq!(streams.list(), Ok(Vec::new()));
    let long = "n".repeat(255);
    for name in ["B", "A", &long] {
        let mut disk = streams.open(name).expect("opened");
        disk.open("log", true).expect("a file");
    }
    assert_eq!(
        streams.list(),
        Ok(vec!["A".into(), "B".into(), long.clone()])
    );
    for name in ["A", &long, "never"] {
        assert_eq!(streams.remove(name), Ok(()));
    }
    assert_eq!(streams.list(), Ok(vec!["B".into()]));
    for name in ["", ".", "..", "a/b", "/etc", "a\\b", "a\0"] {
        assert!(streams.open(name).is_err(), "{name:?}");
    }
}

#[test]
fn files_are_written_and_read_back() {
    let folder = TempFolder::new();
    let files = OpenFiles::default();
    let mut disk = FolderDisk::new(folder.0.clone(), files.clone());
    assert_eq!(disk.open("a", false), Err(DiskError::NotFound));
    let a = disk.open("a", true).expect("made");
    assert_eq!(disk.write_at(a, 3, b"defgh"), Ok(()));
    assert_eq!(disk.write_at(a, 0, b"abc"), Ok(()));
    let mut bytes = [0; 10];
    assert_eq!(disk.read_at(a, 1, &mut bytes), Ok(7));
    assert_eq!(&bytes[..7], b"bcdefgh");
    assert_eq!(disk.read_at(a, 100, &mut bytes), Ok(0));
    assert_eq!(disk.truncate(a, 2), Ok(()));
    assert_eq!(disk.len(a), Ok(2));
    assert_eq!(disk.sync_file(a), Ok(()));
    assert_eq!(disk.rename("a", "b"), Ok(()));
    assert_eq!(disk.sync_folder(), Ok(()));
    assert_eq!(disk.list(), Ok(vec!["b".into()]));
    // A file stays open after `close` while a sync thread uses it.
    let held = files.get(a).expect("open");
    disk.close(a);
    assert!(files.get(a).is_none());
    assert!(held.sync_data().is_ok());
    assert_eq!(disk.len(a), Err(DiskError::NotFound));
    assert_eq!(disk.remove("b"), Ok(()));
    assert_eq!(disk.remove("b"), Ok(()));
    let c = disk.open("c", true).expect("made");
    drop(disk);
    assert!(files.get(c).is_none());
}
