//! The list of the library's targets, and their verdicts.

use super::churn;
use super::grid::{Calls, Flavor, Form, Load, RXJAVA};
use super::rows::{FURTHER, allocations_name};
use crate::report::Report;
use crate::report::metric::Metric;
use crate::report::target::{Bound, Target, Unit};

/// Numbers of messages and subscribers for which targets are defined.
const MESSAGES: u32 = 1_000_000;
const SUBSCRIBERS: [usize; 2] = [1, 16];

/// A target for speed, with one value for 1 subscriber and one for 16.
struct Speed {
    flavors: &'static [Flavor],
    form: Form,
    calls: Calls,
    against: Against,
    least: [f64; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Against {
    /// The reference loop of the same form and the same calls.
    Reference,
    RxJava,
}

const fn next(flavors: &'static [Flavor], form: Form, against: Against, least: [f64; 2]) -> Speed {
    Speed {
        flavors,
        form,
        calls: Calls::Next,
        against,
        least,
    }
}

const SUBJECT: &[Flavor] = &[Flavor::Subject];
const ALL: &[Flavor] = &[Flavor::All];
const FEW: &[Flavor] = &[Flavor::One, Flavor::Many];
const TIMED: &[Flavor] = &[Flavor::Within, Flavor::ManyWithin];

const TARGETS: &[Speed] = &[
    next(SUBJECT, Form::Exclusive, Against::Reference, [0.60, 0.80]),
    next(SUBJECT, Form::Shared, Against::Reference, [0.85, 0.85]),
    next(ALL, Form::Exclusive, Against::Reference, [0.70, 0.80]),
    next(ALL, Form::Exclusive, Against::RxJava, [6.0, 8.0]),
    next(ALL, Form::Shared, Against::RxJava, [1.3, 8.0]),
    next(FEW, Form::Exclusive, Against::Reference, [0.60, 0.80]),
    next(FEW, Form::Exclusive, Against::RxJava, [8.0, 7.0]),
    next(FEW, Form::Shared, Against::RxJava, [1.7, 7.0]),
    next(TIMED, Form::Exclusive, Against::Reference, [0.50, 0.80]),
    next(TIMED, Form::Exclusive, Against::RxJava, [15.0, 8.0]),
    next(TIMED, Form::Shared, Against::RxJava, [3.5, 8.0]),
    Speed {
        flavors: &[
            Flavor::Subject,
            Flavor::Behavior,
            Flavor::All,
            Flavor::One,
            Flavor::Many,
            Flavor::Within,
            Flavor::ManyWithin,
        ],
        form: Form::Exclusive,
        calls: Calls::NextSlice,
        against: Against::Reference,
        least: [0.55, 0.75],
    },
];

/// Maximum allocations per message of a flavor that stores a log.
const LOG_ALLOCATIONS: f64 = 1.0 / 1024.0;

/// Number of other subscriptions during a pair of a subscription and an unsubscription.
const CHURN_PRESENT: usize = 10_000;
const CHURN_NANOS: f64 = 150.0;
/// Smaller number of other subscriptions. The cost of a pair should not depend on the number of other
/// subscriptions. So the cost with `CHURN_PRESENT` is limited to a multiple of the cost with `CHURN_FEW`.
const CHURN_FEW: usize = 16;
const CHURN_GROWTH: f64 = 2.0;

pub(super) fn all(report: &Report, flavors: &[Flavor]) -> Vec<Target> {
    let mut targets = speeds(report, flavors);
    let both = |check: fn(&Report, Flavor, Form) -> Vec<Target>| {
        let all = flavors
            .iter()
            .flat_map(|flavor| Form::BOTH.map(|form| (*flavor, form)));
        all.flat_map(move |(flavor, form)| check(report, flavor, form))
    };
    targets.extend(both(allocations));
    targets.extend(both(pairs));
    targets
}

pub(super) fn speeds(report: &Report, flavors: &[Flavor]) -> Vec<Target> {
    let mut targets = Vec::new();
    for target in TARGETS {
        let measured = target.flavors.iter().filter(|one| flavors.contains(one));
        targets.extend(measured.flat_map(|flavor| target.check(report, *flavor)));
    }
    targets
}

impl Speed {
    fn check(&self, report: &Report, flavor: Flavor) -> [Target; 2] {
        let (other, compared, unit) = match self.against {
            Against::Reference => (self.form.reference(), "reference loop", Unit::Share),
            Against::RxJava => (RXJAVA, "RxJava", Unit::Times),
        };
        let slices = match self.calls {
            Calls::Next => "",
            Calls::NextSlice => ", next_slice of 64",
        };
        [0, 1].map(|at| {
            let subscribers = SUBSCRIBERS[at];
            let load = Load {
                flavor,
                calls: self.calls,
                messages: MESSAGES,
                subscribers,
            };
            let row = report.row(&load.name());
            let measured = row.and_then(|row| row.ratio(self.form.fanline(), other, Metric::Rate));
            let (title, form) = (flavor.title(), self.form.label());
            let what =
                format!("{title}{slices}, {form}, {subscribers} subscriber(s), to {compared}");
            let bound = Bound::AtLeast(self.least[at]);
            Target::new(what, vec![measured], bound, unit)
        })
    }
}

fn allocations(report: &Report, flavor: Flavor, form: Form) -> Vec<Target> {
    let row = report.row(&allocations_name(flavor, FURTHER));
    let per_message = row.and_then(|row| row.value(form.fanline(), Metric::Allocations));
    let most = match flavor.keeps_a_log() {
        true => LOG_ALLOCATIONS,
        false => 0.0,
    };
    let (title, form) = (flavor.title(), form.label());
    let what = format!("{title}, {form}, allocations per message");
    let unit = Unit::Of(Metric::Allocations);
    vec![Target::new(
        what,
        vec![per_message],
        Bound::AtMost(most),
        unit,
    )]
}

fn pairs(report: &Report, flavor: Flavor, form: Form) -> Vec<Target> {
    // The target applies to the more expensive of the two orders.
    let nanos = |present| {
        let of = |order| {
            let row = report.row(&churn::name(order, flavor, present))?;
            row.value(form.fanline(), Metric::Pair)
        };
        Some(f64::max(of("newest")?, of("oldest")?))
    };
    let many = nanos(CHURN_PRESENT);
    let growth = many.zip(nanos(CHURN_FEW)).map(|(many, few)| many / few);
    let (title, form) = (flavor.title(), form.label());
    let what = format!("{title}, {form}, subscribe + unsubscribe, 10,000 present");
    let of_few = format!("{what}, to 16");
    let (nanos, times) = (Unit::Of(Metric::Pair), Unit::Times);
    vec![
        Target::new(what, vec![many], Bound::AtMost(CHURN_NANOS), nanos),
        Target::new(of_few, vec![growth], Bound::AtMost(CHURN_GROWTH), times),
    ]
}
