//! The measured rows and their targets. Runs and reports use the same list.

use crate::generator::mqtt::flow::Flowing;
use crate::report::metric::Metric;
use crate::report::{Case, Target, alone_at_most, at_least, at_least_of_mosquitto, at_most};
use crate::servers::System;

const PAYLOAD_BYTES: usize = 128;
const IN_FLIGHT: u64 = 100;

/// One kind of load.
pub(crate) struct Row {
    /// Name for `--row`.
    pub(crate) name: &'static str,
    /// Title in reports.
    pub(crate) title: &'static str,
    work: Work,
    /// The work for mosquitto, which has no NATS clients; `None` if it is not measured.
    mosquitto: Option<Work>,
    pub(crate) targets: &'static [Target],
}

/// The generator's work for a row.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// One publisher at full speed with QoS 0.
    Full {
        from: Protocol,
        to: Protocol,
        subscribers: usize,
        payload_bytes: usize,
    },
    /// QoS 1 or 2, with a fixed number of messages in flight.
    Flow(Flowing),
    /// Open connections and leave them idle.
    Idle { connections: usize },
    /// Count the engine's allocations per message of QoS 0 from one client to another.
    Allocations { payload_bytes: usize },
}

/// The protocol at one end of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Nats,
    Mqtt,
}

impl Row {
    /// Returns the row as a case of a report.
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

    /// Returns the work on a server, or `None` if the server does not support it.
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

/// Notes on the results, for the report.
pub(crate) const REMARKS: &[&str] = &[
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
    fn row_names_are_unique() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|other| other.name != row.name));
        }
    }

    #[test]
    fn mosquitto_rows_use_no_nats() {
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
