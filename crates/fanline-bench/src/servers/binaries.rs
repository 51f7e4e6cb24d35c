//! The location of the servers' binaries.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{Program, System};

pub(crate) const NATS_SERVER_VERSION: &str = "2.15.2";

#[derive(Args)]
pub(crate) struct Binaries {
    /// nats-server binary to measure instead of the pinned version, which `go install` installs
    #[arg(long, value_name = "PATH")]
    pub(crate) nats_server: Option<PathBuf>,
    /// Fanline binary to measure instead of the one next to this program, which is built if missing
    #[arg(long, value_name = "PATH")]
    pub(crate) fanline: Option<PathBuf>,
}

impl Binaries {
    /// Returns nats-server, and installs it in the cache first if necessary.
    pub(crate) fn nats_server(&self) -> Result<Program> {
        let path = self.nats_server.clone();
        let path = path.map_or_else(install_nats_server, Ok)?;
        let version = say_version(&path)?;
        let version = version.trim_start_matches("nats-server: ");
        Ok(Program::new(System::Nats, path, version))
    }

    /// Returns Fanline, and builds it first if necessary.
    pub(crate) fn fanline(&self, shards: Option<usize>) -> Result<Program> {
        let path = self.fanline.clone().map_or_else(beside_or_built, Ok)?;
        let version = say_version(&path)?;
        Ok(Program {
            shards,
            ..Program::new(System::Fanline, path, &version)
        })
    }
}

/// Returns mosquitto at the path `given`. Without a path, returns the one that the system has installed.
pub(crate) fn mosquitto(given: Option<&Path>) -> Result<Program> {
    // Debian installs the binary in a directory that is not in a user's PATH.
    let places = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto"].map(Path::new);
    let found = places.into_iter().find(|place| place.exists());
    let path = given
        .or(found)
        .unwrap_or_else(|| Path::new("mosquitto"))
        .to_owned();
    let output = Command::new(&path).arg("-h").output();
    let output = output.context("no mosquitto: apt-get install mosquitto, or --mosquitto PATH")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().unwrap_or_default();
    let version = version.trim_start_matches("mosquitto version ");
    Ok(Program::new(System::Mosquitto, path, version))
}

/// Returns the directory in which nats-server is installed. It is below the user's cache directory
/// (`XDG_CACHE_HOME`), which `cargo clean` does not remove. If that variable is not set, it is below
/// `target`.
fn cache_folder() -> Result<PathBuf> {
    if let Some(cache) = env::var_os("XDG_CACHE_HOME") {
        return Ok(PathBuf::from(cache).join("fanline-bench"));
    }
    Ok(target_folder()?.join("peers"))
}

/// Returns the directory `target`, two levels above `target/release/fanline-bench`.
fn target_folder() -> Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.ancestors().nth(2).context("no target folder")?;
    Ok(folder.to_owned())
}

fn install_nats_server() -> Result<PathBuf> {
    let folder = cache_folder()?.join(format!("nats-server-{NATS_SERVER_VERSION}"));
    let path = folder.join("nats-server");
    if path.exists() {
        return Ok(path);
    }
    let package = format!("github.com/nats-io/nats-server/v2@v{NATS_SERVER_VERSION}");
    eprintln!("installing {package}");
    let status = Command::new("go")
        .args(["install", &package])
        .env("GOBIN", &folder)
        .status()
        .context("`go` is needed to install nats-server; or give --nats-server PATH")?;
    if !status.success() {
        bail!("go install {package} failed; give --nats-server PATH");
    }
    Ok(path)
}

fn beside_or_built() -> Result<PathBuf> {
    let sibling = env::current_exe()?.with_file_name("fanline");
    if sibling.exists() {
        return Ok(sibling);
    }
    let target = target_folder()?;
    eprintln!("building fanline");
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--package", "fanline-cli"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .context("`cargo` is needed to build fanline; or give --fanline PATH")?;
    if !status.success() {
        bail!("fanline could not be built; give --fanline PATH");
    }
    Ok(target.join("release").join("fanline"))
}

/// Returns the first line that the program prints for `--version`.
fn say_version(path: &Path) -> Result<String> {
    let output = Command::new(path)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or("unknown").trim().to_owned())
}
