//! The list of the library's targets, and their verdicts.

use serde::Serialize;

use super::churn::Measurement;
use super::grid::{Calls, Flavor, Form, System};
use super::outcome::{Load, Report};
use crate::report::metric::three_digits;
use crate::report::{Bound, Verdict};

/// Numbers of messages and subscribers for which targets are defined.
const MESSAGES: u32 = 1_000_000;
const SUBSCRIBERS: [usize; 2] = [1, 16];

/// A target for speed, with one value for 1 subscriber and one for 16.
struct Target {
    flavors: &'static [Flavor],
    form: Form,
    calls: Calls,
    against: Against,
    least: [f64; 2],
}

/// The system by whose speed Fanline's speed is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Against {
    /// The reference loop of the same form and the same calls.
    Reference,
    RxJava,
}

const fn next(flavors: &'static [Flavor], form: Form, against: Against, least: [f64; 2]) -> Target {
    Target {
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

/// Every target for speed.
const TARGETS: &[Target] = &[
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
    Target {
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

/// A target and its results, in one column or in two (1 and 16 subscribers).
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) form: Form,
    pub(super) compared: &'static str,
    pub(super) checks: Vec<Check>,
}

/// A result and its target.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Check {
    pub(super) measured: Option<f64>,
    pub(super) target: f64,
    #[serde(skip)]
    unit: Unit,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Share,
    Times,
    Nanos,
    Growth,
    Allocations,
}

impl Check {
    pub(super) fn verdict(&self) -> Verdict {
        match self.measured {
            Some(measured) if self.bound().is_met(measured) => Verdict::Met,
            Some(_) => Verdict::Missed,
            None => Verdict::Unknown,
        }
    }

    fn bound(&self) -> Bound {
        match self.unit {
            Unit::Share | Unit::Times => Bound::AtLeast(self.target),
            Unit::Nanos | Unit::Growth | Unit::Allocations => Bound::AtMost(self.target),
        }
    }

    pub(super) fn measured(&self) -> String {
        self.measured
            .map_or_else(|| "–".to_owned(), |value| self.unit.write(value))
    }

    pub(super) fn target(&self) -> String {
        let sign = match self.bound() {
            Bound::AtLeast(_) => "≥",
            Bound::AtMost(_) => "≤",
        };
        format!("{sign} {}", self.unit.write(self.target))
    }
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.0} %", value * 100.0),
            Self::Times | Self::Growth => format!("{}×", three_digits(value)),
            Self::Nanos => format!("{} ns", three_digits(value)),
            Self::Allocations => small(value),
        }
    }
}

/// Formats an amount. The text "0" means exactly zero. Small amounts have enough digits not to be rounded to
/// zero.
pub(super) fn small(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value.abs() < 0.01 => format!("{value:.6}"),
        value => three_digits(value),
    }
}

/// Returns every target of the flavors that were measured.
pub(super) fn lines(report: &Report) -> Vec<Line> {
    let flavors = report.flavors();
    let mut lines = Vec::new();
    for target in TARGETS {
        let measured = target.flavors.iter().filter(|one| flavors.contains(one));
        lines.extend(measured.map(|flavor| speed(report, target, *flavor)));
    }
    for flavor in &flavors {
        lines.extend(Form::BOTH.map(|form| allocations(report, *flavor, form)));
    }
    lines.extend(report.churn.iter().flat_map(|churn| {
        Form::BOTH.map(|form| {
            let of_form = churn.results.iter().filter(|result| result.form == form);
            pairs(churn.flavor, form, &of_form.copied().collect::<Vec<_>>())
        })
    }));
    lines
}

/// Returns the targets as text.
pub(super) fn describe() -> String {
    let mut text = String::new();
    for target in TARGETS {
        for flavor in target.flavors {
            let line = Line {
                what: what(*flavor, target.calls),
                form: target.form,
                compared: target.compared(),
                checks: target.checks([None, None]),
            };
            let targets: Vec<String> = line.checks.iter().map(Check::target).collect();
            text += &format!(
                "{:46}{:12}{:16}{}\n",
                line.what,
                line.form.label(),
                line.compared,
                targets.join(" / ")
            );
        }
    }
    text
}

impl Target {
    fn compared(&self) -> &'static str {
        match self.against {
            Against::Reference => "reference loop",
            Against::RxJava => "RxJava",
        }
    }

    fn checks(&self, measured: [Option<f64>; 2]) -> Vec<Check> {
        let unit = match self.against {
            Against::Reference => Unit::Share,
            Against::RxJava => Unit::Times,
        };
        let both = measured.into_iter().zip(self.least);
        both.map(|(measured, target)| Check {
            measured,
            target,
            unit,
        })
        .collect()
    }
}

fn what(flavor: Flavor, calls: Calls) -> String {
    match calls {
        Calls::Next => flavor.title().to_owned(),
        Calls::NextSlice => format!("{}, next_slice of 64", flavor.title()),
    }
}

fn speed(report: &Report, target: &Target, flavor: Flavor) -> Line {
    let other = match target.against {
        Against::Reference => System::Reference(target.form),
        Against::RxJava => System::RxJava,
    };
    let measured = SUBSCRIBERS.map(|subscribers| {
        let cell = report.cell(Load {
            flavor,
            calls: target.calls,
            messages: MESSAGES,
            subscribers,
        });
        cell?.ratio(System::Fanline(target.form), other)
    });
    Line {
        what: what(flavor, target.calls),
        form: target.form,
        compared: target.compared(),
        checks: target.checks(measured),
    }
}

fn allocations(report: &Report, flavor: Flavor, form: Form) -> Line {
    let per_message = report.per_message(flavor, System::Fanline(form));
    let target = if flavor.keeps_a_log() {
        LOG_ALLOCATIONS
    } else {
        0.0
    };
    Line {
        what: format!("{}, allocations per message", flavor.title()),
        form,
        compared: "",
        checks: vec![Check {
            measured: per_message.map(|(allocations, _)| allocations),
            target,
            unit: Unit::Allocations,
        }],
    }
}

fn pairs(flavor: Flavor, form: Form, results: &[Measurement]) -> Line {
    // The target applies to the more expensive of the two orders.
    let nanos = |present| {
        let result = results.iter().find(|result| result.present == present)?;
        Some(f64::max(
            result.newest_leaves.median,
            result.oldest_leaves.median,
        ))
    };
    let many: Option<f64> = nanos(CHURN_PRESENT);
    let growth = many.zip(nanos(CHURN_FEW)).map(|(many, few)| many / few);
    Line {
        what: format!(
            "{}, subscribe + unsubscribe, 10,000 present / to 16",
            flavor.title()
        ),
        form,
        compared: "",
        checks: vec![
            Check {
                measured: many,
                target: CHURN_NANOS,
                unit: Unit::Nanos,
            },
            Check {
                measured: growth,
                target: CHURN_GROWTH,
                unit: Unit::Growth,
            },
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_reports_verdict() {
        let check = |measured, target, unit, verdict: &str, words: &str| {
            let check = Check {
                measured,
                target,
                unit,
            };
            assert_eq!(check.verdict().label(), verdict);
            assert_eq!(format!("{} ({})", check.measured(), check.target()), words);
        };
        check(Some(0.61), 0.6, Unit::Share, "met", "61 % (≥ 60 %)");
        check(Some(5.9), 6.0, Unit::Times, "MISSED", "5.90× (≥ 6.00×)");
        check(None, 6.0, Unit::Times, "unknown", "– (≥ 6.00×)");
        check(Some(0.0), 0.0, Unit::Allocations, "met", "0 (≤ 0)");
        let log = (Some(0.000_244), LOG_ALLOCATIONS);
        check(
            log.0,
            log.1,
            Unit::Allocations,
            "met",
            "0.000244 (≤ 0.000977)",
        );
        check(
            Some(151.0),
            150.0,
            Unit::Nanos,
            "MISSED",
            "151 ns (≤ 150 ns)",
        );
    }
}
