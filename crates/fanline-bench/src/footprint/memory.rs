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

use super::is_own;
use crate::report::metric::Metric;
use crate::report::{Report, Row};
use crate::subjects::{EXCLUSIVE, Emits, SHARED};

type Value = [u8; 64];

/// Number of subjects, and number of values that each has emitted.
const SUBJECTS: u32 = 20_000;
const VALUES: u8 = 100;

const KEYS: u32 = 100_000;

struct Kept {
    row: &'static str,
    system: &'static str,
    /// Returns the resident memory of one object, in bytes.
    measure: fn() -> Result<f64>,
}

/// Measures one of Fanline's subjects after it has emitted values.
fn emitted<S: Emits<Value>>(new: impl Fn() -> S) -> Result<f64> {
    sent(new, |subject, value| subject.next(value))
}

/// Measures a subject after it has emitted values.
fn sent<T>(new: impl Fn() -> T, send: impl Fn(&mut T, Value)) -> Result<f64> {
    resident(SUBJECTS, |_| {
        let mut subject = new();
        (0..VALUES).for_each(|value| send(&mut subject, [value; 64]));
        subject
    })
}

/// Measures one object with one value for each key.
fn cached<T>(new: fn(Value) -> T) -> Result<f64> {
    let mut cache = HashMap::new();
    resident(KEYS, |key| {
        cache.insert(key, new([key.to_le_bytes()[0]; 64]));
    })
}

const fn kept(row: &'static str, system: &'static str, measure: fn() -> Result<f64>) -> Kept {
    Kept {
        row,
        system,
        measure,
    }
}

/// Every measured kind, in the order of the tables.
#[rustfmt::skip]
const KEPT: &[Kept] = &[
    kept("subject", EXCLUSIVE, || emitted(fanline::subject)),
    kept("subject", SHARED, || emitted(Subject::new)),
    kept("subject", "rxRust, Local", || {
        sent(Local::subject::<'static, Value, Infallible>, |subject, value| subject.next(value))
    }),
    kept("subject", "rxRust, Shared", || {
        sent(Shared::subject::<'static, Value, Infallible>, |subject, value| subject.next(value))
    }),
    kept("behavior", EXCLUSIVE, || emitted(|| fanline::behavior([0; 64]))),
    kept("behavior", SHARED, || emitted(|| BehaviorSubject::new([0; 64]))),
    kept("behavior", "rxRust, Local", || {
        let new = || Local::behavior_subject::<'static, Value, Infallible>([0; 64]);
        sent(new, |subject, value| subject.next(value))
    }),
    kept("behavior", "rxRust, Shared", || {
        let new = || Shared::behavior_subject::<'static, Value, Infallible>([0; 64]);
        sent(new, |subject, value| subject.next(value))
    }),
    kept("behavior", "tokio watch", || {
        sent(|| watch::channel([0; 64]).0, |sender, value| _ = sender.send(value))
    }),
    kept("one", EXCLUSIVE, || emitted(|| fanline::replay(Replay::one()))),
    kept("one", SHARED, || emitted(|| ReplaySubject::new(Replay::one()))),
    kept("many", EXCLUSIVE, || emitted(|| fanline::replay(Replay::many(5)))),
    kept("many", SHARED, || emitted(|| ReplaySubject::new(Replay::many(5)))),
    kept("many", "tokio broadcast", || {
        sent(|| broadcast::channel::<Value>(5), |pair, value| _ = pair.0.send(value))
    }),
    kept("cache", EXCLUSIVE, || cached(fanline::behavior)),
    kept("cache", SHARED, || cached(BehaviorSubject::<Value>::new)),
    kept("cache", "tokio watch", || cached(|value| watch::channel(value).0)),
    kept("cache", "rxRust, Shared", || cached(Shared::behavior_subject::<'static, Value, Infallible>)),
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
            if !with_rivals && !is_own(kept.system) {
                continue;
            }
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
