//! Copies of a lane's files, for a member that lacks entries which the log does not have any more.
//!
//! The files may change while they are copied: the member then executes all entries since the beginning of the copy.
//! `docs/formats/replication.md` describes the messages. A message that gets lost ends the copy, and another one begins.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fanline_consensus::port::NodeId;
use fanline_consensus::wal::Floor;
use serde::{Deserialize, Serialize};

use super::store::LaneStore;
use crate::private_files;

/// Bytes of a file in one message.
const PART_BYTES: usize = 256 << 10;
/// Messages that are not confirmed yet.
const PARTS_UNDER_WAY_MAX: u64 = 8;
/// Time without a message of the other member after which a copy ends.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The beginning of a message, in JSON. A line feed follows, and then bytes of a file.
#[derive(Debug, Deserialize, Serialize)]
struct Head {
    /// Number of the copy.
    copy: u64,
    /// Number of the message in the copy.
    part: u64,
    content: Content,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    /// Index, term, and note of the last entry whose effects the copy has in full.
    Begin(u64, u64, Vec<u8>),
    File {
        folder: String,
        name: String,
        offset: u64,
    },
    End,
}

/// The answer to a message.
#[derive(Debug, Deserialize, Serialize)]
struct Wanted {
    copy: u64,
    /// Number of the next message.
    part: u64,
}

/// A copy for another member.
pub(super) struct Sending {
    pub(super) to: NodeId,
    copy: u64,
    store: LaneStore,
    floor: Floor,
    /// Files that are not copied yet: their folders and names.
    files: VecDeque<(String, String)>,
    /// The first of them, and how many of its bytes are copied.
    open: Option<(File, u64)>,
    /// Number of the next message, and of the next one that the member wants.
    part: u64,
    wanted: u64,
    has_ended: bool,
    heard_at: Duration,
}

impl Sending {
    /// Begins a copy. `floor` is that of the log, which must not change until the end.
    pub(super) fn new(
        to: NodeId,
        copy: u64,
        store: &LaneStore,
        floor: Floor,
        now: Duration,
    ) -> io::Result<Self> {
        let mut files = VecDeque::new();
        for folder in store
            .list()
            .map_err(|error| io::Error::other(error.to_string()))?
        {
            for entry in fs::read_dir(path_of(store, &folder)?)? {
                let name = entry?.file_name().into_string();
                files.extend(name.map(|name| (folder.clone(), name)));
            }
        }
        Ok(Sending {
            to,
            copy,
            store: store.clone(),
            floor,
            files,
            open: None,
            part: 0,
            wanted: 0,
            has_ended: false,
            heard_at: now,
        })
    }

    /// Takes an answer. Returns whether the member has everything.
    pub(super) fn receive(&mut self, bytes: &[u8], now: Duration) -> bool {
        if let Ok(wanted) = serde_json::from_slice::<Wanted>(bytes)
            && wanted.copy == self.copy
        {
            self.heard_at = now;
            self.wanted = self.wanted.max(wanted.part);
        }
        self.has_ended && self.wanted >= self.part
    }

    pub(super) fn is_lost(&self, now: Duration) -> bool {
        self.heard_at + SILENCE_MAX < now
    }

    /// Returns the next message to send, if one may be sent.
    pub(super) fn poll(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.has_ended || self.part >= self.wanted + PARTS_UNDER_WAY_MAX {
            return Ok(None);
        }
        let (content, bytes) = match self.part {
            0 => {
                let Floor { index, term, note } = self.floor.clone();
                (Content::Begin(index, term, note), Vec::new())
            }
            _ => self.next_bytes()?,
        };
        self.has_ended = matches!(content, Content::End);
        let head = Head {
            copy: self.copy,
            part: self.part,
            content,
        };
        self.part += 1;
        let mut message = serde_json::to_vec(&head)?;
        message.push(b'\n');
        message.extend(bytes);
        Ok(Some(message))
    }

    /// Reads the next bytes of a file. A file that was removed meanwhile is omitted: an entry removes it.
    fn next_bytes(&mut self) -> io::Result<(Content, Vec<u8>)> {
        while let Some((folder, name)) = self.files.front().cloned() {
            if self.open.is_none() {
                match File::open(path_of(&self.store, &folder)?.join(&name)) {
                    Ok(file) => self.open = Some((file, 0)),
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        self.files.pop_front();
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            let Some((file, copied)) = &mut self.open else {
                continue;
            };
            let offset = *copied;
            let mut bytes = vec![0; PART_BYTES];
            let read = file.read_at(&mut bytes, offset)?;
            bytes.truncate(read);
            *copied += read as u64;
            if read == 0 {
                self.open = None;
                self.files.pop_front();
                if offset > 0 {
                    continue;
                }
            }
            let content = Content::File {
                folder,
                name,
                offset,
            };
            return Ok((content, bytes));
        }
        Ok((Content::End, Vec::new()))
    }
}

/// A copy from another member.
pub(super) struct Receiving {
    from: NodeId,
    copy: u64,
    pub(super) floor: Floor,
    store: LaneStore,
    files: BTreeSet<PathBuf>,
    part: u64,
    heard_at: Duration,
    pub(super) is_complete: bool,
    pub(super) is_syncing: bool,
}

impl Receiving {
    /// Takes a message, which may begin a copy. Returns the answer. `store` is the folder for copies of the lane.
    pub(super) fn receive(
        receiving: &mut Option<Receiving>,
        store: &LaneStore,
        from: NodeId,
        bytes: &[u8],
        now: Duration,
    ) -> io::Result<Option<Vec<u8>>> {
        let head_bytes = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(bytes.len());
        let Ok(head) = serde_json::from_slice::<Head>(&bytes[..head_bytes]) else {
            return Ok(None);
        };
        if let Content::Begin(index, term, note) = head.content {
            store.clear()?;
            *receiving = Some(Receiving {
                from,
                copy: head.copy,
                floor: Floor { index, term, note },
                store: store.clone(),
                files: BTreeSet::new(),
                part: 1,
                heard_at: now,
                is_complete: false,
                is_syncing: false,
            });
        } else {
            let Some(known) = receiving
                .as_mut()
                .filter(|known| known.copy == head.copy && known.from == from)
            else {
                return Ok(None);
            };
            if head.part != known.part {
                return Ok(None);
            }
            known.heard_at = now;
            known.part += 1;
            match head.content {
                Content::File {
                    folder,
                    name,
                    offset,
                } => {
                    let path = path_of(&known.store, &folder)?;
                    private_files::create_folders(&path)?;
                    let path = super::super::disk::child(&path, &name);
                    let path = path.map_err(|error| io::Error::other(error.to_string()))?;
                    let mut options = private_files::file_options();
                    let file = options
                        .write(true)
                        .create(true)
                        .truncate(false)
                        .open(&path)?;
                    file.write_all_at(bytes.get(head_bytes + 1..).unwrap_or_default(), offset)?;
                    known.files.insert(path);
                }
                _ => known.is_complete = true,
            }
        }
        let part = receiving.as_ref().map_or(0, |receiving| receiving.part);
        let wanted = Wanted {
            copy: head.copy,
            part,
        };
        Ok(Some(serde_json::to_vec(&wanted)?))
    }

    pub(super) fn is_lost(&self, now: Duration) -> bool {
        !self.is_complete && self.heard_at + SILENCE_MAX < now
    }

    /// Returns the files and folders to sync before the copy is used.
    pub(super) fn unsynced(&self) -> io::Result<(Vec<Arc<File>>, Vec<PathBuf>)> {
        let files = self
            .files
            .iter()
            .map(|path| Ok(Arc::new(File::open(path)?)));
        let files: io::Result<Vec<_>> = files.collect();
        let of_files = self.files.iter().filter_map(|path| path.parent());
        let above = of_files.clone().filter_map(Path::parent);
        let folders: BTreeSet<&Path> = of_files.chain(above).chain([self.store.path()]).collect();
        Ok((files?, folders.into_iter().map(Path::to_owned).collect()))
    }
}

fn path_of(store: &LaneStore, folder: &str) -> io::Result<PathBuf> {
    store
        .folder(folder)
        .map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::super::disk::OpenFiles;
    use super::*;

    const START: Duration = Duration::ZERO;

    struct Folders(PathBuf);

    impl Folders {
        fn new() -> Self {
            let name = format!("fanline-copies-{:x}", crate::identity::random_u64());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).expect("a folder");
            Folders(path)
        }

        fn store(&self, name: &str) -> LaneStore {
            LaneStore::open(&self.0, name, &OpenFiles::default()).expect("a folder")
        }
    }

    impl Drop for Folders {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("a folder");
        }
    }

    fn write(store: &LaneStore, folder: &str, name: &str, bytes: &[u8]) {
        let path = path_of(store, folder).expect("a path");
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join(name), bytes).expect("a file");
    }

    fn sending(store: &LaneStore) -> Sending {
        let floor = Floor {
            index: 7,
            term: 2,
            note: vec![1, 2],
        };
        Sending::new(5, 99, store, floor, START).expect("it is readable")
    }

    #[test]
    fn a_copy_has_all_files() {
        let folders = Folders::new();
        let (from, to) = (folders.store("0"), folders.store("0.copy"));
        let long: Vec<u8> = (0..PART_BYTES * 12 + 5)
            .map(|at| u8::try_from(at % 251).expect("it is small"))
            .collect();
        write(&from, "A/orders", "1", &long);
        write(&from, "A/orders", "names.0", b"table");
        write(&from, "A/empty", "2", b"");
        let mut sending = sending(&from);
        let mut receiving = None;
        let mut steps = 0;
        loop {
            let mut answers = Vec::new();
            while let Some(message) = sending.poll().expect("it is readable") {
                let answer = Receiving::receive(&mut receiving, &to, 1, &message, START);
                answers.extend(answer.expect("it is writable"));
            }
            assert!(!answers.is_empty(), "step {steps}");
            let mut is_done = false;
            for answer in answers {
                is_done = sending.receive(&answer, START);
            }
            steps += 1;
            if is_done {
                break;
            }
        }
        let receiving = receiving.expect("it began");
        assert!(receiving.is_complete && steps > 1);
        assert_eq!((receiving.floor.index, receiving.floor.term), (7, 2));
        assert_eq!(receiving.unsynced().expect("they exist").0.len(), 3);
        let read = |folder: &str, name: &str| {
            fs::read(path_of(&to, folder).expect("a path").join(name)).expect("a file")
        };
        assert!(
            read("A/orders", "1") == long,
            "the long file is another one"
        );
        assert_eq!(
            (read("A/orders", "names.0"), read("A/empty", "2")),
            (b"table".to_vec(), Vec::new())
        );
    }

    #[test]
    fn a_lost_message_ends_a_copy() {
        let folders = Folders::new();
        let (from, to) = (folders.store("0"), folders.store("0.copy"));
        write(&from, "A/orders", "1", b"1");
        let mut sending = sending(&from);
        let mut receiving = None;
        let messages: Vec<Vec<u8>> =
            std::iter::from_fn(|| sending.poll().expect("it is readable")).collect();
        for message in [&messages[0], &messages[2]] {
            let answer = Receiving::receive(&mut receiving, &to, 1, message, START);
            let _ = answer.expect("it is writable");
        }
        let received = receiving.as_ref().expect("it began");
        assert!(!received.is_complete && !received.is_lost(SILENCE_MAX));
        assert!(received.is_lost(SILENCE_MAX + Duration::from_millis(1)));
        assert!(sending.is_lost(SILENCE_MAX + Duration::from_millis(1)));
        for bad in [
            &b""[..],
            b"{}",
            b"\n",
            b"{\"copy\":99,\"part\":1,\"content\":{\"file\":{}}}\n",
        ] {
            let answer = Receiving::receive(&mut receiving, &to, 1, bad, START);
            assert_eq!(answer.expect("nothing is written"), None);
        }
        let path = b"{\"copy\":99,\"part\":1,\"content\":{\"file\":{\"folder\":\"../x\",\"name\":\"1\",\"offset\":0}}}\n";
        assert!(
            Receiving::receive(&mut receiving, &to, 1, path, START).is_err(),
            "it leads out"
        );
    }
}
