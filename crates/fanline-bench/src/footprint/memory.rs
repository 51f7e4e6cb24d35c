//! Resident memory of subjects, each kind in a fresh process.

use std::collections::HashMap;
use std::convert::Infallible;
use std::env;
use std::hint::black_box;
use std::process::{self, Command};

use anyhow::{Context, Result, ensure};
use fanline::{BehaviorSubject, Replay, ReplaySubject, Subject};
use rxrust::prelude::{Local, ObservableFactory, Observer as _, Shared};
use tokio::sync::{broadcast, watch};

use super::is_own;
use crate::report::metric::Metric;
use crate::report::{Report, Row};
use crate::servers::cpu::Memory;
use crate::subjects::{EXCLUSIVE, Emits, SHARED};

type Value = [u8; 64];

/// Number of subjects, and number of values that each has emitted.
const SUBJECTS: u32 = 20_000;
const VALUES: u8 = 100;

const KEYS: u32 = 100_000;

/// A row, a system, and the function that returns the resident memory of one object, in bytes.
struct Kept(&'static str, &'static str, fn() -> Result<f64>);

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

#[rustfmt::skip]
const KEPT: &[Kept] = &[
    Kept("subject", EXCLUSIVE, || emitted(fanline::subject)),
    Kept("subject", SHARED, || emitted(Subject::new)),
    Kept("subject", "rxRust, Local", || {
        sent(Local::subject::<'static, Value, Infallible>, |subject, value| subject.next(value))
    }),
    Kept("subject", "rxRust, Shared", || {
        sent(Shared::subject::<'static, Value, Infallible>, |subject, value| subject.next(value))
    }),
    Kept("behavior", EXCLUSIVE, || emitted(|| fanline::behavior([0; 64]))),
    Kept("behavior", SHARED, || emitted(|| BehaviorSubject::new([0; 64]))),
    Kept("behavior", "rxRust, Local", || {
        let new = || Local::behavior_subject::<'static, Value, Infallible>([0; 64]);
        sent(new, |subject, value| subject.next(value))
    }),
    Kept("behavior", "rxRust, Shared", || {
        let new = || Shared::behavior_subject::<'static, Value, Infallible>([0; 64]);
        sent(new, |subject, value| subject.next(value))
    }),
    Kept("behavior", "tokio watch", || {
        sent(|| watch::channel([0; 64]).0, |sender, value| _ = sender.send(value))
    }),
    Kept("one", EXCLUSIVE, || emitted(|| fanline::replay(Replay::one()))),
    Kept("one", SHARED, || emitted(|| ReplaySubject::new(Replay::one()))),
    Kept("many", EXCLUSIVE, || emitted(|| fanline::replay(Replay::many(5)))),
    Kept("many", SHARED, || emitted(|| ReplaySubject::new(Replay::many(5)))),
    Kept("many", "tokio broadcast", || {
        sent(|| broadcast::channel::<Value>(5), |pair, value| _ = pair.0.send(value))
    }),
    Kept("cache", EXCLUSIVE, || cached(fanline::behavior)),
    Kept("cache", SHARED, || cached(BehaviorSubject::<Value>::new)),
    Kept("cache", "tokio watch", || cached(|value| watch::channel(value).0)),
    Kept("cache", "rxRust, Shared", || cached(Shared::behavior_subject::<'static, Value, Infallible>)),
];

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
        for kept in KEPT.iter().filter(|kept| kept.0 == name) {
            if !with_rivals && !is_own(kept.1) {
                continue;
            }
            let samples = (0..rounds).map(|_| kept.in_a_process());
            let samples = samples.collect::<Result<Vec<f64>>>()?;
            row.record_samples(kept.1, Metric::SubjectMemory, samples);
        }
        report.rows.push(row);
    }
    Ok(())
}

/// Returns the resident memory of one object in this process, in bytes. `name` is the row and the system.
pub(super) fn in_this_process(name: &str) -> Result<f64> {
    let is_it = |kept: &&Kept| kept.name() == name;
    let kept = KEPT.iter().find(is_it);
    (kept.with_context(|| format!("no kind {name}"))?.2)()
}

impl Kept {
    fn name(&self) -> String {
        format!("{}:{}", self.0, self.1)
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
    Ok(Memory::read(process::id())?.resident as f64)
}
