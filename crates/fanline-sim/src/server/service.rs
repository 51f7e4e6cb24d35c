//! The steps of the JetStream thread and of the sync threads.

use std::sync::Arc;

use fanline_engine::auth::Access;
use fanline_engine::jetstream::{
    AccountSync, Handler as _, JetStreams, Now, ServerLimits, Settings,
};
use fanline_engine::store::DiskError;
use fanline_engine::store::simulated_disk::{Dice, Reach};
use fanline_engine::{AccountId, Batch, BatchCursor, JetStreamService, ShardConfig};

use super::{Disks, Sabotage, Server, ServerSettings};

/// Largest number of times in a row that the service handles messages to itself before other work runs.
/// `fanline-server` uses the same number.
const OWN_ROUNDS_MAX: usize = 16;

/// Size in bytes above which a shard's thread does not run the service for a batch. `fanline-server` uses the
/// same size.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// The JetStream service with the state of its thread.
pub(super) struct ServiceThread {
    service: JetStreamService<JetStreams>,
    /// Requested syncs, in any state.
    pub(super) syncs: Vec<Sync>,
}

/// A sync on its way.
pub(super) struct Sync {
    wanted: AccountSync,
    reach: Reach,
    result: Option<Result<(), DiskError>>,
}

/// A record of a stream.
pub(crate) struct StoredRecord {
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    pub(crate) payload: String,
}

/// How far a sync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncState {
    /// It waits for a sync thread.
    Requested,
    /// The disk is done, and the service does not know it.
    Performed,
}

impl ServiceThread {
    pub(super) fn start(
        index: u16,
        config: &Arc<ShardConfig>,
        settings: &ServerSettings,
        disks: &Disks,
        now: Now,
    ) -> Self {
        let of_streams = Settings {
            server_name: "sim".into(),
            server_limits: ServerLimits::default(),
            ..Settings::default()
        };
        let seed = settings.seed.wrapping_add(1 << 48);
        let mut service = JetStreamService::new(index, config, seed, |ports| {
            let folders = Some(Box::new(disks.clone()) as _);
            let mut streams = JetStreams::new(of_streams, folders, seed);
            streams.set_accounts(&settings.access, now, ports);
            streams
        });
        service.set_accounts(&settings.access);
        ServiceThread {
            service,
            syncs: Vec::new(),
        }
    }
}

impl Server {
    /// Runs the service on a shard's thread for a batch of that shard, if the work is small. Returns whether
    /// it did.
    pub(super) fn try_run_service(&mut self, batch: &mut Batch) -> bool {
        let is_small = batch.bytes() <= INLINE_BYTES_MAX;
        let (Some(mailbox), Some(thread)) = (self.mailboxes.last_mut(), &self.service) else {
            return false;
        };
        if !is_small || !mailbox.is_empty() || !thread.service.is_quick(batch) {
            return false;
        }
        mailbox.append(batch);
        self.round();
        true
    }

    /// Applies pending batches and due timers of the service. Returns whether there were any.
    pub(crate) fn round(&mut self) -> bool {
        let index = self.mailboxes.len() - 1;
        let Some(thread) = &mut self.service else {
            return false;
        };
        let batch = std::mem::take(&mut self.mailboxes[index]);
        let has_batch = !batch.is_empty();
        let has_own = !thread.service.outgoing(index).is_empty();
        if has_batch {
            self.apply_at_service(&batch);
        }
        let service = self.service.as_mut().map(|thread| &mut thread.service);
        let due = service.filter(|service| {
            let at = service.next_timeout();
            at.is_some_and(|at| at <= self.now.since_start)
        });
        let is_due = due.is_some();
        if let Some(service) = due {
            service.handle_timeout(self.now);
        }
        self.end_round();
        has_batch || has_own || is_due
    }

    fn apply_at_service(&mut self, batch: &Batch) {
        let mut cursor = BatchCursor::default();
        while let Some(ServiceThread { service, .. }) = &mut self.service
            && service.apply(batch, &mut cursor, self.now).must_flush
        {
            service.settle(self.now);
            self.send_output();
        }
    }

    pub(super) fn end_round(&mut self) {
        let index = self.mailboxes.len() - 1;
        self.settle_service();
        for _ in 0..OWN_ROUNDS_MAX {
            let Some(ServiceThread { service, .. }) = &mut self.service else {
                return;
            };
            let own = std::mem::take(service.outgoing(index));
            if own.is_empty() {
                break;
            }
            self.apply_at_service(&own);
            self.settle_service();
        }
        self.send_output();
    }

    fn settle_service(&mut self) {
        if let Some(ServiceThread { service, .. }) = &mut self.service {
            service.settle(self.now);
        }
    }

    /// Requests syncs, releases acknowledgements, and posts batches.
    fn send_output(&mut self) {
        let now = self.now.since_start;
        let Some(ServiceThread { service, syncs, .. }) = &mut self.service else {
            return;
        };
        while let Some(wanted) = service.with(|streams, _| streams.poll_sync(now)) {
            let disk = self.disks.of(&wanted.account_name, &wanted.sync.name);
            let reach = disk.reach(&wanted.sync.request);
            syncs.push(Sync {
                wanted,
                reach,
                result: None,
            });
        }
        service.with(|streams, ports| streams.release_acks(now, ports));
        for (to, mailbox) in self.mailboxes.iter_mut().enumerate() {
            mailbox.append(service.announcements(to));
        }
        let shards = self.mailboxes.len() - 1;
        for (to, mailbox) in self.mailboxes.iter_mut().enumerate().take(shards) {
            let batch = service.outgoing(to);
            if batch.is_empty() {
                continue;
            }
            if self.sabotage == Sabotage::DropBatch && self.sabotage_dice.one_in(40) {
                batch.clear();
            }
            mailbox.append(batch);
        }
    }

    /// Returns the state of each sync on its way.
    pub(crate) fn syncs(&self) -> Vec<SyncState> {
        let state = |sync: &Sync| match sync.result {
            None => SyncState::Requested,
            Some(_) => SyncState::Performed,
        };
        let syncs = self.service.iter().flat_map(|thread| &thread.syncs);
        syncs.map(state).collect()
    }

    /// Performs a requested sync on the disk.
    pub(crate) fn perform_sync(&mut self, at: usize, dice: &mut Dice) {
        let Some(ServiceThread { syncs, .. }) = &mut self.service else {
            return;
        };
        let sync = &mut syncs[at];
        let name = &sync.wanted.sync.name;
        let mut disk = self.disks.of(&sync.wanted.account_name, name);
        sync.result = Some(match self.sabotage {
            Sabotage::SkipSync => Ok(()),
            _ => disk.perform_until(&sync.wanted.sync.request, &sync.reach, dice),
        });
    }

    /// Passes the result of a sync to the service, and then does what the service's thread does after syncs.
    pub(crate) fn finish_sync(&mut self, at: usize) {
        let Some(thread) = &mut self.service else {
            return;
        };
        let Sync { wanted, result, .. } = thread.syncs.remove(at);
        if self.sabotage == Sabotage::LoseSyncs {
            return;
        }
        let (account, sync) = (wanted.account, wanted.sync);
        let now = self.now.since_start;
        thread.service.with(|streams, _| {
            let result = result.unwrap_or(Ok(()));
            streams.handle_synced(account, sync.stream, sync.request.id, result, now);
        });
        // The thread sends what it has before it reads its mailbox.
        self.send_output();
        self.round();
    }

    /// Applies another directory at the service.
    pub(crate) fn reload_service(&mut self, access: &Access) {
        let now = self.now;
        if let Some(ServiceThread { service, .. }) = &mut self.service {
            service.set_accounts(access);
            service.with(|streams, ports| streams.set_accounts(access, now, ports));
        }
        self.round();
    }

    /// Takes the problems that the service would log.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        let service = self.service.as_mut();
        service.map_or_else(Vec::new, |thread| {
            thread.service.with(|streams, _| streams.take_problems())
        })
    }

    /// Reads all records of a stream. `None` if there is no such stream.
    pub(crate) fn read_stream(
        &mut self,
        account: AccountId,
        stream: &str,
    ) -> Option<Vec<StoredRecord>> {
        let service = &mut self.service.as_mut()?.service;
        service.with(|streams, _| {
            let mut records = Vec::new();
            let is_there = streams.has_stream(account, stream);
            streams.read(account, stream, &[b">"], 1, &mut |record| {
                records.push(StoredRecord {
                    sequence: record.sequence,
                    subject: String::from_utf8_lossy(record.subject).into_owned(),
                    payload: String::from_utf8_lossy(record.payload).into_owned(),
                });
                true
            });
            is_there.then_some(records)
        })
    }
}
