//! Monitoring over plain sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::time::Duration;

use fanline_server::{Auth, Handle, JetStreamOptions, Limits, Options, Server, WebSocketOptions};
use serde_json::Value;

use crate::raw::{WAIT_MAX, until};
use crate::transports::Authority;

/// A server that stops with its test.
struct Running(Handle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

struct Reply {
    status: u16,
    headers: String,
    body: String,
}

impl Running {
    fn start(auth: Auth) -> Self {
        Running::start_with(Options {
            auth,
            ..Options::default()
        })
    }

    fn start_with(options: Options) -> Self {
        let options = Options {
            port: 0,
            server_name: Some("watched".into()),
            monitoring: Some(("127.0.0.1".into(), 0)),
            shards: NonZeroUsize::new(2),
            ..options
        };
        Running(Server::start(options).expect("a free port"))
    }

    fn monitoring(&self) -> SocketAddr {
        self.0.addresses().monitoring.expect("it was asked for")
    }

    fn connect_http(&self) -> TcpStream {
        let stream = TcpStream::connect(self.monitoring()).expect("it listens");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        stream
    }

    fn get(&self, target: &str) -> Reply {
        let mut stream = self.connect_http();
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream
            .read_to_string(&mut text)
            .expect("an answer and the end");
        let (headers, body) = text.split_once("\r\n\r\n").expect("headers end");
        let status = headers
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Reply {
            status: status.expect("a status line"),
            headers: headers.to_ascii_lowercase(),
            body: body.into(),
        }
    }

    fn json(&self, target: &str) -> Value {
        let reply = self.get(target);
        assert_eq!(reply.status, 200, "{target}: {}", reply.body);
        assert!(
            reply.headers.contains("content-type: application/json"),
            "{target}"
        );
        assert!(
            reply.headers.contains("access-control-allow-origin: *"),
            "{target}"
        );
        serde_json::from_str(&reply.body).expect("JSON")
    }

    /// Returns a client that has sent these lines and received a PONG.
    fn client(&self, connect: &str, lines: &str) -> TcpStream {
        let stream = TcpStream::connect(self.0.addresses().clients).expect("it listens");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        let text = format!("CONNECT {connect}\r\n{lines}PING\r\n");
        (&stream).write_all(text.as_bytes()).expect("it reads");
        let mut reader = BufReader::new(&stream);
        let mut line = String::new();
        while line != "PONG\r\n" {
            line.clear();
            assert_ne!(reader.read_line(&mut line).expect("an answer"), 0, "closed");
        }
        stream
    }
}

const QUIET: &str = r#"{"verbose":false,"name":"n","lang":"l","version":"1.0"}"#;

/// Returns the keys of an object in their order in the text.
fn keys(body: &str, depth: usize) -> Vec<&str> {
    let indent = "  ".repeat(depth);
    let named = body
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{indent}\"")));
    named
        .filter_map(|rest| rest.split_once("\": ").map(|(key, _)| key))
        .collect()
}

#[test]
fn varz_tells_of_the_server_in_the_known_order() {
    let server = Running::start(Auth::Open);
    let _client = server.client(QUIET, "SUB a.* 1\r\nPUB a.b 2\r\nhi\r\n");
    let reply = server.get("/varz");
    let expected = "server_id server_name version proto go fanline host port max_connections \
        ping_interval ping_max http_host http_port http_base_path https_port auth_timeout \
        max_control_line max_payload max_pending cluster gateway leaf mqtt websocket jetstream \
        tls_timeout write_deadline start now uptime mem cores gomaxprocs cpu connections \
        total_connections routes remotes leafnodes in_msgs in_bytes in_client_msgs \
        in_client_bytes out_msgs out_bytes out_client_msgs out_client_bytes slow_consumers \
        stale_connections stalled_clients subscriptions http_req_stats config_load_time \
        config_digest feature_flags system_account slow_consumer_stats \
        stale_connection_stats disk_io_wait_stats";
    assert_eq!(
        keys(&reply.body, 1),
        expected.split_whitespace().collect::<Vec<_>>()
    );
    let varz = server.json("/varz");
    for (key, value) in [
        ("server_name", Value::from("watched")),
        ("port", server.0.addresses().clients.port().into()),
        ("http_port", server.monitoring().port().into()),
        ("auth_timeout", 2.into()),
        ("ping_interval", 120_000_000_000_u64.into()),
        ("connections", 1.into()),
        ("total_connections", 1.into()),
        ("subscriptions", 1.into()),
        ("in_msgs", 1.into()),
        ("in_bytes", 2.into()),
        ("out_client_msgs", 1.into()),
        ("http_req_stats", serde_json::json!({"/varz": 2})),
    ] {
        assert_eq!(varz[key], value, "{key}");
    }
}

/// `fanline check server --tls-required` reads these fields.
#[test]
fn varz_tells_of_listeners_and_their_tls() {
    let authority = Authority::new();
    let tls = || authority.tls();
    let server = Running::start_with(Options {
        tls: Some(tls()),
        websocket: Some(WebSocketOptions {
            tls: Some(tls()),
            allowed_origins: vec!["https://a.example".into()],
            compression: true,
            auth_timeout: Some(Duration::from_millis(500)),
            handshake_timeout: Duration::from_secs(3),
            ..WebSocketOptions::default()
        }),
        ..Options::default()
    });
    let varz = server.json("/varz");
    assert_eq!(varz["tls_required"], true);
    assert_eq!(varz["tls_verify"], Value::Null);
    assert_eq!(varz["tls_timeout"], tls().timeout.as_secs());
    let until = varz["tls_cert_not_after"].as_str().expect("an end");
    assert!(until.ends_with('Z') && until.contains('T'), "{until}");
    let websocket = &varz["websocket"];
    let port = server.0.addresses().websocket.expect("a listener").port();
    for (key, value) in [
        ("host", Value::from("127.0.0.1")),
        ("port", port.into()),
        ("handshake_timeout", 3_000_000_000_u64.into()),
        ("auth_timeout", 0.5.into()),
        ("no_tls", Value::Null),
        ("allowed_origins", serde_json::json!(["https://a.example"])),
        ("compression", true.into()),
        ("tls_cert_not_after", until.into()),
    ] {
        assert_eq!(websocket[key], value, "{key}");
    }
    let open = Running::start_with(Options {
        websocket: Some(WebSocketOptions::default()),
        ..Options::default()
    });
    let varz = open.json("/varz");
    assert_eq!(varz["tls_required"], Value::Null);
    assert_eq!(varz["websocket"]["no_tls"], true);
}

#[test]
fn varz_follows_a_reload() {
    let server = Running::start(Auth::Open);
    assert_eq!(server.json("/varz")["auth_required"], Value::Null);
    let options = Options {
        auth: Auth::Token("s3cret".into()),
        ..Options::default()
    };
    server.0.reload(options).expect("it may change");
    assert_eq!(server.json("/varz")["auth_required"], true);
}

#[test]
fn paths_may_begin_with_another() {
    let server = Running::start_with(Options {
        server_tags: vec!["ssd".into()],
        server_metadata: [("rack".to_owned(), "7".to_owned())].into(),
        monitoring_base_path: "/nats".into(),
        ..Options::default()
    });
    let varz = server.json("/nats/varz");
    for (key, value) in [
        ("http_base_path", Value::from("/nats")),
        ("tags", serde_json::json!(["ssd"])),
        ("metadata", serde_json::json!({"rack": "7"})),
    ] {
        assert_eq!(varz[key], value, "{key}");
    }
    for path in ["/varz", "/natsvarz", "/nats/nats/varz"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    for path in ["/nats", "/nats/"] {
        let reply = server.get(path);
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.body.contains("\"/nats/varz\""), "{path}");
    }
}

#[test]
fn connz_tells_of_open_connections() {
    let server = Running::start(Auth::Open);
    let _one = server.client(
        QUIET,
        "SUB a.* 1\r\nSUB b q 2\r\nUNSUB 2 9\r\nPUB a.b 2\r\nhi\r\n",
    );
    let _two = server.client(r#"{"verbose":false}"#, "");
    let connz = server.json("/connz?subs=1");
    assert_eq!(connz["num_connections"], 2);
    assert_eq!(connz["limit"], 1024);
    let one = &connz["connections"][0];
    for (key, value) in [
        ("cid", Value::from(1)),
        ("kind", "Client".into()),
        ("type", "nats".into()),
        ("ip", "127.0.0.1".into()),
        ("name", "n".into()),
        ("lang", "l".into()),
        ("version", "1.0".into()),
        ("subscriptions", 2.into()),
        ("in_msgs", 1.into()),
        ("out_bytes", 2.into()),
    ] {
        assert_eq!(one[key], value, "{key}");
    }
    assert_eq!(one["subscriptions_list"], serde_json::json!(["a.*", "b"]));
    assert_eq!(connz["connections"][1].get("name"), None);
    let detail = server.json("/connz?subs=detail&sort=subs&limit=1");
    let details = detail["connections"][0]["subscriptions_list_detail"].as_array();
    let details = details.expect("a list");
    let with_queue = serde_json::json!(
        {"subject": "b", "qgroup": "q", "sid": "2", "msgs": 0, "max": 9, "cid": 1}
    );
    assert!(details.contains(&with_queue), "{details:?}");
    let second = server.json("/connz?offset=1&limit=1");
    assert_eq!(
        (&second["total"], &second["num_connections"]),
        (&2.into(), &1.into())
    );
    assert_eq!(second["connections"][0]["cid"], 2);
    assert_eq!(server.json("/connz?cid=2")["connections"][0]["cid"], 2);
    assert_eq!(
        server.json("/connz?cid=9")["connections"],
        serde_json::json!([])
    );
    assert_eq!(
        server.json("/connz?acc=other")["connections"],
        serde_json::json!([])
    );
}

/// Regression: the filter searched only the connections of one page.
#[test]
fn connz_finds_words_among_all_connections() {
    let server = Running::start(Auth::Open);
    let named = |name: &str| server.client(&format!(r#"{{"name":"{name}","lang":"go"}}"#), "");
    let _all = ["Kitchen sensor", "garden sensor", "mqtt gateway"].map(named);
    for (find, cids) in [
        ("sensor", &[1, 2][..]),
        ("GO+sensor+kitchen", &[1]),
        ("127.0.0.1+gateway", &[3]),
        ("sensor+gateway", &[]),
    ] {
        let connz = server.json(&format!("/connz?find={find}"));
        let found = connz["connections"].as_array().expect("a list");
        let found: Vec<_> = found.iter().map(|one| one["cid"].as_i64()).collect();
        let cids: Vec<_> = cids.iter().map(|cid| Some(*cid)).collect();
        assert_eq!(found, cids, "{find}");
        assert_eq!(connz["total"], 3);
    }
    let last = server.json("/connz?find=sensor&limit=1&offset=1");
    assert_eq!(last["connections"][0]["cid"], 2);
}

#[test]
fn connz_lists_closed_connections_with_reasons() {
    let server = Running::start(Auth::User {
        name: "ada".into(),
        password: "s3cret".into(),
    });
    let ada = r#"{"verbose":false,"user":"ada","pass":"s3cret"}"#;
    let mut bad = server.client(ada, "SUB a 1\r\n");
    let _good = server.client(ada, "");
    bad.write_all(b"PUB a 99999999\r\n").expect("it reads");
    let mut rest = String::new();
    bad.read_to_string(&mut rest).expect("the end");
    drop(bad);
    // A refused connection stays open for a short time after its error, and its further input is discarded.
    let closed = loop {
        let closed = server.json("/connz?state=closed&sort=stop&auth=1");
        if closed["num_connections"] == 1 {
            break closed;
        }
    };
    let gone = &closed["connections"][0];
    assert_eq!(gone["reason"], "Maximum Message Payload Exceeded");
    assert_eq!(gone["subscriptions"], 1);
    assert_eq!(gone["authorized_user"], "ada");
    assert!(gone["stop"].is_string());
    let all = server.json("/connz?state=all&user=ada");
    assert_eq!(
        (&all["total"], &all["num_connections"]),
        (&2.into(), &2.into())
    );
    assert_eq!(server.json("/connz?user=eve")["num_connections"], 0);
    let open = server.json("/connz");
    assert_eq!(open["num_connections"], 1);
    assert_eq!(open["connections"][0].get("authorized_user"), None);
}

#[test]
fn memory_of_many_subscriptions_is_freed_with_their_client() {
    const COUNT: usize = 20_000;
    let server = Running::start(Auth::Open);
    let mut other = server.client(QUIET, "SUB b 1\r\n");
    let wanted: String = (0..COUNT).map(|i| format!("SUB a.{i} {i}\r\n")).collect();
    let leaver = server.client(QUIET, &wanted);
    assert_eq!(server.json("/subsz")["num_subscriptions"], COUNT + 1);
    drop(leaver);
    let closed = loop {
        // Other clients are still served.
        other.write_all(b"PUB b 2\r\nhi\r\n").expect("it reads");
        let mut message = [0; "MSG b 1 2\r\nhi\r\n".len()];
        other.read_exact(&mut message).expect("a message");
        let closed = server.json("/connz?state=closed");
        if closed["num_connections"] == 1 {
            break closed;
        }
    };
    assert_eq!(closed["connections"][0]["subscriptions"], COUNT);
    let subsz = server.json("/subsz");
    assert_eq!(subsz["num_subscriptions"], 1);
    assert_eq!(subsz["num_removes"], COUNT);
}

#[test]
fn subsz_lists_pages_and_tests_subscriptions() {
    let server = Running::start(Auth::Open);
    let _one = server.client(QUIET, "SUB a.* 1\r\nSUB b q 2\r\nSUB c 3\r\nUNSUB 3\r\n");
    let _two = server.client(QUIET, "SUB a.> 1\r\n");
    let counts = server.json("/subsz");
    for (key, value) in [
        ("num_subscriptions", 3),
        ("num_inserts", 4),
        ("num_removes", 1),
        ("total", 0),
    ] {
        assert_eq!(counts[key], value, "{key}");
    }
    let subjects = |target| -> Vec<String> {
        let subsz = server.json(target);
        let list = subsz["subscriptions_list"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        list.iter()
            .map(|sub| sub["subject"].as_str().unwrap_or_default().into())
            .collect()
    };
    assert_eq!(subjects("/subsz?subs=1"), ["a.*", "b", "a.>"]);
    assert_eq!(subjects("/subscriptionsz?subs=1&offset=1&limit=1"), ["b"]);
    assert_eq!(subjects("/subsz?subs=1&test=a.b"), ["a.*", "a.>"]);
    assert_eq!(subjects("/subsz?subs=1&acc=other"), [""; 0]);
    // Only Fanline has the parameter `find`. It selects by words in the reported texts, before the list is
    // split into pages.
    assert_eq!(subjects("/subsz?subs=1&find=A.&limit=1&offset=1"), ["a.>"]);
    assert_eq!(subjects("/subsz?subs=1&find=q+b"), ["b"]);
    assert_eq!(subjects("/subsz?subs=1&find=q+c"), [""; 0]);
}

#[test]
fn every_path_answers_as_it_should() {
    let server = Running::start(Auth::Open);
    for (target, status, part) in [
        ("/", 200, "<h1>Fanline</h1>"),
        ("/healthz", 200, r#"{"status":"ok"}"#),
        (
            "/healthz?js-enabled-only=true&js-server-only=1",
            200,
            r#"{"status":"ok"}"#,
        ),
        (
            "/healthz?account=$G&stream=s&consumer=c",
            200,
            r#"{"status":"ok"}"#,
        ),
        (
            "/healthz?stream=s",
            400,
            r#"{"status":"error","error":"\"account\" must not"#,
        ),
        (
            "/healthz?consumer=c&details=1",
            400,
            r#""errors":[{"type":"BAD_REQUEST","error":"#,
        ),
        (
            "/healthz?js-enabled-only=x",
            400,
            "Error decoding boolean for 'js-enabled-only'",
        ),
        ("/routez", 200, r#""routes": []"#),
        ("/leafz", 200, r#""leafs": []"#),
        ("/gatewayz", 200, r#""inbound_gateways": {}"#),
        ("/raftz", 404, "No Raft nodes registered"),
        ("/ipqueuesz", 200, "{}"),
        ("/stacksz", 200, "control  "),
        ("/debug/vars", 200, r#""HeapInuse": "#),
        ("/accountz", 200, r#""$G""#),
        ("/accountz?acc=$G", 200, r#""client_connections": 0"#),
        ("/accountz?acc=x", 400, "Account x does not exist"),
        ("/accstatz", 200, r#""account_statz": []"#),
        ("/accstatz?unused=1", 200, r#""acc": "$G""#),
        ("/jsz?streams=1", 200, r#""disabled": true"#),
        ("/metrics", 200, "\nfanline_connections 0\n"),
        (
            "/connz?sort=stop",
            400,
            "sort by stop only valid on closed connections",
        ),
        ("/connz?limit=x", 400, "Error decoding int for 'limit'"),
        (
            "/subsz?test=a.*",
            400,
            "invalid test subject, must be valid publish subject: a.*",
        ),
        ("/varz/", 404, "404 page not found"),
        ("/nothing?x=%zz", 404, "404 page not found"),
    ] {
        let reply = server.get(target);
        assert_eq!(reply.status, status, "{target}");
        assert!(reply.body.contains(part), "{target}: {}", reply.body);
    }
}

/// Returns a server with a stream of one message and a consumer, and the responses to the requests.
async fn with_a_stream() -> (Running, Vec<String>) {
    let server = Running::start_with(Options {
        jetstream: Some(JetStreamOptions {
            memory_bytes_max: Some(1_000),
            ..JetStreamOptions::default()
        }),
        ..Options::default()
    });
    let client = server.0.client().await.expect("connected");
    let mut received = Vec::new();
    for (subject, payload) in [
        (
            "$JS.API.STREAM.CREATE.S",
            r#"{"name":"S","subjects":["s.*"],"storage":"memory","max_bytes":600}"#,
        ),
        (
            "$JS.API.STREAM.CREATE.T",
            r#"{"name":"T","storage":"memory","max_bytes":600}"#,
        ),
        (
            "$JS.API.CONSUMER.CREATE.S.c",
            r#"{"stream_name":"S","config":{"durable_name":"c","ack_policy":"explicit"}}"#,
        ),
        ("s.a", "x"),
    ] {
        let reply = client.request(subject, payload, WAIT_MAX).await;
        let reply = reply.unwrap_or_else(|error| panic!("{subject}: {error}"));
        received.push(String::from_utf8_lossy(reply.payload()).into_owned());
    }
    (server, received)
}

#[tokio::test]
async fn jetstream_endpoints_report_streams_and_consumers() {
    let (server, received) = with_a_stream().await;
    assert!(
        received[1].contains("\"err_code\":10028"),
        "{}",
        received[1]
    );
    let jsz = server.json("/jsz?consumers=1&config=1");
    let counts = [
        "streams",
        "consumers",
        "messages",
        "bytes",
        "memory",
        "reserved_memory",
    ];
    assert_eq!(
        counts.map(|key| jsz[key].as_u64()),
        [1, 1, 1, 20, 20, 600].map(Some)
    );
    assert_eq!(jsz["config"]["max_memory"], 1_000);
    assert_eq!(jsz["api"]["errors"], 1);
    let stream = &jsz["account_details"][0]["stream_detail"][0];
    assert_eq!(stream["config"]["max_bytes"], 600);
    assert_eq!(stream["consumer_detail"][0]["num_pending"], 1);
    let varz = server.json("/varz");
    assert_eq!(varz["jetstream"]["stats"]["memory"], 20);
    assert_eq!(
        server.json("/accountz?acc=$G")["account_detail"]["jetstream_enabled"],
        true
    );
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains("\nfanline_jetstream_messages 1\n"),
        "{metrics}"
    );
    for (target, status, part) in [
        ("/healthz?account=$G&stream=S&consumer=c", 200, "ok"),
        ("/healthz?account=$G&stream=X", 404, "JetStream stream"),
        (
            "/healthz?account=$G&stream=S&consumer=x",
            404,
            "JetStream consumer",
        ),
        ("/healthz?account=X&details=1", 404, r#""type":"ACCOUNT""#),
    ] {
        let reply = server.get(target);
        assert_eq!(reply.status, status, "{target}: {}", reply.body);
        assert!(reply.body.contains(part), "{target}: {}", reply.body);
    }
}

/// Requests that are not HTTP, too long, or never finished affect only their sender.
#[test]
fn garbage_costs_its_sender_only() {
    let server = Running::start(Auth::Open);
    let mut unfinished = server.connect_http();
    unfinished
        .write_all(b"GET /varz HTTP/1.1\r\nHost:")
        .expect("it reads");
    for garbage in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(),
        b"CONNECT {}\r\nPING\r\n\r\n".to_vec(),
        b"GET /varz HTTP/9.9\r\n\r\n".to_vec(),
        [b"GET / HTTP/1.1\r\nX: ", &vec![b'a'; 64 * 1024][..]].concat(),
        b"GET / HTTP/1.1\r\n"
            .iter()
            .copied()
            .chain(b"A: b\r\n".repeat(2000))
            .collect(),
    ] {
        let mut stream = server.connect_http();
        // The server may close the connection before everything is sent, which discards the response.
        let _ = stream.write_all(&garbage);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let is_error = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4");
        assert!(is_error, "{}", String::from_utf8_lossy(&answer));
        assert_eq!(server.get("/healthz").status, 200);
    }
    unfinished
        .write_all(b" x\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    unfinished.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

/// Operators need to know which client is slow. The client is reported by name, with the subjects of its
/// pending messages, while output is pending and after it was disconnected.
#[test]
fn slow_consumer_is_reported_by_name() {
    let server = Running::start_with(Options {
        limits: Limits {
            write_deadline: Duration::from_secs(1),
            ..Limits::default()
        },
        ..Options::default()
    });
    let connect = |name: &str| {
        let mut stream = TcpStream::connect(server.0.addresses().clients).expect("it listens");
        let line = format!("CONNECT {{\"verbose\":false,\"name\":\"{name}\"}}\r\n");
        stream.write_all(line.as_bytes()).expect("it reads");
        stream
    };
    let mut slow = connect("the \\\"slow\\\" one");
    (slow.write_all(b"SUB quiet.> 1\r\nSUB orders.> 22\r\nPING\r\n")).expect("it reads");
    let mut buffer = BufReader::new(slow.try_clone().expect("the same"));
    let mut line = String::new();
    while !line.starts_with("PONG") {
        line.clear();
        buffer.read_line(&mut line).expect("it answers");
    }
    let mut publisher = connect("publisher");
    let payload = "x".repeat(64 * 1024);
    let publish = format!("PUB orders.new {}\r\n{payload}\r\n", payload.len());
    for _ in 0..400 {
        publisher.write_all(publish.as_bytes()).expect("it reads");
    }
    let row = |target: &str| {
        let mut found = Value::Null;
        until("a slow consumer is listed", || {
            found = server.json(target)["connections"][0].clone();
            found["slow_consumer"].is_object()
        });
        found
    };
    let behind = row("/connz?sort=pending&limit=1");
    assert_eq!(behind["name"], "the \"slow\" one", "{behind}");
    assert_eq!(behind["slow_consumer"]["subject"], "orders.>", "{behind}");
    assert_eq!(behind["slow_consumer"]["sid"], "22", "{behind}");
    assert!(behind["slow_consumer"]["since"].is_string(), "{behind}");
    let dropped = row("/connz?state=closed");
    assert_eq!(dropped["reason"], "Slow Consumer (Write Deadline)");
    assert_eq!(dropped["slow_consumer"]["subject"], "orders.>", "{dropped}");
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains("\nfanline_connections_behind 0\n"),
        "{metrics}"
    );
}
