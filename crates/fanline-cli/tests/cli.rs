//! The program `fanline` from the outside: arguments in, text and exit codes out.

#[path = "cli/auth.rs"]
mod auth;
#[path = "cli/configuration.rs"]
mod configuration;
#[path = "cli/folder.rs"]
mod folder;
#[path = "cli/front_end.rs"]
mod front_end;
#[path = "cli/jetstream.rs"]
mod jetstream;
#[path = "cli/killed/mod.rs"]
mod killed;
#[path = "cli/logs.rs"]
mod logs;
#[path = "cli/operations.rs"]
mod operations;
#[path = "cli/round_trips.rs"]
mod round_trips;
#[path = "cli/server.rs"]
mod server;
#[path = "cli/store.rs"]
mod store;

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Waits until a condition holds. `what` names the condition in the failure message.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    const WAIT_MAX: Duration = Duration::from_secs(30);
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < WAIT_MAX,
            "{what}: not within {WAIT_MAX:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the program, without settings from the environment of the test run.
fn fanline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanline"));
    command
        .env_remove("FANLINE_URL")
        .env_remove("NATS_URL")
        .stdin(Stdio::null());
    command
}

/// Runs the program to its end.
fn run(arguments: &[&str]) -> Output {
    fanline()
        .args(arguments)
        .output()
        .expect("the program runs")
}

/// Runs the program to its end, with this text on stdin.
fn run_with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = fanline()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(input.as_bytes())
        .expect("the program reads");
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

/// Returns exit code, stdout, and stderr.
fn seen(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}
