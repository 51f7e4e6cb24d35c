//! A journaled disk against a plain one, with entries that are committed late, lost, or executed again.

use std::sync::{Arc, Mutex};

use fanline_engine::store::simulated_disk::{Dice, SimulatedDisk};
use fanline_engine::store::{Disk, DiskError, FileId};

use super::codec::{self, Operation};
use super::disk::file_name;
use super::{Applier, Folders, Journal, Malformed};

const FOLDER: &str = "shop/orders";
const NAMES: [&str; 4] = ["a", "b", "c.new", "c"];

/// Names and bytes of files.
type Content = Vec<(String, Vec<u8>)>;

/// A lane with one folder, which may be missing.
#[derive(Clone, Default)]
struct One(Arc<Mutex<Option<SimulatedDisk>>>);

impl One {
    fn disk(&self) -> SimulatedDisk {
        self.0.lock().unwrap().get_or_insert_default().clone()
    }
}

impl Folders for One {
    fn open(&mut self, folder: &str, create: bool) -> Result<Option<Box<dyn Disk>>, DiskError> {
        assert_eq!(folder, FOLDER);
        let mut disk = self.0.lock().unwrap();
        if disk.is_none() && create {
            *disk = Some(SimulatedDisk::new());
        }
        Ok(disk.clone().map(|disk| Box::new(disk) as Box<dyn Disk>))
    }

    fn remove(&mut self, _: &str) -> Result<(), DiskError> {
        *self.0.lock().unwrap() = None;
        Ok(())
    }
}

/// A member of the lane.
struct Member {
    files: One,
    applier: Applier<One>,
}

impl Member {
    fn new(disk: Option<SimulatedDisk>) -> Self {
        let files = One(Arc::new(Mutex::new(disk)));
        Member {
            applier: Applier::new(files.clone()),
            files,
        }
    }

    fn content(&mut self) -> Content {
        let names = self.applier.names(FOLDER).unwrap();
        let mut disk = self.files.disk();
        let read = |(name, number)| {
            let file = disk.open(&file_name(number), false).unwrap();
            (String::from(name), whole(&mut disk, file))
        };
        names.iter().map(read).collect()
    }

    /// Opens the folder as the leader.
    fn lead(&mut self) -> (Journal, Box<dyn Disk>) {
        let journal = Journal::new();
        let names = self.applier.names(FOLDER).unwrap();
        let disk = journal.disk(FOLDER, names, Box::new(self.files.disk()));
        (journal, Box::new(disk))
    }

    /// Syncs everything, so that earlier entries are not needed any more.
    fn sync(&mut self) {
        let mut disk = self.files.disk();
        for unsynced in self.applier.unsynced().unwrap() {
            for file in unsynced.files {
                disk.sync_file(file).unwrap();
            }
            if unsynced.is_folder_dirty {
                disk.sync_folder().unwrap();
            }
        }
        self.applier.close_synced();
    }
}

fn content(disk: &mut dyn Disk) -> Content {
    let mut names = disk.list().unwrap();
    names.sort_unstable();
    let read = names.into_iter().map(|name| {
        let file = disk.open(&name, false).unwrap();
        let bytes = whole(disk, file);
        disk.close(file);
        (name, bytes)
    });
    read.collect()
}

fn whole(disk: &mut dyn Disk, file: FileId) -> Vec<u8> {
    let mut bytes = vec![0xEE; usize::try_from(disk.len(file).unwrap()).unwrap() + 3];
    let read = disk.read_at(file, 0, &mut bytes).unwrap();
    bytes.truncate(read);
    bytes
}

/// A file that is open on both disks.
type Handle = (FileId, FileId);

/// Makes the same random call on both disks, and compares the results.
fn call(left: &mut dyn Disk, right: &mut dyn Disk, open: &mut Vec<Handle>, dice: &mut Dice) {
    let name = NAMES[dice.below(NAMES.len())];
    let handle = match open.len() {
        0 => None,
        length => Some(open[dice.below(length)]),
    };
    match (dice.below(9), handle) {
        (0, _) => {
            let create = dice.one_in(2);
            match (left.open(name, create), right.open(name, create)) {
                (Ok(left), Ok(right)) => open.push((left, right)),
                (left, right) => assert_eq!(left, right),
            }
        }
        (1, Some(handle)) => {
            open.retain(|other| *other != handle);
            left.close(handle.0);
            right.close(handle.1);
        }
        (2, _) if dice.one_in(2) => assert_eq!(left.remove(name), right.remove(name)),
        (3, _) => {
            let to = NAMES[dice.below(NAMES.len())];
            if name != to {
                assert_eq!(left.rename(name, to), right.rename(name, to));
            }
        }
        (4, Some(handle)) => {
            let length = dice.below(40) as u64;
            let cut = left.truncate(handle.0, length);
            assert_eq!(cut, right.truncate(handle.1, length));
        }
        (5, Some(handle)) => assert_eq!(whole(left, handle.0), whole(right, handle.1)),
        (_, Some(handle)) => {
            let offset = dice.below(40) as u64;
            let bytes = vec![u8::try_from(dice.below(255)).unwrap() + 1; dice.below(20)];
            let written = left.write_at(handle.0, offset, &bytes);
            assert_eq!(written, right.write_at(handle.1, offset, &bytes));
        }
        _ => {}
    }
}

/// One seed. The leader's disk shows what a plain disk would, however late entries are executed. The next leader
/// finds exactly what was committed, and so does a member that lost power.
fn run(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut plain = SimulatedDisk::new();
    let mut member = Member::new(None);
    // All committed entries, the content after each, and a copy of the disk with the number of entries that are not
    // needed any more.
    let mut entries: Vec<Vec<u8>> = Vec::new();
    let mut contents = vec![Content::new()];
    let mut synced = 0;
    for _term in 0..3 {
        let (journal, mut disk) = member.lead();
        let mut open = Vec::new();
        let mut proposed = std::collections::VecDeque::new();
        for _ in 0..dice.below(150) {
            call(&mut *disk, &mut plain, &mut open, &mut dice);
            if dice.one_in(6) {
                while let Some((batch, entry)) = journal.take() {
                    proposed.push_back((batch, entry, content(&mut plain)));
                }
            }
            if dice.one_in(8)
                && let Some((batch, entry, content)) = proposed.pop_front()
            {
                member.applier.apply(&entry).unwrap();
                assert_eq!(member.content(), content);
                entries.push(entry);
                contents.push(content);
                // The leader may learn of it later.
                if dice.one_in(2) {
                    journal.set_applied(batch);
                }
            }
            if dice.one_in(10) {
                assert_eq!(content(&mut *disk), content(&mut plain));
            }
            if dice.one_in(20) {
                member.sync();
                synced = entries.len();
            }
        }
        // The next leader does not have what was not committed.
        journal.end();
        assert!(disk.list().is_err());
        plain = SimulatedDisk::new();
        for (name, bytes) in member.content() {
            let file = plain.open(&name, true).unwrap();
            plain.write_at(file, 0, &bytes).unwrap();
        }
    }
    // A power cut loses any part of what was not synced. The entries since then are executed again.
    let disk = member.files.disk();
    disk.crash(&mut dice);
    let mut restarted = Member::new(Some(disk));
    for entry in &entries[synced..] {
        restarted.applier.apply(entry).unwrap();
    }
    assert_eq!(restarted.content(), contents[entries.len()]);
}

#[test]
fn journaled_disks_show_what_plain_disks_show() {
    for seed in 0..3000 {
        println!("seed {seed}");
        run(seed);
    }
}

#[test]
fn folders_are_removed_and_created_again() {
    let mut member = Member::new(None);
    let (journal, mut disk) = member.lead();
    let file = disk.open("a", true).unwrap();
    disk.write_at(file, 0, b"old").unwrap();
    journal.remove_folder(FOLDER).unwrap();
    let mut disk = journal.disk(
        FOLDER,
        member.applier.names(FOLDER).unwrap(),
        Box::new(SimulatedDisk::new()),
    );
    disk.open("b", true).unwrap();
    let (_, entry) = journal.take().unwrap();
    member.applier.apply(&entry).unwrap();
    assert_eq!(member.content(), [("b".to_owned(), Vec::new())]);
    assert_eq!(journal.take(), None);
}

#[test]
fn long_writes_are_divided() {
    let mut member = Member::new(None);
    let (journal, mut disk) = member.lead();
    let file = disk.open("a", true).unwrap();
    let bytes: Vec<u8> = (0..9_000_000)
        .map(|at: u32| (at / 1000).to_le_bytes()[0])
        .collect();
    disk.write_at(file, 5, &bytes).unwrap();
    assert_eq!(whole(&mut *disk, file)[5..], bytes);
    let taken: Vec<_> = std::iter::from_fn(|| journal.take()).collect();
    let batches: Vec<u64> = taken.iter().map(|(batch, _)| *batch).collect();
    assert_eq!(batches, [1, 2, 3]);
    assert!(taken.iter().all(|(_, entry)| entry.len() < 5 << 20));
    for (_, entry) in &taken {
        member.applier.apply(entry).unwrap();
    }
    let expected = [vec![0; 5], bytes].concat();
    assert!(member.content() == [("a".to_owned(), expected)]);
}

/// Invalid entries change nothing.
#[test]
fn invalid_entries_are_refused() {
    let check = |operations: &[Operation<'_>], tail: &[u8], is_valid: bool| {
        let mut entry = codec::begin();
        for operation in operations {
            operation.encode(&mut entry);
        }
        entry.extend_from_slice(tail);
        codec::finish(&mut entry);
        let parsed = codec::parse(&entry);
        assert_eq!(parsed.is_ok(), is_valid, "{operations:?} {tail:?}");
        if is_valid {
            assert_eq!(parsed.unwrap(), operations);
            for bit in 0..entry.len() * 8 {
                let mut flipped = entry.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(codec::parse(&flipped), Err(Malformed));
            }
            for length in 0..entry.len() {
                assert_eq!(codec::parse(&entry[..length]), Err(Malformed));
            }
        }
    };
    use Operation::{File, Folder, Link, Remove, RemoveFolder, Truncate, Unlink, Write};
    check(&[], b"", true);
    check(
        &[Folder("x/y"), File(7), Link("a"), Write(5, b"12")],
        b"",
        true,
    );
    check(
        &[Folder("x/y"), File(7), Truncate(9), Remove, Unlink("a")],
        b"",
        true,
    );
    check(&[Folder("x/y"), RemoveFolder], b"", true);
    check(&[File(7)], b"", false);
    check(&[Folder("x/y"), Link("a")], b"", false);
    check(&[Folder("x/y"), File(7), Remove, Truncate(1)], b"", false);
    check(&[Folder("x/y"), RemoveFolder, File(7)], b"", false);
    check(&[Folder("x/y"), File(7), Write(u64::MAX, b"1")], b"", false);
    check(&[Folder("x/y")], &[9], false);
    check(&[Folder("x/y")], &[7, 3, 0, b'a'], false);
}
