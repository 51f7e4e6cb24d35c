//! The disks of all streams, which outlive a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use fanline_engine::jetstream::{AccountFolders, Folders};
use fanline_engine::store::simulated_disk::{Dice, SimulatedDisk};
use fanline_engine::store::{Disk, DiskError};

/// The disk of each stream of each account. Clones share them.
#[derive(Clone, Default)]
pub struct Disks(Arc<Mutex<BTreeMap<(String, String), SimulatedDisk>>>);

impl Disks {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(String, String), SimulatedDisk>> {
        self.0.lock().expect("no holder panics")
    }

    /// Returns the disk of a stream.
    pub(crate) fn of(&self, account: &str, stream: &str) -> SimulatedDisk {
        let name = (account.to_owned(), stream.to_owned());
        self.all().entry(name).or_default().clone()
    }

    /// Cuts the power: any part of what was not synced survives.
    pub(crate) fn cut_power(&self, dice: &mut Dice) {
        for disk in self.all().values() {
            disk.crash(dice);
        }
    }

    /// Kills the process: the system keeps what was written.
    pub(crate) fn kill(&self) {
        for disk in self.all().values() {
            disk.kill();
        }
    }
}

impl AccountFolders for Disks {
    fn has(&self, account: &str) -> bool {
        let all = self.all();
        let mut disks = all.iter().filter(|((of, _), _)| of == account);
        disks.any(|(_, disk)| !disk.names().is_empty())
    }

    fn of(&mut self, account: &str) -> Result<Box<dyn Folders>, DiskError> {
        let disks = self.clone();
        let account = account.to_owned();
        Ok(Box::new(AccountDisks { disks, account }))
    }
}

/// The disks of one account.
struct AccountDisks {
    disks: Disks,
    account: String,
}

impl Folders for AccountDisks {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let all = self.disks.all();
        let used = all
            .iter()
            .filter(|((account, _), disk)| *account == self.account && !disk.names().is_empty());
        Ok(used.map(|((_, stream), _)| stream.clone()).collect())
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        Ok(Box::new(self.disks.of(&self.account, stream)))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        let mut disk = self.disks.of(&self.account, stream);
        let names = disk.names();
        names.iter().try_for_each(|name| disk.remove(name))
    }
}
