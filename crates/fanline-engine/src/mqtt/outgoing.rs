//! What is delivered above QoS 0 and was not acknowledged to the end (4.3, 4.4, 4.9).

use hashbrown::HashMap;

use super::Qos;
use super::reason::{Reason, Wrong};

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// QoS 1: PUBLISH has left.
    AwaitsAck,
    /// QoS 2: PUBLISH has left.
    AwaitsReceived,
    /// PUBREC has come; PUBREL leaves when that is stored.
    Noting,
    /// PUBREL has left.
    AwaitsComplete,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    /// What whoever keeps the message knows it by.
    token: u64,
    /// Which came before which.
    order: u64,
    stage: Stage,
}

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The message is done with; a reason that is a failure says how.
    Done { token: u64 },
    /// Note that it was received, then [`Outgoing::noted`].
    Received { token: u64 },
    /// The PUBREL is done with too.
    Complete { token: u64 },
    /// PUBREL leaves at once, with this.
    Release(Reason),
    /// It means nothing.
    Ignore,
}

/// What is to be sent again when a client is back (MQTT-4.4.0-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// PUBLISH with DUP.
    Publish { id: u16, token: u64 },
    /// PUBREL.
    Release { id: u16 },
}

/// The messages in one direction.
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
            last_id: 0,
            next_order: 0,
            max: u16::MAX,
        }
    }
}

impl Outgoing {
    /// At most so many are under way from now on (3.1.2.11.3).
    pub(super) fn set_max(&mut self, max: u16) {
        self.max = max.max(1);
    }

    pub(super) fn has_room(&self) -> bool {
        self.flights.len() < usize::from(self.max)
    }

    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    /// The packet identifier for one more, if there is room for it.
    pub(super) fn send(&mut self, token: u64, qos: Qos) -> Option<u16> {
        if !self.has_room() {
            return None;
        }
        let id = self.free_id();
        let stage = match qos {
            Qos::ExactlyOnce => Stage::AwaitsReceived,
            _ => Stage::AwaitsAck,
        };
        self.insert(id, token, stage);
        Some(id)
    }

    /// Takes back one that could not be written.
    pub(super) fn unsend(&mut self, id: u16) {
        self.flights.remove(&id);
    }

    /// One of a session's that was under way when it was kept, in the order in which they were sent.
    pub(super) fn restore(&mut self, id: u16, token: u64, qos: Qos, was_received: bool) {
        let stage = match (qos, was_received) {
            (_, true) => Stage::AwaitsComplete,
            (Qos::ExactlyOnce, false) => Stage::AwaitsReceived,
            _ => Stage::AwaitsAck,
        };
        self.last_id = self.last_id.max(id);
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

    /// There is one, since fewer than all are in use.
    fn free_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.flights.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// PUBACK.
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

    /// PUBREC.
    pub(super) fn received(&mut self, id: u16, reason: Reason) -> Result<Step, Wrong> {
        let Some(flight) = self.flights.get_mut(&id) else {
            // 3.6.2.1. The client can then forget it.
            return Ok(match reason.is_failure() {
                true => Step::Ignore,
                false => Step::Release(Reason::PACKET_ID_NOT_FOUND),
            });
        };
        let token = flight.token;
        match flight.stage {
            Stage::AwaitsAck => Err(Wrong::protocol("PUBREC answers a message of QoS 1")),
            // 4.3.3: what was refused is done with.
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

    /// That a message was received is stored: PUBREL leaves. False when nothing waits for that.
    pub(super) fn noted(&mut self, id: u16) -> bool {
        match self.flights.get_mut(&id) {
            Some(flight) if flight.stage == Stage::Noting => {
                flight.stage = Stage::AwaitsComplete;
                true
            }
            _ => false,
        }
    }

    /// PUBCOMP.
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

    /// What is to be sent again, in the order in which it was sent (4.6).
    pub(super) fn again(&self) -> Vec<Again> {
        let mut all: Vec<(&u16, &Flight)> = self.flights.iter().collect();
        all.sort_unstable_by_key(|(_, flight)| flight.order);
        let again = |(id, flight): (&u16, &Flight)| match flight.stage {
            Stage::AwaitsAck | Stage::AwaitsReceived => Again::Publish {
                id: *id,
                token: flight.token,
            },
            // Until it is noted nobody has seen a PUBREL, but the client has said PUBREC.
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
        let id = outgoing.send(40, Qos::ExactlyOnce).unwrap();
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
        let id = outgoing.send(1, Qos::ExactlyOnce).unwrap();
        let refused = outgoing.received(id, Reason::NOT_AUTHORIZED);
        assert_eq!(refused, Ok(Step::Done { token: 1 }));
    }

    #[test]
    fn identifiers_are_not_used_twice_and_the_window_holds() {
        let mut outgoing = Outgoing::default();
        outgoing.set_max(3);
        let ids: Vec<_> = (0..5).map(|t| outgoing.send(t, Qos::AtLeastOnce)).collect();
        assert_eq!(ids, [Some(1), Some(2), Some(3), None, None]);
        outgoing.last_id = u16::MAX;
        assert_eq!(outgoing.acknowledged(2), Ok(Step::Done { token: 1 }));
        assert_eq!(outgoing.send(5, Qos::AtLeastOnce), Some(2));
    }

    #[test]
    fn all_is_sent_again_in_its_order() {
        let mut outgoing = Outgoing::default();
        for (token, qos) in [(1, Qos::AtLeastOnce), (2, Qos::ExactlyOnce), (3, Qos::AtLeastOnce)] {
            outgoing.send(token, qos);
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
