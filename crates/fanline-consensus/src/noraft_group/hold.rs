//! Messages, answers, and commits that wait for a sync of this node.

use std::collections::{BTreeMap, VecDeque};

use noraft::{LogIndex, Message};

use crate::port::{Output, Token};

/// Outputs and replies that wait for syncs of this node.
#[derive(Debug)]
pub(super) struct Hold {
    last: Token,
    synced: Token,
    /// The token of the last vote.
    vote: Token,
    /// Messages in the order in which they were sent, each with the token that it waits for.
    messages: VecDeque<(Token, Output)>,
    /// Unsynced appends: the token, and the last index.
    appends: VecDeque<(Token, u64)>,
    /// The last index that is synced.
    durable: u64,
    /// The last answer of each follower that is ahead of this node's own sync. The library counts this node's
    /// entries at once, so it must not learn that a follower has them before they are synced here.
    replies: BTreeMap<u64, Message>,
}

impl Hold {
    pub(super) fn new(durable: u64) -> Self {
        Hold {
            last: Token(0),
            synced: Token(0),
            vote: Token(0),
            messages: VecDeque::new(),
            appends: VecDeque::new(),
            durable,
            replies: BTreeMap::new(),
        }
    }

    pub(super) fn next_token(&mut self) -> Token {
        self.last.0 += 1;
        self.last
    }

    pub(super) fn last_token(&self) -> Token {
        self.last
    }

    pub(super) fn synced_token(&self) -> Token {
        self.synced
    }

    pub(super) fn vote(&self) -> Token {
        self.vote
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// Notes that the last token is that of a vote.
    pub(super) fn note_vote(&mut self) {
        self.vote = self.last;
    }

    /// Notes that the entries up to an index are synced with the last token.
    pub(super) fn note_append(&mut self, last_index: u64) {
        self.appends.push_back((self.last, last_index));
    }

    /// Notes that entries above an index are replaced.
    pub(super) fn truncate(&mut self, last_index: u64) {
        self.durable = self.durable.min(last_index);
        for (_, index) in &mut self.appends {
            *index = (*index).min(last_index);
        }
    }

    /// Returns a message that need not wait, and holds back another one.
    pub(super) fn hold(&mut self, after: Token, output: Output) -> Option<Output> {
        if after <= self.synced {
            return Some(output);
        }
        self.messages.push_back((after, output));
        None
    }

    /// Returns the messages that a sync releases.
    pub(super) fn synced(&mut self, token: Token) -> Vec<Output> {
        self.synced = self.synced.max(token);
        while let Some((_, index)) = self
            .appends
            .pop_front_if(|(after, _)| *after <= self.synced)
        {
            self.durable = self.durable.max(index);
        }
        let (free, held) = self
            .messages
            .drain(..)
            .partition(|(after, _)| *after <= self.synced);
        let free: VecDeque<_> = free;
        self.messages = held;
        free.into_iter().map(|(_, output)| output).collect()
    }

    /// Holds back a follower's answer if it confirms entries that are not synced here. Returns whether it did.
    pub(super) fn hold_reply(&mut self, from: u64, reply: &Message, index: LogIndex) -> bool {
        let is_ahead = index.get() > self.durable;
        if is_ahead {
            self.replies.insert(from, reply.clone());
        }
        is_ahead
    }

    /// Returns the held answers that need not wait any more.
    pub(super) fn take_replies(&mut self) -> Vec<Message> {
        let durable = self.durable;
        let is_free = |reply: &Message| match reply {
            Message::AppendEntriesReply { last_position, .. } => {
                last_position.index.get() <= durable
            }
            _ => true,
        };
        let free = self.replies.extract_if(.., |_, reply| is_free(reply));
        free.map(|(_, reply)| reply).collect()
    }
}
