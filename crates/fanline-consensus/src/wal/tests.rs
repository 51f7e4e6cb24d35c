//! The log without faults, refusals, and how it distinguishes a torn tail from damage.

use fanline_engine::store::simulated_disk::SimulatedDisk;
use fanline_engine::store::{Disk as _, SyncRequest};

use super::frame::{HEAD_BYTES, Head, Kind};
use super::limits::{ENTRY_BYTES_MAX, LANES_MAX, PENDING_BYTES_MAX};
use super::segment::AREA_BYTES;
use super::{Condition, Damage, Identity, OpenError, Options, Vote, Wal, WalError};

const NODE: Identity = Identity {
    cluster: 1,
    node: 2,
};
const SALT: u32 = 0x5A17;

fn options() -> Options {
    Options {
        segment_bytes: 4000,
        segments_wanted: 2,
        ..Options::new(NODE, 77, SALT)
    }
}

fn open(disk: &SimulatedDisk) -> Wal<SimulatedDisk> {
    let (wal, recovery) = Wal::open(disk.clone(), &options()).unwrap();
    assert_eq!(recovery.damage, []);
    wal
}

fn perform(disk: &mut SimulatedDisk, request: &SyncRequest) {
    for file in &request.files {
        disk.sync_file(*file).unwrap();
    }
    if request.folder {
        disk.sync_folder().unwrap();
    }
}

fn sync(disk: &mut SimulatedDisk, wal: &mut Wal<SimulatedDisk>) {
    while let Some(request) = wal.poll_sync().unwrap() {
        perform(disk, &request);
        wal.handle_synced(request.id, Ok(())).unwrap();
    }
}

fn vote(term: u64, node: u64) -> Vote {
    Vote {
        term,
        voted_for: Some(node),
    }
}

#[test]
fn one_sync_makes_frames_of_all_lanes_durable() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    let first = wal.append(0, 1, 1, b"a").unwrap();
    let second = wal.set_vote(9, vote(4, 2)).unwrap();
    let request = wal.poll_sync().unwrap().unwrap();
    let third = wal.append(0, 2, 1, b"b").unwrap();
    assert_eq!(wal.poll_sync(), Ok(None), "one sync at a time");
    assert!(wal.durable() < first);
    perform(&mut disk, &request);
    let durable = wal.handle_synced(request.id, Ok(())).unwrap();
    assert!(first < second && second < durable && durable < third);
    assert_eq!(wal.read(0, 2).unwrap(), b"b", "before it is written");

    let mut wal = open(&disk);
    assert_eq!(
        (wal.durable(), wal.last(0), wal.vote(9)),
        (durable, (1, 1), vote(4, 2))
    );
    assert_eq!(wal.incarnation(), 77);
    assert_eq!(wal.lanes().collect::<Vec<_>>(), [0, 9]);
    assert_eq!(wal.read(0, 2), Err(WalError::NoEntry { lane: 0, index: 2 }));
}

#[test]
fn requests_that_contradict_consensus_are_refused() {
    let mut wal = open(&SimulatedDisk::new());
    let order = Err(WalError::Order { lane: 5 });
    for index in 1..=4 {
        wal.append(5, index, 2, b"x").unwrap();
    }
    assert_eq!(wal.append(5, 6, 2, b"hole"), order);
    assert_eq!(wal.append(5, 4, 1, b"older than entry 3"), order);
    assert_eq!(wal.append(5, 0, 1, b""), order);
    wal.compact(5, 2, 2, b"").unwrap();
    assert_eq!(wal.append(5, 2, 3, b"below the floor"), order);
    assert_eq!(wal.truncate(5, 1), order);
    assert_eq!(wal.compact(5, 1, 2, b""), order);
    wal.set_vote(5, vote(3, 1)).unwrap();
    assert_eq!(
        wal.set_vote(5, vote(3, 2)),
        order,
        "a second vote in term 3"
    );
    assert_eq!(wal.set_vote(5, vote(2, 1)), order);
    assert_eq!(
        wal.append(LANES_MAX, 1, 1, b""),
        Err(WalError::Lane { lane: LANES_MAX })
    );
    let long = vec![0; ENTRY_BYTES_MAX + 1];
    let too_long = WalError::TooLong {
        bytes: long.len(),
        bytes_max: ENTRY_BYTES_MAX,
    };
    assert_eq!(wal.append(5, 5, 3, &long), Err(too_long));
    assert_eq!(
        wal.repair(5, 4, 3, b"x"),
        Err(WalError::NoEntry { lane: 5, index: 4 })
    );
    assert_eq!(wal.last(5), (4, 2));
}

#[test]
fn pending_frames_have_a_limit() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    let part = vec![7; PENDING_BYTES_MAX / 2];
    let results: Vec<_> = (1..=3)
        .map(|index| wal.append(1, index, 1, &part))
        .collect();
    assert_eq!(results[2], Err(WalError::Busy));
    sync(&mut disk, &mut wal);
    wal.append(1, 3, 1, &part).unwrap();
}

#[test]
fn log_of_another_node_is_refused_and_not_changed() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    wal.append(0, 1, 1, b"a").unwrap();
    sync(&mut disk, &mut wal);
    for identity in [
        Identity {
            cluster: 2,
            node: 2,
        },
        Identity {
            cluster: 1,
            node: 3,
        },
    ] {
        let other = Options::new(identity, 78, SALT + 1);
        let error = Wal::open(disk.clone(), &other).map(|_| ()).unwrap_err();
        let wanted = OpenError::Identity {
            found: NODE,
            wanted: identity,
        };
        assert_eq!(error, wanted);
    }
    assert_eq!(open(&disk).read(0, 1).unwrap(), b"a");
}

#[test]
fn created_again_log_has_another_incarnation() {
    let disk = SimulatedDisk::new();
    open(&disk);
    let mut copy = SimulatedDisk::new();
    let new = Options::new(NODE, 78, SALT + 1);
    let (wal, recovery) = Wal::open(copy.clone(), &new).unwrap();
    assert!(recovery.is_created);
    assert_eq!(wal.incarnation(), 78);

    // A segment of the old log beside those of the new one.
    let mut old = [0; AREA_BYTES];
    let mut from = disk.clone();
    let file = from.open("0000000001.wal", false).unwrap();
    from.read_at(file, 0, &mut old).unwrap();
    let file = copy.open("0000000002.wal", true).unwrap();
    copy.write_at(file, 0, &old).unwrap();
    let error = Wal::open(copy, &new).map(|_| ()).unwrap_err();
    assert_eq!(error, OpenError::Mixed { segment: 2 });
}

#[test]
fn log_without_a_readable_head_is_not_created_again() {
    let mut disk = SimulatedDisk::new();
    open(&disk);
    let file = disk.open("0000000001.wal", false).unwrap();
    disk.write_at(file, 0, &[0; AREA_BYTES]).unwrap();
    let error = Wal::open(disk.clone(), &options()).map(|_| ()).unwrap_err();
    assert_eq!(error, OpenError::Unreadable);
    disk.write_at(file, 0, &open_area(9)).unwrap();
    let error = Wal::open(disk, &options()).map(|_| ()).unwrap_err();
    assert_eq!(
        error,
        OpenError::Version {
            segment: 1,
            version: 9
        }
    );
}

/// Returns a segment's area in a version.
fn open_area(version: u8) -> [u8; AREA_BYTES] {
    let mut disk = SimulatedDisk::new();
    open(&disk);
    let file = disk.open("0000000001.wal", false).unwrap();
    let mut area = [0; AREA_BYTES];
    disk.read_at(file, 0, &mut area).unwrap();
    area[4] = version;
    let sum = super::frame::checksum(0, &area[..56]);
    area[56..60].copy_from_slice(&sum.to_le_bytes());
    area
}

#[test]
fn live_entries_of_a_slow_lane_are_carried_forward() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    wal.set_vote(1, vote(6, 3)).unwrap();
    wal.append(1, 1, 6, b"slow").unwrap();
    for index in 1..=500 {
        wal.append(2, index, 1, &[7; 200]).unwrap();
        if index > 3 {
            wal.compact(2, index - 3, 1, b"").unwrap();
        }
        sync(&mut disk, &mut wal);
    }
    assert!(disk.names().len() <= 4, "{:?}", disk.names());
    assert!(!disk.names().contains(&"0000000001.wal".to_owned()));
    assert_eq!(wal.lane_to_compact(), None);
    let mut wal = open(&disk);
    assert_eq!(
        (wal.vote(1), wal.read(1, 1).unwrap()),
        (vote(6, 3), b"slow".to_vec())
    );
    assert_eq!((wal.floor(2).index, wal.last(2)), (497, (500, 1)));
}

#[test]
fn lane_that_prevents_removal_is_named() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    for index in 1..=100 {
        wal.append(3, index, 1, &[7; 200]).unwrap();
        sync(&mut disk, &mut wal);
    }
    assert_eq!(wal.lane_to_compact(), Some(3));
    wal.compact(3, 95, 1, b"").unwrap();
    sync(&mut disk, &mut wal);
    assert_eq!(wal.lane_to_compact(), None);
    assert!(disk.names().len() <= 3, "{:?}", disk.names());
}

/// A log with two synced batches of one entry each, and the offset of the second entry's payload. `is_marked`
/// says whether a mark covers the second batch.
fn two_batches(is_marked: bool) -> (SimulatedDisk, u64) {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    wal.append(4, 1, 1, &[1; 100]).unwrap();
    sync(&mut disk, &mut wal);
    wal.append(4, 2, 1, &[2; 100]).unwrap();
    sync(&mut disk, &mut wal);
    if is_marked {
        wal.write_mark().unwrap();
    }
    let offset = AREA_BYTES + HEAD_BYTES + 104 + HEAD_BYTES + HEAD_BYTES;
    (disk, offset as u64)
}

fn overwrite(disk: &mut SimulatedDisk, offset: u64, bytes: &[u8]) {
    let file = disk.open("0000000001.wal", false).unwrap();
    disk.write_at(file, offset, bytes).unwrap();
}

#[test]
fn damage_below_a_mark_is_no_torn_tail() {
    let lost = Damage::Entry { lane: 4, index: 2 };
    // Bytes of the payload, a mark, damage, and the last entry.
    let one_bit: &[u8] = &[2, 3];
    let more: &[u8] = &[9, 9, 9];
    for (bytes, is_marked, damage, last) in [
        (one_bit, true, vec![lost], 2),
        (one_bit, false, vec![lost], 2),
        (more, true, vec![lost], 2),
        (more, false, vec![], 1),
    ] {
        let (mut disk, offset) = two_batches(is_marked);
        overwrite(&mut disk, offset, bytes);
        let (mut wal, recovery) = Wal::open(disk, &options()).unwrap();
        assert_eq!(recovery.damage, damage, "{bytes:?} {is_marked}");
        assert_eq!(wal.last(4).0, last, "{bytes:?} {is_marked}");
        assert_eq!(recovery.torn_bytes > 0, damage.is_empty());
        if !damage.is_empty() {
            assert_eq!(wal.condition(4), Condition::Missing(vec![2]));
            assert_eq!(
                wal.repair(4, 2, 1, b"short"),
                Err(WalError::Order { lane: 4 })
            );
            wal.repair(4, 2, 1, &[2; 100]).unwrap();
            assert_eq!(wal.condition(4), Condition::Intact);
        }
    }
}

/// The mark that shows an entry to be synced was in the torn batch behind it. The first recovery removed this
/// batch; the second one then took the damaged entry for a torn tail.
#[test]
fn damage_is_found_again_when_its_mark_was_torn_off() {
    let (mut disk, offset) = two_batches(false);
    let mut wal = open(&disk);
    wal.append(4, 3, 1, &[3; 100]).unwrap();
    wal.poll_sync().unwrap();
    let next_frame = 104 + 2 * HEAD_BYTES as u64;
    overwrite(&mut disk, offset, &[9, 9, 9]);
    overwrite(&mut disk, offset + next_frame, &[9, 9, 9]);
    for torn in [true, false] {
        let (wal, recovery) = Wal::open(disk.clone(), &options()).unwrap();
        assert_eq!(recovery.damage, [Damage::Entry { lane: 4, index: 2 }]);
        assert_eq!((wal.last(4), recovery.torn_bytes > 0), ((2, 1), torn));
    }
}

#[test]
fn lost_frame_makes_all_lanes_suspect() {
    let (mut disk, offset) = two_batches(true);
    overwrite(&mut disk, offset - 30, &[0xAA; 20]);
    let (mut wal, recovery) = Wal::open(disk.clone(), &options()).unwrap();
    assert_eq!(recovery.damage, [Damage::Frames { first: 3, last: 3 }]);
    assert_eq!(wal.condition(4), Condition::Suspect);
    assert_eq!(
        wal.condition(200),
        Condition::Suspect,
        "its vote may be the lost frame"
    );
    let contradicts = Err(WalError::Order { lane: 4 });
    assert_eq!(wal.reset(4, 0), contradicts);
    assert_eq!(wal.reset(4, wal.incarnation()), contradicts, "same member");
    wal.reset(4, 1234).unwrap();
    assert_eq!(wal.reset(4, 1234), contradicts, "same member");
    assert_eq!((wal.member(4), wal.member(200)), (1234, wal.incarnation()));
    assert_eq!(wal.condition(4), Condition::Intact);
    assert_eq!(
        (wal.last(4), wal.condition(200)),
        ((0, 0), Condition::Suspect)
    );
}

/// Scrubbing wrote a head for a segment whose head had been lost, with a wrong position.
#[test]
fn segment_without_a_readable_head_is_used_and_emptied() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    for index in 1..=60 {
        wal.append(4, index, 1, &[1; 200]).unwrap();
        sync(&mut disk, &mut wal);
    }
    let file = disk.open("0000000002.wal", false).unwrap();
    disk.write_at(file, 0, &[0; AREA_BYTES]).unwrap();
    for _ in 0..2 {
        let mut wal = open(&disk);
        assert_eq!(
            (wal.condition(4), wal.last(4)),
            (Condition::Intact, (60, 1))
        );
        for _ in 0..4 {
            assert_eq!(wal.scrub(), Ok(Vec::new()));
        }
    }
    let mut wal = open(&disk);
    sync(&mut disk, &mut wal);
    assert!(!disk.names().contains(&"0000000002.wal".to_owned()));
    assert_eq!(open(&disk).read(4, 30).unwrap(), [1; 200]);
}

/// The bytes as docs/formats/wal.md describes them.
/// The recovery removed the segment with the only intact head, which began behind the end of the log. The next start
/// found no head.
#[test]
fn only_readable_head_is_behind_the_end() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    for index in 1..=9 {
        wal.append(0, index, 1, &[7; 500]).unwrap();
        sync(&mut disk, &mut wal);
    }
    drop(wal);
    let names = disk.names();
    let (last, others) = names.split_last().unwrap();
    assert!(!others.is_empty());
    for name in others {
        let file = disk.open(name, false).unwrap();
        disk.write_at(file, 0, &[0xA5; AREA_BYTES]).unwrap();
    }
    let file = disk.open(last, false).unwrap();
    disk.truncate(file, AREA_BYTES as u64).unwrap();
    let (wal, _) = Wal::open(disk.clone(), &options()).unwrap();
    let (before, condition) = (wal.last(0), wal.condition(0));
    drop(wal);
    let (wal, recovery) = Wal::open(disk, &options()).unwrap();
    assert_eq!((wal.last(0), wal.condition(0)), (before, condition));
    assert_eq!((recovery.torn_bytes, recovery.corrected), (0, 0));
}

#[test]
fn frames_are_at_the_documented_offsets() {
    let mut disk = SimulatedDisk::new();
    let mut wal = open(&disk);
    wal.append(4, 1, 3, b"apples").unwrap();
    sync(&mut disk, &mut wal);
    let file = disk.open("0000000001.wal", false).unwrap();
    let mut bytes = vec![0; usize::try_from(disk.len(file).unwrap()).unwrap()];
    disk.read_at(file, 0, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 1024 + 48 + 8 + 48);
    assert_eq!(bytes[..8], *b"FWal\x01\0\0\0");
    assert_eq!(bytes[..60], bytes[512..572]);
    let entry = &bytes[1024..];
    assert_eq!(entry[8..20], [1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0]);
    assert_eq!(
        entry[20..40],
        [6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(entry[48..56], *b"apples\0\0");
    let seal = Head::read(entry[56..].first_chunk().unwrap(), SALT).unwrap();
    assert_eq!(
        (seal.kind, seal.position, seal.index, seal.term),
        (Kind::Seal, 2, 0, 1)
    );
}
