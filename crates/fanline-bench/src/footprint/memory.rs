//! Resident memory of subjects, each kind in a fresh process.

use std::collections::HashMap;
use std::convert::Infallible;
use std::env;
use std::fs;
use std::hint::black_box;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fanline::{BehaviorSubject, Replay, ReplaySubject, Subject};
use rxrust::prelude::{Local, ObservableFactory, Observer as _, Shared};
use tokio::sync::{broadcast, watch};

use super::add_system;
use crate::report::metric::Metric;
use crate::report::{Report, Row};

type Value = [u8; 64];

/// Number of subjects, and number of values that each has emitted.
const SUBJECTS: u32 = 20_000;
const VALUES: u8 = 100;

/// Number of keys of the cache, each with one value.
const KEYS: u32 = 100_000;

/// One kind of object.
struct Kept {
    row: &'static str,
    system: &'static str,
    /// Returns the resident memory of one object, in bytes.
    measure: fn() -> Result<f64>,
}

/// Creates the pair and emits values.
macro_rules! exclusive {
    ($pair:expr) => {
        || {
            resident(SUBJECTS, |_| {
                let (mut tx, source) = $pair;
                (0..VALUES).for_each(|value| tx.next([value; 64]));
                (tx, source)
            })
        }
    };
}

/// Creates the subject and emits values.
macro_rules! shared {
    ($(#[$mutable:meta])? $subject:expr, $send:ident) => {
        || {
            resident(SUBJECTS, |_| {
                #[allow(unused_mut, reason = "only rxRust needs a mutable subject")]
                let mut subject = $subject;
                for value in 0..VALUES {
                    let _ = subject.$send([value; 64]);
                }
                subject
            })
        }
    };
}

/// Creates one object with one value for each key.
macro_rules! cache {
    ($new:expr) => {
        || {
            let mut cache = HashMap::new();
            resident(KEYS, |key| {
                cache.insert(key, ($new)([key.to_le_bytes()[0]; 64]));
            })
        }
    };
}

const fn kept(row: &'static str, system: &'static str, measure: fn() -> Result<f64>) -> Kept {
    Kept {
        row,
        system,
        measure,
    }
}

/// Every measured kind, in the order of the tables.
const KEPT: &[Kept] = &[
    kept(
        "subject",
        "Fanline, exclusive",
        exclusive!(fanline::subject::<Value>()),
    ),
    kept(
        "subject",
        "Fanline, shared",
        shared!(Subject::<Value>::new(), next),
    ),
    kept(
        "subject",
        "rxRust, Local",
        shared!(Local::subject::<'static, Value, Infallible>(), next),
    ),
    kept(
        "subject",
        "rxRust, Shared",
        shared!(Shared::subject::<'static, Value, Infallible>(), next),
    ),
    kept(
        "behavior",
        "Fanline, exclusive",
        exclusive!(fanline::behavior([0; 64])),
    ),
    kept(
        "behavior",
        "Fanline, shared",
        shared!(BehaviorSubject::new([0; 64]), next),
    ),
    kept(
        "behavior",
        "rxRust, Local",
        shared!(
            Local::behavior_subject::<'static, Value, Infallible>([0; 64]),
            next
        ),
    ),
    kept(
        "behavior",
        "rxRust, Shared",
        shared!(
            Shared::behavior_subject::<'static, Value, Infallible>([0; 64]),
            next
        ),
    ),
    kept(
        "behavior",
        "tokio watch",
        shared!(watch::channel([0; 64]).0, send),
    ),
    kept(
        "one",
        "Fanline, exclusive",
        exclusive!(fanline::replay::<Value>(Replay::one())),
    ),
    kept(
        "one",
        "Fanline, shared",
        shared!(ReplaySubject::<Value>::new(Replay::one()), next),
    ),
    kept(
        "many",
        "Fanline, exclusive",
        exclusive!(fanline::replay::<Value>(Replay::many(5))),
    ),
    kept(
        "many",
        "Fanline, shared",
        shared!(ReplaySubject::<Value>::new(Replay::many(5)), next),
    ),
    kept("many", "tokio broadcast", || {
        resident(SUBJECTS, |_| {
            let (tx, rx) = broadcast::channel::<Value>(5);
            for value in 0..VALUES {
                let _ = tx.send([value; 64]);
            }
            (tx, rx)
        })
    }),
    kept(
        "cache",
        "Fanline, exclusive",
        cache!(fanline::behavior::<Value>),
    ),
    kept(
        "cache",
        "Fanline, shared",
        cache!(BehaviorSubject::<Value>::new),
    ),
    kept(
        "cache",
        "tokio watch",
        cache!(|value: Value| watch::channel(value).0),
    ),
    kept(
        "cache",
        "rxRust, Shared",
        cache!(Shared::behavior_subject::<'static, Value, Infallible>),
    ),
];

/// Adds a row for each kind of object.
pub(super) fn add(report: &mut Report, rounds: u32, with_rivals: bool) -> Result<()> {
    for (name, title) in [
        ("subject", "subject"),
        ("behavior", "behavior"),
        ("one", "replay one"),
        ("many", "replay many(5)"),
        ("cache", "last-value cache, per key"),
    ] {
        let mut row = Row {
            title: title.to_owned(),
            column: "resident".to_owned(),
            headline: Metric::SubjectMemory,
            is_plotted: false,
            ..Row::new(format!("memory-{name}"), "Memory")
        };
        for kept in KEPT.iter().filter(|kept| kept.row == name) {
            if !with_rivals && !kept.system.starts_with("Fanline") {
                continue;
            }
            add_system(report, kept.system, None);
            let samples = (0..rounds).map(|_| kept.in_a_process());
            let samples = samples.collect::<Result<Vec<f64>>>()?;
            row.record_samples(kept.system, Metric::SubjectMemory, samples);
        }
        report.rows.push(row);
    }
    Ok(())
}

/// Returns the resident memory of one object in this process, in bytes. `name` is the row and the system.
pub(super) fn in_this_process(name: &str) -> Result<f64> {
    let is_it = |kept: &&Kept| kept.name() == name;
    let kept = KEPT.iter().find(is_it);
    (kept.with_context(|| format!("no kind {name}"))?.measure)()
}

impl Kept {
    fn name(&self) -> String {
        format!("{}:{}", self.row, self.system)
    }

    fn in_a_process(&self) -> Result<f64> {
        let name = self.name();
        let output = Command::new(env::current_exe()?)
            .args(["footprint", "--resident", &name])
            .output()?;
        ensure!(output.status.success(), "{name}: {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        text.trim()
            .parse()
            .with_context(|| format!("{name}: {text:?}"))
    }
}

/// Returns the growth of the resident memory by `count` objects, for each of them.
fn resident<T>(count: u32, make: impl FnMut(u32) -> T) -> Result<f64> {
    let before = resident_bytes()?;
    let all: Vec<T> = (0..count).map(make).collect();
    let after = resident_bytes()?;
    drop(black_box(all));
    Ok((after - before) / f64::from(count))
}

fn resident_bytes() -> Result<f64> {
    let pages = fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = pages
        .split(' ')
        .nth(1)
        .context("no resident pages")?
        .parse()?;
    Ok(pages * rustix::param::page_size() as f64)
}
