//! The session registry. It maps each client id to its connection on some shard and to the stored state of
//! its session. It runs next to the JetStream service: it reads the service's records, and forwards the
//! service's answers to sessions.

mod groups;
mod requests;
pub(super) mod sessions;

use std::time::Duration;

use hashbrown::HashSet;
use serde_json::json;

use super::messages::{
    Close, ConnectionId, Opened, RegistryMessage, RequestAction, RetainedBatch, RetainedMessage,
    RetainedRequest,
};
use super::names;
use super::records::StoredRelease;
use super::session_record::{SessionRecord, id_hash};
use crate::auth::AccountId;
use crate::codec::mqtt::Will;
use crate::jetstream::{Handler, Message, Now, Ports};
use crate::limits::MqttLimits;
use crate::store::Record;
use groups::SharedSubscriptions;
pub(crate) use requests::Connections;
use sessions::{Due, SessionKey, Sessions};

/// Limits of one batch of retained messages: number and bytes. Other work can run between batches.
const RETAINED_MAX: usize = 64;
const RETAINED_BYTES_MAX: usize = 128 * 1024;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Operations that the registry needs from the environment of the JetStream service.
pub(crate) trait ServicePorts: Ports {
    /// Sends a message to a shard.
    fn send(&mut self, shard: u16, message: RegistryMessage);

    /// Sends a message to all shards.
    fn send_to_all(&mut self, message: &RegistryMessage);

    /// Publishes a message to all subscribers except the JetStream service.
    fn publish_to_others(&mut self, account: AccountId, message: &Message<'_>);

    /// Returns the connections of MQTT clients, which answers are sent to.
    fn connections(&mut self) -> &mut Connections;
}

/// All sessions of all accounts.
#[derive(Default)]
pub(crate) struct SessionRegistry {
    settings: MqttLimits,
    sessions: Sessions<ConnectionId>,
    /// Clients that wait until the earlier connection with their client id is closed, each with that earlier
    /// connection.
    waiting: Vec<(ConnectionId, WaitingClient)>,
    /// Sessions that have records.
    recorded: HashSet<SessionKey>,
    /// Accounts whose sessions were restored.
    restored: HashSet<AccountId>,
    /// Accounts whose streams were created.
    ready: HashSet<AccountId>,
    shared: SharedSubscriptions,
}

struct WaitingClient {
    key: SessionKey,
    connection: ConnectionId,
    clean_start: bool,
}

/// The environment of one call to the registry.
pub(crate) struct Context<'a> {
    pub(crate) now: Now,
    pub(crate) handler: &'a mut dyn Handler,
    pub(crate) ports: &'a mut dyn ServicePorts,
}

impl Context<'_> {
    /// Publishes a message of the registry.
    fn publish(&mut self, account: AccountId, subject: &[u8], payload: &[u8]) {
        self.ports.of(account).publish(&Message {
            subject,
            payload,
            ..Message::default()
        });
    }

    /// Sends a request to JetStream, on behalf of the registry.
    fn request(&mut self, account: AccountId, action: &RequestAction) {
        let (subject, body) = action.api_request();
        self.publish(account, subject.as_bytes(), body.as_bytes());
    }

    /// Reads the records of a stream whose subjects match a filter.
    fn read(
        &mut self,
        account: AccountId,
        stream: &str,
        filter: &str,
        each: &mut dyn FnMut(&Record<'_>),
    ) {
        let filters = [filter.as_bytes()];
        (self.handler).read(account, stream, &filters, 0, &mut |record| {
            each(record);
            true
        });
    }

    fn unix_seconds(&self) -> u64 {
        u64::try_from(self.now.unix_nanos / NANOS_PER_SECOND).unwrap_or(0)
    }

    /// Converts Unix seconds to the time since the server's start. A time in the past becomes the current
    /// time.
    fn since_start(&self, unix_seconds: u64) -> Duration {
        let ahead = unix_seconds.saturating_sub(self.unix_seconds());
        self.now
            .since_start
            .saturating_add(Duration::from_secs(ahead))
    }
}

impl SessionRegistry {
    pub(crate) fn new(settings: &MqttLimits) -> Self {
        SessionRegistry {
            settings: settings.clone(),
            ..SessionRegistry::default()
        }
    }

    /// Restores the sessions of accounts that are not restored yet.
    pub(crate) fn restore_accounts(&mut self, accounts: usize, context: &mut Context<'_>) {
        for account in (0..).map(AccountId).take(accounts) {
            self.restore(account, context);
        }
    }

    fn restore(&mut self, account: AccountId, context: &mut Context<'_>) {
        if !self.restored.insert(account) {
            return;
        }
        let mut records = Vec::new();
        let filter = format!("{}>", names::SESSIONS_PREFIX);
        context.read(account, names::SESSIONS, &filter, &mut |record| {
            records.extend(SessionRecord::decode(record.payload));
        });
        let mut hashes = HashSet::new();
        for record in records {
            hashes.insert(id_hash(&record.id));
            self.restore_session(account, &record, context);
        }
        self.shared.tidy(account, &hashes, context);
        // Sessions that expired while the server was down end before a client can resume them.
        self.handle_timeout(context);
    }

    fn restore_session(
        &mut self,
        account: AccountId,
        record: &SessionRecord,
        context: &mut Context<'_>,
    ) {
        let key = SessionKey {
            account,
            client_id: record.id.as_str().into(),
        };
        self.shared.restore(&key, record, context);
        let ended_at = record.ended_at.unwrap_or_else(|| context.unix_seconds());
        let expires_at = record.expiry.map_or(Duration::MAX, |expiry| {
            context.since_start(ended_at.saturating_add(u64::from(expiry)))
        });
        // If the record has no `ended_at`, a crash of the server closed the connection, so the client sent no
        // DISCONNECT (3.1.2.5).
        let is_crashed = record.ended_at.is_none();
        let will = record.will().map(|(will, at)| {
            let now = context.now.since_start;
            let at = match is_crashed {
                true => now.saturating_add(will.delay).min(expires_at),
                false => context.since_start(at),
            };
            (at, Box::new(will))
        });
        self.recorded.insert(key.clone());
        self.sessions.restore(key, expires_at, will);
    }

    /// Handles a message from a shard.
    pub(crate) fn handle(&mut self, message: &RegistryMessage, context: &mut Context<'_>) {
        match message {
            RegistryMessage::Open {
                key,
                connection,
                clean_start,
            } => self.open(key, *connection, *clean_start, context),
            RegistryMessage::Close(close) => self.close(close, context),
            RegistryMessage::RequestRetained(request) => read_retained(request, context),
            RegistryMessage::Request(request) => context.perform(request),
            RegistryMessage::Member {
                key,
                filter,
                is_member,
            } => self.shared.change(key, filter, *is_member, context),
            // Shards handle these messages.
            RegistryMessage::Opened(_)
            | RegistryMessage::Answer { .. }
            | RegistryMessage::TakenOver(_)
            | RegistryMessage::Will { .. }
            | RegistryMessage::Retained(_)
            | RegistryMessage::Group { .. } => {}
        }
    }

    fn open(
        &mut self,
        key: &SessionKey,
        connection: ConnectionId,
        clean_start: bool,
        context: &mut Context<'_>,
    ) {
        self.restore(key.account, context);
        self.create_streams(key.account, context);
        context.ports.connections().insert(key.account, connection);
        let opened = self.sessions.open(key, connection, clean_start);
        if let Some(will) = opened.will {
            context.ports.send(connection.shard, will_of(key, will));
        }
        if let Some(old) = opened.taken_over {
            context
                .ports
                .send(old.shard, RegistryMessage::TakenOver(old));
            let waiting = WaitingClient {
                key: key.clone(),
                connection,
                clean_start,
            };
            return self.waiting.push((old, waiting));
        }
        self.admit(key, connection, clean_start, context);
    }

    /// Sends the stored state of a session to the shard of its only remaining connection.
    fn admit(
        &mut self,
        key: &SessionKey,
        connection: ConnectionId,
        clean_start: bool,
        context: &mut Context<'_>,
    ) {
        let elapsed = i64::try_from(context.now.since_start.as_nanos()).unwrap_or(i64::MAX);
        let mut opened = Opened {
            connection,
            record: None,
            received: Vec::new(),
            releases: Vec::new(),
            claimed: Vec::new(),
            started_unix_nanos: context.now.unix_nanos.saturating_sub(elapsed),
        };
        if clean_start {
            self.remove(key, context);
        } else if self.recorded.contains(key) {
            read_session(key, &mut opened, context);
        }
        let message = RegistryMessage::Opened(Box::new(opened));
        context.ports.send(connection.shard, message);
    }

    fn close(&mut self, close: &Close, context: &mut Context<'_>) {
        let Close {
            key,
            connection,
            expiry,
            will,
            has_records,
        } = close;
        context.ports.connections().remove(*connection);
        let now = context.now.since_start;
        if *has_records {
            self.recorded.insert(key.clone());
        }
        self.waiting
            .retain(|(_, waiting)| waiting.connection != *connection);
        let will = (self.sessions).close(key, *connection, *expiry, will.clone(), now);
        if let Some(will) = will {
            context.ports.send(connection.shard, will_of(key, will));
        }
        if *expiry == 0 {
            // The session ends with its connection, even if another client takes over the client id
            // (3.1.2.11.2).
            self.remove(key, context);
        }
        if let Some(at) = self.waiting.iter().position(|(old, _)| old == connection) {
            let (_, waiting) = self.waiting.swap_remove(at);
            self.admit(
                &waiting.key,
                waiting.connection,
                waiting.clean_start,
                context,
            );
        }
        self.handle_timeout(context);
    }

    /// Publishes delayed wills that are due, and removes expired sessions.
    pub(crate) fn handle_timeout(&mut self, context: &mut Context<'_>) {
        while let Some(due) = self.sessions.next_due(context.now.since_start) {
            match due {
                Due::Will(key, will) => {
                    remove_will(&key, context);
                    context.ports.send(0, will_of(&key, will));
                }
                Due::Expired(key) => self.remove(&key, context),
            }
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.sessions.next_timeout()
    }

    /// Removes the records of a session that has ended.
    fn remove(&mut self, key: &SessionKey, context: &mut Context<'_>) {
        self.shared.leave(key, context);
        if !self.recorded.remove(key) {
            return;
        }
        let hash = id_hash(&key.client_id);
        let name = hash.clone();
        context.request(key.account, &RequestAction::DeleteConsumer { name });
        for (stream, filter) in [
            (names::SESSIONS, names::session(&hash)),
            (names::RECEIVED, records_of(names::RECEIVED_PREFIX, &hash)),
            (names::RELEASES, records_of(names::RELEASES_PREFIX, &hash)),
            (names::SHARED, records_of(names::CLAIMED_PREFIX, &hash)),
        ] {
            context.request(key.account, &RequestAction::Purge { stream, filter });
        }
    }

    /// Creates the streams for MQTT. A stream that exists stays as it is.
    fn create_streams(&mut self, account: AccountId, context: &mut Context<'_>) {
        if !self.ready.insert(account) {
            return;
        }
        let storage = if self.settings.in_memory {
            "memory"
        } else {
            "file"
        };
        for (name, prefix, retention, per_subject) in [
            (names::MESSAGES, names::MESSAGES_PREFIX, "interest", -1),
            (names::RETAINED, names::RETAINED_PREFIX, "limits", 1),
            (names::SESSIONS, names::SESSIONS_PREFIX, "limits", 1),
            (names::RECEIVED, names::RECEIVED_PREFIX, "limits", 1),
            (names::RELEASES, names::RELEASES_PREFIX, "limits", 1),
            (names::SHARED, names::SHARED_PREFIX, "limits", 1),
        ] {
            let config = json!({
                "name": name,
                "subjects": [format!("{prefix}>")],
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
            let subject = format!("$JS.API.STREAM.CREATE.{name}");
            context.publish(account, subject.as_bytes(), config.to_string().as_bytes());
        }
    }
}

/// Reads a batch of retained messages.
fn read_retained(request: &RetainedRequest, context: &mut Context<'_>) {
    let mut request = request.clone();
    let mut messages = Vec::new();
    let mut bytes = 0;
    let mut has_more = false;
    let filters: Vec<&[u8]> = request.filters.iter().map(|filter| &**filter).collect();
    let (account, mut from) = (request.account, request.from);
    (context.handler).read(account, names::RETAINED, &filters, from, &mut |record| {
        if messages.len() >= RETAINED_MAX || bytes >= RETAINED_BYTES_MAX {
            has_more = true;
            return false;
        }
        from = record.sequence + 1;
        bytes += record.payload.len() + record.headers.len();
        let prefix = names::RETAINED_PREFIX.as_bytes();
        if let Some(subject) = record.subject.strip_prefix(prefix) {
            messages.push(RetainedMessage {
                subject: subject.into(),
                headers: record.headers.into(),
                payload: record.payload.into(),
                sequence: record.sequence,
                unix_nanos: record.unix_nanos,
            });
        }
        true
    });
    request.from = from;
    let shard = request.connection.shard;
    let batch = RetainedBatch {
        request,
        messages,
        has_more,
    };
    let message = RegistryMessage::Retained(Box::new(batch));
    context.ports.send(shard, message);
}

/// Reads all records of a session, if the record of the session itself is readable.
fn read_session(key: &SessionKey, opened: &mut Opened, context: &mut Context<'_>) {
    let hash = id_hash(&key.client_id);
    let account = key.account;
    let filter = names::session(&hash);
    context.read(account, names::SESSIONS, &filter, &mut |record| {
        let decoded = SessionRecord::decode(record.payload);
        // Two client ids may have the same hash.
        opened.record = decoded.filter(|record| *record.id == *key.client_id);
    });
    if opened.record.is_none() {
        return;
    }
    let filter = records_of(names::RECEIVED_PREFIX, &hash);
    context.read(account, names::RECEIVED, &filter, &mut |record| {
        if let Some(id) = packet_id_of(record.subject) {
            let received = (id, record.sequence, record.payload.into());
            opened.received.push(received);
        }
    });
    let filter = records_of(names::RELEASES_PREFIX, &hash);
    context.read(account, names::RELEASES, &filter, &mut |record| {
        let id = packet_id_of(record.subject);
        let release = id.and_then(|id| StoredRelease::decode(id, record.payload));
        opened.releases.extend(release);
    });
    let filter = records_of(names::CLAIMED_PREFIX, &hash);
    context.read(account, names::SHARED, &filter, &mut |record| {
        if let Some(id) = packet_id_of(record.subject) {
            opened.claimed.push((id, record.payload.into()));
        }
    });
}

/// Returns the filter for all records of a session that end in a packet identifier.
fn records_of(prefix: &str, id_hash: &str) -> String {
    format!("{prefix}{id_hash}.*")
}

fn will_of(key: &SessionKey, will: Box<Will>) -> RegistryMessage {
    RegistryMessage::Will {
        account: key.account,
        will,
        client: id_hash(&key.client_id).into(),
    }
}

/// Returns the packet identifier at the end of a record's subject.
fn packet_id_of(subject: &[u8]) -> Option<u16> {
    let token = subject.rsplit(|b| *b == b'.').next()?;
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// Removes the will from a session's record, so that it is not published again after a restart.
fn remove_will(key: &SessionKey, context: &mut Context<'_>) {
    let subject = names::session(&id_hash(&key.client_id));
    let mut record = None;
    context.read(key.account, names::SESSIONS, &subject, &mut |stored| {
        record = SessionRecord::decode(stored.payload);
    });
    if let Some(mut record) = record {
        record.set_will(None);
        context.publish(key.account, subject.as_bytes(), &record.encode());
    }
}
