//! CONNECT: from credentials to CONNACK.

use std::time::Duration;

use super::messages::{Opened, RegistryMessage, RequestAction, RequestId};
use super::operations::Operation;
use super::records::{ClaimedRecord, ReceivedMessage};
use super::registry::sessions::SessionKey;
use super::session_record::{SessionRecord, id_hash};
use super::state::DELIVER_SID;
use super::{MqttSession, names};
use crate::accounts::Mapped;
use crate::auth::{AccountId, Decision, Grant};
use crate::codec::mqtt::{Accepted, Connect, Ended, Reason, Will, topic_to_subject};
use crate::codec::nats::error::CloseReason;
use crate::session::timers::auth_timeout;

/// Interval of the session's timer while the connection waits for the registry.
const REGISTRY_CHECK: Duration = Duration::from_secs(5);
/// Interval of the session's timer for a client without a keep alive.
const NO_KEEP_ALIVE: Duration = Duration::from_secs(3600);

/// Stream, subject prefix, and last token of the records that an earlier session with the same client id
/// left. They are purged so that a power cut cannot restore them in a new session.
const OF_EARLIER_SESSION: [(&str, &str, &str); 3] = [
    (names::RECEIVED, names::RECEIVED_PREFIX, "*"),
    (names::RELEASES, names::RELEASES_PREFIX, "*"),
    (names::SHARED, names::CLAIMED_PREFIX, "*"),
];
/// Stream, subject prefix, and last token of the records to purge for a session that is resumed. The
/// session's last connection may have removed records and freed their packet identifiers, although the
/// removals are not durable yet. No record has the identifier 0, so such a purge removes nothing. But the
/// purge is answered only when all earlier removals are durable.
const OF_EARLIER_CONNECTION: [(&str, &str, &str); 2] = [
    (names::RECEIVED, names::RECEIVED_PREFIX, "0"),
    (names::RELEASES, names::RELEASES_PREFIX, "0"),
];

impl MqttSession<'_> {
    /// Handles CONNECT: reads the credentials and decides about admission.
    pub(super) fn connect(&mut self, connect: &Connect<'_>) {
        let assigned = match connect.client_id {
            "" => format!("fanline-{:016x}", self.broker.exchange.secrets.number()),
            _ => String::new(),
        };
        let session = self.session_mut();
        let password = connect.password.map(String::from_utf8_lossy);
        let password = password
            .map(std::borrow::Cow::into_owned)
            .unwrap_or_default();
        let options = &mut session.options;
        options.user = connect.user.unwrap_or_default().into();
        // The password may also be a token or a user's JWT, because MQTT has no other field for them.
        if password.starts_with("eyJ") {
            options.jwt.clone_from(&password);
        }
        options.auth_token.clone_from(&password);
        options.pass = password;
        options.complete(&session.peer.cookies);
        let mqtt = self.state_mut();
        mqtt.clean_start = connect.clean_start;
        mqtt.is_id_assigned = !assigned.is_empty();
        mqtt.client_id = match assigned.as_str() {
            "" => connect.client_id.into(),
            assigned => assigned.into(),
        };
        mqtt.id_hash = id_hash(&mqtt.client_id).into();
        match self.any().decide() {
            Decision::Admitted(grant) => self.admit(grant),
            Decision::Refused => self.any().refuse_credentials(),
            Decision::Later(check) => self.session_mut().check = Some(check),
        }
    }

    /// Admits a client with valid credentials, and requests its session from the registry.
    pub(crate) fn admit(&mut self, grant: Grant) {
        if grant.account == AccountId::SYSTEM {
            // The system account has no JetStream to store sessions in.
            return self.any().refuse_credentials();
        }
        let expires_in = grant.expires_in;
        self.any().apply_grant(grant);
        let session = self.session_mut();
        if session.ending.is_some() {
            return;
        }
        session.has_connected = true;
        let connection = self.connection_id();
        let key = self.key();
        let mqtt = self.state_mut();
        mqtt.is_registered = true;
        let open = RegistryMessage::Open {
            key,
            connection,
            clean_start: mqtt.clean_start,
        };
        self.send_to_registry(open);
        let check_at = self.broker.exchange.outputs.now + REGISTRY_CHECK;
        self.broker.exchange.rearm(self.id, check_at);
        self.any().expire_in(expires_in);
    }

    pub(super) fn key(&self) -> SessionKey {
        SessionKey {
            account: self.account(),
            client_id: self.state().client_id.clone(),
        }
    }

    /// Begins or resumes the session. No other connection uses it any more.
    pub(super) fn begin(&mut self, opened: &Opened) {
        let mqtt = self.state_mut();
        mqtt.started_unix_nanos = opened.started_unix_nanos;
        let session_present = opened.record.is_some();
        let mut acks: Vec<&[u8]> = Vec::new();
        if let Some(record) = &opened.record {
            mqtt.has_records = true;
            mqtt.is_resumed = true;
            let claimed = opened.claimed.iter();
            acks.extend(claimed.filter_map(|(_, record)| ClaimedRecord::ack_subject(record)));
            mqtt.restore(&opened.releases, &opened.claimed);
            mqtt.connection
                .restore_received(opened.received.iter().map(|(packet_id, ..)| *packet_id));
            for (packet_id, sequence, record) in &opened.received {
                if let Some(message) = ReceivedMessage::decode(record, *sequence) {
                    mqtt.received.insert(*packet_id, message);
                }
            }
            self.resume_subscriptions(record);
        }
        // The session delivers its claimed messages itself, so their consumers must not.
        for ack in acks {
            self.acknowledge_stored(ack, b"", b"");
        }
        for release in &opened.releases {
            // A crash may have undone the acknowledgement of the message.
            self.confirm_release(release.packet_id);
        }
        self.store_begun(session_present);
    }

    /// Stores the state of a session that begins or is resumed, and sends CONNACK afterwards.
    fn store_begun(&mut self, session_present: bool) {
        let groups = self.change_groups();
        let mqtt = self.state_mut();
        let is_persistent = mqtt.is_persistent();
        let has_consumer = !mqtt.consumer.filters.is_empty();
        let old = match (is_persistent, session_present) {
            (true, true) => &OF_EARLIER_CONNECTION[..],
            (true, false) => &OF_EARLIER_SESSION[..],
            (false, _) => &[],
        };
        let parts =
            usize::from(is_persistent) + usize::from(has_consumer) + groups.len() + old.len();
        if mqtt.connection.will().is_some() && !is_persistent {
            // Stores the will. CONNACK does not wait for this record, because a crash may end the connection
            // at any time.
            self.store_record(0);
        }
        let accept = Operation::connect(session_present, parts);
        if parts == 0 {
            return self.finish_operation(accept);
        }
        let operation = self.state_mut().add_operation(accept);
        if has_consumer {
            // A consumer on disk exists already, but may have older settings.
            self.change_consumer(operation);
        }
        for filter in groups {
            self.create_group_consumer(&filter, operation);
        }
        for (stream, prefix, last) in old {
            let filter = format!("{prefix}{}.{last}", self.state().id_hash);
            let purge = RequestAction::Purge { stream, filter };
            self.request(Some(RequestId::Record(operation)), purge);
        }
        if is_persistent {
            self.store_record(operation);
        }
    }

    /// Sends CONNACK.
    pub(super) fn accept(&mut self, session_present: bool, reason: Reason) {
        if reason.is_failure() {
            return self.refuse_with(reason, CloseReason::ServerShutdown);
        }
        let now = self.broker.exchange.outputs.now;
        let ended = self.write(|mqtt, out| {
            let accepted = Accepted {
                session_present,
                assigned_client_id: mqtt.is_id_assigned.then_some(&*mqtt.client_id),
            };
            let ended = mqtt.connection.accept(&accepted, now, out);
            if ended.is_none() {
                mqtt.connection.resend(out, |_, _, _, _| {});
            }
            ended
        });
        if let Some(ended) = ended {
            return self.end_with(ended);
        }
        let mqtt = self.state();
        let next = mqtt.connection.next_timeout();
        let has_consumer = !mqtt.consumer.filters.is_empty();
        self.broker
            .exchange
            .rearm(self.id, next.unwrap_or(now + NO_KEEP_ALIVE));
        self.any().arm_expiry();
        if has_consumer {
            self.subscribe_to_consumer();
        }
        self.deliver_queue();
        self.take_early_input(b"", now);
    }

    /// Subscribes to the deliver subject of the session's consumer, which starts it.
    pub(super) fn subscribe_to_consumer(&mut self) {
        let subject = format!("{}{}", names::DELIVER_PREFIX, self.state().id_hash);
        (self.broker).enter_subscription(self.id, subject.as_bytes(), b"", DELIVER_SID);
    }

    /// Stores the session's record, as a part of the operation with this number; 0 means no operation.
    pub(super) fn store_record(&mut self, operation: u32) {
        let will = self.state().connection.will().cloned();
        let will = will.filter(|will| self.may_publish_will(will));
        let mqtt = self.state_mut();
        mqtt.has_records = true;
        let mut record = SessionRecord::of(mqtt);
        // After a crash, the restarted server publishes this will.
        record.set_will(will.as_ref().map(|will| (will, 0)));
        let subject = names::session(&mqtt.id_hash);
        let request = RequestId::Record(operation);
        if !self.publish_record(&subject, Some(request), &record.encode()) {
            self.fail_operation(operation, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Returns whether the client has the permission to publish its will.
    pub(super) fn may_publish_will(&mut self, will: &Will) -> bool {
        let mut subject = Vec::new();
        let has_subject = topic_to_subject(&will.topic, &mut subject).is_ok();
        if !has_subject || subject.starts_with(names::INTERNAL_PREFIX) {
            return false;
        }
        if self.session().restriction.is_none() {
            return true;
        }
        // Permissions apply to the mapped subject.
        let account = self.account();
        let mut renamed = Vec::new();
        let subject = match self.broker.rename(account, &subject, &mut renamed) {
            Mapped::Renamed => renamed,
            Mapped::Unchanged => subject,
            Mapped::Lost => return false,
        };
        let restriction = self.session().restriction.as_ref();
        restriction.is_none_or(|restriction| restriction.may_publish(&subject))
    }

    /// Handles the session's timer. Returns the time at which it is due next, or `None` if the connection is
    /// closed.
    pub(crate) fn handle_timeout(&mut self, now: Duration) -> Option<Duration> {
        let session = self.session();
        if !session.has_connected {
            let auth_timeout = auth_timeout(&self.broker.exchange.config.limits, &session.peer);
            let until = session.opened_at + auth_timeout;
            if now >= until {
                self.close_connection(CloseReason::AuthenticationTimeout);
                return None;
            }
            return Some(until);
        }
        if !self.state().connection.is_open() {
            return Some(now + REGISTRY_CHECK);
        }
        let ended: Option<Ended> = self.write(|mqtt, out| mqtt.connection.handle_timeout(now, out));
        let next = self.state().connection.next_timeout();
        if let Some(ended) = ended {
            let account = self.account();
            self.broker.exchange.totals_of(account).stale += 1;
            self.end_with(ended);
            return None;
        }
        Some(next.unwrap_or(now + NO_KEEP_ALIVE))
    }
}
