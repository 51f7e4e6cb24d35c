//! Connection limits.

use std::time::{Duration, Instant};

use fanline_server::{Auth, Limits};

use crate::raw::{RawClient, SHARD_COUNTS, TestServer, WAIT_MAX, options};

const REFUSAL: &str = "-ERR 'maximum connections exceeded'";

#[test]
fn connection_above_the_limit_gets_an_error() {
    for shards in SHARD_COUNTS {
        let server = full_server(shards, 3);
        let mut inside = server.clients(3);
        let mut refused = RawClient::open(server.address());
        refused.expect_info();
        assert_eq!(refused.lines_to_end(), [REFUSAL]);
        for client in &mut inside {
            client.settle();
        }
    }
}

/// Regression: a refused connection was counted until it was closed. So clients that reconnected repeatedly
/// excluded each other, although the server had free slots.
#[test]
fn lingering_refused_clients_do_not_occupy_slots() {
    for shards in SHARD_COUNTS {
        let server = full_server(shards, 1);
        drop(server.client());
        let start = Instant::now();
        let mut lingering = Vec::new();
        loop {
            let mut client = RawClient::open(server.address());
            client.expect_info();
            client.send("PING\r\n");
            if client.line() != REFUSAL {
                break;
            }
            lingering.push(client);
            assert!(start.elapsed() < WAIT_MAX, "nobody gets in");
        }
    }
}

fn full_server(shards: usize, connections_max: usize) -> TestServer {
    let limits = Limits {
        connections_max,
        ..Limits::default()
    };
    TestServer::with_limits(shards, limits)
}

#[test]
fn thousand_simultaneous_connects_are_admitted() {
    const THREADS: usize = 8;
    const EACH: usize = 125;
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let address = server.address();
        let all_are_open = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let mut clients: Vec<_> = (0..EACH).map(|_| RawClient::open(address)).collect();
                    all_are_open.wait();
                    for client in &mut clients {
                        client.expect_info();
                    }
                    all_are_open.wait();
                });
            }
        });
    }
}

#[test]
fn late_authentication_gets_an_error() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with(fanline_server::Options {
            auth: Auth::Token("s3cret".into()),
            limits: Limits {
                auth_timeout: Duration::from_millis(50),
                ..Limits::default()
            },
            ..options(shards)
        });
        let mut silent = RawClient::open(server.address());
        let info = silent.expect_info();
        assert!(info.contains("\"auth_required\":true"), "{info}");
        assert_eq!(silent.lines_to_end(), ["-ERR 'Authentication Timeout'"]);
        let mut wrong = RawClient::open(server.address());
        wrong.expect_info();
        wrong.send("CONNECT {\"auth_token\":\"guess\"}\r\nPING\r\n");
        assert_eq!(wrong.lines_to_end(), ["-ERR 'Authorization Violation'"]);
    }
}
