//! The saved state of a consumer.
//!
//! `docs/formats/consumer.md` describes the bytes.

use super::machine::{Consumer, Position};
use super::pending::Sent;
use crate::jetstream::DeliverPolicy;
use crate::store::Store;

const VERSION: u8 = 1;
/// Maximum number of deliveries. A higher number means that the state is damaged. The limit also prevents
/// overflows.
const CONSUMER_SEQUENCE_MAX: u64 = 1 << 62;
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Reason for which a saved state is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The state was written in an unknown version of the format.
    #[error("unknown version {0} of a consumer's state")]
    Version(u8),
    /// The state ends too early, or contains a number that is too large.
    #[error("the state of a consumer is damaged")]
    Damaged,
}

/// A saved state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    next: u64,
    delivered: Position,
    ack_floor: Position,
    pending: Vec<SavedSlot>,
    listed: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SavedSlot {
    stream_sequence: u64,
    consumer_sequence: u64,
    delivered_unix_millis: i64,
    deliveries: u32,
}

impl State {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let mut rest = match bytes {
            [VERSION, rest @ ..] => rest,
            [other, ..] => return Err(StateError::Version(*other)),
            [] => return Err(StateError::Damaged),
        };
        let rest = &mut rest;
        let next = read(rest)?;
        let (delivered, floor) = (read_position(rest)?, read_position(rest)?);
        let mut pending = Vec::new();
        let (mut sequence, mut millis) = (0_u64, 0_i64);
        for _ in 0..read(rest)? {
            sequence = sequence
                .checked_add(read(rest)?)
                .ok_or(StateError::Damaged)?;
            let consumer_sequence = read(rest)?;
            millis = millis.wrapping_add(unzigzag(read(rest)?));
            pending.push(SavedSlot {
                stream_sequence: sequence,
                consumer_sequence,
                delivered_unix_millis: millis,
                deliveries: u32::try_from(read(rest)?).unwrap_or(u32::MAX),
            });
        }
        let mut listed = Vec::new();
        let mut sequence = 0_u64;
        for _ in 0..read(rest)? {
            sequence = sequence
                .checked_add(read(rest)?)
                .ok_or(StateError::Damaged)?;
            listed.push(sequence);
        }
        Ok(State {
            next,
            delivered,
            ack_floor: floor,
            pending,
            listed,
        })
    }

    /// Returns whether the state refers to records after `last`, the last sequence of the log.
    fn is_ahead(&self, last: u64) -> bool {
        let positions = [self.delivered, self.ack_floor].map(|position| position.stream_sequence);
        let pending = self.pending.iter().map(|slot| slot.stream_sequence);
        let listed = self.listed.iter().copied();
        let mut known = positions.into_iter().chain(pending).chain(listed);
        self.next > last + 1 || known.any(|sequence| sequence > last)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        out.push(VERSION);
        write(out, self.next);
        for position in [&self.delivered, &self.ack_floor] {
            write(out, position.consumer_sequence);
            write(out, position.stream_sequence);
            write(
                out,
                u64::try_from(position.last_active.unwrap_or(0)).unwrap_or(0),
            );
        }
        write(out, self.pending.len() as u64);
        let (mut sequence, mut millis) = (0, 0_i64);
        for slot in &self.pending {
            write(out, slot.stream_sequence - sequence);
            write(out, slot.consumer_sequence);
            write(out, zigzag(slot.delivered_unix_millis.wrapping_sub(millis)));
            write(out, u64::from(slot.deliveries));
            (sequence, millis) = (slot.stream_sequence, slot.delivered_unix_millis);
        }
        write(out, self.listed.len() as u64);
        let mut before = 0;
        for sequence in &self.listed {
            write(out, sequence - before);
            before = *sequence;
        }
    }
}

impl Consumer {
    /// Writes the state to `out`, replacing the content.
    pub fn encode_state(&self, out: &mut Vec<u8>) {
        let mut listed: Vec<u64> = self.listed.iter().copied().collect();
        listed.extend(self.lanes.iter().flat_map(|lanes| lanes.sequences()));
        listed.sort_unstable();
        let pending = self.pending.iter().map(|slot| SavedSlot {
            stream_sequence: slot.stream_sequence,
            consumer_sequence: slot.consumer_sequence,
            delivered_unix_millis: slot.delivered_unix_nanos / NANOS_PER_MILLI,
            deliveries: slot.deliveries,
        });
        let state = State {
            next: self.next,
            delivered: self.delivered,
            ack_floor: self.ack_floor,
            pending: pending.collect(),
            listed,
        };
        state.encode(out);
    }

    /// Restores a saved state. The stream may have lost records in a crash, and will assign their sequences
    /// to other records. The state therefore forgets records after the end of the log. The changed state must
    /// be saved again before the stream stores records: [`is_unsaved`](Consumer::is_unsaved) is set.
    pub(super) fn restore(&mut self, state: State, store: &mut Store, at: u64, unix_nanos: i64) {
        let last = store.last_sequence();
        let is_ahead = state.is_ahead(last);
        // A configured start after the end of the log is not a loss of records.
        let start = match self.config.deliver_policy {
            DeliverPolicy::ByStartSequence => self.config.opt_start_seq,
            _ => 1,
        };
        self.next = state.next.min(last + 1).max(start).max(1);
        self.delivered = clamped(state.delivered, last);
        self.ack_floor = clamped(state.ack_floor, last);
        self.listed = state
            .listed
            .into_iter()
            .filter(|sequence| *sequence <= last)
            .collect();
        for slot in state
            .pending
            .iter()
            .filter(|slot| slot.stream_sequence <= last)
        {
            self.restore_slot(slot, store, at, unix_nanos);
        }
        self.is_unsaved = is_ahead;
    }

    fn restore_slot(&mut self, slot: &SavedSlot, store: &mut Store, at: u64, unix_nanos: i64) {
        let delivered = slot.delivered_unix_millis.saturating_mul(NANOS_PER_MILLI);
        let passed = u64::try_from(unix_nanos.saturating_sub(delivered)).unwrap_or(0);
        let deadline = self.rules.deadline(at, slot.deliveries);
        let deadline = if deadline == u64::MAX {
            deadline
        } else {
            deadline.saturating_sub(passed).max(at)
        };
        let lane = match (&mut self.lanes, store.read(slot.stream_sequence)) {
            (Some(lanes), Ok(Some(record))) => lanes.add_in_flight(record.subject),
            _ => super::pending::NO_LANE,
        };
        let sent = Sent {
            unix_nanos: delivered,
            deadline,
        };
        let (stream, consumer) = (slot.stream_sequence, slot.consumer_sequence);
        self.pending
            .insert(stream, consumer, sent, slot.deliveries, lane);
    }
}

fn clamped(position: Position, last: u64) -> Position {
    let consumer_sequence = position.consumer_sequence.min(CONSUMER_SEQUENCE_MAX);
    Position {
        consumer_sequence,
        stream_sequence: position.stream_sequence.min(last),
        ..position
    }
}

fn read_position(rest: &mut &[u8]) -> Result<Position, StateError> {
    let (consumer_sequence, stream_sequence) = (read(rest)?, read(rest)?);
    let last_active = i64::try_from(read(rest)?).ok().filter(|time| *time != 0);
    Ok(Position {
        consumer_sequence,
        stream_sequence,
        last_active,
    })
}

fn write(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | u8::try_from(number & 0x7f).unwrap_or(0));
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

fn read(rest: &mut &[u8]) -> Result<u64, StateError> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(StateError::Damaged)?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(StateError::Damaged);
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(StateError::Damaged)
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position() -> impl Strategy<Value = Position> {
        (any::<u64>(), any::<u64>(), prop::option::of(1..i64::MAX)).prop_map(|(c, s, t)| Position {
            consumer_sequence: c,
            stream_sequence: s,
            last_active: t,
        })
    }

    fn state() -> impl Strategy<Value = State> {
        let slot = (any::<u32>(), any::<u64>(), any::<i64>(), any::<u32>());
        let pending = prop::collection::vec(slot, 0..20);
        let listed = prop::collection::btree_set(any::<u64>(), 0..20);
        (any::<u64>(), position(), position(), pending, listed).prop_map(
            |(next, d, f, pending, listed)| {
                let mut sequence = 0;
                let pending = pending.into_iter().map(|(step, c, t, n)| {
                    sequence += u64::from(step) + 1;
                    SavedSlot {
                        stream_sequence: sequence,
                        consumer_sequence: c,
                        delivered_unix_millis: t,
                        deliveries: n,
                    }
                });
                State {
                    next,
                    delivered: d,
                    ack_floor: f,
                    pending: pending.collect(),
                    listed: listed.into_iter().collect(),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn state_round_trips(state in state()) {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            prop_assert_eq!(State::decode(&bytes), Ok(state));
            for cut in 0..bytes.len() {
                prop_assert!(State::decode(&bytes[..cut]).is_err());
            }
        }

        #[test]
        fn decode_accepts_or_refuses_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = State::decode(&bytes);
        }
    }

    #[test]
    fn state_is_compact() {
        let start = 1_795_300_481_000;
        let pending = (0..1000).map(|n: u32| SavedSlot {
            stream_sequence: 5_000_000 + u64::from(n),
            consumer_sequence: 70_000 + u64::from(n),
            delivered_unix_millis: start + i64::from(n / 10),
            deliveries: 1,
        });
        let state = State {
            pending: pending.collect(),
            ..State::default()
        };
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert!(bytes.len() < 6100, "{}", bytes.len());
    }
}
