//! A server started by the program, for the tests that talk to one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::fanline;

/// Runs until it is stopped or dropped.
pub(crate) struct Server {
    child: Child,
    /// `host:port` for clients.
    pub(crate) address: String,
    /// `host:port` of monitoring, when it is on.
    pub(crate) monitoring: String,
    /// What it logged up to "Server is ready".
    pub(crate) log: Vec<String>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Server {
    /// Starts one with nats-server's flags on a free port, and waits until it is ready.
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
            if let Some((_, place)) = line.split_once("Listening for client connections on ") {
                server.address = place.trim().to_owned();
            }
            if let Some((_, place)) = line.split_once("Starting http monitor on ") {
                server.monitoring = place.trim().to_owned();
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

    /// Sends a signal by the program's own `--signal`.
    pub(crate) fn signal(&self, name: &str) {
        let target = format!("{name}={}", self.child.id());
        let status = fanline()
            .args(["--signal", &target])
            .status()
            .expect("the program runs");
        assert!(status.success(), "{target}");
    }

    /// Sends SIGQUIT, for which `--signal` has no word.
    pub(crate) fn ask_for_dump(&self) {
        let process = i32::try_from(self.child.id()).expect("a process id");
        let process = Pid::from_raw(process).expect("a process id");
        kill_process(process, Signal::QUIT).expect("it runs");
    }

    /// Reads the log up to a line that contains `text`.
    pub(crate) fn expect_log(&mut self, text: &str) {
        while !self.read_line().contains(text) {}
    }

    /// Kills it, as a power cut would if the system outlived it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("a child")
    }

    /// A tool that talks to this server.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Command {
        let mut command = fanline();
        command.args(arguments).env("FANLINE_URL", &self.address);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
