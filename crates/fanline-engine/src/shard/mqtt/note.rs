//! What shards and the keeper tell each other of MQTT sessions.

use super::names;
use crate::auth::AccountId;
use crate::codec::mqtt::{SessionKey, SessionRecord, Will};
use crate::exchange::batch::Notification;

/// A connection on whatever shard. The cid tells it from a later one in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) struct Seat {
    pub(in crate::shard) shard: u16,
    pub(in crate::shard) session: u32,
    pub(in crate::shard) cid: u64,
}

/// One thing that is told.
#[derive(Clone, Debug)]
pub(in crate::shard) enum Note {
    /// To the keeper: a client that may come in asks for its session.
    Open {
        key: SessionKey,
        seat: Seat,
        clean_start: bool,
    },
    /// To the keeper: a connection is gone.
    Close(Box<Close>),
    /// To the keeper: a subscription wants retained messages.
    Recall(Recall),
    /// To the keeper: a session is a member of a group above QoS 0, or is none any more.
    Member {
        key: SessionKey,
        filter: Box<str>,
        is_member: bool,
    },
    /// To all shards: a group has members above QoS 0, connected or not, or has none.
    Group {
        account: AccountId,
        filter: Box<str>,
        is_there: bool,
    },
    /// To a shard: what there is of a session. The client may be let in.
    Opened(Box<Opened>),
    /// To a shard: another connection has the id now.
    TakenOver(Seat),
    /// To a shard: publish this.
    Will {
        account: AccountId,
        will: Box<Will>,
        /// The id hash of who has left it.
        client: Box<str>,
    },
    /// To a shard: some of what was asked for.
    Recalled(Box<Recalled>),
}

impl Notification for Note {
    fn bytes(&self) -> usize {
        let more = match self {
            Note::Recalled(recalled) => (recalled.messages.iter())
                .map(|message| message.payload.len() + message.headers.len())
                .sum(),
            _ => 0,
        };
        size_of::<Note>() + more
    }
}

/// See [`Note::Close`].
#[derive(Clone, Debug)]
pub(in crate::shard) struct Close {
    pub(in crate::shard) key: SessionKey,
    pub(in crate::shard) seat: Seat,
    /// Seconds; `u32::MAX` is for ever.
    pub(in crate::shard) expiry: u32,
    pub(in crate::shard) will: Option<Box<Will>>,
    /// Something is kept under its id.
    pub(in crate::shard) is_kept: bool,
}

/// See [`Note::Recall`].
#[derive(Clone, Debug)]
pub(in crate::shard) struct Recall {
    pub(in crate::shard) account: AccountId,
    pub(in crate::shard) seat: Seat,
    /// Which subscription, by its place.
    pub(in crate::shard) at: u32,
    /// Subjects as they are kept.
    pub(in crate::shard) filters: Vec<Box<[u8]>>,
    /// The place to go on at.
    pub(in crate::shard) from: u64,
}

impl Recall {
    /// Whether it is what a subscription to this subject has asked for.
    pub(in crate::shard) fn is_for(&self, subject: &[u8]) -> bool {
        let first = self.filters.first();
        let kept = first.and_then(|filter| filter.strip_prefix(names::RETAINED_PREFIX.as_bytes()));
        kept == Some(subject)
    }
}

/// See [`Note::Opened`].
#[derive(Clone, Debug)]
pub(in crate::shard) struct Opened {
    pub(in crate::shard) seat: Seat,
    pub(in crate::shard) record: Option<SessionRecord>,
    /// Messages of QoS 2 that were not released: packet identifier, place, and the record.
    pub(in crate::shard) held: Vec<(u16, u64, Box<[u8]>)>,
    /// PUBRELs that are not complete.
    pub(in crate::shard) releases: Vec<KeptRelease>,
    /// Messages that are its own, of groups and such as were begun: packet identifier and the record.
    pub(in crate::shard) owned: Vec<(u16, Box<[u8]>)>,
    /// Nanoseconds since 1970 UTC when the server started.
    pub(in crate::shard) started_unix_nanos: i64,
}

/// A record of `$MQTT_out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) struct KeptRelease {
    pub(in crate::shard) packet_id: u16,
    /// The token of its message.
    pub(in crate::shard) token: u64,
    /// PUBCOMP has come.
    pub(in crate::shard) is_complete: bool,
}

/// What the payload says besides the token when PUBCOMP has come.
const COMPLETE: &str = " complete";

impl KeptRelease {
    pub(in crate::shard) fn encode(self) -> String {
        let complete = if self.is_complete { COMPLETE } else { "" };
        format!("{}{complete}", self.token)
    }

    pub(in crate::shard) fn decode(packet_id: u16, payload: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(payload).ok()?;
        let token = text.strip_suffix(COMPLETE);
        Some(KeptRelease {
            packet_id,
            token: token.unwrap_or(text).parse().ok()?,
            is_complete: token.is_some(),
        })
    }
}

/// See [`Note::Recalled`].
#[derive(Clone, Debug)]
pub(in crate::shard) struct Recalled {
    pub(in crate::shard) recall: Recall,
    pub(in crate::shard) messages: Vec<Retained>,
    /// There may be more; it begins where `recall` says by now.
    pub(in crate::shard) has_more: bool,
}

/// A retained message.
#[derive(Clone, Debug)]
pub(in crate::shard) struct Retained {
    pub(in crate::shard) subject: Box<[u8]>,
    pub(in crate::shard) headers: Box<[u8]>,
    pub(in crate::shard) payload: Box<[u8]>,
    pub(in crate::shard) sequence: u64,
    pub(in crate::shard) unix_nanos: i64,
}
