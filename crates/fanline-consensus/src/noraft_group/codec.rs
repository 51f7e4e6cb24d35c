//! Bytes of messages and of stored entries. All numbers are little endian.

use noraft::{ClusterConfig, LogEntries, LogEntry, LogIndex, LogPosition, Message, NodeId, Term};

use crate::bytes::{put, put_nodes, take, take_byte, take_nodes, take_slice};

const VERSION: u8 = 1;

/// A message between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Packet {
    /// Asks whether the receiver would vote for a node with this last position.
    PreVote(LogPosition),
    PreVoteGranted,
    /// Asks a voter to start an election in the next term.
    StartElection(Term),
    /// Asks whether the receiver knows of no later term, with the number of the question.
    Confirm(Term, u64),
    Confirmed(Term, u64),
    /// A message of the library. A vote call of a transfer is not ignored for the sake of a leader.
    Raft {
        message: Message,
        is_transfer: bool,
    },
}

/// Writes an entry as it is stored. `command` is the payload of a command.
pub(super) fn write_entry(entry: &LogEntry, command: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + command.len());
    match entry {
        LogEntry::Command => {
            out.push(0);
            out.extend_from_slice(command);
        }
        LogEntry::Term(term) => {
            out.push(1);
            put(&mut out, term.get());
        }
        LogEntry::ClusterConfig(config) => {
            out.push(2);
            out.extend(write_config(config));
        }
    }
    out
}

/// Parses a stored entry.
pub(super) fn read_entry(bytes: &[u8]) -> Option<LogEntry> {
    let (kind, mut rest) = bytes.split_first()?;
    match kind {
        0 => Some(LogEntry::Command),
        1 => Some(LogEntry::Term(Term::new(take(&mut rest)?))),
        2 => Some(LogEntry::ClusterConfig(read_config(rest)?)),
        _ => None,
    }
}

pub(super) fn write_config(config: &ClusterConfig) -> Vec<u8> {
    let mut out = Vec::new();
    for nodes in [&config.voters, &config.new_voters, &config.non_voters] {
        put_nodes(&mut out, nodes.iter().map(|node| node.get()));
    }
    out
}

pub(super) fn read_config(mut bytes: &[u8]) -> Option<ClusterConfig> {
    let mut config = ClusterConfig::new();
    for nodes in [
        &mut config.voters,
        &mut config.new_voters,
        &mut config.non_voters,
    ] {
        let found: Vec<u64> = take_nodes(&mut bytes)?;
        nodes.extend(found.into_iter().map(NodeId::new));
    }
    bytes.is_empty().then_some(config)
}

/// Writes a message. `entry_at` returns the stored entry of an index.
pub(super) fn write(packet: &Packet, entry_at: impl Fn(u64) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut out = vec![VERSION];
    match packet {
        Packet::PreVote(last) => {
            out.push(1);
            put_position(&mut out, *last);
        }
        Packet::PreVoteGranted => out.push(2),
        Packet::StartElection(term) => {
            out.push(3);
            put(&mut out, term.get());
        }
        Packet::Confirm(term, round) | Packet::Confirmed(term, round) => {
            let is_question = matches!(packet, Packet::Confirm(..));
            out.push(if is_question { 8 } else { 9 });
            put(&mut out, term.get());
            put(&mut out, *round);
        }
        Packet::Raft {
            message,
            is_transfer,
        } => write_message(&mut out, message, *is_transfer, entry_at)?,
    }
    Some(out)
}

fn write_message(
    out: &mut Vec<u8>,
    message: &Message,
    is_transfer: bool,
    entry_at: impl Fn(u64) -> Option<Vec<u8>>,
) -> Option<()> {
    let kind = match message {
        Message::RequestVoteCall { .. } => 4,
        Message::RequestVoteReply { .. } => 5,
        Message::AppendEntriesCall { .. } => 6,
        Message::AppendEntriesReply { .. } => 7,
    };
    out.push(kind);
    put(out, message.term().get());
    match message {
        Message::RequestVoteCall { last_position, .. } => {
            put_position(out, *last_position);
            out.push(u8::from(is_transfer));
        }
        Message::RequestVoteReply { vote_granted, .. } => out.push(u8::from(*vote_granted)),
        Message::AppendEntriesCall {
            commit_index,
            entries,
            ..
        } => {
            put(out, commit_index.get());
            put_position(out, entries.prev_position());
            put(out, entries.len() as u64);
            for (position, _) in entries.iter_with_positions() {
                let bytes = entry_at(position.index.get())?;
                put(out, bytes.len() as u64);
                out.extend(bytes);
            }
        }
        Message::AppendEntriesReply { last_position, .. } => put_position(out, *last_position),
    }
    Some(())
}

/// Parses a message. Returns its stored entries beside it.
pub(super) fn read(from: NodeId, bytes: &[u8]) -> Option<(Packet, Vec<Vec<u8>>)> {
    let [VERSION, kind, rest @ ..] = bytes else {
        return None;
    };
    let mut rest = rest;
    let mut stored = Vec::new();
    let packet = match kind {
        1 => Packet::PreVote(take_position(&mut rest)?),
        2 => Packet::PreVoteGranted,
        3 => Packet::StartElection(Term::new(take(&mut rest)?)),
        4..=7 => read_message(from, *kind, &mut rest, &mut stored)?,
        8 => Packet::Confirm(Term::new(take(&mut rest)?), take(&mut rest)?),
        9 => Packet::Confirmed(Term::new(take(&mut rest)?), take(&mut rest)?),
        _ => return None,
    };
    rest.is_empty().then_some((packet, stored))
}

fn read_message(
    from: NodeId,
    kind: u8,
    rest: &mut &[u8],
    stored: &mut Vec<Vec<u8>>,
) -> Option<Packet> {
    let term = Term::new(take(rest)?);
    let mut is_transfer = false;
    let message = match kind {
        4 => {
            let last_position = take_position(rest)?;
            is_transfer = take_byte(rest)? == 1;
            Message::RequestVoteCall {
                from,
                term,
                last_position,
            }
        }
        5 => Message::RequestVoteReply {
            from,
            term,
            vote_granted: take_byte(rest)? == 1,
        },
        6 => {
            let commit_index = LogIndex::new(take(rest)?);
            let entries = take_entries(rest, stored)?;
            // A leader has no entries of later terms than its own.
            if entries.last_position().term > term {
                return None;
            }
            Message::AppendEntriesCall {
                from,
                term,
                commit_index,
                entries,
            }
        }
        _ => Message::AppendEntriesReply {
            from,
            term,
            last_position: take_position(rest)?,
        },
    };
    Some(Packet::Raft {
        message,
        is_transfer,
    })
}

fn take_entries(rest: &mut &[u8], stored: &mut Vec<Vec<u8>>) -> Option<LogEntries> {
    let mut entries = LogEntries::new(take_position(rest)?);
    for _ in 0..take(rest)? {
        let length = usize::try_from(take(rest)?).ok()?;
        let bytes = take_slice(rest, length)?;
        let entry = read_entry(bytes)?;
        let is_in_order =
            !matches!(entry, LogEntry::Term(term) if term <= entries.last_position().term);
        if !is_in_order {
            return None;
        }
        entries.push(entry);
        stored.push(bytes.to_vec());
    }
    Some(entries)
}

fn put_position(out: &mut Vec<u8>, position: LogPosition) {
    put(out, position.term.get());
    put(out, position.index.get());
}

fn take_position(bytes: &mut &[u8]) -> Option<LogPosition> {
    let term = Term::new(take(bytes)?);
    let index = LogIndex::new(take(bytes)?);
    // So that the library's additions cannot overflow.
    (index.get() <= crate::wal::limits::INDEX_MAX).then_some(LogPosition::new(term, index))
}
