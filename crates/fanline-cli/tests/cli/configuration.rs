//! Configuration files on the command line: `-c`, `-t`, `fanline config`, reload.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::server::Server;
use crate::{run, seen};

/// A file that is removed after the test.
struct Config(PathBuf);

impl Config {
    fn new(text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fanline-config-{}-{number}.conf", std::process::id());
        let config = Config(std::env::temp_dir().join(name));
        config.write(text);
        config
    }

    fn write(&self, text: &str) {
        fs::write(&self.0, text).expect("a temporary file can be written");
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // If this fails, the system cleans its temporary folder later.
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn file_is_checked() {
    let good = Config::new("port: 4222\nprof_port: 65432");
    let (code, stdout, stderr) = seen(&run(&["-t", "-c", good.path()]));
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    assert!(stderr.contains(".conf is valid (sha256:"), "{stderr}");
    assert!(stderr.contains("warning: "), "{stderr}");
    let bad = Config::new("prot: 4222");
    let expected = format!(
        "{}:1:1: unknown field \"prot\"; did you mean \"port\"?\n",
        bad.path()
    );
    for arguments in [
        ["-t", "-c", bad.path()].as_slice(),
        &["config", "check", bad.path()],
        &["serve", "--check", "--config", bad.path()],
        &["-c", bad.path()],
    ] {
        let (code, stdout, stderr) = seen(&run(arguments));
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert_eq!(stderr, format!("fanline: {expected}"), "{arguments:?}");
    }
    let (code, _, stderr) = seen(&run(&["-t"]));
    let words = "fanline: must specify [-c, --config] option to check configuration file syntax\n";
    assert_eq!((code, stderr.as_str()), (Some(1), words));
    let number = Config::new("ping_interval: 5");
    let (code, _, stderr) = seen(&run(&["-t", "-c", number.path()]));
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("ping_interval should be converted to a duration"),
        "{stderr}"
    );
}

/// A server must start with every file that `-t` accepts. So the check also reads the TLS files that the
/// configuration names.
#[test]
fn check_reads_tls_files() {
    let missing = "cert_file: nowhere.pem, key_file: nowhere.key";
    for (text, expected) in [
        (format!("tls {{ {missing} }}"), "tls: nowhere.pem: "),
        (
            format!("websocket {{ port: -1, tls {{ {missing} }} }}"),
            "websocket tls: nowhere.pem: ",
        ),
        ("tls { ca_file: nowhere.pem }".into(), "tls: nowhere.pem: "),
        ("tls { cipher_suites: [x] }".into(), "unrecognized cipher x"),
        ("tls { cipher_suites: [] }".into(), "cannot be empty"),
        (
            format!("tls {{ certs: [ {{ {missing} }} ], {missing} }}"),
            "cannot combine 'cert_file' option with 'certs' option",
        ),
    ] {
        let config = Config::new(&text);
        for arguments in [
            ["-t", "-c", config.path()].as_slice(),
            &["config", "check", config.path()],
        ] {
            let (code, stdout, stderr) = seen(&run(arguments));
            assert_eq!((code, stdout.as_str()), (Some(1), ""), "{arguments:?}");
            assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        }
    }
}

#[test]
fn settings_are_shown_with_masked_secrets() {
    let config = Config::new("max_payload: 2KB\nauthorization { user: ada, password: s3cret }");
    for arguments in [
        ["config", "show", config.path()].as_slice(),
        &["config", "show", "--config", config.path(), "--json"],
    ] {
        let (code, stdout, stderr) = seen(&run(arguments));
        assert_eq!(code, Some(0), "{stderr}");
        assert!(
            stdout.contains("2048") && stdout.contains("ada"),
            "{stdout}"
        );
        assert!(
            !stdout.contains("s3cret") && stdout.contains("********"),
            "{stdout}"
        );
    }
    assert!(seen(&run(&["config", "show"])).1.contains("\"127.0.0.1\""));
}

/// The presence of a `debug` line shows whether the reload was applied.
#[test]
fn sighup_reloads_the_file() {
    let config = Config::new("debug: false\nmax_payload: 100");
    let mut server = Server::start(&["-c", config.path()]);
    let publish = |payload: &str| {
        let output = server.tool(&["pub", "x", payload]).output();
        output.expect("the program runs").status.success()
    };
    let large = "x".repeat(200);
    assert!(!publish(&large));
    config.write("debug: true\nmax_payload: 300");
    server.signal("reload");
    server.expect_log("Reloaded: max_payload = 300");
    server.expect_log("Reloaded: debug = true");
    server.expect_log("Reloaded server configuration (sha256:");
    let output = server.tool(&["pub", "x", &large]).output();
    assert!(output.expect("the program runs").status.success());
    config.write("debug: false\nserver_name: other");
    server.signal("reload");
    server.expect_log("Failed to reload server configuration: config reload not supported for ServerName: old=, new=other");
    config.write("debug: false\nzork: 1");
    server.signal("reload");
    server.expect_log(":2:1: unknown field \"zork\"");
    // No part of the invalid configuration was applied.
    assert!(
        server
            .tool(&["rtt"])
            .output()
            .expect("the program runs")
            .status
            .success()
    );
    server.expect_log("[DBG]");
    server.signal("quit");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn system_account_requests_a_reload() {
    let accounts =
        "accounts { SYS { users [ { user: sys, password: pw } ] } }\nsystem_account: SYS\n";
    let config = Config::new(&format!("{accounts}max_payload: 2000"));
    let mut server = Server::start(&["-c", config.path()]);
    let id = (server.log.iter()).find_map(|line| line.split_once("ID:       "));
    let id = id.map(|(_, id)| id.trim()).expect("it is logged");
    let subject = format!("$SYS.REQ.SERVER.{id}.RELOAD");
    let url = format!("nats://sys:pw@{}", server.address);
    let ask = |server: &Server| {
        let mut tool = server.tool(&["request", &subject, ""]);
        let output = tool.env("FANLINE_URL", &url).output();
        seen(&output.expect("the program runs")).1
    };
    config.write(&format!("{accounts}max_payload: 3000"));
    let answer = ask(&server);
    assert!(!answer.contains("error"), "{answer}");
    server.expect_log("Reloaded: max_payload = 3000");
    config.write(&format!("{accounts}zork: 1"));
    let answer = ask(&server);
    assert!(answer.contains("zork"), "{answer}");
    server.expect_log("Failed to reload server configuration");
}

#[test]
fn reload_without_a_file_fails() {
    let mut server = Server::start(&[]);
    server.signal("reload");
    server.expect_log("can only reload config when a file is provided using -c or --config");
    server.signal("term");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn flags_override_the_file() {
    // Server::start adds `-a 127.0.0.1 -p -1`.
    let config = Config::new("listen: 192.0.2.1:1\nserver_name: from_the_file");
    let server = Server::start(&["-c", config.path(), "-n", "from_the_flag"]);
    let log = server.log.join("");
    assert!(server.address.starts_with("127.0.0.1:"), "{log}");
    assert!(log.contains("Name:     from_the_flag"), "{log}");
    assert!(log.contains("Using configuration file: "), "{log}");
}
