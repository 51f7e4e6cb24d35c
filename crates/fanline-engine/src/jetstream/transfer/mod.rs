//! Backups of streams (snapshots) and their restores, in chunks.
//!
//! A snapshot is sent to the requested subject in chunks. At most a window of bytes may be unanswered; each
//! answer allows further chunks. A restore answers each received chunk. An empty chunk ends the restore.

mod archive;
mod framing;
mod restore;
mod snapshot;

use std::time::Duration;

use super::account::JetStream;
use super::{Message, Now, Port};

pub(super) use restore::Restore;
pub(super) use snapshot::{Snapshot, SnapshotOptions};

/// Time without a message after which a transfer is abandoned.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Maximum time for which a snapshot waits for a subscription to its deliver subject. Some clients have a
/// wildcard subscription for all replies, which also matches this subject, but they subscribe to the subject
/// itself only after the reply.
const INTEREST_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of snapshots at the same time, and also of restores.
const TRANSFERS_MAX: usize = 64;

/// Snapshots and restores that are in progress.
#[derive(Default)]
pub(super) struct Transfers {
    snapshots: Vec<Snapshot>,
    restores: Vec<Restore>,
}

impl Transfers {
    /// Returns the time at which the next transfer is abandoned if no message arrives.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        let out = self.snapshots.iter().map(Snapshot::abandoned_at);
        let back = self
            .restores
            .iter()
            .map(|restore| restore.last_message + SILENCE_MAX);
        out.chain(back).min()
    }

    /// Returns whether a stream of this name is being restored.
    pub(super) fn is_restoring(&self, name: &str) -> bool {
        self.restores
            .iter()
            .any(|restore| restore.config.name == name)
    }
}

impl JetStream {
    /// Handles a message to `$JS.SNAPSHOT.>`: an answer to a sent chunk, or a received chunk.
    pub(super) fn handle_transfer(&mut self, message: &Message<'_>, now: Now, port: &mut dyn Port) {
        let subject = String::from_utf8_lossy(message.subject);
        let mut tokens = subject.split('.').skip(2);
        let (direction, id) = (tokens.next(), tokens.nth(1));
        match (direction, id) {
            (Some("ACK"), Some(id)) => {
                let bytes = tokens.next().and_then(|bytes| bytes.parse().ok());
                self.handle_snapshot_ack(id, bytes.unwrap_or(0), now, port);
            }
            (Some("RESTORE"), Some(id)) => self.handle_restore_chunk(id, message, now, port),
            _ => {}
        }
    }

    /// Abandons the transfers that have received no message for too long.
    pub(super) fn expire_transfers(&mut self, now: Now, port: &mut dyn Port) {
        self.begin_snapshots(now, port);
        let is_silent = |last_message: Duration| last_message + SILENCE_MAX <= now.since_start;
        self.transfers.snapshots.retain(|snapshot| {
            let gone = snapshot.abandoned_at() <= now.since_start;
            if gone {
                snapshot.abandon(port);
            }
            !gone
        });
        while let Some(at) = self
            .transfers
            .restores
            .iter()
            .position(|r| is_silent(r.last_message))
        {
            let restore = self.transfers.restores.swap_remove(at);
            self.abandon_restore(restore);
        }
    }
}
