//! Folders of accounts that survive the service that writes them.
#![expect(
    clippy::disallowed_types,
    reason = "services share simulated disks as servers share files"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::jetstream::{AccountFolders, AccountSync, Folders};
use crate::store::simulated_disk::{Dice, SimulatedDisk};
use crate::store::{Disk, DiskError};

/// Simulated disks by account and stream.
#[derive(Clone, Default)]
pub(super) struct Shelf(Arc<Mutex<BTreeMap<(String, String), SimulatedDisk>>>);

impl Shelf {
    fn disk(&self, account: &str, stream: &str) -> SimulatedDisk {
        let mut disks = self.0.lock().unwrap();
        let key = (account.to_owned(), stream.to_owned());
        disks.entry(key).or_default().clone()
    }

    fn streams(&self, account: &str) -> Vec<String> {
        let disks = self.0.lock().unwrap();
        let used = disks
            .iter()
            .filter(|((owner, _), disk)| owner == account && !disk.names().is_empty());
        used.map(|((_, stream), _)| stream.clone()).collect()
    }

    /// Returns the number of bytes of all files.
    pub(super) fn used_bytes(&self) -> usize {
        let disks = self.0.lock().unwrap();
        disks.values().map(SimulatedDisk::used_bytes).sum()
    }

    pub(super) fn perform(&self, sync: &AccountSync) -> Result<(), DiskError> {
        let mut disk = self.disk(&sync.account_name, &sync.sync.name);
        disk.perform(&sync.sync.request, &mut Dice::new(1))
    }
}

impl AccountFolders for Shelf {
    fn has(&self, account: &str) -> bool {
        !self.streams(account).is_empty()
    }

    fn of(&mut self, account: &str) -> Result<Box<dyn Folders>, DiskError> {
        Ok(Box::new(OfAccount(self.clone(), account.to_owned())))
    }
}

struct OfAccount(Shelf, String);

impl Folders for OfAccount {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(self.0.streams(&self.1))
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        Ok(Box::new(self.0.disk(&self.1, stream)))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        let mut disk = self.0.disk(&self.1, stream);
        disk.names().iter().try_for_each(|name| disk.remove(name))
    }
}
