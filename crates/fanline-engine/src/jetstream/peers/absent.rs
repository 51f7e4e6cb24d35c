//! Replicated streams that no server leads now, as far as a member of their group knows.
//!
//! Such a stream exists, but no marker names its owner. Its subjects are not known. So requests for it are refused, instead
//! of *not found*, and no stream is created in its account until it has a leader or turns out to be deleted.

use std::collections::{BTreeMap, BTreeSet};

use crate::auth::AccountId;
use crate::jetstream::accounts::JetStreams;

impl JetStreams {
    /// Sets the streams of groups that this server is a member of and that may have no leader: for each name of an account,
    /// the names of its streams. A stream that has a leader may be among them, because its marker tells so.
    pub fn set_absent(&mut self, absent: BTreeMap<String, BTreeSet<String>>) {
        if let Some(peers) = &mut self.peers {
            peers.absent = absent;
        }
    }

    /// Returns the names of an account's streams that no server leads.
    pub(super) fn absent_streams(&self, account: AccountId) -> impl Iterator<Item = &String> {
        let absent = self.absent_of(account).into_iter().flatten();
        absent.filter(move |stream| self.is_ownerless(account, stream))
    }

    /// Returns whether an account has streams that no server leads.
    pub(super) fn has_absent(&self, account: AccountId) -> bool {
        self.absent_streams(account).next().is_some()
    }

    /// Returns whether a stream exists, and no server leads it.
    pub(super) fn is_absent(&self, account: AccountId, stream: &str) -> bool {
        let absent = self.absent_of(account);
        absent.is_some_and(|streams| streams.contains(stream)) && self.is_ownerless(account, stream)
    }

    fn absent_of(&self, account: AccountId) -> Option<&BTreeSet<String>> {
        let peers = self.peers.as_ref()?;
        peers.absent.get(self.name_of(account))
    }

    fn is_ownerless(&self, account: AccountId, stream: &str) -> bool {
        let owners = self.peers.as_ref();
        let owners = owners.and_then(|peers| peers.owners(account, stream));
        owners.is_none() && !self.has_stream_in(account, stream)
    }
}
