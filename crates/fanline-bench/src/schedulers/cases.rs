//! The measured cases, the systems that are compared, and the targets.

use crate::report::Bound;

/// One kind of load.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) items: u32,
    pub(super) contestants: &'static [Contestant],
    pub(super) target: Target,
    pub(super) quoted: Quoted,
}

/// A system under one load.
pub(super) struct Contestant {
    pub(super) label: &'static str,
    pub(super) work: Work,
}

/// The way in which a system is measured.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// Moves the given number of items to another thread, and returns the number that was counted there.
    Here(fn(u32) -> u64),
    /// A function without items, which measures the unavoidable cost of the load: starting and joining a
    /// thread that does nothing.
    Nothing(fn()),
    /// A load of the project `rivals/rxjava`, by name.
    RxJava(&'static str),
}

/// A bound for Fanline's result relative to that of another system.
pub(super) struct Target {
    pub(super) against: &'static str,
    /// `AtMost` bounds the time, and `AtLeast` the speed. Both are multiples of the other system's result.
    pub(super) bound: Bound,
}

/// Published results that were not measured in this run.
pub(super) struct Quoted {
    /// Result of Rx for .NET in 2011, on an i5.
    pub(super) rx_2011: &'static str,
    /// Result of Rx.NET on a virtual machine with two Xeon cores.
    pub(super) rx_net: &'static str,
    /// Result of RxJava on the same virtual machine.
    pub(super) rxjava: &'static str,
}

/// Label of the system that has the targets. It is the first system of each case.
pub(super) const FANLINE: &str = "Fanline";

/// Prefix of the labels of RxJava's systems.
pub(super) const RXJAVA: &str = "RxJava";

const SPAWN_AND_JOIN: &str = "floor: thread spawn + join";
const ONE_VEC: &str = "floor: one Vec to a parked thread";
const RXJAVA_OBSERVE_ON: &str = "RxJava Observable, not fused";

/// Every case, in the order of the report.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "10,000 items from an iterator, new thread, count",
        items: 10_000,
        contestants: &[
            Contestant {
                label: FANLINE,
                work: Work::Here(super::library::on_new_thread),
            },
            Contestant {
                label: SPAWN_AND_JOIN,
                work: Work::Nothing(super::floors::spawn_and_join),
            },
            Contestant {
                label: "floor: a loop on a new thread, and join",
                work: Work::Here(super::floors::counted_on_new_thread),
            },
            Contestant {
                label: "RxJava",
                work: Work::RxJava("new-thread"),
            },
        ],
        target: Target {
            against: SPAWN_AND_JOIN,
            bound: Bound::AtMost(2.0),
        },
        quoted: Quoted {
            rx_2011: "0.14 s",
            rx_net: "184 µs",
            rxjava: "216 µs",
        },
    },
    Case {
        name: "range of 10,000, observe_on(pool), count",
        items: 10_000,
        contestants: &[
            Contestant {
                label: FANLINE,
                work: Work::Here(super::library::observed_on_pool),
            },
            Contestant {
                label: ONE_VEC,
                work: Work::Here(super::floors::one_vec_to_parked_thread),
            },
            Contestant {
                label: RXJAVA_OBSERVE_ON,
                work: Work::RxJava("observe-on"),
            },
            Contestant {
                label: "RxJava Observable, fused with range",
                work: Work::RxJava("observe-on-fused"),
            },
            Contestant {
                label: "RxJava Flowable",
                work: Work::RxJava("observe-on-flowable"),
            },
        ],
        target: Target {
            against: ONE_VEC,
            bound: Bound::AtMost(2.0),
        },
        quoted: Quoted {
            rx_2011: "0.2 s",
            rx_net: "4.77 ms",
            rxjava: "148 µs fused, 437 µs not",
        },
    },
    Case {
        name: "1,000,000 items through observe_on, count",
        items: 1_000_000,
        contestants: &[
            Contestant {
                label: FANLINE,
                work: Work::Here(super::library::observed_on_pool),
            },
            Contestant {
                label: RXJAVA_OBSERVE_ON,
                work: Work::RxJava("observe-on"),
            },
            Contestant {
                label: "RxJava Observable, fused with range",
                work: Work::RxJava("observe-on-fused"),
            },
            Contestant {
                label: "RxJava Flowable",
                work: Work::RxJava("observe-on-flowable"),
            },
        ],
        target: Target {
            against: RXJAVA_OBSERVE_ON,
            bound: Bound::AtLeast(3.0),
        },
        quoted: Quoted {
            rx_2011: "",
            rx_net: "",
            rxjava: "34.9 ms Observable, 12.9 ms Flowable",
        },
    },
];

impl Target {
    pub(super) fn describe(&self) -> String {
        match self.bound {
            Bound::AtMost(ratio) => format!("≤ {ratio}× the time of {}", self.against),
            Bound::AtLeast(ratio) => format!("≥ {ratio}× the speed of {}", self.against),
        }
    }
}
