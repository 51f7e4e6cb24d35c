//! Messages above QoS 0 to a client, until their last acknowledgement (4.3, 4.4, 4.9).

use hashbrown::HashMap;

use super::Qos;
use super::reason::{Reason, Wrong};

/// The stage of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// QoS 1: PUBLISH is sent.
    AwaitsAck,
    /// QoS 2: PUBLISH is sent.
    AwaitsReceived,
    /// PUBREC has arrived, and the caller stores that. PUBREL follows.
    Noting,
    /// PUBREL is sent.
    AwaitsComplete,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    /// Number by which the caller identifies the message.
    token: u64,
    /// Position in the order of sending.
    order: u64,
    stage: Stage,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The message is complete. It was received, or refused with a failure.
    Done { token: u64 },
    /// The message was received: the caller stores that, then calls [`Outgoing::noted`].
    Received { token: u64 },
    /// PUBCOMP has arrived: the message and its PUBREL are complete.
    Complete { token: u64 },
    /// PUBREL is sent at once, with this reason.
    Release(Reason),
    /// No effect.
    Ignore,
}

/// A packet to send again when a client reconnects (MQTT-4.4.0-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// PUBLISH with DUP.
    Publish { id: u16, token: u64 },
    /// PUBREL.
    Release { id: u16 },
}

/// Largest packet identifier of stored messages. The first one is 1.
const KEPT_IDS: u16 = 49_151;
/// Largest packet identifier of messages that are not stored. Shared subscriptions use the identifiers above
/// it.
const OTHER_IDS_MAX: u16 = 57_343;

/// Returns the packet identifier of a stored message, which depends on its sequence only. After a crash it is
/// the same, so a client recognizes a message that it has already received (4.3.3).
pub fn kept_id(sequence: u64) -> u16 {
    let id = sequence.saturating_sub(1) % u64::from(KEPT_IDS) + 1;
    u16::try_from(id).unwrap_or(1)
}

/// Returns the packet identifier of a message from a shared subscription. When the message is sent to the
/// same member again, it gets the same identifier.
pub fn shared_id(sequence: u64) -> u16 {
    let id = sequence % u64::from(u16::MAX - OTHER_IDS_MAX);
    u16::try_from(id).map_or(u16::MAX, |id| OTHER_IDS_MAX + 1 + id)
}

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The message was sent with this packet identifier.
    As(u16),
    /// The message was sent before, and is not acknowledged.
    UnderWay,
    /// The receive window is full, or another message uses the packet identifier.
    NoRoom,
}

/// The messages in flight to a client.
#[derive(Debug)]
pub(super) struct Outgoing {
    flights: HashMap<u16, Flight>,
    last_id: u16,
    next_order: u64,
    max: u16,
}

impl Default for Outgoing {
    fn default() -> Self {
        Outgoing {
            flights: HashMap::new(),
            last_id: KEPT_IDS,
            next_order: 0,
            max: u16::MAX,
        }
    }
}

impl Outgoing {
    /// Sets the largest number of messages in flight (3.1.2.11.3).
    pub(super) fn set_max(&mut self, max: u16) {
        self.max = max.max(1);
    }

    pub(super) fn has_room(&self) -> bool {
        self.flights.len() < usize::from(self.max)
    }

    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    pub(super) fn token(&self, id: u16) -> Option<u64> {
        self.flights.get(&id).map(|flight| flight.token)
    }

    /// Adds a message, if there is room. `wanted` is its packet identifier; with `None`, any free one is
    /// used.
    pub(super) fn send(&mut self, token: u64, qos: Qos, wanted: Option<u16>) -> Sent {
        if let Some(flight) = wanted.and_then(|id| self.flights.get(&id)) {
            return match flight.token == token {
                true => Sent::UnderWay,
                false => Sent::NoRoom,
            };
        }
        if !self.has_room() {
            return Sent::NoRoom;
        }
        let Some(id) = wanted.or_else(|| self.free_id()) else {
            return Sent::NoRoom;
        };
        let stage = match qos {
            Qos::ExactlyOnce => Stage::AwaitsReceived,
            _ => Stage::AwaitsAck,
        };
        self.insert(id, token, stage);
        Sent::As(id)
    }

    /// Removes a message that could not be written.
    pub(super) fn unsend(&mut self, id: u16) {
        self.flights.remove(&id);
    }

    /// Restores a message that was in flight when the session was stored. The caller restores messages in the
    /// order in which they were sent.
    pub(super) fn restore(&mut self, id: u16, token: u64, qos: Qos, was_received: bool) {
        let stage = match (qos, was_received) {
            (_, true) => Stage::AwaitsComplete,
            (Qos::ExactlyOnce, false) => Stage::AwaitsReceived,
            _ => Stage::AwaitsAck,
        };
        self.insert(id, token, stage);
    }

    fn insert(&mut self, id: u16, token: u64, stage: Stage) {
        let order = self.next_order;
        self.next_order += 1;
        let flight = Flight {
            token,
            order,
            stage,
        };
        self.flights.insert(id, flight);
    }

    /// Returns a free packet identifier for a message that is not stored.
    fn free_id(&mut self) -> Option<u16> {
        for _ in KEPT_IDS..OTHER_IDS_MAX {
            self.last_id = match self.last_id {
                OTHER_IDS_MAX.. => KEPT_IDS + 1,
                last => last + 1,
            };
            if !self.flights.contains_key(&self.last_id) {
                return Some(self.last_id);
            }
        }
        None
    }

    /// Handles PUBACK.
    pub(super) fn acknowledged(&mut self, id: u16) -> Result<Step, Wrong> {
        match self.flights.get(&id) {
            Some(Flight {
                stage: Stage::AwaitsAck,
                token,
                ..
            }) => {
                let token = *token;
                self.flights.remove(&id);
                Ok(Step::Done { token })
            }
            Some(_) => Err(Wrong::protocol("PUBACK answers a message of QoS 2")),
            None => Ok(Step::Ignore),
        }
    }

    /// Handles PUBREC.
    pub(super) fn received(&mut self, id: u16, reason: Reason) -> Result<Step, Wrong> {
        let Some(flight) = self.flights.get_mut(&id) else {
            // 3.6.2.1: PUBREL with this reason makes the client forget the message.
            return Ok(match reason.is_failure() {
                true => Step::Ignore,
                false => Step::Release(Reason::PACKET_ID_NOT_FOUND),
            });
        };
        let token = flight.token;
        match flight.stage {
            Stage::AwaitsAck => Err(Wrong::protocol("PUBREC answers a message of QoS 1")),
            // 4.3.3: a refused message is complete.
            Stage::AwaitsReceived if reason.is_failure() => {
                self.flights.remove(&id);
                Ok(Step::Done { token })
            }
            Stage::AwaitsReceived => {
                flight.stage = Stage::Noting;
                Ok(Step::Received { token })
            }
            Stage::Noting => Ok(Step::Ignore),
            Stage::AwaitsComplete => Ok(Step::Release(Reason::SUCCESS)),
        }
    }

    /// Records that the caller has stored PUBREC, so PUBREL follows. Returns false if no message waits for
    /// that.
    pub(super) fn noted(&mut self, id: u16) -> bool {
        match self.flights.get_mut(&id) {
            Some(flight) if flight.stage == Stage::Noting => {
                flight.stage = Stage::AwaitsComplete;
                true
            }
            _ => false,
        }
    }

    /// Handles PUBCOMP.
    pub(super) fn complete(&mut self, id: u16) -> Result<Step, Wrong> {
        match self.flights.get(&id) {
            Some(Flight {
                stage: Stage::AwaitsComplete,
                token,
                ..
            }) => {
                let token = *token;
                self.flights.remove(&id);
                Ok(Step::Complete { token })
            }
            Some(_) => Err(Wrong::protocol("PUBCOMP comes before PUBREL")),
            None => Ok(Step::Ignore),
        }
    }

    /// Returns the packets that must be sent again, in their original order (4.6).
    pub(super) fn again(&self) -> Vec<Again> {
        let mut all: Vec<(&u16, &Flight)> = self.flights.iter().collect();
        all.sort_unstable_by_key(|(_, flight)| flight.order);
        let again = |(id, flight): (&u16, &Flight)| match flight.stage {
            Stage::AwaitsAck | Stage::AwaitsReceived => Again::Publish {
                id: *id,
                token: flight.token,
            },
            // In the stage `Noting`, no PUBREL was sent yet. But the client has sent PUBREC, so PUBREL is
            // correct.
            Stage::Noting | Stage::AwaitsComplete => Again::Release { id: *id },
        };
        all.into_iter().map(again).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_once() {
        let mut outgoing = Outgoing::default();
        assert_eq!(outgoing.send(40, Qos::ExactlyOnce, Some(7)), Sent::As(7));
        assert_eq!(outgoing.send(40, Qos::ExactlyOnce, Some(7)), Sent::UnderWay);
        assert_eq!(outgoing.send(41, Qos::ExactlyOnce, Some(7)), Sent::NoRoom);
        let id = 7;
        assert!(outgoing.acknowledged(id).is_err());
        assert!(outgoing.complete(id).is_err());
        let ok = Reason::SUCCESS;
        assert_eq!(outgoing.received(id, ok), Ok(Step::Received { token: 40 }));
        assert_eq!(outgoing.received(id, ok), Ok(Step::Ignore));
        assert!(outgoing.noted(id) && !outgoing.noted(id));
        assert_eq!(outgoing.received(id, ok), Ok(Step::Release(ok)));
        assert_eq!(outgoing.complete(id), Ok(Step::Complete { token: 40 }));
        assert_eq!(outgoing.complete(id), Ok(Step::Ignore));
        let unknown = Step::Release(Reason::PACKET_ID_NOT_FOUND);
        assert_eq!(outgoing.received(id, ok), Ok(unknown));
        assert_eq!(outgoing.len(), 0);
    }

    #[test]
    fn a_refused_message_is_done_with() {
        let mut outgoing = Outgoing::default();
        outgoing.send(1, Qos::ExactlyOnce, Some(1));
        let refused = outgoing.received(1, Reason::NOT_AUTHORIZED);
        assert_eq!(refused, Ok(Step::Done { token: 1 }));
    }

    #[test]
    fn identifiers_are_not_used_twice_and_the_window_holds() {
        let mut outgoing = Outgoing::default();
        outgoing.set_max(3);
        let mut send = |token| outgoing.send(token, Qos::AtLeastOnce, None);
        let ids: Vec<_> = (0..4).map(&mut send).collect();
        let first = KEPT_IDS + 1;
        let all = [first, first + 1, first + 2].map(Sent::As);
        assert_eq!((&ids[..3], ids[3]), (&all[..], Sent::NoRoom));
        outgoing.last_id = OTHER_IDS_MAX;
        let done = outgoing.acknowledged(first + 1);
        assert_eq!(done, Ok(Step::Done { token: 1 }));
        let sent = outgoing.send(5, Qos::AtLeastOnce, None);
        assert_eq!(sent, Sent::As(first + 1));
    }

    #[test]
    fn a_kept_message_always_has_the_same_identifier() {
        let ids = [1, 2, u64::from(KEPT_IDS), u64::from(KEPT_IDS) + 1].map(kept_id);
        assert_eq!(ids, [1, 2, KEPT_IDS, 1]);
    }

    #[test]
    fn those_of_groups_are_apart() {
        let ids = [0, 1, 8191, 8192].map(shared_id);
        assert_eq!(ids, [57_344, 57_345, u16::MAX, 57_344]);
    }

    #[test]
    fn all_is_sent_again_in_its_order() {
        let mut outgoing = Outgoing::default();
        for (token, qos) in [
            (1, Qos::AtLeastOnce),
            (2, Qos::ExactlyOnce),
            (3, Qos::AtLeastOnce),
        ] {
            outgoing.send(token, qos, u16::try_from(token).ok());
        }
        assert!(outgoing.received(2, Reason::SUCCESS).is_ok());
        let wanted = [
            Again::Publish { id: 1, token: 1 },
            Again::Release { id: 2 },
            Again::Publish { id: 3, token: 3 },
        ];
        assert_eq!(outgoing.again(), wanted);
    }
}
