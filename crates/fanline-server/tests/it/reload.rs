//! Other options while clients are connected.

use std::time::Duration;

use fanline_server::{Auth, Limits, Options};

use crate::raw::{RawClient, SHARD_COUNTS, TestServer, options};

const VIOLATION: &str = "-ERR 'Authorization Violation'";

fn user(password: &str) -> Auth {
    Auth::User {
        name: "a".into(),
        password: password.into(),
    }
}

fn connect(server: &TestServer, password: &str) -> RawClient {
    let mut client = RawClient::open(server.address());
    client.expect_info();
    client.send(format!(
        "CONNECT {{\"verbose\":false,\"user\":\"a\",\"pass\":\"{password}\"}}\r\nPING\r\n"
    ));
    client
}

#[test]
fn those_whose_credentials_hold_stay() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with(Options {
            auth: user("one"),
            ..options(shards)
        });
        let mut clients: Vec<RawClient> = (0..4).map(|_| connect(&server, "one")).collect();
        for client in &mut clients {
            client.until_pong();
            client.subscribe("x", "1");
            client.settle();
        }
        // Nothing about them changes.
        let reloaded = |auth, limits| Options {
            auth,
            limits,
            ..options(shards)
        };
        let limits = Limits {
            payload_bytes_max: 8,
            ..Limits::default()
        };
        let outcome = server.handle.reload(reloaded(user("one"), limits));
        outcome.expect("it can be reloaded");
        // Each shard obeys in its turn; a new client is behind that.
        loop {
            let mut client = RawClient::open(server.address());
            if client.expect_info().contains("\"max_payload\":8,") {
                break;
            }
        }
        for client in &mut clients {
            client.settle();
        }
        clients[0].publish("x", "12345678");
        for client in &mut clients {
            assert_eq!(client.message().payload, b"12345678");
        }
        clients[0].publish("x", "123456789");
        assert_eq!(clients[0].line(), "-ERR 'Maximum Payload Violation'");
        // A password that does not hold any more.
        let outcome = server
            .handle
            .reload(reloaded(user("two"), Limits::default()));
        outcome.expect("it can be reloaded");
        for mut client in clients.drain(1..) {
            assert_eq!(client.lines_to_end(), [VIOLATION]);
        }
        connect(&server, "two").until_pong();
        assert_eq!(connect(&server, "one").lines_to_end(), [VIOLATION]);
    }
}

#[test]
fn a_reload_that_makes_no_sense_changes_nothing() {
    let server = TestServer::start(2);
    let mut client = server.client();
    let wrong = Options {
        limits: Limits {
            payload_bytes_max: 100,
            pending_bytes_max: 10,
            ..Limits::default()
        },
        auth: user("x"),
        ..options(2)
    };
    server.handle.reload(wrong).expect_err("it makes no sense");
    client.settle();
    server.client().settle();
}

#[test]
fn silence_is_measured_by_the_new_interval() {
    let server = TestServer::start(1);
    let mut client = server.client();
    let limits = Limits {
        ping_interval: Duration::from_millis(50),
        pings_out_max: 1,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..options(1)
    };
    server.handle.reload(options).expect("it can be reloaded");
    let lines = client.lines_to_end();
    assert_eq!(
        lines.last().map(String::as_str),
        Some("-ERR 'Stale Connection'")
    );
}
