//! CONNECT, SUBSCRIBE, and UNSUBSCRIBE as operations, which are answered when all their parts are on the
//! disk.

use super::MqttSession;
use super::messages::RequestId;
use super::state::Mqtt;
use crate::codec::mqtt::{Ended, Reason};
use crate::outbox::Outbox;

/// A request that is answered when all its parts are on the disk.
pub(super) struct Operation {
    left: usize,
    failure: Option<Reason>,
    answer: Answer,
}

enum Answer {
    Connack {
        session_present: bool,
    },
    Suback(Suback),
    Unsuback {
        packet_id: u16,
        reasons: Vec<Reason>,
    },
}

/// The content of a SUBACK.
pub(super) struct Suback {
    pub(super) packet_id: u16,
    pub(super) reasons: Vec<Reason>,
    /// Indices of the subscriptions that receive retained messages.
    pub(super) retained: Vec<u32>,
}

impl Operation {
    pub(super) fn connect(session_present: bool, parts: usize) -> Self {
        Operation::of(Answer::Connack { session_present }, parts)
    }

    pub(super) fn subscribe(suback: Suback, parts: usize) -> Self {
        Operation::of(Answer::Suback(suback), parts)
    }

    pub(super) fn unsubscribe(packet_id: u16, reasons: Vec<Reason>, parts: usize) -> Self {
        Operation::of(Answer::Unsuback { packet_id, reasons }, parts)
    }

    fn of(answer: Answer, left: usize) -> Self {
        Operation {
            left,
            failure: None,
            answer,
        }
    }
}

impl Mqtt {
    /// Counts a completed part. Returns the operation after its last part.
    fn end_part(&mut self, number: u32) -> Option<Operation> {
        let operation = self.operations.get_mut(&number)?;
        operation.left = operation.left.saturating_sub(1);
        match operation.left {
            0 => self.operations.remove(&number),
            _ => None,
        }
    }

    /// Returns whether the failure of a part is ignored, which is possible for CONNECT only. The consumer of
    /// a resumed session exists, and stays as it is if it cannot be changed. On a full disk, the record of a
    /// resumed session stays too: otherwise the client could not resume the session to receive the messages
    /// that fill the disk.
    pub(super) fn may_fail(&self, request: RequestId, number: u32, reason: Reason) -> bool {
        let operation = self.operations.get(&number);
        let is_connect = |operation: &Operation| matches!(operation.answer, Answer::Connack { .. });
        let stays = matches!(request, RequestId::Consumer(_))
            || self.is_resumed && reason == Reason::QUOTA_EXCEEDED;
        stays && operation.is_some_and(is_connect)
    }
}

impl MqttSession<'_> {
    /// Handles that a part of an operation is done.
    pub(super) fn end_part(&mut self, number: u32) {
        if let Some(operation) = self.state_mut().end_part(number) {
            self.finish_operation(operation);
        }
    }

    /// Handles that a part of an operation has failed.
    pub(super) fn fail_operation(&mut self, number: u32, reason: Reason) {
        if let Some(operation) = self.state_mut().operations.get_mut(&number) {
            operation.failure = Some(reason);
        }
        self.end_part(number);
    }

    /// Answers a request whose parts are all done.
    pub(super) fn finish_operation(&mut self, operation: Operation) {
        let failure = operation.failure;
        match operation.answer {
            Answer::Connack { session_present } => {
                let reason = failure.map_or(Reason::SUCCESS, |_| Reason::SERVER_UNAVAILABLE);
                self.accept(session_present, reason);
            }
            Answer::Suback(mut suback) => {
                for reason in &mut suback.reasons {
                    *reason = failure.filter(|_| !reason.is_failure()).unwrap_or(*reason);
                }
                self.answer_filters(|mqtt, out| {
                    let Suback {
                        packet_id, reasons, ..
                    } = &suback;
                    mqtt.connection.subscribed(*packet_id, reasons, out)
                });
                self.request_retained_for(&suback.retained);
            }
            Answer::Unsuback { packet_id, reasons } => {
                self.answer_filters(|mqtt, out| {
                    mqtt.connection.unsubscribed(packet_id, &reasons, out)
                });
            }
        }
    }

    fn answer_filters(&mut self, answer: impl FnOnce(&mut Mqtt, &mut Outbox) -> Option<Ended>) {
        if self.session().ending.is_none() {
            self.write_or_end(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::MqttLimits;

    #[test]
    fn operation_ends_with_its_last_part() {
        let mut mqtt = Mqtt::new(MqttLimits::default(), Duration::ZERO);
        let number = mqtt.add_operation(Operation::connect(true, 2));
        assert!(mqtt.end_part(number + 1).is_none());
        assert!(mqtt.end_part(number).is_none());
        assert!(mqtt.may_fail(
            RequestId::Consumer(number),
            number,
            Reason::UNSPECIFIED_ERROR
        ));
        assert!(!mqtt.may_fail(RequestId::Record(number), number, Reason::QUOTA_EXCEEDED));
        mqtt.is_resumed = true;
        assert!(mqtt.may_fail(RequestId::Record(number), number, Reason::QUOTA_EXCEEDED));
        assert!(!mqtt.may_fail(RequestId::Record(number), number, Reason::UNSPECIFIED_ERROR));
        assert!(mqtt.end_part(number).is_some() && mqtt.operations.is_empty());
        let number = mqtt.add_operation(Operation::unsubscribe(1, Vec::new(), 1));
        assert!(!mqtt.may_fail(
            RequestId::Consumer(number),
            number,
            Reason::UNSPECIFIED_ERROR
        ));
    }
}
