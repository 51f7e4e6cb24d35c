//! The measured kinds of load (*shapes*) and their targets. Runs and reports use the same list.

use crate::generator::requests::{Cores, Party};
use crate::generator::throughput::Topology;
use crate::report::metric::Metric;
use crate::report::{Case, Target, at_least, at_most};

/// One kind of load.
pub(crate) struct Shape {
    /// Name for `--shape`.
    pub(crate) name: &'static str,
    /// Title in reports.
    pub(crate) title: &'static str,
    pub(crate) work: Work,
    pub(crate) targets: &'static [Target],
}

/// The generator's work for a kind of load.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Publish at full speed.
    Throughput(Topology),
    /// Send requests and wait for the replies.
    Requests(Party),
    /// Open connections and leave them idle.
    Idle { connections: usize },
}

impl Shape {
    /// Returns the shape as a case of a report.
    pub(crate) fn case(&self) -> Case {
        let (rate, headline) = match self.work {
            Work::Requests(party) if party.clients == 1 => ("requests/s", Metric::P50),
            Work::Requests(_) => ("requests/s", Metric::Rate),
            Work::Throughput(topology) if topology.subscribers > 1 => {
                ("deliveries/s", Metric::Rate)
            }
            Work::Throughput(_) => ("messages/s", Metric::Rate),
            Work::Idle { .. } => ("messages/s", Metric::IdleMemory),
        };
        Case {
            name: self.name,
            title: self.title,
            rate,
            headline,
            targets: self.targets,
        }
    }
}

/// The target for server CPU that every throughput shape has.
const CPU: Target = at_most(Metric::ServerCpu, 0.4);

/// Returns a load in which every publisher publishes to every subscriber.
const fn all(publishers: usize, subscribers: usize, payload_bytes: usize) -> Work {
    Work::Throughput(Topology {
        publishers,
        subscribers,
        paired: false,
        payload_bytes,
    })
}

/// Returns a load of `count` publishers with one subscriber each.
const fn pairs(count: usize, payload_bytes: usize) -> Work {
    Work::Throughput(Topology {
        publishers: count,
        subscribers: count,
        paired: true,
        payload_bytes,
    })
}

/// Returns a load of one client and one service, with one request at a time.
const fn one_request(cores: Cores) -> Work {
    Work::Requests(Party {
        clients: 1,
        services: 1,
        in_flight: 1,
        payload_bytes: 128,
        cores,
    })
}

/// Returns a load of ten clients and a queue group of two services.
const fn queue_group(in_flight: usize) -> Work {
    Work::Requests(Party {
        clients: 10,
        services: 2,
        in_flight,
        payload_bytes: 16,
        cores: Cores::Unbound,
    })
}

/// Every shape, in the order of the reports.
pub(crate) const SHAPES: &[Shape] = &[
    Shape {
        name: "publish-16",
        title: "publish only, 16 B",
        work: all(1, 0, 16),
        targets: &[at_least(Metric::Rate, 4.0), CPU],
    },
    Shape {
        name: "publish-128",
        title: "publish only, 128 B",
        work: all(1, 0, 128),
        targets: &[at_least(Metric::Rate, 2.0), CPU],
    },
    Shape {
        name: "1-1-16",
        title: "1 → 1, 16 B",
        work: all(1, 1, 16),
        targets: &[at_least(Metric::Rate, 4.5), CPU],
    },
    Shape {
        name: "1-1-128",
        title: "1 → 1, 128 B",
        work: all(1, 1, 128),
        targets: &[CPU],
    },
    Shape {
        name: "1-1-16k",
        title: "1 → 1, 16 KiB",
        work: all(1, 1, 16 * 1024),
        targets: &[at_least(Metric::Rate, 1.3), CPU],
    },
    Shape {
        name: "1-4",
        title: "1 → 4, 128 B",
        work: all(1, 4, 128),
        targets: &[at_least(Metric::Rate, 3.0), CPU],
    },
    Shape {
        name: "1-64",
        title: "1 → 64, 128 B",
        work: all(1, 64, 128),
        targets: &[at_least(Metric::Rate, 4.0), CPU],
    },
    Shape {
        name: "1-1000",
        title: "1 → 1000, 128 B",
        work: all(1, 1000, 128),
        targets: &[at_least(Metric::Rate, 3.0), CPU],
    },
    Shape {
        name: "4x1-1",
        title: "4 × (1 → 1), 128 B",
        work: pairs(4, 128),
        targets: &[at_least(Metric::Rate, 3.0), CPU],
    },
    Shape {
        name: "4-4",
        title: "4 → 4 all to all, 128 B",
        work: all(4, 4, 128),
        targets: &[at_least(Metric::Rate, 3.0), CPU],
    },
    Shape {
        name: "request-idle",
        title: "request/reply, 128 B, idle machine",
        work: one_request(Cores::Unbound),
        targets: &[
            at_most(Metric::P50, 0.85),
            at_most(Metric::P99, 1.0),
            at_most(Metric::ServerCpu, 0.55),
        ],
    },
    Shape {
        name: "request-awake",
        title: "request/reply, 128 B, cores kept awake",
        work: one_request(Cores::Awake),
        targets: &[at_most(Metric::P50, 0.6), at_most(Metric::ServerCpu, 0.55)],
    },
    // If the cores are awake, a reply takes up to four times as long when the scheduler places server and
    // generator on different cores. That placement is random, and can decide alone whether the previous row
    // meets its target. In this row both share a core, so all rounds have similar results.
    Shape {
        name: "request-one-core",
        title: "request/reply, 128 B, all on one core",
        work: one_request(Cores::One),
        targets: &[at_most(Metric::P50, 0.6), at_most(Metric::ServerCpu, 0.55)],
    },
    Shape {
        name: "queue-1",
        title: "10 clients, 2 services, 16 B, 1 in flight",
        work: queue_group(1),
        targets: &[at_least(Metric::Rate, 1.3)],
    },
    Shape {
        name: "queue-16",
        title: "10 clients, 2 services, 16 B, 16 in flight",
        work: queue_group(16),
        targets: &[at_least(Metric::Rate, 1.3)],
    },
    Shape {
        name: "idle-10000",
        title: "10,000 idle connections",
        work: Work::Idle {
            connections: 10_000,
        },
        targets: &[at_most(Metric::IdleMemory, 0.5)],
    },
];
