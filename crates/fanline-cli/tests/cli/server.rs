//! A server process for tests that connect to one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::fanline;

/// A server that runs until it is stopped or dropped.
pub(crate) struct Server {
    child: Child,
    /// Address for clients as `host:port`.
    pub(crate) address: String,
    /// Address of monitoring as `host:port`, if enabled.
    pub(crate) monitoring: String,
    /// Log lines up to "Server is ready".
    pub(crate) log: Vec<String>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Server {
    /// Starts a server with nats-server's flags on a free port, and waits until it is ready.
    pub(crate) fn start(flags: &[&str]) -> Server {
        let mut command = fanline();
        command
            .args(["-a", "127.0.0.1", "-p", "-1"])
            .args(flags)
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut server = Server {
            child,
            address: String::new(),
            monitoring: String::new(),
            log: Vec::new(),
            stderr,
        };
        while !server
            .log
            .last()
            .is_some_and(|line| line.contains("Server is ready"))
        {
            let line = server.read_line();
            if let Some((_, listening)) = line.split_once("Listening for client connections on ") {
                server.address = listening.trim().to_owned();
            }
            if let Some((_, listening)) = line.split_once("Starting http monitor on ") {
                server.monitoring = listening.trim().to_owned();
            }
            server.log.push(line);
        }
        server
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stderr.read_line(&mut line).expect("readable");
        assert!(read > 0, "the server ended: {:?}", self.log);
        line
    }

    /// Sends a signal with the program's own `--signal`.
    pub(crate) fn signal(&self, name: &str) {
        let target = format!("{name}={}", self.child.id());
        let status = fanline()
            .args(["--signal", &target])
            .status()
            .expect("the program runs");
        assert!(status.success(), "{target}");
    }

    /// Sends SIGQUIT, which `--signal` does not support.
    pub(crate) fn ask_for_dump(&self) {
        let process = i32::try_from(self.child.id()).expect("a process id");
        let process = Pid::from_raw(process).expect("a process id");
        kill_process(process, Signal::QUIT).expect("it runs");
    }

    /// Reads the log up to a line that contains `text`.
    pub(crate) fn expect_log(&mut self, text: &str) {
        while !self.read_line().contains(text) {}
    }

    /// Kills the process, like a power cut except that the system's disk cache survives.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
    }

    /// Waits until the process exits.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("a child")
    }

    /// Returns a tool that connects to this server.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Command {
        let mut command = fanline();
        command.args(arguments).env("FANLINE_URL", &self.address);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This fails if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
