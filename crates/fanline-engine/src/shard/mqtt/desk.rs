//! The keeper's side of MQTT: who has which client id, on whatever shard, and what is kept of sessions.

use std::time::Duration;

use hashbrown::HashSet;
use serde_json::json;

use super::names;
use super::note::{Close, KeptRelease, Note, Opened, Recall, Recalled, Retained, Seat};
use super::session;
use super::shared::Shares;
use crate::auth::AccountId;
use crate::codec::mqtt::{Due, SessionKey, SessionRecord, Sessions, Will, id_hash};
use crate::jetstream::{Handler, Message, Now, Ports};
use crate::limits::MqttLimits;

/// Most retained messages that are handed over at once, and most bytes of them: in between others have their turn.
const RECALLED_MAX: usize = 64;
const RECALLED_BYTES_MAX: usize = 128 * 1024;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// What the desk needs of the keeper.
pub(in crate::shard) trait Floor: Ports {
    /// Tells a shard something.
    fn tell(&mut self, shard: u16, note: Note);

    /// The same to all of them.
    fn tell_all(&mut self, note: &Note);
}

/// All sessions of all accounts.
#[derive(Default)]
pub(in crate::shard) struct Desk {
    settings: MqttLimits,
    sessions: Sessions<Seat>,
    /// Who waits for an older connection with its id to be gone: that one, and itself.
    waiting: Vec<(Seat, Waiting)>,
    /// Those of which something is kept.
    kept: HashSet<SessionKey>,
    /// Accounts whose sessions were taken back.
    known: HashSet<AccountId>,
    /// Accounts whose streams were made.
    ready: HashSet<AccountId>,
    shares: Shares,
}

struct Waiting {
    key: SessionKey,
    seat: Seat,
    clean_start: bool,
}

/// What surrounds the desk for the time of a call.
pub(in crate::shard) struct Around<'a> {
    pub(in crate::shard) now: Now,
    pub(in crate::shard) handler: &'a mut dyn Handler,
    pub(in crate::shard) floor: &'a mut dyn Floor,
}

impl Around<'_> {
    pub(super) fn request(&mut self, account: AccountId, topic: &str, body: &str) {
        self.floor.of(account).publish(&Message {
            topic: topic.as_bytes(),
            payload: body.as_bytes(),
            ..Message::default()
        });
    }

    pub(super) fn purge(&mut self, account: AccountId, stream: &str, filter: &str) {
        let (topic, body) = names::purge(stream, filter);
        self.request(account, &topic, &body);
    }

    fn unix_seconds(&self) -> u64 {
        u64::try_from(self.now.unix_nanos / NANOS_PER_SECOND).unwrap_or(0)
    }

    /// A time on the calendar, as it is counted since the start; what is over is now.
    fn since_start(&self, unix_seconds: u64) -> Duration {
        let ahead = unix_seconds.saturating_sub(self.unix_seconds());
        self.now
            .since_start
            .saturating_add(Duration::from_secs(ahead))
    }
}

impl Desk {
    pub(in crate::shard) fn new(settings: &MqttLimits) -> Self {
        Desk {
            settings: settings.clone(),
            ..Desk::default()
        }
    }

    /// Takes back the sessions of accounts that it does not know yet.
    pub(in crate::shard) fn know(&mut self, accounts: usize, around: &mut Around<'_>) {
        for account in (0..).map(AccountId).take(accounts) {
            self.restore(account, around);
        }
    }

    fn restore(&mut self, account: AccountId, around: &mut Around<'_>) {
        if !self.known.insert(account) {
            return;
        }
        let mut records = Vec::new();
        let filter = format!("{}>", names::SESSIONS_PREFIX);
        let all: [&[u8]; 1] = [filter.as_bytes()];
        (around.handler).read(account, names::SESSIONS, &all, 0, &mut |record| {
            records.extend(SessionRecord::decode(record.payload));
            true
        });
        let mut hashes = HashSet::new();
        for record in records {
            let key = SessionKey {
                account,
                client_id: record.id.as_str().into(),
            };
            hashes.insert(id_hash(&record.id));
            self.shares.restore(&key, &record, around);
            let ended_at = record.ended_at.unwrap_or_else(|| around.unix_seconds());
            let ends_at = record.expiry.map_or(Duration::MAX, |expiry| {
                around.since_start(ended_at.saturating_add(u64::from(expiry)))
            });
            // A connection that a crash has ended is one that ended without a word (3.1.2.5).
            let is_crashed = record.ended_at.is_none();
            let will = record.will().map(|(will, at)| {
                let at = match is_crashed {
                    true => around
                        .now
                        .since_start
                        .saturating_add(will.delay)
                        .min(ends_at),
                    false => around.since_start(at),
                };
                (at, Box::new(will))
            });
            self.kept.insert(key.clone());
            self.sessions.restore(key, ends_at, will);
        }
        self.shares.tidy(account, &hashes, around);
        acknowledge_owned(account, around);
        // What was over before anybody can ask for it.
        self.handle_timeout(around);
    }

    /// Takes what a shard says.
    pub(in crate::shard) fn handle(&mut self, note: &Note, around: &mut Around<'_>) {
        match note {
            Note::Open {
                key,
                seat,
                clean_start,
            } => self.open(key, *seat, *clean_start, around),
            Note::Close(close) => self.close(close, around),
            Note::Recall(recall) => self.recall(recall, around),
            Note::Member {
                key,
                filter,
                is_member,
            } => self.shares.change(key, filter, *is_member, around),
            Note::Opened(_)
            | Note::TakenOver(_)
            | Note::Will { .. }
            | Note::Recalled(_)
            | Note::Group { .. } => {}
        }
    }

    fn open(&mut self, key: &SessionKey, seat: Seat, clean_start: bool, around: &mut Around<'_>) {
        self.restore(key.account, around);
        self.make_streams(key.account, around);
        let opened = self.sessions.open(key, seat, clean_start);
        if let Some(will) = opened.will {
            around.floor.tell(seat.shard, will_of(key, will));
        }
        if let Some(old) = opened.taken_over {
            around.floor.tell(old.shard, Note::TakenOver(old));
            let waiting = Waiting {
                key: key.clone(),
                seat,
                clean_start,
            };
            return self.waiting.push((old, waiting));
        }
        self.let_in(key, seat, clean_start, around);
    }

    /// Tells a shard what there is of a session, of which nobody else has anything any more.
    fn let_in(&mut self, key: &SessionKey, seat: Seat, clean_start: bool, around: &mut Around<'_>) {
        let elapsed = i64::try_from(around.now.since_start.as_nanos()).unwrap_or(i64::MAX);
        let mut opened = Opened {
            seat,
            record: None,
            held: Vec::new(),
            releases: Vec::new(),
            owned: Vec::new(),
            started_unix_nanos: around.now.unix_nanos.saturating_sub(elapsed),
        };
        if clean_start {
            self.remove(key, around);
        } else if self.kept.contains(key) {
            read_session(key, &mut opened, around);
            if opened.record.is_some() {
                read_owned(key, &mut opened, around);
            }
        }
        around
            .floor
            .tell(seat.shard, Note::Opened(Box::new(opened)));
    }

    fn close(&mut self, close: &Close, around: &mut Around<'_>) {
        let Close {
            key,
            seat,
            expiry,
            will,
            is_kept,
        } = close;
        let now = around.now.since_start;
        if *is_kept {
            self.kept.insert(key.clone());
        }
        self.waiting.retain(|(_, waiting)| waiting.seat != *seat);
        let will = (self.sessions).close(key, *seat, *expiry, will.clone(), now);
        if let Some(will) = will {
            around.floor.tell(seat.shard, will_of(key, will));
        }
        if *expiry == 0 {
            // It has ended with its connection, also for who takes its id over (3.1.2.11.2).
            self.remove(key, around);
        }
        if let Some(at) = self.waiting.iter().position(|(old, _)| old == seat) {
            let (_, waiting) = self.waiting.swap_remove(at);
            self.let_in(&waiting.key, waiting.seat, waiting.clean_start, around);
        }
        self.handle_timeout(around);
    }

    /// Does what is due.
    pub(in crate::shard) fn handle_timeout(&mut self, around: &mut Around<'_>) {
        while let Some(due) = self.sessions.next_due(around.now.since_start) {
            match due {
                Due::Will(key, will) => {
                    forget_will(&key, around);
                    around.floor.tell(0, will_of(&key, will));
                }
                Due::Expired(key) => self.remove(&key, around),
            }
        }
    }

    pub(in crate::shard) fn next_timeout(&self) -> Option<Duration> {
        self.sessions.next_timeout()
    }

    /// Removes what is kept of a session that is over.
    fn remove(&mut self, key: &SessionKey, around: &mut Around<'_>) {
        self.shares.leave(key, around);
        if !self.kept.remove(key) {
            return;
        }
        let hash = id_hash(&key.client_id);
        around.request(key.account, &names::delete_consumer(&hash), "");
        for (stream, filter) in [
            (names::SESSIONS, format!("{}{hash}", names::SESSIONS_PREFIX)),
            (names::HELD, format!("{}{hash}.*", names::HELD_PREFIX)),
            (
                names::RELEASES,
                format!("{}{hash}.*", names::RELEASES_PREFIX),
            ),
            (names::SHARED, format!("{}{hash}.*", names::OWNED_PREFIX)),
        ] {
            around.purge(key.account, stream, &filter);
        }
    }

    /// Makes what MQTT keeps its state in. A stream that is there stays as it is.
    fn make_streams(&mut self, account: AccountId, around: &mut Around<'_>) {
        if !self.ready.insert(account) {
            return;
        }
        let storage = if self.settings.in_memory {
            "memory"
        } else {
            "file"
        };
        for (name, subject, retention, per_subject) in [
            (
                names::MESSAGES,
                format!("{}>", names::MESSAGES_PREFIX),
                "interest",
                -1,
            ),
            (
                names::RETAINED,
                format!("{}>", names::RETAINED_PREFIX),
                "limits",
                1,
            ),
            (
                names::SESSIONS,
                format!("{}>", names::SESSIONS_PREFIX),
                "limits",
                1,
            ),
            (names::HELD, format!("{}>", names::HELD_PREFIX), "limits", 1),
            (
                names::RELEASES,
                format!("{}>", names::RELEASES_PREFIX),
                "limits",
                1,
            ),
            (
                names::SHARED,
                format!("{}>", names::SHARED_PREFIX),
                "limits",
                1,
            ),
        ] {
            let config = json!({
                "name": name,
                "subjects": [subject],
                "retention": retention,
                "max_consumers": -1,
                "max_msgs": -1,
                "max_bytes": -1,
                "max_msg_size": -1,
                "max_msgs_per_subject": per_subject,
                "discard": "old",
                "storage": storage,
                "num_replicas": 1,
                "allow_msg_ttl": true,
            });
            let topic = format!("$JS.API.STREAM.CREATE.{name}");
            around.request(account, &topic, &config.to_string());
        }
    }

    /// Hands over some retained messages.
    fn recall(&mut self, recall: &Recall, around: &mut Around<'_>) {
        let mut recall = recall.clone();
        let mut messages = Vec::new();
        let mut bytes = 0;
        let mut has_more = false;
        let filters: Vec<&[u8]> = recall.filters.iter().map(|filter| &**filter).collect();
        let (account, mut from) = (recall.account, recall.from);
        (around.handler).read(account, names::RETAINED, &filters, from, &mut |record| {
            if messages.len() >= RECALLED_MAX || bytes >= RECALLED_BYTES_MAX {
                has_more = true;
                return false;
            }
            from = record.sequence + 1;
            bytes += record.payload.len() + record.headers.len();
            let prefix = names::RETAINED_PREFIX.as_bytes();
            if let Some(subject) = record.subject.strip_prefix(prefix) {
                messages.push(Retained {
                    subject: subject.into(),
                    headers: record.headers.into(),
                    payload: record.payload.into(),
                    sequence: record.sequence,
                    unix_nanos: record.unix_nanos,
                });
            }
            true
        });
        recall.from = from;
        let shard = recall.seat.shard;
        let recalled = Recalled {
            recall,
            messages,
            has_more,
        };
        around.floor.tell(shard, Note::Recalled(Box::new(recalled)));
    }
}

/// Reads all that is kept of a session.
fn read_session(key: &SessionKey, opened: &mut Opened, around: &mut Around<'_>) {
    let hash = id_hash(&key.client_id);
    let account = key.account;
    let subject = format!("{}{hash}", names::SESSIONS_PREFIX);
    let filters: [&[u8]; 1] = [subject.as_bytes()];
    let record = &mut opened.record;
    (around.handler).read(account, names::SESSIONS, &filters, 0, &mut |kept| {
        let decoded = SessionRecord::decode(kept.payload);
        // The record is believed over the hash.
        *record = decoded.filter(|record| *record.id == *key.client_id);
        true
    });
    if record.is_none() {
        return;
    }
    let subject = format!("{}{hash}.*", names::HELD_PREFIX);
    let filters: [&[u8]; 1] = [subject.as_bytes()];
    let held = &mut opened.held;
    (around.handler).read(account, names::HELD, &filters, 0, &mut |kept| {
        if let Some(id) = number_at_end(kept.subject) {
            held.push((id, kept.sequence, kept.payload.into()));
        }
        true
    });
    let subject = format!("{}{hash}.*", names::RELEASES_PREFIX);
    let filters: [&[u8]; 1] = [subject.as_bytes()];
    let releases = &mut opened.releases;
    (around.handler).read(account, names::RELEASES, &filters, 0, &mut |kept| {
        let id = number_at_end(kept.subject);
        releases.extend(id.and_then(|id| KeptRelease::decode(id, kept.payload)));
        true
    });
}

/// Acknowledges at the consumers of groups what is a session's own, before another member can be given it: a power cut may
/// have taken back the acknowledgement.
fn acknowledge_owned(account: AccountId, around: &mut Around<'_>) {
    let mut acks = Vec::new();
    let filter = format!("{}>", names::OWNED_PREFIX);
    (around.handler).read(
        account,
        names::SHARED,
        &[filter.as_bytes()],
        0,
        &mut |record| {
            acks.extend(session::Waiting::ack_in(record.payload).map(<[u8]>::to_vec));
            true
        },
    );
    for ack in acks {
        let message = Message {
            topic: &ack,
            ..Message::default()
        };
        around.floor.of(account).publish(&message);
    }
}

/// Reads what is a session's own of its groups.
fn read_owned(key: &SessionKey, opened: &mut Opened, around: &mut Around<'_>) {
    let hash = id_hash(&key.client_id);
    let subject = format!("{}{hash}.*", names::OWNED_PREFIX);
    let filters: [&[u8]; 1] = [subject.as_bytes()];
    let owned = &mut opened.owned;
    (around.handler).read(key.account, names::SHARED, &filters, 0, &mut |kept| {
        if let Some(id) = number_at_end(kept.subject) {
            owned.push((id, kept.payload.into()));
        }
        true
    });
}

fn will_of(key: &SessionKey, will: Box<Will>) -> Note {
    Note::Will {
        account: key.account,
        will,
        client: id_hash(&key.client_id).into(),
    }
}

/// The last token of a subject, when that is a packet identifier.
fn number_at_end(subject: &[u8]) -> Option<u16> {
    let token = subject.rsplit(|b| *b == b'.').next()?;
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// A will that was sent is not sent again after a restart.
fn forget_will(key: &SessionKey, around: &mut Around<'_>) {
    let subject = format!("{}{}", names::SESSIONS_PREFIX, id_hash(&key.client_id));
    let filters: [&[u8]; 1] = [subject.as_bytes()];
    let mut record = None;
    (around.handler).read(key.account, names::SESSIONS, &filters, 0, &mut |kept| {
        record = SessionRecord::decode(kept.payload);
        true
    });
    if let Some(mut record) = record {
        record.set_will(None);
        around.floor.of(key.account).publish(&Message {
            topic: subject.as_bytes(),
            payload: &record.encode(),
            ..Message::default()
        });
    }
}
