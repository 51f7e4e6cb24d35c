//! What a keeper's thread does its work for, as the thread sees it.

use std::time::Duration;

use fanline_engine::auth::{Access, AccountId};
use fanline_engine::jetstream::{AccountOverview, Handler, Now, OverviewWanted, Ports};
use fanline_engine::store::{DiskError, SyncId, SyncRequest};

/// JetStream; something small in tests.
pub(crate) trait Work: Handler + Send {
    /// What is to be brought to the disk now; asked until there is nothing.
    fn next_sync(&mut self, now: Duration, ports: &mut dyn Ports) -> Option<StreamSync>;

    /// The disk has done, or failed to do, what was asked for.
    fn handle_synced(
        &mut self,
        whose: Whose,
        id: SyncId,
        result: Result<(), DiskError>,
        now: Now,
        ports: &mut dyn Ports,
    );

    /// Tells those who wait for something that the server stops.
    fn say_goodbye(&mut self, now: Now, ports: &mut dyn Ports);

    /// Brings all to the disk, and waits for it: nothing else will be asked.
    fn close(&mut self, now: Now, ports: &mut dyn Ports);

    /// Says which accounts there are from now on.
    fn set_accounts(&mut self, access: &Access, now: Now, ports: &mut dyn Ports);

    /// What there is, for monitoring.
    fn overview(
        &mut self,
        wanted: OverviewWanted,
        now: Now,
        ports: &mut dyn Ports,
    ) -> Vec<AccountOverview>;

    /// What went wrong where nobody was told, since last time.
    fn take_problems(&mut self) -> Vec<String>;
}

/// What is to be brought to the disk for a stream.
pub(crate) struct StreamSync {
    pub(crate) whose: Whose,
    /// The account's name, and its folder's.
    pub(crate) account: String,
    /// The stream's name, and its folder's.
    pub(crate) name: String,
    pub(crate) request: SyncRequest,
}

/// Names a stream for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whose {
    pub(crate) account: AccountId,
    pub(crate) stream: u64,
}
