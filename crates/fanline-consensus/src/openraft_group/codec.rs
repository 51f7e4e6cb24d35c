//! Bytes of messages and of stored entries. All numbers are little endian.
//!
//! Entries have the same bytes as those of `noraft_group`. Messages have another version.

use std::collections::BTreeSet;
use std::rc::Rc;

use openraft::EntryPayload;

use super::types::{
    Command, Entry, LeaderId, LogId, Membership, Payload, Vote, log_id, membership, term_of,
};
use crate::bytes::{put, put_nodes, take, take_byte, take_nodes, take_slice};
use crate::port::NodeId;
use crate::wal::limits::INDEX_MAX;

const VERSION: u8 = 2;

/// A message between two nodes: a request, or the answer to the one with the same number. Answers repeat what they
/// confirm, so an answer to a request of an earlier process with the same number does no harm.
#[derive(Clone, Debug)]
pub(super) enum Packet {
    Append {
        vote: Vote,
        prev: Option<LogId>,
        commit: Option<LogId>,
        entries: Vec<Entry>,
    },
    Appended {
        /// Vote and last entry of the request.
        vote: Vote,
        last: Option<LogId>,
        result: Appended,
    },
    RequestVote {
        vote: Vote,
        last: Option<LogId>,
        kind: VoteKind,
    },
    Voted {
        vote: Vote,
        last: Option<LogId>,
        is_granted: bool,
    },
    Transfer {
        vote: Vote,
        to: NodeId,
        last: Option<LogId>,
    },
    /// The node's entries end before the floor of the leader, which is this.
    OfferSnapshot {
        vote: Vote,
        floor: LogId,
    },
    Installed {
        vote: Vote,
        floor: LogId,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VoteKind {
    Election,
    Transfer,
    Pre,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appended {
    Success,
    Conflict,
    HigherVote(Vote),
}

/// Writes a command as it is stored.
pub(super) fn write_command(command: &[u8]) -> Rc<[u8]> {
    std::iter::once(0).chain(command.iter().copied()).collect()
}

/// Writes an entry as it is stored.
pub(super) fn write_entry(entry: &Entry) -> Rc<[u8]> {
    match &entry.payload {
        EntryPayload::Normal(Command(bytes)) => bytes.clone(),
        EntryPayload::Blank => {
            let mut out = vec![1];
            put(&mut out, term_of(&entry.log_id));
            out.into()
        }
        EntryPayload::Membership(membership) => {
            let mut out = vec![2];
            out.extend(write_members(membership));
            out.into()
        }
    }
}

/// Parses the stored entry after another one. The first entry of a term states it.
pub(super) fn read_entry(before: LogId, bytes: &[u8]) -> Option<Entry> {
    let (kind, mut rest) = bytes.split_first()?;
    let mut term = term_of(&before);
    let payload = match kind {
        0 => Payload::Normal(Command(bytes.into())),
        1 => {
            let before = std::mem::replace(&mut term, take(&mut rest)?);
            (rest.is_empty() && term > before).then_some(Payload::Blank)?
        }
        2 => Payload::Membership(read_members(rest)?),
        _ => return None,
    };
    let log_id = log_id(before.index + 1, term);
    (log_id.index <= INDEX_MAX).then_some(Entry { log_id, payload })
}

pub(super) fn write_members(membership: &Membership) -> Vec<u8> {
    let sets = membership.get_joint_config();
    let empty = BTreeSet::new();
    let learners: BTreeSet<_> = membership.learner_ids().collect();
    let mut out = Vec::new();
    for nodes in [
        sets.first().unwrap_or(&empty),
        sets.get(1).unwrap_or(&empty),
        &learners,
    ] {
        put_nodes(&mut out, nodes.iter().copied());
    }
    out
}

pub(super) fn read_members(mut bytes: &[u8]) -> Option<Membership> {
    let voters = take_nodes(&mut bytes)?;
    let new_voters = take_nodes(&mut bytes)?;
    let learners = take_nodes(&mut bytes)?;
    bytes
        .is_empty()
        .then(|| membership(voters, new_voters, learners))
}

/// Writes a message.
pub(super) fn write(number: u64, packet: &Packet) -> Vec<u8> {
    let mut out = vec![VERSION, kind(packet)];
    put(&mut out, number);
    match packet {
        Packet::Append {
            vote,
            prev,
            commit,
            entries,
        } => {
            put_vote(&mut out, *vote);
            put_log_id(&mut out, *prev);
            put_log_id(&mut out, *commit);
            put(&mut out, entries.len() as u64);
            for entry in entries {
                let bytes = write_entry(entry);
                put(&mut out, bytes.len() as u64);
                out.extend_from_slice(&bytes);
            }
        }
        Packet::Appended { vote, last, result } => {
            put_vote(&mut out, *vote);
            put_log_id(&mut out, *last);
            match result {
                Appended::Success => out.push(0),
                Appended::Conflict => out.push(1),
                Appended::HigherVote(vote) => {
                    out.push(2);
                    put_vote(&mut out, *vote);
                }
            }
        }
        Packet::RequestVote { vote, last, kind } => {
            put_vote(&mut out, *vote);
            put_log_id(&mut out, *last);
            out.push(*kind as u8);
        }
        Packet::Voted {
            vote,
            last,
            is_granted,
        } => {
            put_vote(&mut out, *vote);
            put_log_id(&mut out, *last);
            out.push(u8::from(*is_granted));
        }
        Packet::Transfer { vote, to, last } => {
            put_vote(&mut out, *vote);
            put(&mut out, *to);
            put_log_id(&mut out, *last);
        }
        Packet::OfferSnapshot { vote, floor } | Packet::Installed { vote, floor } => {
            put_vote(&mut out, *vote);
            put_log_id(&mut out, Some(*floor));
        }
    }
    out
}

fn kind(packet: &Packet) -> u8 {
    match packet {
        Packet::Append { .. } => 1,
        Packet::Appended { .. } => 2,
        Packet::RequestVote { .. } => 3,
        Packet::Voted { .. } => 4,
        Packet::Transfer { .. } => 5,
        Packet::OfferSnapshot { .. } => 6,
        Packet::Installed { .. } => 7,
    }
}

/// Parses a message and its number.
pub(super) fn read(bytes: &[u8]) -> Option<(u64, Packet)> {
    let [VERSION, kind, rest @ ..] = bytes else {
        return None;
    };
    let mut rest = rest;
    let number = take(&mut rest)?;
    let packet = read_packet(*kind, &mut rest)?;
    rest.is_empty().then_some((number, packet))
}

fn read_packet(kind: u8, rest: &mut &[u8]) -> Option<Packet> {
    let vote = take_vote(rest)?;
    Some(match kind {
        1 => {
            let prev = take_log_id(rest)?;
            let commit = take_log_id(rest)?;
            let entries = take_entries(rest, prev)?;
            let last = entries.last().map(|entry| entry.log_id).or(prev);
            // A leader has no entries of later terms than its own.
            let is_valid =
                vote.committed && last.is_none_or(|last| term_of(&last) <= vote.leader_id.term);
            is_valid.then_some(Packet::Append {
                vote,
                prev,
                commit,
                entries,
            })?
        }
        2 => Packet::Appended {
            vote,
            last: take_log_id(rest)?,
            result: match take_byte(rest)? {
                0 => Appended::Success,
                1 => Appended::Conflict,
                2 => Appended::HigherVote(take_vote(rest)?),
                _ => return None,
            },
        },
        3 => Packet::RequestVote {
            vote,
            last: take_log_id(rest)?,
            kind: match take_byte(rest)? {
                0 => VoteKind::Election,
                1 => VoteKind::Transfer,
                2 => VoteKind::Pre,
                _ => return None,
            },
        },
        4 => Packet::Voted {
            vote,
            last: take_log_id(rest)?,
            is_granted: take_byte(rest)? == 1,
        },
        5 => Packet::Transfer {
            vote,
            to: take(rest)?,
            last: take_log_id(rest)?,
        },
        6 => Packet::OfferSnapshot {
            vote,
            floor: take_log_id(rest)??,
        },
        7 => Packet::Installed {
            vote,
            floor: take_log_id(rest)??,
        },
        _ => return None,
    })
}

fn take_entries(rest: &mut &[u8], prev: Option<LogId>) -> Option<Vec<Entry>> {
    let count = take(rest)?;
    let mut entries = Vec::new();
    let mut last = prev.unwrap_or_else(|| log_id(0, 0));
    for _ in 0..count {
        let length = usize::try_from(take(rest)?).ok()?;
        let entry = read_entry(last, take_slice(rest, length)?)?;
        last = entry.log_id;
        entries.push(entry);
    }
    Some(entries)
}

fn put_vote(out: &mut Vec<u8>, vote: Vote) {
    put(out, vote.leader_id.term);
    put(out, vote.leader_id.voted_for);
    out.push(u8::from(vote.committed));
}

fn put_log_id(out: &mut Vec<u8>, id: Option<LogId>) {
    out.push(u8::from(id.is_some()));
    if let Some(id) = id {
        put(out, term_of(&id));
        put(out, id.index);
    }
}

fn take_vote(bytes: &mut &[u8]) -> Option<Vote> {
    use openraft::vote::RaftLeaderId as _;
    let leader_id = LeaderId::new(take(bytes)?, take(bytes)?);
    let committed = take_byte(bytes)? == 1;
    Some(Vote {
        leader_id,
        committed,
    })
}

/// Returns `None` for an invalid one.
fn take_log_id(bytes: &mut &[u8]) -> Option<Option<LogId>> {
    if take_byte(bytes)? == 0 {
        return Some(None);
    }
    let term = take(bytes)?;
    let index = take(bytes)?;
    // So that the library's additions cannot overflow.
    (index <= INDEX_MAX).then(|| Some(log_id(index, term)))
}
