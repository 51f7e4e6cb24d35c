//! RxJava under the same loads: the Maven project in `rivals/rxjava`, one JVM for each kind of load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::jvm;
use crate::turns::{REPETITIONS_MAX, Repetition};

/// The collector with the cheapest write barriers, and a heap that is touched before the first
/// measurement.
const OPTIONS: &[&str] = &["-XX:+UseParallelGC", "-XX:+AlwaysPreTouch"];

/// So that collections are rare: replay allocates up to 272 bytes for a message.
const HEAP_OF_REPLAY: [&str; 2] = ["-Xms4g", "-Xmx4g"];

/// Of loads that keep nothing, several of which may run side by side.
const HEAP: [&str; 2] = ["-Xms1g", "-Xmx1g"];

/// The loads that keep what they were given.
const REPLAY: [&str; 5] = ["all", "one", "many", "within", "many-within"];

fn heap(load: &str) -> [&'static str; 2] {
    if REPLAY.contains(&load) {
        HEAP_OF_REPLAY
    } else {
        HEAP
    }
}

/// The compiled Maven project.
pub(crate) struct RxJava {
    folder: PathBuf,
    /// RxJava and the JDK, as a JVM says it.
    pub(crate) version: String,
}

impl RxJava {
    /// Builds the project, which fetches RxJava the first time.
    ///
    /// # Errors
    ///
    /// When Maven or the JVM is missing, or either fails.
    pub(crate) fn build() -> Result<Self> {
        let folder = jvm::package("rxjava")?;
        let mut rxjava = Self {
            folder,
            version: String::new(),
        };
        rxjava.version = format!(
            "{}, {}, heap of 4 GiB for replay, 1 GiB else",
            rxjava.start("subject")?.jvm.banner,
            OPTIONS.join(" ")
        );
        Ok(rxjava)
    }

    /// Starts a JVM for one kind of load.
    ///
    /// # Errors
    ///
    /// When `java` is missing or the program in it fails.
    pub(crate) fn start(&self, load: &str) -> Result<Jvm> {
        let options = [OPTIONS, &heap(load)].concat();
        let jvm = jvm::Jvm::start(Path::new("java"), &self.folder, &options, load)?;
        Ok(Jvm {
            jvm,
            load: load.to_owned(),
        })
    }
}

/// A running JVM; dropping it ends the process.
pub(crate) struct Jvm {
    jvm: jvm::Jvm,
    load: String,
}

impl Jvm {
    /// One turn: repetitions until `budget` is used up.
    ///
    /// # Errors
    ///
    /// When the JVM dies, for instance since a subscriber has missed something.
    pub(crate) fn turn(
        &mut self,
        messages: u32,
        subscribers: usize,
        budget: Duration,
    ) -> Result<Vec<Repetition>> {
        let nanos = budget.as_nanos();
        let line = format!("{messages} {subscribers} {nanos} {REPETITIONS_MAX}");
        let answer = self.jvm.ask(&line)?;
        let repetitions = answer.split_whitespace().map(repetition);
        let repetitions: Option<Vec<_>> = repetitions.collect();
        match repetitions {
            Some(repetitions) if !repetitions.is_empty() => Ok(repetitions),
            _ => bail!("RxJava, {}: no answer, but {answer:?}", self.load),
        }
    }
}

/// Reads `nanos:bytes`.
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
    fn answers_are_pairs() {
        let check = |word, nanos_and_bytes: Option<(f64, f64)>| {
            let read = repetition(word).map(|one| (one.nanos, one.bytes));
            assert_eq!(read, nanos_and_bytes);
        };
        check("1200:24", Some((1200.0, 24.0)));
        check("1200", None);
        check("Exception:", None);
    }
}
