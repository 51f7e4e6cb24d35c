//! A server process, which is ended in all cases.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::cpu::{CpuClock, Memory};
use super::{Program, System};
use crate::generator::connection::Connection;
use crate::generator::mqtt;

/// Time limit for the response to a PING after a start. It is long, because some servers read their files
/// before they respond.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Time limit for the end of a process after a stop request.
const STOP_LIMIT: Duration = Duration::from_secs(60);

const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Raises the limit on open files to the maximum that needs no privileges, for this process and for servers
/// that it starts later. If the limit is still too low, the row that needs more files fails.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A child process that is ended when this value is dropped.
pub(crate) struct Guarded(Child);

impl Guarded {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        Ok(Self(command.spawn()?))
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server. Dropping it ends the process.
pub(crate) struct Server {
    process: Guarded,
    address: SocketAddr,
}

impl Server {
    /// Starts `program` on a free loopback port and waits until it answers a PING.
    pub(crate) fn start(program: &Program) -> Result<Self> {
        Self::start_at(program, free_address()?)
    }

    /// Does the same as [`start`](Self::start), on a port that the caller knows to be free.
    pub(crate) fn start_at(program: &Program, address: SocketAddr) -> Result<Self> {
        let arguments = program.arguments(&address.port().to_string());
        let mut command = dying_with_parent(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Guarded::spawn(&mut command)
            .with_context(|| format!("cannot start {}", program.path.display()))?;
        let mut server = Self { process, address };
        server.wait_until_ready(program)?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn cpu(&self) -> Result<CpuClock> {
        CpuClock::read(self.process.0.id())
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        Memory::read(self.process.0.id())
    }

    /// Restricts all current threads, and the threads that they will start, to `cores`.
    fn pin(&self, cores: &CpuSet) -> Result<()> {
        for entry in fs::read_dir(format!("/proc/{}/task", self.process.0.id()))? {
            let thread = entry?.file_name().to_string_lossy().parse()?;
            // A thread may have ended in the meantime.
            if let Err(error) = sched_setaffinity(Pid::from_raw(thread), cores)
                && error != Errno::SRCH
            {
                return Err(error).context("cannot pin the server");
            }
        }
        Ok(())
    }

    /// Requests the end of the process, and waits for it.
    pub(crate) fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.process.0), Signal::TERM)?;
        let start = Instant::now();
        while !self.process.has_ended() {
            ensure!(start.elapsed() < STOP_LIMIT, "it does not stop");
            thread::sleep(RETRY_INTERVAL);
        }
        Ok(())
    }

    fn wait_until_ready(&mut self, program: &Program) -> Result<()> {
        let start = Instant::now();
        loop {
            let attempt = match program.system {
                System::Mosquitto => mqtt::Connection::open(self.address, "ready", true).map(drop),
                System::Nats | System::NatsSynced | System::Fanline => {
                    Connection::open(self.address).map(drop)
                }
            };
            match attempt {
                Ok(()) => return Ok(()),
                Err(_) if self.process.has_ended() => {
                    bail!("{} ended at its start", program.system.label())
                }
                Err(error) if start.elapsed() > START_LIMIT => {
                    return Err(error.context(format!("{} not ready", program.system.label())));
                }
                Err(_) => thread::sleep(RETRY_INTERVAL),
            }
        }
    }
}

/// Returns an address with a free port. Another process could take the port before the server does. Then the
/// server fails to start and reports it.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Returns a command that starts the program. The kernel kills the started program when this process ends,
/// even if this process is killed. The command is `setpriv`, which replaces itself by the program. Without
/// `setpriv`, a `kill -9` of the benchmark leaves the server running.
///
/// The kernel observes the *thread* that starts the child, so that thread must live as long as the server.
fn dying_with_parent(program: &Program) -> Command {
    if Command::new("setpriv").arg("--version").output().is_ok() {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&program.path);
        command
    } else {
        Command::new(&program.path)
    }
}

/// Restricts a server, the calling thread, and the threads that it starts to one core. The server was started
/// on all cores, so it has its usual number of threads. When this value is dropped, the calling thread may
/// run on all cores again.
pub(crate) struct OneCore {
    before: CpuSet,
}

impl OneCore {
    pub(crate) fn share_with(server: &Server) -> Result<Self> {
        let before = sched_getaffinity(None)?;
        let first = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core));
        let mut one = CpuSet::new();
        one.set(first.context("no core to run on")?);
        server.pin(&one)?;
        sched_setaffinity(None, &one)?;
        Ok(Self { before })
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // The thread had this affinity before, so the call succeeds. If it failed, the later rows would be
        // visibly slower.
        let _ = sched_setaffinity(None, &self.before);
    }
}
