//! A bare store with small segments: records, checkpoints, and compaction.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use fanline_engine::store::{FileOptions, NewRecord, Store, StoreLimits, SyncId};

use super::Dice;
use super::app::{App, Clients, LaneFolders};

pub(super) struct StoreApp {
    store: Store,
    /// Sequences and numbers of records that are not acknowledged.
    waiting: VecDeque<(u64, u64)>,
    replies: Vec<(u64, u64)>,
}

impl App for StoreApp {
    /// Number of a record, and the length of its payload.
    type Request = (u64, usize);
    /// Sequence and number of a record that is acknowledged.
    type Reply = (u64, u64);
    type Sync = SyncId;

    fn open(mut folders: LaneFolders, number: u64, _: u64) -> Result<Self, String> {
        let disk = folders.open().map_err(|error| error.to_string())?;
        let options = FileOptions {
            segment_bytes: 1000,
            seed: number,
            ..FileOptions::default()
        };
        let (store, recovery) = Store::file(Box::new(disk), &options, &StoreLimits::default())
            .map_err(|error| format!("the store does not open: {error}"))?;
        if !recovery.damages.is_empty() || recovery.torn_bytes > 0 {
            return Err(format!("the store is damaged: {recovery:?}"));
        }
        Ok(StoreApp {
            store,
            waiting: VecDeque::new(),
            replies: Vec::new(),
        })
    }

    fn handle(&mut self, (number, length): &(u64, usize), _: u64) {
        let payload = [&number.to_le_bytes()[..], &vec![7; *length]].concat();
        let record = NewRecord {
            subject: b"orders",
            payload: &payload,
            ..NewRecord::default()
        };
        if let Ok(sequence) = self.store.append(&record) {
            self.waiting.push_back((sequence, *number));
        }
    }

    fn poll(&mut self, _: u64) -> Vec<SyncId> {
        let request = self.store.poll_sync(Duration::ZERO);
        request.into_iter().map(|request| request.id).collect()
    }

    fn handle_synced(&mut self, sync: SyncId, _: u64) {
        self.store.handle_synced(sync, Ok(()));
        let durable = self.store.durable();
        while let Some(record) = self.waiting.pop_front_if(|(at, _)| *at <= durable) {
            self.replies.push(record);
        }
    }

    fn replies(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.replies)
    }
}

/// A publisher that never repeats a message.
#[derive(Default)]
pub(super) struct Publisher {
    published: u64,
    acknowledged: Vec<(u64, u64)>,
}

impl Clients<StoreApp> for Publisher {
    fn requests(&mut self, _: u64, is_quiet: bool, dice: &mut Dice) -> Vec<(u64, usize)> {
        let count = if !is_quiet && dice.one_in(3) {
            dice.below(6)
        } else {
            0
        };
        let requests = (0..count).map(|_| {
            self.published += 1;
            (self.published, dice.below(40))
        });
        requests.collect()
    }

    fn receive(&mut self, reply: (u64, u64)) -> Result<(), String> {
        self.acknowledged.push(reply);
        Ok(())
    }

    /// The store has every acknowledged record in its place, and no other than published ones, each once.
    fn check(&mut self, mut app: StoreApp, _: u64) -> Result<u64, String> {
        let mut found = Vec::new();
        for sequence in 1..=app.store.last_sequence() {
            let record = app
                .store
                .read(sequence)
                .map_err(|error| error.to_string())?;
            let record = record.ok_or_else(|| format!("no record {sequence}"))?;
            let number = record.payload.first_chunk().ok_or("a short record")?;
            found.push(u64::from_le_bytes(*number));
        }
        let once: BTreeSet<_> = found.iter().collect();
        if once.len() != found.len() || found.iter().any(|number| *number > self.published) {
            return Err("a record is there twice, or was never published".to_owned());
        }
        for (sequence, number) in &self.acknowledged {
            let at = usize::try_from(sequence - 1).map_err(|error| error.to_string())?;
            if found.get(at) != Some(number) {
                return Err(format!("record {sequence}, {number}, was lost"));
            }
        }
        Ok(self.acknowledged.len() as u64)
    }
}
