//! The measured cases, the systems that are compared, and the targets.

use super::{floors, library};
use crate::report::Kind;
use crate::report::target::{Bound, Unit};

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

impl Contestant {
    pub(super) fn kind(&self) -> Kind {
        match self.work {
            Work::RxJava(_) => Kind::Rival,
            _ if self.label == FANLINE => Kind::Own,
            _ => Kind::Reference,
        }
    }
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

const SPAWN_AND_JOIN: &str = "floor: thread spawn + join";
const ONE_VEC: &str = "floor: one Vec to a parked thread";
const RXJAVA_OBSERVE_ON: &str = "RxJava Observable, not fused";

const fn here(label: &'static str, work: fn(u32) -> u64) -> Contestant {
    let work = Work::Here(work);
    Contestant { label, work }
}

const fn nothing(label: &'static str, work: fn()) -> Contestant {
    let work = Work::Nothing(work);
    Contestant { label, work }
}

const fn rxjava(label: &'static str, load: &'static str) -> Contestant {
    let work = Work::RxJava(load);
    Contestant { label, work }
}

/// Every case, in the order of the report.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "10,000 items from an iterator, new thread, count",
        items: 10_000,
        contestants: &[
            here(FANLINE, library::on_new_thread),
            nothing(SPAWN_AND_JOIN, floors::spawn_and_join),
            here(
                "floor: a loop on a new thread, and join",
                floors::counted_on_new_thread,
            ),
            rxjava("RxJava", "new-thread"),
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
            here(FANLINE, library::observed_on_pool),
            here(ONE_VEC, floors::one_vec_to_parked_thread),
            rxjava(RXJAVA_OBSERVE_ON, "observe-on"),
            rxjava("RxJava Observable, fused with range", "observe-on-fused"),
            rxjava("RxJava Flowable", "observe-on-flowable"),
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
            here(FANLINE, library::observed_on_pool),
            rxjava(RXJAVA_OBSERVE_ON, "observe-on"),
            rxjava("RxJava Observable, fused with range", "observe-on-fused"),
            rxjava("RxJava Flowable", "observe-on-flowable"),
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
        let bound = self.bound.words(Unit::Times);
        match self.bound {
            Bound::AtMost(_) => format!("{bound} the time of {}", self.against),
            Bound::AtLeast(_) => format!("{bound} the speed of {}", self.against),
        }
    }
}

impl Quoted {
    /// Returns the results as text.
    pub(super) fn describe(&self) -> String {
        let results = [
            ("Rx in 2011", self.rx_2011),
            ("Rx.NET", self.rx_net),
            ("RxJava", self.rxjava),
        ];
        let results = results.iter().filter(|(_, result)| !result.is_empty());
        let results = results.map(|(name, result)| format!("{name} {result}"));
        results.collect::<Vec<_>>().join(", ")
    }
}
