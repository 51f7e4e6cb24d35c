//! Accounts over real sockets: isolation, imports, and exports.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::AccountLimits;
use fanline_engine::auth::{
    Access, AccessConfig, ClientLimits, Export, ExportKind, Import, ImportKind, Mapping,
    ResponseKind, User,
};
use fanline_server::client::{Client, ConnectOptions, Message, OutgoingMessage, Subscription};
use fanline_server::{Auth, Handle, JetStreamOptions, Options, Server};
use serde_json::Value;
use tokio::time::timeout;

use crate::folder::TempFolder;
use crate::raw::{SHARD_COUNTS, WAIT_MAX, options};

/// A server that stops with its test.
struct Running(Handle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

impl Running {
    fn start(shards: usize, config: AccessConfig) -> Self {
        Running::with(config, options(shards))
    }

    fn with(config: AccessConfig, options: Options) -> Self {
        let access = Access::new(config).expect("a directory");
        let options = Options {
            auth: Auth::Directory(Arc::new(access)),
            monitoring: Some(("127.0.0.1".into(), 0)),
            ..options
        };
        Running(Server::start(options).expect("a free port"))
    }

    /// Returns a client over TCP. Users are named as their accounts, in lower case.
    async fn client(&self, account: &str) -> Client {
        let address = self.0.addresses().clients;
        let user = account.to_lowercase();
        let options = ConnectOptions::new(&format!("nats://{user}:pw@{address}"));
        let client = Client::connect(&options.expect("an address")).await;
        client.unwrap_or_else(|error| panic!("{account}: {error}"))
    }

    fn monitoring(&self, target: &str) -> Value {
        let address = self.0.addresses().monitoring.expect("it was asked for");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (_, body) = text.split_once("\r\n\r\n").expect("headers end");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{target}: {error}: {body}"))
    }

    async fn stop(self) {
        self.0.shutdown();
        timeout(WAIT_MAX, self.0.wait()).await.expect("it stops");
    }
}

fn service(response: ResponseKind) -> ExportKind {
    ExportKind::Service {
        response,
        response_threshold: None,
        latency: None,
    }
}

fn export(kind: ExportKind, subject: &str) -> Export {
    Export {
        kind,
        subject: subject.into(),
        accounts: None,
        account_token_position: None,
        allow_trace: false,
    }
}

fn import(kind: ImportKind, subject: &str, to: Option<&str>) -> Import {
    Import {
        kind,
        account: "A".into(),
        subject: subject.into(),
        to: to.map(String::from),
        allow_trace: false,
    }
}

const ASK: ImportKind = ImportKind::Service { share: false };

/// Returns three accounts: A exports, B imports, and C does neither.
fn three() -> AccessConfig {
    let mut config = AccessConfig::default();
    for name in ["A", "B", "C"] {
        let user = User::new(name.to_lowercase(), "pw");
        config.account_mut(name).users.push(user);
    }
    config.account_mut("A").exports = vec![
        export(ExportKind::Stream, "news.>"),
        export(service(ResponseKind::Single), "time.*"),
        export(service(ResponseKind::Stream), "$JS.API.>"),
    ];
    config.account_mut("B").imports = vec![
        import(ImportKind::Stream, "news.>", Some("from.a.news.>")),
        import(ASK, "time.*", Some("clock.*")),
        import(ASK, "$JS.API.>", Some("A.API.>")),
    ];
    config
}

async fn next(subscription: &mut Subscription) -> Message {
    let next = timeout(WAIT_MAX, subscription.next()).await;
    next.expect("in time").expect("a message")
}

async fn ask(client: &Client, subject: &str, payload: &str) -> String {
    let reply = client.request(subject, payload.to_owned(), WAIT_MAX).await;
    let reply = reply.unwrap_or_else(|error| panic!("{subject}: {error}"));
    String::from_utf8_lossy(reply.payload()).into_owned()
}

/// Checks that the client has received no other messages: a message that is published now must be the next
/// one.
async fn is_quiet(client: &Client, all: &mut Subscription) {
    client.publish("fence", "").await.expect("published");
    assert_eq!(next(all).await.subject(), "fence");
}

#[tokio::test]
async fn nothing_crosses_without_an_import() {
    for shards in SHARD_COUNTS {
        let server = Running::start(shards, three());
        let mut others = Vec::new();
        // There are several clients, so that every shard has some.
        for account in ["B", "C", "B", "C", "B", "C"] {
            let client = server.client(account).await;
            let all = client.subscribe(">").await.expect("subscribed");
            let group = client
                .queue_subscribe("secret", "g")
                .await
                .expect("a group");
            client.flush().await.expect("flushed");
            others.push((client, all, group));
        }
        for _ in 0..shards {
            let a = server.client("A").await;
            for subject in [
                "secret",
                "from.a.news.x",
                "clock.x",
                "$JS.API.INFO",
                "_R_.0.1",
                "time.x",
            ] {
                let message = OutgoingMessage {
                    subject: subject.into(),
                    reply: Some("back".into()),
                    ..OutgoingMessage::default()
                };
                a.publish_message(&message).await.expect("published");
            }
            a.flush().await.expect("flushed");
        }
        let (_, (c, all, _)) = (others.remove(0), others.remove(0));
        let mut all = all;
        is_quiet(&c, &mut all).await;
        drop(others);
        let a = server.client("A").await;
        let mut all = a.subscribe(">").await.expect("subscribed");
        a.flush().await.expect("flushed");
        let b = server.client("B").await;
        for subject in ["secret", "news.x", "from.a.news.x", "time.x", "_R_.0.1"] {
            b.publish(subject, "x").await.expect("published");
        }
        b.flush().await.expect("flushed");
        is_quiet(&a, &mut all).await;
    }
}

#[tokio::test]
async fn imports_lead_there_and_back() {
    for shards in SHARD_COUNTS {
        let server = Running::start(shards, three());
        for _ in 0..shards {
            let (a, b) = (server.client("A").await, server.client("B").await);
            let mut news = b.subscribe("from.a.>").await.expect("subscribed");
            let mut requests = a.queue_subscribe("time.*", "q").await.expect("subscribed");
            b.flush().await.expect("flushed");
            a.publish("news.one.two", "hi").await.expect("published");
            let got = next(&mut news).await;
            assert_eq!(
                (got.subject(), got.payload()),
                ("from.a.news.one.two", &b"hi"[..])
            );
            a.flush().await.expect("flushed");
            let answerer = a.clone();
            let answers = tokio::spawn(async move {
                for _ in 0..3 {
                    let request = next(&mut requests).await;
                    assert_eq!(request.subject(), "time.zurich");
                    let info = request.headers().and_then(|h| h.get("Nats-Request-Info"));
                    assert!(info.is_some_and(|info| info.contains(r#""acc":"B""#)));
                    let reply = request.reply().expect("a reply").to_owned();
                    assert!(reply.starts_with("_R_."), "{reply}");
                    for payload in ["noon", "too late"] {
                        answerer.publish(&reply, payload).await.expect("published");
                    }
                }
                // The members leave before the next round.
                drop(requests);
                answerer.flush().await.expect("flushed");
            });
            for _ in 0..3 {
                assert_eq!(ask(&b, "clock.zurich", "?").await, "noon");
            }
            answers.await.expect("answered");
            let c = server.client("C").await;
            let nobody = c.request("clock.zurich", "?", WAIT_MAX).await;
            assert!(nobody.is_err(), "C has imported nothing");
        }
    }
}

fn with_jetstream(config: &mut AccessConfig) {
    config.account_mut("A").jetstream = Some(AccountLimits::default());
    config.account_mut("B").jetstream = Some(AccountLimits {
        max_streams: 1,
        max_memory: 100_000,
        ..AccountLimits::default()
    });
}

const STREAM: &str = r#"{"name":"S","subjects":["s.>"],"storage":"file"}"#;

#[tokio::test]
async fn each_account_has_streams_of_its_own() {
    let folder = TempFolder::new("accounts");
    let start = |shards| {
        let mut config = three();
        with_jetstream(&mut config);
        let options = Options {
            jetstream: Some(JetStreamOptions {
                store_dir: Some(folder.0.clone()),
                ..JetStreamOptions::default()
            }),
            ..options(shards)
        };
        Running::with(config, options)
    };
    let server = start(2);
    let (a, b, c) = (
        server.client("A").await,
        server.client("B").await,
        server.client("C").await,
    );
    for client in [&a, &b] {
        let made = ask(client, "$JS.API.STREAM.CREATE.S", STREAM).await;
        assert!(made.contains("did_create"), "{made}");
    }
    assert!(ask(&a, "s.x", "from a").await.contains(r#""seq":1"#));
    assert!(ask(&a, "s.y", "from a").await.contains(r#""seq":2"#));
    assert!(ask(&b, "s.x", "from b").await.contains(r#""seq":1"#));
    let refused = ask(&c, "$JS.API.INFO", "").await;
    assert!(refused.contains(r#""err_code":10039"#), "{refused}");
    let refused = ask(&c, "$JS.API.STREAM.NAMES", "").await;
    assert!(refused.ends_with(r#","streams":null}"#), "{refused}");
    let another = STREAM.replace(r#""S""#, r#""T""#).replace("s.>", "t");
    let refused = ask(&b, "$JS.API.STREAM.CREATE.T", &another).await;
    assert!(refused.contains(r#""err_code":10027"#), "{refused}");
    let info = ask(&b, "$JS.API.INFO", "").await;
    assert!(
        info.contains(r#""max_streams":1"#) && info.contains(r#""streams":1"#),
        "{info}"
    );
    // The import lets B read A's streams.
    let theirs = ask(&b, "A.API.STREAM.INFO.S", "").await;
    assert!(theirs.contains(r#""messages":2"#), "{theirs}");
    let read = ask(&b, "A.API.STREAM.MSG.GET.S", r#"{"seq":2}"#).await;
    assert!(read.contains("ZnJvbSBh"), "{read}");
    let own = ask(&b, "$JS.API.STREAM.INFO.S", "").await;
    assert!(own.contains(r#""messages":1"#), "{own}");
    let reply = server.monitoring("/jsz?accounts=1&streams=1&acc=B");
    assert_eq!(reply["accounts"], 2);
    assert_eq!(reply["streams"], 2);
    let details = reply["account_details"].as_array().expect("a list");
    assert_eq!(details.len(), 1);
    assert_eq!(details[0]["name"], "B");
    assert_eq!(details[0]["stream_detail"][0]["state"]["messages"], 1);
    server.stop().await;
    let server = start(1);
    for (account, messages) in [("A", 2), ("B", 1)] {
        let client = server.client(account).await;
        let info = ask(&client, "$JS.API.STREAM.INFO.S", "").await;
        assert!(
            info.contains(&format!(r#""messages":{messages}"#)),
            "{account}: {info}"
        );
    }
    server.stop().await;
    let streams = folder.0.join("jetstream/fanline/streams");
    assert!(streams.join("A/S").is_dir() && streams.join("B/S").is_dir());
    assert!(!streams.join("C").exists());
}

#[tokio::test]
async fn records_are_pulled_over_an_import() {
    let mut config = three();
    with_jetstream(&mut config);
    let options = Options {
        jetstream: Some(JetStreamOptions::default()),
        ..options(2)
    };
    let server = Running::with(config, options);
    let (a, b) = (server.client("A").await, server.client("B").await);
    ask(
        &a,
        "$JS.API.STREAM.CREATE.S",
        &STREAM.replace("file", "memory"),
    )
    .await;
    for n in 0..3 {
        ask(&a, &format!("s.{n}"), "hi").await;
    }
    let consumer = r#"{"stream_name":"S","config":{"durable_name":"d","ack_policy":"none"}}"#;
    let made = ask(&b, "A.API.CONSUMER.DURABLE.CREATE.S.d", consumer).await;
    assert!(made.contains(r#""name":"d""#), "{made}");
    let inbox = b.new_inbox();
    let mut records = b.subscribe(&inbox).await.expect("subscribed");
    let pull = OutgoingMessage {
        subject: "A.API.CONSUMER.MSG.NEXT.S.d".into(),
        reply: Some(inbox),
        payload: "3".into(),
        ..OutgoingMessage::default()
    };
    b.publish_message(&pull).await.expect("published");
    for n in 0..3 {
        let record = next(&mut records).await;
        assert_eq!(record.subject(), format!("s.{n}"));
        assert_eq!(record.payload(), b"hi");
    }
}

/// A client uses the first response that it receives. So an account that imports the JetStream API must not
/// respond to the request with an error of its own.
#[tokio::test]
async fn importing_account_leaves_the_api_to_the_other() {
    let access = |imported: &[&str]| {
        let mut config = three();
        config.account_mut("A").jetstream = Some(AccountLimits::default());
        let export = export(service(ResponseKind::Stream), "s.>");
        config.account_mut("A").exports.push(export);
        let imports = imported.iter().map(|subject| import(ASK, subject, None));
        config.account_mut("C").imports = imports.collect();
        config
    };
    let options = Options {
        jetstream: Some(JetStreamOptions::default()),
        ..options(2)
    };
    let server = Running::with(access(&["$JS.API.>", "s.>"]), options);
    let client = server.client("C").await;
    let made = ask(&client, "$JS.API.STREAM.CREATE.S", DIRECT).await;
    assert!(made.contains("did_create"), "{made}");
    assert!(ask(&client, "s.x", "hi").await.contains(r#""seq":1"#));
    let info = ask(&client, "$JS.API.INFO", "").await;
    assert!(info.contains(r#""streams":1"#), "{info}");
    let record = client.request("$JS.API.DIRECT.GET.S.s.x", "", WAIT_MAX);
    let record = record.await.expect("a record");
    assert_eq!(record.payload(), b"hi");
    // The publisher's identity is not stored.
    let headers = record.headers().expect("headers");
    assert_eq!(headers.get("Nats-Request-Info"), None);
    let unknown = client.request("$JS.API.DIRECT.GET.T", "", WAIT_MAX).await;
    assert!(unknown.is_err(), "no stream has this name");
    // Without an import of the account information, the account's own API rejects requests that are not
    // imported.
    let replaced = async |imported: &[&str], expected: &str| {
        let replaced = server.0.replace_access(access(imported));
        replaced.expect("a directory");
        let client = server.client("C").await;
        // The threads apply the change at different times.
        let is_there = async || {
            let info = client.request("$JS.API.INFO", "", WAIT_MAX).await;
            info.is_ok_and(|info| String::from_utf8_lossy(info.payload()).contains(expected))
        };
        let info = async || while !is_there().await {};
        timeout(WAIT_MAX, info()).await.expect("in time");
        client
    };
    let client = replaced(&["$JS.API.DIRECT.GET.S"], r#""err_code":10039"#).await;
    let last = ask(&client, "$JS.API.DIRECT.GET.S", r#"{"last_by_subj":"s.x"}"#).await;
    assert_eq!(last, "hi");
    for unknown in ["$JS.API.DIRECT.GET.T", "$JS.API.CONSUMER.MSG.NEXT.S.d"] {
        let answer = client.request(unknown, "", WAIT_MAX).await;
        assert!(answer.is_err(), "{unknown}");
    }
    replaced(&["$JS.API.>"], r#""streams":1"#).await;
}

const DIRECT: &str = r#"{"name":"S","subjects":["s.>"],"storage":"memory","allow_direct":true}"#;

#[tokio::test]
async fn monitoring_separates_accounts() {
    let server = Running::start(2, three());
    let (a, b) = (server.client("A").await, server.client("B").await);
    let _news = b.subscribe("from.a.>").await.expect("subscribed");
    b.flush().await.expect("flushed");
    a.publish("news.x", "12345").await.expect("published");
    a.flush().await.expect("flushed");
    b.flush().await.expect("flushed");
    let names = server.monitoring("/accountz")["accounts"].clone();
    let names: Vec<&str> = names
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        ["$G", "$SYS", "A", "B", "C"]
            .iter()
            .all(|name| names.contains(name)),
        "{names:?}"
    );
    let detail = server.monitoring("/accountz?acc=B")["account_detail"].clone();
    assert_eq!(detail["client_connections"], 1);
    assert_eq!(detail["subscriptions"], 1);
    assert_eq!(detail["imports"][0]["local_subject"], "from.a.news.>");
    let statistics = server.monitoring("/accstatz")["account_statz"].clone();
    let of = |name: &str| {
        let all = statistics.as_array().expect("a list");
        all.iter()
            .find(|one| one["acc"] == name)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(of("A")["received"]["msgs"], 1);
    assert_eq!(of("A")["sent"]["msgs"], 0);
    assert_eq!(of("B")["sent"]["bytes"], 5);
    assert_eq!(of("C"), Value::Null);
    let connections = server.monitoring("/connz?acc=B&auth=1");
    assert_eq!(connections["num_connections"], 1);
    assert_eq!(connections["connections"][0]["account"], "B");
    assert_eq!(server.monitoring("/connz?acc=nobody")["num_connections"], 0);
    let subscriptions = server.monitoring("/subsz?acc=B&subs=1");
    assert_eq!(subscriptions["total"], 1);
    assert_eq!(subscriptions["subscriptions_list"][0]["account"], "B");
    assert_eq!(server.monitoring("/subsz?acc=C&subs=1")["total"], 0);
}

#[tokio::test]
async fn account_limits_apply() {
    for shards in [1, 2] {
        let mut config = three();
        config.account_mut("B").limits = ClientLimits {
            connections_max: Some(2),
            subscriptions_max: Some(3),
            payload_bytes_max: Some(10),
            leafnodes_max: None,
        };
        let server = Running::start(shards, config);
        let (one, two) = (server.client("B").await, server.client("B").await);
        let user = ConnectOptions::new(&format!("nats://b:pw@{}", server.0.addresses().clients));
        let third = Client::connect(user.as_ref().expect("an address")).await;
        let error = third.err().expect("it is refused").to_string();
        assert!(
            error.contains("maximum account active connections exceeded"),
            "{error}"
        );
        let mut held = Vec::new();
        for client in [&one, &two, &one] {
            held.push(client.subscribe("x").await.expect("subscribed"));
            client.flush().await.expect("flushed");
        }
        let mut fourth = two.subscribe("y").await.expect("sent");
        two.publish("y", "x").await.expect("published");
        two.flush().await.expect("flushed");
        let nothing = timeout(Duration::from_millis(50), fourth.next()).await;
        assert!(!matches!(nothing, Ok(Some(_))), "it was refused");
        drop(held);
        one.drain().await.expect("drained");
        // After a short time, the closed connection is no longer counted.
        let mut again = Client::connect(user.as_ref().expect("an address")).await;
        while again.is_err() {
            again = Client::connect(user.as_ref().expect("an address")).await;
        }
        let again = again.expect("connected");
        again.publish("x", "0123456789").await.expect("published");
        again.flush().await.expect("it may say that much");
        // The payload limit of the account applies. A client that knows the limit from INFO does not send a
        // larger message.
        let sent = again.publish("x", "0123456789a").await;
        assert!(
            sent.is_err() || again.flush().await.is_err(),
            "it was too large"
        );
    }
}

#[tokio::test]
async fn account_mappings_rename_subjects() {
    let mut config = three();
    let mapping = Mapping::new("old.*.*", "new.$2.$1").expect("a mapping");
    config.account_mut("C").mappings.push(mapping);
    let server = Running::start(2, config);
    let (c, a) = (server.client("C").await, server.client("A").await);
    for (client, expected) in [(&c, "new.2.1"), (&a, "old.1.2")] {
        let mut all = client.subscribe(">").await.expect("subscribed");
        client.publish("old.1.2", "x").await.expect("published");
        assert_eq!(next(&mut all).await.subject(), expected);
    }
}

/// Repeats a request until the response contains a text.
async fn wait_for_response(client: &Client, subject: &str, wanted: &str) {
    let asking = async {
        while !ask(client, subject, "").await.contains(wanted) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = timeout(WAIT_MAX, asking).await;
    assert!(found.is_ok(), "{subject} never responds with {wanted}");
}

#[tokio::test]
async fn an_account_copies_the_stream_of_another() {
    const RECORDS: usize = 500;
    for shards in SHARD_COUNTS {
        let mut config = three();
        let a = config.account_mut("A");
        a.jetstream = Some(AccountLimits::default());
        a.exports.push(export(ExportKind::Stream, "copied.>"));
        a.exports
            .push(export(service(ResponseKind::Single), "$JS.FC.>"));
        let b = config.account_mut("B");
        b.jetstream = Some(AccountLimits::default());
        b.imports.push(import(ImportKind::Stream, "copied.>", None));
        b.imports.push(import(ASK, "$JS.FC.>", None));
        let options = Options {
            jetstream: Some(JetStreamOptions::default()),
            ..options(shards)
        };
        let server = Running::with(config, options);
        let (a, b) = (server.client("A").await, server.client("B").await);
        let stream = STREAM.replace("file", "memory");
        ask(&a, "$JS.API.STREAM.CREATE.S", &stream).await;
        let origin = r#"{"name":"S","external":{"api":"A.API","deliver":"copied"}}"#;
        let mirror = format!(r#"{{"name":"M","storage":"memory","mirror":{origin}}}"#);
        let source = format!(r#"{{"name":"C","storage":"memory","sources":[{origin}]}}"#);
        for (name, config) in [("M", &mirror), ("C", &source)] {
            let made = ask(&b, &format!("$JS.API.STREAM.CREATE.{name}"), config).await;
            assert!(made.contains("did_create"), "{made}");
        }
        for n in 0..RECORDS {
            ask(&a, &format!("s.{n}"), "hi").await;
        }
        for name in ["M", "C"] {
            let info = format!("$JS.API.STREAM.INFO.{name}");
            wait_for_response(&b, &info, &format!(r#""last_seq":{RECORDS},"#)).await;
            let read = format!("$JS.API.STREAM.MSG.GET.{name}");
            let last = ask(&b, &read, &format!(r#"{{"seq":{RECORDS}}}"#)).await;
            let subject = format!(r#""subject":"s.{}""#, RECORDS - 1);
            assert!(last.contains(&subject), "{last}");
        }
        server.stop().await;
    }
}
