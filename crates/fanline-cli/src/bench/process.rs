//! Server processes with identical options, and their CPU time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Failure;

/// How long a server may take to start.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Interval of checks whether a server is ready.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the path of this program, which must be built with the server.
pub(super) fn own_program() -> Result<PathBuf, Failure> {
    if !cfg!(feature = "server") {
        return Err(Failure::Usage(
            "this fanline was built without the server: measure a running one, for example with `fanline bench pubsub`".into(),
        ));
    }
    Ok(std::env::current_exe()?)
}

/// Returns whether the program at a path is a nats-server.
pub(super) fn is_nats_server(path: &Path) -> bool {
    let output = Command::new(path).arg("--version").output();
    output.is_ok_and(|output| output.stdout.starts_with(b"nats-server: v"))
}

/// A running server. Dropping it stops it and removes its files.
pub(super) struct Process {
    child: Child,
    folder: PathBuf,
    pub(super) url: String,
}

impl Process {
    /// Starts a server with an empty store, on a port of its own, and waits until it is ready.
    pub(super) async fn start(
        program: &Path,
        folder: &Path,
        syncs_always: bool,
    ) -> Result<Self, Failure> {
        let folder = folder.join(format!("fanline-bench-{}", std::process::id()));
        let store = folder.join("store");
        fs::create_dir_all(&store)
            .map_err(|error| Failure::Error(format!("{}: {error}", store.display())))?;
        let mut command = Command::new(program);
        command
            .args(["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir"])
            .arg(&folder);
        if syncs_always {
            let file = folder.join("server.conf");
            let store = Value::from(store.to_string_lossy());
            fs::write(
                &file,
                format!("jetstream {{ store_dir: {store}, sync_interval: always }}\n"),
            )?;
            command.arg("-c").arg(file);
        } else {
            command.arg("-js").arg("-sd").arg(&store);
        }
        let log = fs::File::create(folder.join("log"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut process = Process {
            child,
            folder,
            url: String::new(),
        };
        process.url = process.ready(program).await?;
        Ok(process)
    }

    async fn ready(&mut self, program: &Path) -> Result<String, Failure> {
        let began = Instant::now();
        while began.elapsed() < START_LIMIT {
            if let Some(url) = self.listen_url() {
                return Ok(url);
            }
            if self.child.try_wait()?.is_some() {
                break;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(3).collect();
        Err(Failure::Error(format!(
            "{} did not start: {}",
            program.display(),
            last.join("; ")
        )))
    }

    /// Returns the URL in the server's ports file, once that exists.
    fn listen_url(&self) -> Option<String> {
        let entries = fs::read_dir(&self.folder).ok()?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let file = paths.find(|path| path.extension().is_some_and(|end| end == "ports"))?;
        let ports: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        Some(ports["nats"][0].as_str()?.to_owned())
    }

    /// Returns the CPU time used so far, if the system reports it.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name in parentheses may contain spaces; utime and stime are fields 14 and 15.
        let (_, fields) = stat.rsplit_once(") ")?;
        let times = fields.split(' ').skip(11).take(2).map(str::parse::<u64>);
        let ticks: u64 = times.sum::<Result<_, _>>().ok()?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Some(Duration::from_nanos(ticks * (1_000_000_000 / per_second)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The store contains no valuable data, so the process may be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
