//! Operations: `top`, `check`, and notifications to the service manager.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::folder::Folder;
use crate::server::Server;
use crate::{fanline, seen};

/// Runs a check, and compares its exit code and a part of its line.
fn check(mut command: Command, code: i32, text: &str) {
    let (seen_code, stdout, stderr) = seen(&command.output().expect("the program runs"));
    assert_eq!(seen_code, Some(code), "{stdout}{stderr}");
    assert!(stdout.contains(text), "{stdout}{stderr}");
}

/// Arguments, exit code, and a part of the output.
const CHECKS: &[(&str, i32, &str)] = &[
    ("check connection", 0, "CONNECTION OK - connected to "),
    (
        "check connection --rtt-warn 0s --rtt-critical 1m",
        1,
        "WARNING: rtt",
    ),
    (
        "check connection --rtt-critical 0s --rtt-warn 0s",
        2,
        "CRITICAL: rtt",
    ),
    ("check connection -s 127.0.0.1:1", 2, "CONNECTION CRITICAL"),
    ("check jetstream", 0, "JETSTREAM OK - JetStream responds"),
    (
        "check stream S",
        0,
        "STREAM OK S - the stream exists | messages=1 bytes=",
    ),
    ("check stream S --msgs-warn 1", 1, "WARNING: messages 1"),
    (
        "check stream --stream S --msgs-critical 1",
        2,
        "messages=1;;1",
    ),
    (
        "check stream S --msgs-warn 5 --msgs-critical 2",
        2,
        "CRITICAL: messages 1",
    ),
    ("check stream NONE", 2, "STREAM CRITICAL NONE"),
    ("check stream S --format json", 0, "\"exit_code\": 0"),
    ("check stream S --no-such-flag", 3, ""),
    ("check consumer S c", 0, "unprocessed=1"),
    (
        "check consumer S c --unprocessed-critical 1",
        2,
        "CRITICAL: unprocessed 1",
    ),
    (
        "check consumer S c --last-ack-critical 1m",
        2,
        "last_ack_age: never",
    ),
    (
        "check server MONITOR --js-required",
        0,
        "JetStream is enabled",
    ),
    (
        "check server MONITOR --conn-critical 0",
        2,
        "CRITICAL: connections",
    ),
    (
        "check server MONITOR --name other",
        2,
        "SERVER CRITICAL other",
    ),
    (
        "check server MONITOR --tls-required",
        2,
        "CRITICAL: TLS is disabled",
    ),
    (
        "check server MONITOR --format prometheus",
        0,
        "fanline_check_server_status_code",
    ),
];

#[test]
fn checks_have_the_exit_codes_of_nagios() {
    let folder = Folder::new("check");
    let server = Server::start(&["-m", "-1", "-js", "-sd", &folder.path("store")]);
    let tool = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        server.tool(&words)
    };
    let made = tool("stream add S --subjects s.> --defaults")
        .output()
        .expect("the program runs");
    assert!(made.status.success(), "{:?}", seen(&made));
    let published = tool("pub s.a hello").output().expect("the program runs");
    assert!(published.status.success());
    let added = tool("consumer add S c --defaults")
        .output()
        .expect("the program runs");
    assert!(added.status.success(), "{:?}", seen(&added));
    for (line, code, text) in CHECKS {
        let line = line.replace(
            "MONITOR",
            &format!("--monitor http://{}", server.monitoring),
        );
        check(tool(&line), *code, text);
    }
}

#[test]
fn top_prints_one_sample() {
    let server = Server::start(&["-m", "-1"]);
    let monitor = format!("http://{}", server.monitoring);
    let mut sub = server.tool(&["sub", "a", "--connection-name", "reader"]);
    let mut sub = sub.stderr(Stdio::null()).spawn().expect("the program runs");
    let once = ["top", "--once", "--interval", "50ms", "--monitor", &monitor];
    let text = loop {
        let (code, stdout, stderr) = seen(&server.tool(&once).output().expect("it runs"));
        assert_eq!(code, Some(0), "{stderr}");
        if stdout.contains("reader") {
            break stdout;
        }
    };
    assert!(text.contains("sorted by out-msgs"), "{text}");
    let json = [&once[..], &["--json", "--sort", "pending"]].concat();
    let (_, stdout, _) = seen(&server.tool(&json).output().expect("it runs"));
    let view: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(view["connections"][0]["name"], "reader", "{view}");
    assert_eq!(view["connections"][0]["subscriptions"], 1, "{view}");
    assert!(view["server"]["rates"]["in_msgs"].is_number(), "{view}");
    sub.kill().expect("it runs");
    sub.wait().expect("a child");
}

#[test]
fn service_manager_is_notified() {
    let folder = Folder::new("manager");
    let path = folder.path("socket");
    let manager = UnixDatagram::bind(&path).expect("free");
    let mut command = fanline();
    command
        .args(["-a", "127.0.0.1", "-p", "-1"])
        .env("NOTIFY_SOCKET", &path)
        .stderr(Stdio::null());
    let mut server = command.spawn().expect("the program runs");
    let notification = || {
        let mut room = [0; 256];
        let length = manager.recv(&mut room).expect("a datagram");
        String::from_utf8_lossy(&room[..length]).into_owned()
    };
    assert!(notification().starts_with("READY=1"));
    let target = format!("term={}", server.id());
    let status = fanline().args(["--signal", &target]).status();
    assert!(status.expect("the program runs").success());
    assert!(notification().starts_with("STOPPING=1"));
    assert!(server.wait().expect("a child").success());
}

/// The server prints its threads and exits with code 2. nats-server does the same with its goroutines, by
/// Go's runtime.
#[test]
fn sigquit_prints_threads_and_exits_with_2() {
    let mut server = Server::start(&["-n", "dumped"]);
    // The last thread gets its name shortly after the server is ready. A response from this thread proves
    // that it has its name.
    let status = server.tool(&["rtt", "--count", "1"]).status();
    assert!(status.expect("the program runs").success());
    server.ask_for_dump();
    server.expect_log("SIGQUIT: quit");
    server.expect_log(" connections on 127.0.0.1:");
    if cfg!(target_os = "linux") {
        server.expect_log("control");
        server.expect_log("shard-0");
    }
    assert_eq!(server.wait().code(), Some(2));
}
