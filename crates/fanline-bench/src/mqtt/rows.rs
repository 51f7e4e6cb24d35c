//! The measured rows and their targets. Runs and reports use the same list.

use crate::comparison::{self, Case, Shown, at_least, at_most, case};
use crate::report::metric::Metric;
use crate::report::target::Limit;
use crate::servers::System;

pub(crate) const PAYLOAD_BYTES: usize = 128;

pub(crate) struct Load {
    work: Work,
    /// The work for mosquitto, which has no NATS clients; `None` if it is not measured.
    mosquitto: Option<Work>,
}

#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// One publisher at full speed with QoS 0.
    Full {
        from: Protocol,
        to: Protocol,
        subscribers: usize,
    },
    /// QoS 1 or 2, with a fixed number of messages in flight.
    Flow {
        qos: u8,
    },
    Idle {
        connections: usize,
    },
    /// Count the engine's allocations per message of QoS 0 from one client to another.
    Allocations,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Nats,
    Mqtt,
}

impl comparison::Work for Load {
    fn shown(&self) -> Shown {
        match self.work {
            Work::Full {
                subscribers: 2.., ..
            } => Shown::rate("QoS 0", "deliveries/s"),
            Work::Full { .. } => Shown::rate("QoS 0", "messages/s"),
            Work::Flow { .. } => Shown::rate("QoS 1 and 2", "messages/s"),
            Work::Idle { .. } => {
                Shown::rate("Idle clients", "messages/s").headline(Metric::IdleMemory)
            }
            Work::Allocations => {
                Shown::rate("Allocations", "messages/s").headline(Metric::Allocations)
            }
        }
    }
}

impl Load {
    /// Returns the work on a server, or `None` if the server does not support it.
    pub(crate) fn work(&self, system: System) -> Option<Work> {
        match (system, self.work) {
            (System::Mosquitto, _) => self.mosquitto,
            (System::Nats | System::NatsSynced, Work::Allocations) => None,
            (System::Nats | System::NatsSynced | System::Fanline, work) => Some(work),
        }
    }
}

const fn full(from: Protocol, to: Protocol, subscribers: usize) -> Work {
    Work::Full {
        from,
        to,
        subscribers,
    }
}

const ONE_TO_ONE: Work = full(Protocol::Mqtt, Protocol::Mqtt, 1);
const ONE_TO_FOUR: Work = full(Protocol::Mqtt, Protocol::Mqtt, 4);
const IDLE: Work = Work::Idle {
    connections: 10_000,
};

const CPU: Limit = at_most(Metric::ServerCpu, 0.25);
const QOS_0: &[Limit] = &[
    CPU,
    at_least(Metric::Rate, 3.0),
    at_least(Metric::Rate, 12.0).to(System::Mosquitto.label()),
];

const fn all(work: Work) -> Load {
    Load {
        work,
        mosquitto: Some(work),
    }
}

const fn without_mosquitto(work: Work) -> Load {
    Load {
        mosquitto: None,
        ..all(work)
    }
}

const FROM_NATS: Load = Load {
    work: full(Protocol::Nats, Protocol::Mqtt, 1),
    ..all(ONE_TO_ONE)
};
const TO_NATS: Load = without_mosquitto(full(Protocol::Mqtt, Protocol::Nats, 1));

/// Every row, in the order of the reports.
#[rustfmt::skip]
pub(crate) const ROWS: &[Case<Load>] = &[
    case("qos0-1-1", "QoS 0, 1 → 1, 128 B", all(ONE_TO_ONE), QOS_0),
    case("qos0-1-4", "QoS 0, 1 → 4, 128 B", all(ONE_TO_FOUR), QOS_0),
    case("nats-mqtt", "NATS → MQTT, 1 → 1, 128 B", FROM_NATS, QOS_0),
    case("mqtt-nats", "MQTT → NATS, 1 → 1, 128 B", TO_NATS, &[CPU]),
    case("qos1", "QoS 1, 1 → 1, 128 B, 100 in flight", all(Work::Flow { qos: 1 }), &[at_least(Metric::Rate, 4.0), CPU]),
    case("qos2", "QoS 2, 1 → 1, 128 B, 100 in flight", all(Work::Flow { qos: 2 }), &[at_least(Metric::Rate, 5.0), CPU]),
    case("idle-10000", "10,000 idle clients", all(IDLE), &[
        at_most(Metric::IdleMemory, 0.5),
        at_most(Metric::ConnectionMemory, 0.5),
    ]),
    case("allocations", "Allocations, QoS 0, 1 → 1, 128 B", without_mosquitto(Work::Allocations), &[
        Limit::at_most(Metric::Allocations, 0.0),
    ]),
];

pub(crate) const NOTES: &[&str] = &[
    "MQTT 3.1.1 in all three servers. In a fan-out every delivery counts.",
    "In the row NATS → MQTT, mosquitto is measured with QoS 0 from MQTT to MQTT, since it has no NATS clients.",
    "Above QoS 0 the subscriber has a session that outlives its connection, and a message counts when both \
     sides have finished it. Fanline acknowledges after the disk write; nats-server syncs every two minutes, and \
     mosquitto writes when it stops.",
    "Allocations are those of Fanline's engine in the benchmark's process; those of another process cannot be \
     counted.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mosquitto_rows_use_no_nats() {
        for row in ROWS {
            if let Some(Work::Full { from, to, .. }) = row.work.work(System::Mosquitto) {
                assert!([from, to] == [Protocol::Mqtt; 2], "{}", row.name);
            }
        }
    }
}
