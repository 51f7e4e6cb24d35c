//! JetStream: streams that keep what is published, and consumers that are given it at their pace.
//!
//! It decides and does not wait: messages and the time are handed in, and what it has to say goes out
//! through a [`Port`].

mod account;
mod accounts;
mod advisory;
mod api;
mod asset_limits;
mod commit;
mod config;
pub mod consumer;
mod error;
mod folders;
mod held;
mod info;
mod inlets;
mod keep;
mod limits;
mod overview;
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
pub use asset_limits::{AssetLimits, BatchLimits};
pub use commit::StreamSync;
pub use config::*;
pub use error::ApiError;
pub use folders::Folders;
pub use info::{AccountInfo, ApiStats, ClusterInfo, LostInfo, StateInfo, StreamInfo, TierInfo};
pub use limits::ServerLimits;
pub use overview::{Overview, OverviewWanted, StreamOverview};
pub use streams::StreamId;

/// The time, in both of its senses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Since the server started; never goes back. Timers are set by it.
    pub since_start: Duration,
    /// Nanoseconds since 1970 UTC. Records are stamped with it.
    pub unix_nanos: i64,
}

/// A message, as it comes in and as it goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is published to.
    pub topic: &'a [u8],
    /// Where an answer goes; empty when none is wanted.
    pub reply: &'a [u8],
    /// The whole block of headers, from `NATS/1.0` to its empty line; or empty.
    pub headers: &'a [u8],
    /// What it says.
    pub payload: &'a [u8],
    /// What it was published to as its reader is to see it, when it comes in and that is another topic; else
    /// empty. A consumer's record goes to a deliver subject and shows its own.
    pub shown: &'a [u8],
}

/// The outcome of a publish, an acknowledgement, or a request of the API: the sequence of a record that was stored,
/// and 0 of everything else.
pub type Outcome<'a> = Result<u64, &'a ApiError>;

/// What lies outside: everybody who publishes and subscribes.
pub trait Port {
    /// Publishes a message to all who want it, streams of the same account included.
    fn publish(&mut self, message: &Message<'_>);

    /// Publishes the answer to a publish, an acknowledgement, or a request of the API, whose requester may take the
    /// outcome as it is.
    fn answer(&mut self, message: &Message<'_>, _outcome: Outcome<'_>) {
        self.publish(message);
    }

    /// Publishes a message to `to`, while those who get it read the message's own topic as its subject:
    /// how a consumer's records reach its deliver subject or the inbox of a pull request.
    fn deliver(&mut self, to: &[u8], message: &Message<'_>);

    /// Whether anybody is subscribed to this topic now.
    fn has_interest(&mut self, topic: &[u8]) -> bool;

    /// Whether anybody is subscribed to just this topic now as a member of a queue group; without one,
    /// as no member of any. Who listens to more than it, as to watch, is not who records are meant for.
    fn has_receiver(&mut self, topic: &[u8], group: &[u8]) -> bool;

    /// Whether anybody is subscribed to just this filter: to a topic itself, not to a wildcard that matches.
    fn is_subscribed(&mut self, filter: &[u8]) -> bool {
        self.has_interest(filter)
    }

    /// Returns whether a message to this topic also goes to subscribers that are not JetStream, in this
    /// account or through an import.
    fn has_others(&mut self, _topic: &[u8]) -> bool {
        false
    }

    /// Asks for what is published to this filter. Asked for twice, it is given back twice.
    fn subscribe(&mut self, filter: &[u8]);

    /// Gives back what [`subscribe`](Port::subscribe) asked for.
    fn unsubscribe(&mut self, filter: &[u8]);
}

/// What lies outside of each account.
pub trait Ports {
    /// What lies outside of one of them.
    fn of(&mut self, account: AccountId) -> &mut dyn Port;
}

/// What a [`JetStreamService`](crate::JetStreamService) does its work for: JetStream, and nothing in the tests of the
/// service.
///
/// # In which order it is called
///
/// `handle*` for each thing that has come, as many times as there is something; then
/// [`settle`](Handler::settle) once, in which what was gathered goes out: records are written,
/// consumers are served; then [`poll_sync`](Handler::poll_sync) until there is nothing, and
/// [`release_acks`](Handler::release_acks).
pub trait Handler {
    /// Takes a message whose topic matches what was subscribed to.
    fn handle(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    );

    /// Tells where a message goes that is traced, and came to the shard of this index. Whether it is to be
    /// handled as well.
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

    /// Takes note that the first one has subscribed to a filter, or the last one has left it, or that a
    /// queue group there has changed.
    fn handle_interest(
        &mut self,
        account: AccountId,
        filter: &[u8],
        present: bool,
        now: Now,
        ports: &mut dyn Ports,
    );

    /// Does what is due by now.
    fn handle_timeout(&mut self, now: Now, ports: &mut dyn Ports);

    /// When [`handle_timeout`](Handler::handle_timeout) is to be called next, since the server's start.
    fn next_timeout(&self) -> Option<Duration>;

    /// Whether a message to this topic is dealt with soon, and without waiting for a disk.
    fn is_quick(&self, _account: AccountId, _topic: &[u8]) -> bool {
        false
    }

    /// Shows the records of a stream whose subjects match, from a place on and in order, until it is said
    /// that it is enough.
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

    /// Ends a round of calls.
    fn settle(&mut self, now: Now, ports: &mut dyn Ports);

    /// Returns what to sync now; to be polled until there is nothing.
    fn poll_sync(&mut self, _now: Duration) -> Option<AccountSync> {
        None
    }

    /// Takes the result of a sync that [`poll_sync`](Handler::poll_sync) has requested. Then `poll_sync` and
    /// [`release_acks`](Handler::release_acks) are due.
    fn handle_synced(
        &mut self,
        _account: AccountId,
        _stream: StreamId,
        _id: SyncId,
        _result: Result<(), DiskError>,
        _now: Duration,
    ) {
    }

    /// Sends what waits for the disk and is true by now. To be called when [`poll_sync`](Handler::poll_sync) has
    /// returned `None`, so that the disk is busy meanwhile.
    fn release_acks(&mut self, _now: Duration, _ports: &mut dyn Ports) {}

    /// Tells clients that wait for records that the server stops: to be called before connections end.
    fn say_goodbye(&mut self, _now: Now, _ports: &mut dyn Ports) {}

    /// Writes and syncs everything, and waits for it: to be called once, before the server stops.
    fn close(&mut self, _now: Now, _ports: &mut dyn Ports) {}

    /// Sets which accounts there are from now on, and what each may use.
    fn set_accounts(&mut self, _access: &Access, _now: Now, _ports: &mut dyn Ports) {}

    /// Returns what there is, account by account.
    fn overview(
        &mut self,
        _wanted: OverviewWanted,
        _now: Now,
        _ports: &mut dyn Ports,
    ) -> Vec<AccountOverview> {
        Vec::new()
    }

    /// Returns problems that no client was told of, in words, since last time.
    fn take_problems(&mut self) -> Vec<String> {
        Vec::new()
    }
}
