//! What an MQTT session has beside others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use hashbrown::HashMap;

use super::super::session::MqttStatus;
use super::groups::{SHARED, member_place};
use super::kept::{Operation, Storing, UNKEPT};
use super::note::{KeptRelease, Recall};
use super::subscribe::Feed;
use crate::codec::mqtt::{Connection, Qos, Subscription, Subscriptions};
use crate::limits::MqttLimits;
use crate::subject::Filter;

/// The sid of the subscription at which answers from the keeper arrive.
pub(super) const REPLY_SID: &[u8] = b"i";
/// The same for what its consumer delivers.
pub(super) const DELIVER_SID: &[u8] = b"d";
/// What the sid of a subscription to the parent ends with.
pub(super) const PARENT: &str = "p";

/// One MQTT connection and its session.
pub(in crate::shard) struct Mqtt {
    pub(super) link: Connection,
    pub(super) client_id: Box<str>,
    /// What it is called in subjects.
    pub(super) hash: Box<str>,
    /// The client came without an id, and is told this one.
    pub(super) is_id_assigned: bool,
    pub(super) clean_start: bool,
    /// The keeper was asked for its session, and is to be told when the connection is gone.
    pub(super) is_registered: bool,
    /// Something is kept under its id.
    pub(super) is_kept: bool,
    /// What came before it was let in.
    pub(super) early: Vec<u8>,
    /// As its client asked.
    pub(super) subscriptions: Subscriptions,
    /// The same by place, which is what their sids say.
    pub(super) subs: Vec<Option<Sub>>,
    pub(super) places: HashMap<Box<str>, u32>,
    /// What its consumer delivers; there is no consumer if that is nothing.
    pub(super) consumer: Feed,
    /// How far that is, is kept in memory only.
    pub(super) is_consumer_in_memory: bool,
    pub(super) has_replies: bool,
    /// Messages that are stored before they are acknowledged.
    pub(super) storing: HashMap<(u8, u16), Storing>,
    /// Messages of QoS 2 that were not released.
    pub(super) held: HashMap<u16, Held>,
    /// How to acknowledge what is under way to the client, by token.
    pub(super) acks: HashMap<u64, Box<[u8]>>,
    /// Messages under way, by token, which the log may not have any more when the client of a session that is kept comes
    /// back: those that expire, and retained ones.
    pub(super) begun: BTreeMap<u64, Waiting>,
    /// PUBRELs that are kept, until their records are durably gone. No message is sent under their identifiers
    /// meanwhile.
    pub(super) releases: HashMap<u16, Release>,
    /// Messages above QoS 0 for which there is no room yet; its consumer hands out no more than it may.
    pub(super) waiting: VecDeque<Waiting>,
    /// Numbers messages that came to it as a member of a group.
    pub(super) shared_token: u64,
    /// The filters, with their groups, of which it is a member above QoS 0.
    pub(super) groups: BTreeSet<Box<str>>,
    /// Messages of QoS 2 of a group, by packet identifier, until it is kept that they are its own.
    pub(super) owning: HashMap<u16, Waiting>,
    /// Those that are, by token.
    pub(super) owned: HashMap<u64, Owned>,
    /// There was a session, which goes on.
    pub(super) is_resumed: bool,
    /// Requests that wait for the keeper.
    pub(super) operations: HashMap<u32, Operation>,
    pub(super) next_operation: u32,
    /// Retained messages that are still to be asked for.
    pub(super) recalls: VecDeque<Recall>,
    pub(super) is_recalling: bool,
    /// Nanoseconds since 1970 UTC when the server started.
    pub(super) started_unix_nanos: i64,
    /// Identifiers of the subscriptions that a message is for.
    pub(super) identifiers: Vec<u32>,
    /// Properties of a message are put together here.
    pub(super) properties: Vec<u8>,
}

/// One subscription, as a delivery looks at it.
pub(super) struct Sub {
    pub(super) filter: Box<str>,
    /// As a subject.
    pub(super) subject: Box<[u8]>,
    pub(super) is_shared: bool,
    /// What was granted.
    pub(super) qos: Qos,
    pub(super) asked: Subscription,
    /// It begins with a wildcard, and so has nothing to do with topics that begin with `$`.
    pub(super) is_open: bool,
}

impl Sub {
    /// Whether it matches a subject, as itself or by its parent.
    pub(super) fn matches(&self, subject: &[u8]) -> bool {
        if self.is_open && subject.first() == Some(&b'$') {
            return false;
        }
        let matches = Filter::parse(&self.subject).is_ok_and(|filter| filter.matches(subject));
        matches || crate::codec::mqtt::parent_subject(&self.subject) == Some(subject)
    }
}

/// A message of QoS 2 that was not released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Its place where it is kept; 0 in memory.
    pub(super) sequence: u64,
    pub(super) retain: bool,
    pub(super) subject: Box<[u8]>,
    pub(super) headers: Box<[u8]>,
    pub(super) payload: Box<[u8]>,
}

/// A message that is kept as this session's own.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) packet_id: u16,
    /// Acknowledges it at the consumer that it came from; empty if there is none.
    pub(super) ack: Box<[u8]>,
}

/// A PUBREL that is kept. Its record is removed once PUBCOMP has come and the acknowledgement of its message is
/// durable: else a power cut could take back the acknowledgement alone, and the message would be sent again.
#[derive(Debug)]
pub(super) struct Release {
    /// The token of its message.
    pub(super) token: u64,
    /// Acknowledges the message at the consumer of its group, if it is the session's own.
    pub(super) ack: Box<[u8]>,
    pub(super) stage: ReleaseStage,
    /// PUBCOMP has come.
    pub(super) is_complete: bool,
}

/// How far a PUBREL is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReleaseStage {
    /// Its record is being written.
    Noting,
    /// Its record is durable, and the acknowledgement of its message is not.
    Noted,
    /// Both are durable.
    Confirmed,
    /// Its record is being removed.
    Forgetting,
}

impl Release {
    pub(super) fn new(token: u64, stage: ReleaseStage) -> Self {
        Release {
            token,
            ack: Box::default(),
            stage,
            is_complete: false,
        }
    }
}

/// A message for which there is no room yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) topic: Box<str>,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) dup: bool,
    pub(super) properties: Box<[u8]>,
    pub(super) identifiers: Box<[u32]>,
    pub(super) payload: Box<[u8]>,
    pub(super) token: u64,
    pub(super) packet_id: Option<u16>,
    /// How to acknowledge it; empty when nobody waits for that.
    pub(super) ack: Box<[u8]>,
    /// When its life is over, in nanoseconds since 1970 UTC, if it ends.
    pub(super) ends_at: Option<i64>,
    /// It is kept that it is this session's, and nobody else's.
    pub(super) is_owned: bool,
}

impl Mqtt {
    pub(in crate::shard) fn new(settings: MqttLimits, now: Duration) -> Self {
        Mqtt {
            link: Connection::new(settings, now),
            client_id: Box::default(),
            hash: Box::default(),
            is_id_assigned: false,
            clean_start: true,
            is_registered: false,
            is_kept: false,
            early: Vec::new(),
            subscriptions: Subscriptions::default(),
            subs: Vec::new(),
            places: HashMap::new(),
            consumer: Feed::default(),
            is_consumer_in_memory: false,
            has_replies: false,
            storing: HashMap::new(),
            held: HashMap::new(),
            acks: HashMap::new(),
            begun: BTreeMap::new(),
            releases: HashMap::new(),
            waiting: VecDeque::new(),
            shared_token: 0,
            groups: BTreeSet::new(),
            owning: HashMap::new(),
            owned: HashMap::new(),
            is_resumed: false,
            operations: HashMap::new(),
            next_operation: 0,
            recalls: VecDeque::new(),
            is_recalling: false,
            started_unix_nanos: 0,
            identifiers: Vec::new(),
            properties: Vec::new(),
        }
    }

    /// The id in its CONNECT, or the one that it was assigned.
    pub(in crate::shard) fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Messages above QoS 0 that its client has not acknowledged.
    pub(in crate::shard) fn in_flight(&self) -> usize {
        self.link.in_flight()
    }

    /// What monitoring tells of it.
    pub(in crate::shard) fn status(&self) -> MqttStatus {
        MqttStatus {
            level: self.link.version().level(),
            keep_alive: self.link.keep_alive(),
            expiry: self.link.session_expiry(),
            in_flight: self.in_flight(),
            waiting: self.waiting.len(),
        }
    }

    /// Whether its session outlives its connection.
    pub(super) fn is_persistent(&self) -> bool {
        self.link.session_expiry() > 0
    }

    /// Whether one of its subscriptions asks for No Local.
    pub(super) fn has_no_local(&self) -> bool {
        let mut all = self.subs.iter().flatten();
        all.any(|sub| sub.asked.options.no_local)
    }

    /// PUBRELs that were completed before the acknowledgements of their messages were durable.
    pub(super) fn complete_releases(&self) -> Vec<KeptRelease> {
        let is_unconfirmed = |release: &Release| release.stage == ReleaseStage::Noted;
        let all = self.releases.iter();
        all.filter(|(_, release)| release.is_complete && is_unconfirmed(release))
            .map(|(packet_id, release)| KeptRelease {
                packet_id: *packet_id,
                token: release.token,
                is_complete: true,
            })
            .collect()
    }

    /// Takes back the PUBRELs of a session that goes on, and what is its own.
    pub(super) fn restore(&mut self, releases: &[KeptRelease], owned: &[(u16, Box<[u8]>)]) {
        for kept in releases {
            let stage = match kept.token & UNKEPT != 0 {
                true => ReleaseStage::Confirmed,
                false => ReleaseStage::Noted,
            };
            let release = Release {
                is_complete: kept.is_complete,
                ..Release::new(kept.token, stage)
            };
            self.releases.insert(kept.packet_id, release);
            if !kept.is_complete {
                self.link
                    .restore(kept.packet_id, kept.token, Qos::ExactlyOnce, true);
            }
        }
        for (packet_id, kept) in owned {
            if let Some(release) = self.releases.get_mut(packet_id) {
                // It has arrived.
                release.ack = Waiting::ack_in(kept).unwrap_or_default().into();
                continue;
            }
            self.shared_token = self.shared_token.wrapping_add(1);
            let token = SHARED | self.shared_token;
            self.waiting
                .extend(Waiting::decode(kept, token, *packet_id));
        }
    }

    pub(super) fn sub(&self, at: u32) -> Option<&Sub> {
        let at = usize::try_from(at).ok()?;
        self.subs.get(at)?.as_ref()
    }

    pub(super) fn operation(&mut self, operation: Operation) -> u32 {
        self.next_operation = self.next_operation.wrapping_add(1);
        self.operations.insert(self.next_operation, operation);
        self.next_operation
    }
}

/// Whether a subscription is the session's own, and none of its client's.
pub(in crate::shard) fn is_own_of_mqtt(sid: &[u8]) -> bool {
    sid == REPLY_SID || sid == DELIVER_SID || member_place(sid).is_some()
}

/// Which subscription a sid stands for, if it is one of the client's.
#[inline]
pub(super) fn place_in(sid: &[u8]) -> Option<u32> {
    let mut place = 0_u32;
    for byte in sid {
        match byte {
            b'0'..=b'9' => place = place.wrapping_mul(10).wrapping_add(u32::from(byte - b'0')),
            b'p' => break,
            _ => return None,
        }
    }
    Some(place)
}

impl Held {
    /// As it is kept: version 1, RETAIN, lengths of subject and headers, and these with the payload.
    pub(super) fn encode(&self) -> Vec<u8> {
        let bytes = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut kept = vec![1, u8::from(self.retain)];
        kept.extend_from_slice(&bytes(&self.subject));
        kept.extend_from_slice(&bytes(&self.headers));
        for part in [&self.subject, &self.headers, &self.payload] {
            kept.extend_from_slice(part);
        }
        kept
    }

    /// Reads one back.
    pub(super) fn decode(kept: &[u8], sequence: u64) -> Option<Self> {
        let (head, rest) = kept.split_at_checked(10)?;
        let length = |at: usize| {
            let bytes = head.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        let (subject, rest) = rest.split_at_checked(length(2)?)?;
        let (headers, payload) = rest.split_at_checked(length(6)?)?;
        (head[0] == 1).then(|| Held {
            sequence,
            retain: head[1] & 1 != 0,
            subject: subject.into(),
            headers: headers.into(),
            payload: payload.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back() {
        let held = Held {
            sequence: 7,
            retain: true,
            subject: (*b"a.b").into(),
            headers: Box::default(),
            payload: (*b"hello").into(),
        };
        let kept = held.encode();
        assert_eq!(Held::decode(&kept, 7), Some(held));
        for end in 0..13 {
            assert_eq!(Held::decode(&kept[..end], 7), None, "{end}");
        }
        assert_eq!(Held::decode(&[&[2], &kept[1..]].concat(), 7), None);
    }

    #[test]
    fn sids() {
        for (sid, place) in [
            (&b"0"[..], Some(0)),
            (b"12", Some(12)),
            (b"12p", Some(12)),
            (REPLY_SID, None),
            (DELIVER_SID, None),
        ] {
            assert_eq!(place_in(sid), place, "{sid:?}");
            assert_eq!(is_own_of_mqtt(sid), place.is_none());
        }
    }
}
