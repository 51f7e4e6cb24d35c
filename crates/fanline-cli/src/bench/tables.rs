//! The complete benchmark. It is a separate program, because it depends on the compared systems and their
//! clients.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::failure::Failure;

const PROGRAM: &str = "fanline-bench";
/// Path of the program's sources in the repository.
const SOURCES: &str = "crates/fanline-bench/Cargo.toml";

/// How the benchmark can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tables {
    /// A built program.
    Built(PathBuf),
    /// The program's sources, below this folder.
    Sources(PathBuf),
}

impl Tables {
    /// Finds the program next to this one, or its sources in the current folder or a parent folder.
    pub(super) fn find() -> Option<Self> {
        let beside = env::current_exe().ok()?.with_file_name(PROGRAM);
        let here = env::current_dir().ok()?;
        Self::find_in(&beside, &here)
    }

    fn find_in(beside: &Path, here: &Path) -> Option<Self> {
        if beside.is_file() {
            return Some(Self::Built(beside.to_owned()));
        }
        let mut folders = here.ancestors();
        let root = folders.find(|folder| folder.join(SOURCES).is_file())?;
        Some(Self::Sources(root.to_owned()))
    }

    /// Measures all tables and writes the report.
    pub(super) fn run(&self, arguments: &[OsString]) -> Result<ExitStatus, Failure> {
        let mut command = match self {
            Self::Built(program) => Command::new(program),
            Self::Sources(root) => {
                let mut cargo =
                    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
                cargo
                    .args(["run", "--release", "--package", PROGRAM, "--manifest-path"])
                    .arg(root.join("Cargo.toml"))
                    .arg("--");
                cargo
            }
        };
        Ok(command.arg("all").args(arguments).status()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmark_is_found_next_to_the_program_or_in_the_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        let root = root.expect("the workspace");
        let nowhere = root.join("nothing-here");
        let inside = root.join("crates/fanline-cli");
        for (beside, here, expected) in [
            (
                root.join("Cargo.toml"),
                inside.as_path(),
                Some(Tables::Built(root.join("Cargo.toml"))),
            ),
            (
                nowhere.clone(),
                inside.as_path(),
                Some(Tables::Sources(root.to_owned())),
            ),
            (
                nowhere.clone(),
                root,
                Some(Tables::Sources(root.to_owned())),
            ),
            (nowhere, Path::new("/"), None),
        ] {
            assert_eq!(Tables::find_in(&beside, here), expected);
        }
    }
}
