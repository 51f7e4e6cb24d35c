//! Input has the same effect wherever it is split.

use crate::raw::{RawClient, Received, TestServer};

const SESSION: &str = "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n\
    SUB a.* 1\r\nSUB q workers 22\r\nPUB a.b 5\r\nhello\r\nPUB a.c reply.to 0\r\n\r\n\
    HPUB a.d 18 22\r\nNATS/1.0\r\nA: b\r\n\r\nbody\r\npub q 2\r\n\r\n\r\nUNSUB 1\r\n\
    PUB a.b 4\r\ngone\r\nPUB nobody reply.to 1\r\nx\r\nPING\r\n";

#[test]
fn input_may_be_split_anywhere() {
    let server = TestServer::start(1);
    let whole = replay(&server, SESSION.len());
    assert_eq!(whole.len(), 5, "{whole:?}");
    for cut in 1..SESSION.len() {
        assert_eq!(replay(&server, cut), whole, "cut at {cut}");
    }
}

fn replay(server: &TestServer, cut: usize) -> Vec<Received> {
    let mut client = RawClient::open(server.address());
    client.expect_info();
    let (first, second) = SESSION.split_at(cut);
    client.send(first);
    // Connects another client. When it is connected, the server has most likely read the first part. No
    // assertion depends on that.
    std::thread::yield_now();
    RawClient::connect(server.address());
    client.send(second);
    let mut received = Vec::new();
    loop {
        match client.next() {
            Some(Received::Line(line)) if line.starts_with("INFO ") || line == "PING" => {}
            Some(other) => {
                let is_last = other == Received::Line("PONG".into());
                received.push(other);
                if is_last {
                    return received;
                }
            }
            None => panic!("closed, after {received:?}"),
        }
    }
}
