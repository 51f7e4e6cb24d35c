//! Error messages to clients.

use std::io::Write;

use crate::raw::{RawClient, SHARD_COUNTS, TestServer};

/// If a server closes a socket with unread input, the system discards the last output. The client would then
/// see a reset instead of the error.
#[test]
fn an_error_reaches_a_client_that_keeps_sending() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut client = server.client();
        client.send("PUB big 2097152\r\n");
        // The server stops reading at some point, so this write may fail.
        let _ = client.stream.write_all(&vec![b'x'; 2 * 1024 * 1024]);
        assert_eq!(client.lines_to_end(), ["-ERR 'Maximum Payload Violation'"]);
    }
}

#[test]
fn valid_lines_before_an_error_take_effect() {
    let server = TestServer::start(2);
    let mut subscriber = server.client();
    subscriber.subscribe("a", "1");
    let mut client = RawClient::open(server.address());
    client.expect_info();
    client.send("CONNECT {\"verbose\":false}\r\nSUB a 7\r\nPUB a 5\r\nfirst\r\nNONSENSE\r\nPUB a 6\r\nsecond\r\n");
    assert_eq!(client.message().payload, b"first");
    assert_eq!(client.lines_to_end(), ["-ERR 'Unknown Protocol Operation'"]);
    assert_eq!(subscriber.message().payload, b"first");
    assert_eq!(subscriber.settle(), []);
}
