//! Reloads while clients are connected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fanline_server::auth::{Access, AccessConfig, Allowed, Permissions, User};
use fanline_server::{Auth, Limits, Options};

use crate::raw::{RawClient, Received, SHARD_COUNTS, TestServer, options};

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
fn clients_with_valid_credentials_stay_connected() {
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
        // The following reload does not affect the connected clients.
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
        // The shards apply the reload at different times. When a new client receives the new limit, its shard
        // has applied it.
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
        // This reload changes the password.
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
fn fewer_connections_allowed_close_the_youngest() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut clients: Vec<RawClient> = (0..5).map(|_| server.client()).collect();
        for client in &mut clients {
            client.settle();
        }
        let reloaded = |connections_max| Options {
            limits: Limits {
                connections_max,
                ..Limits::default()
            },
            ..options(shards)
        };
        server
            .handle
            .reload(reloaded(2))
            .expect("it can be reloaded");
        for mut client in clients.drain(2..) {
            let reply = client.lines_to_end();
            assert_eq!(
                reply,
                ["-ERR 'maximum connections exceeded'"],
                "{shards} shards"
            );
        }
        for client in &mut clients {
            client.settle();
        }
    }
}

#[test]
fn fewer_connections_allowed_in_an_account_close_its_youngest() {
    let access = |connections_max| {
        let mut config = AccessConfig::default();
        config.account_mut("$G").limits.connections_max = connections_max;
        config
    };
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut clients: Vec<RawClient> = (0..5).map(|_| server.client()).collect();
        for client in &mut clients {
            client.settle();
        }
        let replaced = server.handle.replace_access(access(Some(2)));
        replaced.expect("the access rules are valid");
        for mut client in clients.drain(2..) {
            let reply = client.lines_to_end();
            let expected = ["-ERR 'maximum account active connections exceeded'"];
            assert_eq!(reply, expected, "{shards} shards");
        }
        for client in &mut clients {
            client.settle();
        }
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
fn new_clients_get_the_new_advertised_address() {
    let server = TestServer::start(2);
    let mut before = server.client();
    for (address, expected) in [
        (
            "broker.example:4444",
            "\"host\":\"broker.example\",\"port\":4444,",
        ),
        ("other.example", "\"host\":\"other.example\","),
    ] {
        let options = Options {
            client_advertise: Some(address.into()),
            ..options(2)
        };
        server.handle.reload(options).expect("it can be reloaded");
        let info = RawClient::open(server.address()).expect_info();
        assert!(info.contains(expected), "{info}");
    }
    before.settle();
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

/// Number of users in the reloaded configuration.
const USERS: usize = 5_000;
/// Number of readers. User 0 is the publisher, and the following users are the readers.
const READERS: usize = 24;
/// Number of reloads.
const RELOADS: usize = 6;
/// Largest number of messages that are published during the reloads. Even if a reader reads none of them, it
/// stays below its limit of pending bytes.
const SENT_MAX: usize = 20_000;
/// Number of messages that are published at once.
const BATCH: usize = 10;

/// Returns users with their own permissions. `change` decides whether a user exists, and may modify it.
fn many(change: impl Fn(usize, &mut User) -> bool) -> Auth {
    let mut config = AccessConfig::default();
    for number in 0..USERS {
        let own = format!("own.{number}.>");
        let subjects = ["news", own.as_str()];
        let mut user = User::new(format!("u{number}"), "pw");
        user.permissions = Some(Permissions {
            publish: Allowed::publish(Some(&subjects), &[]).expect("subjects"),
            subscribe: Allowed::subscribe(Some(&subjects), &[]).expect("subjects"),
            responses: None,
        });
        if change(number, &mut user) {
            config.account_mut("$G").users.push(user);
        }
    }
    Auth::Directory(Access::new(config).expect("a directory").into())
}

fn as_user(server: &TestServer, number: usize) -> RawClient {
    let mut client = RawClient::open(server.address());
    client.expect_info();
    client.send(format!(
        "CONNECT {{\"verbose\":false,\"user\":\"u{number}\",\"pass\":\"pw\"}}\r\nPING\r\n"
    ));
    client.until_pong();
    client
}

/// Publishes numbers until `is_over`. Returns the number of messages.
fn publish_until(publisher: &mut RawClient, is_over: &AtomicBool) -> usize {
    let mut sent = 0;
    // Relaxed suffices, because joining the thread orders everything else.
    while sent < SENT_MAX && !is_over.load(Ordering::Relaxed) {
        for number in sent..sent + BATCH {
            publisher.publish("news", number.to_string());
        }
        sent += BATCH;
        publisher.settle();
        std::thread::sleep(Duration::from_millis(1));
    }
    sent
}

/// Adds, removes, and changes users while messages are published. At the end, three of the readers are
/// changed, too.
fn reload_many(server: &TestServer, shards: usize) {
    let reload = |auth| {
        let outcome = server.handle.reload(Options {
            auth,
            ..options(shards)
        });
        outcome.expect("it can be reloaded");
    };
    for round in 0..RELOADS {
        reload(many(|number, user| {
            let is_other = number > READERS;
            if is_other && number % 3 == round % 3 {
                *user = User::new(format!("u{number}"), "another");
            }
            !is_other || number % 5 != round % 5
        }));
    }
    reload(many(|number, user| {
        match number {
            1 => user.permissions = Some(Permissions::default()),
            2 => {
                let nothing = Allowed::subscribe(None, &["news"]).expect("subjects");
                let permissions = user.permissions.get_or_insert_default();
                permissions.subscribe = nothing;
            }
            3 => *user = User::new("u3", "another"),
            _ => {}
        }
        number != 4
    }));
}

#[test]
fn reload_of_5000_users_does_not_affect_unchanged_ones() {
    for shards in [1, 4] {
        let server = TestServer::with(Options {
            auth: many(|_, _| true),
            ..options(shards)
        });
        let mut publisher = as_user(&server, 0);
        let mut readers: Vec<RawClient> =
            (1..=READERS).map(|user| as_user(&server, user)).collect();
        for reader in &mut readers {
            reader.subscribe("news", "1");
        }
        let is_over = AtomicBool::new(false);
        let sent = std::thread::scope(|scope| {
            let publishing = scope.spawn(|| publish_until(&mut publisher, &is_over));
            reload_many(&server, shards);
            is_over.store(true, Ordering::Relaxed);
            publishing.join().expect("it publishes")
        });
        // The second reader lost its subscription, the third has another password, and the fourth was
        // removed.
        let dropped = "-ERR 'Permissions Violation for Subscription to \"news\" (sid \"1\")'";
        for (at, expected) in [(3, VIOLATION), (2, VIOLATION)] {
            let lines = readers.remove(at).lines_to_end();
            assert_eq!(lines.last().map(String::as_str), Some(expected));
        }
        let mut limited = readers.remove(1);
        loop {
            match limited.next() {
                Some(Received::Line(line)) if line == dropped => break,
                Some(_) => {}
                None => panic!("the connection ended"),
            }
        }
        // All shards have applied the reload, so only the other readers receive this message.
        publisher.publish("news", "the end");
        publisher.settle();
        assert_eq!(limited.settle(), []);
        let mut expected: Vec<String> = (0..sent).map(|number| number.to_string()).collect();
        expected.push("the end".into());
        for reader in &mut readers {
            let got: Vec<String> = (reader.settle().into_iter())
                .map(|message| String::from_utf8(message.payload).expect("text"))
                .collect();
            assert_eq!(got.len(), expected.len());
            assert_eq!(got, expected);
        }
    }
}
