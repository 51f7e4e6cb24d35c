//! What a keeper's thread does its work for, as the thread sees it.

use std::time::Duration;

use fanline_engine::jetstream::{Handler, Now, Overview, OverviewWanted, Port};
use fanline_engine::store::{DiskError, SyncId, SyncRequest};

/// JetStream; something small in tests.
pub(crate) trait Work: Handler + Send {
    /// What is to be brought to the disk now; asked until there is nothing.
    fn next_sync(&mut self, now: Duration, port: &mut dyn Port) -> Option<StreamSync>;

    /// The disk has done, or failed to do, what was asked for.
    fn handle_synced(
        &mut self,
        stream: u64,
        id: SyncId,
        result: Result<(), DiskError>,
        now: Now,
        port: &mut dyn Port,
    );

    /// Brings all to the disk, and waits for it: nothing else will be asked.
    fn close(&mut self, now: Now, port: &mut dyn Port);

    /// What there is, for monitoring.
    fn overview(&mut self, wanted: OverviewWanted, now: Now, port: &mut dyn Port) -> Overview;

    /// What went wrong where nobody was told, since last time.
    fn take_problems(&mut self) -> Vec<String>;
}

/// What is to be brought to the disk for a stream.
pub(crate) struct StreamSync {
    /// Names the stream for as long as it lives.
    pub(crate) stream: u64,
    /// Its name, and its folder's.
    pub(crate) name: String,
    pub(crate) request: SyncRequest,
}
