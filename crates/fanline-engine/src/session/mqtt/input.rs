//! Input of a client: packets and their effects.

use std::ops::Range;
use std::time::Duration;

use super::{MqttSession, events, parts};
use crate::codec::mqtt::{Ended, Reason, Received, Verb};
use crate::codec::nats::error::CloseReason;
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::outbox::Chunk;
use crate::session::Receipt;

/// Largest number of input bytes from a client that does not wait for CONNACK. A client that sends more is
/// disconnected.
const EARLY_INPUT_BYTES_MAX: usize = 1024 * 1024;

impl MqttSession<'_> {
    /// Handles input; see [`Shard::receive`](crate::Shard::receive).
    pub(crate) fn receive(&mut self, chunk: &Chunk, range: Range<usize>, now: Duration) -> Receipt {
        let mut receipt = Receipt::default();
        self.broker.begin_input(self.id, now);
        self.take_input(&chunk[range], now, &mut receipt);
        self.broker.end_overrun();
        events::handle_events(self.broker);
        self.broker.note_outputs(self.id, &mut receipt);
        receipt
    }

    fn take_input(&mut self, input: &[u8], now: Duration, receipt: &mut Receipt) {
        let mqtt = self.state();
        if mqtt.connection.is_open() && !mqtt.early_input.is_empty() {
            self.take_early_input(input, now);
            receipt.consumed = input.len();
        } else {
            self.take_packets(input, now, receipt);
        }
    }

    /// Handles input that arrived before CONNACK, followed by `more`. A partial packet waits for its end.
    pub(super) fn take_early_input(&mut self, more: &[u8], now: Duration) {
        let mut early = std::mem::take(&mut self.state_mut().early_input);
        early.extend_from_slice(more);
        let mut receipt = Receipt::default();
        loop {
            let before = receipt.consumed;
            self.take_packets(&early, now, &mut receipt);
            if receipt.consumed == before || receipt.consumed >= early.len() {
                break;
            }
        }
        early.drain(..receipt.consumed.min(early.len()));
        self.state_mut().early_input = early;
    }

    /// Handles all whole packets of the input.
    fn take_packets(&mut self, input: &[u8], now: Duration, receipt: &mut Receipt) {
        while receipt.consumed < input.len() {
            let rest = &input[receipt.consumed..];
            let session = self.session_mut();
            if session.ending.is_some() {
                receipt.consumed = input.len();
                break;
            }
            let (mqtt, _) = parts(session);
            if mqtt.connection.awaits_admission() {
                mqtt.early_input.extend_from_slice(rest);
                receipt.consumed = input.len();
                if mqtt.early_input.len() > EARLY_INPUT_BYTES_MAX {
                    self.close_connection(CloseReason::ProtocolViolation);
                }
                break;
            }
            let before = self.begin_write();
            let (mqtt, out) = parts(self.session_mut());
            let received = mqtt.connection.receive(rest, now, out);
            self.count_written(before);
            match received {
                Received::Verb(verb, taken) => {
                    receipt.consumed += taken;
                    self.handle(&verb);
                    if self.session().check.is_some() {
                        receipt.awaits_check = true;
                        break;
                    }
                }
                Received::Partial { frame_bytes } => {
                    receipt.frame_bytes = frame_bytes;
                    break;
                }
                Received::Ended(ended) => self.end_with(ended),
            }
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.publish_outbound();
    }

    fn handle(&mut self, verb: &Verb<'_>) {
        if let Verb::Publish(publish) = verb
            && publish.packet_id == 0
            && !publish.retain
        {
            return self.enqueue_publish(publish);
        }
        // Messages in the outbound queue arrived before this packet.
        self.publish_outbound();
        match *verb {
            Verb::Nothing => {}
            Verb::Connect(ref connect) => self.connect(connect),
            Verb::Publish(ref publish) => self.publish_stored(publish),
            Verb::Store(ref publish) => self.receive_message(publish),
            Verb::Release { packet_id } => self.release_message(packet_id),
            Verb::Done { token } => self.message_done(token),
            Verb::StoreRelease { token, packet_id } => self.message_received(token, packet_id),
            Verb::Complete { packet_id, .. } => self.complete_release(packet_id),
            Verb::Subscribe(ref subscribe) => self.subscribe(subscribe),
            Verb::Unsubscribe(ref unsubscribe) => self.unsubscribe(unsubscribe),
            Verb::Disconnect => self.close_connection(CloseReason::ClientClosed),
        }
    }

    /// Closes a connection after an invalid packet. The answer to the client, if MQTT has one, is already
    /// written.
    pub(super) fn end_with(&mut self, Ended(wrong): Ended) {
        // Messages that arrived before the invalid packet are still published.
        self.publish_outbound();
        let outputs = &mut self.broker.exchange.outputs;
        outputs.notice(self.id, || format!("MQTT: {wrong}"));
        self.close_connection(match wrong.reason {
            Reason::KEEP_ALIVE_TIMEOUT => CloseReason::StaleConnection,
            Reason::PACKET_TOO_LARGE => CloseReason::MaximumPayloadExceeded,
            Reason::UNSUPPORTED_PROTOCOL_VERSION => CloseReason::BadClientProtocolVersion,
            Reason::MALFORMED_PACKET => CloseReason::ParseError,
            _ => CloseReason::ProtocolViolation,
        });
    }

    /// Closes a connection with a DISCONNECT that contains the reason.
    pub(super) fn end_because(&mut self, reason: Reason, message: &'static str) {
        self.publish_outbound();
        self.write(|mqtt, out| mqtt.connection.close(reason, message, out));
        let outputs = &mut self.broker.exchange.outputs;
        outputs.notice(self.id, || format!("MQTT: {message}"));
        self.close_connection(match reason {
            Reason::SESSION_TAKEN_OVER => CloseReason::DuplicateClientId,
            Reason::PACKET_TOO_LARGE => CloseReason::MaximumPayloadExceeded,
            _ => CloseReason::ProtocolViolation,
        });
    }
}
