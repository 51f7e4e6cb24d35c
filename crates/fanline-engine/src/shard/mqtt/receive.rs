//! What the packets of a client do.

use std::ops::Range;
use std::time::Duration;

use super::super::SessionId;
use super::super::{PRODUCED_BYTES_MAX, Receipt, Shard};
use crate::codec::mqtt::{Ended, Reason, Received, Verb};
use crate::codec::nats::error::CloseReason;
use crate::outbox::Chunk;

/// Most bytes that are kept of a client that does not wait to be let in. More: closed.
const EARLY_BYTES_MAX: usize = 1024 * 1024;

impl Shard {
    /// Takes bytes of an MQTT client; see [`Shard::receive`].
    pub(in crate::shard) fn receive_mqtt(
        &mut self,
        id: SessionId,
        chunk: &Chunk,
        range: Range<usize>,
        now: Duration,
    ) -> Receipt {
        let mut receipt = Receipt::default();
        self.broker.exchange.outputs.begin_batch();
        self.broker.exchange.outputs.now = now;
        self.broker.exchange.sessions[id.index()].active_at = now;
        self.take_input(id, &chunk[range], now, &mut receipt);
        self.end_overrun();
        self.take_answers();
        receipt.produced_bytes = self.broker.exchange.outputs.produced_bytes;
        if let Some((congested, _)) = self.broker.exchange.outputs.congested {
            self.broker.exchange.sessions[id.index()].stalls += 1;
            receipt.congested = Some(congested);
        }
        receipt
    }

    fn take_input(&mut self, id: SessionId, input: &[u8], now: Duration, receipt: &mut Receipt) {
        let mqtt = self.broker.exchange.sessions[id.index()].kind.mqtt.as_ref();
        if mqtt.is_some_and(|mqtt| mqtt.link.is_open() && !mqtt.early.is_empty()) {
            self.take_early(id, input, now);
            receipt.consumed = input.len();
        } else {
            self.take_packets(id, input, now, receipt);
        }
    }

    /// Takes what came before a client was let in, and what comes now. What is not whole waits on.
    pub(super) fn take_early(&mut self, id: SessionId, more: &[u8], now: Duration) {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let mut early = std::mem::take(&mut mqtt.early);
        early.extend_from_slice(more);
        let mut receipt = Receipt::default();
        loop {
            let before = receipt.consumed;
            self.take_packets(id, &early, now, &mut receipt);
            if receipt.consumed == before || receipt.consumed >= early.len() {
                break;
            }
        }
        early.drain(..receipt.consumed.min(early.len()));
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt {
            mqtt.early = early;
        }
    }

    /// Takes as many packets as there are.
    fn take_packets(&mut self, id: SessionId, input: &[u8], now: Duration, receipt: &mut Receipt) {
        while receipt.consumed < input.len() {
            let rest = &input[receipt.consumed..];
            let session = &mut self.broker.exchange.sessions[id.index()];
            let (None, Some(mqtt)) = (session.ending, &mut session.kind.mqtt) else {
                receipt.consumed = input.len();
                break;
            };
            if mqtt.link.is_asked() {
                mqtt.early.extend_from_slice(rest);
                receipt.consumed = input.len();
                if mqtt.early.len() > EARLY_BYTES_MAX {
                    self.end(id, CloseReason::ProtocolViolation);
                }
                break;
            }
            let before = session.out.pending_bytes();
            let received = mqtt.link.receive(rest, now, &mut session.out);
            self.note_written(id, before);
            match received {
                Received::Verb(verb, taken) => {
                    receipt.consumed += taken;
                    self.obey_packet(id, &verb);
                    if self.broker.exchange.sessions[id.index()].check.is_some() {
                        receipt.awaits_check = true;
                        break;
                    }
                }
                Received::Partial { frame_bytes } => {
                    receipt.frame_bytes = frame_bytes;
                    break;
                }
                Received::Ended(ended) => self.end_wrong(id, ended),
            }
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.publish_gathered(id);
    }

    fn obey_packet(&mut self, id: SessionId, verb: &Verb<'_>) {
        if let Verb::Publish(publish) = verb
            && publish.packet_id == 0
            && !publish.retain
        {
            return self.gather(id, publish);
        }
        // What was published before comes before.
        self.publish_gathered(id);
        match *verb {
            Verb::Nothing => {}
            Verb::Connect(ref connect) => self.connect_mqtt(id, connect),
            Verb::Publish(ref publish) => self.publish_kept(id, publish),
            Verb::Hold(ref publish) => self.hold_message(id, publish),
            Verb::Release { packet_id } => self.release_message(id, packet_id),
            Verb::Done { token } => self.message_done(id, token),
            Verb::Note { token, packet_id } => self.note_received(id, token, packet_id),
            Verb::Complete { packet_id, .. } => self.complete_release(id, packet_id),
            Verb::Subscribe(ref subscribe) => self.subscribe_mqtt(id, subscribe),
            Verb::Unsubscribe(ref unsubscribe) => self.unsubscribe_mqtt(id, unsubscribe),
            Verb::Disconnect => self.end(id, CloseReason::ClientClosed),
        }
    }

    /// Something may have been written for a client, that had so many bytes waiting before.
    pub(super) fn note_written(&mut self, id: SessionId, before: usize) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.out.pending_bytes() > before {
            self.broker.exchange.outputs.mark_dirty(id.0, session);
            self.broker
                .exchange
                .outputs
                .count_produced(id.0, session, before);
            // A client that asks and never reads the answers is a slow consumer too.
            if std::mem::take(&mut self.broker.exchange.outputs.overflowed) {
                self.end(id, CloseReason::SlowConsumerPendingBytes);
            }
        }
    }

    /// Ends a connection whose client was told why, if it can be.
    pub(super) fn end_wrong(&mut self, id: SessionId, Ended(wrong): Ended) {
        // What it published before counts.
        self.publish_gathered(id);
        self.broker
            .exchange
            .outputs
            .notice(id, || format!("MQTT: {wrong}"));
        let reason = match wrong.reason {
            Reason::KEEP_ALIVE_TIMEOUT => CloseReason::StaleConnection,
            Reason::PACKET_TOO_LARGE => CloseReason::MaximumPayloadExceeded,
            Reason::UNSUPPORTED_PROTOCOL_VERSION => CloseReason::BadClientProtocolVersion,
            Reason::MALFORMED_PACKET => CloseReason::ParseError,
            _ => CloseReason::ProtocolViolation,
        };
        self.end(id, reason);
    }

    /// Ends a connection and tells its client why.
    pub(super) fn end_because(&mut self, id: SessionId, reason: Reason, why: &'static str) {
        self.publish_gathered(id);
        let session = &mut self.broker.exchange.sessions[id.index()];
        let before = session.out.pending_bytes();
        if let Some(mqtt) = &mut session.kind.mqtt {
            mqtt.link.close(reason, why, &mut session.out);
        }
        self.note_written(id, before);
        let reason = match reason {
            Reason::SESSION_TAKEN_OVER => CloseReason::DuplicateClientId,
            Reason::PACKET_TOO_LARGE => CloseReason::MaximumPayloadExceeded,
            _ => CloseReason::ProtocolViolation,
        };
        self.broker
            .exchange
            .outputs
            .notice(id, || format!("MQTT: {why}"));
        self.end(id, reason);
    }
}
