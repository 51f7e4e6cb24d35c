//! The code size and compile time of small programs that use a library.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::is_own;
use crate::report::metric::Metric;
use crate::report::{Report, Row};
use crate::subjects::EXCLUSIVE;

/// A program: its row, its system, its dependency, and its text.
struct Program(&'static str, &'static str, &'static str, &'static str);

/// The libraries, as lines of a manifest.
const FANLINE: &str = "fanline = { path = \"FANLINE\" }";
const RXRUST: &str = "rxrust = { version = \"1.0.0-rc.6\" }";
const TOKIO: &str = "tokio = { version = \"1\", default-features = false, features = [\"sync\"] }";

/// A chain of ten operators. The sources and the argument of `scan` differ between libraries.
macro_rules! chain {
    ($prelude:literal, $source:literal, $value:literal) => {
        concat!(
            "use ",
            $prelude,
            "::prelude::*;
            fn main() {
                let limit = std::env::args().count() as u32;
                let _guard = ",
            $source,
            "::from_iter(0..1000 * limit)
                    .map(|value| value + 1)
                    .filter(|value| value % 2 == 0)
                    .skip(3)
                    .take(500)
                    .scan(0u32, |sum, value| sum.wrapping_add(",
            $value,
            "))
                    .distinct_until_changed()
                    .skip_while(|value| *value < 10)
                    .take_while(|value| *value < 100_000)
                    .pairwise()
                    .map(|(one, other)| other - one)
                    .subscribe(|value| println!(\"{value}\"));
            }"
        )
    };
}

/// The program whose size is subtracted.
#[rustfmt::skip]
const EMPTY: Program = Program("empty", "nothing", "", "fn main() { println!(\"{}\", std::env::args().count() as u32); }");

#[rustfmt::skip]
const PROGRAMS: &[Program] = &[
    Program("subject", EXCLUSIVE, FANLINE, "use fanline::prelude::*;
            fn main() {
                let (mut tx, source) = fanline::subject::<u32>();
                let _guard = source.subscribe(|value| println!(\"{value}\"));
                tx.next(std::env::args().count() as u32);
            }"),
    Program("subject", "rxRust, Local", RXRUST, "use rxrust::prelude::*;
            fn main() {
                let mut subject = Local::subject::<'static, u32, std::convert::Infallible>();
                let _guard = subject.clone().subscribe(|value| println!(\"{value}\"));
                subject.next(std::env::args().count() as u32);
            }"),
    Program("subject", "tokio broadcast", TOKIO, "fn main() {
                let (tx, mut rx) = tokio::sync::broadcast::channel(16);
                tx.send(std::env::args().count() as u32).unwrap();
                println!(\"{}\", rx.try_recv().unwrap());
            }"),
    Program("chain", EXCLUSIVE, FANLINE, chain!("fanline", "fanline::create", "*value")),
    Program("chain", "rxRust, Local", RXRUST, chain!("rxrust", "Local", "value")),
];

pub(super) fn add(report: &mut Report, rounds: u32, with_rivals: bool) -> Result<()> {
    let empty = EMPTY.build(1)?.size;
    for (name, title) in [
        ("subject", "a subject with an observer"),
        ("chain", "ten operators"),
    ] {
        let mut row = Row {
            title: title.to_owned(),
            headline: Metric::CodeSize,
            is_plotted: false,
            ..Row::new(format!("program-{name}"), "Programs")
        };
        for program in PROGRAMS.iter().filter(|program| program.0 == name) {
            if !with_rivals && !is_own(program.1) {
                continue;
            }
            let built = program.build(rounds)?;
            row.record_value(program.1, Metric::CodeSize, built.size - empty);
            row.record_samples(program.1, Metric::CompileTime, built.nanos);
        }
        report.rows.push(row);
    }
    Ok(())
}

struct Built {
    /// Bytes of the stripped program.
    size: f64,
    /// Time of each build without the dependencies.
    nanos: Vec<f64>,
}

impl Program {
    /// Builds the program with its dependencies, and then several times by itself.
    fn build(&self, rounds: u32) -> Result<Built> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let Self(row, system, dependency, main) = self;
        let name = format!("{row}-{}", system.replace([' ', ','], "").to_lowercase());
        let folder = target.join("footprint").join(&name);
        let library = root.join("crates/fanline");
        let library = library.to_str().context("the path is not UTF-8")?;
        let dependency = dependency.replace("FANLINE", library);
        fs::create_dir_all(folder.join("src"))?;
        fs::write(
            folder.join("Cargo.toml"),
            format!(
                "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
                 {dependency}\n\n[profile.release]\nstrip = true\n\n[workspace]\n"
            ),
        )?;
        // The versions of the workspace, which are downloaded already.
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let mut nanos = Vec::new();
        for _ in 0..=rounds {
            fs::write(folder.join("src/main.rs"), main)?;
            let start = Instant::now();
            let output = Command::new("cargo")
                .args(["build", "--release", "--offline", "--quiet"])
                .current_dir(&folder)
                .env("CARGO_TARGET_DIR", folder.join("target"))
                .output()
                .context("`cargo` could not be started")?;
            let messages = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{name}: {messages}");
            nanos.push(start.elapsed().as_nanos() as f64);
        }
        // The first build includes the dependencies.
        nanos.remove(0);
        let size = fs::metadata(folder.join("target/release/program"))?.len() as f64;
        Ok(Built { size, nanos })
    }
}
