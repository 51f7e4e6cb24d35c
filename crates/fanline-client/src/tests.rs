//! Tests of the client. A scripted server is at the other end of a pipe.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

const INFO: &[u8] = b"INFO {\"headers\":true,\"max_payload\":100}\r\n";

/// The server's end of the pipe, which the test controls.
struct Played {
    pipe: DuplexStream,
    seen: Vec<u8>,
}

impl Played {
    async fn say(&mut self, text: &[u8]) {
        self.pipe.write_all(text).await.expect("the client reads");
    }

    /// Reads until `text` has arrived, and discards everything up to its end.
    async fn expect(&mut self, text: &str) {
        loop {
            let found = memchr::memmem::find(&self.seen, text.as_bytes());
            if let Some(at) = found {
                self.seen.drain(..at + text.len());
                return;
            }
            let read = self.pipe.read_buf(&mut self.seen).await.expect("readable");
            let seen = String::from_utf8_lossy(&self.seen);
            assert!(
                read > 0,
                "the client disconnected, {text:?} not in {seen:?}"
            );
        }
    }
}

async fn connected() -> (Client, Played) {
    let (near, pipe) = tokio::io::duplex(4096);
    let mut played = Played {
        pipe,
        seen: Vec::new(),
    };
    let options = ConnectOptions::default().name("test");
    let accept = async {
        played.say(INFO).await;
        played.expect("PING\r\n").await;
        played.say(b"PONG\r\n").await;
    };
    let (client, ()) = tokio::join!(Client::over(near, &options), accept);
    (client.expect("accepted"), played)
}

#[tokio::test]
async fn publishes_and_receives() {
    let (client, mut server) = connected().await;
    let mut all = client.subscribe(">").await.expect("subscribed");
    client.publish("a.b", "hello").await.expect("published");
    server.expect("SUB > 1\r\nPUB a.b 5\r\nhello\r\n").await;
    server.say(b"MSG a.b 1 5\r\nhel").await;
    server
        .say(b"lo\r\nMSG gone 99 0\r\n\r\nMSG c 1 r 0\r\n\r\n")
        .await;
    let first = all.next().await.expect("first");
    assert_eq!((first.subject(), first.payload()), ("a.b", &b"hello"[..]));
    assert_eq!(all.next().await.expect("second").reply(), Some("r"));
    drop(all);
    server.expect("UNSUB 1\r\n").await;
}

#[tokio::test]
async fn invalid_subjects_are_rejected_before_sending() {
    let (client, mut server) = connected().await;
    let too_large = client.publish("a", vec![0; 101]).await;
    assert!(matches!(
        too_large,
        Err(ClientError::PayloadTooLarge { bytes: 101, .. })
    ));
    let two_lines = client.publish("a 0\r\n\r\nPUB b", "").await;
    assert!(matches!(two_lines, Err(ClientError::InvalidSubject { .. })));
    assert!(client.subscribe("a b").await.is_err());
    client.publish("ok", "").await.expect("published");
    server.expect("PUB ok 0\r\n").await;
    // The client has not sent the rejected subscription.
    assert!(server.seen == b"\r\n" || server.seen.is_empty());
}

#[tokio::test]
async fn replies_reach_their_requests() {
    let (client, mut server) = connected().await;
    let limit = Duration::from_secs(60);
    let inbox = format!("{}.r", client.connection.inbox);
    let serve = async {
        server
            .expect(&format!("SUB {inbox}.* 1\r\nPUB one {inbox}.1 1\r\nx\r\n"))
            .await;
        server
            .expect(&format!("PUB two {inbox}.2 1\r\ny\r\n"))
            .await;
        server
            .expect(&format!("PUB three {inbox}.3 0\r\n\r\n"))
            .await;
        server
            .say(format!("MSG {inbox}.2 1 1\r\n2\r\n").as_bytes())
            .await;
        server
            .say(format!("MSG {inbox}.1 1 1\r\n1\r\nMSG {inbox}.no 1 0\r\n\r\n").as_bytes())
            .await;
        let none = format!("HMSG {inbox}.3 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
        server.say(none.as_bytes()).await;
    };
    let (one, two, three, ()) = tokio::join!(
        client.request("one", "x", limit),
        client.request("two", "y", limit),
        client.request("three", "", limit),
        serve
    );
    assert_eq!(one.expect("one").payload(), b"1");
    assert_eq!(two.expect("two").payload(), b"2");
    assert!(matches!(three, Err(ClientError::NoResponders)));
}

#[tokio::test]
async fn request_times_out() {
    let (client, _server) = connected().await;
    let answer = client.request("void", "", Duration::ZERO).await;
    assert!(matches!(answer, Err(ClientError::TimedOut)));
}

#[tokio::test]
async fn subscription_ends_after_max_messages() {
    let (client, mut server) = connected().await;
    let mut two = client.subscribe("a").await.expect("subscribed");
    two.unsubscribe_after(2).await.expect("limited");
    server.expect("UNSUB 1 2\r\n").await;
    server
        .say(b"MSG a 1 0\r\n\r\nMSG a 1 0\r\n\r\nMSG a 1 0\r\n\r\n")
        .await;
    assert!(two.next().await.is_some());
    assert!(two.next().await.is_some());
    assert!(two.next().await.is_none());
}

#[tokio::test]
async fn drain_delivers_messages_in_flight() {
    let (client, mut server) = connected().await;
    let mut all = client.subscribe("a").await.expect("subscribed");
    let serve = async {
        server.expect("UNSUB 1\r\nPING\r\n").await;
        server.say(b"MSG a 1 4\r\nlast\r\nPONG\r\n").await;
        let mut rest = Vec::new();
        server.pipe.read_to_end(&mut rest).await.expect("closed");
    };
    let (drained, ()) = tokio::join!(client.drain(), serve);
    drained.expect("drained");
    assert_eq!(all.next().await.expect("the last").payload(), b"last");
    assert!(all.next().await.is_none());
    assert_eq!(client.disconnect(), Some(Disconnect::Closed));
    assert!(client.publish("a", "").await.is_err());
}

#[tokio::test]
async fn disconnect_contains_server_error() {
    for (last_words, expected) in [
        (&b""[..], Disconnect::ServerClosed),
        (
            b"-ERR 'Stale Connection'\r\n",
            Disconnect::ServerError("Stale Connection".into()),
        ),
        (b"-ERR 'x'\r\nPONG\r\n", Disconnect::ServerClosed),
        (b"SSH-2.0\r\n", Disconnect::Protocol("an unknown verb")),
    ] {
        let (client, mut server) = connected().await;
        let mut all = client.subscribe("a").await.expect("subscribed");
        let mut events = client.events();
        server.say(last_words).await;
        drop(server);
        assert_eq!(client.closed().await, expected);
        assert!(all.next().await.is_none());
        assert!(matches!(
            client.flush().await,
            Err(ClientError::Disconnected(_))
        ));
        let mut last = None;
        while let Ok(event) = events.try_recv() {
            last = Some(event);
        }
        assert_eq!(last, Some(Event::Disconnected(expected)));
    }
}

#[tokio::test]
async fn refusal_contains_server_text() {
    let (near, mut far) = tokio::io::duplex(4096);
    far.write_all(b"INFO {}\r\n-ERR 'Authorization Violation'\r\n")
        .await
        .expect("written");
    let options = ConnectOptions::default();
    let refused = Client::over(near, &options).await.err().expect("refused");
    assert!(matches!(refused, ClientError::Refused(text) if text == "Authorization Violation"));
}

#[tokio::test]
async fn publish_waits_while_buffer_is_full() {
    let (client, mut server) = connected().await;
    let payload = vec![b'x'; 100];
    let messages = 2 * limits::WRITE_BUFFER_BYTES_MAX / payload.len();
    let publish = async {
        for _ in 0..messages {
            client
                .publish("a", payload.clone())
                .await
                .expect("published");
            let buffered = client
                .connection
                .shared
                .with_outgoing(|out| out.buffer.len());
            assert!(buffered < limits::WRITE_BUFFER_BYTES_MAX + 200);
        }
        client.publish("end", "").await.expect("published");
    };
    tokio::join!(publish, server.expect("PUB end 0\r\n"));
}

#[tokio::test]
async fn full_subscription_queue_drops_and_counts() {
    let (client, mut server) = connected().await;
    let slow = client.subscribe("a").await.expect("subscribed");
    let many = b"MSG a 1 0\r\n\r\n".repeat(limits::SUBSCRIPTION_MESSAGES_MAX + 3);
    let (flushed, ()) = tokio::join!(client.flush(), async {
        server.say(&many).await;
        server.say(b"PONG\r\n").await;
    });
    flushed.expect("flushed");
    assert_eq!(slow.dropped(), 3);
}
