//! A disk in memory that forgets, tears, flips and fails, by seed.
#![expect(
    clippy::disallowed_types,
    reason = "a test looks at the disk that its store owns"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::disk::{Disk, DiskError, FileId};
use super::sync::SyncRequest;

/// What is kept together when the power goes.
const SECTOR_BYTES: usize = 512;
const EIO: DiskError = DiskError::Other(5);

/// Numbers that look random (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap() % end.max(1)
    }

    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }
}

/// The disk; clones are the same disk.
#[derive(Clone)]
pub(crate) struct Faulty(Arc<Mutex<World>>);

#[derive(Clone, Default)]
struct World {
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    folder_changes: Vec<Change>,
    files: Vec<Content>,
    handles: Vec<usize>,
    /// All files together may be so large.
    room_bytes: Option<usize>,
    /// So many of a hundred syncs fail.
    failing_syncs_percent: usize,
    read_bytes: usize,
}

#[derive(Clone)]
enum Change {
    Add(String, usize),
    Remove(String),
}

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

fn apply(names: &mut BTreeMap<String, usize>, change: Change) {
    match change {
        Change::Add(name, file) => {
            names.insert(name, file);
        }
        Change::Remove(name) => {
            names.remove(&name);
        }
    }
}

fn put(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    if bytes.len() < at + part.len() {
        bytes.resize(at + part.len(), 0);
    }
    bytes[at..at + part.len()].copy_from_slice(part);
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Faulty(Arc::default())
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    pub(crate) fn set_room(&self, bytes: Option<usize>) {
        self.world().room_bytes = bytes;
    }

    pub(crate) fn set_failing_syncs(&self, percent: usize) {
        self.world().failing_syncs_percent = percent;
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.world().used_bytes()
    }

    /// How much was read since this was last asked.
    pub(crate) fn take_read_bytes(&self) -> usize {
        std::mem::take(&mut self.world().read_bytes)
    }

    /// Whether some file holds these bytes.
    pub(crate) fn contains(&self, bytes: &[u8]) -> bool {
        let world = self.world();
        let mut files = world.names.values().map(|file| &world.files[*file].bytes);
        files.any(|file| file.windows(bytes.len()).any(|part| part == bytes))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.world().names.keys().cloned().collect()
    }

    /// The power goes: of what was not synced, any part may be there.
    pub(crate) fn crash(&self, dice: &mut Dice) {
        let mut world = self.world();
        let changes = std::mem::take(&mut world.folder_changes);
        let kept = dice.below(changes.len() + 1);
        for change in changes.into_iter().take(kept) {
            apply(&mut world.synced_names, change);
        }
        world.names = world.synced_names.clone();
        world.handles.clear();
        for file in &mut world.files {
            let mut bytes = std::mem::take(&mut file.synced);
            for (at, part) in file.unsynced.drain(..) {
                match dice.below(4) {
                    0 => {}
                    1 => put(&mut bytes, at, &part[..dice.below(part.len() + 1)]),
                    2 => {
                        for (number, sector) in part.chunks(SECTOR_BYTES).enumerate() {
                            if dice.one_in(2) {
                                put(&mut bytes, at + number * SECTOR_BYTES, sector);
                            }
                        }
                    }
                    _ => put(&mut bytes, at, &part),
                }
            }
            file.synced = bytes.clone();
            file.bytes = bytes;
        }
    }

    /// Another disk with the same on it.
    pub(crate) fn copy(&self) -> Self {
        Faulty(Arc::new(Mutex::new(self.world().clone())))
    }

    /// Only the process died: the system has all that was written.
    pub(crate) fn kill(&self) {
        self.world().handles.clear();
    }

    /// Turns one bit of some file over; says which file.
    pub(crate) fn flip(&self, dice: &mut Dice) -> (String, usize) {
        let mut world = self.world();
        let sizes: Vec<_> = world
            .names
            .iter()
            .map(|(name, file)| (name.clone(), *file, world.files[*file].bytes.len()))
            .collect();
        let mut at = dice.below(sizes.iter().map(|(_, _, bytes)| bytes).sum());
        for (name, file, bytes) in sizes {
            if at < bytes {
                let bit = 1 << dice.below(8);
                world.files[file].bytes[at] ^= bit;
                world.files[file].synced = world.files[file].bytes.clone();
                return (name, at);
            }
            at -= bytes;
        }
        unreachable!("the folder is empty");
    }

    /// Does what the shell's thread does.
    pub(crate) fn perform(
        &mut self,
        request: &SyncRequest,
        dice: &mut Dice,
    ) -> Result<(), DiskError> {
        let fails = dice.below(100) < self.world().failing_syncs_percent;
        for file in &request.files {
            if fails && dice.one_in(2) {
                let mut world = self.world();
                let file = world.handles[file.0 as usize];
                // The system drops the pages and says so once.
                let content = &mut world.files[file];
                content.bytes = content.synced.clone();
                content.unsynced.clear();
                return Err(EIO);
            }
            self.sync_file(*file)?;
        }
        if fails {
            return Err(EIO);
        }
        if request.folder {
            self.sync_folder()?;
        }
        Ok(())
    }
}

impl World {
    fn used_bytes(&self) -> usize {
        self.names
            .values()
            .map(|file| self.files[*file].bytes.len())
            .sum()
    }

    fn file(&mut self, file: FileId) -> &mut Content {
        let file = self.handles[file.0 as usize];
        &mut self.files[file]
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.names, change.clone());
        self.folder_changes.push(change);
    }
}

impl Disk for Faulty {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(self.names())
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        let mut world = self.world();
        let file = match world.names.get(name) {
            Some(file) => *file,
            None if create => {
                world.files.push(Content::default());
                let file = world.files.len() - 1;
                world.change(Change::Add(name.to_owned(), file));
                file
            }
            None => return Err(DiskError::NotFound),
        };
        world.handles.push(file);
        Ok(FileId(u32::try_from(world.handles.len() - 1).unwrap()))
    }

    fn close(&mut self, _file: FileId) {}

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut world = self.world();
        let at = usize::try_from(offset).unwrap();
        let grows = (at + bytes.len()).saturating_sub(world.file(file).bytes.len());
        let left = world
            .room_bytes
            .map(|room| room.saturating_sub(world.used_bytes()));
        let fits = left.map_or(bytes.len(), |left| {
            bytes.len() - grows.saturating_sub(left).min(bytes.len())
        });
        let part = &bytes[..fits];
        let content = world.file(file);
        put(&mut content.bytes, at, part);
        content.unsynced.push((at, part.to_vec()));
        if fits < bytes.len() {
            return Err(DiskError::Full);
        }
        Ok(())
    }

    fn read_at(&mut self, file: FileId, offset: u64, out: &mut [u8]) -> Result<usize, DiskError> {
        let mut world = self.world();
        let bytes = &world.file(file).bytes;
        let from = usize::try_from(offset).unwrap().min(bytes.len());
        let to = (from + out.len()).min(bytes.len());
        out[..to - from].copy_from_slice(&bytes[from..to]);
        world.read_bytes += to - from;
        Ok(to - from)
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.world().file(file).bytes.len() as u64)
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        let mut world = self.world();
        let content = world.file(file);
        let bytes = usize::try_from(bytes).unwrap();
        content.bytes.truncate(bytes);
        // Taken to be in order with writes, as it is with journals.
        content.synced.truncate(bytes);
        for (at, part) in &mut content.unsynced {
            part.truncate(bytes.saturating_sub(*at));
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        let mut world = self.world();
        if world.names.contains_key(name) {
            world.change(Change::Remove(name.to_owned()));
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut world = self.world();
        let file = *world.names.get(from).ok_or(DiskError::NotFound)?;
        // Two changes here; a crash between them would lose the file, which a rename never does.
        apply(&mut world.names, Change::Remove(from.to_owned()));
        world.change(Change::Add(to.to_owned(), file));
        world.folder_changes.push(Change::Remove(from.to_owned()));
        Ok(())
    }

    fn sync_file(&mut self, file: FileId) -> Result<(), DiskError> {
        let mut world = self.world();
        let content = world.file(file);
        content.synced = content.bytes.clone();
        content.unsynced.clear();
        Ok(())
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        let mut world = self.world();
        for change in std::mem::take(&mut world.folder_changes) {
            apply(&mut world.synced_names, change);
        }
        Ok(())
    }
}
