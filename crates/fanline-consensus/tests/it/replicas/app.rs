//! What the leader runs on the replicated folders.

use std::collections::BTreeMap;

use fanline_consensus::folders::{Folders as _, Journal, JournaledDisk, Names};
use fanline_engine::store::DiskError;

use super::Dice;
use super::node::{FOLDER, Files};

/// The program that a leader has open.
pub(super) trait App: Sized {
    /// A request of a client.
    type Request;
    /// What the program sends to clients.
    type Reply;
    /// A sync that the program waits for.
    type Sync;

    /// Opens the program, as after a power cut. `number` differs at each start.
    fn open(folders: LaneFolders, number: u64, now: u64) -> Result<Self, String>;

    fn handle(&mut self, request: &Self::Request, now: u64);

    /// Does due work, and returns the syncs that begin now.
    fn poll(&mut self, now: u64) -> Vec<Self::Sync>;

    fn handle_synced(&mut self, sync: Self::Sync, now: u64);

    /// Returns the replies since the last call.
    fn replies(&mut self) -> Vec<Self::Reply>;
}

/// The clients of all leaders.
pub(super) trait Clients<A: App>: Default {
    /// Returns requests to the leader. In the quiet time at the end, clients publish nothing new.
    fn requests(&mut self, now: u64, is_quiet: bool, dice: &mut Dice) -> Vec<A::Request>;

    /// Takes a reply.
    fn receive(&mut self, reply: A::Reply) -> Result<(), String>;

    /// Checks what the program of the last leader has at the end.
    fn check(&mut self, app: A, now: u64) -> Result<u64, String>;
}

/// The folders of the lane on its leader: one.
#[derive(Clone)]
pub(super) struct LaneFolders {
    pub(super) journal: Journal,
    pub(super) files: Files,
    /// Names at the start of this leader.
    pub(super) names: BTreeMap<String, Names>,
}

impl LaneFolders {
    pub(super) fn open(&mut self) -> Result<JournaledDisk, DiskError> {
        if let Some(disk) = self.journal.open_disk(FOLDER) {
            return Ok(disk);
        }
        let names = self.names.remove(FOLDER).unwrap_or_default();
        let files = self.files.open(FOLDER, true)?.ok_or(DiskError::NotFound)?;
        Ok(self.journal.disk(FOLDER, names, files))
    }
}
