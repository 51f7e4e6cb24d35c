//! Messages above QoS 0 from a client, up to their last acknowledgement (4.3, 4.9).

use hashbrown::HashMap;

use super::reason::{Reason, Wrong};

/// The stage of a QoS 2 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The message is being stored. PUBREC follows.
    Storing,
    /// PUBREC is sent. PUBREL has not arrived.
    Stored,
    /// PUBREL has arrived, and the message is being published. PUBCOMP follows.
    Releasing,
}

/// The action that a packet requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The caller handles the packet.
    Take,
    /// The packet is answered with this reason.
    Answer(Reason),
    /// An earlier packet has started the same action, whose answer follows.
    Wait,
}

/// The unacknowledged messages of a client.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// Number of QoS 1 messages that are not acknowledged.
    once: usize,
    /// QoS 2 messages by packet identifier.
    exactly: HashMap<u16, Stage>,
}

impl Incoming {
    /// Restores QoS 2 messages of a session that wait for PUBREL.
    pub(super) fn resume(&mut self, held: impl Iterator<Item = u16>) {
        self.exactly.extend(held.map(|id| (id, Stage::Stored)));
    }

    /// Checks whether one more message may begin. `receive_maximum` is the limit in CONNACK; it is `None` in
    /// 3.1.1, which has no limit (3.3.4).
    fn check_quota(&self, receive_maximum: Option<u16>) -> Result<(), Wrong> {
        let open = self.once + self.exactly.len();
        match receive_maximum {
            Some(max) if open >= usize::from(max) => {
                let why = "more is published than may wait to be acknowledged";
                Err(Wrong::because(Reason::RECEIVE_MAXIMUM_EXCEEDED, why))
            }
            _ => Ok(()),
        }
    }

    /// Handles PUBLISH with QoS 1. A repeated one counts as a new message (4.3.2).
    pub(super) fn publish_once(&mut self, receive_maximum: Option<u16>) -> Result<(), Wrong> {
        self.check_quota(receive_maximum)?;
        self.once += 1;
        Ok(())
    }

    /// Records PUBACK. Returns false if no message waits for it.
    pub(super) fn acknowledged(&mut self) -> bool {
        let is_awaited = self.once > 0;
        self.once = self.once.saturating_sub(1);
        is_awaited
    }

    /// Handles PUBLISH with QoS 2. If its packet identifier is in use, the packet repeats an earlier one
    /// (MQTT-4.3.3-10).
    pub(super) fn publish_exactly(
        &mut self,
        id: u16,
        receive_maximum: Option<u16>,
    ) -> Result<Step, Wrong> {
        match self.exactly.get(&id) {
            Some(Stage::Storing) => Ok(Step::Wait),
            Some(Stage::Stored) => Ok(Step::Answer(Reason::SUCCESS)),
            // After PUBREL, a client must not send PUBLISH again (MQTT-4.3.3-6).
            Some(Stage::Releasing) => Err(Wrong::protocol(
                "a message is published again after its PUBREL",
            )),
            None => {
                self.check_quota(receive_maximum)?;
                self.exactly.insert(id, Stage::Storing);
                Ok(Step::Take)
            }
        }
    }

    /// Records whether storing a QoS 2 message has succeeded. Returns false if no such message is being
    /// stored.
    pub(super) fn held(&mut self, id: u16, is_stored: bool) -> bool {
        let Some(stage) = self.exactly.get_mut(&id) else {
            return false;
        };
        if *stage != Stage::Storing {
            return false;
        }
        match is_stored {
            true => *stage = Stage::Stored,
            false => {
                self.exactly.remove(&id);
            }
        }
        true
    }

    /// Handles PUBREL.
    pub(super) fn release(&mut self, id: u16) -> Result<Step, Wrong> {
        match self.exactly.get_mut(&id) {
            Some(stage @ Stage::Stored) => {
                *stage = Stage::Releasing;
                Ok(Step::Take)
            }
            Some(Stage::Releasing) => Ok(Step::Wait),
            Some(Stage::Storing) => Err(Wrong::protocol("PUBREL comes before its PUBREC")),
            // 3.7.2.1: not an error, because the server may have lost the session.
            None => Ok(Step::Answer(Reason::PACKET_ID_NOT_FOUND)),
        }
    }

    /// Records PUBCOMP. Returns false if no message waits for it.
    pub(super) fn released(&mut self, id: u16) -> bool {
        match self.exactly.get(&id) {
            Some(Stage::Releasing) => self.exactly.remove(&id).is_some(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_once() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.publish_exactly(7, Some(2)), Ok(Step::Take));
        assert_eq!(incoming.publish_exactly(7, Some(2)), Ok(Step::Wait));
        assert!(incoming.release(7).is_err());
        assert!(incoming.held(7, true) && !incoming.held(7, true));
        let again = incoming.publish_exactly(7, Some(2));
        assert_eq!(again, Ok(Step::Answer(Reason::SUCCESS)));
        assert_eq!(incoming.release(7), Ok(Step::Take));
        assert_eq!(incoming.release(7), Ok(Step::Wait));
        assert!(incoming.publish_exactly(7, Some(2)).is_err());
        assert!(incoming.released(7) && !incoming.released(7));
        let unknown = incoming.release(7);
        assert_eq!(unknown, Ok(Step::Answer(Reason::PACKET_ID_NOT_FOUND)));
        assert_eq!(incoming.publish_exactly(7, Some(2)), Ok(Step::Take));
    }

    #[test]
    fn the_receive_maximum_counts_both_kinds() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.publish_once(Some(2)), Ok(()));
        assert_eq!(incoming.publish_exactly(1, Some(2)), Ok(Step::Take));
        let refused = incoming.publish_once(Some(2)).map_err(|w| w.reason);
        assert_eq!(refused, Err(Reason::RECEIVE_MAXIMUM_EXCEEDED));
        // A repeated PUBLISH is not another message.
        assert_eq!(incoming.publish_exactly(1, Some(2)), Ok(Step::Wait));
        assert!(incoming.acknowledged());
        assert_eq!(incoming.publish_once(Some(2)), Ok(()));
        assert_eq!(incoming.publish_once(None), Ok(()), "3.1.1 knows no such");
    }

    #[test]
    fn received_message_is_released_after_a_resume() {
        let mut incoming = Incoming::default();
        incoming.resume([3, 4].into_iter());
        assert_eq!(incoming.release(3), Ok(Step::Take));
        assert!(incoming.released(3));
    }
}
