//! The end of connections and servers.

use std::time::Duration;

use fanline_server::{Limits, Options, Server};

use crate::raw::{RawClient, Received, SHARD_COUNTS, TestServer, options};

#[test]
fn a_client_that_answers_no_ping_is_stale() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with_limits(
            shards,
            Limits {
                ping_interval: Duration::from_millis(50),
                pings_out_max: 2,
                ..Limits::default()
            },
        );
        let mut silent = RawClient::open(server.address());
        silent.expect_info();
        assert_eq!(
            silent.lines_to_end(),
            ["PING", "PING", "-ERR 'Stale Connection'"]
        );
        let mut lively = server.client();
        for _ in 0..6 {
            while lively.line() != "PING" {}
            lively.send("PONG\r\n");
        }
        lively.settle();
    }
}

#[test]
fn a_lame_duck_says_so_and_closes() {
    for shards in SHARD_COUNTS {
        let server = TestServer::with(Options {
            lame_duck_grace_period: Duration::from_millis(50),
            lame_duck_duration: Duration::from_millis(100),
            ..options(shards)
        });
        let mut clients = server.clients(2 * shards + 1);
        server.handle.lame_duck();
        for client in &mut clients {
            let lines = client.lines_to_end();
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains("\"ldm\":true"), "{lines:?}");
        }
        server.wait();
        assert!(std::net::TcpStream::connect(server.address()).is_err());
    }
}

/// Regression: if all handles were dropped, the thread that closes clients waited for further orders in a
/// busy loop. Also, every shard took part in each step, even without clients, so one client could stay
/// connected for several times the duration of lame duck mode.
#[test]
fn lame_duck_without_handles_ends_in_time() {
    for shards in SHARD_COUNTS {
        let handle = Server::start(Options {
            lame_duck_grace_period: Duration::from_millis(10),
            lame_duck_duration: Duration::from_millis(100),
            ..options(shards)
        });
        let handle = handle.expect("the server starts");
        let mut client = RawClient::connect(handle.addresses().clients);
        handle.lame_duck();
        drop(handle);
        assert!(client.expect_info().contains("\"ldm\":true"));
        assert_eq!(client.next(), None);
    }
}

#[test]
fn a_shutdown_closes_all_and_the_port_is_free_at_once() {
    for shards in SHARD_COUNTS {
        let mut port = 0;
        for _ in 0..5 {
            let server = TestServer::with(Options {
                port,
                ..options(shards)
            });
            port = server.address().port();
            let mut clients = server.clients(2 * shards);
            let mut publisher = server.client();
            for client in &mut clients {
                client.subscribe("last", "1");
            }
            publisher.publish("last", "words");
            publisher.settle();
            server.handle.shutdown();
            for client in &mut clients {
                let words = client.message();
                assert_eq!(words.payload, b"words");
                assert_eq!(client.next(), None::<Received>);
            }
            server.wait();
        }
    }
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let server = TestServer::start(1);
    let taken = Server::start(Options {
        port: server.address().port(),
        ..options(1)
    });
    let error = taken.expect_err("the port is taken").to_string();
    assert!(
        error.starts_with("Error listening on port: 127.0.0.1:"),
        "{error}"
    );
    server.client().settle();
}
