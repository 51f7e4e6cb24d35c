//! Tests without a server: help, versions, refused flags, completions.

use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::folder::Folder;
use crate::{fanline, run, seen};

/// Runs the program, and checks exit code and parts of stdout and stderr.
fn check(arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    check_output(arguments, &run(arguments), (code, stdout, stderr));
}

/// Runs the program under the name nats-server.
fn check_as_nats_server(arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    let output = fanline()
        .arg0("/usr/bin/nats-server")
        .args(arguments)
        .output();
    check_output(
        arguments,
        &output.expect("the program runs"),
        (code, stdout, stderr),
    );
}

fn check_output(
    arguments: &[&str],
    output: &std::process::Output,
    (code, stdout, stderr): (i32, &str, &str),
) {
    let (seen_code, seen_stdout, seen_stderr) = seen(output);
    let all = format!("{arguments:?}\ncode {seen_code:?}\n{seen_stdout}\n{seen_stderr}");
    assert_eq!(seen_code, Some(code), "{all}");
    assert!(seen_stdout.contains(stdout), "{all}");
    assert!(seen_stderr.contains(stderr), "{all}");
}

#[test]
fn help_contains_examples() {
    check(&["--help"], 0, "fanline sub 'greetings.>'", "");
    check(&["--help"], 0, "Exit codes:", "");
    for command in [
        "serve",
        "pub",
        "sub",
        "request",
        "reply",
        "rtt",
        "bench",
        "completions",
        "man",
        "top",
        "check",
    ] {
        check(&[command, "--help"], 0, "Example", "");
    }
}

#[test]
fn versions_are_printed() {
    let own = concat!(
        "fanline: v",
        env!("CARGO_PKG_VERSION"),
        " (compatible with nats-server v2."
    );
    for arguments in [["--version"], ["-v"], ["version"]] {
        check(&arguments, 0, own, "");
    }
    check_as_nats_server(&["--version"], 0, "nats-server: v2.15.2\n", "");
    check_as_nats_server(&["-js", "version"], 0, "nats-server: v2.15.2\n", "");
    check_as_nats_server(&["help"], 0, "Usage: nats-server [options]", "");
}

#[test]
fn wrong_usage_has_its_exit_codes() {
    check(&["nope"], 2, "", "unrecognized subcommand");
    check(&["pub"], 2, "", "required");
    check(
        &["pub", "two words", "x", "-s", "127.0.0.1:1"],
        1,
        "",
        "cannot connect",
    );
    check(
        &["rtt", "-s", "http://h"],
        2,
        "",
        "the scheme should be nats://",
    );
    check(&["serve", "--listen", "4222"], 1, "", "HOST:PORT");
    check(
        &["bench", "pub", "a", "--sub", "2"],
        2,
        "",
        "--sub is an option of",
    );
    check(
        &["bench", "--time", "0"],
        2,
        "",
        "must be greater than zero",
    );
    check(
        &["request", "a", "b", "--timeout", "soon"],
        2,
        "",
        "duration",
    );
}

#[test]
fn nats_server_flags_are_applied_or_refused() {
    let own = "flag provided but not defined: -zz\nthese are nats-server's flags;";
    check(&["-zz"], 1, "Usage: fanline [options]", own);
    check(&["-s", "x"], 1, "", "unexpected argument '-s'");
    check(
        &["-p", "abc"],
        1,
        "Usage: fanline",
        "invalid value \"abc\" for flag -p: parse error",
    );
    check(
        &["-p", "-1", "-max_payload=2G"],
        1,
        "",
        "[FTL] max_payload ",
    );
    check(
        &["-c", "some.conf"],
        1,
        "",
        "fanline: open some.conf: no such file or directory",
    );
    let unknown = "flag provided but not defined: -zz\n";
    check_as_nats_server(&["-zz"], 1, "Usage: nats-server", unknown);
    check_as_nats_server(
        &["-p"],
        1,
        "Usage: nats-server",
        "flag needs an argument: -p\n",
    );
    check_as_nats_server(&["x"], 1, "", "nats-server: unrecognized command: \"x\"\n");
    let no_certificate = "nats-server: TLS Server certificate must be present and valid\n";
    check_as_nats_server(&["--tls"], 1, "", no_certificate);
    check_as_nats_server(&["--help_tls"], 0, "--tlsverify", "");
    check_as_nats_server(
        &["-n", "a b"],
        1,
        "",
        "nats-server: server name cannot contain spaces\n",
    );
    check_as_nats_server(
        &["-sl", "nope=1"],
        1,
        "",
        "nats-server: unknown signal \"nope\"\n",
    );
    check_as_nats_server(
        &["-sl", "ldm=none.pid"],
        1,
        "",
        "nats-server: invalid pid: none.pid\n",
    );
    let expected = "nats-server: \nsignal \"quit\" 999999999: no such process\n";
    check_as_nats_server(&["--signal=quit=999999999"], 1, "", expected);
    let no_file = "error opening file: open /nowhere/x.log: ";
    check_as_nats_server(&["-l", "/nowhere/x.log"], 1, "", no_file);
}

#[test]
fn completions_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        check(&["completions", shell], 0, "request", "");
    }
}

#[test]
fn manual_is_written() {
    check(&["man"], 0, ".TH fanline 1", "");
    let folder = Folder::new("man");
    let pages = folder.path("pages");
    check(&["man", "--folder", &pages], 0, "", "");
    for page in ["fanline.1", "fanline-serve.1", "fanline-check-stream.1"] {
        assert!(Path::new(&pages).join(page).is_file(), "{page}");
    }
}
