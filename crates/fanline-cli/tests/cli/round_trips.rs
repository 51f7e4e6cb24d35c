//! The tools against a server of the same program.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::folder::Folder;
use crate::server::Server;
use crate::{run, run_with_input, seen, until};

/// Starts a tool and waits until it reports that it is subscribed.
fn listening(mut command: Command, words: &str) -> Child {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("readable");
    assert!(line.contains(words), "{line}");
    // Stderr stays open until the tool exits, because the tool may write more.
    std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
    child
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    seen(&command.output().expect("the program runs"))
}

#[test]
fn published_messages_are_printed() {
    let server = Server::start(&[]);
    let sub = server.tool(&["sub", "a.*", "--count", "3"]);
    let sub = listening(sub, "Subscribed to \"a.*\"");
    let published = output(server.tool(&["pub", "a.b", "hello", "-H", "K: v", "--reply", "r"]));
    assert_eq!(published.0, Some(0), "{published:?}");
    let lines = ["pub", "a.lines", "--lines", "-s", &server.address];
    let (code, _, stderr) = seen(&run_with_input(&lines, "one\ntwo"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("Published 2 messages, 6 bytes"), "{stderr}");
    let (code, stdout, _) = seen(&sub.wait_with_output().expect("it ends"));
    assert_eq!(code, Some(0));
    let expected = "[#1] Received on \"a.b\" with reply \"r\"\nK: v\n\nhello\n\n\
        [#2] Received on \"a.lines\"\none\n\n[#3] Received on \"a.lines\"\ntwo\n\n";
    assert_eq!(stdout, expected);
}

#[test]
fn requests_get_responses() {
    let server = Server::start(&[]);
    let no_responders = output(server.tool(&["request", "none", "x"]));
    assert_eq!(no_responders.0, Some(3), "{no_responders:?}");
    assert!(
        no_responders.2.contains("no responders"),
        "{no_responders:?}"
    );
    for (reply, expected) in [
        (&["reply", "q", "fixed", "--count", "1"][..], "fixed\n"),
        (&["reply", "q", "--echo", "--count", "1"], "payload\n"),
        (
            &[
                "reply",
                "q",
                "--count",
                "1",
                "--command",
                "tr a-z A-Z; echo $FANLINE_SUBJECT",
            ],
            "PAYLOADq\n\n",
        ),
    ] {
        let mut service = listening(server.tool(reply), "Answering requests on \"q\"");
        let answer = output(server.tool(&["request", "q", "payload", "--raw"]));
        assert_eq!(
            (answer.0, answer.1.as_str()),
            (Some(0), expected),
            "{answer:?}"
        );
        assert!(service.wait().expect("it ends").success());
    }
}

#[test]
fn bench_prints_rates() {
    let server = Server::start(&[]);
    let (code, stdout, stderr) = output(server.tool(&["rtt", "--count", "2"]));
    assert_eq!(
        (code, stdout.matches("RTT:").count()),
        (Some(0), 2),
        "{stdout}{stderr}"
    );
    for bench in [
        &["bench", "pub", "b", "--msgs", "1k"][..],
        &[
            "bench", "pubsub", "b", "--msgs", "1k", "--pub", "2", "--sub", "2",
        ],
        &["bench", "request", "b", "--msgs", "100", "--clients", "2"],
    ] {
        let (code, stdout, stderr) = output(server.tool(bench));
        assert_eq!(code, Some(0), "{bench:?}\n{stdout}{stderr}");
        assert!(stdout.contains("MB/s"), "{stdout}");
    }
}

#[test]
fn bench_measures_fanline_or_nats_server() {
    let folder = Folder::new("bench");
    let quick = [
        "--time",
        "50ms",
        "--row",
        "1 to 1",
        "--no-progress",
        "--dir",
        &folder.path(""),
    ];
    let (code, stdout, stderr) = seen(&run(&[&["bench"], &quick[..]].concat()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("core: 1 to 1, 128 B"), "{stdout}");
    assert!(stdout.contains("deliveries/s"), "{stdout}");

    let (code, stdout, stderr) = seen(&run(&[&["bench", "--json"], &quick[..]].concat()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let rows: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(rows[0]["row"], "core: 1 to 1, 128 B");
    assert!(rows[0]["rate"].as_f64() > Some(0.0), "{rows}");

    // Any program that identifies itself as nats-server is accepted.
    let rival = folder.path("nats-server");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fanline"), &rival).expect("a link");
    let bench = ["bench", "--nats-server", &rival, "--json"];
    let (code, stdout, stderr) = seen(&run(&[&bench[..], &quick[..]].concat()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let rows: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(rows[0]["row"], "core: 1 to 1, 128 B");
    assert!(rows[0]["rate"].as_f64() > Some(0.0), "{rows}");
    assert!(rows[0]["server_cpu_ns"].is_number(), "{rows}");
    let none = seen(&run(&["bench", "--nats-server", "/nowhere"]));
    assert_eq!(none.0, Some(2), "{none:?}");
    assert!(none.2.contains("/nowhere is not a nats-server"), "{none:?}");
}

/// Regression: after an interrupt, the server kept running, and the folder of its streams remained.
#[test]
fn interrupted_bench_removes_its_server_and_files() {
    let folder = Folder::new("bench-interrupted");
    let dir = folder.path("");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_fanline"))
        .args(["bench", "--time", "1h", "--dir", &dir])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let own = folder.path(&format!("fanline-bench-{}", bench.id()));
    let has_started = || {
        let entries = std::fs::read_dir(&own).into_iter().flatten().flatten();
        let mut paths = entries.map(|entry| entry.path());
        paths.any(|path| path.extension().is_some_and(|end| end == "ports"))
    };
    until("a server starts", has_started);
    let process = Pid::from_child(&bench);
    kill_process(process, Signal::INT).expect("it runs");
    let status = bench.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
    assert!(!Path::new(&own).exists(), "{own}");
}

#[test]
fn credentials_are_required() {
    let server = Server::start(&["--user", "ada", "--pass", "s3cret"]);
    let (code, _, stderr) = output(server.tool(&["pub", "a", "x"]));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("Authorization Violation"), "{stderr}");
    let good = output(server.tool(&["pub", "a", "x", "--user", "ada", "--password", "s3cret"]));
    assert_eq!(good.0, Some(0), "{good:?}");
}

#[test]
fn signals_are_handled_and_logged() {
    let mut server = Server::start(&["-D"]);
    let first = server.log.first().expect("a line");
    assert!(
        first.starts_with('[') && first.contains("] 20"),
        "pid, then the time: {first}"
    );
    server.signal("reopen");
    server.expect_log("[INF] File log re-open ignored, not a file logger");
    server.signal("reload");
    server.expect_log("[ERR] Failed to reload server configuration");
    server.signal("quit");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn lame_duck_without_clients_exits_at_once() {
    let mut server = Server::start(&[]);
    server.signal("ldm");
    assert_eq!(server.wait().code(), Some(0));
}
