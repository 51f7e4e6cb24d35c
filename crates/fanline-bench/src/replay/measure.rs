//! The measurement of every cell of the grid. All systems of a cell are measured in alternation.

use std::time::Duration;

use anyhow::{Context, Result};

use super::grid::{Calls, Flavor, Load, SYSTEMS, System, Work};
use super::{Sizes, churn, rows, running, targets};
use crate::jvm::Jvm;
use crate::report::{self, Kind, Report};
use crate::rxjava::RxJava;
use crate::subjects::version;
use crate::turns::{self, Measurements, Plan, Turn};

const TITLE: &str = "Subjects and replay: Fanline beside its reference loops and its rivals";

pub(super) struct Cell {
    pub(super) load: Load,
    pub(super) results: Vec<(&'static str, Measurements)>,
}

pub(super) fn all(sizes: &Sizes, plan: &Plan, with_rivals: bool) -> Result<Report> {
    let rxjava = with_rivals.then(RxJava::build).transpose()?;
    let mut report = Report::new(TITLE);
    plan.note(&mut report);
    let per_flavor = (sizes.messages.len() + 1) * sizes.subscribers.len();
    let progress = report::progress(per_flavor * sizes.flavors.len());
    let (mut allocations, mut pairs) = (Vec::new(), Vec::new());
    for flavor in &sizes.flavors {
        progress.set_message(flavor.title());
        let mut contest = Contest::start(*flavor, sizes, plan, rxjava.as_ref())?;
        let mut cells = Vec::new();
        for load in loads(*flavor, sizes) {
            let results = contest.measure(load, plan).with_context(|| load.name())?;
            cells.push(Cell { load, results });
            progress.inc(1);
        }
        // End the JVMs first, because they would disturb the measurement of subscribing.
        drop(contest);
        report
            .rows
            .extend(cells.iter().map(|cell| rows::speed(cell, sizes)));
        allocations.extend(rows::allocations(*flavor, &cells, sizes));
        pairs.extend(churn::measure(*flavor));
    }
    progress.finish_and_clear();
    report.rows.extend(allocations);
    report.rows.extend(pairs);
    for System { label, kind, .. } in SYSTEMS {
        report.add_measured(label, *kind, version(label, rxjava.as_ref()));
    }
    report.targets = targets::all(&report, &sizes.flavors);
    report.notes = rows::notes(plan);
    Ok(report)
}

/// Returns the loads. Each size is measured with one call per message, and the largest size also with slices.
fn loads(flavor: Flavor, sizes: &Sizes) -> Vec<Load> {
    let each = sizes.messages.iter();
    let each = each.map(|messages| (Calls::Next, *messages));
    let most = sizes.messages.last();
    let slices = most.map(|most| (Calls::NextSlice, *most));
    let with_subscribers = |(calls, messages)| {
        let all = sizes.subscribers.iter();
        all.map(move |subscribers| Load {
            flavor,
            calls,
            messages,
            subscribers: *subscribers,
        })
    };
    each.chain(slices).flat_map(with_subscribers).collect()
}

/// The systems that are measured with one flavor. Each kind of load has a JVM of its own, so that its compiler
/// sees only one class of subject.
struct Contest(Vec<(&'static System, Option<Jvm>)>);

impl Contest {
    fn start(flavor: Flavor, sizes: &Sizes, plan: &Plan, rxjava: Option<&RxJava>) -> Result<Self> {
        let mut systems = Vec::new();
        for system in SYSTEMS {
            if system.kind == Kind::Rival && rxjava.is_none() {
                continue;
            }
            let mut jvm = None;
            if let (Work::RxJava(load), Some(rxjava)) = (system.work, rxjava) {
                let Some(load) = load(flavor) else {
                    continue;
                };
                let jvm = jvm.insert(rxjava.start(&load)?);
                // The warm-up is long enough for all of the JVM's compilers, and covers every loop of the
                // measurement.
                let most = sizes.messages.last().copied().unwrap_or(1);
                for subscribers in sizes.subscribers {
                    jvm.turn(most, *subscribers, plan.warm_up_jvm * 3)?;
                }
            }
            systems.push((system, jvm));
        }
        Ok(Self(systems))
    }

    fn measure(&mut self, load: Load, plan: &Plan) -> Result<Vec<(&'static str, Measurements)>> {
        let mut systems: Vec<(&str, Turn<'_>)> = Vec::new();
        for (system, jvm) in &mut self.0 {
            let (mut turn, warm_up): (Turn<'_>, Duration) = match (system.work, jvm) {
                (Work::Here(prepare), _) => {
                    if running::repeat(prepare, load)
                        .context(system.label)?
                        .is_none()
                    {
                        continue;
                    }
                    let repeat = move || running::repeat(prepare, load)?.context("it was there");
                    (
                        Box::new(move |budget| turns::turn(budget, repeat)),
                        plan.warm_up,
                    )
                }
                (Work::RxJava(_), Some(jvm)) if load.calls == Calls::Next => {
                    let turn = move |budget| jvm.turn(load.messages, load.subscribers, budget);
                    (Box::new(turn), plan.warm_up_jvm)
                }
                _ => continue,
            };
            turn(warm_up).context(system.label)?;
            systems.push((system.label, turn));
        }
        turns::contest(plan, systems)
    }
}
