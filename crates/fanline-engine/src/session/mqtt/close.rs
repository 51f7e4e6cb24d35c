//! The end of a connection, and the state that a session retains after it.

use super::MqttSession;
use super::messages::{Close, RegistryMessage};
use super::names;
use super::parts;
use super::publish::publish_will;
use super::session_record::SessionRecord;
use crate::codec::mqtt::{Reason, Will};
use crate::codec::nats::error::CloseReason;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl MqttSession<'_> {
    /// Refuses a client, or closes its connection, with the MQTT reason code for the cause.
    pub(crate) fn refuse(&mut self, close: CloseReason) {
        self.refuse_with(reason_of(close), close);
    }

    pub(super) fn refuse_with(&mut self, reason: Reason, close: CloseReason) {
        self.write(|mqtt, out| match mqtt.connection.awaits_admission() {
            true => mqtt.connection.refuse(reason, out),
            false => mqtt.connection.close(reason, "", out),
        });
        self.close_connection(close);
    }

    /// Handles the end of a connection, after its subscriptions were removed. Publishes the will, stores the
    /// state that the session needs when it is resumed, and notifies the registry.
    pub(crate) fn handle_end(&mut self, reason: CloseReason) {
        let (mqtt, out) = parts(self.session_mut());
        if reason.flushes() && mqtt.connection.is_open() {
            mqtt.connection.close(reason_of(reason), "", out);
        }
        mqtt.early_input = Vec::new();
        self.leave_groups();
        let mqtt = self.state_mut();
        let will = mqtt.connection.take_will();
        if !mqtt.is_registered {
            return;
        }
        self.store_complete_releases();
        let mut will = will.filter(|will| self.may_publish_will(will));
        if let Some(will) = will.take_if(|will| will.delay.is_zero()) {
            let client = self.state().id_hash.clone();
            let account = self.account();
            publish_will(self.broker, account, &will, &client);
        }
        self.store_unlogged();
        self.store_ended_record(will.as_deref());
        let mqtt = self.state();
        let close = Close {
            key: self.key(),
            connection: self.connection_id(),
            expiry: mqtt.connection.session_expiry(),
            will,
            has_records: mqtt.has_records,
        };
        self.send_to_registry(RegistryMessage::Close(Box::new(close)));
    }

    /// Marks PUBRELs as complete in their records, if PUBCOMP has arrived but the records cannot be removed
    /// yet.
    fn store_complete_releases(&mut self) {
        let mqtt = self.state();
        if !mqtt.is_persistent() {
            return;
        }
        for release in mqtt.complete_releases() {
            let subject = names::release(&self.state().id_hash, release.packet_id);
            self.publish_record(&subject, None, release.encode().as_bytes());
        }
    }

    fn store_ended_record(&mut self, will: Option<&Will>) {
        let mqtt = self.state();
        if !mqtt.has_records || !mqtt.is_persistent() {
            return;
        }
        let mut record = SessionRecord::of(mqtt);
        let started = u64::try_from(mqtt.started_unix_nanos / NANOS_PER_SECOND).unwrap_or(0);
        let ended_at = started + self.broker.exchange.outputs.now.as_secs();
        record.ended_at = Some(ended_at);
        let delayed = will.filter(|will| !will.delay.is_zero());
        record.set_will(delayed.map(|will| (will, ended_at + will.delay.as_secs())));
        let subject = names::session(&mqtt.id_hash);
        self.publish_record(&subject, None, &record.encode());
    }
}

/// Returns the MQTT reason code for the cause of a closed connection.
fn reason_of(reason: CloseReason) -> Reason {
    match reason {
        CloseReason::ServerShutdown => Reason::SERVER_SHUTTING_DOWN,
        CloseReason::AuthenticationFailure
        | CloseReason::AuthenticationTimeout
        | CloseReason::AuthenticationExpired
        | CloseReason::CredentialsRevoked => Reason::NOT_AUTHORIZED,
        CloseReason::MaximumConnectionsExceeded
        | CloseReason::MaximumAccountConnectionsExceeded => Reason::QUOTA_EXCEEDED,
        CloseReason::Kicked => Reason::ADMINISTRATIVE_ACTION,
        CloseReason::StaleConnection => Reason::KEEP_ALIVE_TIMEOUT,
        CloseReason::DuplicateClientId => Reason::SESSION_TAKEN_OVER,
        CloseReason::MaximumPayloadExceeded => Reason::PACKET_TOO_LARGE,
        CloseReason::ParseError => Reason::MALFORMED_PACKET,
        CloseReason::ProtocolViolation => Reason::PROTOCOL_ERROR,
        _ => Reason::UNSPECIFIED_ERROR,
    }
}
