//! Small named documents in the folder of a log. Each document is replaced atomically.

use std::collections::BTreeMap;

use super::cipher::{self, Cipher, DecryptError, Key, Purpose};
use super::commit::{SyncId, SyncRequest};
use super::disk::{Disk, DiskError, FileId};
use super::files::read_whole;
use super::types::StoreError;

const MAGIC: &[u8; 4] = b"FDoc";
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 16;
const SUFFIX: &str = ".doc";
const NEW_SUFFIX: &str = ".doc.new";

/// The documents of a folder. [`poll_sync`](Self::poll_sync) writes changes. A change is durable when
/// [`durable`](Self::durable) has reached the ticket that [`put`](Self::put) or [`remove`](Self::remove)
/// returned.
pub struct Documents {
    disk: Box<dyn Disk>,
    cipher: Option<Cipher>,
    /// Contents to write; `None` removes the document.
    pending: BTreeMap<String, Option<Vec<u8>>>,
    /// New versions, written to files of their own, which will be synced and then renamed.
    written: Vec<Written>,
    /// Whether files were renamed or removed since the last sync of the folder.
    is_folder_dirty: bool,
    in_flight: Option<SyncId>,
    next_id: u64,
    last_ticket: u64,
    /// Highest ticket whose change is written. The next two fields are the highest tickets whose changes are
    /// renamed and durable.
    written_ticket: u64,
    renamed_ticket: u64,
    durable: u64,
    failure: Option<DiskError>,
}

struct Written {
    name: String,
    content: Option<Vec<u8>>,
    file: Option<FileId>,
}

/// The documents found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Names and contents, in order of names.
    pub documents: Vec<(String, Vec<u8>)>,
    /// Names of damaged documents. Their files stay until they are replaced.
    pub damaged: Vec<String>,
}

impl Documents {
    /// Opens the documents of a folder without a key.
    ///
    /// # Errors
    /// The disk fails, or a document is encrypted. Damaged documents are listed and are no error.
    pub fn open(disk: Box<dyn Disk>) -> Result<(Self, Found), StoreError> {
        Self::open_encrypted(disk, None, 0)
    }

    /// Opens the documents of a folder with a key, which encrypts new contents, but not names. `seed` is a
    /// random number that must be different at each start.
    ///
    /// # Errors
    /// The disk fails, or a document is encrypted with another key.
    pub fn open_encrypted(
        disk: Box<dyn Disk>,
        key: Option<&Key>,
        seed: u64,
    ) -> Result<(Self, Found), StoreError> {
        let cipher = key.map(|key| Cipher::new(key, Purpose::Documents, seed));
        match Self::read(disk, cipher)? {
            (documents, found, false) => Ok((documents, found)),
            (_, _, true) => Err(StoreError::WrongKey),
        }
    }

    /// Reads all documents of a folder. Also returns whether the key was wrong.
    fn read(
        mut disk: Box<dyn Disk>,
        mut cipher: Option<Cipher>,
    ) -> Result<(Self, Found, bool), DiskError> {
        let mut found = Found::default();
        let mut is_key_wrong = false;
        let mut names = disk.list()?;
        names.sort_unstable();
        for file_name in names {
            if file_name.ends_with(NEW_SUFFIX) {
                disk.remove(&file_name)?;
                continue;
            }
            let Some(name) = file_name.strip_suffix(SUFFIX).map(unescape) else {
                continue;
            };
            let mut bytes = Vec::new();
            let file = disk.open(&file_name, false)?;
            let read = read_whole(&mut *disk, file, &mut bytes);
            disk.close(file);
            read?;
            let mut decrypted = Vec::new();
            let plain = cipher::decrypt_file(cipher.as_mut(), &bytes, &mut decrypted);
            is_key_wrong |= plain == Err(DecryptError::WrongKey);
            let decoded = match (name.as_deref(), plain) {
                (Some(name), Ok(plain)) => decode(name, plain).map(<[u8]>::to_vec),
                _ => None,
            };
            match decoded {
                Some(content) => found.documents.push((name.unwrap_or_default(), content)),
                None => found.damaged.push(name.unwrap_or(file_name)),
            }
        }
        let documents = Documents {
            disk,
            cipher,
            pending: BTreeMap::new(),
            written: Vec::new(),
            is_folder_dirty: false,
            in_flight: None,
            next_id: 1,
            last_ticket: 0,
            written_ticket: 0,
            renamed_ticket: 0,
            durable: 0,
            failure: None,
        };
        Ok((documents, found, is_key_wrong))
    }

    /// Stores a document, replacing any of the same name, and returns the ticket of the change. If a document
    /// changes several times before a sync, only the last version is written.
    pub fn put(&mut self, name: &str, content: Vec<u8>) -> u64 {
        self.pending.insert(name.to_owned(), Some(content));
        self.last_ticket += 1;
        self.last_ticket
    }

    /// Removes a document, and returns the ticket of the change.
    pub fn remove(&mut self, name: &str) -> u64 {
        self.pending.insert(name.to_owned(), None);
        self.last_ticket += 1;
        self.last_ticket
    }

    /// Returns the last ticket.
    pub fn last_ticket(&self) -> u64 {
        self.last_ticket
    }

    /// Returns whether a sync is under way.
    pub fn is_syncing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Returns the ticket up to which all changes are durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Returns the error of the last write; `None` if the last write succeeded.
    pub fn failure(&self) -> Option<DiskError> {
        self.failure
    }

    /// Writes pending documents and returns the next sync to perform. Returns `None` if there is nothing to
    /// sync, while a sync is under way, or if the write fails. After a failure, the next call writes again.
    pub fn poll_sync(&mut self) -> Option<SyncRequest> {
        if self.in_flight.is_some() {
            return None;
        }
        if self.written.is_empty() {
            self.failure = self.write().err();
        }
        if self.failure.is_some() || self.written.is_empty() && !self.is_folder_dirty {
            return None;
        }
        let id = SyncId(self.next_id);
        self.next_id += 1;
        self.in_flight = Some(id);
        Some(SyncRequest {
            id,
            files: self.written.iter().filter_map(|w| w.file).collect(),
            folder: self.is_folder_dirty,
        })
    }

    /// Takes the result of a sync that [`poll_sync`](Self::poll_sync) requested.
    pub fn handle_synced(&mut self, id: SyncId, result: Result<(), DiskError>) {
        if self
            .in_flight
            .take_if(|in_flight| *in_flight == id)
            .is_none()
        {
            return;
        }
        if let Err(error) = result {
            self.write_again(error);
            return;
        }
        if self.is_folder_dirty {
            self.is_folder_dirty = false;
            self.durable = self.renamed_ticket;
        }
        if self.written.is_empty() {
            return;
        }
        if let Err(error) = self.rename() {
            self.write_again(error);
        }
    }

    /// Writes and syncs all changes, and blocks until this is done.
    ///
    /// # Errors
    /// The disk fails; pending documents stay for another attempt.
    pub fn sync_now(&mut self) -> Result<(), DiskError> {
        // If another thread is performing a sync, this call repeats it.
        self.in_flight = None;
        while self.durable < self.last_ticket {
            let Some(request) = self.poll_sync() else {
                return Err(self.failure.unwrap_or(DiskError::NotFound));
            };
            let mut result = Ok(());
            for file in &request.files {
                result = result.and_then(|()| self.disk.sync_file(*file));
            }
            if request.folder {
                result = result.and_then(|()| self.disk.sync_folder());
            }
            self.handle_synced(request.id, result);
            result?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), DiskError> {
        let to = self.last_ticket;
        while let Some((name, content)) = self.pending.pop_first() {
            let file = match &content {
                None => Ok(None),
                Some(bytes) => self.write_one(&name, bytes).map(Some),
            };
            match file {
                Ok(file) => self.written.push(Written {
                    name,
                    content,
                    file,
                }),
                Err(error) => {
                    self.pending.insert(name, content);
                    self.write_again(error);
                    return Err(error);
                }
            }
        }
        self.written_ticket = to;
        Ok(())
    }

    fn write_one(&mut self, name: &str, content: &[u8]) -> Result<FileId, DiskError> {
        let mut bytes = encode(name, content);
        if let Some(cipher) = &mut self.cipher {
            bytes = cipher.encrypt_file(&bytes);
        }
        let file = self.disk.open(&(escape(name) + NEW_SUFFIX), true)?;
        let written = self
            .disk
            .truncate(file, 0)
            .and_then(|()| self.disk.write_at(file, 0, &bytes));
        if let Err(error) = written {
            self.disk.close(file);
            return Err(error);
        }
        Ok(file)
    }

    fn rename(&mut self) -> Result<(), DiskError> {
        while let Some(written) = self.written.pop() {
            let name = escape(&written.name);
            if let Some(file) = written.file {
                self.disk.close(file);
            }
            let done = match written.content {
                Some(_) => self
                    .disk
                    .rename(&(name.clone() + NEW_SUFFIX), &(name + SUFFIX)),
                None => self.disk.remove(&(name + SUFFIX)),
            };
            self.is_folder_dirty = true;
            if let Err(error) = done {
                self.pending.entry(written.name).or_insert(written.content);
                return Err(error);
            }
        }
        self.renamed_ticket = self.written_ticket;
        Ok(())
    }

    /// Makes written documents pending again, except those with a newer pending version.
    fn write_again(&mut self, error: DiskError) {
        self.failure = Some(error);
        for written in self.written.drain(..) {
            if let Some(file) = written.file {
                self.disk.close(file);
            }
            self.pending.entry(written.name).or_insert(written.content);
        }
    }
}

fn encode(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 2 + 4]);
    let content_bytes = u32::try_from(content.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&content_bytes.to_le_bytes());
    bytes.extend_from_slice(content);
    let sum = sum(name, &bytes);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn decode<'a>(name: &str, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (head, content) = bytes.split_at_checked(HEAD_BYTES)?;
    let content_bytes = u32::from_le_bytes(head[12..].try_into().ok()?);
    let is_intact = head.starts_with(MAGIC)
        && head[4..6] == VERSION.to_le_bytes()
        && head[8..12] == sum(name, bytes).to_le_bytes()
        && u32::try_from(content.len()) == Ok(content_bytes);
    is_intact.then_some(content)
}

/// Returns the checksum of a name and of all bytes except those of the checksum.
fn sum(name: &str, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(name.as_bytes());
    hasher.update(&bytes[..8]);
    hasher.update(&bytes[12..]);
    hasher.finalize()
}

/// Escapes a name for a file system. Distinct names have distinct results.
fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02x}")),
        }
    }
    escaped
}

fn unescape(escaped: &str) -> Option<String> {
    let mut name = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        name.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::cipher::Algorithm;
    use super::super::simulated_disk::{Dice, SimulatedDisk};
    use super::*;

    fn open(disk: &SimulatedDisk) -> (Documents, Found) {
        Documents::open(Box::new(disk.clone())).unwrap()
    }

    #[test]
    fn names_round_trip_through_escaping() {
        for name in ["plain", "a.b", "ä/ö", "%41", "", "..", "con sumer*>"] {
            let escaped = escape(name);
            assert!(!escaped.contains(['/', '.', ' ']), "{escaped}");
            assert_eq!(unescape(&escaped).as_deref(), Some(name));
        }
    }

    #[test]
    fn crash_leaves_old_or_new_document() {
        for seed in 0..1000 {
            let mut dice = Dice::new(seed);
            let mut disk = SimulatedDisk::new();
            // Contents that each document may have after a crash: the last durable one, or a later one.
            let mut allowed: BTreeMap<String, Vec<Option<Vec<u8>>>> = BTreeMap::new();
            for _ in 0..3 {
                let (mut documents, found) = open(&disk);
                assert_eq!(found.damaged, [""; 0]);
                let found: BTreeMap<_, _> = found.documents.into_iter().collect();
                for (name, allowed) in &mut allowed {
                    let content = found.get(name).cloned();
                    assert!(allowed.contains(&content), "seed {seed}: {name}");
                    // Makes the found names durable, so that they exist after the next crash, too.
                    *allowed = vec![content];
                }
                disk.sync_folder().unwrap();
                let mut tickets = Vec::new();
                for round in 0..dice.below(20) {
                    let name = format!("n{}", dice.below(3));
                    let content = (!dice.one_in(4)).then(|| format!("{seed} {round}").into_bytes());
                    let versions = allowed.entry(name.clone()).or_insert_with(|| vec![None]);
                    versions.push(content.clone());
                    let ticket = match content {
                        Some(content) => documents.put(&name, content),
                        None => documents.remove(&name),
                    };
                    tickets.push((ticket, name, versions.len() - 1));
                    if dice.one_in(2)
                        && let Some(request) = documents.poll_sync()
                    {
                        disk.set_failing_syncs(10);
                        let result = disk.perform(&request, &mut dice);
                        documents.handle_synced(request.id, result);
                    }
                }
                // Versions older than the last durable one must not reappear.
                let mut safe_from = BTreeMap::new();
                for (ticket, name, version) in tickets {
                    if ticket <= documents.durable() {
                        safe_from.insert(name, version);
                    }
                }
                for (name, version) in safe_from {
                    if let Some(versions) = allowed.get_mut(&name) {
                        versions.drain(..version);
                    }
                }
                disk.crash(&mut dice);
            }
        }
    }

    #[test]
    fn encrypted_documents_need_their_key() {
        let disk = SimulatedDisk::new();
        let (mut plain, _) = open(&disk);
        plain.put("old", b"known to all".to_vec());
        plain.sync_now().unwrap();
        let key = Key::new([1; 32]);
        let open_encrypted =
            |key: &Key, seed| Documents::open_encrypted(Box::new(disk.clone()), Some(key), seed);
        let (mut documents, _) = open_encrypted(&key, 1).unwrap();
        documents.put("new", b"for your eyes only".to_vec());
        documents.sync_now().unwrap();
        assert!(!disk.contains(b"eyes"));
        let (_, found) = open_encrypted(&key, 2).unwrap();
        let expected = [("new", "for your eyes only"), ("old", "known to all")];
        let expected = expected.map(|(name, content)| (name.to_owned(), content.into()));
        assert_eq!(found.documents, expected);
        let other = open_encrypted(&Key::new([2; 32]), 3);
        assert_eq!(other.err(), Some(StoreError::WrongKey));
        let without = Documents::open(Box::new(disk.clone()));
        assert_eq!(without.err(), Some(StoreError::WrongKey));
        // The other algorithm uses the same key.
        let key = key.with_algorithm(Algorithm::ChaCha);
        let (mut documents, same) = open_encrypted(&key, 4).unwrap();
        assert_eq!(same, found);
        documents.put("new", b"for her eyes only".to_vec());
        documents.sync_now().unwrap();
        let (_, found) = open_encrypted(&key.with_algorithm(Algorithm::Aes), 5).unwrap();
        assert_eq!(found.documents[0].1, b"for her eyes only");
    }

    #[test]
    fn damage_is_reported_and_loses_one_document() {
        for seed in 0..300 {
            let disk = SimulatedDisk::new();
            let (mut documents, _) = open(&disk);
            for name in ["config", "consumer.a", "consumer.b"] {
                documents.put(name, name.repeat(20).into_bytes());
            }
            documents.sync_now().unwrap();
            assert_eq!(documents.durable(), 3);
            disk.flip(&mut Dice::new(seed));
            let (_, found) = open(&disk);
            assert_eq!(found.damaged.len(), 1);
            assert_eq!(found.documents.len(), 2);
            for (name, content) in found.documents {
                assert_eq!(content, name.repeat(20).into_bytes());
            }
        }
    }
}
