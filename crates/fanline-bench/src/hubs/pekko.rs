//! Pekko's BroadcastHub. It is the Maven project in `rivals/pekko`, and all cells use one JVM.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::load::Load;
use crate::jvm::{self, Jvm};

const JDKS: &str = "/usr/lib/jvm";

/// Names of JDKs. The first one that is installed runs Pekko. Debian's JDK 17 is not listed, because its
/// compiler C2 has crashed on the hub's code.
const NAMES: [&str; 4] = [
    "temurin-21-jdk",
    "java-21-openjdk",
    "temurin-25-jdk",
    "java-25-openjdk",
];

/// Options of the JVM: the collector with the cheapest write barriers, and a heap that is large compared with
/// the retained data. If the JVM crashes, it writes an error file.
const OPTIONS: [&str; 5] = [
    "-XX:+UseParallelGC",
    "-Xms3g",
    "-Xmx3g",
    "-XX:ErrorFile=target/crash-%p.log",
    "-XX:-CreateCoredumpOnCrash",
];

/// Number of threads of Pekko's dispatcher.
const DISPATCHER_THREADS: &str = "2";

/// Number of attempts for a run if the JVM crashes. Each attempt has a new JVM.
const ATTEMPTS: usize = 3;

pub(super) struct Pekko {
    folder: PathBuf,
    java: PathBuf,
    jvm: Jvm,
    /// Output of each crashed JVM.
    pub(super) crashes: Vec<String>,
}

impl Pekko {
    pub(super) fn start() -> Result<Self> {
        let java_home = env::var_os("JAVA_HOME").map(PathBuf::from);
        let java_home = java_home.or_else(installed);
        let folder = jvm::package("pekko")?;
        let java = java_home.map_or_else(|| "java".into(), |home| home.join("bin/java"));
        Ok(Self {
            jvm: warm(&java, &folder)?,
            folder,
            java,
            crashes: Vec::new(),
        })
    }

    /// Returns the versions of Pekko and the JDK, as the JVM reports them.
    pub(super) fn version(&self) -> String {
        format!("{}, {}", self.jvm.banner, OPTIONS[..3].join(" "))
    }

    /// Returns the duration of a run. The dispatcher determines the number of threads, and the load's number
    /// is ignored.
    pub(super) fn run(&mut self, load: Load, elements: u64) -> Result<Duration> {
        let mut tries = 1;
        loop {
            match run(&mut self.jvm, load.buffer, load.peers, elements) {
                Err(error) if tries < ATTEMPTS => {
                    self.crashes.push(format!("{error:#}"));
                    self.jvm = warm(&self.java, &self.folder)?;
                    tries += 1;
                }
                result => return result,
            }
        }
    }
}

fn run(jvm: &mut Jvm, buffer: usize, consumers: usize, elements: u64) -> Result<Duration> {
    let answer = jvm.ask(&format!("{buffer} {consumers} {elements}"))?;
    let nanos = answer
        .parse()
        .with_context(|| format!("Pekko: no time in {answer:?}"))?;
    Ok(Duration::from_nanos(nanos))
}

/// Starts a JVM, and runs the load until its code is compiled.
fn warm(java: &Path, folder: &Path) -> Result<Jvm> {
    let mut options = OPTIONS.to_vec();
    if has_unsafe_switch(java) {
        options.push("--sun-misc-unsafe-memory-access=allow");
    }
    let mut jvm = Jvm::start(java, folder, &options, DISPATCHER_THREADS)?;
    for (buffer, consumers, elements) in [
        (256, 64, 200_000),
        (64, 256, 50_000),
        (256, 1000, 20_000),
        (64, 64, 100_000),
    ] {
        run(&mut jvm, buffer, consumers, elements)?;
    }
    Ok(jvm)
}

fn installed() -> Option<PathBuf> {
    let folders = fs::read_dir(JDKS).ok()?.filter_map(Result::ok);
    let folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    let named = |prefix: &str| {
        let mut found = folders.iter().filter(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(prefix) && folder.join("bin/java").exists()
        });
        found.next().cloned()
    };
    NAMES.into_iter().find_map(named)
}

/// Returns whether the JVM has an option that disables warnings about Pekko's memory access. JVMs since
/// version 24 print such warnings.
fn has_unsafe_switch(java: &Path) -> bool {
    let release = java.with_file_name("../release");
    let release = fs::read_to_string(release).unwrap_or_default();
    let version = release.lines().find_map(|line| {
        let version = line.strip_prefix("JAVA_VERSION=\"")?;
        version.split(['.', '"']).next()?.parse::<u32>().ok()
    });
    version.is_some_and(|version| version >= 24)
}
