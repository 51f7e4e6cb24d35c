//! What is measured, and what Fanline should reach there: the one list behind runs and reports.

use crate::generator::mqtt::flow::Flowing;
use crate::report::metric::Metric;
use crate::report::{Case, Target, alone_at_most, at_least, at_least_of_mosquitto, at_most};
use crate::servers::System;

const PAYLOAD_BYTES: usize = 128;
const IN_FLIGHT: u64 = 100;

/// One kind of load.
pub(crate) struct Row {
    /// As `--row` takes it.
    pub(crate) name: &'static str,
    /// As reports print it.
    pub(crate) title: &'static str,
    work: Work,
    /// What mosquitto does meanwhile; it has no NATS clients.
    mosquitto: Option<Work>,
    pub(crate) targets: &'static [Target],
}

/// What the generator does for a row.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// QoS 0 at full speed, one publisher.
    Full {
        from: Protocol,
        to: Protocol,
        subscribers: usize,
        payload_bytes: usize,
    },
    /// QoS 1 or 2, so many under way.
    Flow(Flowing),
    /// Open so many connections and leave them alone.
    Idle { connections: usize },
    /// Count what the engine allocates for a message of QoS 0, 1 → 1.
    Allocations { payload_bytes: usize },
}

/// What one end of a row speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Nats,
    Mqtt,
}

impl Row {
    /// As reports show it.
    pub(crate) fn case(&self) -> Case {
        let (rate, headline) = match self.work {
            Work::Full {
                subscribers: 2.., ..
            } => ("deliveries/s", Metric::Rate),
            Work::Full { .. } | Work::Flow(_) => ("messages/s", Metric::Rate),
            Work::Idle { .. } => ("messages/s", Metric::IdleMemory),
            Work::Allocations { .. } => ("messages/s", Metric::Allocations),
        };
        Case {
            name: self.name,
            title: self.title,
            rate,
            headline,
            targets: self.targets,
        }
    }

    /// What is done to a server; None where it has no such thing.
    pub(crate) fn work(&self, system: System) -> Option<Work> {
        match (system, self.work) {
            (System::Mosquitto, _) => self.mosquitto,
            (System::Nats, Work::Allocations { .. }) => None,
            (System::Nats | System::Fanline, work) => Some(work),
        }
    }
}

const fn full(from: Protocol, to: Protocol, subscribers: usize) -> Work {
    Work::Full {
        from,
        to,
        subscribers,
        payload_bytes: PAYLOAD_BYTES,
    }
}

const fn flow(qos: u8) -> Work {
    Work::Flow(Flowing {
        qos,
        in_flight: IN_FLIGHT,
        payload_bytes: PAYLOAD_BYTES,
    })
}

const ONE_TO_ONE: Work = full(Protocol::Mqtt, Protocol::Mqtt, 1);
const ONE_TO_FOUR: Work = full(Protocol::Mqtt, Protocol::Mqtt, 4);
const IDLE: Work = Work::Idle {
    connections: 10_000,
};

const QOS_0: &[Target] = &[
    at_least(Metric::Rate, 3.0),
    at_least_of_mosquitto(Metric::Rate, 12.0),
];

/// Every row, in the order of the reports.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "qos0-1-1",
        title: "QoS 0, 1 → 1, 128 B",
        work: ONE_TO_ONE,
        mosquitto: Some(ONE_TO_ONE),
        targets: QOS_0,
    },
    Row {
        name: "qos0-1-4",
        title: "QoS 0, 1 → 4, 128 B",
        work: ONE_TO_FOUR,
        mosquitto: Some(ONE_TO_FOUR),
        targets: QOS_0,
    },
    Row {
        name: "nats-mqtt",
        title: "NATS → MQTT, 1 → 1, 128 B",
        work: full(Protocol::Nats, Protocol::Mqtt, 1),
        mosquitto: Some(ONE_TO_ONE),
        targets: QOS_0,
    },
    Row {
        name: "mqtt-nats",
        title: "MQTT → NATS, 1 → 1, 128 B",
        work: full(Protocol::Mqtt, Protocol::Nats, 1),
        mosquitto: None,
        targets: &[],
    },
    Row {
        name: "qos1",
        title: "QoS 1, 1 → 1, 128 B, 100 in flight",
        work: flow(1),
        mosquitto: Some(flow(1)),
        targets: &[at_least(Metric::Rate, 2.0)],
    },
    Row {
        name: "qos2",
        title: "QoS 2, 1 → 1, 128 B, 100 in flight",
        work: flow(2),
        mosquitto: Some(flow(2)),
        targets: &[at_least(Metric::Rate, 1.5)],
    },
    Row {
        name: "idle-10000",
        title: "10,000 idle clients",
        work: IDLE,
        mosquitto: Some(IDLE),
        targets: &[
            at_most(Metric::IdleMemory, 0.5),
            at_most(Metric::ConnectionMemory, 0.5),
        ],
    },
    Row {
        name: "allocations",
        title: "Allocations, QoS 0, 1 → 1, 128 B",
        work: Work::Allocations {
            payload_bytes: PAYLOAD_BYTES,
        },
        mosquitto: None,
        targets: &[alone_at_most(Metric::Allocations, 0.0)],
    },
];

/// What is to be known of the figures.
pub(crate) const REMARKS: &[&str] = &[
    "MQTT 3.1.1, which all three speak. In a fan-out every delivery counts.",
    "In the row NATS → MQTT, mosquitto, which has no NATS clients, has QoS 0 from MQTT to MQTT.",
    "Above QoS 0 the subscriber has a session that outlives its connection, and a message counts when both \
     sides are done with it. Fanline acknowledges what is on the disk; nats-server syncs it every two minutes, \
     mosquitto writes it when it stops.",
    "Allocations are those of Fanline's engine in the benchmark's own process; what another server allocates cannot \
     be counted from outside.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|other| other.name != row.name));
        }
    }

    #[test]
    fn mosquitto_is_asked_for_no_nats() {
        for row in ROWS {
            if let Some(Work::Full { from, to, .. }) = row.work(System::Mosquitto) {
                assert!(
                    from == Protocol::Mqtt && to == Protocol::Mqtt,
                    "{}",
                    row.name
                );
            }
        }
    }
}
