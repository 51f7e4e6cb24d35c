//! The protocol of one connection: handles its packets, writes responses, and returns the actions that the
//! caller must perform.

use std::time::Duration;

use super::alias::{AliasesIn, AliasesOut};
use super::decode::{Frame, Framed, decode, frame};
use super::encode::{self, ConnAckProperties, PublishHead};
use super::incoming::{Incoming, Step as InStep};
use super::outgoing::{Outgoing, Resend, Sent, Step as OutStep};
use super::packet::{Ack, AckKind, Connect, Disconnect, Packet, Publish};
use super::property::{Properties, Property};
use super::reason::{Reason, Wrong};
use super::verb::{Accepted, Delivery, Ended, Received, Refused, Verb, Will};
use super::{
    ALIASES_IN_MAX, ALIASES_OUT_MAX, CLIENT_ID_BYTES_MAX, CONNECT_BYTES_MAX, Qos, Version,
};
use crate::limits::MqttLimits;
use crate::outbox::Outbox;

/// Session expiry interval of a session that never expires (3.1.2.11.2).
const NEVER_EXPIRES: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No packet has arrived.
    Fresh,
    /// CONNECT has arrived, and the caller decides about admission.
    AwaitsAdmission,
    Open,
    Ended,
}

/// The protocol state of one connection.
///
/// # Order of calls
///
/// Call [`receive`](Connection::receive) for input, and [`handle_timeout`](Connection::handle_timeout) at
/// [`next_timeout`](Connection::next_timeout). Perform each verb as its documentation says. When the
/// connection has ended for any reason, call [`take_will`](Connection::take_will).
#[derive(Debug)]
pub struct Connection {
    settings: MqttLimits,
    version: Version,
    phase: Phase,
    keep_alive: u16,
    received_at: Duration,
    expiry: u32,
    /// Whether the client accepts reason strings (3.1.2.11.7).
    accepts_reason_strings: bool,
    packet_bytes_max: usize,
    will: Option<Box<Will>>,
    incoming: Incoming,
    outgoing: Outgoing,
    aliases_in: AliasesIn,
    aliases_out: AliasesOut,
    /// Reused buffer for properties that only this client receives.
    scratch: Vec<u8>,
}

impl Connection {
    /// Creates the state of a new connection.
    pub fn new(settings: MqttLimits, now: Duration) -> Self {
        Connection {
            settings,
            version: Version::V4,
            phase: Phase::Fresh,
            keep_alive: 0,
            received_at: now,
            expiry: 0,
            accepts_reason_strings: true,
            packet_bytes_max: usize::MAX,
            will: None,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            aliases_in: AliasesIn::default(),
            aliases_out: AliasesOut::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns whether the client was admitted and the connection has not ended.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Returns whether the caller must decide about admission. Until then, no input is handled.
    pub fn awaits_admission(&self) -> bool {
        self.phase == Phase::AwaitsAdmission
    }

    /// Returns the protocol version, which CONNECT selects.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns how many seconds the session outlives the connection; `u32::MAX` means forever.
    pub fn session_expiry(&self) -> u32 {
        self.expiry
    }

    /// Returns the maximum number of seconds between two packets of the client; 0 means no limit.
    pub fn keep_alive(&self) -> u16 {
        self.keep_alive
    }

    /// Returns the number of messages above QoS 0 that the client has not acknowledged.
    pub fn in_flight(&self) -> usize {
        self.outgoing.len()
    }

    /// Returns the token of a message that is in flight to the client.
    pub fn token_of(&self, packet_id: u16) -> Option<u64> {
        self.outgoing.token(packet_id)
    }

    /// Returns whether another message above QoS 0 may be sent.
    pub fn has_room(&self) -> bool {
        self.outgoing.has_room()
    }

    /// Handles the packet at the front of `input`.
    #[inline]
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        now: Duration,
        out: &mut Outbox,
    ) -> Received<'a> {
        let bytes_max = match self.phase {
            Phase::Fresh => CONNECT_BYTES_MAX,
            Phase::AwaitsAdmission => return Received::Partial { frame_bytes: 0 },
            Phase::Open | Phase::Ended => self.settings.packet_bytes_max,
        };
        let frame = match frame(input, bytes_max) {
            Framed::Whole(frame) => frame,
            Framed::Partial { frame_bytes } => return Received::Partial { frame_bytes },
            Framed::Wrong(wrong) => return self.fail(wrong, out),
        };
        self.received_at = now;
        if self.phase == Phase::Fresh {
            return self.receive_first(&frame, out);
        }
        match decode(&frame, self.version).and_then(|packet| self.handle(packet, out)) {
            Ok(verb) => Received::Verb(verb, frame.bytes),
            Err(wrong) => self.fail(wrong, out),
        }
    }

    #[cold]
    fn receive_first<'a>(&mut self, frame: &Frame<'a>, out: &mut Outbox) -> Received<'a> {
        self.version = version_of(frame);
        let connect = match decode(frame, self.version) {
            Ok(Packet::Connect(connect)) => connect,
            // MQTT-3.1.0-1. Before CONNECT, no packet can report the error.
            Ok(_) => {
                self.phase = Phase::Ended;
                return Received::Ended(Ended(Wrong::protocol("the first packet must be CONNECT")));
            }
            Err(wrong) => return self.fail(wrong, out),
        };
        match self.connect(&connect) {
            Ok(()) => Received::Verb(Verb::Connect(connect), frame.bytes),
            Err(wrong) => self.fail(wrong, out),
        }
    }

    /// Ends the connection after an error. Reports the error to the client if MQTT has a packet for it.
    #[cold]
    fn fail<'a>(&mut self, wrong: Wrong, out: &mut Outbox) -> Received<'a> {
        match self.phase {
            // A CONNACK of 3.1.1 reports only errors that have a return code, and no malformed packets
            // (sections 3.1.4 and 3.2.2.3 of 3.1.1).
            Phase::Fresh if self.version == Version::V5 || has_return_code(wrong.reason) => {
                self.refuse_connect(wrong, out);
            }
            Phase::Open => self.send_disconnect(wrong, out),
            Phase::Fresh | Phase::AwaitsAdmission | Phase::Ended => {}
        }
        self.phase = Phase::Ended;
        Received::Ended(Ended(wrong))
    }

    fn refuse_connect(&mut self, wrong: Wrong, out: &mut Outbox) {
        let max = self.packet_bytes_max;
        // MQTT-3.2.2-6: no session is present. MQTT-3.2.2-19: if the packet is too large, omit the reason
        // string.
        for reason_string in [self.reason_string(wrong), ""] {
            let properties = ConnAckProperties {
                reason_string,
                ..ConnAckProperties::default()
            };
            if encode::conn_ack(out, self.version, false, wrong.reason, &properties, max) {
                break;
            }
        }
    }

    fn send_disconnect(&self, wrong: Wrong, out: &mut Outbox) {
        if self.version == Version::V5 {
            let max = self.packet_bytes_max;
            // MQTT-3.14.2-3.
            let _ = encode::disconnect(out, wrong.reason, self.reason_string(wrong), max)
                || encode::disconnect(out, wrong.reason, "", max);
        }
    }

    fn reason_string(&self, wrong: Wrong) -> &'static str {
        if self.accepts_reason_strings {
            wrong.message
        } else {
            ""
        }
    }

    fn connect(&mut self, connect: &Connect<'_>) -> Result<(), Wrong> {
        self.keep_alive = connect.keep_alive;
        // A session of 3.1.1 either ends with its connection or never expires.
        self.expiry = match (self.version, connect.clean_start) {
            (Version::V4, false) => NEVER_EXPIRES,
            _ => 0,
        };
        self.outgoing.set_max(self.settings.in_flight_max);
        // A later property may limit the size of the CONNACK that reports the error, so all properties are
        // read first.
        let mut refused = None;
        for property in connect.properties.iter() {
            if let Err(wrong) = self.apply_connect_property(&property) {
                refused.get_or_insert(wrong);
            }
        }
        if let Some(wrong) = refused {
            return Err(wrong);
        }
        let is_nameless = connect.client_id.is_empty();
        // 3.1.1 MQTT-3.1.3-8.
        if self.version == Version::V4 && is_nameless && !connect.clean_start {
            let message = "an empty client identifier requires a clean session";
            return Err(Wrong::because(Reason::CLIENT_ID_NOT_VALID, message));
        }
        if connect.client_id.len() > CLIENT_ID_BYTES_MAX {
            let message = "the client identifier is too long";
            return Err(Wrong::because(Reason::CLIENT_ID_NOT_VALID, message));
        }
        if let Some(will) = &connect.will {
            // MQTT-3.2.2-12.
            if self.settings.reject_qos2_publish && will.qos == Qos::ExactlyOnce {
                let message = "the QoS of a will must be 0 or 1, got 2";
                return Err(Wrong::because(Reason::QOS_NOT_SUPPORTED, message));
            }
            self.will = Some(Box::new(Will::new(will)));
        }
        self.phase = Phase::AwaitsAdmission;
        Ok(())
    }

    fn apply_connect_property(&mut self, property: &Property<'_>) -> Result<(), Wrong> {
        match *property {
            Property::SessionExpiry(seconds) => {
                let max = self.settings.session_expiry_max.unwrap_or(NEVER_EXPIRES);
                self.expiry = seconds.min(max);
            }
            Property::ReceiveMaximum(max) => {
                self.outgoing.set_max(max.min(self.settings.in_flight_max));
            }
            Property::MaximumPacketSize(bytes) => {
                self.packet_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
            }
            Property::TopicAliasMaximum(max) => {
                self.aliases_out = AliasesOut::new(max.min(ALIASES_OUT_MAX));
            }
            Property::RequestProblem(wants) => self.accepts_reason_strings = wants,
            // 4.12: no authentication method is supported.
            Property::AuthenticationMethod(_) => {
                let message = "enhanced authentication is not supported";
                return Err(Wrong::because(Reason::BAD_AUTHENTICATION_METHOD, message));
            }
            // MQTT-3.1.2.11.10.
            Property::AuthenticationData(_) => {
                return Err(Wrong::protocol(
                    "authentication data requires an authentication method",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Admits a client and writes CONNACK. Returns `Some` if the connection ends because CONNACK is larger
    /// than the packets that the client accepts.
    pub fn accept(
        &mut self,
        accepted: &Accepted<'_>,
        now: Duration,
        out: &mut Outbox,
    ) -> Option<Ended> {
        if self.phase != Phase::AwaitsAdmission {
            return None;
        }
        self.phase = Phase::Open;
        self.received_at = now;
        let mut properties = ConnAckProperties::default();
        if self.version == Version::V5 {
            let settings = &self.settings;
            let requested = self.keep_alive;
            if let Some(max) = settings.keep_alive_max
                && (requested == 0 || requested > max)
            {
                self.keep_alive = max;
                properties.keep_alive = Some(max);
            }
            self.aliases_in = AliasesIn::new(ALIASES_IN_MAX);
            properties.alias_maximum = ALIASES_IN_MAX;
            properties.receive_maximum = Some(settings.receive_maximum.max(1));
            properties.packet_bytes_max = u32::try_from(settings.packet_bytes_max).ok();
            properties.maximum_qos = settings.reject_qos2_publish.then_some(Qos::AtLeastOnce);
            properties.session_expiry = settings.session_expiry_max.map(|_| self.expiry);
            properties.assigned_client_id = accepted.assigned_client_id;
        }
        let present = accepted.session_present;
        let max = self.packet_bytes_max;
        let is_sent = encode::conn_ack(
            out,
            self.version,
            present,
            Reason::SUCCESS,
            &properties,
            max,
        );
        (!is_sent).then(|| self.refuse_too_large(out))
    }

    /// Ends a connection because the client does not accept a packet of the required size (MQTT-3.1.2-24).
    #[cold]
    fn end_too_large(&mut self, message: &'static str, out: &mut Outbox) -> Ended {
        let wrong = Wrong::because(Reason::PACKET_TOO_LARGE, message);
        self.send_disconnect(wrong, out);
        self.phase = Phase::Ended;
        Ended(wrong)
    }

    /// Ends a connection because the client does not accept the CONNACK. Before a CONNACK, no DISCONNECT may
    /// be sent (MQTT-3.14.0-1), so a shorter CONNACK refuses the client. The will is not published, because
    /// the client was never admitted.
    #[cold]
    fn refuse_too_large(&mut self, out: &mut Outbox) -> Ended {
        let wrong = Wrong::because(
            Reason::PACKET_TOO_LARGE,
            "CONNACK exceeds the client's maximum packet size",
        );
        self.refuse_connect(wrong, out);
        self.will = None;
        self.phase = Phase::Ended;
        Ended(wrong)
    }

    /// Refuses a client after its CONNECT. The client's will is not published, because the client was never
    /// admitted.
    pub fn refuse(&mut self, reason: Reason, out: &mut Outbox) {
        if self.phase == Phase::AwaitsAdmission {
            let message = "";
            self.refuse_connect(Wrong { reason, message }, out);
            self.will = None;
            self.phase = Phase::Ended;
        }
    }

    /// Ends a connection for a reason of the server, for example because the session was taken over or the
    /// server stops.
    pub fn close(&mut self, reason: Reason, message: &'static str, out: &mut Outbox) {
        if self.phase == Phase::Open {
            self.send_disconnect(Wrong::because(reason, message), out);
        }
        self.phase = Phase::Ended;
    }

    /// Returns the will that would be published if the connection ended now.
    pub fn will(&self) -> Option<&Will> {
        self.will.as_deref()
    }

    /// Takes the will, unless the client has discarded it with DISCONNECT. Call it once, after the connection
    /// has ended.
    pub fn take_will(&mut self) -> Option<Box<Will>> {
        self.will.take()
    }

    fn handle<'a>(&mut self, packet: Packet<'a>, out: &mut Outbox) -> Result<Verb<'a>, Wrong> {
        if self.phase == Phase::Ended {
            return Ok(Verb::Nothing);
        }
        match packet {
            Packet::Publish(publish) => self.publish(publish, out),
            Packet::Ack(ack) => self.ack(&ack, out),
            Packet::Subscribe(subscribe) => Ok(Verb::Subscribe(subscribe)),
            Packet::Unsubscribe(unsubscribe) => Ok(Verb::Unsubscribe(unsubscribe)),
            Packet::Ping => {
                encode::ping_response(out);
                Ok(Verb::Nothing)
            }
            Packet::Disconnect(disconnect) => self.disconnect(&disconnect),
            // MQTT-3.1.0-2.
            Packet::Connect(_) => Err(Wrong::protocol("CONNECT must be sent only once")),
            // MQTT-4.12.0-6 and -7: no enhanced authentication is in progress.
            Packet::Auth(_) => Err(Wrong::protocol(
                "AUTH requires an authentication method in CONNECT",
            )),
        }
    }

    #[inline]
    fn publish<'a>(&mut self, publish: Publish<'a>, out: &mut Outbox) -> Result<Verb<'a>, Wrong> {
        if !publish.properties.is_empty() {
            self.apply_publish_properties(&publish)?;
        }
        let receive_maximum = match self.version {
            Version::V4 => None,
            Version::V5 => Some(self.settings.receive_maximum.max(1)),
        };
        match publish.qos {
            Qos::AtMostOnce => Ok(Verb::Publish(publish)),
            Qos::AtLeastOnce => {
                self.incoming.publish_once(receive_maximum)?;
                Ok(Verb::Publish(publish))
            }
            Qos::ExactlyOnce => {
                // MQTT-3.2.2-11.
                if self.settings.reject_qos2_publish {
                    let message = "the QoS of a message must be 0 or 1, got 2";
                    return Err(Wrong::because(Reason::QOS_NOT_SUPPORTED, message));
                }
                let id = publish.packet_id;
                let step = self.incoming.publish_exactly(id, receive_maximum)?;
                Ok(match step {
                    InStep::Take => Verb::Store(publish),
                    InStep::Wait => Verb::Nothing,
                    InStep::Answer(reason) => {
                        encode::ack(out, self.version, AckKind::PubRec, id, reason);
                        Verb::Nothing
                    }
                })
            }
        }
    }

    fn apply_publish_properties(&mut self, publish: &Publish<'_>) -> Result<(), Wrong> {
        for property in publish.properties.iter() {
            match property {
                Property::TopicAlias(alias) if publish.topic.is_empty() => {
                    self.aliases_in.get(alias)?;
                }
                Property::TopicAlias(alias) => self.aliases_in.set(alias, publish.topic)?,
                // MQTT-3.3.4-6.
                Property::SubscriptionId(_) => {
                    return Err(Wrong::protocol(
                        "a client must not publish with a subscription identifier",
                    ));
                }
                // MQTT-3.3.2-14.
                Property::ResponseTopic(topic)
                    if topic.is_empty() || topic.contains(['+', '#']) =>
                {
                    return Err(Wrong::protocol(
                        "a response topic must not be empty, or contain + or #",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the topic name of a publish that [`receive`](Connection::receive) has just returned.
    #[inline]
    pub fn topic_of<'a>(&'a self, publish: &Publish<'a>) -> &'a str {
        if !publish.topic.is_empty() {
            return publish.topic;
        }
        let alias = publish
            .properties
            .iter()
            .find_map(|property| match property {
                Property::TopicAlias(alias) => Some(alias),
                _ => None,
            });
        alias.map_or("", |alias| self.aliases_in.get(alias).unwrap_or_default())
    }

    fn ack<'a>(&mut self, ack: &Ack<'_>, out: &mut Outbox) -> Result<Verb<'a>, Wrong> {
        let packet_id = ack.packet_id;
        if ack.kind == AckKind::PubRel {
            return Ok(match self.incoming.release(packet_id)? {
                InStep::Take => Verb::Release { packet_id },
                InStep::Wait => Verb::Nothing,
                InStep::Answer(reason) => {
                    encode::ack(out, self.version, AckKind::PubComp, packet_id, reason);
                    Verb::Nothing
                }
            });
        }
        let step = match ack.kind {
            AckKind::PubAck => self.outgoing.acknowledged(packet_id)?,
            AckKind::PubRec => self.outgoing.received(packet_id, ack.reason)?,
            AckKind::PubRel | AckKind::PubComp => self.outgoing.complete(packet_id)?,
        };
        Ok(match step {
            OutStep::Done { token } => Verb::Done { token },
            OutStep::Received { token } => Verb::StoreRelease { token, packet_id },
            OutStep::Complete { token } => Verb::Complete { token, packet_id },
            OutStep::Release(reason) => {
                encode::ack(out, self.version, AckKind::PubRel, packet_id, reason);
                Verb::Nothing
            }
            OutStep::Ignore => Verb::Nothing,
        })
    }

    fn disconnect<'a>(&mut self, disconnect: &Disconnect<'_>) -> Result<Verb<'a>, Wrong> {
        for property in disconnect.properties.iter() {
            match property {
                // MQTT-3.14.2.2.2: if the expiry interval in CONNECT was 0, DISCONNECT cannot change it.
                Property::SessionExpiry(seconds) if seconds > 0 && self.expiry == 0 => {
                    return Err(Wrong::protocol(
                        "DISCONNECT must not change a session expiry interval of 0",
                    ));
                }
                Property::SessionExpiry(seconds) => {
                    let max = self.settings.session_expiry_max.unwrap_or(NEVER_EXPIRES);
                    self.expiry = seconds.min(max);
                }
                // Table 2-4: only a server may send this property in DISCONNECT.
                Property::ServerReference(_) => {
                    return Err(Wrong::malformed(
                        "only a server may send a server reference",
                    ));
                }
                _ => {}
            }
        }
        // A DISCONNECT that reports success discards the will (MQTT-3.14.4-3 in both versions).
        if disconnect.reason == Reason::SUCCESS {
            self.will = None;
        }
        self.phase = Phase::Ended;
        Ok(Verb::Disconnect)
    }

    /// Writes PUBACK after a message of QoS 1 was stored, or with the reason why the message was not stored.
    /// 3.1.1 has no reason codes: there the connection ends after a failure, and the result is `Some`.
    pub fn acknowledge(
        &mut self,
        packet_id: u16,
        reason: Reason,
        out: &mut Outbox,
    ) -> Option<Ended> {
        if self.incoming.acknowledged() && self.phase == Phase::Open {
            return self.answer(AckKind::PubAck, packet_id, reason, out);
        }
        None
    }

    /// Writes PUBREC after a message of QoS 2 was stored, or with the reason why the message was not stored;
    /// see [`acknowledge`](Self::acknowledge).
    pub fn stored(&mut self, packet_id: u16, reason: Reason, out: &mut Outbox) -> Option<Ended> {
        let is_stored = !reason.is_failure();
        if self.incoming.stored(packet_id, is_stored) && self.phase == Phase::Open {
            return self.answer(AckKind::PubRec, packet_id, reason, out);
        }
        None
    }

    /// Writes PUBCOMP after a message of QoS 2 was published.
    pub fn released(&mut self, packet_id: u16, out: &mut Outbox) {
        if self.incoming.released(packet_id) && self.phase == Phase::Open {
            encode::ack(
                out,
                self.version,
                AckKind::PubComp,
                packet_id,
                Reason::SUCCESS,
            );
        }
    }

    /// Writes PUBREL after the caller has stored that the client received a message of QoS 2.
    pub fn release_stored(&mut self, packet_id: u16, out: &mut Outbox) {
        if self.outgoing.release_stored(packet_id) && self.phase == Phase::Open {
            encode::ack(
                out,
                self.version,
                AckKind::PubRel,
                packet_id,
                Reason::SUCCESS,
            );
        }
    }

    fn answer(
        &mut self,
        kind: AckKind,
        packet_id: u16,
        reason: Reason,
        out: &mut Outbox,
    ) -> Option<Ended> {
        if self.version == Version::V4 && reason.is_failure() {
            self.phase = Phase::Ended;
            let message = "the message was not accepted";
            return Some(Ended(Wrong::because(reason, message)));
        }
        encode::ack(out, self.version, kind, packet_id, reason);
        None
    }

    /// Returns the QoS that is granted to a filter, given the requested QoS.
    pub fn granted(&self, requested: Qos) -> Qos {
        match self.settings.downgrade_qos2_subscribe {
            true => requested.min(Qos::AtLeastOnce),
            false => requested,
        }
    }

    /// Writes SUBACK with a reason for each filter, in order (MQTT-3.8.4-5 and -6).
    pub fn subscribed(
        &mut self,
        packet_id: u16,
        reasons: &[Reason],
        out: &mut Outbox,
    ) -> Option<Ended> {
        self.answer_filters(true, packet_id, reasons, out)
    }

    /// Writes UNSUBACK with a reason for each filter, in order (MQTT-3.11.3-1).
    pub fn unsubscribed(
        &mut self,
        packet_id: u16,
        reasons: &[Reason],
        out: &mut Outbox,
    ) -> Option<Ended> {
        self.answer_filters(false, packet_id, reasons, out)
    }

    fn answer_filters(
        &mut self,
        is_subscribe: bool,
        packet_id: u16,
        reasons: &[Reason],
        out: &mut Outbox,
    ) -> Option<Ended> {
        let (version, max) = (self.version, self.packet_bytes_max);
        let is_sent = encode::filter_ack(out, version, is_subscribe, packet_id, reasons, max);
        (!is_sent).then(|| {
            self.end_too_large("the response exceeds the client's maximum packet size", out)
        })
    }

    /// Restores a message that was in flight to the client when the session was stored. Call it in the order
    /// in which the messages were sent, after [`accept`](Connection::accept) and before
    /// [`resend`](Connection::resend).
    pub fn restore(&mut self, packet_id: u16, token: u64, qos: Qos, was_received: bool) {
        self.outgoing.restore(packet_id, token, qos, was_received);
    }

    /// Restores the packet identifiers of QoS 2 messages that wait for PUBREL.
    pub fn restore_received(&mut self, received: impl Iterator<Item = u16>) {
        self.incoming.resume(received);
    }

    /// Sends messages in flight again. Writes PUBRELs, and calls `publish` with the packet identifier and the
    /// token of each message (MQTT-4.4.0-1, 4.6).
    pub fn resend(
        &mut self,
        out: &mut Outbox,
        mut publish: impl FnMut(&mut Connection, u16, u64, &mut Outbox),
    ) {
        for resend in self.outgoing.resend() {
            match resend {
                Resend::Publish { id, token } => publish(self, id, token, out),
                Resend::Release { id } => {
                    self.outgoing.release_stored(id);
                    encode::ack(out, self.version, AckKind::PubRel, id, Reason::SUCCESS);
                }
            }
        }
    }

    /// Queues a message without its payload, which the caller then appends. Returns the packet identifier,
    /// which is 0 for QoS 0.
    ///
    /// # Errors
    ///
    /// Returns why nothing was queued.
    #[inline]
    pub fn deliver(&mut self, delivery: &Delivery<'_>, out: &mut Outbox) -> Result<u16, Refused> {
        let packet_id = match delivery.qos {
            Qos::AtMostOnce => 0,
            qos => match self.outgoing.send(delivery.token, qos, delivery.packet_id) {
                Sent::As(id) => id,
                Sent::UnderWay => return Err(Refused::UnderWay),
                Sent::NoRoom => return Err(Refused::NoRoom),
            },
        };
        match self.write(packet_id, delivery, out) {
            true => Ok(packet_id),
            false => Err(Refused::TooLarge),
        }
    }

    /// Reserves room in the client's receive window for a message of QoS 2 with this packet identifier.
    /// Returns false if there is no room. After true, the caller must call
    /// [`deliver_reserved`](Connection::deliver_reserved) or [`unreserve`](Connection::unreserve).
    pub fn reserve(&mut self, token: u64, packet_id: u16) -> bool {
        let sent = self.outgoing.send(token, Qos::ExactlyOnce, Some(packet_id));
        sent == Sent::As(packet_id)
    }

    /// Frees the reserved room.
    pub fn unreserve(&mut self, packet_id: u16) {
        self.outgoing.unsend(packet_id);
    }

    /// Queues a message with reserved room, without its payload. Returns false if the client does not accept
    /// the packet.
    pub fn deliver_reserved(
        &mut self,
        packet_id: u16,
        delivery: &Delivery<'_>,
        out: &mut Outbox,
    ) -> bool {
        self.write(packet_id, delivery, out)
    }

    #[inline]
    fn write(&mut self, packet_id: u16, delivery: &Delivery<'_>, out: &mut Outbox) -> bool {
        self.scratch.clear();
        let mut topic = delivery.topic;
        let mut is_alias_new = false;
        if self.version == Version::V5 {
            for identifier in delivery.identifiers {
                Property::SubscriptionId(*identifier).write(&mut self.scratch);
            }
            if let Some((alias, is_new)) = self.aliases_out.of(topic) {
                Property::TopicAlias(alias).write(&mut self.scratch);
                is_alias_new = is_new;
                topic = if is_new { topic } else { "" };
            }
        }
        let head = PublishHead {
            version: self.version,
            topic,
            packet_id,
            qos: delivery.qos,
            dup: delivery.dup && delivery.qos != Qos::AtMostOnce,
            retain: delivery.retain,
            properties: delivery.properties,
            own_properties: Properties::written(&self.scratch),
            payload_bytes: delivery.payload_bytes,
        };
        if head.write(out, self.packet_bytes_max) {
            return true;
        }
        if is_alias_new {
            self.aliases_out.remove(delivery.topic);
        }
        if packet_id != 0 {
            self.outgoing.unsend(packet_id);
        }
        false
    }

    /// Returns the time at which the caller must call [`handle_timeout`](Connection::handle_timeout): one and
    /// a half times the keep alive after the last packet (MQTT-3.1.2-22; 3.1.1 MQTT-3.1.2-24).
    pub fn next_timeout(&self) -> Option<Duration> {
        let is_open = self.phase == Phase::Open && self.keep_alive > 0;
        let timeout = Duration::from_secs(u64::from(self.keep_alive)) * 3 / 2;
        is_open.then_some(self.received_at + timeout)
    }

    /// Ends a connection whose client has sent nothing for too long.
    pub fn handle_timeout(&mut self, now: Duration, out: &mut Outbox) -> Option<Ended> {
        if self.next_timeout().is_none_or(|at| now < at) {
            return None;
        }
        let message = "no packet arrived within 1.5 times the keep-alive interval";
        let wrong = Wrong::because(Reason::KEEP_ALIVE_TIMEOUT, message);
        self.send_disconnect(wrong, out);
        self.phase = Phase::Ended;
        Some(Ended(wrong))
    }
}

/// Returns the version of a CONNECT, so that the response to an invalid CONNECT has the right form. Any other
/// packet counts as 3.1.1.
fn version_of(frame: &Frame<'_>) -> Version {
    match frame.body.get(..7) {
        Some(b"\x00\x04MQTT\x05") => Version::V5,
        _ => Version::V4,
    }
}

/// Returns whether a CONNACK of 3.1.1 has a return code for the reason.
fn has_return_code(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::UNSUPPORTED_PROTOCOL_VERSION
            | Reason::CLIENT_ID_NOT_VALID
            | Reason::QOS_NOT_SUPPORTED
    )
}
