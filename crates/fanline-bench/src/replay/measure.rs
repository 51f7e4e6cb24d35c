//! The measurement of every cell of the grid. All systems of a cell are measured in alternation.

use anyhow::{Context, Result};

use super::churn;
use super::grid::{Calls, Flavor, System};
use super::outcome::{Cell, Load, Outcome};
use super::{Sizes, rows, running};
use crate::report::versions::built_with;
use crate::report::{self, Report};
use crate::rxjava::{Jvm, RxJava};
use crate::turns::{Measurements, Plan, Repetition, turn};

/// Measures `sizes` as specified by `plan`.
pub(super) fn all(sizes: &Sizes, plan: &Plan, with_rivals: bool) -> Result<Report> {
    let rxjava = with_rivals.then(RxJava::build).transpose()?;
    let mut outcome = Outcome::default();
    let per_flavor = (sizes.messages.len() + 1) * sizes.subscribers.len();
    let progress = report::progress((per_flavor * sizes.flavors.len()) as u64);
    for flavor in &sizes.flavors {
        progress.set_message(flavor.title());
        let mut contest = Contest::start(*flavor, sizes, plan, rxjava.as_ref())?;
        for load in loads(*flavor, sizes) {
            let cell = contest.measure(load, plan);
            outcome.cells.push(cell.with_context(|| describe(load))?);
            progress.inc(1);
        }
        // End the JVMs first, because they would disturb the measurement of subscribing.
        drop(contest);
        outcome.churn.push(churn::measure(*flavor));
    }
    progress.finish_and_clear();
    let versions = |system| match (system, &rxjava) {
        (System::RxJava, Some(rxjava)) => rxjava.version.clone(),
        (System::RxRustLocal | System::RxRustShared, _) => built_with(&["rxrust"]),
        (System::TokioBroadcast, _) => built_with(&["tokio"]),
        _ => String::new(),
    };
    Ok(rows::report(&outcome, plan, versions))
}

/// Returns the loads. Each size is measured with one call per message, and the largest size also with slices.
fn loads(flavor: Flavor, sizes: &Sizes) -> Vec<Load> {
    let most = sizes.messages.iter().max().copied();
    let each = sizes
        .messages
        .iter()
        .map(|messages| (Calls::Next, *messages));
    let slices = most.into_iter().map(|most| (Calls::NextSlice, most));
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

fn describe(load: Load) -> String {
    let Load {
        flavor,
        messages,
        subscribers,
        ..
    } = load;
    let title = flavor.title();
    format!("{title}, {messages} messages, {subscribers} subscribers")
}

/// The systems that are measured with one flavor.
struct Contest {
    systems: Vec<System>,
    /// One JVM for each kind of load, so that its compiler sees only one class of subject.
    jvms: Vec<(System, Jvm)>,
}

impl Contest {
    fn start(flavor: Flavor, sizes: &Sizes, plan: &Plan, rxjava: Option<&RxJava>) -> Result<Self> {
        let mut jvms = Vec::new();
        if let Some(rxjava) = rxjava {
            for system in System::ALL {
                let Some(load) = system.rxjava_load(flavor) else {
                    continue;
                };
                let mut jvm = rxjava.start(load)?;
                // The warm-up is long enough for all of the JVM's compilers, and covers every loop of the
                // measurement.
                let most = sizes.messages.iter().max().copied().unwrap_or(1);
                for subscribers in &sizes.subscribers {
                    jvm.turn(most, *subscribers, plan.warm_up_jvm * 3)?;
                }
                jvms.push((system, jvm));
            }
        }
        let is_wanted = |system: &System| match system {
            System::RxRustLocal | System::RxRustShared | System::TokioBroadcast => rxjava.is_some(),
            _ => true,
        };
        let systems = System::ALL.into_iter().filter(is_wanted).collect();
        Ok(Self { systems, jvms })
    }

    fn measure(&mut self, load: Load, plan: &Plan) -> Result<Cell> {
        let mut taking_part = Vec::new();
        for system in self.systems.clone() {
            let is_jvm = self.jvms.iter().any(|entry| entry.0 == system);
            let warm_up = if is_jvm {
                plan.warm_up_jvm
            } else {
                plan.warm_up
            };
            if self.turn(system, load, warm_up)?.is_some() {
                taking_part.push((system, Vec::new()));
            }
        }
        for round in 0..plan.rounds {
            // Reverse the order of the systems in each round.
            if round > 0 {
                taking_part.reverse();
            }
            for (system, repetitions) in &mut taking_part {
                let done = self.turn(*system, load, plan.turn)?;
                repetitions.extend(done.unwrap_or_default());
            }
        }
        taking_part.sort_by_key(|entry| entry.0);
        let results = taking_part.iter();
        let results = results.filter_map(|(system, all)| Some((*system, Measurements::of(all)?)));
        Ok(Cell {
            load,
            results: results.collect(),
        })
    }

    /// Measures one turn of one system. Returns `None` if the system does not support the load.
    fn turn(
        &mut self,
        system: System,
        load: Load,
        budget: std::time::Duration,
    ) -> Result<Option<Vec<Repetition>>> {
        let Load {
            flavor,
            calls,
            messages,
            subscribers,
        } = load;
        if let Some((_, jvm)) = self.jvms.iter_mut().find(|entry| entry.0 == system) {
            return match calls {
                Calls::Next => jvm.turn(messages, subscribers, budget).map(Some),
                Calls::NextSlice => Ok(None),
            };
        }
        let repeat = || running::repeat(system, flavor, calls, messages, subscribers);
        if repeat().with_context(|| system.label())?.is_none() {
            return Ok(None);
        }
        let repetition = || repeat()?.context("it was there a moment ago");
        turn(budget, repetition)
            .with_context(|| system.label())
            .map(Some)
    }
}
