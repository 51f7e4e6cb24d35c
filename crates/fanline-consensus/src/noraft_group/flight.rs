//! Bounds on the bytes of entries under way to a peer, and on those that are not committed.
//!
//! The library sends each proposal to all peers, and with each answer everything behind it again. Here, an entry that is
//! under way is not sent again until the peer has not answered for a while, and entries for which there is no room
//! wait for an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use noraft::{LogEntries, LogIndex, LogPosition, NodeId, Term};

/// Entries that a peer has not confirmed.
#[derive(Debug)]
struct Flight {
    /// The entries above the first index, up to the second one.
    from: u64,
    to: u64,
    bytes: usize,
    /// When the first of them was sent, or the last answer came.
    since: Duration,
}

/// The entries under way to each peer, as the leader of a term.
#[derive(Debug)]
pub(super) struct Flights {
    term: Term,
    peers: BTreeMap<NodeId, Flight>,
    /// The last entry that each peer has confirmed in this term.
    confirmed: BTreeMap<NodeId, u64>,
    bytes_max: usize,
    /// Time without an answer after which entries count as lost.
    patience: Duration,
}

impl Flights {
    pub(super) fn new(bytes_max: usize, patience: Duration) -> Self {
        Flights {
            term: Term::ZERO,
            peers: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            bytes_max,
            patience,
        }
    }

    /// Returns those of some entries that may be sent to a peer now, and counts them. `None` if none may.
    pub(super) fn admit(
        &mut self,
        to: NodeId,
        term: Term,
        entries: &LogEntries,
        now: Duration,
        stored: &BTreeMap<u64, Vec<u8>>,
    ) -> Option<LogEntries> {
        if self.term != term {
            self.peers.clear();
            self.confirmed.clear();
            self.term = term;
        }
        let lost_at = now.saturating_sub(self.patience);
        self.peers
            .retain(|_, flight| flight.since > lost_at || now < self.patience);
        let first = entries.prev_position().index.get();
        let start = self.peers.get(&to).map_or(first, |flight| flight.to);
        if start < first || start >= entries.last_position().index.get() {
            // The entries before are not sent yet, or all are under way.
            return None;
        }
        let index = LogIndex::new(start);
        let term = entries.get_term(index)?;
        let mut rest = entries.since(LogPosition { term, index })?;
        let flight = self.peers.entry(to).or_insert(Flight {
            from: start,
            to: start,
            bytes: 0,
            since: now,
        });
        for (_, bytes) in stored.range(start + 1..=rest.last_position().index.get()) {
            if flight.bytes > 0 && flight.bytes + bytes.len() > self.bytes_max {
                break;
            }
            flight.bytes += bytes.len();
            flight.to += 1;
        }
        let count = usize::try_from(flight.to - start).unwrap_or(0);
        rest.truncate(count);
        (count > 0).then_some(rest)
    }

    /// Notes that a peer has all entries up to an index; `None` if it has others.
    pub(super) fn confirm(
        &mut self,
        peer: NodeId,
        index: Option<u64>,
        now: Duration,
        stored: &BTreeMap<u64, Vec<u8>>,
    ) {
        if let Some(index) = index {
            let confirmed = self.confirmed.entry(peer).or_default();
            *confirmed = index.max(*confirmed);
        }
        let Some(flight) = self.peers.get_mut(&peer) else {
            return;
        };
        match index {
            // Nothing new, for example the answer to a heartbeat.
            Some(index) if index == flight.from => {}
            Some(index) if (flight.from..flight.to).contains(&index) => {
                let arrived = stored.range(flight.from + 1..=index);
                let bytes: usize = arrived.map(|(_, bytes)| bytes.len()).sum();
                flight.bytes = flight.bytes.saturating_sub(bytes);
                flight.since = now;
                flight.from = index;
            }
            // All arrived, or an earlier one did not.
            _ => {
                self.peers.remove(&peer);
            }
        }
    }

    /// Returns the last entry that a peer has confirmed in this term; 0 if it has confirmed none.
    pub(super) fn confirmed(&self, peer: NodeId) -> u64 {
        self.confirmed.get(&peer).copied().unwrap_or(0)
    }
}
