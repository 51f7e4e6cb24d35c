//! JetStream: streams that store published messages, and consumers that deliver them at the subscribers'
//! pace.
//!
//! The code does no I/O: it receives messages and the time as arguments, and publishes through a [`Port`].

mod account;
mod accounts;
mod advisory;
mod api;
mod asset_limits;
mod assets;
mod commit;
mod config;
pub mod consumer;
mod error;
mod folders;
mod group;
mod info;
mod limits;
mod origin_inboxes;
mod overview;
mod peers;
mod pending_answers;
mod receivers;
mod recover;
mod stores;
pub mod stream;
mod streams;
#[cfg(test)]
mod tests;
mod trace;
mod transfer;

use std::time::Duration;

use crate::auth::{Access, AccountId};
use crate::store::{DiskError, Record, SyncId};

pub use account::{JetStream, Settings};
pub use accounts::{AccountFolders, AccountOverview, AccountSync, JetStreams};
pub use api::refusal_of;
pub use asset_limits::{AssetLimits, BatchLimits};
pub use commit::StreamSync;
pub use config::*;
pub use error::ApiError;
pub use folders::Folders;
pub use group::{ClusterInfo, Follower, GroupState, ReplicaInfo};
pub use info::{AccountInfo, ApiStats, LostInfo, StateInfo, StreamInfo, TierInfo};
pub use limits::ServerLimits;
pub use overview::{Overview, OverviewWanted, StreamOverview};
pub use peers::{ClusterSettings, is_of_service, requests_of_server, service_of};
pub(crate) use peers::{is_all_requests, is_for_delegates};
pub use streams::StreamId;

/// Maximum delay from a change of a consumer's state, or of the progress of a source, until it is saved. After
/// a crash, records delivered in that time may be redelivered.
const SAVE_DELAY_MAX: Duration = Duration::from_millis(250);

/// Start of the subjects of acknowledgements.
pub(crate) const ACK_PREFIX: &[u8] = b"$JS.ACK.";

/// The current time on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Time since the server's start, for timers. This clock never goes back.
    pub since_start: Duration,
    /// Nanoseconds since 1970 UTC; for timestamps of records.
    pub unix_nanos: i64,
}

/// A message received or sent by JetStream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// Subject to which it is published.
    pub subject: &'a [u8],
    /// Reply subject, or empty.
    pub reply: &'a [u8],
    /// Whole header block from `NATS/1.0` to its empty line, or empty.
    pub headers: &'a [u8],
    /// Payload.
    pub payload: &'a [u8],
    /// Subject that subscribers see instead of `subject`, or empty if they see `subject`. A consumer
    /// publishes a record to its deliver subject, but subscribers see the record's own subject.
    pub shown: &'a [u8],
    /// Whether it is a request that another server of the cluster has passed on.
    pub is_from_route: bool,
    /// Whether it is a request that a server without JetStream has passed on to this server, and to no other one
    /// that has JetStream, except the server of the stream.
    pub is_delegated: bool,
}

/// The outcome of a publish, an acknowledgement, or an API request: the sequence of the stored record, 0 if
/// none was stored, or an error.
pub type Outcome<'a> = Result<u64, &'a ApiError>;

/// Publishes to the subscribers of one account, and reports which subscribers there are.
pub trait Port {
    /// Publishes a message to all subscribers, including streams of the same account.
    fn publish(&mut self, message: &Message<'_>);

    /// Publishes the reply to a publish, an acknowledgement, or an API request. The port may also pass
    /// `outcome` to a requester in this process, which then need not parse the message.
    fn answer(&mut self, message: &Message<'_>, _outcome: Outcome<'_>) {
        self.publish(message);
    }

    /// Publishes a message to the subject `to`, but subscribers see the message's own subject. Consumers
    /// deliver records this way, to a deliver subject or to the inbox of a pull request.
    fn deliver(&mut self, to: &[u8], message: &Message<'_>);

    /// Delivers a message like [`deliver`](Port::deliver). The last call on this port delivered a message with
    /// the same two subjects.
    fn deliver_next(&mut self, to: &[u8], message: &Message<'_>) {
        self.deliver(to, message);
    }

    /// Returns whether this subject has a subscriber now.
    fn has_interest(&mut self, subject: &[u8]) -> bool;

    /// Returns whether exactly this subject has a subscriber in the queue group `group`. With an empty
    /// `group`, only subscribers outside any queue group count. Wildcard subscriptions do not count, because
    /// they usually serve monitoring rather than receive records.
    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool;

    /// Returns whether a subscription has exactly this filter. A subscription whose wildcards match the
    /// filter does not count.
    fn is_subscribed(&mut self, filter: &[u8]) -> bool {
        self.has_interest(filter)
    }

    /// Returns whether a message to this subject also goes to subscribers other than JetStream, in this
    /// account or through an import.
    fn has_others(&mut self, _subject: &[u8]) -> bool {
        false
    }

    /// Subscribes to a filter. Each call needs its own call of [`unsubscribe`](Port::unsubscribe).
    fn subscribe(&mut self, filter: &[u8]);

    /// Cancels a subscription of [`subscribe`](Port::subscribe).
    fn unsubscribe(&mut self, filter: &[u8]);

    /// Joins a queue group of a filter, or leaves it. The default does nothing, which is right without a cluster.
    fn set_member(&mut self, _filter: &[u8], _group: &[u8], _is_member: bool) {}
}

/// The port of each account.
pub trait Ports {
    /// Returns the port of an account.
    fn of(&mut self, account: AccountId) -> &mut dyn Port;
}

/// The implementation behind a [`JetStreamService`](crate::JetStreamService): JetStream, or a stub in tests.
///
/// # Calling order
///
/// Call the `handle*` methods for one or more events. Then call [`settle`](Handler::settle) once, which
/// writes records and serves consumers. Then call [`poll_sync`](Handler::poll_sync) until it returns `None`,
/// and [`release_acks`](Handler::release_acks).
pub trait Handler {
    /// Handles a message whose subject matches a subscription.
    fn handle(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    );

    /// Handles successive messages with the same subject, which matches a subscription.
    fn handle_run(
        &mut self,
        account: AccountId,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        for message in run {
            self.handle(account, &message, now, ports);
        }
    }

    /// Handles successive messages whose subjects begin with `$JS.ACK.`.
    fn handle_acks(
        &mut self,
        account: AccountId,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        for message in run {
            self.handle(account, &message, now, ports);
        }
    }

    /// Traces a message that arrived at the shard of this index. Returns whether to handle it as well.
    fn trace(
        &mut self,
        _account: AccountId,
        _message: &Message<'_>,
        _index: u16,
        _now: Now,
        _ports: &mut dyn Ports,
    ) -> bool {
        true
    }

    /// Handles a change of interest in a filter: the first subscription, the end of the last one, or a change
    /// of its queue groups.
    fn handle_interest(
        &mut self,
        account: AccountId,
        filter: &[u8],
        present: bool,
        now: Now,
        ports: &mut dyn Ports,
    );

    /// Handles a change of the interest of other servers of the cluster.
    fn handle_peer_interest(&mut self, _account: AccountId, _filter: &[u8], _present: bool) {}

    /// Runs due timers.
    fn handle_timeout(&mut self, now: Now, ports: &mut dyn Ports);

    /// Returns the time at which to call [`handle_timeout`](Handler::handle_timeout) next, counted from the
    /// server's start.
    fn next_timeout(&self) -> Option<Duration>;

    /// Returns whether a message to this subject is processed quickly and without waiting for a disk.
    fn is_quick(&self, _account: AccountId, _subject: &[u8]) -> bool {
        false
    }

    /// Calls `each` for the records of a stream whose subjects match, in order from a sequence on, until it
    /// returns `false`.
    fn read(
        &mut self,
        _account: AccountId,
        _stream: &str,
        _filters: &[&[u8]],
        _from: u64,
        _each: &mut dyn FnMut(&Record<'_>) -> bool,
    ) {
    }

    /// Returns whether an account has a stream here.
    fn has_stream(&self, _account: AccountId, _stream: &str) -> bool {
        false
    }

    /// Performs the work that follows from handled events. Call it once after one or more of them.
    fn settle(&mut self, now: Now, ports: &mut dyn Ports);

    /// Returns the next sync to perform. Call it until it returns `None`.
    fn poll_sync(&mut self, _now: Duration) -> Option<AccountSync> {
        None
    }

    /// Takes the result of a sync that [`poll_sync`](Handler::poll_sync) requested. Call `poll_sync` and
    /// [`release_acks`](Handler::release_acks) afterwards.
    fn handle_synced(
        &mut self,
        _account: AccountId,
        _stream: StreamId,
        _id: SyncId,
        _result: Result<(), DiskError>,
        _now: Duration,
    ) {
    }

    /// Sends the pending answers whose effect is durable now. Call it when [`poll_sync`](Handler::poll_sync)
    /// has returned `None`, so that the next sync already runs while the answers are sent.
    fn release_acks(&mut self, _now: Duration, _ports: &mut dyn Ports) {}

    /// Notifies waiting requesters and subscribers that the server stops. Call it before connections close.
    fn notify_shutdown(&mut self, _now: Now, _ports: &mut dyn Ports) {}

    /// Writes and syncs everything, and blocks until it is done. Call it once, before the server stops.
    fn close(&mut self, _now: Now, _ports: &mut dyn Ports) {}

    /// Sets the accounts and their JetStream limits.
    fn set_accounts(&mut self, _access: &Access, _now: Now, _ports: &mut dyn Ports) {}

    /// Returns the totals of each account.
    fn overview(
        &mut self,
        _wanted: OverviewWanted,
        _now: Now,
        _ports: &mut dyn Ports,
    ) -> Vec<AccountOverview> {
        Vec::new()
    }

    /// Returns, as text, the problems since the last call that were not reported to any client.
    fn take_problems(&mut self) -> Vec<String> {
        Vec::new()
    }
}
