//! Marks in front of reply subjects, by which responses find the requester's server.

use crate::codec::nats::parse::Publish;
use crate::name_hash::name_hash;
use crate::subject::is_literal_subject;

/// Start of a mark.
const START: &[u8] = b"_GR_.";

/// Length of each hash in a mark.
const HASH_BYTES: usize = 6;

/// Length of a mark: two hashes, each followed by a dot.
const MARK_BYTES: usize = START.len() + 2 * (HASH_BYTES + 1);

/// Returns the hash of a cluster's name or of a server's id.
pub fn hash_of(name: &str) -> [u8; HASH_BYTES] {
    name_hash(name)
}

/// A mark: `_GR_.<hash of the requester's cluster>.<hash of its server>.`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyMark([u8; MARK_BYTES]);

impl ReplyMark {
    /// Returns the mark of a server.
    pub fn of(gateway: &str, server_id: &str) -> Self {
        let mut mark = [b'.'; MARK_BYTES];
        mark[..START.len()].copy_from_slice(START);
        let at = START.len() + HASH_BYTES + 1;
        mark[START.len()..at - 1].copy_from_slice(&hash_of(gateway));
        mark[at..MARK_BYTES - 1].copy_from_slice(&hash_of(server_id));
        ReplyMark(mark)
    }

    /// Splits a subject with a mark; `None` if it has none. What follows the mark is a subject without
    /// wildcards.
    #[inline]
    pub fn split(subject: &[u8]) -> Option<(Self, &[u8])> {
        match subject.starts_with(START) {
            true => Self::split_marked(subject),
            false => None,
        }
    }

    fn split_marked(subject: &[u8]) -> Option<(Self, &[u8])> {
        let (mark, rest) = subject.split_first_chunk()?;
        let is_dot = |at: usize| mark[at] == b'.';
        let is_whole = is_dot(START.len() + HASH_BYTES) && is_dot(MARK_BYTES - 1);
        (is_whole && is_literal_subject(rest)).then_some((ReplyMark(*mark), rest))
    }

    /// Returns the bytes of the mark.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the hash of the requester's cluster.
    pub fn cluster(&self) -> &[u8] {
        &self.0[START.len()..START.len() + HASH_BYTES]
    }

    /// Returns the hash of the requester's server.
    pub fn server(&self) -> &[u8] {
        &self.0[START.len() + HASH_BYTES + 1..MARK_BYTES - 1]
    }
}

/// Returns whether a message is a response to another cluster or from one, or a request from one.
#[inline]
pub(crate) fn has_mark(publish: &Publish<'_>) -> bool {
    ReplyMark::split(publish.subject).is_some() || ReplyMark::split(publish.reply).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_nats_server() {
        for (name, hash) in [
            ("A", b"NUmM6c"),
            ("B", b"b2oh2L"),
            ("S-1", b"esFhDy"),
            ("nats-0", b"S1Nunr"),
        ] {
            assert_eq!(&hash_of(name), hash, "{name}");
        }
    }

    #[test]
    fn mark_is_split_from_its_subject() {
        let mark = ReplyMark::of("A", "B");
        assert_eq!(mark.as_bytes(), b"_GR_.NUmM6c.b2oh2L.");
        assert_eq!(
            (mark.cluster(), mark.server()),
            (&b"NUmM6c"[..], &b"b2oh2L"[..])
        );
        let subject = [mark.as_bytes(), b"_INBOX.1"].concat();
        assert_eq!(ReplyMark::split(&subject), Some((mark, &b"_INBOX.1"[..])));
        for text in [
            "_INBOX.1",
            "_GR_.",
            "_GR_.NUmM6c.b2oh2L.",
            "_GR_.NUmM6c.b2oh2L._INBOX.*",
            "_GR_.NUmM6c.b2oh2L.>",
            "_GR_.NUmM6c.b2oh2L.a..b",
            "_GR_.NUmM6c.b2oh2LX_INBOX.1",
            "_GR_.NUmM6cXb2oh2L._INBOX.1",
        ] {
            assert_eq!(ReplyMark::split(text.as_bytes()), None, "{text}");
        }
    }
}
