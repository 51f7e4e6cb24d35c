//! A disk in memory that loses bytes, tears writes, flips bits, and returns errors, all determined by a seed.
//! It exists in tests, and with the feature `simulation`.
#![expect(
    clippy::disallowed_types,
    reason = "a simulation looks at the disk that its store owns"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use super::commit::SyncRequest;
use super::disk::{Disk, DiskError, FileId};
use crate::random::FastRandom;

/// Units in which a volatile cache reaches the disk: any of them may be missing after a power cut.
const PAGE_BYTES: [usize; 2] = [4096, 512];
const EIO: DiskError = DiskError::Other(5);

/// Random choices from a seed.
#[derive(Clone, Debug)]
pub struct Dice(FastRandom);

impl Dice {
    /// Creates the choices of a seed.
    pub fn new(seed: u64) -> Self {
        Dice(FastRandom::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let number = usize::try_from(self.0.next() >> 33).unwrap_or_default();
        number % end.max(1)
    }

    /// Returns true with a probability of one in `sides`.
    pub fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }
}

/// How much of each file of a request a sync covers.
pub struct Reach(Vec<usize>);

/// A disk in memory. Clones share it.
#[derive(Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<DiskState>>);

#[derive(Clone, Default)]
struct DiskState {
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    folder_changes: Vec<Change>,
    files: Vec<Content>,
    handles: Vec<usize>,
    /// Maximum bytes of all files together.
    room_bytes: Option<usize>,
    /// Percentage of syncs that fail.
    failing_syncs_percent: usize,
    read_bytes: usize,
}

#[derive(Clone)]
enum Change {
    Add(String, usize),
    Remove(String),
    Rename(String, String, usize),
}

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Effects since the last sync, in order, and the number of earlier ones.
    effects: VecDeque<Effect>,
    effects_before: usize,
}

#[derive(Clone)]
enum Effect {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// How much of the unsynced data survives a power cut.
#[derive(Clone, Copy)]
enum Survives {
    Nothing,
    All,
    /// Any version of each page, any length of each file, any subset of the folder's changes.
    Some,
}

impl Survives {
    fn choose(dice: &mut Dice) -> Self {
        match dice.below(6) {
            0 => Survives::Nothing,
            1 => Survives::All,
            _ => Survives::Some,
        }
    }

    /// Whether the latest of `versions` versions replaces the one chosen before.
    fn takes(self, dice: &mut Dice, versions: usize) -> bool {
        match self {
            Survives::Nothing => false,
            Survives::All => true,
            Survives::Some => dice.one_in(versions),
        }
    }
}

impl Effect {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Effect::Write(at, part) => put(bytes, *at, part),
            Effect::Truncate(length) => bytes.truncate(*length),
        }
    }

    /// Returns the range of bytes that the effect changes in a file. `length` is the file's length before or
    /// after the effect.
    fn range(&self, length: usize) -> std::ops::Range<usize> {
        match self {
            Effect::Write(at, part) => *at..at + part.len(),
            Effect::Truncate(to) => *to..length.max(*to),
        }
    }
}

impl Content {
    /// Applies effects to the disk, in order, until the first `until` of all effects so far are on the disk.
    fn sync(&mut self, until: usize) {
        while self.effects_before < until
            && let Some(effect) = self.effects.pop_front()
        {
            effect.apply(&mut self.synced);
            self.effects_before += 1;
        }
    }

    fn effects_end(&self) -> usize {
        self.effects_before + self.effects.len()
    }

    fn drop_effects(&mut self) {
        self.effects_before = self.effects_end();
        self.effects.clear();
    }

    /// Returns what a power cut leaves of the file.
    fn after_crash(&self, page_bytes: usize, survives: Survives, dice: &mut Dice) -> Vec<u8> {
        let mut now = self.synced.clone();
        let mut length = (1, now.len());
        // Number of versions of each changed page, and the version that survives.
        let mut pages: BTreeMap<usize, (usize, Vec<u8>)> = BTreeMap::new();
        for effect in &self.effects {
            let before = now.len();
            let range = effect.range(before);
            for page in range.start / page_bytes..range.end.div_ceil(page_bytes) {
                let old = || (1, page_of(&now, page, page_bytes));
                pages.entry(page).or_insert_with(old);
            }
            effect.apply(&mut now);
            for page in range.start / page_bytes..range.end.div_ceil(page_bytes) {
                if let Some((versions, chosen)) = pages.get_mut(&page) {
                    *versions += 1;
                    if survives.takes(dice, *versions) {
                        *chosen = page_of(&now, page, page_bytes);
                    }
                }
            }
            if now.len() != before {
                length.0 += 1;
                if survives.takes(dice, length.0) {
                    length.1 = now.len();
                }
            }
        }
        let mut left = self.synced.clone();
        for (page, (_, chosen)) in pages {
            put(&mut left, page * page_bytes, &chosen);
        }
        left.resize(length.1, 0);
        left
    }
}

/// Returns a page, with zeros behind the file's end.
fn page_of(bytes: &[u8], page: usize, page_bytes: usize) -> Vec<u8> {
    let from = (page * page_bytes).min(bytes.len());
    let to = (from + page_bytes).min(bytes.len());
    let mut page = bytes[from..to].to_vec();
    page.resize(page_bytes, 0);
    page
}

fn apply(names: &mut BTreeMap<String, usize>, change: Change) {
    match change {
        Change::Add(name, file) => {
            names.insert(name, file);
        }
        Change::Remove(name) => {
            names.remove(&name);
        }
        Change::Rename(from, to, file) => {
            names.remove(&from);
            names.insert(to, file);
        }
    }
}

fn to_usize(offset: u64) -> usize {
    usize::try_from(offset).expect("files are small")
}

fn put(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    if bytes.len() < at + part.len() {
        bytes.resize(at + part.len(), 0);
    }
    bytes[at..at + part.len()].copy_from_slice(part);
}

impl SimulatedDisk {
    /// Creates an empty disk.
    pub fn new() -> Self {
        SimulatedDisk::default()
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().expect("no holder panics")
    }

    /// Sets the most bytes that all files together may have; `None` is unlimited.
    pub fn set_room(&self, bytes: Option<usize>) {
        self.state().room_bytes = bytes;
    }

    /// Sets how many of 100 syncs fail.
    pub fn set_failing_syncs(&self, percent: usize) {
        self.state().failing_syncs_percent = percent;
    }

    /// Returns the bytes of all files.
    pub fn used_bytes(&self) -> usize {
        self.state().used_bytes()
    }

    /// Returns the bytes read since the last call.
    pub fn take_read_bytes(&self) -> usize {
        std::mem::take(&mut self.state().read_bytes)
    }

    /// Whether a file contains these bytes.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        let state = self.state();
        let mut files = state.names.values().map(|file| &state.files[*file].bytes);
        files.any(|file| file.windows(bytes.len()).any(|part| part == bytes))
    }

    /// Returns the names of all files.
    pub fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Cuts the power: any part of the unsynced data survives, in any order over all files.
    pub fn crash(&self, dice: &mut Dice) {
        let mut state = self.state();
        let survives = Survives::choose(dice);
        let page_bytes = PAGE_BYTES[dice.below(PAGE_BYTES.len())];
        for change in std::mem::take(&mut state.folder_changes) {
            if survives.takes(dice, 2) {
                apply(&mut state.synced_names, change);
            }
        }
        state.names = state.synced_names.clone();
        state.handles.clear();
        for file in &mut state.files {
            file.synced = file.after_crash(page_bytes, survives, dice);
            file.bytes = file.synced.clone();
            file.drop_effects();
        }
    }

    /// Copies the disk.
    pub fn copy(&self) -> Self {
        SimulatedDisk(Arc::new(Mutex::new(self.state().clone())))
    }

    /// Kills the process: the system still has everything that was written.
    pub fn kill(&self) {
        self.state().handles.clear();
    }

    /// Flips one bit of a file. Returns the file and the offset.
    ///
    /// # Panics
    /// If there are no bytes.
    pub fn flip(&self, dice: &mut Dice) -> (String, usize) {
        let mut state = self.state();
        let sizes: Vec<_> = state
            .names
            .iter()
            .map(|(name, file)| (name.clone(), *file, state.files[*file].bytes.len()))
            .collect();
        let mut at = dice.below(sizes.iter().map(|(_, _, bytes)| bytes).sum());
        for (name, file, bytes) in sizes {
            if at < bytes {
                let bit = 1 << dice.below(8);
                state.files[file].bytes[at] ^= bit;
                state.files[file].synced = state.files[file].bytes.clone();
                state.files[file].drop_effects();
                return (name, at);
            }
            at -= bytes;
        }
        unreachable!("the folder is empty");
    }

    /// Returns what a sync requested now covers: later writes may be missing.
    pub fn reach(&self, request: &SyncRequest) -> Reach {
        let state = self.state();
        let reach = |file: &FileId| state.files[state.handles[file.0 as usize]].effects_end();
        Reach(request.files.iter().map(reach).collect())
    }

    /// Performs a request some time after it was made, as a sync thread does.
    ///
    /// # Errors
    /// The error that the system would report.
    pub fn perform_until(
        &mut self,
        request: &SyncRequest,
        reach: &Reach,
        dice: &mut Dice,
    ) -> Result<(), DiskError> {
        if self.state().failing_syncs_percent > 0 {
            return self.perform(request, dice);
        }
        for (file, until) in request.files.iter().zip(&reach.0) {
            self.state().file(*file).sync(*until);
        }
        match request.folder {
            true => self.sync_folder(),
            false => Ok(()),
        }
    }

    /// Performs a request, as a sync thread does.
    ///
    /// # Errors
    /// The error that the system would report.
    pub fn perform(&mut self, request: &SyncRequest, dice: &mut Dice) -> Result<(), DiskError> {
        let fails = dice.below(100) < self.state().failing_syncs_percent;
        for file in &request.files {
            if fails && dice.one_in(2) {
                let mut state = self.state();
                let file = state.handles[file.0 as usize];
                // The system drops the pages and reports the error once.
                let content = &mut state.files[file];
                content.bytes = content.synced.clone();
                content.drop_effects();
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

impl DiskState {
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

impl Disk for SimulatedDisk {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(self.names())
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        let mut state = self.state();
        let file = match state.names.get(name) {
            Some(file) => *file,
            None if create => {
                state.files.push(Content::default());
                let file = state.files.len() - 1;
                state.change(Change::Add(name.to_owned(), file));
                file
            }
            None => return Err(DiskError::NotFound),
        };
        state.handles.push(file);
        Ok(FileId(
            u32::try_from(state.handles.len() - 1).expect("few files are opened"),
        ))
    }

    fn close(&mut self, _file: FileId) {}

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = self.state();
        let at = to_usize(offset);
        let grows = (at + bytes.len()).saturating_sub(state.file(file).bytes.len());
        let left = state
            .room_bytes
            .map(|room| room.saturating_sub(state.used_bytes()));
        let fits = left.map_or(bytes.len(), |left| {
            bytes.len() - grows.saturating_sub(left).min(bytes.len())
        });
        let part = &bytes[..fits];
        let content = state.file(file);
        put(&mut content.bytes, at, part);
        content.effects.push_back(Effect::Write(at, part.to_vec()));
        if fits < bytes.len() {
            return Err(DiskError::Full);
        }
        Ok(())
    }

    fn read_at(&mut self, file: FileId, offset: u64, out: &mut [u8]) -> Result<usize, DiskError> {
        let mut state = self.state();
        let bytes = &state.file(file).bytes;
        let from = to_usize(offset).min(bytes.len());
        let to = (from + out.len()).min(bytes.len());
        out[..to - from].copy_from_slice(&bytes[from..to]);
        state.read_bytes += to - from;
        Ok(to - from)
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.state().file(file).bytes.len() as u64)
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        let mut state = self.state();
        let content = state.file(file);
        let bytes = to_usize(bytes);
        content.bytes.truncate(bytes);
        content.effects.push_back(Effect::Truncate(bytes));
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.names.contains_key(name) {
            state.change(Change::Remove(name.to_owned()));
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        let file = *state.names.get(from).ok_or(DiskError::NotFound)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn sync_file(&mut self, file: FileId) -> Result<(), DiskError> {
        let mut state = self.state();
        let content = state.file(file);
        content.sync(usize::MAX);
        Ok(())
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        let mut state = self.state();
        for change in std::mem::take(&mut state.folder_changes) {
            apply(&mut state.synced_names, change);
        }
        Ok(())
    }
}
