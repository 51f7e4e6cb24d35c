//! RxJava under the same loads. It is the Maven project in `rivals/rxjava`, with one JVM for each kind of
//! load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::jvm::{self, Jvm};
use crate::turns::{REPETITIONS_MAX, Repetition};

/// Options of the JVM: the collector with the cheapest write barriers, and a heap whose pages are touched
/// before the first measurement.
const OPTIONS: &[&str] = &["-XX:+UseParallelGC", "-XX:+AlwaysPreTouch"];

/// Heap size of loads that retain values. Replay allocates up to 272 bytes per message, and a large heap
/// makes collections rare.
const HEAP_OF_REPLAY: [&str; 2] = ["-Xms4g", "-Xmx4g"];

/// Heap size of loads that retain nothing. Several of these JVMs may run at the same time.
const HEAP: [&str; 2] = ["-Xms1g", "-Xmx1g"];

/// Names of the loads that retain values.
const REPLAY: [&str; 5] = ["all", "one", "many", "within", "many-within"];

pub(crate) struct RxJava {
    folder: PathBuf,
    /// Versions of RxJava and the JDK, as the JVM reports them.
    pub(crate) version: String,
}

impl RxJava {
    /// Builds the project, which downloads RxJava the first time.
    pub(crate) fn build() -> Result<Self> {
        let mut rxjava = Self {
            folder: jvm::package("rxjava")?,
            version: String::new(),
        };
        rxjava.version = format!(
            "{}, {}, heap of 4 GiB for replay, 1 GiB else",
            rxjava.start("subject")?.banner,
            OPTIONS.join(" ")
        );
        Ok(rxjava)
    }

    pub(crate) fn start(&self, load: &str) -> Result<Jvm> {
        let heap = match REPLAY.contains(&load) {
            true => HEAP_OF_REPLAY,
            false => HEAP,
        };
        let options = [OPTIONS, &heap].concat();
        Jvm::start(Path::new("java"), &self.folder, &options, load)
    }
}

impl Jvm {
    /// Runs one turn of RxJava: repeats the load until `budget` is used up.
    pub(crate) fn turn(
        &mut self,
        messages: u32,
        subscribers: usize,
        budget: Duration,
    ) -> Result<Vec<Repetition>> {
        let nanos = budget.as_nanos();
        let line = format!("{messages} {subscribers} {nanos} {REPETITIONS_MAX}");
        let answer = self.ask(&line)?;
        let repetitions = answer.split_whitespace().map(repetition);
        let repetitions: Option<Vec<_>> = repetitions.collect();
        let repetitions = repetitions.filter(|all| !all.is_empty());
        repetitions.with_context(|| format!("{}: no answer, but {answer:?}", self.name))
    }
}

/// Parses a repetition of the form `nanos:bytes`.
fn repetition(word: &str) -> Option<Repetition> {
    let (nanos, bytes) = word.split_once(':')?;
    Some(Repetition {
        nanos: nanos.parse().ok()?,
        allocations: None,
        bytes: bytes.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed_as_pairs() {
        let check = |word, nanos_and_bytes: Option<(f64, f64)>| {
            let read = repetition(word).map(|one| (one.nanos, one.bytes));
            assert_eq!(read, nanos_and_bytes);
        };
        check("1200:24", Some((1200.0, 24.0)));
        check("1200", None);
        check("Exception:", None);
    }
}
