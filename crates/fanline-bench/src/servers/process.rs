//! One server process, from its start to its certain end.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::cpu::{CpuClock, Memory};
use super::descriptors::Descriptors;
use super::{Program, System};
use crate::generator::connection::Connection;
use crate::generator::mqtt;

/// A server that has not answered a PING by then has failed to start: some read what they keep first.
const START_LIMIT: Duration = Duration::from_secs(60);

/// One that has not ended by then, when it was asked to, has failed to stop.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// How often it is tried again.
const AGAIN: Duration = Duration::from_millis(1);

/// Exit code of a program that a signal has interrupted, as shells give it for Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Children that run now, for the thread that ends them on a signal.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Ends every child, then this process, on Ctrl-C and its kin.
pub(crate) fn end_children_on_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // Held to the end, so that no child starts any more.
            let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
            for pid in running.iter() {
                let _ = kill_process(*pid, Signal::KILL);
            }
            std::process::exit(INTERRUPTED);
        }
    });
    Ok(())
}

/// Raises the limit on open files as far as it goes without privileges, for this process and the
/// servers that it starts, and says where it is then; None where there is none. A limit that stays too low
/// shows as a failed row.
pub(crate) fn raise_file_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}

/// A child process that is ended when this is dropped.
pub(crate) struct Guarded {
    child: Child,
    pid: Pid,
}

impl Guarded {
    /// Starts `command`.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        running.push(pid);
        Ok(Self { child, pid })
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        // Either fails only if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        running.retain(|pid| *pid != self.pid);
    }
}

/// A running server. Dropping it ends it.
pub(crate) struct Server {
    process: Guarded,
    address: SocketAddr,
}

impl Server {
    /// Starts `program` on a free loopback port and waits until it answers a PING.
    pub(crate) fn start(program: &Program) -> Result<Self> {
        Self::start_at(program, free_address()?)
    }

    /// The same on this port, which somebody has found free.
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

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// CPU time so far.
    pub(crate) fn cpu(&self) -> Result<CpuClock> {
        CpuClock::read(self.process.child.id())
    }

    /// Memory now.
    pub(crate) fn memory(&self) -> Result<Memory> {
        Memory::read(self.process.child.id())
    }

    /// What it has open now.
    pub(crate) fn descriptors(&self) -> Result<Descriptors> {
        Descriptors::read(self.process.child.id())
    }

    /// Keeps all threads that it has now on `cores`, and with them those that they start.
    pub(crate) fn pin(&self, cores: &CpuSet) -> Result<()> {
        for entry in fs::read_dir(format!("/proc/{}/task", self.process.child.id()))? {
            let thread = entry?.file_name().to_string_lossy().parse()?;
            // One that has ended since needs no core.
            if let Err(error) = sched_setaffinity(Pid::from_raw(thread), cores)
                && error != Errno::SRCH
            {
                return Err(error).context("cannot pin the server");
            }
        }
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<()> {
        kill_process(self.process.pid, Signal::TERM)?;
        let start = Instant::now();
        while !self.process.has_ended() {
            ensure!(start.elapsed() < STOP_LIMIT, "it does not stop");
            thread::sleep(AGAIN);
        }
        Ok(())
    }

    fn wait_until_ready(&mut self, program: &Program) -> Result<()> {
        let start = Instant::now();
        loop {
            let attempt = match program.system {
                System::Mosquitto => mqtt::Connection::open(self.address, "ready", true).map(drop),
                System::Nats | System::Fanline => Connection::open(self.address).map(drop),
            };
            match attempt {
                Ok(()) => return Ok(()),
                Err(_) if self.process.has_ended() => {
                    bail!("{} ended at its start", program.system.label())
                }
                Err(error) if start.elapsed() > START_LIMIT => {
                    return Err(error.context(format!("{} not ready", program.system.label())));
                }
                Err(_) => thread::sleep(AGAIN),
            }
        }
    }
}

/// A port that nobody uses now. Another process could take it before the server does; then the
/// server fails to start and says so.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// A command for the program that the kernel ends with this process, should this one be killed
/// without a chance to do it. `setpriv` replaces itself by the program; without it a `kill -9` of
/// the benchmark leaves the server behind.
///
/// The kernel means the *thread* that starts the child: call from one that lives as long.
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
