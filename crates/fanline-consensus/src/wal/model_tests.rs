//! The log against a naive model, on a disk whose losses, torn writes, and flipped bits a seed determines.

use std::collections::BTreeMap;

use fanline_engine::store::simulated_disk::{Dice, Reach, SimulatedDisk};
use fanline_engine::store::{DiskError, SyncRequest};

use super::{Condition, Damage, Identity, Options, Position, Vote, Wal, WalError};

const LANES: usize = 3;
const NODE: Identity = Identity {
    cluster: 7,
    node: 3,
};

/// A lane as a list of entries.
#[derive(Clone, Debug, Default, PartialEq)]
struct NaiveLane {
    vote: Vote,
    floor: (u64, u64),
    entries: Vec<(u64, Vec<u8>)>,
    /// The member that the lane belongs to since it was reset.
    member: Option<u64>,
}

impl NaiveLane {
    fn last(&self) -> (u64, u64) {
        let term = self.entries.last().map_or(self.floor.1, |(term, _)| *term);
        (self.floor.0 + self.entries.len() as u64, term)
    }

    fn keep(&mut self, last: u64) {
        let count = usize::try_from(last - self.floor.0).unwrap();
        self.entries.truncate(count);
    }

    fn term(&self, index: u64) -> Option<u64> {
        let at = index.checked_sub(self.floor.0)?;
        match at {
            0 => Some(self.floor.1),
            at => self
                .entries
                .get(usize::try_from(at).unwrap() - 1)
                .map(|(term, _)| *term),
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Vote(vote) => self.vote = *vote,
            Change::Append(index, term, payload) => {
                self.keep(*index - 1);
                self.entries.push((*term, payload.clone()));
            }
            Change::Truncate(last) => self.keep(*last),
            Change::Compact(index, term) => {
                match self.term(*index) == Some(*term) {
                    true => {
                        let count = usize::try_from(*index - self.floor.0).unwrap();
                        self.entries.drain(..count);
                    }
                    false => self.entries.clear(),
                }
                self.floor = (*index, *term);
            }
            Change::Reset(member) => {
                *self = NaiveLane {
                    member: Some(*member),
                    ..NaiveLane::default()
                };
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Vote(Vote),
    Append(u64, u64, Vec<u8>),
    Truncate(u64),
    Compact(u64, u64),
    Reset(u64),
}

struct World {
    dice: Dice,
    disk: SimulatedDisk,
    options: Options,
    wal: Wal<SimulatedDisk>,
    /// All changes that may be on the disk, with their positions and lanes.
    changes: Vec<(Position, usize, Change)>,
    request: Option<(SyncRequest, Reach)>,
    /// The highest position that the log has reported as durable.
    promised: Position,
}

fn note_of(index: u64) -> Vec<u8> {
    index.to_le_bytes().to_vec()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let disk = SimulatedDisk::new();
        let options = Options {
            segment_bytes: 1500 + dice.below(3000) as u64,
            segments_wanted: 2,
            ..Options::new(NODE, seed, 0x5A17)
        };
        let (wal, recovery) = Wal::open(disk.clone(), &options).unwrap();
        assert!(recovery.is_created);
        World {
            dice,
            disk,
            options,
            wal,
            changes: Vec::new(),
            request: None,
            promised: 0,
        }
    }

    fn lane_at(&self, lane: usize, until: Position) -> NaiveLane {
        let mut state = NaiveLane::default();
        for (_, _, change) in self
            .changes
            .iter()
            .filter(|(at, of, _)| *at <= until && *of == lane)
        {
            state.apply(change);
        }
        state
    }

    fn payload(&mut self) -> Vec<u8> {
        let bytes = match self.dice.below(8) {
            0 => 0,
            1 => 600 + self.dice.below(900),
            _ => self.dice.below(100),
        };
        (0..bytes)
            .map(|_| u8::try_from(self.dice.below(256)).unwrap())
            .collect()
    }

    fn choose(&mut self, lane: usize) -> Change {
        let state = self.lane_at(lane, Position::MAX);
        let (last, term) = state.last();
        let first = state.floor.0;
        let any = first + self.dice.below(usize::try_from(last - first + 1).unwrap()) as u64;
        match self.dice.below(12) {
            0 => {
                let term = state.vote.term + 1;
                let voted_for = self.dice.one_in(2).then_some(2);
                Change::Vote(Vote { term, voted_for })
            }
            1 => Change::Truncate(any),
            2 | 3 => Change::Compact(any, state.term(any).unwrap()),
            6 if self.dice.one_in(10) => Change::Reset(state.member.unwrap_or(1000) + 1),
            4 if self.dice.one_in(4) => Change::Compact(last + 5, term + 1),
            5 if self.dice.one_in(2) => Change::Append(any + 1, term + 1, self.payload()),
            _ => Change::Append(last + 1, term, self.payload()),
        }
    }

    /// Makes a random change of a lane.
    fn change(&mut self) {
        let lane = self.dice.below(LANES);
        let change = self.choose(lane);
        self.make(lane, change);
    }

    fn make(&mut self, lane: usize, change: Change) {
        let number = u16::try_from(lane).unwrap();
        let result = match &change {
            Change::Vote(vote) => self.wal.set_vote(number, *vote),
            Change::Append(index, term, payload) => self.wal.append(number, *index, *term, payload),
            Change::Truncate(last) => self.wal.truncate(number, *last),
            Change::Compact(index, term) => {
                self.wal.compact(number, *index, *term, &note_of(*index))
            }
            Change::Reset(member) => self.wal.reset(number, *member),
        };
        match result {
            Ok(position) => self.changes.push((position, lane, change)),
            // The disk is full.
            Err(WalError::Busy) => {}
            Err(error) => panic!("{change:?} of lane {lane}: {error}"),
        }
    }

    fn start_sync(&mut self) {
        match self.wal.poll_sync() {
            Ok(Some(request)) => {
                let reach = self.disk.reach(&request);
                self.request = Some((request, reach));
            }
            Ok(None) | Err(WalError::Full) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn end_sync(&mut self) {
        let Some((request, reach)) = self.request.take() else {
            return;
        };
        let result = self.disk.perform_until(&request, &reach, &mut self.dice);
        match (result, self.wal.handle_synced(request.id, result)) {
            (Ok(()), durable) => self.promised = durable.unwrap(),
            (Err(error), answer) => {
                assert_eq!(answer, Err(WalError::Failed(error)));
                assert_eq!(self.wal.reset(0, u64::MAX), Err(WalError::Failed(error)));
                self.disk.set_failing_syncs(0);
                self.restart(&[]);
            }
        }
    }

    fn sync(&mut self) {
        self.end_sync();
        self.start_sync();
        self.end_sync();
    }

    /// Opens the log again, and compares it with the model. Entries of `damaged` lanes may be missing.
    fn restart(&mut self, damaged: &[Damage]) -> Vec<Damage> {
        self.request = None;
        self.disk.set_room(None);
        let (wal, recovery) = Wal::open(self.disk.clone(), &self.options).unwrap();
        self.wal = wal;
        let end = self.wal.durable();
        assert!(
            end >= self.promised,
            "{end} of {} durable positions",
            self.promised
        );
        assert!(!recovery.is_created);
        self.promised = end;
        self.changes.retain(|(at, ..)| *at <= end);
        if damaged.is_empty() {
            assert_eq!(recovery.damage, []);
        }
        self.compare();
        recovery.damage
    }

    fn compare(&mut self) {
        for lane in 0..LANES {
            let number = u16::try_from(lane).unwrap();
            let state = self.lane_at(lane, Position::MAX);
            let missing = match self.wal.condition(number) {
                Condition::Intact => Vec::new(),
                Condition::Missing(missing) => missing,
                Condition::Suspect => continue,
            };
            let floor = self.wal.floor(number);
            assert_eq!(self.wal.vote(number), state.vote, "lane {lane}");
            let member = state.member.unwrap_or_else(|| self.wal.incarnation());
            assert_eq!(self.wal.member(number), member, "lane {lane}");
            assert_eq!((floor.index, floor.term), state.floor, "lane {lane}");
            if floor.index > 0 {
                assert_eq!(floor.note, note_of(floor.index));
            }
            assert_eq!(self.wal.last(number), state.last(), "lane {lane}");
            for (index, (term, payload)) in (floor.index + 1..).zip(&state.entries) {
                assert_eq!(self.wal.term(number, index), Some(*term));
                let read = self.wal.read(number, index);
                match missing.contains(&index) {
                    true => assert_eq!(
                        read,
                        Err(WalError::Damaged {
                            lane: number,
                            index
                        })
                    ),
                    false => assert_eq!(read.as_ref(), Ok(payload), "entry {index} of lane {lane}"),
                }
            }
        }
    }

    /// Replaces damaged entries with the model's.
    fn repair(&mut self, damage: &[Damage]) {
        for damage in damage {
            let Damage::Entry { lane, index } = *damage else {
                panic!("one wrong bit lost more than a payload: {damage:?}");
            };
            let state = self.lane_at(usize::from(lane), Position::MAX);
            let at = usize::try_from(index - state.floor.0).unwrap() - 1;
            let (term, payload) = &state.entries[at];
            self.wal.repair(lane, index, *term, payload).unwrap();
            assert_eq!(self.wal.condition(lane), self.wal.condition(lane));
        }
        for lane in 0..3 {
            assert_eq!(self.wal.condition(lane), Condition::Intact);
        }
        self.compare();
    }

    /// One random step that loses nothing that was synced.
    fn step(&mut self) {
        match self.dice.below(24) {
            0..12 => self.change(),
            12..16 => self.start_sync(),
            16..19 => self.end_sync(),
            19 => self
                .wal
                .write_mark()
                .unwrap_or_else(|error| assert_eq!(error, WalError::Full)),
            20 => {
                self.disk.crash(&mut self.dice);
                self.restart(&[]);
            }
            21 => {
                self.disk.kill();
                self.restart(&[]);
            }
            22 => assert_eq!(self.wal.scrub(), Ok(Vec::new())),
            _ => match self.dice.below(6) {
                0 => self.disk.set_failing_syncs(50),
                1 => self
                    .disk
                    .set_room(Some(self.disk.used_bytes() + self.dice.below(2000))),
                _ => self.disk.set_room(None),
            },
        }
    }
}

/// Returns the seeds of `FANLINE_SEEDS`, as `from..to`.
fn wanted_seeds() -> Option<std::ops::Range<u64>> {
    let text = std::env::var("FANLINE_SEEDS").ok()?;
    let (from, to) = text.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}

fn run(seeds: std::ops::Range<u64>, mut check: impl FnMut(&mut World)) {
    for seed in wanted_seeds().unwrap_or(seeds) {
        let mut world = World::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&mut world)));
        if let Err(panic) = result {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn recovers_what_was_synced_after_any_crash() {
    run(0..300, |world| {
        for _ in 0..150 {
            world.step();
        }
        world.compare();
    });
}

#[test]
fn flipped_bit_costs_at_most_one_payload_that_is_repaired() {
    let mut payloads = 0;
    run(0..600, |world| {
        for _ in 0..60 {
            world.step();
        }
        world.disk.set_failing_syncs(0);
        world.disk.set_room(None);
        world.sync();
        if world.dice.one_in(2) {
            world.wal.write_mark().unwrap();
            world.change();
            world.start_sync();
            world.request = None;
        }
        let (_, _) = world.disk.flip(&mut world.dice);
        world.disk.crash(&mut world.dice);
        let damage = world.restart(&[Damage::Frames { first: 0, last: 0 }]);
        payloads += damage.len();
        assert!(damage.len() <= 1, "{damage:?}");
        world.repair(&damage);
        world.sync();
        for _ in 0..40 {
            world.change();
            world.sync();
        }
        // The segment with the damage is gone, and nothing is reported again.
        world.restart(&[]);
    });
    assert!(payloads > 100, "payloads were hit {payloads} times");
}

#[test]
fn lost_sectors_of_synced_data_are_reported() {
    let mut kinds = BTreeMap::new();
    run(0..300, |world| {
        for _ in 0..80 {
            world.change();
            world.sync();
        }
        world.wal.write_mark().unwrap();
        let names = world.disk.names();
        let name = &names[world.dice.below(names.len() - 1)];
        damage_sector(world, name);
        world.disk.kill();
        let damage = world.restart(&[Damage::Frames { first: 0, last: 0 }]);
        for damage in &damage {
            *kinds
                .entry(matches!(damage, Damage::Entry { .. }))
                .or_insert(0) += 1;
        }
        if damage
            .iter()
            .any(|damage| matches!(damage, Damage::Frames { .. }))
        {
            // It is found again until the caller has started all lanes again.
            let again = world.restart(&[Damage::Frames { first: 0, last: 0 }]);
            assert_eq!(again, damage);
            for lane in 0..LANES {
                // The lost frames may be older than a reset.
                if world.lane_at(lane, Position::MAX).member.is_none() {
                    assert_eq!(
                        world.wal.condition(u16::try_from(lane).unwrap()),
                        Condition::Suspect
                    );
                }
                world.make(lane, Change::Reset(lane as u64 + 5000));
            }
            world.wal.accept_losses();
            world.compare();
        } else {
            world.repair(&damage);
        }
        for _ in 0..40 {
            world.change();
            world.sync();
        }
        world.restart(&[]);
    });
    assert!(kinds.len() == 2, "entries and frames: {kinds:?}");
}

/// Overwrites one synced sector of a file with other bytes.
fn damage_sector(world: &mut World, name: &str) {
    use fanline_engine::store::Disk as _;
    let mut disk = world.disk.clone();
    let file = disk.open(name, false).unwrap();
    let sectors = usize::try_from(disk.len(file).unwrap()).unwrap() / 512;
    let offset = world.dice.below(sectors) * 512;
    let bytes: Vec<_> = (0..512)
        .map(|_| u8::try_from(world.dice.below(256)).unwrap())
        .collect();
    disk.write_at(file, offset as u64, &bytes).unwrap();
    disk.sync_file(file).unwrap();
}

#[test]
fn running_log_repairs_what_scrubbing_finds() {
    run(0..300, |world| {
        for _ in 0..60 {
            world.change();
            world.sync();
        }
        world.disk.flip(&mut world.dice);
        let mut damage = Vec::new();
        for _ in 0..world.disk.names().len() {
            damage.extend(world.wal.scrub().unwrap());
        }
        world.repair(&damage);
        for _ in 0..20 {
            world.change();
            world.sync();
        }
        assert_eq!(world.wal.scrub(), Ok(Vec::new()));
        world.restart(&[]);
    });
}

#[test]
fn error_of_the_disk_ends_the_log() {
    let mut world = World::new(1);
    world.change();
    let request = world.wal.poll_sync().unwrap().unwrap();
    let failed = WalError::Failed(DiskError::Other(5));
    assert_eq!(
        world
            .wal
            .handle_synced(request.id, Err(DiskError::Other(5))),
        Err(failed)
    );
    assert_eq!(world.wal.poll_sync(), Err(failed));
}
