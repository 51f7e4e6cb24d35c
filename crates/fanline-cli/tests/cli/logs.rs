//! Destinations and formats of the server's log.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::folder::Folder;
use crate::server::Server;
use crate::{fanline, until};

/// A server that does not log to stderr.
struct Quiet(Child);

impl Quiet {
    fn start(flags: &[&str]) -> Self {
        let mut command = fanline();
        command
            .args(["-a", "127.0.0.1", "-p", "-1"])
            .args(flags)
            .stderr(Stdio::null());
        Quiet(command.spawn().expect("the program runs"))
    }

    fn signal(&self, name: &str) {
        let target = format!("{name}={}", self.0.id());
        let status = fanline().args(["--signal", &target]).status();
        assert!(status.expect("the program runs").success());
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // This fails if the process has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a file contains this text.
fn wait_for(path: &Path, text: &str) {
    until(text, || {
        std::fs::read_to_string(path).is_ok_and(|log| log.contains(text))
    });
}

#[test]
fn json_log_has_an_object_per_line() {
    let server = Server::start(&["--log_format", "json"]);
    for line in &server.log {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert!(
            line["time"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z'))
        );
        assert_eq!(line["level"], "info", "{line}");
        assert!(line["message"].is_string(), "{line}");
    }
}

#[test]
fn moved_file_is_reopened() {
    let folder = Folder::new("reopen");
    let path = folder.0.join("x.log");
    let server = Quiet::start(&["-l", &path.display().to_string()]);
    wait_for(&path, "Server is ready");
    let moved = folder.0.join("moved.log");
    std::fs::rename(&path, &moved).expect("moved");
    server.signal("reopen");
    wait_for(&path, "File log re-opened");
}

#[test]
fn full_file_is_rotated() {
    let folder = Folder::new("rotate");
    let path = folder.0.join("x.log");
    let file = path.display().to_string();
    let _server = Quiet::start(&["-D", "-l", &file, "--log_size_limit", "150"]);
    let is_backup = |name: &str| name.starts_with("x.log.2");
    until("the file is rotated", || {
        let entries = std::fs::read_dir(&folder.0).expect("a folder");
        let mut names = entries.map(|entry| entry.expect("an entry").file_name());
        names.any(|name| is_backup(&name.to_string_lossy()))
    });
}

#[test]
fn lines_go_to_a_remote_syslog() {
    let collector = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = collector.local_addr().expect("an address");
    let _server = Quiet::start(&["-r", &format!("udp://{address}")]);
    let mut room = [0; 2048];
    loop {
        let length = collector.recv(&mut room).expect("a line");
        let line = String::from_utf8_lossy(&room[..length]);
        assert!(line.starts_with("<29>"), "{line}");
        if line.ends_with(": Server is ready") {
            return;
        }
    }
}
