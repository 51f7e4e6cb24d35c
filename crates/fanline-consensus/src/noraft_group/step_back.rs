//! The rules for a node whose log cannot be written, or whose syncs take too long.
//!
//! Such a node confirms nothing by itself, because confirmations wait for syncs. But as a leader, it would keep the
//! group from making progress while its heartbeats arrive.

use std::time::Duration;

use super::NoraftGroup;
use super::codec::Packet;
use crate::port::Token;

/// Whether the log of this node makes progress.
#[derive(Debug)]
pub(super) struct LogState {
    /// Whether the log accepts writes.
    pub is_writable: bool,
    /// Time after which a sync takes too long.
    limit: Duration,
    /// The last synced token, and since when it is the last one although others wait.
    waits: Option<(Token, Duration)>,
    /// Whether something waits for a sync for too long.
    pub is_stalled: bool,
}

impl LogState {
    pub(super) fn new(limit: Duration) -> Self {
        LogState {
            is_writable: true,
            limit,
            waits: None,
            is_stalled: false,
        }
    }

    fn update(&mut self, synced: Token, last: Token, now: Duration) {
        self.waits = match self.waits {
            _ if synced == last => None,
            Some((before, since)) if before == synced => Some((before, since)),
            _ => Some((synced, now)),
        };
        self.is_stalled = self
            .waits
            .is_some_and(|(_, since)| now >= since + self.limit);
    }
}

impl NoraftGroup {
    /// Notes the time that syncs take. A leader that waits too long hands over.
    pub(super) fn check_log(&mut self, now: Duration) {
        let was_stalled = self.log_state.is_stalled;
        let (synced, last) = (self.hold.synced_token(), self.hold.last_token());
        self.log_state.update(synced, last, now);
        if !was_stalled && self.log_state.is_stalled {
            self.hand_over();
        }
    }

    /// As a leader, asks the voter with the most entries to start an election. Without an answer, the
    /// others elect a leader when they miss this one.
    pub(super) fn hand_over(&mut self) {
        if !self.node.role().is_leader() {
            return;
        }
        let config = self.node.config();
        let voters = config.voters.union(&config.new_voters);
        let matches =
            voters.filter_map(|voter| Some((self.node.follower_match_index(*voter)?, *voter)));
        if let Some((_, voter)) = matches.max() {
            let packet = Packet::StartElection(self.node.current_term());
            self.send(voter, &packet, self.hold.vote());
        }
    }
}
